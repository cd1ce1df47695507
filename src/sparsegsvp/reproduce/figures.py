"""The paper's figures, published and obtained: sheets of charts drawn from plain results."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..report.charts import Axis, Chart, ChartSheet
from ..report.marks import padded, power
from .plan import Plan
from .protocol import Findings, Row, Study, classification_report, sweep_name
from .tables import KINDS, method_labels, runs_of

# Colours of the methods and of the two classes: classes of the style sheet of charts.
TONES = {"l1": "c1", "q=1": "c4", "q=0.1": "c3", "GSVPSVM": "c2", "GSVPSVMCV": "c0"}
CLASS_TONES = ("c0", "c5")
EPS_TONES = ("c0", "c1", "c3", "c7")


def sensitivity(study: Study, results: Findings, table: Sequence[Row]) -> ChartSheet:
    """Barcodes of the panels, one line per run, and the scores over random splits.

    A method whose panel does not depend on the run draws vertical bars; one that does draws
    noise.
    """
    labels = method_labels(study)
    kinds = [kind for kind in KINDS if runs_of(results, kind, study.methods[0].key)]
    found = {(row["kind"], row["method"]): row for row in table}
    rows: list[list[Chart]] = []
    for method, label in labels.items():
        line = []
        for kind in kinds:
            row = found.get((kind, label))
            title = ""
            if row is not None:
                panels = "one panel" if row["distinct"] == 1 else f"{row['distinct']} panels"
                cap = f" · {row['capped']} at the cap" if row["capped"] else ""
                title = f"{panels} · Jaccard {row['jaccard']:.2f}{cap}"
            name = label if kind == kinds[0] else ""
            line.append(_barcode(runs_of(results, kind, method), TONES[method], name, title))
        row = found.get(("splits", label))
        title = "" if row is None else f"{row['accuracy_mean']:.3f} ± {row['accuracy_sd']:.3f}"
        line.append(_scores(study, runs_of(results, "splits", method), method, title))
        rows.append(line)
    for chart in rows[-1]:  # room for what is said once, below all
        chart.height, chart.bottom = chart.height + 16, chart.bottom + 16
    for line in rows[:-1]:
        line[-1].x = replace(
            line[-1].x, ticks=[(value, "") for value, *_ in line[-1].x.ticks or ()]
        )
    first = rows[-1][0]
    first.x = replace(first.x, title="features, the most often selected first")
    count = {kind: len(runs_of(results, kind, study.methods[0].key)) for kind in kinds}
    heads = [f"{count[kind]} {KINDS[kind]}" for kind in kinds]
    return ChartSheet(
        rows, "panels and scores of every run", [*heads, "balanced accuracy, held out"]
    )


def _barcode(runs: Sequence[Mapping[str, Any]], tone: str, name: str, title: str) -> Chart:
    """One line per run, one column per feature that any run selected, the commonest first."""
    counts = Counter(feature for run in runs for feature in run["panel"])
    order = sorted(counts, key=lambda feature: (-counts[feature], feature))
    column = {feature: place for place, feature in enumerate(order)}
    gap = 0.06 if len(order) <= 60 else 0.0
    chart = Chart(
        Axis(0, max(len(order), 24), ticks=()),
        Axis(max(len(runs), 1), 0, name, ticks=(), kind=f"count {tone}"),
        title,
        *(290, 112, 26, 10, 0, 14),
        title=title,
    )
    cells = [
        (column[feature] + gap, line + gap, column[feature] + 1 - gap, line + 1 - gap)
        for line, run in enumerate(runs)
        for feature in run["panel"]
    ]
    chart.rects(cells, f"bar {tone}", radius=0)
    if not runs:
        # Reordering rows changes the folds of GSVPSVMCV, which the first column shows.
        chart.text(0, 0.5, "other folds: see the left", "name start")
    if not gap:
        chart.text(chart.x.high, len(runs), f"{len(order)} features in all", "tick end", dy=13)
    return chart


def _scores(study: Study, runs: Sequence[Mapping[str, Any]], method: str, title: str) -> Chart:
    """Each split's balanced accuracy and their mean; the published score as a dashed line."""
    scores = [run["balanced_accuracy"] for run in runs]
    chart = Chart(
        Axis(0.38, 1.02, ticks=[(v / 10, f"{v / 10:.1f}") for v in range(4, 11)], grid=True),
        Axis(0, 1, ticks=()),
        "balanced accuracy over random splits",
        *(330, 112, 26, 10, 2, 14),
        title=title,
    )
    # spread by rank, so that equal scores lie beside each other
    heights = [0.5 + 0.33 * math.sin(2.4 * i) for i in range(len(scores))]
    chart.points(scores, heights, f"pt {TONES[method]}", radius=3.5)
    if scores:
        mean = sum(scores) / len(scores)
        chart.line([mean, mean], [0.05, 0.95], f"series thick {TONES[method]}")
    if method in study.rows:
        published = classification_report(study.rows[method].test)["balanced_accuracy"]
        chart.line([published] * 2, [0, 1], "series fine dashes", label="published")
    return chart


def sorted_weights(study: Study, plan: Plan, results: Findings) -> ChartSheet:
    """Sorted weights with their elbows: the paper's method above, this package's below."""
    qs, (eps, *_) = plan.levels(study)
    low, high = (min(qs, key=lambda q: abs(q - at)) for at in (0.2, 0.9))
    paper = [("l1", results["row/l1/code"])]
    paper += [(f"lq, q = {q:g}", results[sweep_name("paper", q, eps)]) for q in (low, high)]
    own = [(q, results[sweep_name("own", q, eps)]) for q in (max(qs), low, high)]
    above = [_curves(study, r, r["elbows"], f"PGDGSVPSVM, {name}") for name, r in paper]
    below = [_curves(study, r, r["counts"], f"GSVPSVM, q = {q:g}") for q, r in own]
    return ChartSheet([above, below], "sorted weights of both planes and the number kept")


def _curves(study: Study, result: Mapping[str, Any], kept: Sequence[int], title: str) -> Chart:
    curves = result["sorted"]
    shown = int(min(max(len(curve) for curve in curves), max(30, 4 * max(kept))))
    y = Axis(-0.03, 1.08, "|w| / largest", grid=True)
    chart = Chart(Axis(0, shown + 1, "rank"), y, title, 370, 260, title=title)
    for label, curve, count, tone in zip(study.class_names, curves, kept, CLASS_TONES):
        values = curve[:shown]
        chart.line(range(1, len(values) + 1), values, f"series {tone}", label=label)
        if 0 < count <= len(values):
            at = count, values[count - 1]
            chart.points([at[0]], [at[1]], f"knot {tone}", radius=4.5)
            chart.text(*at, str(count), f"count start {tone}", dx=8, dy=-7)
    return chart


def convergence(study: Study, results: Findings) -> ChartSheet:
    """Objective and relative error by iteration; the objective of this package's solver."""
    above, below = [], []
    for method in study.methods:
        result = results[f"row/{method.key}/code"]
        history, state = result["history"], ["stops" if d else "cap" for d in result["converged"]]
        change = [[max(v, 1e-12) for v in plane["relative_error"]] for plane in history]
        title = f"{method.label}  ({state[0]}, {state[1]})"
        x = _log_axis([i for plane in history for i in plane["iteration"]], "iteration")
        both = [v for plane in history for v in (*plane["objective"], *plane["penalty"]) if v > 0]
        y = _log_axis(both, "objective (dotted: penalty)")
        objective = Chart(x, y, title, 300, 250, title=title)
        y = _log_axis([v for c in change for v in c], "relative change")
        relative = Chart(x, y, title, 300, 250)
        for label, plane, errors, tone in zip(study.class_names, history, change, CLASS_TONES):
            at = plane["iteration"]
            objective.line(at, plane["objective"], f"series {tone}", label=label)
            objective.line(at, plane["penalty"], f"series fine dots {tone}")
            relative.line(at, errors, f"series fine {tone}")
        relative.rule("series fine dashes", y=1e-4)
        above.append(objective)
        below.append(relative)
    planes = results["own/convergence"]["planes"]
    longest = max(len(plane["objective"]) for plane in planes)
    values = padded([v for plane in planes for v in plane["objective"]])
    title = "GSVPSVM, last penalty of its path"
    x, y = Axis(-0.5, longest - 0.5, "iteration"), Axis(*values, grid=True)
    own = Chart(x, y, title, 300, 250, title=title)
    note = Chart(Axis(0, 1, ticks=()), Axis(0, 1, ticks=()), "certificate", 300, 250, 50)
    note.text(0, 1, "certificate of stationarity", "head start", dy=20)
    for k, (label, plane, tone) in enumerate(zip(study.class_names, planes, CLASS_TONES)):
        at = list(range(len(plane["objective"])))
        own.line(at, plane["objective"], f"series {tone}")
        own.points(at, plane["objective"], f"dot {tone}")
        words = f"{label}: residual {plane['kkt_residual']:.0e}"
        note.text(0, 1, words, f"count start {tone}", dy=50 + 44 * k)
        note.text(0, 1, f"(delta_max {plane['delta_max']:.2f})", "name start", dy=68 + 44 * k)
    return ChartSheet([[*above, own], [*below, note]], "objective and relative change by iteration")


def _log_axis(values: Iterable[float], title: str) -> Axis:
    low, high = padded([math.log10(v) for v in values], 0.04)
    return Axis(10**low, 10**high, title, log=True)


def features_by_q(
    study: Study, plan: Plan, results: Findings, jaccard: Sequence[Row] | None
) -> ChartSheet:
    """Number of features against q for each eps, and the average Jaccard index across q."""
    given, levels = plan.levels(study)
    qs = sorted(set(given))
    charts: list[Chart] = []
    for whose, name in (("paper", "PGDGSVPSVM"), ("own", "GSVPSVM")):
        sizes = {
            eps: [len(results[sweep_name(whose, q, eps)]["panel"]) for q in qs] for eps in levels
        }
        tallest = max(1, *(size for line in sizes.values() for size in line))
        title = f"{name}: features selected"
        y = Axis(0, 1.1 * tallest, "features", grid=True)
        chart = Chart(Axis(*padded(qs), "q"), y, title, 370, 300, title=title)
        for k, (eps, tone) in enumerate(zip(levels, EPS_TONES)):
            chart.line(qs, sizes[eps], f"series {tone}", label=f"eps = {power(eps)}")
            chart.points(qs, sizes[eps], f"pt {tone}", shape=k)
        charts.append(chart)
    if jaccard is not None:
        charts.append(_jaccard(jaccard))
    return ChartSheet([charts], "features against q, and how alike the panels are")


def _jaccard(table: Sequence[Row]) -> Chart:
    title = "average Jaccard index across q"
    marks = [(float(i), power(row["eps"])) for i, row in enumerate(table)]
    x = Axis(-0.6, len(table) - 0.4, "eps", marks)
    chart = Chart(x, Axis(0, 1.1, grid=True), title, 440, 300, title=title)
    series = (("published", "plain"), ("obtained", TONES["q=1"]), ("GSVPSVM", TONES["GSVPSVM"]))
    for offset, (column, tone) in enumerate(series):
        known = [
            (place + 0.27 * (offset - 1), row[column])
            for place, row in enumerate(table)
            if row[column] is not None
        ]
        bars = [(at - 0.125, 0.0, at + 0.125, value) for at, value in known]
        if bars:
            chart.rects(bars, f"bar {tone}", label=column)
        for at, value in known:
            chart.text(at, value, f"{value:.2f}", "tick mid", dy=-4)
    return chart


def weights(study: Study, plan: Plan, results: Findings) -> ChartSheet:
    """The weights by feature: q = 0.1 above, `GSVPSVMCV` below; kept features in colour."""
    paper, own = results["row/q=0.1/code"], results[f"own/{plan.rules[-1]}"]
    rows: list[list[Chart]] = [[], []]
    for k, label in enumerate(study.class_names):
        for row, name, found, kept in (
            (0, "PGDGSVPSVM, q = 0.1", paper["weights"][k], paper["features"][k]),
            (1, f"GSVPSVMCV, {plan.rules[-1]}", own["weights"][k], own["panel"]),
        ):
            title = f"{name}: plane of {label}"
            rows[row].append(_stems(study, found, set(kept), CLASS_TONES[k], title))
    return ChartSheet(rows, "weights of both planes by feature")


def _stems(study: Study, found: Mapping[str, Any], kept: set[int], tone: str, title: str) -> Chart:
    n = study.shape[1]
    x = Axis(-0.02 * n - 1, 1.02 * n, "feature")
    y = Axis(*padded([0.0, *found["value"]]), "weight", grid=True)
    chart = Chart(x, y, title, 590, 240, title=title)
    chart.rule("axis", y=0.0)
    stems = list(zip(found["at"], found["value"]))
    for inside, kind in ((False, "series fine pale"), (True, f"series {tone}")):
        mine = [(at, value) for at, value in stems if (at in kept) == inside]
        at, values = [at for at, _ in mine], [value for _, value in mine]
        chart.whiskers(at, [0.0] * len(at), values, kind)
    chart.points(at, values, f"dot {tone}")
    return chart


def top_features(study: Study, plan: Plan, results: Findings) -> ChartSheet:
    """The heaviest selected features of each plane, with their weights."""
    columns = [(f"PGDGSVPSVM, {m.label}", results[f"row/{m.key}/code"]) for m in study.methods]
    columns.append((f"GSVPSVMCV, {plan.rules[-1]}", results[f"own/{plan.rules[-1]}"]))
    tallest = max(len(plane) for _, found in columns for plane in found["top"])
    rows = []
    for k, label in enumerate(study.class_names):
        line = []
        for i, (name, found) in enumerate(columns):
            plane = found["top"][k]
            largest = max(abs(value) for _, value in plane)
            names = [(float(place), feature) for place, (feature, _) in enumerate(plane)]
            side = f"plane of {label}" if i == 0 else ""
            chart = Chart(
                Axis(-1.08, 1.08, "weight / largest", [(v, str(v)) for v in (-1, 0, 1)]),
                Axis(max(len(plane), 3) - 0.4, -0.6, side, names),
                name,
                *(320, 75 + 19 * tallest, 170),
                title=name if k == 0 else "",
            )
            chart.rule("axis", x=0.0)
            chart.rects(
                [(0.0, p - 0.35, w / largest, p + 0.35) for p, (_, w) in enumerate(plane)],
                f"bar {CLASS_TONES[k]}",
                tips=[f"{feature}: {value:.4g}" for feature, value in plane],
            )
            line.append(chart)
        rows.append(line)
    return ChartSheet(rows, "heaviest selected features of each plane")


def pca(study: Study, plan: Plan, results: Findings) -> ChartSheet:
    """Test samples by their first two principal components: all features, then panels."""
    own = results[f"own/{plan.rules[-1]}"]
    columns = [("all features", own["pca_all"])]
    columns += [(m.label, results[f"row/{m.key}/code"]["pca"]) for m in study.methods]
    columns.append((f"GSVPSVMCV, {plan.rules[-1]}", own["pca"]))
    charts = []
    for name, found in columns:
        points, title = found["points"], f"{name} ({found['n_features']})"
        x, y = (Axis(*padded([point[i] for point in points]), f"PC{i + 1}", ()) for i in (0, 1))
        chart = Chart(x, y, title, 250, 250, 26, 10, 6, 26, title=title)
        for k, label in enumerate(study.class_names):
            mine = [point for point, code in zip(points, found["y"]) if code == k]
            at = [point[0] for point in mine], [point[1] for point in mine]
            chart.points(*at, f"pt {CLASS_TONES[k]}", shape=3 * k, label=label)
        charts.append(chart)
    return ChartSheet([charts], "test samples by two principal components")


def make_figures(
    study: Study, plan: Plan, results: Findings, tables: Mapping[str, Sequence[Row]]
) -> dict[str, str]:
    """Draw every figure of one study, as SVG by name: complete in itself, themed by a page."""
    drawn: dict[str, ChartSheet] = {}
    if "sensitivity" in tables:
        drawn["sensitivity"] = sensitivity(study, results, tables["sensitivity"])
    drawn |= {
        "sorted_weights": sorted_weights(study, plan, results),
        "convergence": convergence(study, results),
        "features_by_q": features_by_q(study, plan, results, tables.get("jaccard")),
        "weights": weights(study, plan, results),
        "top_features": top_features(study, plan, results),
        "pca": pca(study, plan, results),
    }
    return {name: sheet.svg() for name, sheet in drawn.items()}
