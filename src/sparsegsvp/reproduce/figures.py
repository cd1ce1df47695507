"""The figures, drawn from plain results; each function returns one matplotlib figure."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .plan import Plan
from .published import Study
from .tables import KINDS, Results, Table, method_labels, runs_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Colours that the page replaces by its own, so that figures follow its light and dark theme.
INK, FAINT, PAPER = "#1b1c1d", "#d4d5d6", "#fdfcfb"
THEME = {INK: "var(--ink)", FAINT: "var(--line)", PAPER: "var(--paper)"}
COLOURS = {
    "l1": "#c8553d",
    "q=1": "#d98e04",
    "q=0.1": "#9c5fb5",
    "GSVPSVM": "#1f8a70",
    "GSVPSVMCV": "#2f78b7",
}
CLASS_COLOURS = ("#2f78b7", "#d1495b")
EPS_COLOURS = ("#7aa6c2", "#3b7ea1", "#1a4e66", "#888888")


STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.facecolor": "none",
    "legend.frameon": False,
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "svg.fonttype": "none",
}


def _new(rows: int, columns: int, size: tuple[float, float], **options: Any) -> tuple[Any, Any]:
    """A figure and its axes, free of pyplot's global state."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained", facecolor="none")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def to_svg(figure: Figure, name: str) -> str:
    """Render a figure as SVG whose bytes depend on nothing but its content.

    Parameters
    ----------
    figure : Figure
    name : str
        Salt of the identifiers inside, so that figures on one page do not share any.

    Returns
    -------
    str
    """
    from matplotlib import rc_context

    buffer = io.BytesIO()
    with rc_context({**STYLE, "svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    svg = buffer.getvalue().decode("utf-8")
    return svg[svg.index("<svg") :]


def themed(svg: str) -> str:
    """Replace the theme's colours by the page's variables."""
    for colour, variable in THEME.items():
        svg = svg.replace(colour, variable)
    return svg


def sensitivity(study: Study, results: Results, table: Table) -> Figure:
    """Barcodes of the panels, one line per run, and the scores over random splits.

    A method whose panel does not depend on the run draws vertical bars; one that does draws
    noise.
    """
    labels = method_labels(study)
    kinds = [kind for kind in KINDS if runs_of(results, kind, study.methods[0].key)]
    rows = {(row["kind"], row["method"]): row for row in table.rows}
    figure, axes = _new(
        len(labels),
        len(kinds) + 1,
        (3.6 * (len(kinds) + 1), 1.55 * len(labels) + 0.5),
        gridspec_kw={"width_ratios": [1.0] * len(kinds) + [1.15]},
    )
    for line, (method, label) in enumerate(labels.items()):
        for ax, kind in zip(axes[line], kinds):
            _barcode(ax, runs_of(results, kind, method), COLOURS[method])
            row = rows.get((kind, label))
            if row is not None:
                panels = "one panel" if row["distinct"] == 1 else f"{row['distinct']} panels"
                cap = f" · {row['capped']} at the cap" if row["capped"] else ""
                ax.set_title(f"{panels} · Jaccard {row['jaccard']:.2f}{cap}", loc="left")
            if line == 0:
                ax.annotate(
                    f"{len(runs_of(results, kind, method))} {KINDS[kind]}",
                    (0, 1.32),
                    xycoords="axes fraction",
                    fontsize=11,
                    fontweight="bold",
                    color=INK,
                )
        axes[line, 0].set_ylabel(label.replace(", ", ",\n"), fontsize=10, fontweight="bold")
        axes[line, 0].yaxis.label.set_color(COLOURS[method])
        _scores(axes[line, -1], study, runs_of(results, "splits", method), method, line == 0)
        row = rows.get(("splits", label))
        if row is not None:
            axes[line, -1].set_title(
                f"{row['accuracy_mean']:.3f} ± {row['accuracy_sd']:.3f}", loc="left"
            )
        if line == 0:
            axes[line, -1].annotate(
                "balanced accuracy, held out",
                (0, 1.32),
                xycoords="axes fraction",
                fontsize=11,
                fontweight="bold",
                color=INK,
            )
        if line < len(labels) - 1:
            axes[line, -1].set_xticklabels([])
    axes[-1, 0].set_xlabel("features, the most often selected first")
    return figure


def _barcode(ax: Axes, runs: Sequence[dict[str, Any]], colour: str, most: int = 60) -> None:
    """One line per run, one column per feature that any run selected."""
    from matplotlib.colors import to_rgba

    ax.set_xticks([])
    ax.set_yticks([])
    for side in ax.spines.values():
        side.set_visible(False)
    if not runs:
        # Reordering rows changes the folds of GSVPSVMCV, which the first column shows.
        ax.text(0.0, 0.5, "other folds: see the left", va="center", transform=ax.transAxes)
        return
    counts: dict[int, int] = {}
    for run in runs:
        for feature in run["panel"]:
            counts[feature] = counts.get(feature, 0) + 1
    order = sorted(counts, key=lambda feature: (-counts[feature], feature))
    columns = {feature: place for place, feature in enumerate(order)}
    if len(order) <= most:
        for line, run in enumerate(runs):
            bars = [(columns[feature] + 0.08, 0.84) for feature in run["panel"]]
            ax.broken_barh(bars, (line + 0.08, 0.84), color=colour)
        ax.set_xlim(0, max(len(order), 24))
        ax.set_ylim(len(runs), 0)
        return
    # Too many columns for bars: one pixel each, kept sharp by the page.
    pixels = np.zeros((len(runs), len(order), 4))
    for line, run in enumerate(runs):
        pixels[line, [columns[feature] for feature in run["panel"]]] = to_rgba(colour)
    ax.imshow(pixels, aspect="auto", interpolation="none")
    ax.annotate(
        f"{len(order)} features in all",
        (1, -0.03),
        xycoords="axes fraction",
        ha="right",
        va="top",
        fontsize=8,
    )


def _scores(
    ax: Axes, study: Study, runs: Sequence[dict[str, Any]], method: str, named: bool
) -> None:
    """Each split's balanced accuracy; the published score as a line."""
    scores = np.array([run["balanced_accuracy"] for run in runs])
    # Spread by rank, so that equal scores lie beside each other.
    height = 0.5 + 0.33 * np.sin(2.4 * np.arange(len(scores)))
    ax.scatter(scores, height, s=22, color=COLOURS[method], alpha=0.85, linewidths=0)
    if len(scores):
        ax.plot([scores.mean()] * 2, [0.05, 0.95], color=COLOURS[method], lw=2)
    if method in study.rows:
        tn, fp, fn, tp = study.rows[method].test
        published = (tn / (tn + fp) + tp / (tp + fn)) / 2
        ax.axvline(published, color=INK, lw=1, ls=(0, (3, 2)))
        if named:
            ax.annotate(
                "published",
                (published, 0.93),
                xytext=(-4, 0),
                textcoords="offset points",
                ha="right",
                va="center",
                fontsize=8,
            )
    ax.set_xlim(0.38, 1.02)
    ax.set_ylim(0, 1)
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    ax.grid(axis="x")
    ax.set_axisbelow(True)


def sorted_weights(study: Study, plan: Plan, results: Results) -> Figure:
    """Sorted weights with their elbows: the paper's method above, this package's below."""
    eps = (plan.eps or study.sweep.eps)[0]
    qs = plan.qs or study.sweep.qs
    low, high = (min(qs, key=lambda q: abs(q - at)) for at in (0.2, 0.9))
    figure, axes = _new(2, 3, (10.5, 5.4))
    paper = [
        ("l1", results["row/l1/code"]),
        *[(f"lq, q = {q:g}", results[f"sweep/paper/{q:g}/{eps:.4g}"]) for q in (low, high)],
    ]
    for ax, (title, result) in zip(axes[0], paper):
        _curves(ax, study, result["sorted"], result["elbows"])
        ax.set_title(f"PGDGSVPSVM, {title}", loc="left")
    own = [(q, results[f"sweep/own/{q:g}/{eps:.4g}"]) for q in (max(qs), low, high)]
    for ax, (q, result) in zip(axes[1], own):
        _curves(ax, study, result["sorted"], result["counts"])
        ax.set_title(f"GSVPSVM, q = {q:g}", loc="left")
    axes[0, 0].set_ylabel("|w| / largest")
    axes[1, 0].set_ylabel("|w| / largest")
    for ax in axes[1]:
        ax.set_xlabel("rank")
    axes[0, 0].legend(loc="upper right")
    return figure


def _curves(ax: Axes, study: Study, curves: Sequence[Sequence[float]], kept: Sequence[int]) -> None:
    shown = int(min(max(len(curve) for curve in curves), max(30, 4 * max(kept))))
    for label, curve, count, colour in zip(study.class_names, curves, kept, CLASS_COLOURS):
        values = np.asarray(curve[:shown])
        ax.plot(np.arange(1, len(values) + 1), values, color=colour, lw=1.6, label=label)
        if 0 < count <= len(values):
            ax.plot(count, values[count - 1], "o", ms=7, mfc=PAPER, mec=colour, mew=1.8)
            ax.annotate(
                str(count),
                (count, values[count - 1]),
                xytext=(7, 5),
                textcoords="offset points",
                color=colour,
                fontweight="bold",
            )
    ax.set_ylim(-0.03, 1.08)
    ax.grid(axis="y")


def convergence(study: Study, results: Results) -> Figure:
    """Objective and relative error by iteration; the objective of this package's solver."""
    methods = study.methods
    figure, axes = _new(2, len(methods) + 1, (12.4, 5.2))
    for column, method in enumerate(methods):
        result = results[f"row/{method.key}/code"]
        for label, history, colour in zip(study.class_names, result["history"], CLASS_COLOURS):
            at = history["iteration"]
            axes[0, column].loglog(at, history["objective"], color=colour, lw=1.3, label=label)
            axes[0, column].loglog(at, history["penalty"], color=colour, lw=1.0, ls=":")
            axes[1, column].loglog(
                at, np.maximum(history["relative_error"], 1e-12), color=colour, lw=1.0
            )
        for ax in axes[:, column]:
            ax.minorticks_off()
        axes[1, column].axhline(1e-4, color=INK, lw=0.8, ls=(0, (3, 2)))
        state = ["stops" if done else "cap" for done in result["converged"]]
        axes[0, column].set_title(f"{method.label}  ({state[0]}, {state[1]})", loc="left")
        axes[1, column].set_xlabel("iteration")
    axes[0, 0].set_ylabel("objective (dotted: penalty)")
    axes[1, 0].set_ylabel("relative change")
    axes[0, 0].legend(loc="lower left", fontsize=8)
    last, note = axes[0, -1], axes[1, -1]
    planes = results["own/convergence"]["planes"]
    for label, plane, colour in zip(study.class_names, planes, CLASS_COLOURS):
        values = plane["objective"]
        last.plot(np.arange(len(values)), values, "o-", ms=4, color=colour, lw=1.3, label=label)
    last.set_title("GSVPSVM, last penalty of its path", loc="left")
    last.set_xlabel("iteration")
    note.axis("off")
    lines = [
        f"{label}: residual {plane['kkt_residual']:.0e}\n(delta_max {plane['delta_max']:.2f})"
        for label, plane in zip(study.class_names, planes)
    ]
    note.text(0.0, 0.95, "certificate of stationarity\n\n" + "\n\n".join(lines), va="top")
    return figure


def features_by_q(study: Study, plan: Plan, results: Results, jaccard: Table | None) -> Figure:
    """Number of features against q for each eps, and the average Jaccard index across q."""
    figure, axes = _new(1, 3, (12.4, 3.6))
    qs = sorted({q for q, _ in plan.grid(study)})
    levels = list(dict.fromkeys(eps for _, eps in plan.grid(study)))
    for ax, which, title in (
        (axes[0, 0], "paper", "PGDGSVPSVM"),
        (axes[0, 1], "own", "GSVPSVM"),
    ):
        tallest = 1
        for eps, colour, marker in zip(levels, EPS_COLOURS, "os^D"):
            sizes = [len(results[f"sweep/{which}/{q:g}/{eps:.4g}"]["panel"]) for q in qs]
            tallest = max(tallest, *sizes)
            ax.plot(qs, sizes, marker=marker, color=colour, lw=1.5, label=f"eps = {_power(eps)}")
        ax.set_title(f"{title}: features selected", loc="left")
        ax.set_xlabel("q")
        ax.set_ylim(0, 1.1 * tallest)
        ax.grid(axis="y")
    axes[0, 0].legend(loc="best")
    ax = axes[0, 2]
    ax.set_title("average Jaccard index across q", loc="left")
    if jaccard is None:
        ax.axis("off")
        return figure
    series = (("published", FAINT), ("obtained", COLOURS["q=1"]), ("GSVPSVM", COLOURS["GSVPSVM"]))
    for offset, (column, colour) in enumerate(series):
        for place, row in enumerate(jaccard.rows):
            if row[column] is None:
                continue
            at = place + 0.27 * (offset - 1)
            ax.bar(at, row[column], 0.25, color=colour, label=column if place == 0 else None)
            ax.annotate(
                f"{row[column]:.2f}", (at, row[column]), ha="center", va="bottom", fontsize=8
            )
    ax.set_xticks(range(len(jaccard.rows)), [_power(row["eps"]) for row in jaccard.rows])
    ax.set_xlabel("eps")
    ax.set_ylim(0, 1.28)
    ax.legend(loc="upper left", ncols=3, fontsize=8)
    return figure


def weights(study: Study, plan: Plan, results: Results) -> Figure:
    """The weights by feature: q = 0.1 above, `GSVPSVMCV` below; kept features filled."""
    figure, axes = _new(2, 2, (12.4, 4.8))
    paper, own = results["row/q=0.1/code"], results[f"own/{plan.rules[-1]}"]
    for k, (label, colour) in enumerate(zip(study.class_names, CLASS_COLOURS)):
        _stems(axes[0, k], paper["weights"][k], set(paper["features"][k]), colour)
        axes[0, k].set_title(f"PGDGSVPSVM, q = 0.1: plane of {label}", loc="left")
        _stems(axes[1, k], own["weights"][k], set(own["panel"]), colour)
        axes[1, k].set_title(f"GSVPSVMCV, {plan.rules[-1]}: plane of {label}", loc="left")
        axes[1, k].set_xlabel("feature")
        for ax in axes[:, k]:
            ax.set_xlim(-0.02 * study.shape[1] - 1, 1.02 * study.shape[1])
    return figure


def _power(value: float) -> str:
    """A power of ten with its exponent raised."""
    raised = str.maketrans("-.0123456789", "⁻·⁰¹²³⁴⁵⁶⁷⁸⁹")
    return "10" + f"{np.log10(value):.3g}".translate(raised)


def _stems(ax: Axes, weights: Mapping[str, Any], kept: set[int], colour: str) -> None:
    at, value = np.asarray(weights["at"]), np.asarray(weights["value"])
    inside = np.array([feature in kept for feature in at], dtype=bool)
    ax.axhline(0, color=INK, lw=0.6)
    ax.vlines(at[~inside], 0, value[~inside], color=FAINT, lw=1.2)
    ax.vlines(at[inside], 0, value[inside], color=colour, lw=1.8)
    ax.plot(at[inside], value[inside], "o", ms=4, color=colour)


def top_features(study: Study, plan: Plan, results: Results) -> Figure:
    """The heaviest selected features of each plane, with their weights."""
    columns = [
        *[(f"PGDGSVPSVM, {m.label}", results[f"row/{m.key}/code"]["top"]) for m in study.methods],
        (f"GSVPSVMCV, {plan.rules[-1]}", results[f"own/{plan.rules[-1]}"]["top"]),
    ]
    tallest = max(len(plane) for _, top in columns for plane in top)
    figure, axes = _new(2, len(columns), (13.2, 1.6 + 0.42 * tallest))
    for column, (title, top) in enumerate(columns):
        for k, (ax, plane) in enumerate(zip(axes[:, column], top)):
            values = np.array([value for _, value in plane])
            share = values / np.abs(values).max()
            ax.barh(range(len(plane)), share, color=CLASS_COLOURS[k], height=0.7)
            ax.set_yticks(range(len(plane)), [name for name, _ in plane], fontsize=8)
            ax.set_ylim(max(len(plane), 3) - 0.4, -0.6)
            ax.axvline(0, color=INK, lw=0.6)
            ax.set_xlim(-1.08, 1.08)
            ax.set_xticks([-1, 0, 1])
            if k == 0:
                ax.set_title(title, loc="left")
            else:
                ax.set_xlabel("weight / largest")
    for k, label in enumerate(study.class_names):
        axes[k, 0].set_ylabel(f"plane of {label}", color=CLASS_COLOURS[k], fontweight="bold")
    return figure


def pca(study: Study, plan: Plan, results: Results) -> Figure:
    """Test samples by their first two principal components: all features, then panels."""
    own = results[f"own/{plan.rules[-1]}"]
    columns = [
        ("all features", own["pca_all"]),
        *[(m.label, results[f"row/{m.key}/code"]["pca"]) for m in study.methods],
        (f"GSVPSVMCV, {plan.rules[-1]}", own["pca"]),
    ]
    figure, axes = _new(1, len(columns), (13.2, 3.0))
    for ax, (title, result) in zip(axes[0], columns):
        points, y = np.asarray(result["points"]), np.asarray(result["y"])
        for label, (name, colour) in enumerate(zip(study.class_names, CLASS_COLOURS)):
            chosen = points[y == label]
            ax.scatter(
                chosen[:, 0],
                chosen[:, 1],
                s=20,
                marker="os"[label],
                color=colour,
                alpha=0.8,
                linewidths=0,
                label=name,
            )
        ax.set_title(f"{title} ({result['n_features']})", loc="left")
        ax.set_xticks([])
        ax.set_yticks([])
    axes[0, 0].legend(loc="best", fontsize=8)
    return figure


def make_figures(
    study: Study, plan: Plan, results: Results, tables: Mapping[str, Table]
) -> dict[str, str]:
    """Draw every figure of one study, as SVG by name."""
    from matplotlib import rc_context

    draw: dict[str, Callable[[], Figure]] = {
        "sensitivity": lambda: sensitivity(study, results, tables["sensitivity"]),
        "sorted_weights": lambda: sorted_weights(study, plan, results),
        "convergence": lambda: convergence(study, results),
        "features_by_q": lambda: features_by_q(study, plan, results, tables.get("jaccard")),
        "weights": lambda: weights(study, plan, results),
        "top_features": lambda: top_features(study, plan, results),
        "pca": lambda: pca(study, plan, results),
    }
    if "sensitivity" not in tables:
        del draw["sensitivity"]
    drawn = {}
    for name, function in draw.items():
        with rc_context(STYLE):
            figure = function()
        drawn[name] = to_svg(figure, f"{study.key}-{name}")
    return drawn
