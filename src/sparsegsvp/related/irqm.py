"""Sparse planes by majorising a smooth count of the features."""

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np
from scipy import linalg

from .._typing import IntArray
from .base import Array, PlaneFit, PlanePairClassifier, flat_plane, lowest, moment_factor, shorten
from .gepsvm import ridge_plane, ridge_slope


@dataclass(frozen=True)
class SmoothCount:
    """``g(t) = log(1 + t/p) / log(1 + 1/p)``, replaced by a parabola below eps, summed over w."""

    p: float

    @property
    def eps(self) -> float:  # below it a weight counts as zero
        return 0.1 * self.p

    def curvature(self, w: Array) -> Array:
        """The factor c of the majorant ``c t^2 + constant`` that touches g at ``|w|``."""
        t = np.maximum(np.abs(w), self.eps)
        return 0.5 / (np.log1p(1.0 / self.p) * t * (self.p + t))

    def value(self, w: Array) -> float:
        """Sum of g over the weights."""
        t = np.abs(w)
        flat = self.curvature(np.zeros(1))[0]
        above = np.log((self.p + t) / (self.p + self.eps)) / np.log1p(1.0 / self.p)
        return float(np.where(t < self.eps, flat * t**2, above + flat * self.eps**2).sum())


def leading_plane(A: Array, B: Array, delta: float, price: Array, theta: float) -> Array:
    """Return the leading eigenvector of ``(B'B - diag(price)) z = theta (A'A + delta I) z``.

    It is where kappa(theta), the largest eigenvalue of ``B M^-1 B'``, M = theta (A'A + delta I) +
    diag(price), is 1; quotients of ``M^-1 B'u`` rise to it quadratically.
    """
    both, n = np.vstack([A, B]), len(A)
    z = np.zeros(A.shape[1])
    for _ in range(50):
        diagonal = theta * delta + price
        S = (both / diagonal) @ both.T
        core = S[:n, :n] + np.eye(n) / theta
        inner = linalg.solve(core, S[:n, n:], assume_a="pos", check_finite=False)
        K = S[n:, n:] - S[n:, :n] @ inner
        kappa, u = linalg.eigh(K, subset_by_index=[len(K) - 1] * 2, check_finite=False)
        z = (B.T @ u[:, 0] - A.T @ (inner @ u[:, 0])) / diagonal
        length = float(np.square(A @ z).sum() + delta * (z @ z))
        z /= np.sqrt(length)
        rise = float(kappa[0] * (kappa[0] - 1.0)) / length
        theta += max(rise, 0.0)
        if rise <= 1e-10 * theta:
            break
    return z


def single_gains(A: Array, B: Array, delta: float) -> Array:
    """Return by how much each feature raises the largest quotient above that of the bias alone."""
    g, h = np.square(A).sum(axis=0) + delta, np.square(B).sum(axis=0)
    across_A, across_B = A[:, -1] @ A, B[:, -1] @ B
    a = g * g[-1] - across_A**2
    b = h * g[-1] + g * h[-1] - 2.0 * across_A * across_B
    c = h * h[-1] - across_B**2
    root = np.sqrt(np.maximum(b**2 - 4.0 * a * c, 0.0))
    return ((b + root)[:-1] / (2.0 * a[:-1])) - h[-1] / g[-1]


@dataclass(eq=False, repr=False)
class IRQM(PlanePairClassifier):
    r"""Sparse generalized eigenvectors by quadratic majorisation. A reconstruction.

    With G, H and :math:`z = [w; b]` as in `GEPSVM`, the first plane is

    .. math:: \max_z\ z^T H z - \lambda \sum_f g(|w_f|) \quad \text{on} \quad
              z^T (G + \delta I) z \le 1, \qquad g(t) = \frac{\log(1 + t/p)}{\log(1 + 1/p)} ,

    and for the second the classes change roles; ``objective_`` is the negative. As p falls to zero,
    g becomes the count of features; below :math:`p / 10`, where weights end as zeros, it is a
    parabola. Each step puts a quadratic majorant with factors c in the place of g and goes to the
    leading eigenvector of :math:`(H - \lambda\,\mathrm{diag}(c), G + \delta I)`.

    Known of the original are problem, majorant and smoothing. Chosen here: a bias that is not
    penalised; the unit of :math:`\lambda`, by how much the best feature alone raises the quotient
    above that of the bias; three stages of p, from ten times its value; and the better end of two
    starts, on all features that alone raise the quotient by :math:`\lambda` and on the best one.

    Parameters
    ----------
    rho : float, default=0.5
        :math:`\lambda` in the unit above, in (0, 1]. A small one lets noise features in.
    p, delta : float, default=1e-3 and 1.0
        Smoothing of the count, > 0, in units of the weights, and ridge.
    %(steps)s
    %(planes)s

    References
    ----------
    J. Song, P. Babu and D. P. Palomar, "Sparse generalized eigenvalue problem via smooth
    optimization", IEEE Transactions on Signal Processing 63 (2015) 1627-1642.

    Examples
    --------
    >>> from sparsegsvp.datasets import make_planted
    >>> from sparsegsvp.related import IRQM
    >>> data = make_planted(60, 500, 3, effect=3.0)
    >>> bool((IRQM().fit(data.X, data.y).get_support(indices=True) == data.support).all())
    True
    """

    rho: float = 0.5
    _: KW_ONLY
    p: float = 1e-3
    delta: float = 1.0
    tol: float = 1e-6
    max_iter: int = 500
    _rules: ClassVar = {"rho": {"above": 0, "most": 1}}

    def _fit_plane(self, A: Array, B: Array) -> PlaneFit:
        gains = single_gains(moment_factor(A), moment_factor(B), self.delta)
        best = gains.max()
        if best <= 1e-10:  # the bias alone has 1 / (1 + delta)
            return PlaneFit(flat_plane(len(gains)), [np.nan])
        starts = np.flatnonzero(gains >= self.rho * best), np.array([gains.argmax()])
        ends = (self._climb(A, B, features, self.rho * best) for features in starts)
        return lowest(ends, margin=10.0 * self.tol)

    def _climb(self, A: Array, B: Array, features: IntArray, weight: float) -> PlaneFit:
        """Majorise and solve, stage by stage, from the plane on some features."""
        z = ridge_plane(A, B, self.delta, features).z
        F, E = shorten(moment_factor(A)), shorten(moment_factor(B))
        for factor in (10.0, 10.0**0.5, 1.0):
            count = SmoothCount(factor * self.p)
            gain = float(np.square(E @ z).sum())
            history, converged = [weight * count.value(z[:-1]) - gain], False
            while not converged and len(history) <= self.max_iter:
                price = np.append(weight * count.curvature(z[:-1]), 0.0)
                start = max(gain - float(price @ z**2), 1.0 / (1.0 + self.delta))
                z = leading_plane(F, E, self.delta, price, start)
                gain = float(np.square(E @ z).sum())
                history.append(weight * count.value(z[:-1]) - gain)
                converged = history[-2] - history[-1] <= self.tol * abs(history[-1])
        score = np.abs(ridge_slope(A, B, self.delta, z, 1.0 / gain))
        z[:-1][np.abs(z[:-1]) <= count.eps] = 0.0
        return PlaneFit(z, history, score[:-1], len(history) - 1, converged)

    def _refit_plane(self, A: Array, B: Array) -> PlaneFit:
        return ridge_plane(A, B, self.delta)
