"""Drawing: from what a figure shows to a `Chart`. No number is computed here but positions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .charts import Axis, Chart
from .marks import names_room, padded, short, ticks
from .words import Part, number, path_score

_SHARES = [(v, f"{v:.0%}") for v in (0.0, 0.25, 0.5, 0.75, 1.0)]


def places(
    x: Sequence[float], y: Sequence[float], rows: Sequence[int]
) -> tuple[list[float], list[float]]:
    """The coordinates of some of the points."""
    return [x[i] for i in rows], [y[i] for i in rows]


def yes_or_no(flags: Iterable[bool]) -> list[str]:
    """Truth values as readers of a table see them."""
    return ["yes" if flag else "no" for flag in flags]


# --------------------------------------------------------------------------- one number


def gauge(found: Part, chance: float) -> Chart:
    """An estimate and its interval, from a little below chance up to 1."""
    start = max(0.0, min(chance, found["low"]) - 0.1)
    chart = strip(Axis(start, 1.0, ticks=()), 300, 32, 4, "estimate, interval and chance", "gauge")
    chart.rects([(start, 8, 1.0, 14)], "track", radius=3)
    chart.rects([(found["low"], 8, found["high"], 14)], "range", radius=3)
    chart.line([chance, chance], [3, 19], "chance")
    chart.points([found["value"]], [11], "dot mood", radius=4.5)
    chart.text(chance, 31, "chance", "tick mid", dx=max(20 - chart.sx(chance), 0))
    chart.text(1.0, 31, "1", "tick end")
    return chart


def strip(x: Axis, width: int, height: int, side: int, description: str, css: str) -> Chart:
    """A small chart without a vertical axis: ordinates are pixels from the top."""
    y = Axis(height, 0, ticks=())
    return Chart(x, y, description, width, height, side, side, 0, 0, css=css)


# -------------------------------------------------------------------------- the estimate


def roc_chart(found: Part) -> Chart:
    """The mean ROC curve with the middle 80% of the folds, or that of one cohort."""
    said = f"ROC curve for {found['label']}{', averaged over folds' if found['low'] else ''}"
    chart = _unit_square("1 − specificity", "sensitivity", said)
    if found["low"]:
        chart.band(found["fpr"], found["low"], found["high"])
    chart.line([0.0, *found["fpr"]], [0.0, *found["tpr"]], "curve")
    if found["auc"] is not None:
        auc = found["auc"]
        span = f"{auc['level']:.0%} interval {auc['low']:.2f} to {auc['high']:.2f}"
        chart.text(1, 0, f"AUC {number(auc['value'])}", "value end", dx=-10, dy=-38)
        chart.text(1, 0, span, "tick end", dx=-10, dy=-20)
    chart.table = {"false positive rate": found["fpr"], "true positive rate": found["tpr"]}
    if found["low"]:
        chart.table |= {"10% of the folds": found["low"], "90% of the folds": found["high"]}
    return chart


def calibration_chart(found: Part) -> Chart:
    """Observed against predicted share, point size by count."""
    title, said = (f"{word} probability of {found['label']}" for word in ("predicted", "the"))
    chart = _unit_square(title, "observed share", f"calibration of {said}")
    predicted, observed, count = found["predicted"], found["observed"], found["count"]
    total = sum(count) or 1
    words = [
        f"predicted {p:.2f}, observed {o:.2f} ({n} samples)"
        for p, o, n in zip(predicted, observed, count)
    ]
    radii = [4 + round(6 * math.sqrt(n / total), 1) for n in count]
    chart.line(predicted, observed, "curve")
    chart.points(predicted, observed, "dot", radius=radii, tips=words)
    chart.table = {"predicted": predicted, "observed": observed, "samples": count}
    return chart


def decision_chart(found: Part) -> Chart:
    """Net benefit of acting on the model, on everyone and on no one, by threshold."""
    at, benefit, everyone = found["thresholds"], found["net_benefit"], found["treat_all"]
    top = max(*benefit, *everyone, 0.01) * 1.15
    floor = -0.3 * top
    chart = Chart(
        Axis(0.0, 1.0, f"probability of {found['label']} from which one would act", _SHARES),
        Axis(floor, top, "net benefit", grid=True),
        f"decision curve for {found['label']} at a prevalence of {found['prevalence']:.3g}",
    )

    def inside(values: Sequence[float]) -> list[float]:
        return [min(max(value, floor), top) for value in values]

    chart.band(at, inside(found["low"]), inside(found["high"]))
    chart.line([0, 1], [0, 0], "chance", tips=["acting on no one"])
    # below the axis a line would only run along its edge
    on_all, on_model = (
        places(at, values, [i for i, v in enumerate(values) if v >= floor])
        for values in (everyone, benefit)
    )
    chart.line(*on_all, "thread", tips=["acting on all"])
    chart.line(*on_model, "curve", tips=["acting on the model"])
    chart.text(on_all[0][-1], on_all[1][-1], "act on all", "tick start", dx=6, dy=-2)
    chart.text(1, 0, "act on no one", "tick end", dx=-4, dy=14)
    chart.table = {
        "threshold": at, "net benefit": benefit, "low": found["low"], "high": found["high"],
        "act on all": everyone,
    }  # fmt: skip
    return chart


def _unit_square(x: str, y: str, description: str) -> Chart:
    chart = Chart(Axis(0.0, 1.0, x), Axis(0.0, 1.0, y, grid=True), description)
    chart.line([0, 1], [0, 1], "chance")
    return chart


def permutation_chart(found: Part) -> Chart:
    """The permutation distribution and the observed statistic."""
    edges, counts = found["edges"], found["counts"]
    highest = max(counts) * 1.18 or 1.0
    whole = [(v, short(v)) for v in ticks(0.0, highest) if v == int(v)]
    x = Axis(edges[0], edges[-1], "balanced accuracy (test statistic)")
    y = Axis(0.0, highest, "shuffled labellings", whole, grid=True)
    chart = Chart(x, y, "permutation distribution of the test statistic")
    bins = [(a, b, n) for a, b, n in zip(edges, edges[1:], counts) if n]
    gap = 0.03 * (edges[1] - edges[0])
    words = [f"{n} of {found['n']} between {a:.2f} and {b:.2f}" for a, b, n in bins]
    chart.rects([(a + gap, 0.0, b - gap, n) for a, b, n in bins], "bar quiet", tips=words)
    chart.flag(found["observed"], f"true labels {found['observed']:.2f}")
    chart.table = {"from": edges[:-1], "to": edges[1:], "shuffled labellings": counts}
    return chart


# --------------------------------------------------------------------------- the samples


def scatter_chart(
    found: Part, tones: Mapping[str, int] | None = None, *, diagonal: bool = False
) -> Chart:
    """Samples as points; wrong predictions get a ring."""
    xs, ys = found["x"], found["y"]
    x, y = (padded([*xs, *ys]),) * 2 if diagonal else (padded(xs), padded(ys))
    chart = Chart(
        Axis(*x, found["x_title"]),
        Axis(*y, found["y_title"], grid=True),
        f"{found['x_title']} against {found['y_title']}",
        height=400 if diagonal else 330,
    )
    if diagonal:
        chart.line(x, y, "chance")
    for k, name in enumerate(found["classes"]):
        tone = k % 8 if tones is None else tones[name]
        mine = [i for i, label in enumerate(found["label"]) if label == k]
        words = [sample_words(found, i) for i in mine]
        at = places(xs, ys, mine)
        chart.points(*at, f"pt c{tone}", shape=tone, tips=words, label=name)
    wrong = [i for i, lost in enumerate(found["wrong"]) if lost]
    if wrong:
        chart.points(*places(xs, ys, wrong), "ring", radius=7, label="predicted wrongly")
    chart.table = sample_table(found) | {found["x_title"]: xs, found["y_title"]: ys}
    return chart


def sample_words(found: Part, i: int) -> str:
    """Name a sample with its class and, out of fold, its probability and fate."""
    own = found["classes"][found["label"][i]]
    text, probability = f"{found['name'][i]}: {own}", found["probability"][i]
    if probability is not None:
        text += f", probability of {found['positive'] or own} {probability:.2f}"
    return text + (", predicted wrongly" if found["wrong"][i] else "")


def sample_table(found: Part) -> dict[str, Any]:
    """What a table of samples begins with: name, class, probability, fate."""
    of = "own class" if found["positive"] is None else found["positive"]
    known = {f"probability of {of}": found["probability"]}
    return {
        "sample": found["name"],
        "class": [found["classes"][k] for k in found["label"]],
        **(known if any(p is not None for p in found["probability"]) else {}),
        "predicted wrongly": yes_or_no(found["wrong"]),
    }


# ------------------------------------------------------------------------------ the path


def _steps(found: Part) -> Axis:
    """The steps of the path from left to right, by the size of their panels."""
    n = len(found["steps"])
    every = max(1, math.ceil(n / 7))
    labels = [(i, str(len(found["steps"][i]["panel"]))) for i in range(0, n, every)]
    return Axis(-0.4, n - 0.6, "features in the panel (penalty falls →)", labels)


def path_scores(found: Part) -> Chart:
    """Inner cross-validation along the path; a cursor marks one step."""
    steps, chosen = found["steps"], found["chosen"]
    known = all(s["accuracy"] is not None for s in steps)
    values = [(s["accuracy"] if known else s["score"]) or 0.0 for s in steps]
    errors = [(s["accuracy_error"] if known else s["score_error"]) or 0.0 for s in steps]
    low = [v - e for v, e in zip(values, errors)]
    high = [min(v + e, 1.0) if known else v + e for v, e in zip(values, errors)]
    xs = list(range(len(steps)))
    name = f"{path_score(found)}, inner folds"
    y = Axis(*padded([*low, *high], 0.1), name, grid=True)
    chart = Chart(_steps(found), y, name, height=300)
    _cursor(chart, chosen, xs)
    chart.band(xs, low, high)
    chart.line(xs, values, "curve")
    words = [
        f"{len(step['panel'])} features: {value:.3f} ± {error:.3f}"
        for step, value, error in zip(steps, values, errors)
    ]
    chart.points(xs, values, "dot", tips=words)
    at = slice(chosen, chosen + 1)
    chart.points(xs[at], values[at], "dot chosen", radius=5.5, tips=words[at])
    sizes = [len(step["panel"]) for step in steps]
    chart.table = {"step": [i + 1 for i in xs], "features": sizes, name: values, "error": errors}
    return chart


def path_weights(found: Part, *, by_penalty: bool = False, label: int = 0) -> Chart:
    """Weight of each feature along the path, by step, or by penalty with the heaviest named."""
    steps, table, chosen = found["steps"], found["weights"], found["chosen"]
    largest = max((max(row) for row in table), default=1.0)
    y = Axis(0.0, largest * 1.06 or 1.0, "largest |weight|", grid=True)
    if by_penalty:
        at = [step["rho"] for step in steps]
        x = Axis(1.1 * max(at), min(at) / 1.1, "penalty, as a share of its largest value", log=True)
    else:
        at, x = [float(i) for i in range(len(steps))], _steps(found)
    chart = Chart(x, y, "weights along the path", height=300)
    if not by_penalty:
        _cursor(chart, chosen, at)
    mine = steps[chosen]["panel"]
    named = sorted(mine, key=lambda f: -table[f][chosen])[:label]
    order = range(len(table))
    for f in order if by_penalty else sorted(order, key=lambda f: f in mine):
        row, name = table[f], found["features"][f]
        # on the page a line begins one step before its feature enters; of features that go
        # together some may be in the panel without a weight of their own
        enters = next((i for i, v in enumerate(row) if v > 0.0), 0)
        start = 0 if by_penalty else max(enters - 1, 0)
        kind = "thread mine" if f in mine else "thread"
        kind += f" c{named.index(f) % 8}" if f in named else ""
        chart.line(at[start:], row[start:], kind, tips=[name], label=name if f in named else "")
    if by_penalty:
        chart.rule("cursor", x=at[chosen])
    columns = {f"step {i + 1}": [row[i] for row in table] for i in range(len(steps))}
    chart.table = {"feature": found["features"], **columns}
    return chart


def _cursor(chart: Chart, at: int, steps: Sequence[float]) -> None:
    """A line at one step, which the page's slider moves to the others."""
    chart.line([at, at], [chart.y.low, chart.y.high], "cursor", places=steps)


def weights_chart(found: Part, tone: int) -> Chart:
    """Sorted weights of one plane as named bars, and their elbow."""
    values, elbow, row = found["weights"], found["elbow"], 18
    n, more = len(values), len(values) - len(found["features"])
    known = [*found["features"], *["all others"] * more]
    kept = n if elbow is None else min(elbow, n)
    names = [(i + 0.5, s, "name" if i < kept else "name quiet") for i, s in enumerate(known)]
    chart = Chart(
        Axis(0.0, max(values, default=1.0) * 1.06 or 1.0, "|weight|", grid=True),
        Axis(max(n, 1), 0.0, ticks=names),
        f"sorted weights of the plane of {found['label']}",
        *(440, row * n + 62, names_room(known), 22, 16, 46),
        title=f"plane of {found['label']}",
        css="chart lanes",
    )
    bars = [(0.0, i + 0.2, value, i + 0.8) for i, value in enumerate(values)]
    words = [f"{name}: {v:.3f}" if v else f"{name}: zero" for name, v in zip(known, values)]
    chart.rects(bars[:kept], f"bar c{tone}", tips=words[:kept])
    chart.rects(bars[kept:], f"bar c{tone} quiet", tips=words[kept:])
    if elbow is not None and elbow <= n:
        chart.rule("observed", y=elbow)
        chart.text(chart.x.high, elbow, f"elbow after {elbow}", "value end", dy=15)
    chart.table = {"feature": known, "weight": values}
    return chart


# ------------------------------------------------------------------------- the stability


def stability_chart(found: Sequence[Part], threshold: float | None = None) -> Chart:
    """Selection frequencies as horizontal bars, with those of the group behind them."""
    n, row, room = len(found), 22, names_room(bar["feature"] for bar in found)
    names = [
        (i + 0.5, bar["feature"], "name" if bar["in_panel"] else "name quiet")
        for i, bar in enumerate(found)
    ]
    chart = Chart(
        Axis(0.0, 1.0, "share of refits that choose the feature", _SHARES, grid=True),
        Axis(max(n, 1), 0.0, ticks=names),
        "selection frequency of each feature",
        *(480, row * n + 48, room, 22, 2, 46),
        css="chart lanes",
    )
    thin = 7 / row
    for behind in (True, False):
        for i, bar in enumerate(found):
            value = bar["group_frequency"] if behind else bar["frequency"]
            if value is not None:
                kind = f"bar{' group' if behind else ''}{'' if bar['in_panel'] else ' quiet'}"
                corners = (0.0, i + 0.5 - thin, value, i + 0.5 + thin)
                chart.rects([corners], kind, radius=2)
    if threshold is not None:
        chart.rule("observed", x=threshold)
    for i, bar in enumerate(found):
        group = bar["group_frequency"]
        words = f"{bar['feature']}: chosen in {bar['frequency']:.0%} of refits"
        if group is not None and group > bar["frequency"]:
            words += f", it or a substitute in {group:.0%}"
        chart.rects([(-math.inf, i, math.inf, i + 1)], "hit", tips=[words], radius=0)
    chart.table = {
        "feature": [bar["feature"] for bar in found],
        "share of refits": [bar["frequency"] for bar in found],
        "with substitutes": [bar["group_frequency"] for bar in found],
        "in the panel": yes_or_no(bar["in_panel"] for bar in found),
    }
    return chart


# --------------------------------------------------------------------- growing numbers of samples


def learning_chart(found: Part) -> Chart:
    """Accuracy and stability against the number of samples; the law goes on where it may."""
    measured, ahead, all_of_them = found["measured"], found["ahead"], found["n_samples"]
    known = [(n, v) for n, v in zip(measured["n"], found["stability"]) if v is not None]
    values = [*measured["low"], *measured["high"], *ahead["low"], *ahead["high"], found["chance"]]
    low, high = padded([*values, *(v for _, v in known)])
    x = Axis(0.0, 1.04 * max([all_of_them, *ahead["n"]]), "samples")
    y = Axis(max(low, 0.0), min(high, 1.03), "balanced accuracy, stability", grid=True)
    chart = Chart(x, y, "accuracy and stability against the number of samples", 560, 360)
    chart.rule("chance", y=found["chance"])
    chart.band(ahead["n"], ahead["low"], ahead["high"])
    behind = [i for i, n in enumerate(ahead["n"]) if n <= measured["n"][-1]]
    beyond = [i for i, n in enumerate(ahead["n"]) if n >= measured["n"][-1]]
    for rows, kind, label in ((behind, "curve", ""), (beyond, "curve dashes", "foretold")):
        at = places(ahead["n"], ahead["value"], rows)
        chart.line(*at, kind, label=label if rows else "")
    at = [n for n, _ in known], [v for _, v in known]
    chart.line(*at, "series dots c3")
    words = [f"{n} samples: stability {number(v)}" for n, v in known]
    label = "stability" if known else ""
    chart.points(*at, "pt c3", shape=3, tips=words, label=label)
    chart.whiskers(measured["n"], measured["low"], measured["high"], "series fine c2")
    words = [
        f"{n} samples: {number(v)} ({number(a)} to {b:.2f})"
        for n, v, a, b in zip(*measured.values())
    ]
    chart.points(measured["n"], measured["value"], "dot", radius=4.5, tips=words, label="accuracy")
    chart.flag(all_of_them, f"all {all_of_them:,}")
    kinds = ["measured"] * len(measured["n"]) + ["law"] * len(ahead["n"])
    both = {key: [*measured[key], *ahead[key]] for key in ("n", "value", "low", "high")}
    both["stability"] = [*found["stability"], *[None] * len(ahead["n"])]
    names = {"n": "samples", "value": "balanced accuracy"}
    chart.table = {"kind": kinds, **{names.get(key, key): both[key] for key in both}}
    return chart
