"""The generalized singular value decomposition of a pair of dense matrices."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ._stacked import (
    Array,
    as_dense,
    binary_scale,
    check_rtol,
    check_same_width,
    column_signs,
    factor_stack,
    lift,
    qr,
    rounding_level,
    svd,
)


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
    check_rtol(rtol)
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
