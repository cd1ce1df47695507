"""Sparse planes from ReGEC's pair of matrices."""

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np

from .base import (
    Array,
    PlaneFit,
    PlanePairClassifier,
    RowSpace,
    eigenpair,
    lowest,
    moment_factor,
    second_moment,
)
from .lasso import lasso


class ShiftedPair:
    """``N = F'F + ridge I`` (G + delta H) and ``D = E'E + ridge I`` (H + delta G), as products."""

    def __init__(self, A: Array, B: Array, delta: float, ridge: float) -> None:
        Ae, Be, self.ridge = moment_factor(A), moment_factor(B), ridge
        self.F = np.vstack([Ae, delta**0.5 * Be])
        self.E = np.vstack([delta**0.5 * Ae, Be])

    def numerator(self, z: Array) -> Array:
        """``N z``."""
        return (self.F @ z) @ self.F + self.ridge * z

    def denominator(self, z: Array) -> Array:
        """``D z``."""
        return (self.E @ z) @ self.E + self.ridge * z

    def scaled(self, z: Array) -> Array:
        """z with ``z'Dz = 1``."""
        return z / np.sqrt(z @ self.denominator(z))

    def largest_l1(self, flat: Array) -> float:
        """Return the l1 weight from which on w = 0, the plane `flat`, is best."""
        g, slope = self.denominator(flat), self.numerator(flat)
        return 2.0 * float(np.abs(slope - slope[-1] / g[-1] * g)[:-1].max())

    def sparse_plane(self, l1: float, z: Array, tol: float, max_iter: int) -> PlaneFit:
        """Minimise ``z'Nz + l1 ||w||_1`` on ``z'Dz = 1`` by convex steps, from a z on the set.

        Each step replaces the constraint by its tangent ``(D z_t)'z = 1`` and solves the lasso
        that is left. By the inequality of Cauchy and Schwarz the solution has ``z'Dz >= 1``, so
        scaling it back onto the set lowers both terms: the objective never rises.
        """
        history = [float(z @ self.numerator(z) + l1 * np.abs(z[:-1]).sum())]
        gradient, zeros = np.zeros(len(z)), np.zeros(len(z))
        converged, solved = False, True
        while solved and not converged and len(history) <= max_iter:
            g = self.denominator(z)
            if np.count_nonzero(z) > 0.1 * len(z):  # start the lasso at a sparse point instead
                heaviest = np.abs(g).argmax()
                z = zeros.copy()
                z[heaviest] = 1.0 / g[heaviest]
            z, gradient, solved = lasso(self.F, self.ridge, zeros, l1, z, equality=g)
            z = self.scaled(z)
            history.append(float(z @ self.numerator(z) + l1 * np.abs(z[:-1]).sum()))
            converged = solved and history[-2] - history[-1] <= tol * history[-1]
        return PlaneFit(z, history, np.abs(gradient[:-1]), len(history) - 1, converged)


@dataclass(eq=False, repr=False)
class L1ReGEC(PlanePairClassifier):
    r"""ReGEC with an l1 term: sparse planes. A reconstruction.

    With G, H and :math:`z = [w; b]` as in `GEPSVM`, the first plane is

    .. math:: \min_z\ z^T (G + \delta H + \rho I) z + \lambda \|w\|_1
              \quad \text{on} \quad z^T (H + \delta G + \rho I) z = 1

    and for the second the two matrices change places. The original's text was not at hand; it is
    described as ReGEC's eigenvalue problem with an l1 regularisation. Chosen here: the constraint;
    a bias free of the l1 term; the ridge :math:`\rho`, without which more features than samples
    leave the problem unbounded; steps that put the tangent in the constraint's place, solve the
    lasso that is left and scale back, which never raises the objective; the unit of
    :math:`\lambda`, the weight at which w = 0 could not be improved; and of two starts, w = 0 and
    the plane without the l1 term, the lower end.

    Parameters
    ----------
    l1 : float, default=0.2
        :math:`\lambda` in the unit above, in (0, 1]. Larger is sparser.
    delta, ridge : float, default=0.1
        Shift, in [0, 1), and :math:`\rho > 0`.
    %(steps)s
    %(planes)s

    References
    ----------
    M. Viola, M. Sangiovanni, G. Toraldo and M. R. Guarracino, "A generalized eigenvalues
    classifier with embedded feature selection", Optimization Letters (2015).

    Examples
    --------
    >>> from sparsegsvp.datasets import make_planted
    >>> from sparsegsvp.related import L1ReGEC
    >>> data = make_planted(60, 500, 3, effect=3.0)
    >>> bool((L1ReGEC().fit(data.X, data.y).get_support(indices=True) == data.support).all())
    True
    """

    l1: float = 0.2
    _: KW_ONLY
    delta: float = 0.1
    ridge: float = 0.1
    tol: float = 1e-6
    max_iter: int = 200
    _bounds: ClassVar = {
        "l1": {"above": 0, "most": 1},
        "delta": {"least": 0, "below": 1},
        "ridge": {"above": 0},
    }

    def _fit_plane(self, A: Array, B: Array) -> PlaneFit:
        pair = ShiftedPair(A, B, self.delta, self.ridge)
        flat = pair.scaled(np.append(np.zeros(A.shape[1]), 1.0))
        starts = flat, pair.scaled(self._dense_plane(A, B).z)
        l1 = self.l1 * pair.largest_l1(flat)
        ends = (pair.sparse_plane(l1, start, self.tol, self.max_iter) for start in starts)
        return lowest(ends, margin=10.0 * self.tol)

    def _dense_plane(self, A: Array, B: Array) -> PlaneFit:
        """The plane without the l1 term, in the row space; outside the quotient is 1 or more."""
        space = RowSpace.of([A, B])
        G, H = (second_moment(block) for block in space.blocks)
        shift = self.ridge * np.eye(len(G))
        mu, u = eigenpair(G + self.delta * H + shift, H + self.delta * G + shift, 0)
        return PlaneFit(space.lift(u), [mu])

    def _refit_planes(self, A: Array, B: Array) -> tuple[PlaneFit, PlaneFit]:
        return self._dense_plane(A, B), self._dense_plane(B, A)
