"""What each picture shows, computed once: `drawings` and `sparsegsvp.plots` only draw it.

Every function is pure and returns plain lists and numbers, as `sparsegsvp.report.schema.DOCUMENT`
describes them under ``Figures`` and ``Box``. ``evaluation`` is ``EvaluationResult.to_dict()``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score, roc_curve

from .._typing import Float64Array
from ..estimators.elbow import find_elbow
from ..evaluation.values import plain
from ..metrics import at_prevalence, decision_curve, threshold_table

Part = dict[str, Any]

_ROC_GRID = np.linspace(0.0, 1.0, 101)
_MAX_BARS = 30
_MAX_WEIGHTS = 40
_MAX_OUTLIERS = 12


# ---------------------------------------------------------------------- the estimate


def roc(evaluation: Mapping[str, Any]) -> Part | None:
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


def calibration(evaluation: Mapping[str, Any]) -> Part | None:
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


def _probabilities(
    evaluation: Mapping[str, Any], prevalence: float | None
) -> tuple[NDArray[np.bool_], Float64Array, float] | None:
    """Which samples are positive, the first repeat's probabilities at a prevalence, and that.

    By default at the share of the positive class in the table. None without two classes or
    without probabilities.
    """
    proba = evaluation["out_of_fold"][0]["proba"]
    if proba is None or len(evaluation["classes"]) != 2:
        return None
    one = [str(c) for c in evaluation["classes"]].index(str(evaluation["positive"]))
    p = np.array([np.nan if row[one] is None else row[one] for row in proba], dtype=np.float64)
    y = np.asarray(evaluation["y"]) == one
    known = np.isfinite(p)
    if np.unique(y[known]).size < 2:
        return None
    share = float(y[known].mean()) if prevalence is None else prevalence
    return y[known], at_prevalence(np.clip(p[known], 0, 1), share), share


def decision(evaluation: Mapping[str, Any], prevalence: float | None = None) -> Part | None:
    """The decision curve of the first repeat's probabilities, at a prevalence."""
    found = _probabilities(evaluation, prevalence)
    if found is None:
        return None
    y, p, share = found
    label = str(evaluation["positive"])
    return {**decision_curve(y, p, prevalence=share).to_dict(), "label": label}


def thresholds(evaluation: Mapping[str, Any], prevalence: float | None = None) -> list[Part]:
    """What acting from a probability on means, by the first repeat, at a prevalence."""
    found = _probabilities(evaluation, prevalence)
    if found is None:
        return []
    y, p, share = found
    return plain(threshold_table(y, p, prevalence=share, own=share))


def cohort(validation: Mapping[str, Any]) -> Part:
    """ROC, calibration and decision curve of ``ExternalValidation.to_dict()``, where known."""
    label = str(validation["positive"])
    roc, curve = validation["roc"], validation["calibration"]
    drawn: Part = {"roc": None, "calibration": None, "decision": None}
    if roc is not None:
        drawn["roc"] = {
            **roc,
            "low": [],
            "high": [],
            "auc": validation["scores"].get("auc"),
            "n_folds": 0,
            "label": label,
        }
    if curve is not None:
        drawn["calibration"] = {
            **{name: curve[name] for name in ("predicted", "observed", "count")},
            "line": validation["line"],
            "label": label,
        }
    if validation["decision"] is not None:
        drawn["decision"] = {**validation["decision"], "label": label}
    return drawn


def confusion(evaluation: Mapping[str, Any]) -> Part | None:
    """Return the out-of-fold predictions, averaged over the repeats; rows are true classes.

    The rates of this table are the sensitivity, specificity and balanced accuracy that are shown.
    """
    classes = [str(c) for c in evaluation["classes"]]
    return {"classes": classes, "counts": evaluation["confusion"]["mean"]}


def permutation_histogram(evaluation: Mapping[str, Any], n_bins: int = 24) -> Part | None:
    """The statistic under permuted labels, in bins that also reach the observed one."""
    found = evaluation.get("permutation")
    if not found or not found["distribution"]:
        return None
    values = np.asarray(found["distribution"], dtype=np.float64)
    chance = 1.0 / len(evaluation["classes"])
    low = min(values.min(), found["observed"], chance)
    high = max(values.max(), found["observed"], chance)
    pad = max(0.02, 0.04 * (high - low))
    edges = np.linspace(max(0.0, low - pad), min(1.0, high + pad), n_bins + 1)
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


def learning(found: Mapping[str, Any]) -> Part:
    """Accuracy and stability at growing parts of the samples, and the law where there is one.

    ``found`` is ``LearningCurve.to_dict()``.
    """

    def curve(n: Sequence[int], scores: Sequence[Mapping[str, float]]) -> Part:
        return {"n": list(n), **{k: [s[k] for s in scores] for k in ("value", "low", "high")}}

    ahead = found["forecast"]
    return {
        "measured": curve(found["sizes"], found["accuracy"]),
        "ahead": curve([f["n_samples"] for f in ahead], [f["accuracy"] for f in ahead]),
        "stability": list(found["stability"]),
        "n_samples": int(found["n_samples"]),
        "chance": float(found["chance"]),
    }


# --------------------------------------------------------------------------- the path


def path(model: Any, names: Sequence[str]) -> Part:
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


def weight_curves(model: Any, names: Sequence[str]) -> list[Part]:
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
) -> list[Part]:
    """Selection frequencies, highest first: all features of the panel and the runners-up.

    ``group_frequencies`` say how often the feature or one of its substitutes was selected.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsegsvp.report.figures import stability_bars
    >>> bars = stability_bars(np.array([0.2, 0.9, 0.0]), ["a", "b", "c"], [1])
    >>> [(bar["feature"], bar["in_panel"]) for bar in bars]
    [('b', True), ('a', False)]
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


def accuracy_curves(comparison: Any) -> Part:
    """Accuracy against panel size: a curve per method, and the Pareto front.

    ``comparison`` is the result of `sparsegsvp.compare`, or its ``to_dict()``. To ``methods`` and
    ``front`` of ``Comparison.curves()`` come ``sizes``, ``reference``, the ``level`` of the
    intervals, and in each curve as ``link`` its place among all methods.
    """
    found = comparison if isinstance(comparison, Mapping) else comparison.to_dict()
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


# ------------------------------------------------------------------------ one feature


def column(X: Any, index: int) -> Float64Array:
    """One column of a dense or sparse table, as dense numbers."""
    part = X[:, [index]]
    part = part.toarray() if hasattr(part, "toarray") else np.asarray(part)
    return part.ravel().astype(np.float64)


def box(values: Float64Array, label: str) -> Part | None:
    """The numbers of a box plot: quartiles, whiskers to 1.5 times the box, and outliers.

    Missing values are left out; None when nothing is left. At most 12 outliers are listed, the
    most extreme on either side; ``n_outliers`` counts all.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsegsvp.report.figures import box
    >>> found = box(np.array([1.0, 2.0, 3.0, 4.0, 100.0]), "ill")
    >>> found["median"], found["high"], found["outliers"]
    (3.0, 4.0, [100.0])
    """
    x = np.sort(values[np.isfinite(values)])
    if not x.size:
        return None
    q1, median, q3 = (float(v) for v in np.quantile(x, [0.25, 0.5, 0.75]))
    reach = 1.5 * (q3 - q1)
    inside = x[(x >= q1 - reach) & (x <= q3 + reach)]
    below, above = x[x < q1 - reach], x[x > q3 + reach]
    half = _MAX_OUTLIERS // 2
    return {
        "label": label,
        "n": int(x.size),
        "low": float(inside[0]),
        "q1": q1,
        "median": median,
        "q3": q3,
        "high": float(inside[-1]),
        "mean": float(x.mean()),
        "outliers": [*below[:half].tolist(), *above[-half:].tolist()],
        "n_outliers": int(below.size + above.size),
    }


def effect_sizes(
    values: Float64Array, codes: NDArray[np.intp], n_classes: int
) -> list[float | None]:
    """The standardised mean difference of each class to the others (for two: Cohen's d).

    The mean of a class minus the mean of the other class means, divided by the pooled
    within-class standard deviation, without missing values. None where that deviation is zero
    or a class is empty.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsegsvp.report.figures import effect_sizes
    >>> effect_sizes(np.array([0.0, 2.0, 4.0, 6.0]), np.array([0, 0, 1, 1]), 2)
    [-2.82..., 2.82...]
    """
    parts = [values[(codes == k) & np.isfinite(values)] for k in range(n_classes)]
    if any(part.size == 0 for part in parts):
        return [None] * n_classes
    means = np.array([part.mean() for part in parts])
    freedom = sum(part.size for part in parts) - n_classes
    squares = sum(float(((part - part.mean()) ** 2).sum()) for part in parts)
    spread = np.sqrt(squares / max(freedom, 1))
    if freedom < 1 or spread <= 1e-12 * np.abs(means).max():  # only rounding is left
        return [None] * n_classes
    others = (means.sum() - means) / (n_classes - 1)
    return [float(v) for v in (means - others) / spread]


def single_auc(values: Float64Array, codes: NDArray[np.intp], n_classes: int) -> float | None:
    """The area under the ROC curve of one feature alone, in its better direction.

    None unless there are two classes with values in both.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsegsvp.report.figures import single_auc
    >>> single_auc(np.array([4.0, 3.0, 2.0, 1.0]), np.array([0, 0, 1, 1]), 2)
    1.0
    """
    known = np.isfinite(values)
    if n_classes != 2 or np.unique(codes[known]).size < 2:
        return None
    area = float(roc_auc_score(codes[known] == 1, values[known]))
    return max(area, 1.0 - area)
