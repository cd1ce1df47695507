"""The document: everything a run found, as plain values that ``results.json`` holds.

`build_document` gathers it, `check_document` checks one that was read from a file. The page, the
figures and all words are made from it alone. ``templates/schema.toml`` lists its keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

import numpy as np

from .._notices import Notice
from ..evaluation.cache import plain, versions
from ..io import InputError
from ..io.roles import Role
from . import numbers
from .charts import toml_asset
from .notices import cohort_remarks, notices_of
from .numbers import Part, Samples, columns_of, steps_of, whole_counts
from .words import comparison_words, own_rung, verdict_words

FORMAT = "sparsegsvp results"
COMPARISON_FORMAT = "sparsegsvp comparison"
VERSION = 3


def build_document(
    table: Any,
    evaluation: Any,
    *,
    values: Any = None,
    units: str | None = None,
    settings: Mapping[str, Any] | None = None,
    command: str = "",
    seed: int | None = None,
    skipped: Sequence[str] = (),
    notices: Sequence[Notice] = (),
    cohort: Part | None = None,
    given: Part | None = None,
    prevalence: float | None = None,
) -> Part:
    """Gather everything a run found into one document; nothing is fitted.

    Parameters
    ----------
    table, evaluation : Table, EvaluationResult
        The data, and the evaluation of the procedure on them.
    values : array or CSR matrix, optional
        The table's values in the units to be shown, which are those that the last step of the
        model sees; by default ``table.X``.
    units : str, optional
        What these units are; None for those of the table.
    settings : mapping, optional
        What was asked for, option by option; ``must`` and ``ban`` mark features.
    command, seed : str, int
        What repeats the run.
    skipped, notices : sequence of str, of Notice
        What was left out to save time, a sentence each; what else the reader has to know. The
        notices of the table and of the evaluation are added.
    cohort, given : dict of `describe_cohort`, of `describe_given`, optional
        Another cohort; a panel of the user's beside the selection.
    prevalence : float, optional
        Share of the positive class that predictive values and the decision curve are for; by
        default that of the table.

    Returns
    -------
    dict
        With the keys of ``schema.toml``.
    """
    samples = _samples(table, evaluation, values)
    panel, sizes = [int(f) for f in evaluation.panel or ()], evaluation.size_range
    document: Part = {
        **_head(FORMAT, command, settings, seed, skipped),
        "data": _data(table, evaluation, samples, units),
        **_judged(evaluation, prevalence),
        "roc": _curves(evaluation) or numbers.roc_curves(samples, evaluation.predictions),
        "sizes": sizes and dict(zip(("median", "low", "high"), sizes)),
        "prior": evaluation.prior,
        "ladder": _ladder(evaluation, len(panel)),
        "batches": [{**audit.to_dict(), "lost": audit.lost} for audit in evaluation.batches],
        "adjusted": _adjusted(evaluation.adjusted),
        "given": given,
        "cohort": cohort,
        "model": _model(evaluation.model),
        "folds": columns_of(evaluation.folds) or {},
    }
    document["stability"] = _stability(evaluation.stability, own_rung(document))
    document |= _features(samples, evaluation, panel, document)
    document["pictures"] = {
        picture.__name__: picture(samples, evaluation, panel, document)
        for picture in (numbers.scatter, numbers.heatmap, numbers.volcano)
    }
    document["verdict"] = evaluation.verdict.to_dict()
    document["verdict"] |= verdict_words(document)
    document["notices"] = notices_of(document, evaluation.flags, table.notices, notices)
    return plain(document)


def _head(
    form: str,
    command: str,
    settings: Mapping[str, Any] | None,
    seed: int | None,
    skipped: Sequence[str] = (),
) -> Part:
    run: Part = {"command": command, "settings": dict(settings or {}), "seed": seed}
    run["skipped"] = list(skipped)
    return {"format": form, "version": VERSION, "versions": versions(), "run": run}


def _samples(table: Any, evaluation: Any, values: Any) -> Samples:
    classes = [str(label) for label in evaluation.classes]
    codes = np.searchsorted(np.asarray(evaluation.classes), np.asarray(table.y, dtype=str))
    positive = None if evaluation.positive is None else str(evaluation.positive)
    X = table.X if values is None else values
    names = table.sample_names
    return Samples(X, codes.astype(np.intp), classes, table.feature_names, names, positive)


def _source(table: Any) -> Part:
    return {
        "source": table.source,
        "digest": table.digest,
        "target": table.target,
        "n_samples": int(table.X.shape[0]),
        "n_features": int(table.X.shape[1]),
        "record": list(table.record),
    }


def _data(table: Any, evaluation: Any, samples: Samples, units: str | None) -> Part:
    return {
        **_source(table),
        "classes": samples.classes,
        "class_counts": list(evaluation.class_counts),
        "positive": samples.positive,
        "positive_guessed": bool(table.positive_guessed),
        "n_missing": int(table.n_missing),
        "n_groups": evaluation.n_groups,
        "batches": list(table.batches),
        "covariates": {name: list(made) for name, made in table.covariates.items()},
        "units": units,
        "dropped": dict(table.dropped),
        "roles": role_lines(table),
    }


def role_lines(table: Any) -> list[Part]:
    """Return role, columns, count and reason, for each role and reason of a table's columns."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for column in sorted(table.roles, key=lambda column: get_args(Role).index(column.role)):
        grouped.setdefault((column.role, column.reason), []).append(column.column)
    counts = {key: len(names) for key, names in grouped.items()}
    told = sum(count for (role, _), count in counts.items() if role == "feature")
    counts |= {("feature", "numbers"): table.X.shape[1] - told}
    return [
        {"role": key[0], "columns": grouped.get(key, []), "count": count, "reason": key[1]}
        for key, count in counts.items()
        if count
    ]


def _judged(result: Any, prevalence: float | None) -> Part:
    """Scores and curves of an evaluation or of another cohort, predictive values moved."""
    scores = {name: _interval(score) for name, score in result.scores.items()}
    share = result.prevalence if prevalence is None else prevalence
    if prevalence is not None and result.positive is not None:
        known = result.predictive_values(prevalence)
        scores |= {name: _interval(score) for name, score in known.items()}
    line, counts = result.calibration, np.asarray(result.confusion, dtype=np.float64)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)
    return {
        "scores": {name: score for name, score in scores.items() if _known(score)},
        "prevalence": share if result.positive is not None else None,
        "confusion": {
            "classes": [str(label) for label in result.classes],
            "counts": whole_counts(counts),
            "shares": shares.tolist(),
            "order": numbers.order_of_classes(shares),
        },
        "calibration": line
        and {
            "intercept": _interval(line.intercept),
            "slope": line.slope and _interval(line.slope),
            "curve": columns_of(result.calibration_curve()),
        },
        "decision": columns_of(result.decision_curve(share)),
        "thresholds": _thresholds(result.thresholds(share), scores),
        "slider": columns_of(result.slider()),
        "roc": _curves(result),
    }


def _curves(result: Any) -> list[Part]:
    """The ROC curve of the positive class of two."""
    curve, area = columns_of(result.roc_curve()), result.scores.get("roc_auc")
    value = None if area is None else area.value
    return [] if curve is None else [{"label": str(result.positive), **curve, "area": value}]


def _interval(found: Any) -> Part:
    return {name: float(getattr(found, name)) for name in ("value", "low", "high", "level")}


def _known(score: Part) -> bool:
    return bool(np.isfinite([score["value"], score["low"], score["high"]]).all())


def _thresholds(frame: Any, scores: Part) -> list[Part]:
    """One row a threshold; a rate that does not exist there is None."""
    if frame is None or not len(frame):
        return []
    level = next(iter(scores.values()))["level"]
    rates = ("sensitivity", "specificity", "ppv", "npv")
    return [
        {name: line[name] for name in ("threshold", "own", "net_benefit")}
        | {name: _score(line, name, f"{name}_", level) for name in rates}
        for line in frame.to_dict("records")
    ]


def _score(line: Part, name: str, prefix: str, level: float) -> Part | None:
    """A score with the ends of its interval from a row of a frame; None where it is not known."""
    ends = {end: line[f"{prefix}{end}"] for end in ("low", "high")}
    score = {"value": line[name], **ends, "level": level}
    return score if _known(score) else None


def _adjusted(found: Any) -> Part | None:
    if found is None:
        return None
    alone = _interval(found.alone.scores["balanced_accuracy"])
    return {"names": list(found.names), "alone": alone, "added": _difference(found.added)}


def _difference(found: Any) -> Part | None:
    return None if found is None else {**_interval(found), "p_value": found.p_value}


def _ladder(evaluation: Any, chosen: int) -> list[Part]:
    frame = evaluation.ladder
    if frame is None:
        return []
    level = evaluation.scores["balanced_accuracy"].level
    names = evaluation.feature_names or range(evaluation.n_features)
    rungs: list[Part] = []
    for line in frame.to_dict("records"):
        size = int(line["size"])
        again = _chosen_again(evaluation.stability, size)
        shares = ("frequency", "with_stand_ins")
        kept = ("stability", "stability_noise", "chosen_again", "chosen_again_noise")
        rungs.append(
            {
                "size": size,
                "score": _score(line, "balanced_accuracy", "", level),
                "roc_auc": _score(line, "roc_auc", "roc_auc_", level),
                **{name: line[name] for name in kept},
                "recalls": evaluation.sized[size].recalls(len(evaluation.classes)),
                "chosen": size == chosen,
                "features": [
                    {"feature": str(names[f]), "index": int(f)}
                    | {name: again.get(f, {}).get(name) for name in shares}
                    for f in line["features"]
                ],
            }
        )
    return rungs


def _chosen_again(stability: Any, size: int | None) -> dict[int, Part]:
    """How often half samples choose each feature of the panel of a size, by feature."""
    if stability is None:
        return {}
    return {int(r["feature"]): r for r in stability.chosen_again(size).to_dict("records")}


def _stability(found: Any, rung: Mapping[str, Any] | None) -> Part | None:
    if found is None:
        return None
    kept = ("n_pairs", "index", "index_noise", "size_median", "error_bound", "n_stable")
    part = {name: getattr(found, name) for name in (*kept, "threshold")}
    if rung is not None:
        part |= {"index": rung["stability"], "index_noise": rung["stability_noise"]}
    return part


def _features(samples: Samples, evaluation: Any, panel: list[int], document: Part) -> Part:
    """The rows of the panel, and of the features that only larger rungs have."""
    covariates = {name for made in document["data"]["covariates"].values() for name in made}
    must = {str(name) for name in document["run"]["settings"].get("must") or ()}
    longest = max(document["ladder"], key=lambda rung: rung["size"], default=None)
    rungs = [] if longest is None else [row["index"] for row in longest["features"]]
    planes = getattr(steps_of(evaluation.model)[-1], "planes_", None)
    rows: dict[str, list[Part]] = {"panel": [], "more": []}
    more = [f for f in rungs if f not in panel]
    rung = own_rung(document)
    again = {
        **_chosen_again(evaluation.stability, None if longest is None else longest["size"]),
        **_chosen_again(evaluation.stability, None if rung is None else rung["size"]),
    }
    for place, f in enumerate([*panel, *more]):
        found = again.get(f, {})
        row = {
            "rank": place + 1,
            **numbers.describe_feature(samples, f),
            **{name: found.get(name) for name in ("frequency", "with_stand_ins", "noise")},
            "stand_ins": [
                {**other, "feature": str(other["name"]), "index": int(other["feature"])}
                for other in found.get("stand_ins", ())
            ],
            "covariate": str(samples.features[f]) in covariates,
            "must": str(samples.features[f]) in must,
            "planes": [] if planes is None or place >= len(panel) else planes[:, f],
        }
        rows["panel" if place < len(panel) else "more"].append(row)
    return rows


def _model(model: Any) -> Part:
    """What the fit on all samples is: its steps, parameters and constants."""
    *steps, final = steps_of(model)
    parameters = final.get_params(deep=False) if hasattr(final, "get_params") else {}
    small = (bool, int, float, str, type(None))
    return {
        "estimator": type(final).__name__,
        "steps": [type(step).__name__ for step in steps],
        "parameters": {k: v for k, v in parameters.items() if isinstance(v, small)},
        "tau": getattr(final, "tau_", None),
        "decision": getattr(final, "decision_", None),
        "rule": parameters.get("rule"),
        "plane_intercepts": getattr(final, "plane_intercepts_", ()),
        "coefficients": getattr(final, "panel_coef_", ()),
        "intercepts": getattr(final, "panel_intercept_", ()),
        "quotients": getattr(final, "quotients_", ()),
    }


def describe_cohort(validation: Any, *, source: str = "", digest: str = "") -> Part:
    """Describe what an `ExternalValidation` says of a model: ``cohort`` of a document."""
    return plain(
        {
            "source": source,
            "digest": digest,
            "classes": [str(label) for label in validation.classes],
            "positive": validation.positive,
            "class_counts": list(validation.class_counts),
            "n_samples": validation.n_samples,
            "observed_prevalence": validation.observed_prevalence,
            **_judged(validation, None),
            "remarks": cohort_remarks(validation.flags),
            "shift": [f.to_dict() for f in validation.shift or ()],
        }
    )


def describe_given(names: Sequence[str], evaluation: Any, difference: Any = None) -> Part:
    """Describe a panel of the user's, evaluated on the run's folds: ``given`` of a document.

    ``difference`` is its balanced accuracy minus that of the selection.
    """
    scores = evaluation.scores
    return {
        "names": list(names),
        "score": _interval(scores["balanced_accuracy"]),
        "roc_auc": _interval(scores["roc_auc"]) if "roc_auc" in scores else None,
        "difference": _difference(difference),
    }


def build_comparison(
    comparison: Any,
    table: Any,
    *,
    settings: Mapping[str, Any] | None = None,
    command: str = "",
    seed: int | None = None,
    notices: Sequence[Notice] = (),
) -> Part:
    """Gather a `Comparison` of methods on a table into a document, as `build_document` does."""
    fields = ("methods", "sizes", "reference", "n_samples", "n_features", "n_folds")
    document = {
        **_head(COMPARISON_FORMAT, command, settings, seed),
        "data": _source(table),
        "notices": [notice.to_dict() for notice in (*table.notices, *notices)],
        "comparison": {
            **{name: getattr(comparison, name) for name in fields},
            "rows": comparison.table.to_dict("records"),
        },
    }
    document["verdict"] = comparison_words(plain(document["comparison"]))
    return plain(document)


_PLAIN = {
    "text": ((str,), "text"),
    "number": ((int, float), "a number"),
    "whole": ((int,), "a whole number"),
    "flag": ((bool,), "true or false"),
}


def check_document(
    document: Any, source: str = "", formats: Sequence[str] = (FORMAT, COMPARISON_FORMAT)
) -> Part:
    """Return a document that was read from the file ``source`` if it is one, and whole.

    Raises `InputError` if it is another kind of document, of another version, or a part of it is
    missing or of another kind than ``schema.toml`` says.
    """
    form = document.get("format") if isinstance(document, Mapping) else None
    if form not in formats:
        remedy = f"pass a document of the format {' or '.join(formats)}"
        raise InputError(f"the format is {form!r}", where=source, remedy=remedy)
    if document.get("version") != VERSION:
        raise InputError(
            f"these results have version {document.get('version')!r}, and this program reads "
            f"{VERSION}",
            where=source,
            remedy="run it again with this version of sparsegsvp",
        )
    try:
        _check(dict(document), form, "")
    except ValueError as error:
        what = f"these results are damaged: {error}"
        raise InputError(what, where=source, remedy="run it again") from None
    return dict(document)


def _check(value: Any, kind: Any, path: str) -> None:
    """Raise an error that names the first place where a value is not of a kind of the schema."""
    if isinstance(kind, str):
        if kind == "any" or (value is None and kind.endswith("?")):
            return
        kind = kind.rstrip("?")
        if kind in _PLAIN:
            types, words = _PLAIN[kind]
            if type(value) not in types:  # True is no number
                raise ValueError(f"{path} must be {words}")
            return
        kind = toml_asset("schema.toml")[kind]
    if not isinstance(value, type(kind)):
        raise ValueError(f"{path} must be {'a list' if isinstance(kind, list) else 'an object'}")
    if isinstance(kind, list):
        for i, part in enumerate(value):
            _check(part, kind[0], f"{path}[{i}]")
        return
    for key, of in (dict.fromkeys(value, kind["*"]) if "*" in kind else kind).items():
        place = f"{path}.{key}" if path else key
        if key not in value:
            raise ValueError(f"{place} is missing")
        _check(value[key], of, place)
