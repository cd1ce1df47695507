"""From fitted objects to the document that the page and ``results.json`` share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._notices import Notice, Severity
from .._versions import versions
from ..estimators.pipeline import last_step
from ..evaluation import ExternalValidation, sizes_notice
from ..evaluation.recalibration import recalibration_of
from ..evaluation.values import plain
from . import features, figures, projections, words
from .features import describe_panel, samples_of, with_frequencies
from .figures import FigureData, SampleTable
from .methods import methods
from .notices import notices_about
from .schema import FORMAT, FORMAT_VERSION, Results


def summarize(
    table: Any,
    model: Any,
    *,
    panel: Sequence[FigureData] | None = None,
    evaluation: Any = None,
    stability: Any = None,
    learning: Any = None,
    beside: Sequence[FigureData] = (),
    test: FigureData | None = None,
    prevalence: float | None = None,
    command: str = "",
    parameters: Mapping[str, Any] | None = None,
    seed: int | None = None,
    skipped: Sequence[str] = (),
    notices: Sequence[Notice] = (),
    units: str | None = None,
) -> Results:
    """Gather everything a report says into one JSON-ready document; nothing is fitted.

    Parameters
    ----------
    table : object
        The data: ``X``, ``y`` and ``feature_names``; where there are, also ``ids``,
        ``groups``, ``target``, ``positive``, ``source``, ``digest``, ``record``,
        ``notices``, ``dropped``, ``n_missing`` and ``role_lines()`` (`sparsegsvp.io.Table` has
        all of them).
    model : GSVPSVMCV or Pipeline that ends in one
        Fitted on all samples; earlier steps must keep the columns.
    panel : sequence of dict, optional
        What `describe_panel` returned for them, if it was called already.
    evaluation : EvaluationResult or its ``to_dict()``, optional
        Result of `sparsegsvp.nested_evaluate`.
    stability : StabilitySelection, optional
        Fitted, for the section on stability and the substitutes. The panel's frequencies come
        from the outer folds if there are any.
    learning : LearningCurve, optional
        Result of `sparsegsvp.evaluation.learning_curve`.
    beside : sequence of dict
        Fixed panels on the same folds, as ``Beside`` of `sparsegsvp.report.schema.DOCUMENT`.
    test : dict, optional
        What an independent cohort says, from `summarize_test`.
    prevalence : float, optional
        Share of the positive class that the decision curve of the outer folds is for; by default
        that of the table.
    command, parameters, seed
        What repeats the run, and what it was given.
    skipped : sequence of str
        What was left out to save time, one sentence each.
    notices : sequence of Notice
        What else the reader has to know.
    units : str, optional
        Units of the values, such as ``"log2(max(x, 1))"``.

    Returns
    -------
    dict
        As `sparsegsvp.report.schema.DOCUMENT` describes it.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from sparsegsvp import GSVPSVMCV
    >>> from sparsegsvp.datasets import make_planted
    >>> from sparsegsvp.report import summarize
    >>> data = make_planted(60, 20, 2, effect=2.5)
    >>> model = GSVPSVMCV(tau=1.0, n_deltas=5, cv=3).fit(data.X, data.y)
    >>> table = SimpleNamespace(X=data.X, y=data.y, feature_names=data.feature_names)
    >>> results = summarize(table, model)
    >>> results["verdict"]["level"]
    'not tested'
    """
    found = evaluation.to_dict() if hasattr(evaluation, "to_dict") else evaluation
    samples = samples_of(table, model)
    data = _data(table, samples, units)
    # the outer folds repeat the whole procedure with its tuning, half samples may not
    folds = _panels_of_folds(found, len(table.feature_names))
    halves = None if stability is None else np.asarray(stability.selections_, dtype=bool)
    rows = list(describe_panel(table, model) if panel is None else panel)
    rows = with_frequencies(rows, samples, halves if folds is None else folds, stability)
    steadiness = _stability(found, stability)
    scores = known_scores(found)
    verdict = words.describe_verdict(data, scores, found, size=len(rows), stability=steadiness)
    verdict["sentences"] += [] if test is None else [words.cohort_sentence(test)]
    said = _by_severity(
        notices_about(data, rows, verdict["level"], scores, steadiness),
        _passed_on(found, len(rows)),
        getattr(table, "notices", ()),
        notices,
        (Notice("skipped", "note", text) for text in skipped),
    )
    selections = folds if halves is None else halves
    document = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "versions": versions(),
        "run": _run(command, parameters, seed, skipped),
        "data": data,
        "model": describe_model(model),
        "verdict": verdict,
        "notices": said,
        "panel": rows,
        "scores": scores,
        "thresholds": _thresholds(found, prevalence),
        "stability": steadiness,
        "learning": None if learning is None else learning.to_dict(),
        "beside": list(beside),
        "test": test,
        "figures": _figures(
            samples, model, rows, found, selections, stability, learning, prevalence
        ),
        "evaluation": found,
    }
    return cast(Results, plain({**document, "methods": methods(document)}))


def _run(
    command: str, parameters: Mapping[str, Any] | None, seed: int | None, skipped: Sequence[str]
) -> FigureData:
    return {
        "command": command,
        "parameters": plain(dict(parameters or {})),
        "seed": seed,
        "skipped": list(skipped),
    }


def _by_severity(*parts: Iterable[Notice]) -> list[dict[str, str]]:
    """Notices from several places as the document holds them, the most serious first."""
    said = sorted(chain(*parts), key=lambda notice: get_args(Severity).index(notice.severity))
    return [notice.to_dict() for notice in said]


def _passed_on(found: Mapping[str, Any] | None, size: int) -> list[Notice]:
    """The notices of an evaluation, and one where its panels are of other sizes than this one."""
    if found is None:
        return []
    said = [Notice(n["code"], n["severity"], n["text"]) for n in found["notices"]]
    differing = sizes_notice(size, found["panel_sizes"])
    return said if differing is None else [*said, differing]


def summarize_test(
    validation: ExternalValidation,
    *,
    source: str = "",
    digest: str = "",
    recalibration: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Describe what an independent cohort says of a model.

    Parameters
    ----------
    validation : ExternalValidation
        From `sparsegsvp.evaluation.validate_external`.
    source, digest : str
        The file and its digest.
    recalibration : dict, optional
        What the model was recalibrated to before: its ``recalibration_``.

    Returns
    -------
    dict
        ``Test`` of `sparsegsvp.report.schema.DOCUMENT`.

    Examples
    --------
    >>> from sparsegsvp.evaluation import validate_predictions
    >>> from sparsegsvp.report import summarize_test
    >>> found = summarize_test(
    ...     validate_predictions(["ill", "ill", "well"], ["ill", "well", "well"], ["ill", "well"])
    ... )
    >>> found["confusion"]["counts"], found["scores"]["balanced_accuracy"]["value"]
    ([[1, 1], [0, 1]], 0.75)
    """
    found = validation.to_dict()
    same = [
        "n_samples", "class_counts", "positive", "prevalence", "observed_prevalence", "scores",
        "recalls", "thresholds", "threshold_counts", "shift", "remarks",
    ]  # fmt: skip
    return {
        "source": source,
        "digest": digest,
        "recalibration": None if recalibration is None else plain(recalibration),
        **{name: found[name] for name in same},
        "confusion": {"classes": found["classes"], "counts": found["confusion"]},
        **figures.cohort(found),
    }


def describe_model(model: Any) -> FigureData:
    """Return the parameters and the certificate of the fit on all samples."""
    final = last_step(model)
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
        "n_features": None if final.n_features is None else int(final.n_features),
        "intercept": final.intercept_.tolist(),
        "scale": final.scale_.tolist(),
        "objective": final.objective_.tolist(),
        "kkt_residual": final.kkt_residual_.tolist(),
        "recalibration": plain(recalibration_of(model)),
    }


def _thresholds(found: Mapping[str, Any] | None, prevalence: float | None) -> list[FigureData]:
    """Rates, predictive values and net benefit at thresholds, out of fold, of the first repeat."""
    there = None if found is None else figures.positive_probabilities(found)
    return [] if there is None else plain(there.thresholds(prevalence))


def known_scores(evaluation: Mapping[str, Any] | None) -> dict[str, FigureData]:
    """Return the scores of ``EvaluationResult.to_dict()`` whose interval is known."""
    return {
        name: score
        for name, score in (evaluation or {"scores": {}})["scores"].items()
        if None not in (score["value"], score["low"], score["high"])
    }


# ----------------------------------------------------------------- the table and the fits


def _data(table: Any, samples: SampleTable, units: str | None) -> FigureData:
    classes, codes = samples.classes, samples.codes
    groups = getattr(table, "groups", None)
    return {
        "source": str(getattr(table, "source", "")),
        "digest": str(getattr(table, "digest", "")),
        "target": getattr(table, "target", None),
        "n_samples": int(table.X.shape[0]),
        "n_features": int(table.X.shape[1]),
        "classes": list(classes),
        "class_counts": np.bincount(codes, minlength=len(classes)).tolist(),
        "positive": samples.positive,
        "n_missing": int(getattr(table, "n_missing", 0)),
        "n_groups": None if groups is None else int(np.unique(groups).size),
        "group_association": None if groups is None else group_association(codes, groups),
        "units": units,
        "record": [str(text) for text in getattr(table, "record", ())],
        "dropped": {str(k): str(v) for k, v in dict(getattr(table, "dropped", {})).items()},
        "roles": getattr(table, "role_lines", list)(),
    }


def group_association(codes: NDArray[np.intp], groups: ArrayLike) -> float | None:
    """Cramér's V of group and class, corrected for bias (Bergsma 2013).

    Between 0 and 1; None where every sample is a group of its own.
    """
    _, member = np.unique(np.asarray(groups).astype(str), return_inverse=True)
    n, k, r = codes.size, int(codes.max()) + 1, int(member.max()) + 1
    table = np.zeros((r, k))
    np.add.at(table, (member, codes), 1.0)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / n
    phi2 = float((((table - expected) ** 2) / expected).sum() / n)
    phi2 = max(0.0, phi2 - (k - 1) * (r - 1) / (n - 1))
    room = min(r - (r - 1) ** 2 / (n - 1), k - (k - 1) ** 2 / (n - 1)) - 1
    return None if room <= 1e-9 else float(min(1.0, np.sqrt(phi2 / room)))


def _panels_of_folds(found: Mapping[str, Any] | None, n_features: int) -> NDArray[np.bool_] | None:
    """Which features each outer fold selected; None where that is not known."""
    if found is None or any(fold["panel"] is None for fold in found["folds"]):
        return None
    selections = np.zeros((len(found["folds"]), n_features), dtype=bool)
    for row, fold in zip(selections, found["folds"]):
        row[np.asarray(fold["panel"], dtype=np.intp)] = True
    return selections


def _stability(found: Mapping[str, Any] | None, stability: Any) -> FigureData | None:
    if stability is not None:
        index = stability.stability_
        return {
            "source": "stability selection",
            "n_panels": int(stability.selections_.shape[0]),
            "mean_size": float(stability.mean_panel_size_),
            "index": index.value,
            "jaccard": None,
            "threshold": float(stability.threshold),
            "n_stable": int(stability.get_support().sum()),
            "error_words": stability.error_words_,
        }
    if found is None or not found.get("panel_sizes"):
        return None
    agreement = found.get("stability") or {"value": None}
    return {
        "source": "outer folds",
        "n_panels": len(found["panel_sizes"]),
        "mean_size": float(np.mean(found["panel_sizes"])),
        "index": agreement["value"],
        "jaccard": found.get("jaccard"),
        "threshold": None,
        "n_stable": None,
        "error_words": None,
    }


def _figures(
    samples: SampleTable,
    model: Any,
    rows: Sequence[FigureData],
    found: Mapping[str, Any] | None,
    selections: NDArray[np.bool_] | None,
    stability: Any,
    learning: Any,
    prevalence: float | None,
) -> FigureData:
    final, names, panel = last_step(model), samples.names, [row["index"] for row in rows]
    bars = []
    if selections is not None:
        groups = None if stability is None else stability.group_frequencies_
        shares = selections.mean(axis=0)
        bars = figures.stability_bars(shares, names, panel, group_frequencies=groups)
    return {
        "roc": found and figures.roc(found),
        "calibration": found and figures.calibration(found),
        "decision": found and figures.decision(found, prevalence),
        "confusion": found and figures.confusion(found),
        "permutation": found and figures.permutation_histogram(found),
        "planes": found and projections.planes(found, names=samples.ids),
        "pca_before": projections.pca_before(samples, found),
        "pca_after": found and projections.pca_after(samples.X, found, samples.ids),
        "path": figures.path(final, names),
        "weights": figures.weight_curves(final, names),
        "stability": bars,
        "learning": None if learning is None else figures.learning(learning.to_dict()),
        "heatmap": features.heatmap(samples, panel, found),
        "volcano": features.volcano(samples, panel),
        "correlations": features.correlations(samples, rows),
    }
