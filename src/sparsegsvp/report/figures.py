"""The numbers of each picture, computed once: `drawings` and `sparsegsvp.plots` only draw them.

Every function is pure and returns plain lists and numbers, as `sparsegsvp.report.schema.DOCUMENT`
describes them under ``Figures`` and ``Box``. ``evaluation`` is ``EvaluationResult.to_dict()``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_curve

from .._typing import Float64Array
from ..estimators.elbow import find_elbow
from ..evaluation.curves import PositiveProbabilities
from ..metrics import at_prevalence, net_benefit

FigureData = dict[str, Any]


@dataclass(frozen=True)
class SampleTable:
    """A table and its classes as pictures of samples take them.

    ``codes`` are the places of the samples' classes in ``classes``, ``names`` those of the
    features; ``ids`` name the samples, ``positive`` is the class of interest of two.
    """

    X: Any
    codes: NDArray[np.intp]
    classes: Sequence[str]
    names: Sequence[str]
    ids: Sequence[str] | None = None
    positive: str | None = None


_ROC_GRID = np.linspace(0.0, 1.0, 101)
_MAX_BARS = 30
_BINS = 24  # of a permutation distribution
_MAX_WEIGHTS = 40


# ---------------------------------------------------------------------- the estimate


def roc(evaluation: Mapping[str, Any]) -> FigureData | None:
    """ROC curves of all outer folds, averaged at equal false positive rates.

    Scores of different folds come from different fits, so they are never pooled. With more
    than two classes every class against the rest is one more curve.

    None where the procedure has no decision values.
    """
    classes, positive = [str(c) for c in evaluation["classes"]], str(evaluation["positive"])
    y = np.asarray(evaluation["y"])
    binary = len(classes) == 2
    ones = [classes.index(positive)] if binary else list(range(len(classes)))
    by_repeat = {entry["repeat"]: entry for entry in evaluation["out_of_fold"]}
    curves = []
    for fold in evaluation["folds"]:
        decision = by_repeat[fold["repeat"]]["decision"]
        if decision is None:
            return None
        test = np.asarray(fold["test"], dtype=np.intp)
        values = np.array([decision[i] for i in test], dtype=np.float64)
        for k in ones:
            truth = y[test] == k
            if truth.all() or not truth.any() or not np.isfinite(values[:, k]).all():
                continue
            fpr, tpr, _ = roc_curve(truth, values[:, k])
            # at a jump numpy takes the last of the equal abscissae, the upper end
            curves.append(np.interp(_ROC_GRID, fpr, tpr))
    if not curves:
        return None
    stack = np.stack(curves)
    low, high = np.quantile(stack, [0.1, 0.9], axis=0)
    return {
        "fpr": _ROC_GRID.tolist(),
        "tpr": stack.mean(axis=0).tolist(),
        "low": low.tolist(),
        "high": high.tolist(),
        "auc": evaluation["scores"].get("auc"),
        "n_folds": len(evaluation["folds"]),
        "label": positive if binary else "each class against the rest",
    }


def calibration(evaluation: Mapping[str, Any]) -> FigureData | None:
    """The class-weighted calibration curve of the first repeat."""
    found = evaluation.get("calibration")
    if not found:
        return None
    return {
        "predicted": list(found["predicted"]),
        "observed": list(found["observed"]),
        "count": [int(v) for v in found["count"]],
        "line": evaluation["calibration_line"],
        "label": str(evaluation["positive"]),
    }


def positive_probabilities(evaluation: Mapping[str, Any]) -> PositiveProbabilities | None:
    """The first repeat's probabilities; None without two classes or without probabilities."""
    proba = evaluation["out_of_fold"][0]["proba"]
    if proba is None or len(evaluation["classes"]) != 2:
        return None
    one = [str(c) for c in evaluation["classes"]].index(str(evaluation["positive"]))
    p = np.array([np.nan if row[one] is None else row[one] for row in proba], dtype=np.float64)
    return PositiveProbabilities.known(np.asarray(evaluation["y"]) == one, p)


def decision(evaluation: Mapping[str, Any], prevalence: float | None = None) -> FigureData | None:
    """The decision curve of the first repeat's probabilities, at a prevalence."""
    found = positive_probabilities(evaluation)
    if found is None:
        return None
    return {**found.decision_curve(prevalence).to_dict(), "label": str(evaluation["positive"])}


def at_threshold(counts: Mapping[str, Any], evidence: float, prevalence: float) -> FigureData:
    """Rates, predictive values and net benefit at a threshold, as the page's slider shows them.

    ``counts`` is ``EvaluationResult.to_dict()["threshold_counts"]``, for equal class shares.
    ``evidence`` are the log odds at equal shares from which one acts; 0 are the labels of the
    model. ``threshold`` is the probability that they are at the prevalence. Predictive values
    are None where nobody is called so.
    """
    balanced = 1.0 / (1.0 + np.exp(-evidence))
    at = int(np.searchsorted(counts["threshold"], balanced))
    sensitivity, specificity = 0.0, 1.0
    if at < len(counts["threshold"]):
        tp, fn, fp, tn = (counts[key][at] for key in ("tp", "fn", "fp", "tn"))
        sensitivity, specificity = tp / (tp + fn), tn / (tn + fp)
    right, wrong = prevalence * sensitivity, (1 - prevalence) * (1 - specificity)
    missed, rest = prevalence - right, 1 - prevalence - wrong
    threshold = float(at_prevalence(balanced, prevalence))
    return {
        "threshold": threshold,
        "sensitivity": sensitivity,
        "specificity": specificity,
        "ppv": right / (right + wrong) if right + wrong > 0 else None,
        "npv": rest / (rest + missed) if rest + missed > 0 else None,
        "net_benefit": float(net_benefit(sensitivity, specificity, prevalence, threshold)),
    }


def cohort(validation: Mapping[str, Any]) -> FigureData:
    """ROC, calibration and decision curve of ``ExternalValidation.to_dict()``, where known."""
    label, roc, curve = str(validation["positive"]), validation["roc"], validation["calibration"]
    decision = validation["decision"]
    if roc is not None:
        area = validation["scores"].get("auc")
        roc = {**roc, "low": [], "high": [], "auc": area, "n_folds": 0, "label": label}
    if curve is not None:
        curve = {name: curve[name] for name in ("predicted", "observed", "count")}
        curve |= {"line": validation["line"], "label": label}
    if decision is not None:
        decision = {**decision, "label": label}
    return {"roc": roc, "calibration": curve, "decision": decision}


def confusion(evaluation: Mapping[str, Any]) -> FigureData:
    """The out-of-fold predictions, averaged over the repeats; rows are true classes.

    The rates of this table are the sensitivity, specificity and balanced accuracy that are shown.
    """
    classes = [str(c) for c in evaluation["classes"]]
    return {"classes": classes, "counts": evaluation["confusion"]["mean"]}


def permutation_histogram(evaluation: Mapping[str, Any]) -> FigureData | None:
    """The statistic under permuted labels, in bins that also reach the observed one."""
    found = evaluation.get("permutation")
    if not found or not found["distribution"]:
        return None
    values = np.asarray(found["distribution"], dtype=np.float64)
    chance = 1.0 / len(evaluation["classes"])
    low = min(values.min(), found["observed"], chance)
    high = max(values.max(), found["observed"], chance)
    pad = max(0.02, 0.04 * (high - low))
    edges = np.linspace(max(0.0, low - pad), min(1.0, high + pad), _BINS + 1)
    counts, _ = np.histogram(values, edges)
    return {
        "edges": edges.tolist(),
        "counts": counts.tolist(),
        "observed": float(found["observed"]),
        "p_value": float(found["p_value"]),
        "n": int(values.size),
        "stopped_early": bool(found["stopped_early"]),
        "chance": chance,
    }


def learning(found: Mapping[str, Any]) -> FigureData:
    """Accuracy and stability at growing parts of the samples, and the law where there is one.

    ``found`` is ``LearningCurve.to_dict()``.
    """

    def curve(n: Sequence[int], scores: Sequence[Mapping[str, float]]) -> FigureData:
        return {"n": list(n), **{k: [s[k] for s in scores] for k in ("value", "low", "high")}}

    ahead = found["forecast"]
    return {
        "measured": curve(found["sizes"], found["accuracy"]),
        "ahead": curve([f["n_samples"] for f in ahead], [f["accuracy"] for f in ahead]),
        "stability": list(found["stability"]),
        "n_samples": int(found["n_samples"]),
        "chance": float(found["chance"]),
    }


def accuracy_curves(found: Mapping[str, Any]) -> FigureData:
    """Accuracy against panel size, of ``Comparison.to_dict()``: a curve per method, and the front.

    To ``methods`` and ``front`` of its curves come ``sizes``, ``reference``, the ``level`` of the
    intervals, and in each curve as ``link`` its place among all methods.
    """
    curves, rows = found["curves"], found.get("rows", ())
    every = list(dict.fromkeys([*(row["method"] for row in rows), *curves["methods"]]))
    sizes = {size for curve in curves["methods"].values() for size in curve["size"]}
    return {
        "methods": {
            name: {**curve, "link": every.index(name)} for name, curve in curves["methods"].items()
        },
        "front": sorted(curves["front"], key=lambda at: (at["size"], every.index(at["method"]))),
        "sizes": list(found.get("sizes", sorted(sizes))),
        "reference": found.get("reference"),
        "level": next((row["score"]["level"] for row in rows if row["score"]), 0.95),
    }


# --------------------------------------------------------------------------- the path


def path(model: Any, names: Sequence[str]) -> FigureData:
    """Panel, inner score, and features that enter and leave, at each step of the path.

    ``accuracy`` is the mean balanced accuracy of the inner folds at each step with its standard
    error. ``features`` come in the order in which they enter, the heavier first.
    """
    found = model.path_
    order: dict[int, int] = {}
    for panel, weights in zip(found["panel"], found["weights"]):
        heaviest = np.abs(weights).max(axis=0)
        for i in np.argsort(-heaviest, kind="stable"):
            order.setdefault(int(panel[i]), len(order))
    table = np.zeros((len(order), len(found["rho"])))
    steps = []
    before: set[int] = set()
    for s, (panel, weights) in enumerate(zip(found["panel"], found["weights"])):
        now = [order[int(f)] for f in panel]
        table[now, s] = np.abs(weights).max(axis=0)
        steps.append(
            {
                "rho": float(found["rho"][s]),
                "delta": [float(v) for v in found["delta"][s]],
                "panel": sorted(now),
                "entering": sorted(set(now) - before),
                "leaving": sorted(before - set(now)),
                "score": float(found["score"][s]),
                "score_error": float(found["score_error"][s]),
                "accuracy": float(found["accuracy"][s]),
                "accuracy_error": float(found["accuracy_error"][s]),
            }
        )
        before = set(now)
    return {
        "features": [str(names[f]) for f in order],
        "steps": steps,
        "weights": table.tolist(),
        "chosen": found["chosen"],
        "score_name": str(getattr(model, "scoring", "score")),
    }


def weight_curves(model: Any, names: Sequence[str]) -> list[FigureData]:
    """Sorted penalised weights of each plane at the chosen step, with the paper's elbow.

    At most the 40 heaviest weights, then one of the zeros that follow.
    """
    step = model.path_["chosen"]
    panel = np.asarray(model.path_["panel"][step])
    curves = []
    for label, row in zip(model.classes_.tolist(), model.path_["weights"][step]):
        size = np.abs(row)
        order = np.argsort(-size, kind="stable")
        order = order[size[order] > 0.0]
        more = len(order) < model.n_features_in_
        curve = [*size[order].tolist(), *([0.0] if more else [])]
        shown = order[:_MAX_WEIGHTS]
        curves.append(
            {
                "label": str(label),
                "features": [str(names[panel[i]]) for i in shown],
                "weights": curve[: _MAX_WEIGHTS + 1],
                "n_nonzero": len(order),
                "elbow": find_elbow(curve),
            }
        )
    return curves


# -------------------------------------------------------------------------- stability


def stability_bars(
    frequencies: Float64Array,
    names: Sequence[str],
    panel: Sequence[int],
    *,
    group_frequencies: Float64Array | None = None,
) -> list[FigureData]:
    """Selection frequencies, highest first: all features of the panel and the runners-up.

    ``group_frequencies`` say how often the feature or one of its substitutes was selected.
    """
    mine = {int(f) for f in panel}
    order = np.argsort(-frequencies, kind="stable")
    others = [int(f) for f in order if frequencies[f] > 0 and int(f) not in mine]
    keep = mine | set(others[: max(0, _MAX_BARS - len(mine))])
    return [
        {
            "feature": str(names[f]),
            "frequency": float(frequencies[f]),
            "group_frequency": None if group_frequencies is None else float(group_frequencies[f]),
            "in_panel": int(f) in mine,
        }
        for f in (int(f) for f in order)
        if f in keep
    ]
