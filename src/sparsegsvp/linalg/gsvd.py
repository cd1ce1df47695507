"""The generalized SVD of a pair of dense matrices, and the higher-order one of several."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike
from sklearn.utils import check_array

from .._typing import Array
from .._validate import check_real, refuse_dask
from .rows import check_extremes

_DEFAULT_PI = 1e-3  # as chosen by Kempf et al. in their code
# A block of Q with a singular value below this counts as rank deficient: its inverse square would
# drown the eigenvalues of the common subspace in rounding.
_DEFICIENT = 1e-4


class GSVDResult(NamedTuple):
    """A generalized singular value decomposition; unpacks as ``U, V, alpha, beta, X``.

    Attributes
    ----------
    U, V : arrays of shape (p, r) and (q, r)
        Left vectors of A and B, one column for each of X's. They are orthonormal where there is
        room: if p < r the last r - p columns of U, where alpha is 0, are zero, and if q < r the
        first r - q of V, where beta is 0.
    alpha, beta : arrays of shape (r,)
        In [0, 1], descending and ascending; ``alpha**2 + beta**2 == 1`` to rounding.
    X : array of shape (m, r)
        The shared right factor, of full column rank; the largest entry of a column is positive.
    """

    U: Array
    V: Array
    alpha: Array
    beta: Array
    X: Array


def gsvd(A: ArrayLike, B: ArrayLike) -> GSVDResult:
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
    A, B : array-likes of shape (p, m) and (q, m)

    Notes
    -----
    Neither A'A nor B'B is formed: the stacked pair gets an SVD and a cosine-sine decomposition,
    whose angles give small alphas and betas to rounding.

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
    A, B = check_blocks([A, B], ["A", "B"])
    # Each matrix is scaled by itself: neither can hide the other in the decision on the rank.
    scale_A, scale_B = scipy.linalg.norm(A) or 1.0, scipy.linalg.norm(B) or 1.0
    Q, bases, right = factor_stack((A / scale_A, B / scale_B))
    U, V, alpha, beta, Z = _cosine_sine(*Q)
    # Back to the units of A and B: the ratio changes, and X takes what the unit circle leaves.
    alpha, beta = alpha * scale_A, beta * scale_B
    length = np.hypot(alpha, beta)
    X = right.T @ (Z * length)
    sign = column_signs(X)
    U, V = (basis @ left * sign for basis, left in zip(bases, (U, V)))
    return GSVDResult(U, V, alpha / length, beta / length, X * sign)


def _cosine_sine(Q1: Array, Q2: Array) -> tuple[Array, Array, Array, Array, Array]:
    """Decompose orthonormal [Q1; Q2]: Q1 = U diag(c) Z', Q2 = V diag(s) Z', c descending.

    Neither block has more rows than columns; columns of U and V without room are zero.
    """
    (p, r), q = Q1.shape, len(Q2)
    stacked = np.concatenate([Q1, Q2])
    U, V, theta, Zt = np.eye(p), np.eye(q), np.zeros(0), stacked
    if p + q > r:
        square = np.linalg.qr(stacked, mode="complete")[0]
        square[:, :r] = stacked
        (U, V), theta, (Zt, _) = scipy.linalg.cossin(square, p, r, separate=True)
    # r - q directions are in Q1 alone and r - p in Q2 alone
    theta = np.concatenate([np.zeros(r - q), theta, np.full(r - p, 0.5 * np.pi)])
    c, s = np.cos(theta), np.sin(theta)
    level = rounding_level(r)
    c[c <= level], s[s <= level] = 0.0, 0.0
    length = np.hypot(c, s)
    U, V = np.pad(U, ((0, 0), (0, r - p))), np.pad(V, ((0, 0), (r - q, 0)))
    return U, V, c / length, s / length, Zt.T


class HOGSVDResult(NamedTuple):
    """A higher-order generalized SVD; unpacks as ``U, sigma, V, lambda_``.

    Attributes
    ----------
    U : list of N arrays, the i-th of shape (n_i, r)
        Left vectors: columns of length one, not orthogonal in general, and zero where sigma is.
    sigma : array of shape (N, r)
        Generalized singular values; the squares of each column sum to one.
    V, lambda_ : arrays of shapes (m, r) and (r,)
        The shared right factor, of full column rank r, the largest entry of a column positive,
        and its eigenvalues, ascending.
    """

    U: list[Array]
    sigma: Array
    V: Array
    lambda_: Array


def hogsvd(matrices: Iterable[ArrayLike], *, pi: float | None = None) -> HOGSVDResult:
    """Higher-order generalized singular value decomposition of N matrices.

    Writes matrices with the same columns, by one right factor for all, as::

        D_i = U_i diag(sigma_i) V',    i = 1, ..., N

    With D_i = Q_i R the blocks of a thin factorisation of the stacked matrices, V = R'Z where Z
    holds the orthonormal eigenvectors of::

        T = (1/N) sum_i (Q_i'Q_i + pi I)^-1,    T Z = Z diag(t)

    and sigma_ik is the length of Q_i z_k. For pi = 0 the columns of V are the eigenvectors of the
    mean of all quotients D_i'D_i (D_j'D_j)^-1, i != j, which defines the decomposition for
    matrices of full column rank [1]_, and lambda = ((1 + N pi) t - 1) / (N - 1) >= 1 are its
    eigenvalues: 1 on the common subspace, where sigma is the same for all matrices. For pi > 0 the
    same holds with D_i'D_i + pi sum_j D_j'D_j in place of D_i'D_i, and rank-deficient matrices are
    allowed [2]_. For two matrices this is the generalized SVD, in another order.

    Parameters
    ----------
    matrices : iterable of N >= 2 array-likes, the i-th of shape (n_i, m)
        Their relative scale matters (for two matrices to sigma and lambda only, for more to V
        too): divide each by its norm if their units differ.
    pi : float, optional
        The shift, at least 0. By default 0 if every D_i has full column rank within the row space
        of all (no singular value of Q_i below 1e-4), and 1e-3 otherwise.

    References
    ----------
    .. [1] S. P. Ponnapalli et al., "A higher-order generalized singular value decomposition for
       comparison of global mRNA expression from multiple organisms", PLoS ONE 6(12), 2011.
    .. [2] I. Kempf, P. J. Goulart and S. R. Duncan, "A higher-order generalized singular value
       decomposition for rank deficient matrices", arXiv:2102.09822, 2021.

    Examples
    --------
    The first feature carries the same weight in all three matrices, the others do not.

    >>> import numpy as np
    >>> from sparsegsvp import hogsvd
    >>> result = hogsvd([np.diag([2.0, 1.0, 3.0]), np.diag([2.0, 4.0, 1.0]), np.diag([2.0, 2, 2])])
    >>> result.lambda_.round(3), result.sigma[:, 0].round(3)
    (array([1.   , 2.676, 4.094]), array([0.577, 0.577, 0.577]))
    """
    if pi is not None:
        check_real("pi", pi, least=0)
    given = list(matrices)
    if len(given) < 2:
        raise ValueError(
            f"matrices must hold at least two matrices, got {len(given)}: pass them as one list."
        )
    blocks = check_blocks(given, [f"matrices[{i}]" for i in range(len(given))])
    scale = max(scipy.linalg.norm(block) for block in blocks) or 1.0
    factors, bases, right = factor_stack([block / scale for block in blocks])
    t, Z, pi = _shared_basis(factors, pi)
    V = scale * (right.T @ Z)
    sign = column_signs(V)
    n = len(blocks)
    images = [Q @ (Z * sign) for Q in factors]
    sigma = np.array([np.linalg.norm(image, axis=0) for image in images])
    sigma[sigma <= rounding_level(len(t))] = 0.0
    inverse = np.divide(1.0, sigma, where=sigma > 0.0, out=np.zeros(sigma.shape))
    U = [basis @ (image * row) for basis, image, row in zip(bases, images, inverse)]
    return HOGSVDResult(U, sigma, V * sign, ((1.0 + n * pi) * t - 1.0) / (n - 1))


def _shared_basis(Q: Sequence[Array], pi: float | None) -> tuple[Array, Array, float]:
    """Eigenvalues (ascending) and eigenvectors of T, and the shift that was used."""
    r = Q[0].shape[1]
    spectra = []
    for block in Q:
        _, s, Wt = np.linalg.svd(block)
        spectra.append((np.pad(s, (0, r - len(s))), Wt))
    smallest = [float(s.min(initial=1.0)) for s, _ in spectra]
    if pi is None:
        pi = 0.0 if min(smallest) >= _DEFICIENT else _DEFAULT_PI
    elif min(smallest) ** 2 + pi <= rounding_level(r):
        raise ValueError(
            f"pi = {pi:g} asks for the inverse of matrices[{int(np.argmin(smallest))}]'s Gram "
            "matrix, which is singular: use pi > 0, or None to let it be chosen."
        )
    # From the singular values of Q_i, not of Q_i'Q_i: small ones keep their digits.
    t, Z = np.linalg.eigh(sum((Wt.T / (s * s + pi)) @ Wt for s, Wt in spectra) / len(Q))
    return t, _separate(Q, t, Z), pi


def _separate(Q: Sequence[Array], t: Array, Z: Array) -> Array:
    """Choose bases of repeated eigenvalues' spaces that diagonalise sum_i w_i Q_i'Q_i.

    The weights are distinct and descend: for two matrices that gives the generalized SVD.
    """
    weighted = sum((len(Q) - i) / len(Q) * (block.T @ block) for i, block in enumerate(Q))
    width = 100.0 * rounding_level(len(t)) * t.max(initial=0.0)
    for span in np.split(np.arange(len(t)), np.flatnonzero(np.diff(t) > width) + 1):
        mixed = Z[:, span].T @ weighted @ Z[:, span]
        Z[:, span] = Z[:, span] @ np.linalg.eigh(mixed)[1][:, ::-1]
    return Z


def check_blocks(matrices: Sequence[ArrayLike], names: Sequence[str]) -> list[Array]:
    """Return matrices as finite float64 arrays of one width, or say which is wrong, and how."""
    blocks: list[Array] = []
    for value, name in zip(matrices, names):
        refuse_dask(value)
        block = check_array(value, dtype=np.float64, input_name=name)
        check_extremes(float(block.min()), float(block.max()), block.dtype, name)
        if blocks and block.shape[1] != blocks[0].shape[1]:
            raise ValueError(
                f"{names[0]} has {blocks[0].shape[1]} columns and {name} has {block.shape[1]}: "
                "both must have the same features, in the same order."
            )
        blocks.append(block)
    return blocks


def rounding_level(size: int) -> float:
    """The size up to which values are rounding, in a matrix of norm one and this (smaller) size."""
    return float(np.finfo(np.float64).eps) * max(size, 32)


def factor_stack(blocks: Sequence[Array]) -> tuple[list[Array], list[Array], Array]:
    """Factors Q_i, bases and right (r, m) with ``blocks[i] = bases[i] @ Q[i] @ right``.

    The stacked Q_i have r orthonormal columns, and each at most r rows; r is the rank.
    """
    left, singular, Wt = np.linalg.svd(np.concatenate(blocks), full_matrices=False)
    rank = int(np.count_nonzero(singular > rounding_level(len(singular)) * singular[0]))
    parts = np.split(left[:, :rank], np.cumsum([len(block) for block in blocks])[:-1])
    tall = [len(part) > rank for part in parts]
    pairs = [np.linalg.qr(Q) if many else (np.eye(len(Q)), Q) for many, Q in zip(tall, parts)]
    bases, Q = map(list, zip(*pairs))
    return Q, bases, singular[:rank, None] * Wt[:rank]


def column_signs(matrix: Array) -> Array:
    """Signs that make the largest entry of each column positive (the first one where tied)."""
    largest = matrix[np.abs(matrix).argmax(axis=0), np.arange(matrix.shape[1])]
    return np.where(largest < 0.0, -1.0, 1.0)
