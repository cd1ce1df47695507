"""From raw results to tables: published, obtained, and why they differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..datasets import Dataset
from ..metrics import average_jaccard
from .claims import claim_rows, search_rows
from .plan import Plan
from .protocol import (
    Findings,
    PaperMethod,
    PaperSplit,
    Row,
    Study,
    classification_report,
    spaced,
    sweep_name,
)
from .runs import OWN_METHODS

CODE = "authors' conventions"
NOTEBOOK = "authors' notebook"
_PRINTED = "Printed by the authors' public notebook."
_SOURCE_LABELS = {"code": CODE, "paper": "the text, literally"}
_RULE_NOTES = {
    "best": (
        "Another method. The best score in cross-validation inside the training part; the "
        "planes are refitted on the panel, so both use all of it."
    ),
    "1se": "Another method. The sparsest panel within one standard error of the best.",
}
KINDS = {
    "starts": "random starts",
    "rows": "orders of the same rows",
    "splits": "random 70/30 splits",
}


def make_tables(
    study: Study, data: Dataset, parts: PaperSplit, plan: Plan, results: Findings
) -> dict[str, list[Row]]:
    """Build all tables of one study; those without rows are left out."""
    sensitivity = sensitivity_rows(study, results)
    tables = {
        "split": split_table_rows(study, parts),
        "settings": settings_rows(study),
        "elbows": elbow_rows(study, plan, results, sensitivity),
        "reports": report_rows(study, plan, results, sensitivity),
        "changes": change_rows(study, results),
        "sweep": sweep_rows(study, plan, results),
        "jaccard": jaccard_rows(study, plan, results),
        "sensitivity": sensitivity,
        "search": search_rows(method_labels(study), results),
        "claims": claim_rows(study, results, data),
        "runs": run_rows(study, results, data),
    }
    return {name: rows for name, rows in tables.items() if rows}


def split_table_rows(study: Study, parts: PaperSplit) -> list[Row]:
    """Samples per class and part: printed and obtained."""
    return [
        {
            "class": name,
            "part": part,
            "published": study.split[name][position],
            "obtained": int(np.sum(getattr(parts, part)[1] == label)),
        }
        for label, name in enumerate(study.class_names)
        for position, part in enumerate(("train", "validation", "test"))
    ]


def settings_rows(study: Study) -> list[Row]:
    """Model parameters: printed, and run by the authors."""
    return [
        {
            "method": method.label,
            "source": source,
            "delta_1": delta[0],
            "delta_2": delta[1],
            "step_size": step,
            "eps": None if method.q is None else method.eps,
        }
        for method in study.methods
        for source, delta, step in (
            ("printed", method.delta_printed, method.step_printed),
            ("run", method.delta_run, method.step_run),
        )
    ]


def elbow_rows(study: Study, plan: Plan, results: Findings, sensitivity: list[Row]) -> list[Row]:
    """Elbow points and feature counts of each method by source."""
    rows = []
    for method in study.methods:
        published = study.rows[method.key]
        target = _elbows(published.elbows, published.features)
        rows.append(_row(method.label, "published", target))
        if method.key in study.notebook:
            printed = study.notebook[method.key]
            known: Row = dict.fromkeys(target)
            known |= {"elbow_2": printed.smaller_elbow, "common": printed.common}
            known["total"] = printed.total
            note = f"{_PRINTED} It gives the smaller of the two elbows only, or none."
            rows.append(_row(method.label, NOTEBOOK, known, reason=note))
        for source, label in _SOURCE_LABELS.items():
            result = results[f"row/{method.key}/{source}"]
            found = _elbows(result["elbows"], result["counts"])
            why = _reasons(study, method, source, plan, found == target, result, sensitivity)
            rows.append(_row(method.label, label, found, target, why))
    for rule in plan.rules:
        own = results[f"own/{rule}"]
        found = {**_elbows([None, None], own["counts"]), "total": len(own["panel"])}
        rows.append(_row("this package", f"GSVPSVMCV, {rule}", found, reason=_RULE_NOTES[rule]))
    return rows


def _elbows(elbows: Sequence[int | None], counts: Sequence[int]) -> Row:
    names = ("elbow_1", "elbow_2", "only_1", "only_2", "common", "total")
    return dict(zip(names, (*elbows, *counts, sum(counts))))


def report_rows(study: Study, plan: Plan, results: Findings, sensitivity: list[Row]) -> list[Row]:
    """Classification reports of each part and method by source."""
    rows = []
    for part in ("validation", "test"):
        mine = []
        for method in study.methods:
            target = classification_report(getattr(study.rows[method.key], part))
            mine.append(_row(method.label, "published", target))
            printed = None
            if method.key in study.notebook:
                printed = classification_report(getattr(study.notebook[method.key], part))
                mine.append(_row(method.label, NOTEBOOK, printed, target, _PRINTED))
            for source, label in _SOURCE_LABELS.items():
                result = results[f"row/{method.key}/{source}"]
                found = scored(result, source, part)
                same = found == target
                why = _reasons(study, method, source, plan, same, result, sensitivity, part)
                if not same and found == printed and source == "code":
                    why = "The number of the authors' notebook, which is not the published one."
                mine.append(_row(method.label, label, found, target, why))
        for rule in plan.rules:
            own = results[f"own/{rule}"]
            note = f"Another method: {len(own['panel'])} features."
            found = own["reports"][part]
            mine.append(_row("this package", f"GSVPSVMCV, {rule}", found, reason=note))
        rows += [{"part": part, **row} for row in mine]
    return rows


def _row(
    method: str, source: str, found: Row, published: Row | None = None, reason: str = ""
) -> Row:
    """What was found, and whether it is what was published, if that is to be said."""
    verdict = "identical" if found == published else "differs"
    row = {"method": method, "source": source, **found}
    return {**row, "verdict": "" if published is None else verdict, "reason": reason}


def scored(result: dict[str, Any], source: str, part: str) -> dict[str, Any]:
    """The report that a source stands for.

    The authors' conventions score validation with the selected features and test with all
    weights, by the batch rule; the text scores both with the selected ones, by equation 21.
    """
    if source == "code":
        return result["reports"][part]["batch"]["selected" if part == "validation" else "all"]
    return result["reports"][part]["distance"]["selected"]


def _reasons(
    study: Study,
    method: PaperMethod,
    source: str,
    plan: Plan,
    same: bool,
    result: Row,
    sensitivity: list[Row],
    part: str | None = None,
) -> str:
    """Say why a number is not the published one; empty where there is nothing to say."""
    if same and not (source == "code" and method.q == 1.0):
        return ""
    said = []
    if plan.max_iter < 10_000:
        said.append(f"The cap on iterations was lowered to {plan.max_iter} for this run.")
    if source == "code":
        if method.q == 1.0 and study.key == "breast":
            said.append(_chaos(method, same, sensitivity))
        elif study.key == "ovarian" and not same:
            said.append(
                "The same samples as the authors', their values to about the sixth decimal. "
                + (
                    "Where this iteration stops depends on such digits."
                    if all(result["converged"])
                    else "The iteration had not settled at its cap, and where it stands then "
                    "depends on such digits."
                )
            )
        return " ".join(said)
    if method.step_run != method.step_printed:
        said.append(
            f"The printed step is {method.step_printed:g}; the authors ran {method.step_run:g}."
        )
    if method.delta_run != method.delta_printed:
        said.append(
            f"Both printed deltas are {method.delta_printed[0]:.6f}; the authors ran "
            f"{method.delta_run[0]:.6f} and {method.delta_run[1]:.6f}; the run hangs on that digit."
        )
    if method.q is not None:
        said.append("The weights of the penalty are taken at z, as printed, not at y.")
    if part is not None:
        said.append(
            "Distances are divided by ||w|| (equation 21), not by their norm over the batch."
        )
    if part == "test":
        said.append("The selected features alone are scored, not all weights.")
    return " ".join(said)


def _chaos(method: PaperMethod, same: bool, sensitivity: list[Row]) -> str:
    luck = "That it agrees here is luck: the" if same else "The"
    said = (
        f"{luck} iteration does not settle at q = 1; it runs to the cap, and where it stands "
        "then depends on rounding."
    )
    for row in sensitivity:
        if row["kind"] == "rows" and row["method"] == method.label:
            said += (
                f" {row['runs']} orders of the same training rows gave {row['distinct']} "
                "distinct panels."
            )
    return said


def change_rows(study: Study, results: Findings) -> list[Row]:
    """From the published score to the one the text describes, one change at a time."""
    rows = []
    for method in study.methods:
        run = results[f"row/{method.key}/code"]["reports"]
        printed = results[f"row/{method.key}/paper"]["reports"]
        target = study.rows[method.key]
        published = [classification_report(c) for c in (target.validation, target.test)]
        steps = (
            ("published", published),
            ("as the authors ran it", _both(run, "batch", "all")),
            ("+ distances divided by ||w|| (equation 21)", _both(run, "distance", "all")),
            ("+ test scored on the selected features alone", _both(run, "distance", "selected")),
            ("+ penalty weights and settings as printed", _both(printed, "distance", "selected")),
        )
        rows += [
            {
                "method": method.label,
                "step": name,
                "validation": validation["balanced_accuracy"],
                "test": test["balanced_accuracy"],
            }
            for name, (validation, test) in steps
        ]
    return rows


def _both(reports: Mapping[str, Any], rule: str, weights: str) -> list[Any]:
    """Validation with the selected features, and test with these weights, by one rule."""
    return [reports["validation"][rule]["selected"], reports["test"][rule][weights]]


def sweep_rows(study: Study, plan: Plan, results: Findings) -> list[Row]:
    """Features selected at each (q, eps), and what the authors' notebook prints of them."""
    printed = {sweep_name("paper", q, eps): point for q, eps, point in study.sweep.notebook}
    rows = []
    for q, eps in plan.grid(study):
        name = sweep_name("paper", q, eps)
        paper, point = results[name], printed.get(name)
        rows.append(
            {
                "eps": eps,
                "q": q,
                "notebook_smaller_elbow": point and point.smaller_elbow,
                "elbow_1": paper["elbows"][0],
                "elbow_2": paper["elbows"][1],
                "notebook_common": point and point.common,
                "common": paper["counts"][2],
                "features": len(paper["panel"]),
                "notebook_validation": point and spaced(point.validation),
                "validation": spaced(paper["validation"]),
                "converged": all(paper["converged"]),
                "GSVPSVM_features": len(results[sweep_name("own", q, eps)]["panel"]),
            }
        )
    return rows


def jaccard_rows(study: Study, plan: Plan, results: Findings) -> list[Row]:
    """Average Jaccard index across q at each eps: of both planes' features, and of each plane's."""
    given, levels = plan.levels(study)
    qs = sorted(set(given))
    if len(qs) < 2:
        return []
    printed = dict(zip(study.sweep.eps, study.sweep.jaccard or ()))
    rows = []
    for eps in levels:
        points = [results[sweep_name("paper", q, eps)] for q in qs]
        own = [results[sweep_name("own", q, eps)]["panel"] for q in qs]
        rows.append(
            {
                "eps": eps,
                "published": printed.get(eps),
                "obtained": average_jaccard([point["panel"] for point in points]),
                "plane_1": average_jaccard([point["features"][0] for point in points]),
                "plane_2": average_jaccard([point["features"][1] for point in points]),
                "GSVPSVM": average_jaccard(own),
            }
        )
    return rows


def runs_of(results: Findings, kind: str, method: str) -> list[dict[str, Any]]:
    """The runs of one method under one kind of change, by seed."""
    head = f"{kind}/{method}/"
    found = [
        (int(name[len(head) :]), run) for name, run in results.items() if name.startswith(head)
    ]
    return [run for _, run in sorted(found, key=lambda pair: pair[0])]


def method_labels(study: Study) -> dict[str, str]:
    """Key -> label of everything in the sensitivity study."""
    return {**{m.key: m.label for m in study.methods}, **{name: name for name in OWN_METHODS}}


def sensitivity_rows(study: Study, results: Findings) -> list[Row]:
    """How much each method changes with the start, the order of rows and the split."""
    rows = []
    for kind in KINDS:
        for method, label in method_labels(study).items():
            runs = runs_of(results, kind, method)
            if len(runs) < 2:
                continue
            panels = [run["panel"] for run in runs]
            sizes = [len(panel) for panel in panels]
            scores = np.array([run["balanced_accuracy"] for run in runs])
            rows.append(
                {
                    "kind": kind,
                    "method": label,
                    "runs": len(runs),
                    "distinct": len({tuple(panel) for panel in panels}),
                    "jaccard": average_jaccard(panels),
                    "features_median": float(np.median(sizes)),
                    "features_min": min(sizes),
                    "features_max": max(sizes),
                    "accuracy_mean": float(scores.mean()),
                    "accuracy_sd": float(scores.std(ddof=1)),
                    "accuracy_min": float(scores.min()),
                    "accuracy_max": float(scores.max()),
                    "capped": sum(run["capped"] for run in runs),
                }
            )
    return rows


def run_rows(study: Study, results: Findings, data: Dataset) -> list[Row]:
    """Every run of the sensitivity study, its panel by name."""
    return [
        {
            "kind": kind,
            "method": label,
            "seed": seed,
            "features": len(run["panel"]),
            "balanced_accuracy": run["balanced_accuracy"],
            "capped": run["capped"],
            "panel": ";".join(data.feature_names[run["panel"]]),
        }
        for kind in KINDS
        for method, label in method_labels(study).items()
        for seed, run in enumerate(runs_of(results, kind, method))
    ]
