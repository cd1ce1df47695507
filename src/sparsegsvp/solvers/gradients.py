"""Gradients over all features: asked for in rounds, bounded where that is enough.

A solver that needs such a gradient does not compute it: it is a generator that yields
*requests* and is sent the gradients. `run_to_end` answers those of one solver; `together` makes one
solver of many, whose requests of a round are answered in one pass over the data. What a solver
finds depends on its own requests alone, so not on those it is run with.

Along a path most certificates need no pass. Before it is scaled, the gradient of feature f is
``x_f'u`` with its standardised column x_f and a vector u of one number per row. For vectors u_j
whose gradients g_j are known and ``u = sum_j c_j u_j + e``, the Cauchy-Schwarz inequality gives

    |x_f'u - sum_j c_j g_jf| <= ||x_f|| ||e||

so wherever the sum is further than that from the slope of the penalty the certificate holds
for sure, whatever the gradient is exactly. Along a path u changes little: a few earlier ones
nearly span it, and the columns of a few features are all that must be read.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from .._typing import Float64Array, IntArray
from ..linalg import Covariances
from .quotient import Bias, OneVsRest

# Gradients that are kept: each is as long as there are features.
_KEPT = 4
# Units of rounding in a product, relative to the norms of its factors.
_ROUNDING = 8


class References:
    """Vectors u whose gradients over all features are known."""

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


@dataclass(frozen=True, eq=False)
class GradientRequest:
    """Asks for the gradient over all features of a w that is non-zero on ``features`` only.

    With ``references``, an estimate will do wherever it is certain that the gradient is below
    ``threshold``, and nothing is asked of the features ``known``.
    """

    cov: Covariances
    plane: OneVsRest
    tau: float
    features: IntArray
    w: Float64Array
    bias: Bias
    references: References | None = None
    threshold: Float64Array | None = None
    known: IntArray | None = None

    @property
    def term(self) -> tuple[Float64Array, IntArray, Float64Array]:
        """The part of the gradient that takes a product with X'."""
        return self.spread, self.features, self.w

    @property
    def spread(self) -> Float64Array:
        """Coefficients of the class covariances in the gradient, before it is scaled."""
        return self.plane.own - self.bias.ratio * self.plane.other

    @property
    def mean(self) -> Float64Array:
        """Coefficients of the class means in the gradient, before it is scaled."""
        plane, bias = self.plane, self.bias
        mix = bias.own * plane.own_mean - (bias.ratio * bias.other) * plane.other_mean
        if plane.between is not None:
            contrast = plane.between @ (self.cov.means[:, self.features] @ self.w)
            mix = mix - bias.ratio * (contrast @ plane.between)
        return mix


def full_gradients(requests: Sequence[GradientRequest]) -> list[Float64Array]:
    """The gradients that are asked for, all of the same covariances, in one product with X'.

    The projections of the rows come from the cached columns.
    """
    raw = [_estimate(request) for request in requests]
    asked = [i for i, found in enumerate(raw) if found is None]
    if asked:
        cov = requests[0].cov
        for i, product in zip(asked, cov.products([requests[i].term for i in asked])):
            raw[i] = _remembered(requests[i], requests[i].mean @ cov.means + product)
    gradients = []
    for request, gradient in zip(requests, raw):
        assert gradient is not None
        gradient[request.features] += request.tau * (1.0 - request.bias.ratio) * request.w
        gradient *= 2.0 / request.bias.denominator
        gradients.append(gradient)
    return gradients


def _estimate(request: GradientRequest) -> Float64Array | None:
    """The gradient before it is scaled, if the references are enough."""
    if request.references is None or request.threshold is None or request.known is None:
        return None
    u = request.cov.row_vector(request.term, request.mean)
    if u is None:
        return None
    threshold = request.threshold * (0.5 * request.bias.denominator)
    return request.references.gradient(u, threshold, request.known)


def _remembered(request: GradientRequest, gradient: Float64Array) -> Float64Array:
    """The same gradient, remembered as a reference for others."""
    if request.references is not None:
        u = request.cov.row_vector(request.term, request.mean)
        if u is not None:
            request.references.add(u, gradient.copy())
    return gradient


def full_gradient(
    cov: Covariances,
    plane: OneVsRest,
    tau: float,
    features: IntArray,
    w: Float64Array,
    bias: Bias,
) -> Float64Array:
    """The gradient for all features of a w that is non-zero on ``features`` only."""
    return full_gradients([GradientRequest(cov, plane, tau, features, w, bias)])[0]


def cached_gradient(request: GradientRequest) -> tuple[IntArray, Float64Array] | None:
    """The features whose gradient costs no pass, and that gradient where w is zero.

    None where a pass is cheap, so that `full_gradient` serves.
    """
    seen = request.cov.cached_product(request.spread, request.features, request.w)
    if seen is None:
        return None
    index, g = seen
    g = g + request.mean @ request.cov.means[:, index]
    return index, g * (2.0 / request.bias.denominator)


# ------------------------------------------------------------------------------------ rounds

_Found = TypeVar("_Found")
#: Yields the requests of a round, is sent their gradients and returns what it has found.
Rounds = Generator[list[GradientRequest], list[Float64Array], _Found]


def run_to_end(solver: Rounds[_Found]) -> _Found:
    """Run a solver to its end and return what it found."""
    try:
        requests = next(solver)
        while True:
            requests = solver.send(full_gradients(requests))
    except StopIteration as stop:
        return stop.value


def together(solvers: Sequence[Rounds[_Found]]) -> Rounds[list[_Found]]:
    """Run solvers side by side: one round asks for what all that are not done ask for."""
    results: dict[int, _Found] = {}
    gradients: dict[int, list[Float64Array] | None] = dict.fromkeys(range(len(solvers)))
    while gradients:
        asked: dict[int, list[GradientRequest]] = {}
        for index, answer in gradients.items():
            try:
                asked[index] = solvers[index].send(answer)  # type: ignore[arg-type]
            except StopIteration as stop:
                results[index] = stop.value
        gradients = {}
        if asked:
            answers = yield [request for requests in asked.values() for request in requests]
            for index, requests in asked.items():
                gradients[index] = answers[: len(requests)]
                answers = answers[len(requests) :]
    return [results[index] for index in range(len(solvers))]
