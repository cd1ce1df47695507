"""From labelled rows or moments to the problem of a plane."""

from __future__ import annotations

from typing import Literal

import numpy as np

from .._typing import Float64Array, IntArray
from ..linalg import ClassMoments, Covariances, DataCovariances, Matrix, MomentCovariances
from ..linalg._moments import scatter_by_class
from .penalties import make_penalty
from .quotient import Plane
from .working_set import Problem

Method = Literal["auto", "moments", "working_set"]


def choose_method(n_samples: int, n_features: int) -> Literal["moments", "working_set"]:
    """Moments where forming them costs less than the passes of a path over the data."""
    if n_features <= 200 or (n_features <= 1000 and n_samples >= 10 * n_features):
        return "moments"
    return "working_set"


def make_covariances(
    matrix: Matrix,
    codes: IntArray,
    weight: Float64Array | None,
    n_classes: int,
    *,
    standardize: bool,
    method: Method = "auto",
) -> Covariances:
    """Covariances of labelled rows by the method that suits their shape."""
    if method == "auto":
        method = choose_method(*matrix.shape)
    if method == "moments":
        moments = ClassMoments(
            np.arange(n_classes), *scatter_by_class(matrix, codes, weight, n_classes)
        )
        return MomentCovariances(moments, standardize)
    if method == "working_set":
        return DataCovariances(matrix, codes, weight, n_classes, standardize)
    raise ValueError(f'method must be "auto", "moments" or "working_set", got {method!r}')


def make_problem(
    cov: Covariances,
    i: int,
    *,
    tau: float,
    pool: float,
    q: float,
    eps: float,
    weights: Float64Array | None = None,
    newton: bool = True,
) -> Problem:
    """The problem of class i's plane."""
    return Problem(
        cov=cov,
        plane=Plane.of_class(i, cov.share, pool),
        tau=tau,
        penalty=make_penalty(q, eps),
        weights=np.ones(cov.means.shape[1]) if weights is None else weights,
        newton=newton,
        whole=isinstance(cov, MomentCovariances),
    )


def check_definite(cov: Covariances, plane: Plane) -> None:
    """Refuse tau = 0 where some direction has no distances at all: the quotient is 0/0 there."""
    features = np.flatnonzero(cov.standardization.varying)
    singular = len(features) >= cov.n_samples
    if not singular:
        cov.extend(features)
        total = cov.blocks(features, (plane.own + plane.other)[None])[0]
        contrast = (plane.other_mean - plane.own_mean) @ cov.means[:, features]
        total += np.multiply.outer(contrast, contrast)
        values = np.linalg.eigvalsh(total)
        singular = bool(values[0] <= 1e-13 * values[-1])
    if singular:
        raise ValueError(
            "tau = 0 leaves the quotient 0/0 on directions in which no row differs "
            "(more features than rows, or collinear features): use tau > 0"
        )
