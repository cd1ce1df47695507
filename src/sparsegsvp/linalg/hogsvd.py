"""The higher-order generalized singular value decomposition of N dense matrices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike

from .._typing import Float64Array as Array
from .._validate import check_real
from .gsvd import check_blocks, column_signs, factor_stack, rounding_level

_DEFAULT_PI = 1e-3  # as chosen by Kempf et al. in their code
# A block of Q with a singular value below this counts as rank deficient: its inverse square would
# drown the eigenvalues of the common subspace in rounding.
_DEFICIENT = 1e-4


class HOGSVDResult(NamedTuple):
    """A higher-order generalized SVD; unpacks as ``U, sigma, V, lambda_``.

    Attributes
    ----------
    U : list of N arrays, the i-th of shape (n_i, r)
        Left vectors: columns of length one, not orthogonal in general, and zero where sigma is.
    sigma : array of shape (N, r)
        Generalized singular values; the squares of each column sum to one.
    V, lambda_ : arrays of shapes (m, r) and (r,)
        The shared right factor, of full column rank, and its eigenvalues, ascending.
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

    Returns
    -------
    HOGSVDResult
        With r the rank of the stacked matrices, in ascending order of lambda; the largest entry of
        each column of V is positive.

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
    stack = factor_stack([block / scale for block in blocks])
    t, Z, pi = _shared_basis(stack.Q, pi)
    V = (stack.Wt.T * (stack.singular * scale)) @ Z
    sign = column_signs(V)
    n = len(blocks)
    images = [Q @ (Z * sign) for Q in stack.Q]
    sigma = np.array([np.linalg.norm(image, axis=0) for image in images])
    sigma[sigma <= rounding_level(len(t))] = 0.0
    inverse = np.divide(1.0, sigma, where=sigma > 0.0, out=np.zeros(sigma.shape))
    U = [basis @ (image * row) for basis, image, row in zip(stack.bases, images, inverse)]
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
    """Choose bases of the eigenspaces of repeated eigenvalues that tell the matrices apart.

    They diagonalise sum_i w_i Q_i'Q_i with distinct weights, descending in i: for two matrices
    that gives the generalized SVD.
    """
    weighted = sum((len(Q) - i) / len(Q) * (block.T @ block) for i, block in enumerate(Q))
    width = 100.0 * rounding_level(len(t)) * t.max(initial=0.0)
    for span in np.split(np.arange(len(t)), np.flatnonzero(np.diff(t) > width) + 1):
        mixed = Z[:, span].T @ weighted @ Z[:, span]
        Z[:, span] = Z[:, span] @ np.linalg.eigh(mixed)[1][:, ::-1]
    return Z
