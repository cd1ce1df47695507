"""Planes with a given number of features, by a truncated flow on the quotient."""

from dataclasses import KW_ONLY, dataclass

import numpy as np

from .._typing import IntArray
from .base import Array, PlaneFit, PlanePairClassifier, flat_plane, lowest
from .gepsvm import ridge_plane, ridge_slope


def heaviest(z: Array, k: int) -> IntArray:
    """Return the features of the k heaviest weights, without those that are zero."""
    kept = np.argsort(-np.abs(z[:-1]), kind="stable")[:k]
    return np.sort(kept[z[kept] != 0])


@dataclass(eq=False, repr=False)
class TruncatedRayleighFlow(PlanePairClassifier):
    r"""Planes with at most k features each, by the truncated Rayleigh flow ("Rifle").

    With G, H and :math:`z = [w; b]` as in `GEPSVM`, the first plane is

    .. math:: \max_z \rho(z) = \frac{z^T H z}{z^T (G + \tau I) z}
              \quad \text{with} \quad \|w\|_0 \le k ,

    and for the second the classes change roles; ``objective_`` has :math:`1 / \rho`, and k is
    ``n_features``, or 10 for None. A step of the flow is
    :math:`z \leftarrow z + (\eta / \rho) (H - \rho (G + \tau I)) z`, cut to the k heaviest
    weights, the bias aside. Unlike in the publication :math:`\eta` is halved until the quotient
    rises, and on a support that stays z goes to the limit of the flow, an eigenvector. The better
    end of two starts is kept: the k heaviest weights without a limit, and the k steepest at w = 0.

    Parameters
    ----------
    tau : float, default=1.0
        Ridge, > 0.
    %(steps)s
    %(planes)s

    References
    ----------
    K. M. Tan, Z. Wang, H. Liu and T. Zhang, "Sparse generalized eigenvalue problem: optimal
    statistical rates via truncated Rayleigh flow", JRSS B (2018), arXiv:1604.08697.

    Examples
    --------
    >>> from sparsegsvp.datasets import make_planted
    >>> from sparsegsvp.related import TruncatedRayleighFlow
    >>> data = make_planted(60, 500, 3, effect=3.0)
    >>> bool(TruncatedRayleighFlow(n_features=3).fit(data.X, data.y).support_[data.support].all())
    True
    """

    _: KW_ONLY
    tau: float = 1.0
    tol: float = 1e-9
    max_iter: int = 1000

    def _fit_plane(self, A: Array, B: Array) -> PlaneFit:
        k = min(self.n_features or 10, A.shape[1])
        steep = ridge_slope(A, B, self.tau, flat_plane(A.shape[1]), 1.0 + self.tau)
        starts = [heaviest(z, k) for z in (steep, ridge_plane(A, B, self.tau).z)]
        return lowest((self._flow(A, B, k, kept) for kept in starts), margin=1e-9)

    def _flow(self, A: Array, B: Array, k: int, start: IntArray) -> PlaneFit:
        """Follow the truncated flow from some features until a step no longer changes them.

        At the leading eigenvector on some features the slope is zero on them: a step, halved until
        the quotient rises, can only change which are kept.
        """
        tau, plane = self.tau, ridge_plane(A, B, self.tau, start)
        slope = ridge_slope(A, B, tau, plane.z, plane.objective)
        history = [plane.objective]
        eta, converged = 1.0 / tau, False
        while not converged and len(history) <= self.max_iter:
            kept = heaviest(plane.z + eta * slope, k)
            converged = np.array_equal(kept, np.flatnonzero(plane.z[:-1]))
            trial = plane if converged else ridge_plane(A, B, tau, kept)
            if trial.objective < (1.0 - self.tol) * plane.objective:
                plane = trial
                slope = ridge_slope(A, B, tau, plane.z, plane.objective)
                history.append(plane.objective)
                eta = min(4.0 * eta, 1.0 / tau)
            else:
                eta *= 0.5
        return PlaneFit(plane.z, history, np.abs(slope[:-1]), len(history), converged)

    def _refit_plane(self, A: Array, B: Array) -> PlaneFit:
        return ridge_plane(A, B, self.tau)
