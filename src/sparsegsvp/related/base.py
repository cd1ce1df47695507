"""What the related methods share: classes of samples, panels of features, pairs of planes.

Notation, here and in the methods: ``A`` and ``B`` hold the (standardised) samples of the first
and the second class, ``z = [w; b]`` is a plane ``x'w + b = 0``, and

    G = [A e]'[A e] / n_A ,      H = [B e]'[B e] / n_B .

Both are means per class: an unbalanced table tilts no quotient.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg, sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import ClassifierTags

from .._typing import Array, IntArray
from .._validate import (
    check_choice,
    check_integer,
    check_n_features,
    check_real,
    forget_fit,
    warn_caller,
    warn_constant,
)
from ..estimators.pgd import NearerPlane, read_dense
from ..estimators.pipeline import SupportSelector
from ..linalg.moments import standardisation

# The end of the parameters and the start of the attributes in the docstrings of all methods, which
# refer to them as %(planes)s or %(selector)s; and the parameters of iterations.
_SELECTOR = """\
n_features : int or None, default=None
    Size of the panel; None leaves it to the method, in plane classifiers to the features with a
    weight. With a number these solve again on the heaviest, without a sparse penalty.
standardize : bool, default=True
    Scale features to mean 0 and variance 1 first. Selectors centre them in any case.

Attributes
----------
classes_ : ndarray of shape (n_classes,)
support_ : ndarray of shape (n_features_in_,), bool
    The panel.
feature_order_ : ndarray of shape (n_features_in_,), int
    All features, the most important first.
"""
_PLANES = """\
planes_, plane_intercepts_ : ndarray of shapes (2, n_features_in_) and (2,)
    One plane per class in the units of X; ``X @ planes_.T + plane_intercepts_`` are signed
    distances in standardised units.
objective_ : ndarray of shape (2,)
    What is minimised above, for the plane of each class on all features.
n_iter_, history_ : int and list of two ndarray
    Of iterations: the larger number of steps, and each plane's objective step by step.
"""
_STEPS = """\
tol, max_iter : float and int
    Stop when a step improves the objective by less than `tol`, relatively, or at `max_iter`.
"""
_SHARED_DOCS = {"selector": _SELECTOR, "planes": _SELECTOR + _PLANES, "steps": _STEPS}


def with_bias(A: Array) -> Array:
    """Append the column of ones that multiplies the bias."""
    return np.column_stack([A, np.ones(len(A))])


def flat_plane(m: int) -> Array:
    """The plane w = 0."""
    return np.append(np.zeros(m), 1.0)


def moment_factor(A: Array) -> Array:
    """``[A e] / sqrt(n_A)``, the factor F of ``G = F'F``."""
    return with_bias(A) / np.sqrt(len(A))


def shorten(F: Array) -> Array:
    """Return the triangular factor of a tall F, with the same ``F'F``, and any other F itself."""
    if len(F) <= F.shape[1]:
        return F
    return linalg.qr(F, mode="r", check_finite=False)[0][: F.shape[1]]


def second_moment(A: Array) -> Array:
    """``A'A / n``, symmetric to the last bit."""
    return A.T @ A / len(A)


def eigenpair(N: Array, D: Array, index: int) -> tuple[float, Array]:
    """Return an eigenvalue of ``N z = mu D z``, 0 for the smallest or -1 for the largest, and z."""
    index %= len(N)
    mu, Z = linalg.eigh(N, D, subset_by_index=[index, index], check_finite=False)
    return float(mu[0]), Z[:, 0]


def row_space(blocks: Sequence[Array], *, bias: bool = True) -> tuple[list[Array], Any]:
    """Return class blocks in an orthonormal basis of their rows, ``z = basis @ u``, and the basis.

    Where a component of z outside only raises ``||z||`` in a numerator, the reduction is exact.
    """
    sizes = np.cumsum([len(block) for block in blocks])
    n, m = int(sizes[-1]), blocks[0].shape[1]
    if m + bias <= n:
        return [with_bias(block) if bias else block for block in blocks], sparse.eye_array(m + bias)
    stacked = np.empty((m + bias, n), order="F")
    np.concatenate([block.T for block in blocks], axis=1, out=stacked[:m])
    stacked[m:] = 1.0
    basis, R = linalg.qr(stacked, mode="economic", overwrite_a=True, check_finite=False)
    return [part.T.copy() for part in np.split(R, sizes[:-1], axis=1)], basis


class ClassBlocks(NamedTuple):
    """The samples of each class on standardised features; a constant one duplicates the bias."""

    blocks: list[Array]
    features: IntArray  # the input feature of each column
    mean: Array  # what was taken away: zeros and ones where it was nothing
    scale: Array


def order_features(weight: Array, score: Array | None = None) -> IntArray:
    """Rank features by weight, those without one by score; equal to ten digits, by index."""

    def digits(values: Array) -> Array:
        return -np.round(np.abs(values) / max(np.abs(values).max(), 1e-300), 10)

    tie_break = np.zeros(len(weight)) if score is None else np.where(weight == 0, score, 0.0)
    return np.lexsort((np.arange(len(weight)), digits(tie_break), digits(weight), weight == 0))


@dataclass(eq=False, repr=False, kw_only=True)
class PanelMethod(SupportSelector, BaseEstimator):
    """A supervised method that ranks all features and selects a panel.

    A method gives ``_fit(problem, size)``, which ends with :meth:`_set_panel`. Its parameters are
    dataclass fields, numbers positive unless `_rules` has other bounds; it has choices as a tuple.
    """

    n_features: int | None = None
    standardize: bool = True
    _rules: ClassVar[dict[str, Any]] = {}
    _multiclass: ClassVar[bool] = False
    _centred: ClassVar[bool] = True  # unless standardised; it would change planes with a ridge

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.__doc__ = inspect.cleandoc(cls.__doc__ or "")
        for name, shared in _SHARED_DOCS.items():
            cls.__doc__ = cls.__doc__.replace(f"%({name})s\n", shared)

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit the method to samples of classes, each with at least two, and choose the panel."""
        self._check_parameters()
        forget_fit(self)
        problem, size = self._read(X, y), self.n_features
        self._fit(problem, None if size is None else check_n_features(size, len(problem.features)))
        return self

    def _check_parameters(self) -> None:
        for field in fields(self):
            name, value = field.name, getattr(self, field.name)
            rule = {"tol": {"least": 0}, **self._rules}.get(name, {"above": 0})
            if isinstance(rule, tuple):
                check_choice(name, value, rule)
            elif field.type is float:
                check_real(name, value, **rule)
            elif field.type is int:
                check_integer(name, value, least=1)

    def _read(self, X: ArrayLike, y: ArrayLike) -> ClassBlocks:
        """Validate training data, set what scikit-learn sets, and cut the table by class."""
        table, codes = read_dense(self, X, y, multiclass=self._multiclass, dtype=np.float64)
        mean = table.mean(axis=0)
        varying, scale = standardisation(mean, table.var(axis=0), self.standardize)
        if not varying.any():
            raise ValueError(
                "every feature of X is constant, so there is nothing to separate the classes "
                "with: check how X was read and filtered"
            )
        warn_constant(np.flatnonzero(~varying), getattr(self, "feature_names_in_", None))
        features = np.flatnonzero(varying)
        mean, scale = mean[features] * (self.standardize or self._centred), scale[features]
        blocks = [table[np.ix_(codes == k, features)] for k in range(len(self.classes_))]
        for block in blocks:
            np.divide(np.subtract(block, mean, out=block), scale, out=block)
        return ClassBlocks(blocks, features, mean, scale)

    def _set_panel(self, problem: ClassBlocks, order: IntArray, chosen: IntArray) -> None:
        """Store the panel and all columns in order, constant features last, as the input's."""
        self.support_ = np.zeros(self.n_features_in_, dtype=bool)
        self.support_[problem.features[chosen]] = True
        constant = np.setdiff1d(np.arange(self.n_features_in_), problem.features)
        self.feature_order_ = np.concatenate([problem.features[order], constant])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        # also where it is no classifier: its targets are those of one
        tags.classifier_tags = ClassifierTags(multi_class=self._multiclass)
        return tags


@dataclass(frozen=True)
class PlaneFit:
    """A plane ``z = [w; b]``, of any scale, on the columns of the class blocks."""

    z: Array
    history: Sequence[float]  # the objective from the start on, or the value of a direct solution
    score: Array | None = None  # of sparse methods: larger is nearer to entering the plane
    n_iter: int = 0
    converged: bool = True

    @property
    def objective(self) -> float:
        """Value of the method's problem, at the scale the method works in."""
        return self.history[-1]

    def normalized(self, A: Array, B: Array) -> tuple[Array, float]:
        """Return w and b with ``||w|| = 1`` and the heaviest weight positive."""
        w, b = self.z[:-1], float(self.z[-1])
        # where the class means coincide the bias alone may be the best plane, up to rounding
        reach = max(np.abs(A @ w).max(), np.abs(B @ w).max())
        if not reach > 1e-10 * abs(b):
            raise ValueError(
                "a plane came out without a direction (w = 0): the data leave nothing to choose "
                "by; lower the penalty, or check for duplicated samples and equal class means"
            )
        norm = np.copysign(np.linalg.norm(w), w[np.abs(w).argmax()])
        return w / norm, b / norm


def lowest(planes: Iterable[PlaneFit], margin: float) -> PlaneFit:
    """Return the plane of lowest objective; where two agree to a relative margin, the earlier."""
    best, *others = planes
    for other in others:
        if other.objective < best.objective - margin * abs(best.objective):
            best = other
    return best


class PlanePairClassifier(PanelMethod, NearerPlane):
    """A classifier that fits a plane to each class and decides by the nearer one.

    A method gives ``_fit_plane(A, B)``, for the plane near the first block and far from the second.
    The panel is the union of the planes' non-zero features or, with ``n_features``, as many of the
    heaviest, on which :meth:`_refit_plane` finds planes without a sparse penalty.
    """

    _centred = False

    def _refit_plane(self, A: Array, B: Array) -> PlaneFit:
        return self._fit_plane(A, B)

    def _fit_planes(self, A: Array, B: Array, refit: bool = False) -> tuple[PlaneFit, PlaneFit]:
        fit = self._refit_plane if refit else self._fit_plane
        return fit(A, B), fit(B, A)

    def _fit(self, problem: ClassBlocks, size: int | None) -> None:
        A, B = problem.blocks
        planes = kept = self._fit_planes(A, B)
        late = " and ".join(str(i) for i, plane in enumerate(planes) if not plane.converged)
        if late:
            warn_caller(
                f"{type(self).__name__} stopped at max_iter before plane {late} converged: "
                "raise max_iter or tol, or penalise more",
                ConvergenceWarning,
            )
        weight = np.max([np.abs(plane.normalized(A, B)[0]) for plane in planes], axis=0)
        scores = [plane.score for plane in planes if plane.score is not None]
        order = order_features(weight, np.max(scores, axis=0) if scores else None)
        columns, chosen = np.arange(len(order)), np.flatnonzero(weight)
        if size is not None:
            columns = chosen = np.sort(order[:size])
            A, B = A[:, columns], B[:, columns]
            kept = self._fit_planes(A, B, refit=True)
        unit = [plane.normalized(A, B) for plane in kept]
        W = np.zeros((2, self.n_features_in_))
        # Back from standardised units to those of the input.
        W[:, problem.features[columns]] = [w / problem.scale[columns] for w, _ in unit]
        self.planes_ = W
        self.plane_intercepts_ = [b for _, b in unit] - W[:, problem.features] @ problem.mean
        self.objective_ = np.array([plane.objective for plane in planes])
        if hasattr(self, "max_iter"):
            self.n_iter_ = max(plane.n_iter for plane in planes)
            self.history_ = [np.asarray(plane.history, dtype=np.float64) for plane in planes]
        self._set_panel(problem, order, chosen)
