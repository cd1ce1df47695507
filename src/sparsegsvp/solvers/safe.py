"""Bounds on gradients from those of earlier points, for certificates without a pass.

Before it is scaled, the gradient of feature f is ``x_f'u`` with its standardised column x_f
and a vector u of one number per row. For vectors u_j whose gradients g_j are known and
``u = sum_j c_j u_j + e``, the Cauchy-Schwarz inequality gives

    |x_f'u - sum_j c_j g_jf| <= ||x_f|| ||e||

so wherever the sum is further than that from the slope of the penalty the certificate holds
for sure, whatever the gradient is exactly. Along a path u changes little: a few earlier ones
nearly span it, and the columns of a few features are all that must be read.
"""

from __future__ import annotations

import numpy as np

from .._typing import Float64Array, IntArray
from ..linalg import Covariances

# Gradients that are kept: each is as long as there are features.
_KEPT = 4
# Units of rounding in a product, relative to the norms of its factors.
_ROUNDING = 8


class References:
    """Vectors u whose gradients over all features are known; see the module's docstring."""

    def __init__(self, cov: Covariances) -> None:
        self.cov = cov
        self._u = np.empty((0, cov.n_samples))
        self._gradients: list[Float64Array] = []

    def add(self, u: Float64Array, gradient: Float64Array) -> None:
        """Remember the gradient of u, before it is scaled, for all features."""
        self._u = np.concatenate([self._u[-_KEPT + 1 :], [self.cov.dual(u)]])
        self._gradients = [*self._gradients[-_KEPT + 1 :], gradient]

    def gradient(
        self, u: Float64Array, threshold: Float64Array, known: IntArray
    ) -> Float64Array | None:
        """The gradient of u where it may reach the threshold, an estimate below it elsewhere.

        Of the features ``known`` the gradient is not needed. None if too many columns would
        have to be read.
        """
        if not self._gradients:
            return None
        dual = self.cov.dual(u)
        c = np.linalg.lstsq(self._u.T, dual, rcond=None)[0]
        norms = np.linalg.norm(self._u, axis=1)
        apart = float(np.linalg.norm(dual - c @ self._u))
        apart += _ROUNDING * self.cov.rounding * float(np.abs(c) @ norms)
        out = c[0] * self._gradients[0]
        for factor, gradient in zip(c[1:], self._gradients[1:]):
            out += factor * gradient
        near = np.abs(out) >= threshold - apart * self.cov.column_norms
        near[known] = False
        index = near.nonzero()[0]
        exact = self.cov.some_products(u, index)
        if exact is None:
            return None
        out[index] = exact
        return out
