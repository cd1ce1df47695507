"""Comparison at equal panel size: the same folds, sizes and judge for every method.

The primary score is that of one common classifier (balanced logistic regression) on exactly k
features of each method; a method's own decision, where it uses exactly k, is the secondary one.
Intervals of differences hold jointly (Bonferroni), p-values are Holm's.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.feature_selection import SelectFromModel, SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from .._typing import Progress
from .._validate import check_seed, derive_seed
from ..linalg.rows import as_rows
from ..metrics import average_jaccard, nogueira_stability, paired_differences
from .baselines import RANDOM_PANEL, Baseline, default_methods, find_method
from .cache import Cache, digest, run_pieces, versions
from .procedure import (
    Answer,
    answer,
    describe,
    exact_panel,
    make_imputer,
    selected_features,
    with_seed,
)
from .result import OutOfFold, Scoring, difference_variance, frame
from .splits import Fold, Samples, make_folds, read_samples

_FIT = 21  # seed stream


@dataclass(frozen=True, repr=False)
class Comparison:
    """Result of `sparsegsvp.compare`.

    Attributes
    ----------
    rows : tuple of dict
        Every method at every size, as `table` shows them.
    methods, sizes, reference
        In the order given, the random panel last; what differences are taken to.
    seconds : dict
        From (method, size) to the mean CPU seconds of a fit.
    """

    rows: tuple[dict[str, Any], ...]
    methods: tuple[str, ...]
    sizes: tuple[int, ...]
    reference: str
    n_samples: int
    n_features: int
    n_folds: int
    seconds: dict[tuple[str, int], float] = field(default_factory=dict, compare=False)

    def __repr__(self) -> str:
        lines = [f"Comparison of {len(self.methods)} methods, {self.n_folds} folds, on the front:"]
        front = sorted((r for r in self.rows if r["on_front"]), key=lambda r: int(r["size"]))
        lines += [f"  {r['size']}: {r['method']} {r['balanced_accuracy']:.3f}" for r in front]
        return "\n".join(lines)

    @cached_property
    def table(self) -> Any:
        """One row for each method and size, as a data frame.

        Columns: method, size, status, error; balanced_accuracy and roc_auc of the common
        classifier with their intervals; native, the balanced accuracy of the method's own decision
        where it uses exactly so many features; panel_size, stability and jaccard of its panels;
        difference to the reference with its joint interval, p_value, p_adjusted; on_front, whether
        no other row is as small and better; seconds of a fit.
        """
        times = [self.seconds.get((r["method"], r["size"]), float("nan")) for r in self.rows]
        return frame(list(self.rows)).assign(seconds=times)

    def row(self, method: str, size: int) -> dict[str, Any]:
        """Return the row of a method at a size."""
        for row in self.rows:
            if (row["method"], row["size"]) == (method, size):
                return row
        raise ValueError(f"there is no row for {method!r} with {size} features.")


def compare(
    methods: Mapping[str, Any] | Sequence[str] | None,
    X: Any,
    y: ArrayLike,
    sizes: Sequence[int] = (2, 4, 8, 16, 32),
    *,
    groups: ArrayLike | None = None,
    n_splits: int = 5,
    n_repeats: int = 5,
    reference: str | None = None,
    level: float = 0.95,
    random_state: int = 0,
    n_jobs: int | None = None,
    cache: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Compare methods of feature selection at equal panel sizes.

    In every fold each method is fitted on the training part and gives exactly k features,
    for each k in ``sizes``; a balanced logistic regression on them, the same for all,
    predicts the test part. A random panel is a row of its own.

    A method is asked for k features through whichever of ``n_features``,
    ``n_features_to_select``, ``k`` or ``max_features`` it has. A larger panel is cut, and a
    smaller one filled, by the method's own order (``feature_order_``, or the size of
    ``coef_``, or ``ranking_`` or ``scores_``).

    Parameters
    ----------
    methods : mapping from name to estimator, sequence of names, or None
        Selectors, or classifiers that select; names are those of `default_methods`, None is all.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The table. Missing values are replaced by the training part's medians.
    y, groups, random_state, n_jobs, progress
        As in `sparsegsvp.nested_evaluate`.
    sizes : sequence of int, default=(2, 4, 8, 16, 32)
        Panel sizes.
    n_splits, n_repeats : int, default=5
        Folds per repeat, and repeats.
    reference : str, optional
        The method that differences are taken to; the first by default.
    level : float, default=0.95
        Coverage of intervals; that of the differences is joint.
    cache : path-like, optional
        A file that keeps what is finished: another run with it does the rest.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> from sklearn.feature_selection import SelectKBest
    >>> from sparsegsvp import compare
    >>> from sparsegsvp.datasets import make_planted
    >>> X, y = make_planted(40, 60, 4, effect=1.5, return_X_y=True)
    >>> found = compare({"F test": SelectKBest()}, X, y, sizes=(2, 4), n_repeats=2)
    >>> rows = [found.row(name, 4)["balanced_accuracy"] for name in ("F test", "random panel")]
    >>> rows[0] > rows[1]
    True
    """
    seed = check_seed(random_state)
    samples = read_samples(X, y, groups)
    m, panel_sizes = samples.X.shape[1], tuple(sorted({int(k) for k in sizes}))
    if not panel_sizes or panel_sizes[0] < 1 or panel_sizes[-1] > m:
        raise ValueError(f"sizes={tuple(sizes)} must lie in 1..{m}, the number of features.")
    chosen = _check_methods(methods)
    reference = next(iter(chosen)) if reference is None else reference
    if reference not in chosen:
        raise ValueError(f"reference={reference!r} is not among the methods {list(chosen)}.")
    folds = make_folds(samples, n_splits, n_repeats, seed)
    matrix = samples.X.to_numpy() if hasattr(samples.X, "to_numpy") else samples.X
    store, table = Cache(cache), digest(matrix, samples.y.astype(str), samples.groups, versions())
    keys = {
        name: [digest(table, name, describe(method), f.train, f.test, panel_sizes, seed)
               for f in folds]
        for name, method in chosen.items()
    }  # fmt: skip
    missing = [
        (key, (samples, chosen[name], fold, panel_sizes, seed))
        for name, of_folds in keys.items()
        for key, fold in zip(of_folds, folds)
        if store.get(key) is None
    ]
    pieces = [piece for _, piece in missing]
    done = run_pieces(run_fold, pieces, n_jobs=n_jobs, progress=progress, stage="comparison")
    for value, (key, _) in zip(done, missing):
        store.add(key, value)
    cells = {
        (name, size): [store.get(key)[place] for key in of_folds]
        for name, of_folds in keys.items()
        for place, size in enumerate(panel_sizes)
    }
    scoring = Scoring(samples.units, samples.n_classes - 1, level, samples.groups)
    return Comparison(
        rows=comparison_rows(cells, samples, folds, scoring, reference),
        methods=tuple(chosen),
        sizes=panel_sizes,
        reference=reference,
        n_samples=samples.codes.size,
        n_features=m,
        n_folds=len(folds),
        seconds={key: float(np.mean([e["seconds"] for e in part])) for key, part in cells.items()},
    )


def _check_methods(methods: Mapping[str, Any] | Sequence[str] | None) -> dict[str, Any]:
    known = default_methods()
    if methods is not None and not isinstance(methods, Mapping):
        methods = {name: known[name] for name in map(find_method, methods)}
    chosen = known if methods is None else dict(methods)
    if not chosen:
        raise ValueError("methods is empty; give a mapping from names to estimators, or None.")
    for name, estimator in chosen.items():
        if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
            raise ValueError(f"method {name!r} is not an estimator; give an instance.")
    chosen.setdefault(RANDOM_PANEL, Baseline(RANDOM_PANEL))
    return chosen


def run_fold(
    samples: Samples, estimator: Any, fold: Fold, sizes: tuple[int, ...], seed: int
) -> list[dict[str, Any]]:
    """Return a method's result at each size."""
    X = samples.X.to_numpy() if hasattr(samples.X, "to_numpy") else samples.X
    train, test = X[fold.train], X[fold.test]
    if isinstance(X, np.ndarray) and X.dtype.kind == "f" and np.isnan(X).any():
        imputer = make_imputer().fit(train)
        train, test = imputer.transform(train), imputer.transform(test)
    labels = samples.y[fold.train]
    fit_seed = derive_seed(seed, _FIT, fold.repeat, fold.index)
    last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    # where the order is the same for every size, one fit serves them all
    once = _size_parameter(estimator) is None or isinstance(last, SelectKBest | SelectFromModel)
    once = once or getattr(last, "order_ignores_size", False)
    model, seconds, entries = None, 0.0, []
    for size in sizes:
        entry: dict[str, Any] = {"error": None}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                if model is None or not once:
                    start = time.process_time()
                    model = with_seed(with_size(estimator, size), fit_seed).fit(train, labels)
                    seconds = time.process_time() - start
                entry |= _judge(model, train, test, labels, samples, size)
            except Exception as error:  # a method that fails is a row that says so
                text = f"{type(error).__name__}: {error}"
                entry["error"] = text if len(text) <= 300 else text[:297] + "..."
        entries.append({**entry, "seconds": seconds})
    return entries


def common_classifier() -> Pipeline:
    """Return the classifier that all panels are judged with."""
    logistic = LogisticRegression(class_weight="balanced", max_iter=2000)
    return make_pipeline(StandardScaler(), logistic)


def _judge(
    model: Any, train: Any, test: Any, labels: Any, samples: Samples, size: int
) -> dict[str, Any]:
    """Score a fitted method's panel with the common classifier, and its own decision."""
    panel = exact_panel(model, size, train.shape[1])
    if not panel.size:
        raise ValueError("it gave an empty panel.")
    columns = [as_rows(part).columns(np.sort(panel)) for part in (train, test)]
    said = answer(common_classifier().fit(columns[0], labels), columns[1], samples.classes)
    own, native = selected_features(model, train.shape[1]), None
    if hasattr(model, "predict") and own is not None and own.size == size:
        native = np.searchsorted(samples.classes, model.predict(test))
    result = {"panel": panel, "predicted": said.predicted}
    return {**result, "decision": said.decision, "native": native}


def with_size(estimator: Any, size: int) -> Any:
    """Return a clone asked for ``size`` features, where it has a parameter for that."""
    name = _size_parameter(estimator)
    return clone(estimator) if name is None else clone(estimator).set_params(**{name: size})


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
    inner = None
    if "param_grid" in params or "param_distributions" in params:
        inner = _size_parameter(params["estimator"])
    deep = None if inner is None else f"estimator__{inner}"
    return next((name for name in names if name in params), deep)


_PRIMARY = ("balanced_accuracy", "low", "high")
_AREA = ("roc_auc", "roc_auc_low", "roc_auc_high")
_NATIVE = ("native", "native_low", "native_high")
_PANELS = ("panel_size", "stability", "jaccard")
_GAP = ("difference", "difference_low", "difference_high", "p_value", "p_adjusted")


def comparison_rows(
    cells: dict[tuple[str, int], list[dict[str, Any]]],
    samples: Samples,
    folds: Sequence[Fold],
    scoring: Scoring,
    reference: str,
) -> tuple[dict[str, Any], ...]:
    """Return a row for every method and size, the unfinished ones with their reason."""

    def gathered(entries: Sequence[dict[str, Any]], name: str, ranks: str) -> OutOfFold:
        columns = [(np.array(e[name], dtype=np.intp), e.get(ranks)) for e in entries]
        said = [Answer(p, None if d is None else np.array(d), None) for p, d in columns]
        return OutOfFold.gather(samples.codes, folds, said)

    rows, found = {}, {}
    for (name, size), entries in cells.items():
        problem = next((e["error"] for e in entries if e["error"] is not None), None)
        row: dict[str, Any] = {"method": name, "size": size}
        row |= {"status": "ok" if problem is None else "failed", "error": problem}
        row |= dict.fromkeys([*_PRIMARY, *_AREA, *_NATIVE, *_PANELS, *_GAP], float("nan"))
        rows[name, size] = row
        row["on_front"] = False
        if problem is not None:
            continue
        found[name, size] = one = gathered(entries, "predicted", "decision")
        scores = {_PRIMARY: scoring.balanced_accuracy(one), _AREA: scoring.roc_auc(one)}
        if all(entry["native"] is not None for entry in entries):
            scores[_NATIVE] = scoring.balanced_accuracy(gathered(entries, "native", ""))
        for names, score in scores.items():
            if score is not None:
                row |= zip(names, (score.value, score.low, score.high))
        panels = [e["panel"] for e in entries]
        alike = nogueira_stability(panels, samples.X.shape[1]), average_jaccard(panels)
        row |= zip(_PANELS, (float(np.mean([len(p) for p in panels])), *alike))
    pairs = [key for key in found if key[0] != reference and (reference, key[1]) in found]
    values, variances, primary = [], [], _PRIMARY[0]
    for key in pairs:
        other = reference, key[1]
        values.append(rows[key][primary] - rows[other][primary])
        variances.append(difference_variance(found[key], found[other], scoring, primary))
    freedom = [scoring.units.sum() - scoring.units.size] * len(pairs)
    for key, d in zip(pairs, paired_differences(values, variances, freedom, level=scoring.level)):
        rows[key] |= zip(_GAP, (d.value, d.low, d.high, d.p_value, d.p_adjusted))
    done = [rows[key] for key in found]
    for row in done:  # on the front unless another is no larger and better, or smaller and as good
        at = row["size"], -row[primary]
        others = [(o["size"], -o[primary]) for o in done]
        row["on_front"] = not any(o != at and o[0] <= at[0] and o[1] <= at[1] for o in others)
    return tuple(rows.values())
