"""Estimators of any kind: the features that a fitted one selected, and how a fresh one is fitted.

Works on anything scikit-learn shaped: selectors, classifiers that select, searches over
them, and pipelines, where a panel is traced back through the steps to the input columns.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.feature_selection import SelectKBest
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from .._typing import Float64Array, IntArray
from ..estimators.center import takes_batch
from ..linalg.matrix import dense
from ..metrics import StabilityIndex, nogueira_stability

# ------------------------------------------------------------------ reading a fitted one


def selected_features(estimator: Any, n_features: int) -> IntArray | None:
    """Return the input features that a fitted estimator uses, ascending.

    Parameters
    ----------
    estimator : fitted estimator
        A selector (``get_support``), a linear model (non-zero ``coef_``), a search over
        one, or a pipeline that holds one.
    n_features : int
        Number of input columns.

    Returns
    -------
    ndarray of int, or None
        None when nothing in it says which features it uses.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.feature_selection import SelectKBest
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sparsegsvp.evaluation import selected_features
    >>> X = np.array([[0.1, 1, 5], [0, 2, 6], [1, 1, 1], [1.1, 2, 2]])
    >>> pipe = make_pipeline(SelectKBest(k=2), LogisticRegression()).fit(X, [0, 0, 1, 1])
    >>> selected_features(pipe, 3)
    array([0, 2])
    """
    found = None
    for step, columns in _trace(estimator, n_features):
        if columns is None:
            return None
        support = _own_support(step)
        if support is not None:
            found = columns[support]
    return None if found is None else np.sort(found)


def ranked_features(estimator: Any, n_features: int) -> IntArray:
    """Return the input features a fitted estimator ranks, most important first.

    Read from ``feature_order_``, else the size of ``coef_``, ``ranking_``, ``scores_`` or
    ``feature_importances_``; features with weight zero are not ranked. In a pipeline the
    last ranking step comes first and earlier ones continue where it ends.
    """
    order: list[int] = []
    for step, columns in _trace(estimator, n_features):
        own = None if columns is None else _own_order(step)
        if own is not None and columns is not None:
            order = [*columns[own].tolist(), *order]
    return np.array(list(dict.fromkeys(order)), dtype=np.intp)


def exact_panel(estimator: Any, size: int, n_features: int) -> IntArray:
    """Return exactly ``size`` features of a fitted estimator, ascending.

    Its own panel, cut or filled by its own order. Fewer only when it ranks fewer.
    """
    order = ranked_features(estimator, n_features)
    own = selected_features(estimator, n_features)
    if own is None:
        if not order.size:
            raise ValueError(
                f"{type(estimator).__name__} says neither which features it uses "
                "(get_support, coef_) nor how it ranks them (feature_order_, ranking_, scores_)."
            )
        own = np.empty(0, dtype=np.intp)
    inside = np.isin(order, own)
    unranked = np.setdiff1d(own, order)
    return np.sort(np.concatenate([order[inside], unranked, order[~inside]])[:size])


def panel_stability(panels: Any, n_features: int) -> StabilityIndex:
    """Return Nogueira's index of panels from overlapping samples, without an interval.

    The known one supposes independent panels and is too narrow here.
    """
    return replace(nogueira_stability(panels, n_features), variance=None, low=None, high=None)


def _unwrap(estimator: Any) -> Any:
    """Return the estimator that a search chose, or what was given."""
    while hasattr(estimator, "best_estimator_"):
        estimator = estimator.best_estimator_
    return estimator


def _trace(estimator: Any, n_features: int) -> Iterator[tuple[Any, IntArray | None]]:
    """Yield each step with the input columns it sees (None once they cannot be traced)."""
    estimator = _unwrap(estimator)
    columns: IntArray | None = np.arange(n_features)
    if not isinstance(estimator, Pipeline):
        yield estimator, columns
        return
    steps = [_unwrap(s) for _, s in estimator.steps if s is not None and s != "passthrough"]
    for step, following in zip(steps, [*steps[1:], None]):
        yield step, columns
        if columns is not None and following is not None:
            kept = _kept_columns(step, columns.size, following)
            columns = None if kept is None else columns[kept]


def _kept_columns(step: Any, n_in: int, following: Any) -> IntArray | None:
    """Return which of its inputs a transformer hands on, or None if they are mixed."""
    if hasattr(step, "get_support"):
        return np.flatnonzero(step.get_support())
    names = [f"column {j}" for j in range(n_in)]
    own = getattr(step, "feature_names_in_", None)
    try:
        out = step.get_feature_names_out(names if own is None else own)
    except (AttributeError, ValueError):
        same = getattr(following, "n_features_in_", None) == n_in
        return np.arange(n_in) if same else None
    where = {name: j for j, name in enumerate(names if own is None else own)}
    if any(name not in where for name in out):
        return None
    return np.array([where[name] for name in out], dtype=np.intp)


def _weights(step: Any) -> Float64Array | None:
    """Return one non-negative weight per feature of a linear model or a forest."""
    coef = getattr(step, "coef_", None)
    if coef is not None:
        return np.linalg.norm(np.atleast_2d(dense(coef)), axis=0)
    importances = getattr(step, "feature_importances_", None)
    return None if importances is None else np.abs(np.asarray(importances))


def _own_support(step: Any) -> IntArray | None:
    if hasattr(step, "get_support"):
        return np.flatnonzero(step.get_support())
    weights = _weights(step)
    return None if weights is None else np.flatnonzero(weights)


def _own_order(step: Any) -> IntArray | None:
    if hasattr(step, "feature_order_"):
        return np.asarray(step.feature_order_, dtype=np.intp)
    weights = _weights(step)
    if weights is not None:
        return np.argsort(-weights, kind="stable")[: np.count_nonzero(weights)]
    if hasattr(step, "ranking_"):
        return np.argsort(np.asarray(step.ranking_), kind="stable")
    if hasattr(step, "scores_"):
        scores = np.asarray(step.scores_, dtype=np.float64)
        return np.argsort(-np.where(np.isnan(scores), -np.inf, scores), kind="stable")
    # SelectFromModel ranks by what it wraps
    return _own_order(step.estimator_) if hasattr(step, "estimator_") else None


# ------------------------------------------------------------------- preparing a fresh one


def with_size(estimator: Any, size: int) -> Any:
    """Return a clone asked for ``size`` features, where it has a parameter for that."""
    estimator = clone(estimator)
    name = _size_parameter(estimator)
    return estimator if name is None else estimator.set_params(**{name: size})


def _size_parameter(estimator: Any) -> str | None:
    params = estimator.get_params(deep=False)
    if isinstance(estimator, Pipeline):
        for name, step in reversed(estimator.steps):
            inner = _size_parameter(step) if isinstance(step, BaseEstimator) else None
            if inner is not None:
                return f"{name}__{inner}"
        return None
    # the last two mean other things elsewhere (neighbours, features per tree): selectors only
    names = ["n_features", "n_features_to_select"]
    names += ["k", "max_features"] if hasattr(type(estimator), "get_support") else []
    for name in names:
        if name in params:
            return name
    if "param_grid" in params or "param_distributions" in params:
        inner = _size_parameter(params["estimator"])
        return None if inner is None else f"estimator__{inner}"
    return None


def size_is_a_cut(estimator: Any) -> bool:
    """Tell whether the order is the same for every size, so that one fit serves them all."""
    if isinstance(estimator, Pipeline):
        sized = [s for _, s in estimator.steps if isinstance(s, BaseEstimator)]
        sized = [s for s in sized if _size_parameter(s) is not None]
        # a classifier at the end was fitted on one size, so its decisions differ with it
        return bool(sized) and sized[-1] is estimator.steps[-1][1] and size_is_a_cut(sized[-1])
    return isinstance(estimator, SelectKBest) or getattr(estimator, "order_ignores_size", False)


def with_seed(estimator: Any, seed: int) -> Any:
    """Set every ``random_state`` that is None, so that a fit can be repeated."""
    unset = {
        name: seed
        for name, value in estimator.get_params(deep=True).items()
        if (name == "random_state" or name.endswith("__random_state")) and value is None
    }
    return estimator.set_params(**unset) if unset else estimator


def fit_with_groups(estimator: Any, X: Any, y: Any, groups: Any, batch: Any = None) -> Any:
    """Fit, handing groups on to an estimator that tunes itself with them.

    Batches are handed to steps of a pipeline that centre them.
    """
    name = None if groups is None else _groups_parameter(estimator)
    given = {} if name is None else {name: groups}
    if batch is not None:
        given |= {f"{name}__batch": batch for name, _ in centring_steps(estimator)}
    return estimator.fit(X, y, **given)


def centring_steps(estimator: Any) -> list[tuple[str, Any]]:
    """Return the steps of a pipeline that are to be told the batch of each row."""
    steps = estimator.steps if isinstance(estimator, Pipeline) else []
    return [(name, step) for name, step in steps if takes_batch(step)]


@dataclass(frozen=True)
class Procedure:
    """A procedure, and the samples that clones of it are fitted on and tested with."""

    estimator: Any
    X: Any  # as it was given: frames reach the estimator as frames
    y: NDArray[Any]
    groups: NDArray[Any] | None = None
    batch: NDArray[Any] | None = None

    def fit(self, rows: IntArray | None, seed: int) -> Any:
        """Return a clone, its seeds set, fitted on some rows (all with None)."""
        X, y, groups, batch = self.X, self.y, self.groups, self.batch
        if rows is not None:
            X, y = _safe_indexing(X, rows), y[rows]
            groups = None if groups is None else groups[rows]
            batch = None if batch is None else batch[rows]
        return fit_with_groups(with_seed(clone(self.estimator), seed), X, y, groups, batch)

    def ready_to_predict(self, model: Any, rows: IntArray) -> tuple[Any, Any]:
        """Return what predicts some rows, and these rows as it takes them.

        That is the model and the rows of X or, where a step of a pipeline has to be told of which
        batch each row is, the last step and what the others make of them.
        """
        X = _safe_indexing(self.X, rows)
        if self.batch is None or not centring_steps(model):
            return model, X
        batch = self.batch[rows]
        for step in [step for _, step in model.steps[:-1] if hasattr(step, "transform")]:
            X = step.transform(X, batch=batch) if takes_batch(step) else step.transform(X)
        return model.steps[-1][1], X

    def predict(self, model: Any, rows: IntArray) -> NDArray[Any]:
        """Return the labels that a fitted clone predicts for some rows."""
        last, X = self.ready_to_predict(model, rows)
        return last.predict(X)


def _groups_parameter(estimator: Any) -> str | None:
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        inner = _groups_parameter(last)
        return None if inner is None else f"{name}__{inner}"
    if has_fit_parameter(estimator, "groups"):
        return "groups"
    takes_any = any(
        p.kind is p.VAR_KEYWORD for p in inspect.signature(estimator.fit).parameters.values()
    )
    return "groups" if takes_any and "cv" in estimator.get_params(deep=False) else None


def describe(value: Any) -> Any:
    """Describe an estimator by its class and parameters, the same in every process."""
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if hasattr(value, "get_params") and not isinstance(value, type):
        params = value.get_params(deep=False)
        return {"class": kind, "params": {name: describe(params[name]) for name in sorted(params)}}
    if isinstance(value, Mapping):
        return {str(k): describe(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [describe(v) for v in value]
    if isinstance(value, partial):
        said = {"function": describe(value.func), "keywords": describe(value.keywords)}
        return {**said, "args": describe(value.args)} if value.args else said
    if isinstance(value, np.ndarray):
        return value.tolist()
    if value is None or isinstance(value, (bool, int, float, str, np.generic)):
        return value
    if hasattr(value, "__qualname__"):  # a function or a class
        return f"{value.__module__}.{value.__qualname__}"
    # splitters and scorers show what they were made with; an address is of this process alone
    return kind if " at 0x" in repr(value) else {"class": kind, "shown": repr(value)}
