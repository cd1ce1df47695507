"""Both planes from one generalised eigenvalue problem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy import linalg
from scipy.sparse.linalg import LinearOperator, eigsh

from .._typing import Float64Array as Array
from .._validate import check_choice
from .base import PlaneFit, PlanePairClassifier, RowSpace, check_pair, moment_factor, shorten


def cross_shift_planes(A: Array, B: Array, d1: float, d2: float) -> tuple[PlaneFit, PlaneFit]:
    """Return the extreme eigenvectors of ``(G + d1 H) z = mu (H + d2 G) z`` in the row space.

    With the stacked, class-weighted blocks ``M = U S V'`` (G + H = M'M) and ``z = V S^-1 y``
    the quotient becomes ``(c + d1 (1 - c)) / ((1 - c) + d2 c)``, c = ||U_A y||^2 / ||y||^2: the
    shift changes eigenvalues, not eigenvectors, and with d1 d2 < 1 not their order. With more
    features than samples a whole eigenspace attains each extreme; in it the plane of smallest
    ``||z||`` is taken, which is where a vanishing ridge would lead.
    """
    space = RowSpace.of([A, B])
    stacked = np.vstack([block / np.sqrt(len(block)) for block in space.blocks])
    U, s, Vt = linalg.svd(stacked, full_matrices=False, check_finite=False)
    rank = int((s > s[0] * max(stacked.shape) * np.finfo(float).eps).sum())
    U, s, Vt = U[:, :rank], s[:rank], Vt[:rank]
    share, Y = linalg.eigh(U[: len(A)].T @ U[: len(A)], check_finite=False)

    def plane(extreme: float) -> PlaneFit:
        same = np.abs(share - extreme) <= 1e-10
        scaled = Y[:, same] / s[:, None]
        _, t = linalg.eigh(scaled.T @ scaled, check_finite=False)
        z = space.lift(Vt.T @ (scaled @ t[:, 0]))
        c = float(np.clip(extreme, 0.0, 1.0))
        return PlaneFit(z, [(c + d1 * (1 - c)) / ((1 - c) + d2 * c)])

    return plane(share[0]), plane(share[-1])


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
    size = len(top)
    scaled = Ae / top
    core = Ae @ scaled.T
    core.flat[:: len(core) + 1] += 1.0
    factor = linalg.cho_factor(core, overwrite_a=True, check_finite=False)

    def operator(product: Callable[[Array], Array]) -> LinearOperator:
        return LinearOperator((size, size), lambda v: product(v.ravel()), dtype=np.float64)

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

    One eigenvalue problem gives both planes. With G and H as in `GEPSVM`, they are the eigenvectors
    of the smallest and the largest :math:`\mu` of

    .. math::

        (G + \delta_1 H) z &= \mu (H + \delta_2 G) z && \text{shift="cross"} \\
        (G + \delta_1 \operatorname{diag} H) z &= \mu (H + \delta_2 \operatorname{diag} G) z
            && \text{shift="diagonal"}

    The diagonal shift is the original's, with G and H in the place of kernel blocks. The cross
    shift is how later papers write the method. It changes the eigenvalues and not the eigenvectors,
    so its planes do not depend on ``delta``; a common null space of G and H is removed by going to
    the row space, and where more features than samples leave a choice, the plane of smallest norm
    is taken.

    Parameters
    ----------
    delta : float or pair of float, default=0.1
        :math:`\delta_1, \delta_2 > 0`, with a product below 1 for the cross shift; one number
        stands for both.
    shift : {"diagonal", "cross"}, default="diagonal"
    %(panel_size)s
    %(standardize)s

    Attributes
    ----------
    %(planes)s
    objective_ : ndarray of shape (2,)
        The smallest :math:`\mu`, and the inverse of the largest, on all features.
    %(panel)s

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
        d1, d2 = check_pair("delta", self.delta, above=0)
        check_choice("shift", self.shift, ("diagonal", "cross"))
        if self.shift == "cross" and d1 * d2 >= 1:
            raise ValueError(
                "with shift='cross' the product of the two deltas must be below 1, as the planes "
                f"change places there, got {d1 * d2:g}."
            )

    def _fit_planes(self, A: Array, B: Array) -> tuple[PlaneFit, PlaneFit]:
        d1, d2 = check_pair("delta", self.delta)
        if self.shift == "cross":
            first, second = cross_shift_planes(A, B, d1, d2)
            return first, PlaneFit(second.z, [1.0 / second.objective])
        return diagonal_shift_plane(A, B, d1, d2), diagonal_shift_plane(B, A, d2, d1)
