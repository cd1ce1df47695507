"""The problem written out from its definition, sharing no code with the solver."""

from dataclasses import dataclass

import numpy as np
import pytest


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

    def objective(self, w, delta, weights=1.0, q=1.0, eps=1e-3):
        t = np.abs(w)
        p = t if q == 1 else (t + eps) ** q - eps**q
        return self.value(w) + delta * np.sum(weights * p)

    def certificate(self, w, b, delta, weights=1.0, q=1.0, eps=1e-3):
        """The largest violation of the optimality conditions, as the design states them."""
        t = np.abs(w)
        slopes = weights * (np.ones_like(t) if q == 1 else q * (t + eps) ** (q - 1))
        g = self.gradient(w, b)
        on = np.abs(g + delta * slopes * np.sign(w) - delta * np.sum(slopes * t) * w)
        off = np.maximum(np.abs(g) - delta * slopes, 0.0)
        return np.max(np.where(w != 0, on, off))


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
