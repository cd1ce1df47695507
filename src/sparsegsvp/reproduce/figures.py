"""The paper's figures by the report's charts: functions that yield charts, so many to a row."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from ..datasets import Dataset
from ..report.charts import Axis, Chart, Sheet, padded
from .runs import Plan, Results, Study

Fits = Mapping[str, Mapping[str, Any]]  # rows as the authors ran them, by label
# Numbers of the palette's colours: of the two classes, of the values of eps.
_CLASSES, _EPS = (0, 5), (0, 1, 3)


def make_figures(study: Study, data: Dataset, plan: Plan, results: Results) -> dict[str, Sheet]:
    """Draw every figure of a study that there are results for, by name."""
    fits = {e["label"]: results[f"row/{key}/code"] for key, e in study.methods.items()}
    drawn = {
        "cycle": (2, [*cycle(study, fits)]),
        "convergence": (3, [*convergence(study, fits)]),
        "sorted-weights": (3, [*sorted_weights(study, plan, fits, results)]),
        "weights": (2, [*weights(study, fits)]),
        "top-features": (3, [*top_features(study, fits)]),
        "features-by-q": (2, [*features_by_q(plan, results)]),
        "pca": (5, [*pca(study, data, fits, results)]),
    }
    return {
        name: Sheet([charts[i : i + n] for i in range(0, len(charts), n)], name.replace("-", " "))
        for name, (n, charts) in drawn.items()
        if charts
    }


def _chart(
    title: str, x: Axis, y: Axis, size: Sequence[float], table: Mapping[str, Sequence[Any]]
) -> Chart:
    """A chart under its title: width, height and margins, and the numbers behind it."""
    chart = Chart(x, y, title, *size)  # type: ignore[arg-type]
    chart.title, chart.table = title, {"chart": [title] * max(map(len, table.values())), **table}
    return chart


def cycle(study: Study, fits: Fits) -> Iterator[Chart]:
    """Planes that jump between two points: how they get there, and both points."""
    planes = [(label, k, fit["cycles"][k]) for label, fit in fits.items() for k in (0, 1)]
    for label, k, found in (plane for plane in planes if plane[2]):
        since, course, sizes, css = found["since"], found["entry"], found["sizes"], _CLASSES[k]
        at = list(range(since - len(course) + 20, since + 20))
        x = Axis(*padded(at, 0.02), f"iteration (2-cycle from {since:,} on)")
        y = Axis(*padded(course), "objective", grid=True)
        title, table = f"{label}, plane of {study.classes[k]}", {"at": at, "objective": course}
        left = _chart(title, x, y, (480, 250, 62), table)
        left.rule("cursor", x=since)
        left.line(at, course, f"series fine s{css}")
        yield left
        marks = [(j, f"elbow {e}") for j, e in enumerate(found["elbows"])]
        x, y = Axis(-0.25, 1.9, "the two points", marks), Axis(0, 1.08, "|w| / largest")
        table = {"feature": found["names"], "first point": sizes[0], "second point": sizes[1]}
        right = _chart("the ten heaviest weights", x, y, (480, 250), table)
        ranks = [[sorted(point, reverse=True).index(v) for v in point] for point in sizes]
        for j, name in enumerate(found["names"]):
            values = [point[j] / max(map(max, sizes)) for point in sizes]
            inside = [i for i in (0, 1) if ranks[i][j] < found["elbows"][i]]
            right.line([0, 1], values, f"series fine s{css if inside else 7}")
            right.points(inside, [values[i] for i in inside], f"pt f{css}", radius=3.5)
            right.text(1, values[1], name if inside else "", "tick start", dx=8, dy=4)
        yield right


def convergence(study: Study, fits: Fits) -> Iterator[Chart]:
    """Objective with its penalty, and relative change, by iteration."""
    shown = {
        "objective (dotted: penalty)": ("objective", "penalty"),
        "relative change": ("relative_error",),
    }
    for (said, names), (label, fit) in product(shown.items(), fits.items()):
        ended = ", ".join("stops" if done else "cap" for done in fit["converged"])
        curves = {
            f"{name}, {of}": [max(v, 1e-12) for v in history[name]]
            for of, history in zip(study.classes, fit["history"])
            for name in ("iteration", *names)
        }
        values = [v for name, curve in curves.items() if name[0] != "i" for v in curve]
        last = max(history["iteration"][-1] for history in fit["history"])
        x = Axis(0.8, 1.25 * last, "iteration", log=True)
        y = Axis(0.8 * min(values), 1.25 * max(values), said, log=True)
        chart = _chart(f"{label} ({ended})", x, y, (340, 240, 62), curves)
        for of, tone in zip(study.classes, _CLASSES):
            for name, css in zip(names, ("series", "series fine dots")):
                line = curves[f"iteration, {of}"], curves[f"{name}, {of}"]
                chart.line(*line, f"{css} s{tone}", label=of if name == names[0] else "")
        if len(names) == 1:
            chart.rule("chance", y=1e-4)
        yield chart


def sorted_weights(study: Study, plan: Plan, fits: Fits, results: Results) -> Iterator[Chart]:
    """Sorted weights of both planes with their elbows; two points of the study of q below."""
    points = results[f"sweep/{plan.eps[0]:.4g}"]
    ends = [q for q in plan.qs if q in (0.2, 0.9)] or plan.qs[:1]
    more = {f"study of q, q = {q:g}": points[f"{q:g}"] for q in ends}
    for title, fit in {**fits, **more}.items():
        most = int(min(len(fit["sorted"][0]), max(30, 4 * min(max(fit["elbows"]), 100))))
        table = {of: curve[:most] for of, curve in zip(study.classes, fit["sorted"])}
        y = Axis(-0.03, 1.08, "|w| / largest", grid=True)
        title = f"{title}: elbows {fit['elbows'][0]}, {fit['elbows'][1]}"
        chart = _chart(title, Axis(0, most + 1, "rank"), y, (340, 240), table)
        for k, ((of, curve), elbow) in enumerate(zip(table.items(), fit["elbows"])):
            chart.line(range(1, most + 1), curve, f"series s{_CLASSES[k]}", label=of)
            if elbow <= most:
                at = curve[elbow - 1]
                chart.points([elbow], [at], f"pt f{_CLASSES[k]}", radius=4.5)
                chart.text(elbow, at, str(elbow), "figure start", dx=8, dy=-7 + 16 * k)
        yield chart


def weights(study: Study, fits: Fits) -> Iterator[Chart]:
    """The weights of both planes by feature, of every method; kept features in colour."""
    n = study.shape[1]
    for (label, fit), (k, of) in product(fits.items(), enumerate(study.classes)):
        found, kept = fit["weights"][k], set(fit["features"][k])
        x = Axis(-0.02 * n - 1, 1.02 * n, "feature")
        y = Axis(*padded([0.0, *found["value"]]), "weight", grid=True)
        chart = _chart(f"{label}, plane of {of}", x, y, (510, 190, 62), found)
        chart.rule("axis", y=0.0)
        for inside, css in ((False, "series fine s7"), (True, f"series s{_CLASSES[k]}")):
            stems = [(a, v) for a, v in zip(found["at"], found["value"]) if (a in kept) == inside]
            at, values = [a for a, _ in stems], [v for _, v in stems]
            chart.whiskers(at, [0.0] * len(at), values, css)
        chart.points(at, values, f"pt f{_CLASSES[k]}", radius=2.2)
        yield chart


def top_features(study: Study, fits: Fits) -> Iterator[Chart]:
    """The heaviest selected features of each plane, at most twenty, with their weights."""
    for (k, of), (label, fit) in product(enumerate(study.classes), fits.items()):
        tallest = min(20, max(3, *(len(other["features"][k]) for other in fits.values())))
        at, known, weight = fit["weights"][k].values()
        places = [at.index(f) for f in fit["features"][k][:20]]
        names, values = ([column[p] for p in places] for column in (known, weight))
        largest = max(map(abs, values))
        x = Axis(-1.08, 1.08, "weight / largest", [(v, str(v)) for v in (-1, 0, 1)])
        y = Axis(tallest - 0.4, -0.6, "", list(enumerate(names)))
        size, table = (340, 60 + 17 * tallest, 150), {"feature": names, "weight": values}
        chart = _chart(f"{label}, plane of {of}", x, y, size, table)
        chart.rule("axis", x=0.0)
        bars = [(0.0, p - 0.35, w / largest, p + 0.35) for p, w in enumerate(values)]
        tips = [f"{name}: {w:.4g}" for name, w in zip(names, values)]
        chart.rects(bars, f"bar f{_CLASSES[k]}", tips=tips)
        yield chart


def features_by_q(plan: Plan, results: Results) -> Iterator[Chart]:
    """Features against q for each eps: the smaller elbow as in the paper, and either plane's."""
    for title, size in (
        ("as in the paper: the smaller elbow", lambda fit: min(fit["elbows"])),
        ("features of either plane", lambda fit: len(fit["panel"])),
    ):
        fits = {eps: results[f"sweep/{eps:.4g}"].values() for eps in plan.eps}
        lines = {f"eps = 10^{math.log10(eps):g}": [*map(size, f)] for eps, f in fits.items()}
        y = Axis(0, 1.1 * max(map(max, lines.values())), "features", grid=True)
        x, table = Axis(*padded(plan.qs), "q"), {"q": plan.qs, **lines}
        chart = _chart(title, x, y, (510, 260, 56), table)
        for k, (label, line) in enumerate(lines.items()):
            chart.line(plan.qs, line, f"series s{_EPS[k]}", label=label)
            chart.points(plan.qs, line, f"pt f{_EPS[k]}", shape=k)
        yield chart


def pca(study: Study, data: Dataset, fits: Fits, results: Results) -> Iterator[Chart]:
    """Samples by two principal components: as the authors drew them above, corrected below."""
    (X, y), (X_other, y_other), _ = study.split_of(data)
    classes, train = np.append(y, y_other), np.arange(len(y) + len(y_other)) < len(y)
    panels: dict[str, Sequence[int]] = {"all": range(X.shape[1])}
    panels |= {name: sorted({f for k in fit["features"] for f in k}) for name, fit in fits.items()}
    panels["GSVPSVMCV"] = results["own"]["GSVPSVMCV"]["panel"]
    for version, (name, panel) in product(("as drawn", "corrected"), panels.items()):
        scaler = StandardScaler().fit(X[:, panel])
        Z = np.vstack([scaler.transform(part[:, panel]) for part in (X, X_other)])
        if version == "as drawn":  # training rows in their own units, validation rows standardised
            Z = StandardScaler().fit_transform(np.vstack([X[:, panel], Z[len(y) :]]))
        fitted = PCA(min(2, len(panel)), svd_solver="full")
        fitted.fit(Z if version == "as drawn" else Z[: len(y)])
        first, second = np.pad(fitted.transform(Z), ((0, 0), (0, 1)))[:, :2].T.round(4)
        axes = [Axis(*padded(c), f"PC{i + 1}", ()) for i, c in enumerate((first, second))]
        table = {"class": classes.tolist(), "PC1": first.tolist(), "PC2": second.tolist()}
        title = f"{name} ({len(panel)}), {version}"
        chart = _chart(title, axes[0], axes[1], (212, 220, 22, 8, 4, 24), table)
        for k, of in enumerate(study.classes):
            for part, rows, tone, shape in (
                ("training", train & (classes == k), _CLASSES[k], 0),
                ("validation", ~train & (classes == k), (2, 7)[k], 3),
            ):
                places = first[rows].tolist(), second[rows].tolist()
                chart.points(*places, f"pt f{tone}", shape=shape, label=f"{of}, {part}")
        yield chart
