"""The paper's figures, drawn from results by the report's charts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ..report.charts import Axis, Chart, Sheet, padded
from .runs import Plan, Results, Row, Study, balanced
from .tables import own_names, runs_of

# Numbers of the palette's colours: of methods, of the two classes, of the values of eps.
_METHODS, _CLASSES, _EPS = (1, 4, 3, 2, 6), (0, 5), (0, 1, 3)
_KINDS = {"starts": "other starts", "splits": "other splits"}


def make_figures(
    study: Study, plan: Plan, results: Results, tables: Mapping[str, Sequence[Row]]
) -> dict[str, Sheet]:
    """Draw every figure of a study that there are results for, by name."""
    drawn = {
        "sensitivity": sensitivity(study, results),
        "cycle": cycle(study, results),
        "convergence": convergence(study, results),
        "sorted-weights": sorted_weights(study, plan, results),
        "weights": weights(study, results),
        "top-features": top_features(study, results),
        "features-by-q": features_by_q(plan, results, tables.get("jaccard", [])),
        "pca": pca(study, results),
    }
    return {name: sheet for name, sheet in drawn.items() if sheet is not None}


def sensitivity(study: Study, results: Results) -> Sheet | None:
    """Barcodes of the panels, one line per run, and the scores over random splits."""
    kinds = [kind for kind in _KINDS if runs_of(results, kind, next(iter(study.methods)))]
    rows = []
    for tone, method in zip(_METHODS, (*study.methods, *own_names(study))):
        label = study.methods.get(method, {"label": method})["label"]
        line = [_barcode(runs_of(results, k, method), tone, f"{label}: {_KINDS[k]}") for k in kinds]
        line.append(_scores(study, runs_of(results, "splits", method), method, tone))
        rows.append(line)
    return Sheet(rows, "panels and scores of every run") if kinds else None


def _barcode(runs: Sequence[Row], tone: int, title: str) -> Chart:
    """One line per run, one column per feature that any run selected, the commonest first."""
    counts = Counter(feature for run in runs for feature in run["panel"])
    order = sorted(counts, key=lambda feature: (-counts[feature], feature))
    column = {feature: place for place, feature in enumerate(order)}
    gap = 0.06 if len(order) <= 60 else 0.0
    x, y = Axis(0, max(len(order), 24), ticks=()), Axis(max(len(runs), 1), 0, ticks=())
    panels = len({tuple(run["panel"]) for run in runs})
    said = f"{title}, {panels} panels" if runs else title
    chart = Chart(x, y, said, 320, 96, 14, 14, 2, 12, title=said)
    chart.rects(
        [
            (column[f] + gap, line + gap, column[f] + 1 - gap, line + 1 - gap)
            for line, run in enumerate(runs)
            for f in run["panel"]
        ],
        f"bar f{tone}",
    )
    if not runs:
        chart.text(0, 0.5, "nothing is drawn at random", "quiet start")
    chart.table = {
        "what": [title] * len(runs),
        "run": list(range(1, len(runs) + 1)),
        "features": [len(run["panel"]) for run in runs],
    }
    return chart


def _scores(study: Study, runs: Sequence[Row], method: str, tone: int) -> Chart:
    """Balanced accuracy of each split: printed rule filled, the authors' scoring as rings."""
    ticks = [(v / 10, f"{v / 10:.1f}") for v in range(4, 11, 2)]
    chart = Chart(
        Axis(0.38, 1.02, ticks=ticks, grid=True),
        Axis(0, 1, ticks=()),
        "balanced accuracy, held out",
        340,
        96,
        14,
        14,
        2,
        20,
        title="balanced accuracy, held out",
    )
    for score, css, shift, name in (
        ("printed", f"pt f{tone}", 0.3, "printed rule"),
        ("all", f"whisker s{tone}", 0.7, "authors' scoring"),
    ):
        values = [run[score] for run in runs if score in run]
        heights = [shift + 0.14 * math.sin(2.4 * i) for i in range(len(values))]
        chart.points(values, heights, css, radius=3.2)
        if values:
            mean = sum(values) / len(values)
            chart.line([mean, mean], [shift - 0.2, shift + 0.2], f"median s{tone}")
            chart.table |= {"split": list(range(1, len(values) + 1)), f"{method}, {name}": values}
    if method in study.methods:
        published = balanced(study.methods[method]["test"])
        chart.line([published] * 2, [0, 1], "chance", label="published, one split")
    return chart


def cycle(study: Study, results: Results) -> Sheet | None:
    """A plane that jumps between two points: how it gets there, and both points."""
    rows = []
    for key, entry in study.methods.items():
        for k, found in enumerate(results[f"row/{key}/code"]["cycles"]):
            if found is None:
                continue
            title = f"{entry['label']}, plane of {study.classes[k]}"
            since, tail = found["since"], found["entry"]
            at = list(range(since - len(tail) + 20, since + 20))
            x = Axis(*padded(at, 0.02), f"iteration (2-cycle from {since:,} on)")
            course = Chart(
                x, Axis(*padded(tail), "objective", grid=True), title, 480, 250, 62, title=title
            )
            course.rule("cursor", x=since)
            course.line(at, tail, f"series fine s{_CLASSES[k]}")
            course.table = {"plane": [title] * len(at), "iteration": at, "objective": tail}
            top = max(max(point) for point in found["sizes"])
            marks = [(j, f"elbow {e}") for j, e in enumerate(found["elbows"])]
            pair = Chart(
                Axis(-0.25, 1.9, "the two points", marks),
                Axis(0, 1.08, "|w| / largest", grid=True),
                title,
                480,
                250,
                title="the ten heaviest weights",
            )
            for j, name in enumerate(found["names"]):
                sizes = [point[j] / top for point in found["sizes"]]
                inside = [
                    sorted(p, reverse=True).index(p[j]) < e
                    for p, e in zip(found["sizes"], found["elbows"])
                ]
                css = f"s{_CLASSES[k]}" if any(inside) else "s7"
                pair.line([0, 1], sizes, f"series fine {css}")
                at_ends = [i for i in (0, 1) if inside[i]]
                pair.points(at_ends, [sizes[i] for i in at_ends], f"pt f{_CLASSES[k]}", radius=3.5)
                if any(inside):
                    pair.text(1, sizes[1], name, "tick start", dx=8, dy=4)
            rows.append([course, pair])
    return Sheet(rows, "planes that end in a cycle of two points") if rows else None


def convergence(study: Study, results: Results) -> Sheet:
    """Objective and relative change by iteration."""
    rows: list[list[Chart]] = [[], []]
    for key, entry in study.methods.items():
        result = results[f"row/{key}/code"]
        ended = ["stops" if done else "cap" for done in result["converged"]]
        title = f"{entry['label']} ({', '.join(ended)})"
        for row, names, said in (
            (0, ("objective", "penalty"), "objective (dotted: penalty)"),
            (1, ("relative_error",), "relative change"),
        ):
            history = [
                {n: [max(v, 1e-12) for v in h[n]] for n in (*names, "iteration")}
                for h in result["history"]
            ]
            x = _log_axis((i for h in history for i in h["iteration"]), "iteration")
            y = _log_axis((v for h in history for n in names for v in h[n]), said)
            chart = Chart(x, y, title, 340, 240, 62, title=title if row == 0 else "")
            for k, h in enumerate(history):
                for name, css in zip(names, ("series", "series fine dots")):
                    label = study.classes[k] if name == names[0] else ""
                    chart.line(h["iteration"], h[name], f"{css} s{_CLASSES[k]}", label=label)
                chart.table = chart.table or {"method": [title] * len(h["iteration"]), **h}
            if row == 1:
                chart.rule("chance", y=1e-4)
            rows[row].append(chart)
    return Sheet(rows, "objective and relative change by iteration")


def _log_axis(values: Iterable[float], title: str) -> Axis:
    low, high = padded([math.log10(v) for v in values], 0.04)
    return Axis(10**low, 10**high, title, log=True)


def sorted_weights(study: Study, plan: Plan, results: Results) -> Sheet:
    """Sorted weights of both planes with their elbows."""
    fits = [(e["label"], results[f"row/{k}/code"]) for k, e in study.methods.items()]
    points = results[f"sweep/{plan.eps[0]:.4g}"]
    fits += [
        (f"study of q, q = {q}", points[q])
        for q in (list(points)[min(1, len(points) - 1)], list(points)[-min(2, len(points))])
    ]
    charts = []
    for title, fit in fits:
        most = int(min(len(fit["sorted"][0]), max(30, 4 * min(max(fit["elbows"]), 100))))
        y = Axis(-0.03, 1.08, "|w| / largest", grid=True)
        chart = Chart(Axis(0, most + 1, "rank"), y, title, 340, 240, title=title)
        for k, (curve, elbow) in enumerate(zip(fit["sorted"], fit["elbows"])):
            values, css = curve[:most], _CLASSES[k]
            chart.line(range(1, len(values) + 1), values, f"series s{css}", label=study.classes[k])
            if elbow <= len(values):
                chart.points([elbow], [values[elbow - 1]], f"pt f{css}", radius=4.5)
                chart.text(
                    elbow, values[elbow - 1], str(elbow), "figure start", dx=8, dy=-7 + 16 * k
                )
        chart.table = {
            "method": [title] * most,
            "rank": list(range(1, most + 1)),
            **{c: w[:most] for c, w in zip(study.classes, fit["sorted"])},
        }
        charts.append(chart)
    return Sheet([charts[:3], charts[3:]], "sorted weights of both planes and their elbows")


def weights(study: Study, results: Results) -> Sheet:
    """The weights of both planes by feature, of every method; kept features in colour."""
    rows, n = [], study.shape[1]
    for key, entry in study.methods.items():
        line, fit = [], results[f"row/{key}/code"]
        for k, label in enumerate(study.classes):
            found, kept = fit["weights"][k], set(fit["features"][k])
            title = f"{entry['label']}, plane of {label}"
            x = Axis(-0.02 * n - 1, 1.02 * n, "feature")
            y = Axis(*padded([0.0, *found["value"]]), "weight", grid=True)
            chart = Chart(x, y, title, 510, 190, 62, title=title)
            chart.rule("axis", y=0.0)
            for inside, css in ((False, "series fine s7"), (True, f"series s{_CLASSES[k]}")):
                stems = [
                    (a, v) for a, v in zip(found["at"], found["value"]) if (a in kept) == inside
                ]
                at, values = [a for a, _ in stems], [v for _, v in stems]
                chart.whiskers(at, [0.0] * len(at), values, css)
            chart.points(at, values, f"pt f{_CLASSES[k]}", radius=2.2)
            chart.table = {"plane": [title] * len(found["at"]), **found}
            line.append(chart)
        rows.append(line)
    return Sheet(rows, "weights of both planes by feature")


def top_features(study: Study, results: Results) -> Sheet:
    """The heaviest selected features of each plane, at most twenty, with their weights."""
    columns = [(e["label"], results[f"row/{k}/code"]["top"]) for k, e in study.methods.items()]
    rows = []
    for k, label in enumerate(study.classes):
        line, tallest = [], max(len(planes[k]) for _, planes in columns)
        for name, planes in columns:
            plane, title = planes[k], f"{name}, plane of {label}"
            largest = max(abs(value) for _, value in plane)
            names = [(place, feature) for place, (feature, _) in enumerate(plane)]
            x = Axis(-1.08, 1.08, "weight / largest", [(v, str(v)) for v in (-1, 0, 1)])
            y = Axis(max(tallest, 3) - 0.4, -0.6, "", names)
            chart = Chart(x, y, title, 340, 60 + 17 * max(tallest, 3), 150, title=title)
            chart.rule("axis", x=0.0)
            chart.rects(
                [(0.0, p - 0.35, w / largest, p + 0.35) for p, (_, w) in enumerate(plane)],
                f"bar f{_CLASSES[k]}",
                tips=[f"{f}: {w:.4g}" for f, w in plane],
            )
            chart.table = {
                "plane": [title] * len(plane),
                "feature": [f for f, _ in plane],
                "weight": [w for _, w in plane],
            }
            line.append(chart)
        rows.append(line)
    return Sheet(rows, "heaviest selected features of each plane")


def features_by_q(plan: Plan, results: Results, jaccard: Sequence[Row]) -> Sheet:
    """Features against q for each eps: the smaller elbow as in the paper, the union, LqGSVPSVM."""
    charts = []
    for title, size in (
        ("as in the paper: the smaller elbow", lambda fit: min(fit["elbows"])),
        ("features of either plane", lambda fit: len(fit["panel"])),
        ("LqGSVPSVM, features of either plane", lambda fit: len(fit["own"])),
    ):
        sizes = {e: [size(results[f"sweep/{e:.4g}"][f"{q:g}"]) for q in plan.qs] for e in plan.eps}
        top = 1.1 * max(1, *(v for line in sizes.values() for v in line))
        chart = Chart(
            Axis(*padded(plan.qs), "q"),
            Axis(0, top, "features", grid=True),
            title,
            340,
            260,
            56,
            title=title,
        )
        for k, (eps, line) in enumerate(sizes.items()):
            label = f"eps = 10^{math.log10(eps):g}"
            chart.line(plan.qs, line, f"series s{_EPS[k]}", label=label)
            chart.points(plan.qs, line, f"pt f{_EPS[k]}", shape=k)
        chart.table = {
            "what": [title] * len(plan.qs),
            "q": list(plan.qs),
            **{f"eps {e:.4g}": v for e, v in sizes.items()},
        }
        charts.append(chart)
    rows = [charts]
    if jaccard:
        marks = [(float(i), f"{row['eps']:.3g}") for i, row in enumerate(jaccard)]
        chart = Chart(
            Axis(-0.6, len(jaccard) - 0.4, "eps", marks),
            Axis(0, 1.1, grid=True),
            "average Jaccard index across q",
            560,
            220,
            title="average Jaccard index across q",
        )
        for j, (column, css) in enumerate(
            (("published", "plain"), ("obtained", "f4"), ("LqGSVPSVM", "f2"))
        ):
            known = [
                (i + 0.27 * (j - 1), r[column])
                for i, r in enumerate(jaccard)
                if r[column] is not None
            ]
            chart.rects(
                [(at - 0.12, 0.0, at + 0.12, v) for at, v in known], f"bar {css}", label=column
            )
            for at, value in known:
                chart.text(at, value, f"{value:.2f}", "tick mid", dy=-4)
        rows.append([chart])
    return Sheet(rows, "features against q, and how alike the panels are")


def pca(study: Study, results: Results) -> Sheet:
    """Samples by two principal components: as the authors drew them above, corrected below."""
    columns = [("all features", results["own"]["pca_all"])]
    columns += [(e["label"], results[f"row/{k}/code"]["pca"]) for k, e in study.methods.items()]
    columns.append(("GSVPSVMCV", results["own"]["GSVPSVMCV"]["pca"]))
    rows: list[list[Chart]] = []
    for version in ("drawn", "corrected"):
        line = []
        for name, found in columns:
            points, title = found[version], f"{name} ({found['size']})"
            x, y = (Axis(*padded([p[i] for p in points]), f"PC{i + 1}", ()) for i in (0, 1))
            chart = Chart(
                x, y, title, 212, 220, 22, 8, 4, 24, title=title if version == "drawn" else ""
            )
            for k, label in enumerate(study.classes):
                for part, rows_of, shape in (
                    ("training", slice(0, found["n_train"]), 0),
                    ("validation", slice(found["n_train"], None), 3),
                ):
                    mine = [p for p, c in zip(points[rows_of], found["y"][rows_of]) if c == k]
                    tone = _CLASSES[k] if part == "training" else (2, 7)[k]
                    chart.points(
                        [p[0] for p in mine],
                        [p[1] for p in mine],
                        f"pt f{tone}",
                        shape=shape,
                        label=f"{label}, {part}",
                    )
            chart.table = {
                "panel": [f"{title}, {version}"] * len(points),
                "class": found["y"],
                "PC1": [p[0] for p in points],
                "PC2": [p[1] for p in points],
            }
            line.append(chart)
        rows.append(line)
    return Sheet(rows, "samples by two principal components, as drawn and corrected")
