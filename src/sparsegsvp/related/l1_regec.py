"""Sparse planes from ReGEC's pair of matrices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._typing import Float64Array as Array
from .._validate import check_real
from .base import PlaneFit, PlanePairClassifier, check_pair, lowest
from .lasso import lasso
from .problem import RowSpace, eigenpair, moment_factor, second_moment, with_bias


@dataclass(frozen=True)
class ShiftedPair:
    """``N = G + d1 H + ridge I`` and ``D = H + d2 G + ridge I``, as products."""

    A: Array
    B: Array
    d1: float
    d2: float
    ridge: float

    @property
    def factor(self) -> Array:
        """F with ``N = F'F + ridge I``."""
        second = with_bias(self.B) * np.sqrt(self.d1 / len(self.B))
        return np.vstack([moment_factor(self.A), second])

    def numerator(self, z: Array) -> Array:
        """``N z``."""
        return self._product(z, 1.0, self.d1)

    def denominator(self, z: Array) -> Array:
        """``D z``."""
        return self._product(z, self.d2, 1.0)

    def _product(self, z: Array, a: float, b: float) -> Array:
        """``(a G + b H + ridge I) z``."""
        w, bias = z[:-1], z[-1]
        pa = (self.A @ w + bias) * (a / len(self.A))
        pb = (self.B @ w + bias) * (b / len(self.B))
        return np.append(pa @ self.A + pb @ self.B, pa.sum() + pb.sum()) + self.ridge * z

    def dense_plane(self) -> PlaneFit:
        """Minimise ``z'Nz / z'Dz`` without the l1 term, exactly, in the row space.

        Outside the row space the quotient is 1, which the bias alone already attains or beats
        unless d1 > d2; the smallest eigenvalue inside is below that.
        """
        space = RowSpace.of(self.A, self.B)
        G, H = second_moment(space.A), second_moment(space.B)
        shift = self.ridge * np.eye(len(G))
        mu, u = eigenpair(G + self.d1 * H + shift, H + self.d2 * G + shift, 0)
        return PlaneFit(space.lift(u), [mu])


def bias_only(pair: ShiftedPair) -> tuple[Array, float]:
    """Return the plane w = 0 and the l1 weight from which on it cannot be improved."""
    z = np.zeros(pair.A.shape[1] + 1)
    z[-1] = 1.0
    g = pair.denominator(z)
    z /= np.sqrt(g[-1])
    g /= np.sqrt(g[-1])
    slope = pair.numerator(z)
    slope = slope - slope[-1] / g[-1] * g
    return z, 2.0 * float(np.abs(slope[:-1]).max())


def sparse_plane(
    pair: ShiftedPair, F: Array, l1: float, start: Array, tol: float, max_iter: int
) -> PlaneFit:
    """Minimise ``z'Nz + l1 ||w||_1`` on ``z'Dz = 1`` by convex steps, from a start on the set.

    Each step replaces the constraint by its tangent ``(D z_t)'z = 1`` and solves the lasso that
    is left. By the inequality of Cauchy and Schwarz the solution has ``z'Dz >= 1``, so scaling
    it back onto the set lowers both terms: the objective never rises.
    """
    z = start
    g = pair.denominator(z)

    def value(z: Array) -> float:
        return float(z @ pair.numerator(z) + l1 * np.abs(z[:-1]).sum())

    history = [value(z)]
    gradient = np.zeros(len(z))
    converged = False
    while not converged and len(history) <= max_iter:
        start = sparse_feasible(z, g)
        z, gradient = lasso(F, pair.ridge, np.zeros(len(z)), l1, start, equality=g)
        g = pair.denominator(z)
        scale = np.sqrt(z @ g)
        z, g = z / scale, g / scale
        history.append(value(z))
        converged = history[-2] - history[-1] <= tol * history[-1]
    return PlaneFit(z, history, np.abs(gradient[:-1]), len(history) - 1, converged)


def sparse_feasible(z: Array, g: Array) -> Array:
    """Return a point with ``g'z = 1`` to start the (convex) lasso from: z, if it is sparse."""
    if np.count_nonzero(z) <= 0.1 * len(z):
        return z
    start = np.zeros(len(z))
    heaviest = np.abs(g).argmax()
    start[heaviest] = 1.0 / g[heaviest]
    return start


class L1ReGEC(PlanePairClassifier):
    r"""ReGEC with an l1 term: sparse planes. A reconstruction.

    With G, H and :math:`z = [w; b]` as in `GEPSVM`, the first plane is

    .. math::

        \min_z\ z^T (G + \delta_1 H + \rho I) z + \lambda \|w\|_1
        \quad \text{on} \quad z^T (H + \delta_2 G + \rho I) z = 1

    and for the second the two matrices change places. The bias is free of the l1 term.

    The original's text was not at hand; it is described as ReGEC's eigenvalue problem with an
    l1 regularisation. Chosen here: the constraint as written; the ridge :math:`\rho`, without
    which more features than samples leave the problem unbounded; the procedure, which puts the
    tangent in the constraint's place, solves the lasso that is left, scales back onto the set,
    and never raises the objective; and the unit of :math:`\lambda`, the weight at which the plane
    w = 0 could not be improved. The problem is not convex: of two starts, w = 0 and the plane
    without the l1 term, the lower end is kept.

    Parameters
    ----------
    l1 : float, default=0.2
        :math:`\lambda` in the unit above, in (0, 1]. Larger is sparser.
    delta : float or pair of float, default=0.1
        :math:`\delta_1, \delta_2 \ge 0`, product below 1; one number stands for both.
    ridge : float, default=0.1
        :math:`\rho > 0`.
    %(sparse_panel)s
    %(standardize)s
    tol : float, default=1e-6
        Stop when a step lowers the objective by less than this, relatively.
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
    >>> from sparsegsvp.related import L1ReGEC
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 500))
    >>> y = np.repeat([0, 1], 30)
    >>> X[y == 1, :3] += 3
    >>> model = L1ReGEC(l1=0.5).fit(X, y)
    >>> model.get_support(indices=True)
    array([0, 1, 2])
    """

    def __init__(
        self,
        l1: float = 0.2,
        *,
        delta: float | tuple[float, float] = 0.1,
        ridge: float = 0.1,
        n_features: int | None = None,
        standardize: bool = True,
        tol: float = 1e-6,
        max_iter: int = 200,
    ) -> None:
        self.l1 = l1
        self.delta = delta
        self.ridge = ridge
        self.n_features = n_features
        self.standardize = standardize
        self.tol = tol
        self.max_iter = max_iter

    def _check_parameters(self) -> None:
        d1, d2 = check_pair("delta", self.delta, least=0)
        if d1 * d2 >= 1:
            raise ValueError(f"the product of the two deltas must be below 1, got {d1 * d2:g}.")
        check_real("l1", self.l1, above=0, most=1)
        check_real("ridge", self.ridge, above=0)

    def _pairs(self, A: Array, B: Array) -> tuple[ShiftedPair, ShiftedPair]:
        d1, d2 = check_pair("delta", self.delta)
        return ShiftedPair(A, B, d1, d2, self.ridge), ShiftedPair(B, A, d2, d1, self.ridge)

    def _fit_planes(self, A: Array, B: Array) -> tuple[PlaneFit, PlaneFit]:
        first, second = self._pairs(A, B)
        return self._fit_pair(first), self._fit_pair(second)

    def _fit_pair(self, pair: ShiftedPair) -> PlaneFit:
        F = pair.factor
        flat, largest = bias_only(pair)
        dense = pair.dense_plane().z
        dense /= np.sqrt(dense @ pair.denominator(dense))
        ends = (
            sparse_plane(pair, F, self.l1 * largest, start, self.tol, self.max_iter)
            for start in (flat, dense)
        )
        return lowest(ends, margin=10.0 * self.tol)

    def _refit_planes(self, A: Array, B: Array) -> tuple[PlaneFit, PlaneFit]:
        first, second = self._pairs(A, B)
        return first.dense_plane(), second.dense_plane()
