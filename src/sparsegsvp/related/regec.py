"""Both planes from one generalised eigenvalue problem, and sparse planes from its matrices."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np
from scipy import linalg
from scipy.sparse.linalg import LinearOperator, eigsh

from .._validate import check_real
from .base import (
    Array,
    PlaneFit,
    PlanePairClassifier,
    eigenpair,
    flat_plane,
    lowest,
    moment_factor,
    row_space,
    second_moment,
    shorten,
)
from .lasso import lasso


def cross_shift_planes(A: Array, B: Array, d1: float, d2: float) -> tuple[PlaneFit, PlaneFit]:
    """Return the extreme eigenvectors of ``(G + d1 H) z = mu (H + d2 G) z``, of smallest ``||z||``.

    With the stacked blocks ``M = U S V'`` (G + H = M'M) and ``z = V S^-1 y`` the quotient is
    ``(c + d1 (1 - c)) / ((1 - c) + d2 c)``, c = ||U_A y||^2 / ||y||^2, which rises with c.
    """
    blocks, basis = row_space([A, B])
    stacked = np.vstack([block / np.sqrt(len(block)) for block in blocks])
    U, s, Vt = linalg.svd(stacked, full_matrices=False, check_finite=False)
    rank = int((s > s[0] * max(stacked.shape) * np.finfo(float).eps).sum())
    U, s, Vt = U[:, :rank], s[:rank], Vt[:rank]
    share, Y = linalg.eigh(U[: len(A)].T @ U[: len(A)], check_finite=False)

    def plane(extreme: float, power: int) -> PlaneFit:
        scaled = Y[:, np.abs(share - extreme) <= 1e-10] / s[:, None]
        t = linalg.eigh(scaled.T @ scaled, check_finite=False)[1][:, 0]
        c = float(np.clip(extreme, 0.0, 1.0))
        mu = (c + d1 * (1 - c)) / ((1 - c) + d2 * c)
        return PlaneFit(basis @ (Vt.T @ (scaled @ t)), [mu**power])

    return plane(share[0], 1), plane(share[-1], -1)


def diagonal_shift_plane(A: Array, B: Array, d1: float, d2: float) -> PlaneFit:
    """Minimise ``z'(G + d1 diag H)z / z'(H + d2 diag G)z``, by Lanczos on the inverted pair.

    The two diagonals differ, so the row space does not hold the optimum.
    """
    Ae, Be = shorten(moment_factor(A)), shorten(moment_factor(B))
    top, bottom = d1 * np.square(Be).sum(axis=0), d2 * np.square(Ae).sum(axis=0)
    # A feature that is zero throughout one class has no shift of its own there.
    top = np.maximum(top, 1e-12 * top.max())
    scaled = Ae / top
    factor = linalg.cho_factor(np.eye(len(Ae)) + Ae @ scaled.T, check_finite=False)

    def operator(product: Callable[[Array], Array]) -> LinearOperator:
        return LinearOperator((len(top),) * 2, lambda v: product(v.ravel()), dtype=np.float64)

    theta, Z = eigsh(
        operator(lambda v: Be.T @ (Be @ v) + bottom * v),
        k=1,
        M=operator(lambda v: Ae.T @ (Ae @ v) + top * v),
        Minv=operator(lambda v: v / top - scaled.T @ linalg.cho_solve(factor, scaled @ v)),
        which="LA",
        v0=Be.sum(axis=0),
        tol=0,
    )
    return PlaneFit(Z[:, 0], [float(1.0 / theta[0])])


@dataclass(eq=False, repr=False)
class ReGEC(PlanePairClassifier):
    r"""Regularised generalised eigenvalue classifier.

    With G and H as in `GEPSVM`, the planes are the eigenvectors of the smallest and the largest
    :math:`\mu` (``objective_`` has its inverse) of

    .. math:: (G + \delta_1 \operatorname{diag} H) z = \mu (H + \delta_2 \operatorname{diag} G) z
              \qquad \text{or} \qquad (G + \delta_1 H) z = \mu (H + \delta_2 G) z .

    The first, diagonal shift is the original's, with G and H in the place of kernel blocks. The
    cross shift, of later papers, changes the eigenvalues and not the eigenvectors, so its planes do
    not depend on ``delta``; of many that attain an extreme the one of smallest norm is taken.

    Parameters
    ----------
    delta : float or pair of float, default=0.1
        :math:`\delta_1, \delta_2 > 0`, with a product below 1 for the cross shift.
    shift : {"diagonal", "cross"}, default="diagonal"
    %(planes)s

    References
    ----------
    M. R. Guarracino, C. Cifarelli, O. Seref and P. M. Pardalos, "A classification method based
    on generalized eigenvalue problems", Optimization Methods and Software (2007).

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sparsegsvp.related import ReGEC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> ReGEC(n_features=5).fit(X, y).score(X, y) > 0.8
    True
    """

    delta: float | tuple[float, float] = 0.1
    _: KW_ONLY
    shift: str = "diagonal"
    _rules: ClassVar = {"shift": ("diagonal", "cross")}

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if np.shape(self.delta) not in ((), (2,)):
            raise ValueError(f"delta must be a number or a pair of numbers, got {self.delta!r}")
        d1, d2 = np.broadcast_to(self.delta, 2).tolist()
        for delta in (d1, d2):
            check_real("delta", delta, above=0)
        if self.shift == "cross" and d1 * d2 >= 1:
            what = "with shift='cross' the product of the two deltas must be below 1"
            raise ValueError(f"{what}, got {d1 * d2:g}")

    def _fit_planes(self, A: Array, B: Array, refit: bool = False) -> tuple[PlaneFit, PlaneFit]:
        d1, d2 = np.broadcast_to(self.delta, 2).tolist()
        if self.shift == "cross":
            return cross_shift_planes(A, B, d1, d2)
        return diagonal_shift_plane(A, B, d1, d2), diagonal_shift_plane(B, A, d2, d1)


@dataclass(eq=False, repr=False)
class L1ReGEC(PlanePairClassifier):
    r"""ReGEC with an l1 term: sparse planes. A reconstruction.

    With G, H and :math:`z = [w; b]` as in `GEPSVM`, the first plane is

    .. math:: \min_z\ z^T (G + \delta H + \rho I) z + \lambda \|w\|_1
              \quad \text{on} \quad z^T (H + \delta G + \rho I) z = 1

    and for the second the two matrices change places. The original, whose text was not at hand, is
    described as ReGEC's problem with an l1 regularisation. Chosen here: the constraint; a bias free
    of the l1 term; the ridge, which keeps the problem bounded; a lasso on the constraint's tangent
    as the step; the unit of :math:`\lambda`, at which w = 0 could not be improved; and the lower
    end of two starts, w = 0 and the plane without the l1 term.

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
    _rules: ClassVar = {"l1": {"above": 0, "most": 1}, "delta": {"least": 0, "below": 1}}

    def _fit_plane(self, A: Array, B: Array) -> PlaneFit:
        Ae, Be = moment_factor(A), moment_factor(B)
        N = np.vstack([Ae, self.delta**0.5 * Be])  # the factors of the two matrices
        D = np.vstack([self.delta**0.5 * Ae, Be])
        flat = flat_plane(A.shape[1]) / np.sqrt(1.0 + self.delta + self.ridge)
        slope, g = self._product(N, flat), self._product(D, flat)
        l1 = self.l1 * 2.0 * float(np.abs(slope - slope[-1] / g[-1] * g)[:-1].max())
        dense = self._refit_plane(A, B).z
        return lowest((self._descend(N, D, l1, z) for z in (flat, dense)), margin=10.0 * self.tol)

    def _product(self, F: Array, z: Array) -> Array:
        """``(F'F + ridge I) z``."""
        return (F @ z) @ F + self.ridge * z

    def _descend(self, N: Array, D: Array, l1: float, z: Array) -> PlaneFit:
        """Minimise ``z'N'Nz + l1 ||w||_1`` on ``z'D'Dz = 1``, ridges aside, by lassos on tangents.

        By Cauchy and Schwarz ``z'D'Dz >= 1`` there: scaling back onto the set lowers both terms.
        """

        def value(z: Array) -> float:
            return float(z @ self._product(N, z) + l1 * np.abs(z[:-1]).sum())

        z = z / np.sqrt(z @ self._product(D, z))
        history, gradient, zeros = [value(z)], np.zeros(len(z)), np.zeros(len(z))
        converged, solved = False, True
        while solved and not converged and len(history) <= self.max_iter:
            g = self._product(D, z)
            if np.count_nonzero(z) > 0.1 * len(z):  # start the lasso at a sparse point instead
                heaviest = np.abs(g).argmax()
                z = zeros.copy()
                z[heaviest] = 1.0 / g[heaviest]
            z, gradient, solved = lasso(N, self.ridge, zeros, l1, z, equality=g)
            z = z / np.sqrt(z @ self._product(D, z))
            history.append(value(z))
            converged = solved and history[-2] - history[-1] <= self.tol * history[-1]
        return PlaneFit(z, history, np.abs(gradient[:-1]), len(history) - 1, converged)

    def _refit_plane(self, A: Array, B: Array) -> PlaneFit:
        """The plane without the l1 term, in the row space; outside the quotient is 1 or more."""
        blocks, basis = row_space([A, B])
        G, H = map(second_moment, blocks)
        shift = self.ridge * np.eye(len(G))
        mu, u = eigenpair(G + self.delta * H + shift, H + self.delta * G + shift, 0)
        return PlaneFit(basis @ u, [mu])
