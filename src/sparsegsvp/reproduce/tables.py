"""From results to tables: published, obtained, and whether the one lies in the range of the other.

A table is a list of rows with the same columns. Elbows are of both planes, features those of the
first plane only, the second only and both, counts TN FP FN TP.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..datasets import Dataset
from ..metrics import average_jaccard
from .runs import CLAIMS, PARTS, PUBLISHED, Plan, Results, Row, Study, balanced, parts_of

CODE, TEXT, FREE = "authors' conventions", "the text, literally", "no accidental stop"
SCORED = "authors' scoring"
CELLS = ("elbows", "features", "validation", "test")
# From a row as the authors ran it to the text: name, source, rule, weights of the test part.
STEPS = (
    ("as the authors ran it", "code", "batch", "all"),
    ("+ distances divided by ||w|| (equation 21)", "code", "printed", "all"),
    ("+ test scored on the selected features alone", "code", "printed", "selected"),
    ("+ penalty weights and settings as printed", "paper", "printed", "selected"),
)


def make_tables(study: Study, data: Dataset, plan: Plan, results: Results) -> dict[str, list[Row]]:
    """Build all tables of a study; those without rows are left out."""
    names = [str(name) for name in data.feature_names]
    tables = {
        "rows": published_rows(study, results),
        "rounding": rounding_rows(study, results),
        "named": named_rows(study, results, names),
        "fair": fair_rows(study, results),
        "sensitivity": sensitivity_rows(study, results),
        "changes": change_rows(study, results),
        "search": search_rows(study, results),
        "sweep": sweep_rows(study, plan, results),
        "jaccard": jaccard_rows(study, plan, results),
        "claims": claim_rows(study, results, names),
        "split": split_rows(study, data),
    }
    return {name: rows for name, rows in tables.items() if rows}


def _table(columns: str, rows: Iterable[Sequence[Any]]) -> list[Row]:
    names = columns.split(" | ")
    return [dict(zip(names, row, strict=True)) for row in rows]


def _spaced(values: Iterable[Any], mark: str = " ") -> str:
    """Values side by side, such as TN FP FN TP."""
    return mark.join(f"{v:g}" for v in values)


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if len(values) else None


def cells(fit: Mapping[str, Any], source: str = "code") -> list[str]:
    """Elbows, features and counts of a fit, scored as the authors did or as the text says."""
    rule, kind = ("batch", "all") if source == "code" else ("printed", "selected")
    counts = fit["confusion"]["validation"][rule]["selected"], fit["confusion"]["test"][rule][kind]
    return [_spaced(fit["elbows"], ", "), _spaced(fit["counts"], " / "), *map(_spaced, counts)]


def stops(fit: Mapping[str, Any]) -> str:
    """Where each plane ended: at an iteration by the rule, or at the cap."""
    ends = zip(fit["iterations"], fit["converged"])
    return ", ".join(f"{n}" if done else "cap" for n, done in ends)


def _roundings(results: Results, method: str) -> dict[str, Row]:
    """The fits of a method over all roundings, the plain one first."""
    others = {k[9:]: v[method] for k, v in results.items() if k.startswith("rounding/")}
    return {"one thread": results[f"row/{method}/code"], **others}


def _spread(values: Sequence[str], published: str) -> str:
    """Distinct values, the commonest first, with how often; and whether the published is one."""
    counts = Counter(values).most_common()
    shown = "; ".join(f"{v} ({n})" if len(counts) > 1 else v for v, n in counts[:4])
    more = f"; {len(counts) - 4} more" if len(counts) > 4 else ""
    return f"{shown}{more} · {'inside' if published in dict(counts) else 'outside'}"


def published_rows(study: Study, results: Results) -> list[Row]:
    """The paper's two result tables in one, by source; ranges over roundings among them."""
    rows: list[tuple[str, ...]] = []
    for key, entry in study.methods.items():
        target = [_spaced(entry["elbows"], ", "), _spaced(entry["features"], " / "),
                  _spaced(entry["validation"]), _spaced(entry["test"])]  # fmt: skip
        code, text = (results[f"row/{key}/{source}"] for source in ("code", "paper"))
        fits = list(_roundings(results, key).values())
        lines = [("published", "", target), *_notebook(entry), (CODE, stops(code), cells(code))]
        free = [fit["free"] or fit for fit in fits]
        kinds = [(CODE, fits)]
        if code["free"]:
            lines.append((FREE, stops(code["free"]), cells(code["free"])))
            kinds.append((FREE, free))
        lines.append((TEXT, stops(text), cells(text, "paper")))
        for name, runs in kinds if len(fits) > 1 else []:
            columns = zip(*(cells(run) for run in runs))
            ranges = [_spread(column, goal) for column, goal in zip(columns, target)]
            lines.append((f"{name}, any rounding ({len(fits)})", "", ranges))
        for source, ended, found in lines:
            same = [c for c, value, goal in zip(CELLS, found, target)
                    if value == goal or value.endswith("inside")]  # fmt: skip
            said = "" if source == "published" else "all" if len(same) == 4 else ", ".join(same)
            rows.append((entry["label"], source, ended, *found, said))
    for name in own_names(study):
        own = results["own"][name]
        counts = [_spaced(own["counts"][part]) for part in PARTS[1:]]
        rows.append(("this package", name, "", "", str(len(own["panel"])), *counts, ""))
    return _table(f"method | source | stopped at | {' | '.join(CELLS)} | as published", rows)


def _notebook(entry: Mapping[str, Any]) -> list[tuple[str, str, list[str]]]:
    """What the authors' notebook prints of a row, as far as it does."""
    if "notebook" not in entry:
        return []
    printed = entry["notebook"]
    ended = ", ".join("rule" if stopped else "cap" for stopped in printed.get("stopped", ()))
    found = [f"smaller {printed['smaller_elbow']}" if "smaller_elbow" in printed else "",
             f"common {printed['common']}" if "common" in printed else "",
             *(_spaced(printed.get(part, ())) for part in PARTS[1:])]  # fmt: skip
    return [("authors' notebook", ended, found)]


def rounding_rows(study: Study, results: Results) -> list[Row]:
    """Every rounding of every row, with and without the stopping rule."""
    rows = [
        (entry["label"], name, stops(fit), *cells(fit), *cells(fit["free"] or fit))
        for key, entry in study.methods.items()
        for name, fit in _roundings(results, key).items()
    ]
    free = " | ".join(f"{cell}, {FREE}" for cell in CELLS)
    return _table(f"method | sums by | stopped at | {' | '.join(CELLS)} | {free}", rows)


def named_rows(study: Study, results: Results, names: Sequence[str]) -> list[Row]:
    """The features selected, by name, beside those of the notebook."""
    rows = []
    for key, entry in study.methods.items():
        listed = entry.get("notebook", {}).get("selected", ["", ""])
        for k, kept in enumerate(results[f"row/{key}/code"]["features"]):
            shown = ", ".join(names[f] for f in kept[:7]) + (", ..." if len(kept) > 7 else "")
            rows.append((entry["label"], study.classes[k], shown, ", ".join(listed[k])))
    return _table("method | plane of | selected | notebook", rows)


def runs_of(results: Results, head: str, method: str) -> list[Row]:
    """The runs of one method from other starts, or on other splits."""
    groups = [v for k, v in results.items() if k.partition("/")[0] == head]
    return [run for group in groups for name, run in group.items() if name.split("/")[0] == method]


def own_names(study: Study) -> list[str]:
    """This package's methods beside the paper's."""
    return [f"GSVPSVM({study.size})", "GSVPSVMCV"]


def fair_rows(study: Study, results: Results) -> list[Row]:
    """The same splits three ways: printed rule, the authors' scoring, and retuned."""
    rows: list[tuple[Any, ...]] = []
    for key in (*study.methods, *own_names(study)):
        runs, entry = runs_of(results, "splits", key), study.methods.get(key)
        again = {k: v for k, v in results.items() if k.startswith(f"search/{key}/")}
        first = again.pop(f"search/{key}/{PUBLISHED}", None)
        tuned = list(again.values()) or ([first] if first else [])
        rows.append((
            entry["label"] if entry else key,
            balanced(entry["test"]) if entry else None,
            len(runs),
            _mean([run["printed"] for run in runs]),
            _mean([run["all"] for run in runs if "all" in run]),
            len(again) or ("the published one" if first else None),
            _mean([run["test"] for run in tuned]),
            _mean([run["test_printed"] for run in tuned]),
        ))  # fmt: skip
    columns = ("method | published, one split | splits | printed rule | authors' scoring | splits "
               "retuned | retuned, authors' scoring | retuned, printed rule")  # fmt: skip
    return _table(columns, rows) if rows[0][2] else []


def sensitivity_rows(study: Study, results: Results) -> list[Row]:
    """How much each method changes with the start and the split."""
    rows = []
    for head in ("starts", "splits"):
        for method in (*study.methods, *own_names(study)):
            runs = runs_of(results, head, method)
            if len(runs) < 2:
                continue
            panels, scores = [run["panel"] for run in runs], [run["printed"] for run in runs]
            sizes, label = [len(panel) for panel in panels], {"label": method}
            rows.append((
                study.methods.get(method, label)["label"], head, len(runs),
                len({tuple(panel) for panel in panels}), average_jaccard(panels),
                f"{np.median(sizes):g} ({min(sizes)}–{max(sizes)})", float(np.mean(scores)),
                float(np.std(scores, ddof=1)), sum(run.get("capped", False) for run in runs),
            ))  # fmt: skip
    columns = "method | other | runs | distinct panels | Jaccard | features | balanced accuracy"
    return _table(f"{columns} | sd | at the cap", rows)


def change_rows(study: Study, results: Results) -> list[Row]:
    """From the published score to the one the text describes, one change at a time."""
    rows = []
    for key, entry in study.methods.items():
        rows.append((entry["label"], "published", *(balanced(entry[part]) for part in PARTS[1:])))
        for name, source, rule, kind in STEPS:
            counts = results[f"row/{key}/{source}"]["confusion"]
            both = counts["validation"][rule]["selected"], counts["test"][rule][kind]
            rows.append((entry["label"], name, *map(balanced, both)))
    return _table("method | step | validation | test", rows)


def search_rows(study: Study, results: Results) -> list[Row]:
    """What the search for delta and step picks, and its score on other samples."""
    rows = []
    for name, r in results.items():
        head, _, rest = name.partition("/")
        if head == "search":
            method, seed = rest.split("/")
            where = "published" if seed == str(PUBLISHED) else f"other {int(seed) + 1}"
            found = [r[k] for k in ("step_size", "features", "tried", "tied", "validation", "test")]
            deltas, label = _spaced(r["delta"], ", "), study.methods[method]["label"]
            rows.append((label, where, deltas, *found, r["test_printed"]))
    columns = "method | split | deltas | step | features | settings | as good | validation"
    return _table(f"{columns} | test, authors' scoring | test, printed rule", rows)


def sweep_rows(study: Study, plan: Plan, results: Results) -> list[Row]:
    """Features selected at each (q, eps), and what the authors' older notebook prints."""
    rows = []
    for eps in plan.eps:
        known = study.notebook_sweep if eps == plan.eps[0] and len(plan.qs) == 10 else {}
        for i, q in enumerate(plan.qs):
            fit = results[f"sweep/{eps:.4g}"][f"{q:g}"]
            counts = fit["confusion"]["validation"]["batch"]["selected"]
            printed = [known[k][i] if known else None for k in ("smaller_elbow", "common")]
            rows.append((eps, q, min(fit["elbows"]), printed[0], _spaced(fit["elbows"], ", "),
                         len(fit["panel"]), fit["counts"][2], printed[1], _spaced(counts),
                         _spaced(known["validation"][i]) if known else None, stops(fit),
                         len(fit["own"])))  # fmt: skip
    columns = "eps | q | smaller elbow | notebook | elbows | either plane | common"
    columns += " | common, notebook"
    return _table(f"{columns} | validation | validation, notebook | stopped at | LqGSVPSVM", rows)


def jaccard_rows(study: Study, plan: Plan, results: Results) -> list[Row]:
    """Average Jaccard index across q at each eps."""
    published = dict(zip(plan.eps, study.jaccard))
    fits = {eps: list(results[f"sweep/{eps:.4g}"].values()) for eps in plan.eps}
    rows = [
        (e, published.get(e), *(average_jaccard([fit[k] for fit in f]) for k in ("panel", "own")))
        for e, f in fits.items()
        if len(f) > 1
    ]
    return _table("eps | published | obtained | LqGSVPSVM", rows)


def split_rows(study: Study, data: Dataset) -> list[Row]:
    """Samples per class and part: printed and obtained."""
    parts = parts_of(data, study.key)
    rows = [
        (name, part, study.split[name][k], int(np.sum(getattr(parts, part)[1] == label)))
        for label, name in enumerate(study.classes)
        for k, part in enumerate(PARTS)
    ]
    return _table("class | part | published | obtained", rows)


def claim_rows(study: Study, results: Results, names: Sequence[str]) -> list[Row]:
    """Claims of the text beside its tables, how each was tried, and what came of it."""
    found: dict[str, str] = {}
    if "claim/filters" in results:
        made = results["claim/filters"]
        union = {feature for top in made["top"].values() for feature in top}
        tops = {key: _heaviest(results[f"row/{key}/code"]["weights"]) for key in ("l1", "q=1")}
        found["filters"] = "; ".join(
            f"{study.methods[key]['label']}: {len(union & set(top))} of 20, "
            f"{sum(min(abs(at - f) for f in union) <= 5 for at in top)} within 5 bins of one"
            for key, top in tops.items()
        )
        found["few"] = _first_and_means(made["scores"])
    if "claim/elimination" in results:
        made = results["claim/elimination"]
        panels = [results[f"row/{key}/code"]["features"] for key in study.methods]
        selected = {names[f] for planes in panels for kept in planes for f in kept}
        both = {"worst smoothness", "area error"} <= selected
        inside = len(selected & {names[f] for f in made["panels"]["18"]})
        found["elimination"] = _first_and_means(made["scores"])
        found["subset"] = f"both are selected: {'yes' if both else 'no'}; {inside} of "
        found["subset"] += f"{len(selected)} among our 18"
    seeds = [v for k, v in results.items() if k.startswith("claim/imbalance/")]
    if seeds:
        recalls = {(name, share): np.mean([s[share][name] for s in seeds], axis=0)
                   for name in seeds[0]["1"] for share in seeds[0]}  # fmt: skip
        found["imbalance"] = "; ".join(
            f"{name} {first:.2f}/{second:.2f} at {share}"
            for (name, share), (first, second) in recalls.items()
        )
    return _table("claim | tried how | found", [(*CLAIMS[k], said) for k, said in found.items()])


def _heaviest(planes: Sequence[Mapping[str, Any]]) -> list[int]:
    """The twenty features of the largest weights in either plane."""
    pairs = ((-abs(v), at) for plane in planes for at, v in zip(plane["at"], plane["value"]))
    return list(dict.fromkeys(at for _, at in sorted(pairs)))[:20]


def _first_and_means(scores: Mapping[str, Sequence[float]]) -> str:
    return ", ".join(
        f"{name}: {first:.3f}" + (f" ({np.mean(others):.3f})" if others else "")
        for name, (first, *others) in scores.items()
    )
