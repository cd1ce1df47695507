"""The generalized singular value decomposition of a pair of dense matrices.

What it shares with the higher-order one, checked input and a basis of stacked blocks, is
below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import ArrayLike

from .._typing import Float64Array as Array
from .._validate import check_real

_EPS = float(np.finfo(np.float64).eps)
# Above this the sum of squares of even a large matrix may leave the range of float64.
_LARGEST = float(np.sqrt(np.finfo(np.float64).max) / 1e6)


class GSVDResult(NamedTuple):
    """A generalized singular value decomposition; unpacks as ``U, V, alpha, beta, X``.

    Attributes
    ----------
    U : array of shape (p, r)
        Left vectors of A. Orthonormal columns if p >= r; otherwise the first p columns are
        orthonormal and the other r - p, where alpha is 0, are zero.
    V : array of shape (q, r)
        Left vectors of B. Orthonormal columns if q >= r; otherwise the last q columns are
        orthonormal and the other r - q, where beta is 0, are zero.
    alpha : array of shape (r,)
        In [0, 1], descending.
    beta : array of shape (r,)
        In [0, 1], ascending; ``alpha**2 + beta**2 == 1`` to rounding.
    X : array of shape (m, r)
        The shared right factor, of full column rank.
    """

    U: Array
    V: Array
    alpha: Array
    beta: Array
    X: Array


def gsvd(A: ArrayLike, B: ArrayLike, *, rtol: float | None = None) -> GSVDResult:
    """Generalized singular value decomposition of two matrices with the same columns.

    Finds U, V, X and non-negative alpha, beta with::

        A = U diag(alpha) X',    B = V diag(beta) X',    alpha^2 + beta^2 = 1

    where r, the number of columns of X, is the rank of the stacked matrix [A; B].
    The ratios alpha / beta, in descending order, are the generalized singular values: infinite
    where a direction belongs to A alone (beta = 0), zero where it belongs to B alone.
    They are the stationary values of ||A z|| / ||B z||, reached at the columns of the
    pseudo-inverse of X'. Any shape and any rank is accepted.

    Parameters
    ----------
    A : array-like of shape (p, m)
    B : array-like of shape (q, m)
    rtol : float, optional
        Singular values of the stacked pair, each matrix scaled to norm about one, count as zero
        when they are at most ``rtol`` times the largest. By default only what rounding cannot
        tell from zero. A larger value removes noise, and the reconstructions then hold to
        ``rtol`` instead of to rounding.

    Returns
    -------
    GSVDResult
        With fields U (p, r), V (q, r), alpha (r,), beta (r,) and X (m, r).

    Raises
    ------
    ValueError
        If a matrix is empty, not 2-d, not finite or so large that squares overflow, or if the
        numbers of columns differ.

    Notes
    -----
    Neither A'A nor B'B is formed. With each matrix scaled to norm about one, the stacked pair is
    factored as Q S W' by an SVD, and the two blocks of Q get a cosine-sine decomposition in the
    manner of [1]_: small alphas come from an SVD of the upper block and small betas from one of
    the lower block, so that both are accurate to rounding. Values of alpha or beta at the level
    of rounding are set to exactly zero.

    U and V have one column for each column of X, so that the products above hold as written. A
    matrix with p rows cannot have more than p orthonormal columns: if p < r the last r - p
    columns of U, which meet alpha = 0, are zero (then U U' = I); V likewise with its first r - q.

    Signs are chosen so that the largest entry of each column of X is positive.

    References
    ----------
    .. [1] C. F. Van Loan, "Computing the CS and the generalized singular value decompositions",
       Numerische Mathematik 46, 479-491, 1985.
    .. [2] C. C. Paige and M. A. Saunders, "Towards a generalized singular value decomposition",
       SIAM Journal on Numerical Analysis 18, 398-405, 1981.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsegsvp import gsvd
    >>> A = np.array([[3.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    >>> B = np.array([[4.0, 0.0, 0.0], [0.0, 0.0, 2.0]])
    >>> U, V, alpha, beta, X = gsvd(A, B)
    >>> alpha.round(6), beta.round(6)
    (array([1. , 0.6, 0. ]), array([0. , 0.8, 1. ]))
    >>> bool(np.allclose(U * alpha @ X.T, A) and np.allclose(V * beta @ X.T, B))
    True
    """
    if rtol is not None:
        check_real("rtol", rtol, least=0, below=1)
    A, B = as_dense(A, "A"), as_dense(B, "B")
    check_same_width((A, B), ("A", "B"))
    # Each matrix is scaled by itself: neither can hide the other in the decision on the rank.
    scale_A, scale_B = binary_scale(A), binary_scale(B)
    if max(scale_A, scale_B) / 1e290 > min(scale_A, scale_B):
        small, large = ("A", "B") if scale_A < scale_B else ("B", "A")
        raise ValueError(
            f"{small} is too small beside {large} for their ratio to be represented: "
            "rescale one of them."
        )
    stack = factor_stack((A / scale_A, B / scale_B), rtol)
    U, V, alpha, beta, Z = _cosine_sine(*stack.Q)
    # Back to the units of A and B: the ratio changes, and X takes what the unit circle leaves.
    alpha, beta = alpha * scale_A, beta * scale_B
    length = np.hypot(alpha, beta)
    X = (stack.Wt.T * stack.singular) @ (Z * length)
    sign = column_signs(X)
    return GSVDResult(
        U=lift(stack.bases[0], U) * sign,
        V=lift(stack.bases[1], V) * sign,
        alpha=alpha / length,
        beta=beta / length,
        X=X * sign,
    )


def _cosine_sine(Q1: Array, Q2: Array) -> tuple[Array, Array, Array, Array, Array]:
    """Decompose [Q1; Q2] with orthonormal columns: Q1 = U diag(c) Z', Q2 = V diag(s) Z'.

    c descends, s ascends, c^2 + s^2 = 1 and Z is orthogonal. Neither block has more rows than
    columns here; columns of U and V that the rows have no room for are zero.
    """
    (p, r), q = Q1.shape, Q2.shape[0]
    left, cosines, Zt = svd(Q1, full=True)
    U = np.zeros((p, r))
    U[:, :p] = left
    Z = Zt.T
    c = np.concatenate([cosines, np.zeros(r - p)])
    V, s = np.zeros((q, r)), np.zeros(r)

    # Columns of Q2 Z are orthogonal and have length s. Where s is large, normalising them is
    # safe; their span is then taken out before the short ones are looked at.
    n_short = int(np.count_nonzero(cosines > np.sqrt(0.5)))
    long, short = slice(n_short, r), slice(0, n_short)
    basis, R = qr(Q2 @ Z[:, long], full=True)
    s[long] = np.diagonal(R)
    V[:, long] = basis[:, : r - n_short]

    # Where s is small the SVD of what is left finds it to rounding, which sqrt(1 - c^2) cannot.
    # Its right vectors turn Z, and U has to follow: U diag(c) Y has orthogonal columns of length
    # at least sqrt(1/2), so that normalising is safe here too.
    rest = basis[:, r - n_short :]
    P, sines, Yt = svd(rest.T @ (Q2 @ Z[:, short]), full=True)
    Y = Yt.T[:, ::-1]
    found = slice(n_short - len(sines), n_short)
    s[found] = sines[::-1]
    V[:, found] = rest @ P[:, : len(sines)][:, ::-1]
    Z[:, short] = Z[:, short] @ Y
    turn, R = qr(c[short, None] * Y)
    c[short] = np.diagonal(R)
    U[:, short] = U[:, short] @ turn

    level = rounding_level(r)
    c[c <= level], s[s <= level] = 0.0, 0.0
    length = np.hypot(c, s)
    c, s = c / length, s / length
    # Both halves come out in order; rounding may disturb it where they meet or values are equal.
    order = np.argsort(-np.arctan2(c, s), kind="stable")
    return U[:, order], V[:, order], c[order], s[order], Z[:, order]


class StackedFactors(NamedTuple):
    """Factors of stacked blocks: ``blocks[i] = bases[i] @ Q[i] @ (singular[:, None] * Wt)``."""

    Q: list[Array]  # stacked, their r columns are orthonormal; no more than r rows each
    bases: list[Array | None]  # None stands for the identity
    singular: Array
    Wt: Array  # (r, m), orthonormal rows


def as_dense(value: ArrayLike, name: str) -> Array:
    """Return `value` as a finite, non-empty 2-d float64 array, or say what is wrong with it."""
    if scipy.sparse.issparse(value):
        raise ValueError(
            f"{name} is a sparse matrix, and the exact decompositions are dense: "
            f"pass {name}.toarray()."
        )
    try:
        raw = np.asarray(value)
        if np.iscomplexobj(raw):
            raise TypeError("complex values")
        matrix = raw.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must hold real numbers in rows of equal length ({error}): "
            "convert it to a numeric 2-d array."
        ) from error
    if matrix.ndim != 2:
        raise ValueError(
            f"{name} must be a 2-d array (rows x features), got {matrix.ndim} dimension(s): "
            "reshape a single row with .reshape(1, -1)."
        )
    if 0 in matrix.shape:
        raise ValueError(
            f"{name} is empty (shape {matrix.shape}): it needs at least one row and one column."
        )
    # Extremes find NaN and infinity without a temporary of the size of the matrix.
    low, high = float(matrix.min()), float(matrix.max())
    if not (np.isfinite(low) and np.isfinite(high)):
        raise ValueError(f"{name} contains NaN or infinity: impute or drop those entries first.")
    if max(-low, high) > _LARGEST:
        raise ValueError(
            f"{name} has values so large (up to {max(-low, high):.3g}) that their squares "
            f"overflow: divide {name} by a constant."
        )
    return matrix


def check_same_width(matrices: Sequence[Array], names: Sequence[str]) -> None:
    """Raise unless all matrices have the same number of columns."""
    width = matrices[0].shape[1]
    for matrix, name in zip(matrices[1:], names[1:]):
        if matrix.shape[1] != width:
            raise ValueError(
                f"{names[0]} has {width} columns and {name} has {matrix.shape[1]}: "
                "both must have the same features, in the same order."
            )


def binary_scale(matrix: Array) -> float:
    """Return the power of two nearest above the Frobenius norm (1 for a zero matrix).

    Dividing by a power of two is exact, so scaling never costs accuracy.
    """
    largest = float(max(-matrix.min(), matrix.max()))
    if largest == 0.0:
        return 1.0
    # In two steps, because the squares of very small values vanish.
    first = float(np.ldexp(1.0, int(np.frexp(largest)[1])))
    norm = float(np.linalg.norm(matrix / first))
    return first * float(np.ldexp(1.0, int(np.frexp(norm)[1])))


def svd(matrix: Array, *, full: bool = False) -> tuple[Array, Array, Array]:
    """SVD by divide and conquer, by QR iteration where that fails to converge."""
    if 0 in matrix.shape:
        rows, columns = matrix.shape if full else (0, 0)
        return np.eye(matrix.shape[0], rows), np.zeros(0), np.eye(columns, matrix.shape[1])
    try:
        return scipy.linalg.svd(matrix, full_matrices=full, check_finite=False)
    except np.linalg.LinAlgError:
        return scipy.linalg.svd(
            matrix, full_matrices=full, check_finite=False, lapack_driver="gesvd"
        )


def qr(matrix: Array, *, full: bool = False) -> tuple[Array, Array]:
    """QR decomposition with a non-negative diagonal of R; empty matrices allowed."""
    rows, columns = matrix.shape
    if 0 in matrix.shape:
        size = rows if full else 0
        return np.eye(rows, size), np.zeros((size, columns))
    Q, R = scipy.linalg.qr(matrix, mode="full" if full else "economic", check_finite=False)
    sign = np.where(np.diagonal(R) < 0.0, -1.0, 1.0)
    Q[:, : len(sign)] *= sign
    R[: len(sign)] *= sign[:, None]
    return Q, R


def rounding_level(size: int) -> float:
    """The size up to which values are rounding, in a matrix of norm one and this (smaller) size."""
    return _EPS * max(size, 32)


def _shorten(block: Array) -> tuple[Array | None, Array]:
    """Write a tall block as basis @ square; other blocks are returned as they are."""
    if block.shape[0] <= block.shape[1]:
        return None, block
    return qr(block)


def _compose(first: Array | None, second: Array | None) -> Array | None:
    if first is None or second is None:
        return second if first is None else first
    return first @ second


def factor_stack(blocks: Sequence[Array], rtol: float | None = None) -> StackedFactors:
    """Factor the stacked blocks through an SVD, dropping what is zero to rounding.

    Tall blocks are shortened by QR first, so that the cost beyond one QR per block depends on
    the number of columns only; wide ones keep their rows, and no columns x columns matrix appears.
    """
    bases, short = map(list, zip(*(_shorten(block) for block in blocks)))
    left, singular, Wt = svd(np.concatenate(short))
    if rtol is None:
        rtol = rounding_level(len(singular))
    rank = int(np.count_nonzero(singular > rtol * singular[0]))
    cuts = np.cumsum([block.shape[0] for block in short])[:-1]
    Q = []
    for i, part in enumerate(np.split(left[:, :rank], cuts)):
        basis, square = _shorten(part)
        bases[i] = _compose(bases[i], basis)
        Q.append(square)
    return StackedFactors(Q, bases, singular[:rank], Wt[:rank])


def lift(basis: Array | None, factor: Array) -> Array:
    """Return basis @ factor, None being the identity."""
    return factor if basis is None else basis @ factor


def column_signs(matrix: Array) -> Array:
    """Signs that make the largest entry of each column positive (the first one where tied)."""
    if matrix.shape[1] == 0:
        return np.ones(0)
    largest = matrix[np.abs(matrix).argmax(axis=0), np.arange(matrix.shape[1])]
    return np.where(largest < 0.0, -1.0, 1.0)
