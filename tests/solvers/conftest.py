"""The problem written out from its definition, sharing nothing with the solver, and data."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.linalg import eigh


def value(t, q=1.0, eps=1e-3):
    """The penalty p(t)."""
    return t if q == 1.0 else (t + eps) ** q - eps**q


def slope(t, q=1.0, eps=1e-3):
    """Its derivative."""
    return np.ones_like(t) if q == 1.0 else q * (t + eps) ** (q - 1)


@dataclass(frozen=True)
class Reference:
    """The quotient of class i's plane from explicit class covariances.

    With b at its best value, for any w but 0, unit or not,

        r(w) = (MSD_i + tau w'w) / (mean over k != i of MSD_k + tau w'w),
        MSD_k = (1 - pool) w'Cov_k w + pool w'Cov_W w + (mu_k'w + b)^2.
    """

    means: np.ndarray
    covs: np.ndarray  # shrunk toward the pooled one
    i: int
    tau: float

    @classmethod
    def of(cls, *blocks, i=0, tau=1.0, pool=0.0, weights=None):
        if weights is None:
            weights = [np.ones(len(X)) for X in blocks]
        means, covs = [], []
        for X, weight in zip(blocks, weights):
            X, p = np.asarray(X, dtype=np.float64), np.asarray(weight) / np.sum(weight)
            means.append(p @ X)
            covs.append((X - p @ X).T @ np.diag(p) @ (X - p @ X))
        share = np.array([np.sum(weight) for weight in weights])
        pooled = np.tensordot(share / share.sum(), np.array(covs), axes=1)
        return cls(np.array(means), (1 - pool) * np.array(covs) + pool * pooled, i, tau)

    @property
    def others(self):
        return [k for k in range(len(self.means)) if k != self.i]

    def msd(self, k, w, b):
        return w @ self.covs[k] @ w + (self.means[k] @ w + b) ** 2

    def ratio(self, w, b):
        floor = self.tau * (w @ w)
        other = np.mean([self.msd(k, w, b) for k in self.others])
        return (self.msd(self.i, w, b) + floor) / (other + floor)

    def best_bias(self, w):
        """The best of the stationary points: roots of a polynomial, not the closed form."""
        P = np.polynomial.Polynomial
        p = self.means @ w
        floor = self.tau * (w @ w)
        own = P([w @ self.covs[self.i] @ w + floor + p[self.i] ** 2, 2 * p[self.i], 1.0])
        spread = np.mean([w @ self.covs[k] @ w for k in self.others]) + floor
        q = p[self.others]
        other = P([spread + np.mean(q**2), 2 * np.mean(q), 1.0])
        roots = (own.deriv() * other - own * other.deriv()).roots()
        return min(roots[np.isreal(roots)].real, key=lambda b: self.ratio(w, b))

    def value(self, w):
        return self.ratio(w, self.best_bias(w))

    def gradient(self, w, b=None):
        b = self.best_bias(w) if b is None else b
        r = self.ratio(w, b)
        pull = [
            self.covs[k] @ w + (self.means[k] @ w + b) * self.means[k]
            for k in range(len(self.means))
        ]
        other = np.mean([pull[k] for k in self.others], axis=0)
        bottom = np.mean([self.msd(k, w, b) for k in self.others]) + self.tau * (w @ w)
        return 2 / bottom * (pull[self.i] + self.tau * w - r * (other + self.tau * w))

    def objective(self, w, delta, factors=1.0, **penalty):
        return self.value(w) + delta * np.sum(factors * value(np.abs(w), **penalty))

    def certificate(self, w, b, delta, factors=1.0, **penalty):
        """The largest violation of the optimality conditions, as the design states them."""
        t = np.abs(w)
        with np.errstate(invalid="ignore"):
            slopes = delta * factors * slope(t, **penalty)
            multiplier = np.sum(slopes * t, where=w != 0)
        g = self.gradient(w, b)
        on = np.abs(g + np.where(w != 0, slopes, 0.0) * np.sign(w) - multiplier * w)
        return np.max(np.where(w != 0, on, np.maximum(np.abs(g) - slopes, 0.0)))

    def smallest(self):
        """The smallest eigenvalue of the bordered pair: the best quotient of all planes."""
        m = self.means.shape[1]

        def bordered(k):
            mu = self.means[k][:, None]
            top = self.covs[k] + self.tau * np.eye(m) + mu @ mu.T
            return np.block([[top, mu], [mu.T, np.ones((1, 1))]])

        other = np.mean([bordered(k) for k in self.others], axis=0)
        return eigh(bordered(self.i), other, eigvals_only=True)[0]


@pytest.fixture(scope="session")
def reference():
    """``reference(A, B, tau=..., pool=...)``, or more blocks for more classes."""
    return Reference.of


def _classes(n=30, m=12, n_classes=2, shift=0.8, seed=0, spread=0.5):
    """Classes of different size, mean and spread, with correlated features."""
    rng = np.random.default_rng(seed)
    mix = np.eye(m) + 0.3 * rng.normal(size=(m, m)) / np.sqrt(m)
    blocks = []
    for k in range(n_classes):
        scale = np.exp(spread * rng.normal(size=m))
        centre = shift * rng.normal(size=m) * (rng.random(m) < 0.5)
        blocks.append(rng.normal(size=(n + 7 * k, m)) * scale @ mix + centre)
    return blocks


@pytest.fixture(scope="session")
def classes():
    """``classes(n, m, n_classes, shift, seed, spread)``: a list of class matrices."""
    return _classes
