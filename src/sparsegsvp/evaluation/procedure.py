"""Estimators of any kind: how a fresh one is fitted, and what a fitted one says.

Works on anything scikit-learn shaped: selectors, classifiers that select, searches over
them, and pipelines, where a panel is traced back through the steps to the input columns.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.validation import has_fit_parameter

from .._typing import Float64Array, IntArray
from .._validate import close_names, find_columns
from ..estimators import GSVPSVM, GSVPSVMCV, Panel
from ..estimators.pipeline import takes_batch
from .cache import digest
from .splits import Fold, Samples

#: Sizes of the ladder.
SIZES = (1, 2, 3, 5, 8, 13, 21, 30)
#: Sizes whose best score is the statistic of the permutation test, if the procedure tunes its own.
TESTED_SIZES = (1, 3, 10)


def make_imputer() -> SimpleImputer:
    """Return the step that fills gaps by medians; a column without values stays, as zeros."""
    return SimpleImputer(strategy="median", keep_empty_features=True)


def last_step(model: Any) -> Any:
    """Return the last step of a pipeline, the best model of a search, or the model itself."""
    while hasattr(model, "best_estimator_") or isinstance(model, Pipeline):
        model = model.steps[-1][1] if isinstance(model, Pipeline) else model.best_estimator_
    return model


def with_seed(estimator: Any, seed: int) -> Any:
    """Set every ``random_state`` that is None, so that a fit can be repeated."""
    unset = {
        name: seed
        for name, value in estimator.get_params(deep=True).items()
        if (name == "random_state" or name.endswith("__random_state")) and value is None
    }
    return estimator.set_params(**unset) if unset else estimator


def fit_parameters(
    estimator: Any, groups: Any = None, batch: Any = None, sample_weight: Any = None
) -> dict[str, Any]:
    """Return the keywords by which an estimator takes groups, batches and weights, if it does."""
    steps = estimator.steps if isinstance(estimator, Pipeline) else [("", estimator)]
    prefix = f"{steps[-1][0]}__" if isinstance(estimator, Pipeline) else ""
    last, given = steps[-1][1], {}
    if groups is not None and _takes_groups(last):
        given[f"{prefix}groups"] = groups
    if sample_weight is not None and has_fit_parameter(last, "sample_weight"):
        given[f"{prefix}sample_weight"] = sample_weight
    if batch is not None and prefix:
        given |= {f"{name}__batch": batch for name, step in steps if takes_batch(step)}
    return given


def _takes_groups(estimator: Any) -> bool:
    parameters = inspect.signature(estimator.fit).parameters
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    return "groups" in parameters or (takes_any and "cv" in estimator.get_params(deep=False))


def inner_steps(estimator: Any) -> list[tuple[str, Any]]:
    """Return the steps of a pipeline before the last that do anything; none of other estimators."""
    steps = estimator.steps[:-1] if isinstance(estimator, Pipeline) else []
    return [(name, step) for name, step in steps if step is not None and step != "passthrough"]


@dataclass(frozen=True)
class Procedure:
    """An estimator with the samples that clones of it are fitted on and tested with."""

    estimator: Any
    samples: Samples
    params: Mapping[str, Any] = field(default_factory=dict)  # of fit; if as long as X, its rows

    def _of(self, name: str, rows: IntArray) -> NDArray[Any] | None:
        """Return groups, or the first batch variable, of some rows."""
        values: NDArray[Any] | None = self.samples.groups
        if name == "batch":
            values = next(iter(self.samples.batches.values()), None)
        return None if values is None else values[rows]

    def _labels(self, rows: IntArray, codes: IntArray | None) -> NDArray[Any]:
        return self.samples.y[rows] if codes is None else self.samples.classes[codes[rows]]

    def fit(self, rows: IntArray, seed: int, codes: IntArray | None = None) -> Any:
        """Return a clone, its seeds set, fitted on some rows, with other labels if given."""
        given = fit_parameters(self.estimator, self._of("groups", rows), self._of("batch", rows))
        for name, value in self.params.items():
            long = np.shape(value)[:1] == self.samples.codes.shape
            given[name] = _safe_indexing(value, rows) if long else value
        X, y = _safe_indexing(self.samples.X, rows), self._labels(rows, codes)
        return with_seed(clone(self.estimator), seed).fit(X, y, **given)

    def fit_sizes(
        self,
        rows: IntArray,
        sizes: Sequence[int],
        seed: int,
        codes: IntArray | None = None,
        *,
        sizes_only: bool = False,
    ) -> SizedFits:
        """Return a clone and models of some sizes, from one path, fitted on some rows."""
        if not sizes:
            return SizedFits(self.fit(rows, seed, codes), self.estimator, [], {})
        estimator, y = with_seed(clone(self.estimator), seed), self._labels(rows, codes)
        steps, last = inner_steps(estimator), last_step(estimator)
        X = self.prepare(steps, rows, y, fit=True)
        if sizes_only:
            return SizedFits(None, self.estimator, steps, last.fit_path(X, y, list(sizes)))
        given = fit_parameters(last, self._of("groups", rows))
        return SizedFits(estimator, self.estimator, steps, last.fit_with_path(X, y, sizes, **given))

    def prepare(
        self, steps: Sequence[tuple[str, Any]], rows: IntArray, y: Any = None, *, fit: bool = False
    ) -> Any:
        """Return rows as steps of a pipeline transform them, fitted on them first if asked."""
        X = _safe_indexing(self.samples.X, rows)
        for _, step in steps:
            more = {"batch": self._of("batch", rows)} if takes_batch(step) else {}
            X = step.fit_transform(X, y, **more) if fit else step.transform(X, **more)
        return X

    def predict(self, model: Any, rows: IntArray) -> Answer:
        """Return what a fitted clone says of some rows."""
        steps = inner_steps(model)
        if any(takes_batch(step) for _, step in steps):
            return answer(model.steps[-1][1], self.prepare(steps, rows), self.samples.classes)
        return answer(model, _safe_indexing(self.samples.X, rows), self.samples.classes)


@dataclass(frozen=True)
class SizedFits:
    """Models of several sizes behind the same fitted steps of a pipeline, if there are any."""

    own: Any  # the fitted procedure itself, unless only the sizes were asked for
    estimator: Any
    steps: list[tuple[str, Any]]
    models: Mapping[int, Any]

    def model(self, size: int) -> Any:
        """Return the model of a size, as a pipeline of the same kind if one was given."""
        if not isinstance(self.estimator, Pipeline):
            return self.models[size]
        name = self.estimator.steps[-1][0]
        return type(self.estimator)([*self.steps, (name, self.models[size])])


def possible_sizes(estimator: Any, sizes: Sequence[int], n_features: int) -> tuple[int, ...]:
    """Return those sizes that a procedure with a path can have; () for one without.

    Features without a penalty are in every panel, and those with an infinite one in none.
    """
    last = last_step(estimator)
    if not sizes or not hasattr(last, "fit_path"):
        return ()
    least, most = 1, n_features
    factors = getattr(last, "penalty_factor", None)
    if isinstance(factors, np.ndarray | list | tuple):
        least, most = max(1, int(np.sum(np.asarray(factors) == 0))), int(np.isfinite(factors).sum())
    possible = tuple(size for size in sorted(set(sizes)) if least <= size <= most)
    return possible or (min(least, most),)


def tested_sizes(estimator: Any, n_features: int) -> tuple[int, ...]:
    """Return the sizes whose best score is the permutation test's statistic; () without a path."""
    last = last_step(estimator)
    size, factors = (getattr(last, name, None) for name in ("n_features", "penalty_factor"))
    always = 0 if factors is None else int(np.sum(np.asarray(factors) == 0))
    sizes = [always + k for k in TESTED_SIZES] if size is None else [size]
    return possible_sizes(estimator, sizes, n_features)


@dataclass(frozen=True)
class PathScores:
    """Out-of-fold scores of exactly k features, for many labellings of the same rows.

    A fold costs one path, whose class scores judge every size: no model is fitted on the panels.
    What does not look at labels is done once: the steps of a pipeline, and the floor tau.
    """

    search: GSVPSVMCV
    X: Any  # in the canonical order of the rows
    order: IntArray

    @classmethod
    def of(cls, procedure: Procedure, sizes: Sequence[int], seed: int) -> PathScores | None:
        """Return the scores of a procedure's path; None if a step before it may use labels."""
        last, steps = last_step(procedure.estimator), inner_steps(clone(procedure.estimator))
        if any(get_tags(s).target_tags.required or hasattr(s, "predict") for _, s in steps):
            return None
        samples = procedure.samples
        rows = samples.order
        X = procedure.prepare(steps, rows, fit=True)
        shared = ("tau", "clip", "max_correlation", "penalty_factor", "standardize")
        options = {name: last.get_params(deep=False)[name] for name in shared}
        if options["tau"] is None:
            labels = np.random.default_rng(seed).permutation(samples.codes[rows])
            options["tau"] = GSVPSVM(1, clip=last.clip).fit(X, labels).tau_
        options |= {"max_features": max(sizes), "decision": "discriminant"}
        return cls(GSVPSVMCV(**options), X, rows)

    def best(self, codes: IntArray, folds: Sequence[Fold], sizes: Sequence[int]) -> float:
        """Return the best balanced accuracy over some sizes."""
        place = np.argsort(self.order)
        cv = [(np.sort(place[fold.train]), np.sort(place[fold.test])) for fold in folds]
        search = clone(self.search).set_params(cv=cv)
        scores = search._search(self.X, codes[self.order])[1]["balanced_accuracy"]
        # sums of weights round differently in another order
        return round(float(max(scores[min(size, scores.size) - 1] for size in sizes)), 12)


@dataclass(frozen=True)
class Answer:
    """What a model says of some rows: codes of classes, and one column per class or None."""

    predicted: IntArray
    decision: Float64Array | None
    proba: Float64Array | None
    distances: Float64Array | None = None


def answer(model: Any, X: Any, classes: NDArray[Any]) -> Answer:
    """Return what a model says of rows of X, for all the classes of the samples."""
    predicted = np.searchsorted(classes, model.predict(X))
    decision, proba = class_scores(model, X)
    distances = None
    planes = getattr(model, "distances", None)
    if callable(planes):
        distances = np.asarray(planes(X), dtype=np.float64)
        distances = distances if distances.shape == (predicted.size, classes.size) else None
    return Answer(predicted, decision, proba, distances)


def class_scores(model: Any, X: Any) -> tuple[Float64Array | None, Float64Array | None]:
    """Return decision values, or what ranks alike, and probabilities, one column per class."""
    proba = decision = None
    if hasattr(model, "predict_proba"):
        proba = np.clip(np.asarray(model.predict_proba(X), dtype=np.float64), 0.0, 1.0)
    if hasattr(model, "decision_function"):
        values = np.asarray(model.decision_function(X), dtype=np.float64)
        n_classes = len(model.classes_)
        if values.ndim == 1 or values.shape[1] == 1:
            decision = np.column_stack([-values.ravel(), values.ravel()])
        elif values.shape[1] == n_classes:
            decision = values
    if decision is None or not np.isfinite(decision).all():
        decision = proba
    return decision, proba


def estimator_prior(model: Any, n_classes: int) -> Float64Array | None:
    """Return the class shares that ``prior_`` or class weights say probabilities are for."""
    last = last_step(model)
    prior = getattr(last, "prior_", None)
    if prior is not None and not isinstance(prior, str):
        shares = np.asarray(prior, dtype=np.float64)
        return shares if shares.shape == (n_classes,) else np.full(n_classes, 1 / n_classes)
    balanced = getattr(last, "class_weight", None) == "balanced"
    return np.full(n_classes, 1 / n_classes) if prior is not None or balanced else None


def selected_features(model: Any, n_features: int) -> IntArray | None:
    """Return the input features that a fitted estimator uses, in the order chosen where known."""
    result = None
    for step, columns in _trace(model, n_features):
        if columns is None:
            return None
        support = _support(step)
        if support is None:
            continue
        order = getattr(step, "feature_order_", None)
        if order is not None and set(support.tolist()) == set(np.asarray(order).tolist()):
            support = np.asarray(order, dtype=np.intp)
        result = columns[support]
    return result


def panel_of(model: Any, n_features: int) -> tuple[int, ...] | None:
    """Return `selected_features` as a tuple."""
    features = selected_features(model, n_features)
    return None if features is None else tuple(features.tolist())


def ranked_features(model: Any, n_features: int) -> IntArray:
    """Return the input features a fitted estimator ranks: first those that its last step ranks."""
    order: list[int] = []
    for step, columns in _trace(model, n_features):
        own = None if columns is None else _order(step)
        if own is not None and columns is not None:
            order = [*columns[own].tolist(), *order]
    return np.array(list(dict.fromkeys(order)), dtype=np.intp)


def exact_panel(model: Any, size: int, n_features: int) -> IntArray:
    """Return exactly ``size`` features: a fitted estimator's panel, cut or filled by its order."""
    order = ranked_features(model, n_features)
    own = selected_features(model, n_features)
    if own is None and not order.size:
        raise ValueError(
            f"{type(model).__name__} says neither which features it uses "
            "(get_support, coef_) nor how it ranks them (feature_order_, ranking_, scores_)."
        )
    own = order[:0] if own is None else own
    inside = np.isin(order, own)
    return np.concatenate([order[inside], np.setdiff1d(own, order), order[~inside]])[:size]


def _trace(model: Any, n_features: int) -> Iterator[tuple[Any, IntArray | None]]:
    """Yield each step with the input columns it sees (None once they cannot be traced)."""
    while hasattr(model, "best_estimator_"):
        model = model.best_estimator_
    steps = [model]
    if isinstance(model, Pipeline):
        steps = [step for _, step in (*inner_steps(model), model.steps[-1])]
    columns: IntArray | None = np.arange(n_features)
    for step, following in zip(steps, [*steps[1:], None]):
        yield getattr(step, "best_estimator_", step), columns
        if columns is not None and following is not None:
            kept = _kept_columns(step, columns.size, following)
            columns = None if kept is None else columns[kept]


def _kept_columns(step: Any, n_in: int, following: Any) -> IntArray | None:
    """Return which of its inputs a transformer hands on, or None if they are mixed."""
    if hasattr(step, "get_support"):
        return np.flatnonzero(step.get_support())
    names = getattr(step, "feature_names_in_", [f"column {j}" for j in range(n_in)])
    try:
        out = step.get_feature_names_out(names)
    except (AttributeError, ValueError):
        same = getattr(following, "n_features_in_", None) == n_in
        return np.arange(n_in) if same else None
    where = {name: j for j, name in enumerate(names)}
    if any(name not in where for name in out):
        return None
    return np.array([where[name] for name in out], dtype=np.intp)


def _weights(step: Any) -> Float64Array | None:
    """Return one non-negative weight per feature of a linear model or a forest."""
    weights = getattr(step, "coef_", None)
    if weights is None:
        weights = getattr(step, "feature_importances_", None)
    if weights is None:
        return None
    weights = weights.toarray() if sparse.issparse(weights) else np.asarray(weights)
    return np.linalg.norm(np.atleast_2d(weights), axis=0)


def by_weight(weights: Float64Array) -> IntArray:
    """Order the features that have a weight by its size."""
    return np.argsort(-weights, kind="stable")[: np.count_nonzero(weights)]


def _support(step: Any) -> IntArray | None:
    if hasattr(step, "get_support"):
        return np.flatnonzero(step.get_support())
    weights = _weights(step)
    return None if weights is None else np.flatnonzero(weights)


def _order(step: Any) -> IntArray | None:
    """Return ``feature_order_``, or what weights, ``ranking_`` or ``scores_`` rank first."""
    if hasattr(step, "feature_order_"):
        return np.asarray(step.feature_order_, dtype=np.intp)
    weights = _weights(step)
    if weights is not None:
        return by_weight(weights)
    if hasattr(step, "ranking_"):
        return np.argsort(np.asarray(step.ranking_), kind="stable")
    if hasattr(step, "scores_"):
        return np.argsort(-np.nan_to_num(step.scores_, nan=-np.inf), kind="stable")
    # SelectFromModel ranks by what it wraps
    return _order(step.estimator_) if hasattr(step, "estimator_") else None


def find_adjusted(adjust: Any, n_features: int, names: Sequence[str] | None) -> tuple[int, ...]:
    """Return the columns to adjust for, ascending, from their names or numbers."""
    if adjust is None:
        return ()
    given = [adjust] if isinstance(adjust, str | Integral) else list(adjust)
    places, absent = find_columns(given, names, n_features)
    if absent:
        close = close_names(str(absent[0]), names or ())
        hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
        raise ValueError(
            f"adjust holds {absent[0]!r}, which is no feature: give names of columns (of a data "
            f"frame or feature_names) or numbers from 0 to {n_features - 1}.{hint}"
        )
    return tuple(sorted(set(places)))


def always_with(estimator: Any, columns: Sequence[int], n_features: int) -> Any:
    """Return a clone of a procedure that has these columns in every panel, without a penalty."""
    model = last_step(estimator)
    if "penalty_factor" not in model.get_params(deep=False):
        raise ValueError(
            "adjust needs a method that takes penalty_factor, such as GSVPSVMCV, alone or at the "
            f"end of a pipeline, got {type(model).__name__}."
        )
    factors = model.penalty_factor
    factors = np.ones(n_features) if factors is None else np.array(factors, dtype=np.float64)
    if factors.shape != (n_features,):
        raise ValueError("adjust needs penalty_factor as one number for each feature, or None.")
    if np.isinf(factors[list(columns)]).any():
        raise ValueError("a feature that is adjusted for has an infinite penalty_factor.")
    factors[list(columns)] = 0.0
    again = clone(estimator)
    last_step(again).set_params(penalty_factor=factors)
    return again


def only_with(estimator: Any, columns: Sequence[int]) -> Any:
    """Return a clone of a procedure that knows these columns alone, and has all in its panel."""
    again = clone(estimator)
    # the steps before the last treat every column by itself, and see all of them
    steps = again.steps if isinstance(again, Pipeline) else [("model", again)]
    model = steps[-1][1].set_params(penalty_factor=np.zeros(len(columns)))
    for name in ("n_features", "max_features"):
        if model.get_params(deep=False).get(name) is not None:
            model.set_params(**{name: len(columns)})
    return Pipeline([*steps[:-1], ("these alone", Panel(tuple(columns))), steps[-1]])


def describe(estimator: Any) -> str:
    """Describe an estimator by all its parameters, the same in every process."""
    parts = []
    for name, value in sorted(estimator.get_params(deep=True).items()):
        if hasattr(value, "get_params"):
            value = type(value)  # its parameters come with their own names
        long = isinstance(value, np.ndarray | list | tuple) and len(value) > 20
        parts.append(f"{name}={digest(value) if long else repr(value)}")
    return re.sub(r" at 0x[0-9a-f]+", "", f"{type(estimator).__qualname__}({', '.join(parts)})")
