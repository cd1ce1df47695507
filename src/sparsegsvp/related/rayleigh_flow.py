"""Planes with a given number of features, by a truncated flow on the quotient."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np

from .._typing import Float64Array as Array
from .._typing import IntArray
from .._validate import check_integer, check_real
from .base import PlaneFit, PlanePairClassifier, eigenpair, lowest, moment_factor
from .gepsvm import ridge_plane, ridge_planes


@dataclass(frozen=True)
class RayleighQuotient:
    """The quotient ``rho(z) = z'Hz / z'(G + tau I)z`` that the flow raises, G = A'A, H = B'B."""

    A: Array
    B: Array
    tau: float

    def _images(self, z: Array) -> tuple[Array, Array, float]:
        used = np.flatnonzero(z)
        pa, pb = self.A[:, used] @ z[used], self.B[:, used] @ z[used]
        return pa, pb, float(pb @ pb / (pa @ pa + self.tau * (z @ z)))

    def value(self, z: Array) -> float:
        """Return rho(z)."""
        return self._images(z)[2]

    def slope(self, z: Array) -> Array:
        """Return ``(H - rho (G + tau I)) z / rho``, so that ``C z = z + eta slope``."""
        pa, pb, rho = self._images(z)
        return (pb / rho) @ self.B - pa @ self.A - self.tau * z

    def best_on(self, used: IntArray) -> Array:
        """Return the unit vector with entries in ``used`` alone for which rho is largest."""
        A, B = self.A[:, used], self.B[:, used]
        _, u = eigenpair(B.T @ B, A.T @ A + self.tau * np.eye(len(used)), -1)
        z = np.zeros(self.A.shape[1])
        z[used] = u / np.linalg.norm(u)
        return z


def truncated_support(z: Array, k: int) -> IntArray:
    """Return the entries of the k heaviest weights and the bias, without those that are zero."""
    kept = np.append(np.argsort(-np.abs(z[:-1]), kind="stable")[:k], len(z) - 1)
    return np.sort(kept[z[kept] != 0])


def flow(
    quotient: RayleighQuotient, k: int, start: IntArray, tol: float, max_iter: int
) -> PlaneFit:
    """Follow the truncated flow from a support until a step no longer changes it.

    On a fixed support the flow tends to the leading eigenvector there, so z goes to it at once.
    The slope of that point is zero on the support: what a step can change is which features are
    kept, fewer of them the shorter it is. It is halved until the quotient rises; when it leaves
    the support as it is, so does every shorter one, and the flow has ended.
    """
    z = quotient.best_on(start)
    rho, slope = quotient.value(z), quotient.slope(z)
    history = [1.0 / rho]
    eta = longest = 1.0 / quotient.tau
    converged = False
    while len(history) <= max_iter:
        kept = truncated_support(z + eta * slope, k)
        converged = np.array_equal(kept, np.flatnonzero(z))
        if converged:
            break
        trial = quotient.best_on(kept)
        reached = quotient.value(trial)
        if reached > (1.0 + tol) * rho:
            z, rho, slope = trial, reached, quotient.slope(trial)
            history.append(1.0 / rho)
            eta = min(4.0 * eta, longest)
        else:
            eta *= 0.5
    return PlaneFit(z, history, np.abs(slope[:-1]), len(history), converged)


@dataclass(eq=False, repr=False)
class TruncatedRayleighFlow(PlanePairClassifier):
    r"""Planes with at most k features each, by the truncated Rayleigh flow ("Rifle").

    With G, H and :math:`z = [w; b]` as in `GEPSVM`, the first plane is

    .. math:: \max_z \rho(z) = \frac{z^T H z}{z^T (G + \tau I) z}
              \quad \text{with} \quad \|w\|_0 \le k ,

    and for the second the classes change roles. A step of the flow is
    :math:`z \leftarrow z + (\eta / \rho) (H - \rho (G + \tau I)) z`, cut to the k heaviest
    weights and normalised. The bias is never cut.

    Unlike in the publication the step :math:`\eta` is not fixed but halved until the quotient
    rises, and on a support that stays z goes to the limit of the flow, an eigenvector of size
    k + 1. The flow finds a local maximum: it is started from the k heaviest weights of the plane
    without the limit and from the k steepest at w = 0, and the better end is kept.

    Parameters
    ----------
    n_nonzero : int or None, default=None
        k, the number of features of each plane. None stands for ``n_features`` if that is given
        and for 10 otherwise, or for all features if there are fewer.
    tau : float, default=1.0
        Ridge, > 0.
    %(sparse_panel)s
    %(standardize)s
    tol : float, default=1e-9
        A step must raise the quotient by more than this, relatively.
    max_iter : int, default=1000

    Attributes
    ----------
    %(planes)s
    objective_ : ndarray of shape (2,)
        :math:`1 / \rho` at the end of each flow, the smaller the better.
    %(iterations)s
    %(panel)s

    References
    ----------
    K. M. Tan, Z. Wang, H. Liu and T. Zhang, "Sparse generalized eigenvalue problem: optimal
    statistical rates via truncated Rayleigh flow", JRSS B (2018), arXiv:1604.08697.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsegsvp.datasets import make_planted
    >>> from sparsegsvp.related import TruncatedRayleighFlow
    >>> data = make_planted(60, 500, 3, effect=3.0)
    >>> model = TruncatedRayleighFlow(n_features=3).fit(data.X, data.y)
    >>> np.array_equal(model.get_support(indices=True), data.support)
    True
    """

    n_nonzero: int | None = None
    _: KW_ONLY
    tau: float = 1.0
    tol: float = 1e-9
    max_iter: int = 1000

    def _check_parameters(self) -> None:
        if self.n_nonzero is not None:
            check_integer("n_nonzero", self.n_nonzero, least=1)
        check_real("tau", self.tau, above=0)

    def _fit_plane(self, A: Array, B: Array) -> PlaneFit:
        k = min(self.n_nonzero or self.n_features or 10, A.shape[1])
        quotient = RayleighQuotient(moment_factor(A), moment_factor(B), self.tau)
        dense = ridge_plane(A, B, self.tau).z
        flat = np.zeros(len(dense))
        flat[-1] = 1.0
        starts = (truncated_support(z, k) for z in (flat + quotient.slope(flat), dense))
        ends = (flow(quotient, k, start, self.tol, self.max_iter) for start in starts)
        return lowest(ends, margin=1e-9)

    def _refit_planes(self, A: Array, B: Array) -> tuple[PlaneFit, PlaneFit]:
        return ridge_planes(A, B, self.tau)
