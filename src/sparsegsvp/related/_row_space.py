"""Class blocks with their bias column, in coordinates of the space that the samples span.

Notation, here and in the methods: ``A`` and ``B`` hold the (standardised) samples of the first
and the second class, ``z = [w; b]`` is a plane ``x'w + b = 0``, and

    G = [A e]'[A e] / n_A ,      H = [B e]'[B e] / n_B .

Both are means per class, so that an unbalanced table tilts no quotient and a ridge means the
same at every sample size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from .._typing import Float64Array as Array


def with_bias(A: Array) -> Array:
    """Append the column of ones that multiplies the bias."""
    return np.column_stack([A, np.ones(len(A))])


@dataclass(frozen=True)
class RowSpace:
    """The class blocks ``[A e]`` and ``[B e]`` in orthonormal coordinates of their row space.

    For ``z = basis @ u``: ``[A e] z = A u``, ``[B e] z = B u`` and ``||z|| = ||u||``. A quotient
    of functions of ``[A e]z``, ``[B e]z`` and, increasing, ``||z||`` in the numerator has its
    minimum there, because a component of z outside raises ``||z||`` and nothing else: the
    reduction is exact.

    Attributes
    ----------
    A, B : ndarray of shape (n_A, r) and (n_B, r)
        The blocks, bias column included, with r = min(m + 1, n_A + n_B).
    basis : ndarray of shape (m + 1, r) or None
        None stands for the identity, when there are no more columns than rows.
    """

    A: Array
    B: Array
    basis: Array | None

    def lift(self, u: Array) -> Array:
        """Return z, bias last, for coordinates u."""
        return u if self.basis is None else self.basis @ u


def row_space(A: Array, B: Array) -> RowSpace:
    """Reduce two class blocks (without their bias columns) to their row space.

    Costs one QR factorisation of an (m + 1) x (n_A + n_B) matrix when there are more features
    than samples, and nothing otherwise; no m x m matrix is formed.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> A, B = rng.normal(size=(4, 1000)), rng.normal(size=(5, 1000))
    >>> space = row_space(A, B)
    >>> space.basis.shape
    (1001, 9)
    >>> z = space.lift(np.ones(9))
    >>> bool(np.allclose(A @ z[:-1] + z[-1], space.A.sum(axis=1)))
    True
    """
    n, m = len(A) + len(B), A.shape[1]
    if m + 1 <= n:
        return RowSpace(with_bias(A), with_bias(B), None)
    stacked = np.empty((m + 1, n), order="F")
    stacked[:m, : len(A)] = A.T
    stacked[:m, len(A) :] = B.T
    stacked[m] = 1.0
    basis, R = linalg.qr(stacked, mode="economic", overwrite_a=True, check_finite=False)
    return RowSpace(R[:, : len(A)].T.copy(), R[:, len(A) :].T.copy(), basis)


def second_moment(A: Array) -> Array:
    """``A'A / n``, symmetric to the last bit."""
    return A.T @ A / len(A)
