"""The two-class problem that the related methods share, and the exact reductions of it.

Notation, here and in the methods: ``A`` and ``B`` hold the (standardised) samples of the first
and the second class, ``z = [w; b]`` is a plane ``x'w + b = 0``, and

    G = [A e]'[A e] / n_A ,      H = [B e]'[B e] / n_B .

Both are means per class, so that an unbalanced table tilts no quotient and a ridge means the
same at every sample size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from .._typing import BoolArray, IntArray
from .._typing import Float64Array as Array


@dataclass(frozen=True)
class BinaryProblem:
    """Two classes of samples on standardised features, without those that are constant.

    A constant feature says nothing about the classes and would only duplicate the bias.
    `features` is the input feature of each column. `mean` and `scale` are what standardisation
    took away, zeros and ones where it is off.
    """

    A: Array
    B: Array
    features: IntArray
    mean: Array
    scale: Array

    @classmethod
    def of(cls, X: NDArray[Any], second: BoolArray, standardize: bool) -> Self:
        """Cut a table into class blocks, in double precision whatever the type of X."""
        mean, sd = X.mean(axis=0, dtype=np.float64), X.std(axis=0, dtype=np.float64)
        # A constant column's computed deviation may be rounding noise instead of zero.
        noise = X.shape[0] * np.finfo(np.float64).eps * np.abs(mean)
        varying = (X.max(axis=0) > X.min(axis=0)) & (sd > noise)
        mean, scale = mean[varying], sd[varying]
        if not standardize:
            mean, scale = np.zeros(len(mean)), np.ones(len(scale))

        def block(rows: NDArray[Any]) -> Array:
            Z = (rows if varying.all() else rows[:, varying]).astype(np.float64)
            Z -= mean
            Z /= scale
            return Z

        return cls(block(X[~second]), block(X[second]), np.flatnonzero(varying), mean, scale)

    def centred_table(self) -> Array:
        """Stack the class blocks, with the mean of all samples at zero, standardised or not.

        A shift of a feature would move into the bias, but take its loading along.
        """
        table = np.concatenate([self.A, self.B])
        table -= table.mean(axis=0)
        return table


def with_bias(A: Array) -> Array:
    """Append the column of ones that multiplies the bias."""
    return np.column_stack([A, np.ones(len(A))])


def moment_factor(A: Array) -> Array:
    """``[A e] / sqrt(n_A)``, the factor F of ``G = F'F``."""
    return with_bias(A) / np.sqrt(len(A))


def second_moment(A: Array) -> Array:
    """``A'A / n``, symmetric to the last bit."""
    return A.T @ A / len(A)


def spread_per_direction(first: float, second: float, n_directions: int) -> float:
    """Mean second moment of so many directions, from the traces of both classes' moments."""
    return 0.5 * (first + second) / n_directions


def eigenpair(N: Array, D: Array, index: int) -> tuple[float, Array]:
    """Return an eigenvalue of ``N z = mu D z``, 0 for the smallest or -1 for the largest, and z."""
    index %= len(N)
    mu, Z = linalg.eigh(N, D, subset_by_index=[index, index], check_finite=False)
    return float(mu[0]), Z[:, 0]


@dataclass(frozen=True)
class RowSpace:
    """The class blocks ``[A e]`` and ``[B e]`` in orthonormal coordinates of their row space.

    For ``z = basis @ u``: ``[A e] z = A u``, ``[B e] z = B u`` and ``||z|| = ||u||``. A quotient
    of functions of ``[A e]z``, ``[B e]z`` and, increasing, ``||z||`` in the numerator has its
    minimum there, because a component of z outside raises ``||z||`` and nothing else: the
    reduction is exact. A basis of None is the identity. Without ``bias`` the blocks are A and B.
    """

    A: Array
    B: Array
    basis: Array | None

    @classmethod
    def of(cls, A: Array, B: Array, *, bias: bool = True) -> Self:
        """Reduce two class blocks, given without their bias columns, to their row space.

        Costs one QR factorisation of an (m + 1) x (n_A + n_B) matrix when there are more
        features than samples, and nothing otherwise; no m x m matrix is formed.
        """
        n, m = len(A) + len(B), A.shape[1]
        if m + bias <= n:
            return cls(with_bias(A), with_bias(B), None) if bias else cls(A, B, None)
        stacked = np.empty((m + bias, n), order="F")
        stacked[:m, : len(A)] = A.T
        stacked[:m, len(A) :] = B.T
        stacked[m:] = 1.0
        basis, R = linalg.qr(stacked, mode="economic", overwrite_a=True, check_finite=False)
        return cls(R[:, : len(A)].T.copy(), R[:, len(A) :].T.copy(), basis)

    def lift(self, u: Array) -> Array:
        """Return z, bias last, for coordinates u; for several, in columns."""
        return u if self.basis is None else self.basis @ u
