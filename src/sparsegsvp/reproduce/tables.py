"""From results to tables: published, obtained, and whether the one lies in the range of the other.

A table is a list of rows with the same columns. Elbows are of both planes, features those of the
first plane only, the second only and both, counts TN FP FN TP.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from ..datasets import Dataset
from ..metrics import average_jaccard
from .runs import CLAIMS, PARTS, PUBLISHED, Plan, Results, Study, balanced

Rows = list[dict[str, Any]]
CODE, TEXT, FREE = "authors' conventions", "the text, literally", "no accidental stop"
MARKS = {"elbows": ", ", "features": " / ", "validation": " ", "test": " "}


def make_tables(study: Study, data: Dataset, plan: Plan, results: Results) -> dict[str, Rows]:
    """Build all tables of a study; those without rows are left out."""
    tables = {
        "rows": published_rows(study, results),
        "why": [{"method": m["label"], "why": m["why"]} for m in study.methods.values()],
        "panels": panel_rows(study, data, results),
        "fair": fair_rows(study, results),
        "search": search_rows(study, results),
        "sweep": sweep_rows(study, plan, results),
        "jaccard": jaccard_rows(study, plan, results),
        "claims": claim_rows(study, data, plan, results),
        "split": split_rows(study, data),
    }
    return {name: rows for name, rows in tables.items() if rows}


def _table(columns: str, rows: Iterable[Sequence[Any]]) -> Rows:
    names = columns.split(" | ")
    return [dict(zip(names, row, strict=True)) for row in rows]


def _spaced(values: Iterable[Any], mark: str = " ") -> str:
    """Values side by side, such as TN FP FN TP."""
    return mark.join(f"{v:g}" for v in values)


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if len(values) else None


def _runs(results: Results, head: str, method: str) -> Rows:
    """The runs of one method on other splits, from other starts, or with other shares."""
    return [group[method] for name, group in results.items() if name.startswith(f"{head}/")]


def _cells(fit: Mapping[str, Any], source: str = "code") -> list[list[int]]:
    """Elbows, features and counts of a fit, scored as the authors did or as the text says."""
    rule, kind = ("batch", "all") if source == "code" else ("printed", "selected")
    validation, test = (fit["confusion"][part][rule] for part in PARTS[1:])
    return [fit["elbows"], fit["counts"], validation["selected"], test[kind]]


def _stops(fit: Mapping[str, Any]) -> str:
    """Where each plane ended: at an iteration by the rule, or at the cap."""
    ends = zip(fit["iterations"], fit["converged"])
    return ", ".join(f"{n}" if done else "cap" for n, done in ends)


def _spread(values: Sequence[list[int]], published: list[int], mark: str) -> str:
    """The range of each number; whether the published ones are inside, and how often met."""
    ends = [(min(column), max(column)) for column in zip(*values)]
    shown = mark.join(f"{low}–{high}" if low < high else f"{low}" for low, high in ends)
    inside = all(low <= v <= high for v, (low, high) in zip(published, ends))
    met = f"inside, {values.count(published) or 'none'} of {len(values)}"
    return f"{shown} · {met if inside else 'outside'}"


def published_rows(study: Study, results: Results) -> Rows:
    """The paper's two result tables in one, by source; ranges over roundings among them."""
    rows: list[tuple[str, ...]] = []
    for key, entry in study.methods.items():
        label, target = entry["label"], [entry[c] for c in MARKS]
        rows.append((label, "published", "", *map(_spaced, target, MARKS.values()), ""))
        if printed := entry.get("notebook"):
            shown = (printed.get(c, "") for c in ("stopped", *MARKS, "same"))
            rows.append((label, "authors' notebook", *shown))
        code, text = (results[f"row/{key}/{source}"] for source in ("code", "paper"))
        kinds = {CODE: [code, *_runs(results, "rounding", key)]}
        if any(any(fit["converged"]) for fit in kinds[CODE]):
            kinds[FREE] = [fit["free"] or fit for fit in kinds[CODE]]
        lines = {name: (_stops(fits[0]), _cells(fits[0])) for name, fits in kinds.items()}
        lines[TEXT] = _stops(text), _cells(text, "paper")
        for source, (ended, found) in lines.items():
            same = [c for c, value, goal in zip(MARKS, found, target) if value == goal]
            said = "all" if found == target else ", ".join(same) or "none"
            rows.append((label, source, ended, *map(_spaced, found, MARKS.values()), said))
        for name, fits in kinds.items():
            cells = [_cells(fit) for fit in fits]
            ranges = map(_spread, map(list, zip(*cells)), target, MARKS.values())
            whole = f"all in {cells.count(target)} of {len(cells)}"
            rows.append((label, f"{name}, any rounding", "", *ranges, whole))
    for name, made in results["own"].items():
        counts = [_spaced(made[part]) for part in PARTS[1:]]
        rows.append(("this package", name, "", "", str(len(made["panel"])), *counts, ""))
    return _table(f"method | source | stopped at | {' | '.join(MARKS)} | as published", rows)


def panel_rows(study: Study, data: Dataset, results: Results) -> Rows:
    """Which features each plane has, where the paper has ten at most, and in how many roundings."""
    rows = []
    for key, entry in study.methods.items():
        fits = [results[f"row/{key}/code"], *_runs(results, "rounding", key)]
        named = [
            tuple(", ".join(data.feature_names[k[:5]]) + (" …" if k[5:] else "") for k in planes)
            for planes in (fit["features"] for fit in fits if sum(entry["elbows"]) <= 10)
        ]
        rows += [(entry["label"], *k, f"{n} of {len(fits)}") for k, n in Counter(named).items()]
    columns = " | ".join(f"plane of {name}" for name in study.classes)
    return _table(f"method | {columns} | roundings", rows)


def fair_rows(study: Study, results: Results) -> Rows:
    """Means over the same splits: printed rule, the authors' scoring, retuned; and the panels."""
    rows = []
    for key in (*study.methods, *results["own"]):
        runs, entry = _runs(results, "splits", key), study.methods.get(key)
        again = {k: v for k, v in results.items() if k.startswith(f"search/{key}/")}
        first = again.pop(f"search/{key}/{PUBLISHED}", None)
        tuned = list(again.values()) or ([first] if first else [])
        rows.append({
            "method": entry["label"] if entry else key,
            "published, one split": balanced(entry["test"]) if entry else None,
            "splits": len(runs),
            "printed rule": _mean([balanced(np.add(r["validation"], r["test"])) for r in runs]),
            "authors' scoring": _mean([balanced(run["batch"]) for run in runs if "batch" in run]),
            "splits retuned": len(again) or ("the published one" if first else None),
            "retuned, authors' scoring": _mean([run["test"] for run in tuned]),
            "retuned, printed rule": _mean([run["test_printed"] for run in tuned]),
            "panels of these splits": _panels(runs),
            "panels of other starts": _panels(_runs(results, "starts", key)),
        })  # fmt: skip
    return rows


def _panels(runs: Rows) -> str:
    """How many of the panels are distinct, their Jaccard index, and how many features they have."""
    panels = [tuple(run["panel"]) for run in runs]
    if len(panels) < 2:
        return ""
    sizes, alike = sorted(map(len, panels)), average_jaccard(panels)
    return f"{len(set(panels))} of {len(panels)}; {alike:.2f}; {sizes[0]}–{sizes[-1]}"


def search_rows(study: Study, results: Results) -> Rows:
    """What the search for delta and step picks, and its score on other samples."""
    rows = []
    for name, r in results.items():
        head, *rest = name.split("/")
        if head == "search":
            label, seed = study.methods[rest[0]]["label"], int(rest[1])
            where = "published" if seed == PUBLISHED else f"other {seed + 1}"
            found = [r[k] for k in ("step_size", "features", "tried", "tied", "validation", "test")]
            rows.append((label, where, _spaced(r["delta"], ", "), *found, r["test_printed"]))
    columns = "method | split | deltas | step | features | settings | as good | validation"
    return _table(f"{columns} | test, authors' scoring | test, printed rule", rows)


def sweep_rows(study: Study, plan: Plan, results: Results) -> Rows:
    """Features selected at each (q, eps), and what the authors' older notebook prints."""
    rows = []
    for eps in plan.eps:
        known = study.notebook_sweep if eps == plan.eps[0] and len(plan.qs) == 10 else {}
        for i, (q, fit) in enumerate(results[f"sweep/{eps:.4g}"].items()):
            counts = fit["confusion"]["validation"]["batch"]["selected"]
            elbow, common, listed = (v[i] for v in known.values()) if known else [None] * 3
            rows.append((eps, float(q), min(fit["elbows"]), elbow, _spaced(fit["elbows"], ", "),
                         len(fit["panel"]), fit["counts"][2], common, _spaced(counts),
                         _spaced(listed or ()), _stops(fit)))  # fmt: skip
    columns = "eps | q | smaller elbow | notebook | elbows | either plane | common"
    columns += " | common, notebook | validation | validation, notebook | stopped at"
    return _table(columns, rows)


def jaccard_rows(study: Study, plan: Plan, results: Results) -> Rows:
    """Average Jaccard index across q at each eps."""
    panels = {e: [f["panel"] for f in results[f"sweep/{e:.4g}"].values()] for e in plan.eps}
    published = dict(zip(plan.eps, study.jaccard))
    rows = [(e, published.get(e), average_jaccard(p)) for e, p in panels.items() if len(p) > 1]
    return _table("eps | published | obtained", rows)


def split_rows(study: Study, data: Dataset) -> Rows:
    """Samples per class and part: printed and obtained (Table 1)."""
    rows = [
        (name, part, study.split[name][k], int(np.sum(y == label)))
        for label, name in enumerate(study.classes)
        for k, (part, (_, y)) in enumerate(zip(PARTS, study.split_of(data)))
    ]
    return _table("class | part | published | obtained", rows)


def claim_rows(study: Study, data: Dataset, plan: Plan, results: Results) -> Rows:
    """Claims of the text beside its tables, how each was tried, and what came of it."""
    made, fits = results["selectors"], {k: results[f"row/{k}/code"] for k in study.methods}
    scores = "; ".join(
        f"{name}: {value['scores'][0]:.3f} ({np.mean(value['scores'][1:]):.3f})"
        for name, value in made.items()
    )
    if study.key == "ovarian":
        union = {f for name, value in made.items() if name.endswith(", 20") for f in value["panel"]}
        tops = {k: {f for kept in fits[k]["features"] for f in kept[:10]} for k in ("l1", "q=1")}
        shared = "; ".join(f"{k}: {len(union & top)} of {len(top)}" for k, top in tops.items())
        found = {"filters": shared, "few": scores}
    else:
        selected = {f for fit in fits.values() for kept in fit["features"] for f in kept}
        two = {"worst smoothness", "area error"} <= {str(data.feature_names[f]) for f in selected}
        shares = {"all": "splits", **{f"{s:g}": f"share {s}" for s in plan.shares}}
        recalls = []
        for name, share in product((*study.methods, *results["own"]), shares):
            runs = _runs(results, shares[share], name)
            tn, fp, fn, tp = np.sum([run[p] for run in runs for p in PARTS[1:]], axis=0)
            recalls.append(f"{name} at {share} {tn / (tn + fp):.2f}/{tp / (tp + fn):.2f}")
        found = {"elimination": scores, "subset": f"both are selected: {'yes' if two else 'no'}"}
        found["imbalance"] = "; ".join(recalls)
    return _table("claim | tried how | found", [(*CLAIMS[k], said) for k, said in found.items()])
