"""Sparse planes from ReGEC's pair of matrices."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np

from .._typing import Float64Array as Array
from .base import (
    PlaneFit,
    PlanePairClassifier,
    RowSpace,
    check_pair,
    eigenpair,
    lowest,
    moment_factor,
    second_moment,
)
from .lasso import lasso


def dense_plane(A: Array, B: Array, d1: float, d2: float, ridge: float) -> PlaneFit:
    """Minimise ``z'Nz / z'Dz`` without the l1 term, exactly, in the row space.

    Outside the row space the quotient is 1, which the bias alone already attains or beats
    unless d1 > d2; the smallest eigenvalue inside is below that.
    """
    space = RowSpace.of([A, B])
    G, H = (second_moment(block) for block in space.blocks)
    shift = ridge * np.eye(len(G))
    mu, u = eigenpair(G + d1 * H + shift, H + d2 * G + shift, 0)
    return PlaneFit(space.lift(u), [mu])


@dataclass(frozen=True)
class ShiftedPair:
    """``N = F'F + ridge I`` (G + d1 H) and ``D = E'E + ridge I`` (H + d2 G), as products."""

    F: Array
    E: Array
    ridge: float

    @classmethod
    def of(cls, A: Array, B: Array, d1: float, d2: float, ridge: float) -> ShiftedPair:
        """Make it from class blocks without their bias columns."""
        Ae, Be = moment_factor(A), moment_factor(B)
        first, second = np.vstack([Ae, d1**0.5 * Be]), np.vstack([d2**0.5 * Ae, Be])
        return cls(first, second, ridge)

    def numerator(self, z: Array) -> Array:
        """``N z``."""
        return (self.F @ z) @ self.F + self.ridge * z

    def denominator(self, z: Array) -> Array:
        """``D z``."""
        return (self.E @ z) @ self.E + self.ridge * z

    def flat_plane(self) -> tuple[Array, float]:
        """Return the plane w = 0 on the set, and the l1 weight from which on it is best."""
        z = np.append(np.zeros(self.F.shape[1] - 1), 1.0)
        z /= np.sqrt(self.denominator(z)[-1])
        g, slope = self.denominator(z), self.numerator(z)
        return z, 2.0 * float(np.abs(slope - slope[-1] / g[-1] * g)[:-1].max())

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
            z /= np.sqrt(z @ self.denominator(z))
            history.append(float(z @ self.numerator(z) + l1 * np.abs(z[:-1]).sum()))
            converged = solved and history[-2] - history[-1] <= tol * history[-1]
        return PlaneFit(z, history, np.abs(gradient[:-1]), len(history) - 1, converged)


@dataclass(eq=False, repr=False)
class L1ReGEC(PlanePairClassifier):
    r"""ReGEC with an l1 term: sparse planes. A reconstruction.

    With G, H and :math:`z = [w; b]` as in `GEPSVM`, the first plane is

    .. math::

        \min_z\ z^T (G + \delta_1 H + \rho I) z + \lambda \|w\|_1
        \quad \text{on} \quad z^T (H + \delta_2 G + \rho I) z = 1

    and for the second the two matrices change places. The original's text was not at hand; it is
    described as ReGEC's eigenvalue problem with an l1 regularisation. Chosen here: the constraint
    as written; a bias free of the l1 term; the ridge :math:`\rho`, without which more features than
    samples leave the problem unbounded; steps that put the tangent in the constraint's place, solve
    the lasso that is left and scale back, which never raises the objective; the unit of
    :math:`\lambda`, the weight at which w = 0 could not be improved; and of two starts, w = 0 and
    the plane without the l1 term, the lower end.

    Parameters
    ----------
    l1 : float, default=0.2
        :math:`\lambda` in the unit above, in (0, 1]. Larger is sparser.
    delta : float or pair of float, default=0.1
        :math:`\delta_1, \delta_2 \ge 0`, product below 1; one number stands for both.
    ridge : float, default=0.1
        :math:`\rho > 0`.
    %(panel_size)s
    %(standardize)s
    %(tol)s
    max_iter : int, default=200

    Attributes
    ----------
    %(planes)s
    objective_ : ndarray of shape (2,)
        The minimised objectives; with ``n_features``, those of the fit that chose the panel.
    %(iterations)s
    %(panel)s

    References
    ----------
    M. Viola, M. Sangiovanni, G. Toraldo and M. R. Guarracino, "A generalized eigenvalues
    classifier with embedded feature selection", Optimization Letters (2015).

    Examples
    --------
    >>> import numpy as np
    >>> from sparsegsvp.datasets import make_planted
    >>> from sparsegsvp.related import L1ReGEC
    >>> data = make_planted(60, 500, 3, effect=3.0)
    >>> model = L1ReGEC().fit(data.X, data.y)
    >>> np.array_equal(model.get_support(indices=True), data.support)
    True
    """

    l1: float = 0.2
    _: KW_ONLY
    delta: float | tuple[float, float] = 0.1
    ridge: float = 0.1
    tol: float = 1e-6
    max_iter: int = 200
    _bounds: ClassVar = {"l1": {"above": 0, "most": 1}, "ridge": {"above": 0}}

    def _check_parameters(self) -> None:
        d1, d2 = check_pair("delta", self.delta, least=0)
        if d1 * d2 >= 1:
            raise ValueError(f"the product of the two deltas must be below 1, got {d1 * d2:g}.")

    def _fit_planes(self, A: Array, B: Array) -> tuple[PlaneFit, PlaneFit]:
        d1, d2 = check_pair("delta", self.delta)
        return self._fit_shifted(A, B, d1, d2), self._fit_shifted(B, A, d2, d1)

    def _fit_shifted(self, A: Array, B: Array, d1: float, d2: float) -> PlaneFit:
        pair = ShiftedPair.of(A, B, d1, d2, self.ridge)
        flat, largest = pair.flat_plane()
        dense = dense_plane(A, B, d1, d2, self.ridge).z
        dense = dense / np.sqrt(dense @ pair.denominator(dense))
        ends = (
            pair.sparse_plane(self.l1 * largest, start, self.tol, self.max_iter)
            for start in (flat, dense)
        )
        return lowest(ends, margin=10.0 * self.tol)

    def _refit_planes(self, A: Array, B: Array) -> tuple[PlaneFit, PlaneFit]:
        d1, d2 = check_pair("delta", self.delta)
        return dense_plane(A, B, d1, d2, self.ridge), dense_plane(B, A, d2, d1, self.ridge)
