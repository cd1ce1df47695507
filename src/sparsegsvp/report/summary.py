"""From fitted objects to the document that the page and ``results.json`` share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.metrics import confusion_matrix

from .._versions import versions
from ..evaluation.journal import plain
from ..evaluation._panels import fit_with_groups
from ..metrics import balanced_accuracy_interval, clopper_pearson
from . import figures, projections, wording
from .methods import describe_methods
from .notices import notices
from .panel import describe_panel, group_association
from .schema import (
    FORMAT,
    FORMAT_VERSION,
    Data,
    Figures,
    IntervalDict,
    Model,
    Results,
    StabilityDict,
    Test,
)


def summarize(
    table: Any,
    model: Any,
    *,
    evaluation: Any = None,
    stability: Any = None,
    test: Test | None = None,
    path_accuracy: bool = True,
    command: str = "",
    parameters: Mapping[str, Any] | None = None,
    seed: int | None = None,
    skipped: Sequence[str] = (),
    units: str | None = None,
) -> Results:
    """Gather everything a report says into one JSON-ready document.

    Parameters
    ----------
    table : object
        The data: ``X``, ``y`` and ``feature_names``; where there are, also ``ids``,
        ``groups``, ``target``, ``positive``, ``source``, ``digest``, ``record``, ``hints``,
        ``dropped`` and ``n_missing`` (`sparsegsvp.io.Table` has all of them).
    model : GSVPSVMCV or Pipeline that ends in one
        Fitted on all samples; earlier steps must keep the columns.
    evaluation : EvaluationResult or its ``to_dict()``, optional
        Result of `sparsegsvp.nested_evaluate`.
    stability : StabilitySelection, optional
        Fitted, for the section on stability and the substitutes. The frequencies of the
        panel come from the outer folds wherever there are any.
    test : dict, optional
        Scores on an independent cohort, from `summarize_test`.
    path_accuracy : bool, default=True
        Also compute the balanced accuracy along the path in the inner folds, which takes
        one more path per fold.
    command : str, default=""
        What repeats the run.
    parameters : dict, optional
        Parameters of the run.
    seed : int, optional
    skipped : sequence of str
        What was left out to save time, one sentence each.
    units : str, optional
        Units of the values, such as ``"log2(max(x, 1))"``.

    Returns
    -------
    dict
        See `sparsegsvp.report.schema.Results`.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from sparsegsvp import GSVPSVMCV
    >>> from sparsegsvp.datasets import make_planted
    >>> from sparsegsvp.report import summarize
    >>> data = make_planted(60, 20, 2, effect=2.5)
    >>> model = GSVPSVMCV(tau=1.0, n_deltas=5, cv=3).fit(data.X, data.y)
    >>> table = SimpleNamespace(X=data.X, y=data.y, feature_names=data.feature_names)
    >>> results = summarize(table, model, path_accuracy=False)
    >>> results["verdict"]["level"]
    'not estimated'
    """
    found = _as_dict(evaluation)
    final, inner_X = _unwrap(model, table.X)
    names = [str(name) for name in table.feature_names]
    classes = [str(c) for c in final.classes_.tolist()]
    codes = np.searchsorted(final.classes_, np.asarray(table.y)).astype(np.intp)
    data = _data(table, classes, codes, units)
    support = np.flatnonzero(final.support_)
    selections = _selections(found, stability, len(names))
    # the outer folds repeat the whole procedure with its tuning, half samples may not
    refits = _selections(found, None, len(names))
    panel = describe_panel(
        table,
        final,
        inner_X,
        names,
        classes,
        codes,
        support,
        selections if refits is None else refits,
        stability,
    )
    steadiness = _stability(found, stability)
    scores = _scores(found)
    permutation = None if found is None else found.get("permutation")
    used = versions()
    verdict = wording.verdict(data, panel, scores, permutation, steadiness)
    accuracy = _path_accuracy(model, table) if path_accuracy else None
    description = _model(final)
    document: Results = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "versions": used,
        "run": {
            "command": command,
            "parameters": plain(dict(parameters or {})),
            "seed": seed,
            "skipped": list(skipped),
        },
        "data": data,
        "model": description,
        "verdict": verdict,
        "warnings": notices(
            data,
            panel,
            verdict,
            scores,
            permutation,
            steadiness,
            [] if found is None else found.get("warnings", []),
            skipped,
        ),
        "panel": panel,
        "scores": scores,
        "stability": steadiness,
        "test": test,
        "figures": _figures(
            table, final, names, classes, codes, support, found, selections, stability, accuracy
        ),
        "methods": describe_methods(
            data, description, panel, scores, found, steadiness, used, seed
        ),
        "evaluation": found,
    }
    return cast(Results, plain(document))


def summarize_test(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    classes: Sequence[Any],
    *,
    positive: Any = None,
    source: str = "",
    digest: str = "",
    level: float = 0.95,
) -> Test:
    """Score predictions of an independent cohort, with exact intervals.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        Labels and predictions.
    classes : sequence
        All classes, in the order of the model.
    positive : label, optional
        The positive one of two classes, by default the last.
    source, digest : str
        The file and its digest.
    level : float, default=0.95
        Coverage.

    Returns
    -------
    dict
        See `sparsegsvp.report.schema.Test`.

    Examples
    --------
    >>> from sparsegsvp.report import summarize_test
    >>> found = summarize_test(["ill", "ill", "well"], ["ill", "well", "well"], ["ill", "well"])
    >>> found["confusion"]["counts"], found["scores"]["balanced_accuracy"]["value"]
    ([[1, 1], [0, 1]], 0.75)
    """
    truth, predicted = np.asarray(y_true), np.asarray(y_pred)
    labels = list(classes)
    unknown = sorted({str(label) for label in truth.tolist()} - {str(c) for c in labels})
    if unknown:
        raise ValueError(f"the cohort has class {unknown[0]!r}, which the model does not know.")
    counts = confusion_matrix(truth, predicted, labels=labels)
    totals = counts.sum(axis=1)
    scores: dict[str, IntervalDict] = {}
    if (totals > 0).all():
        found = balanced_accuracy_interval(truth, predicted, level=level)
        scores["balanced_accuracy"] = cast(IntervalDict, found.to_dict())
    if len(labels) == 2:
        one = labels.index(positive) if positive in labels else 1
        for name, k in (("sensitivity", one), ("specificity", 1 - one)):
            if totals[k]:
                part = clopper_pearson(int(counts[k, k]), int(totals[k]), level=level)
                scores[name] = cast(IntervalDict, part.to_dict())
    return {
        "source": source,
        "digest": digest,
        "n_samples": int(totals.sum()),
        "class_counts": [int(n) for n in totals],
        "scores": scores,
        "confusion": {
            "classes": [str(c) for c in labels],
            "counts": [[int(v) for v in row] for row in counts],
        },
    }


# -------------------------------------------------------------------------------- parts


def _as_dict(evaluation: Any) -> dict[str, Any] | None:
    if evaluation is None:
        return None
    return dict(evaluation) if isinstance(evaluation, Mapping) else evaluation.to_dict()


def _unwrap(model: Any, X: Any) -> tuple[Any, Any]:
    """The last step of a pipeline, and the table as that step saw it."""
    if not hasattr(model, "steps"):
        return model, X
    before = model[:-1]
    inner = before.transform(X) if len(model.steps) > 1 else X
    if inner.shape[1] != X.shape[1]:
        raise ValueError(
            "the steps before the estimator must keep the columns, but they turn "
            f"{X.shape[1]} into {inner.shape[1]}."
        )
    return model[-1], inner


def _data(table: Any, classes: list[str], codes: NDArray[np.intp], units: str | None) -> Data:
    groups = getattr(table, "groups", None)
    positive = getattr(table, "positive", None)
    if len(classes) != 2:
        positive = None
    elif positive is None:
        positive = classes[-1]
    return {
        "source": str(getattr(table, "source", "")),
        "digest": str(getattr(table, "digest", "")),
        "target": getattr(table, "target", None),
        "n_samples": int(table.X.shape[0]),
        "n_features": int(table.X.shape[1]),
        "classes": classes,
        "class_counts": np.bincount(codes, minlength=len(classes)).tolist(),
        "positive": None if positive is None else str(positive),
        "n_missing": int(getattr(table, "n_missing", 0)),
        "n_groups": None if groups is None else int(np.unique(groups).size),
        "group_association": None if groups is None else group_association(codes, groups),
        "units": units,
        "record": [str(text) for text in getattr(table, "record", ())],
        "hints": [str(text) for text in getattr(table, "hints", ())],
        "dropped": {str(k): str(v) for k, v in dict(getattr(table, "dropped", {})).items()},
    }


def _model(final: Any) -> Model:
    return {
        "estimator": type(final).__name__,
        "q": float(final.q_),
        "tau": float(final.tau_),
        "pool": float(final.pool_),
        "delta": np.asarray(final.delta_, dtype=np.float64).tolist(),
        "decision": str(final.decision_),
        "rule": str(final.rule),
        "selection": str(final.selection),
        "scoring": str(final.scoring),
        "n_splits": int(final.n_splits_),
        "max_features": None if final.n_features is None else int(final.n_features),
        "intercept": final.intercept_.tolist(),
        "scale": final.scale_.tolist(),
        "objective": final.objective_.tolist(),
        "kkt_residual": final.kkt_residual_.tolist(),
    }


def _scores(found: Mapping[str, Any] | None) -> dict[str, IntervalDict]:
    """The scores whose interval is known."""
    if found is None:
        return {}
    return {
        name: score
        for name, score in found["scores"].items()
        if all(score[end] is not None for end in ("value", "low", "high"))
    }


def _selections(
    found: Mapping[str, Any] | None, stability: Any, n_features: int
) -> NDArray[np.bool_] | None:
    """Which features each refit selected: of stability selection, or of the outer folds."""
    if stability is not None:
        return cast("NDArray[np.bool_]", np.asarray(stability.selections_, dtype=bool))
    if found is None or any(fold["panel"] is None for fold in found["folds"]):
        return None
    selections = np.zeros((len(found["folds"]), n_features), dtype=bool)
    for row, fold in zip(selections, found["folds"]):
        row[np.asarray(fold["panel"], dtype=np.intp)] = True
    return selections


def _stability(found: Mapping[str, Any] | None, stability: Any) -> StabilityDict | None:
    if stability is not None:
        index = stability.stability_
        return {
            "source": "stability selection",
            "n_panels": int(stability.selections_.shape[0]),
            "mean_size": float(stability.mean_panel_size_),
            "index": index.value,
            "low": index.low,
            "high": index.high,
            "jaccard": None,
            "threshold": float(stability.threshold),
            "n_stable": int(stability.get_support().sum()),
            "error_bound": stability.error_bound_,
        }
    if found is None or not found.get("panel_sizes"):
        return None
    index = found.get("stability") or {"value": None, "low": None, "high": None}
    return {
        "source": "outer folds",
        "n_panels": len(found["panel_sizes"]),
        "mean_size": float(np.mean(found["panel_sizes"])),
        "index": index["value"],
        "low": index["low"],
        "high": index["high"],
        "jaccard": found.get("jaccard"),
        "threshold": None,
        "n_stable": None,
        "error_bound": None,
    }


def _path_accuracy(model: Any, table: Any) -> tuple[list[float], list[float]]:
    """Balanced accuracy along the path, in the inner folds of the chosen setting."""
    final = model[-1] if hasattr(model, "steps") else model
    fresh = clone(model)
    inner = fresh[-1] if hasattr(fresh, "steps") else fresh
    inner.set_params(
        q=final.q_,
        tau=final.tau_,
        pool=final.pool_,
        decision=final.decision_,
        scoring="balanced_accuracy",
        rule="best",
        verbose=0,
    )
    fit_with_groups(fresh, table.X, table.y, getattr(table, "groups", None))
    return inner.path_["score"].tolist(), inner.path_["score_error"].tolist()


def _figures(
    table: Any,
    final: Any,
    names: list[str],
    classes: list[str],
    codes: NDArray[np.intp],
    support: NDArray[np.intp],
    found: Mapping[str, Any] | None,
    selections: NDArray[np.bool_] | None,
    stability: Any,
    accuracy: tuple[list[float], list[float]] | None,
) -> Figures:
    ids = getattr(table, "ids", None)
    bars = []
    if selections is not None:
        groups = None if stability is None else stability.group_frequencies_
        bars = figures.stability_bars(
            selections.mean(axis=0), names, support.tolist(), group_frequencies=groups
        )
    return {
        "roc": None if found is None else figures.roc(found),
        "calibration": None if found is None else figures.calibration(found),
        "confusion": None if found is None else figures.confusion(found),
        "permutation": None if found is None else figures.permutation_histogram(found),
        "planes": None if found is None else projections.planes(found, names=ids),
        "pca_before": projections.pca_before(table.X, codes, classes, ids),
        "pca_after": None if found is None else projections.pca_after(table.X, found, ids),
        "path": figures.path(final, names, accuracy=accuracy),
        "weights": figures.weight_curves(final, names),
        "stability": bars,
    }
