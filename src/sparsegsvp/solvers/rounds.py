"""Solving in rounds, so that many problems share every pass over the data.

A solver that needs the gradient over all features does not compute it: it is a generator
that yields *requests* and is sent the gradients. `run` answers those of one solver;
`together` makes one solver of many, whose requests of a round are answered in one pass. What
a solver finds depends on its own requests alone, so not on those it is run with.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TypeVar

from .._typing import Float64Array
from .quotient import GradientRequest, full_gradients

Result = TypeVar("Result")
#: Yields the requests of a round, is sent their gradients and returns what it has found.
Rounds = Generator[list[GradientRequest], list[Float64Array], Result]


def run(solver: Rounds[Result]) -> Result:
    """Run a solver to its end and return what it found."""
    try:
        requests = next(solver)
        while True:
            requests = solver.send(full_gradients(requests))
    except StopIteration as stop:
        return stop.value


def together(solvers: Sequence[Rounds[Result]]) -> Rounds[list[Result]]:
    """Run solvers side by side: one round asks for what all that are not done ask for."""
    results: dict[int, Result] = {}
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
