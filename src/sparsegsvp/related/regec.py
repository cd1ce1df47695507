"""Both planes from one generalised eigenvalue problem."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy import linalg
from scipy.sparse.linalg import LinearOperator, eigsh

from .._validate import check_choice, check_real
from .base import Array, PlaneFit, PlanePairClassifier, RowSpace, moment_factor, shorten


def check_pair(name: str, value: float | tuple[float, float]) -> tuple[float, float]:
    """Return a positive number twice, or a pair of them."""
    pair = tuple(value) if isinstance(value, (tuple, list)) else (value, value)
    if len(pair) != 2:
        raise ValueError(f"{name} must be a number or a pair of numbers, got {value!r}")
    return check_real(name, pair[0], above=0), check_real(name, pair[1], above=0)


def cross_shift_planes(A: Array, B: Array, d1: float, d2: float) -> tuple[PlaneFit, PlaneFit]:
    """Return the extreme eigenvectors of ``(G + d1 H) z = mu (H + d2 G) z`` in the row space.

    With the stacked, class-weighted blocks ``M = U S V'`` (G + H = M'M) and ``z = V S^-1 y``
    the quotient becomes ``(c + d1 (1 - c)) / ((1 - c) + d2 c)``, c = ||U_A y||^2 / ||y||^2: the
    shift changes eigenvalues, not eigenvectors, and with d1 d2 < 1 not their order. Of an
    eigenspace the plane of smallest ``||z||`` is taken, where a vanishing ridge would lead.
    """
    space = RowSpace.of([A, B])
    stacked = np.vstack([block / np.sqrt(len(block)) for block in space.blocks])
    U, s, Vt = linalg.svd(stacked, full_matrices=False, check_finite=False)
    rank = int((s > s[0] * max(stacked.shape) * np.finfo(float).eps).sum())
    U, s, Vt = U[:, :rank], s[:rank], Vt[:rank]
    share, Y = linalg.eigh(U[: len(A)].T @ U[: len(A)], check_finite=False)

    def plane(extreme: float, power: int) -> PlaneFit:
        scaled = Y[:, np.abs(share - extreme) <= 1e-10] / s[:, None]
        t = linalg.eigh(scaled.T @ scaled, check_finite=False)[1][:, 0]
        c = float(np.clip(extreme, 0.0, 1.0))
        mu = (c + d1 * (1 - c)) / ((1 - c) + d2 * c)
        return PlaneFit(space.lift(Vt.T @ (scaled @ t)), [mu**power])

    return plane(share[0], 1), plane(share[-1], -1)


def diagonal_shift_plane(A: Array, B: Array, d1: float, d2: float) -> PlaneFit:
    """Minimise ``z'(G + d1 diag H)z / z'(H + d2 diag G)z``.

    The two diagonals differ, so the row space does not hold the optimum. Lanczos iteration runs on
    the inverted pair, the numerator's inverse by the identity of Woodbury: products with the
    blocks and one n_A x n_A factorisation, to machine precision.
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

    .. math::

        (G + \delta_1 H) z &= \mu (H + \delta_2 G) z && \text{shift="cross"} \\
        (G + \delta_1 \operatorname{diag} H) z &= \mu (H + \delta_2 \operatorname{diag} G) z
            && \text{shift="diagonal"}

    The diagonal shift is the original's, with G and H in the place of kernel blocks. The cross
    shift is how later papers write the method. It changes the eigenvalues and not the eigenvectors,
    so its planes do not depend on ``delta``; a common null space of G and H is removed by going to
    the row space, and of many planes that attain an extreme the one of smallest norm is taken.

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
    shift: str = field(default="diagonal", kw_only=True)

    def _check_parameters(self) -> None:
        d1, d2 = check_pair("delta", self.delta)
        check_choice("shift", self.shift, ("diagonal", "cross"))
        if self.shift == "cross" and d1 * d2 >= 1:
            raise ValueError(
                "with shift='cross' the product of the two deltas must be below 1, as the planes "
                f"change places there, got {d1 * d2:g}."
            )

    def _fit_planes(self, A: Array, B: Array) -> tuple[PlaneFit, PlaneFit]:
        d1, d2 = check_pair("delta", self.delta)
        if self.shift == "cross":
            return cross_shift_planes(A, B, d1, d2)
        return diagonal_shift_plane(A, B, d1, d2), diagonal_shift_plane(B, A, d2, d1)
