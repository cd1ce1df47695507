"""Draw the pictures of lesson.md: ``python docs/lesson.py``; `make docs` does it first."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.linalg import eigh

from sparsegsvp import GSVPSVM, GSVPSVMCV, PGDGSVPSVM
from sparsegsvp.datasets import load_breast_cancer, make_planted
from sparsegsvp.report.charts import Axis, Chart, Sheet, padded
from sparsegsvp.solvers import lq_prox

FOLDER = Path(__file__).parent / "lesson"


def crossing(seed: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Two classes of 60 points in the plane, each along a line of its own."""
    rng = np.random.default_rng(seed)
    along, off = rng.uniform(-2.2, 2.2, (2, 60)), rng.normal(0, 0.22, (2, 60))
    A = np.column_stack([along[0], 0.7 * along[0] + off[0]])
    B = np.column_stack([along[1], -0.9 * along[1] + 0.5 + off[1]])
    return A, B


def with_ones(A: np.ndarray) -> np.ndarray:
    return np.column_stack([A, np.ones(len(A))])


def planes() -> Sheet:
    """Two classes, two planes; and the quotient over all directions."""
    A, B = crossing()
    G, H = (with_ones(M).T @ with_ones(M) for M in (A, B))
    values, vectors = eigh(G, H)
    left = Chart(
        Axis(-3, 3, "feature 1"),
        Axis(-3, 3, "feature 2"),
        "two classes and their planes",
        380,
        340,
        title="two classes, two planes",
    )
    x = np.array([-3.0, 3.0])
    for k, (M, z) in enumerate(((A, vectors[:, 0]), (B, vectors[:, -1]))):
        left.points(M[:, 0], M[:, 1], f"pt f{(0, 5)[k]}", shape=3 * k, label=f"class {k}")
        left.line(x, -(z[0] * x + z[2]) / z[1], f"series s{(0, 5)[k]}")
    angles = np.linspace(0, np.pi, 361)
    best = [eigh(_along(G, t), _along(H, t), eigvals_only=True)[[0, -1]] for t in angles]
    right = Chart(
        Axis(0, 180, "direction of the normal, degrees"),
        Axis(1e-2, 1e2, "r, best and worst bias", log=True),
        "the quotient by direction",
        420,
        340,
        62,
        title="the quotient",
    )
    for j, label in ((0, "lowest over the bias"), (1, "highest")):
        right.line(
            np.degrees(angles), [pair[j] for pair in best], f"series s{(2, 7)[j]}", label=label
        )
    for value in values[[0, -1]]:
        right.rule("chance", y=value)
    return Sheet([[left, right]], "two classes, two planes, and the quotient")


def _along(G: np.ndarray, angle: float) -> np.ndarray:
    """The quadratic form of a direction and the bias."""
    E = np.array([[np.cos(angle), np.sin(angle), 0.0], [0.0, 0.0, 1.0]])
    return E @ G @ E.T


def smallest(A: np.ndarray, B: np.ndarray, tau: float = 0.0, pool: float = 0.0) -> float:
    """The smallest quotient of means of squared distances over unit normals and biases."""
    covariance = [np.cov(M, rowvar=False, bias=True).reshape(M.shape[1], -1) for M in (A, B)]
    within = (len(A) * covariance[0] + len(B) * covariance[1]) / (len(A) + len(B))
    forms = []
    for M, S in zip((A, B), covariance):
        mean = np.append(M.mean(0), 1.0)
        form = np.outer(mean, mean)
        form[:-1, :-1] += (1 - pool) * S + pool * within + tau * np.eye(M.shape[1])
        forms.append(form)
    return float(eigh(forms[0], forms[1] + 1e-10 * np.eye(len(forms[1])), eigvals_only=True)[0])


def many_features() -> Sheet:
    """The smallest quotient against the number of features: noise, and a shift in one feature."""
    counts, charts = [1, 2, 5, 10, 15, 20, 24, 28, 32, 40, 60, 80], []
    for title, shift in (("pure noise", 0.0), ("one feature tells the classes", 3.0)):
        rng = np.random.default_rng(0)
        A, B = rng.standard_normal((30, 80)), rng.standard_normal((30, 80))
        B[:, 0] += shift
        chart = Chart(
            Axis(0, 82, "features (30 samples in each class)"),
            Axis(-0.03, 1.03, "smallest r", grid=True),
            title,
            400,
            280,
            title=title,
        )
        for tone, label, how in (
            (7, "tau = 0, pool = 0: the paper's", {}),
            (0, "tau = 1, pool = 0", {"tau": 1.0}),
            (2, "tau = 1, pool = 1", {"tau": 1.0, "pool": 1.0}),
            (1, "tau = 10, pool = 1", {"tau": 10.0, "pool": 1.0}),
        ):
            values = [smallest(A[:, :m], B[:, :m], **how) for m in counts]
            chart.line(counts, values, f"series s{tone}", label=label)
            chart.points(counts, values, f"pt f{tone}", radius=2.5)
        charts.append(chart)
    return Sheet([charts], "the smallest quotient against the number of features")


def shrinking() -> Sheet:
    """The objective along a ray, and what the iteration does with it."""
    scale = np.geomspace(1e-3, 1, 60)
    ray = Chart(
        Axis(1e-3, 1, "length of z", log=True),
        Axis(0, 1.25, "objective", grid=True),
        "the objective along a ray",
        380,
        280,
        title="along a ray: r + delta ||z||",
    )
    for tone, q in ((0, 1.0), (3, 0.5), (1, 0.1)):
        ray.line(scale, 0.2 + scale**q, f"series s{tone}", label=f"q = {q:g}")
    ray.rule("chance", y=0.2)
    X, y = load_breast_cancer(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = PGDGSVPSVM(1.0, delta=(0.3, 0.4), step_size=3e-3, tol=0.0, max_iter=2000).fit(X, y)
    course = np.asarray(model.history_[1]["objective"])
    at = np.arange(1, course.size)
    walk = Chart(
        Axis(1, 2000, "iteration", log=True),
        Axis(*10.0 ** np.array(padded(np.log10(course[1:]))), "objective", log=True),
        "the paper's iteration",
        420,
        280,
        62,
        title="the paper's iteration, fixed step",
    )
    walk.line(at, course[1:], "series fine s5")
    return Sheet([[ray, walk]], "why there is no minimum")


def steps() -> Sheet:
    """Soft threshold, weighted step and exact lq step: what comes out for what goes in."""
    y = np.linspace(-1.5, 1.5, 601)
    kinds: list[tuple[str, Callable[[float], np.ndarray]]] = [
        ("soft threshold (l1)", lambda q: np.sign(y) * np.maximum(np.abs(y) - 0.25, 0)),
        ("weighted step, eps = 0.1", lambda q: y / (1 + 0.5 * (y**2 + 0.01) ** (q / 2 - 1))),
        ("exact lq step", lambda q: lq_prox(y, 0.25, q)),
    ]
    charts = []
    for title, step in kinds:
        chart = Chart(
            Axis(-1.5, 1.5, "y, after the gradient step"),
            Axis(-1.5, 1.5, "next z", grid=True),
            title,
            300,
            280,
            title=title,
        )
        chart.line(y, y, "chance")
        for tone, q in ((0, 1.0), (3, 0.5), (1, 0.1)) if title[0] != "s" else ((0, 1.0),):
            chart.line(y, step(q), f"series s{tone}", label=f"q = {q:g}")
        charts.append(chart)
    return Sheet([charts], "three proximal steps")


def closed_form() -> Sheet:
    """The quotient of a panel by its distance, and a panel as it grows."""
    D2 = np.linspace(0, 30, 200)
    left = Chart(
        Axis(0, 30, "D2, squared distance of the class means"),
        Axis(0, 1.02, "r", grid=True),
        "the quotient in closed form",
        380,
        280,
        title="r = ((sqrt(D2 + 4) - sqrt(D2)) / 2)^2",
    )
    left.line(D2, ((np.sqrt(D2 + 4) - np.sqrt(D2)) / 2) ** 2, "series s2")
    X, y = make_planted(120, 2000, n_informative=5, effect=1.0, return_X_y=True, random_state=0)
    model, search = GSVPSVM(n_features=15).fit(X, y), GSVPSVMCV(max_features=15).fit(X, y)
    sizes = np.arange(1, 16)
    right = Chart(
        Axis(0.5, 15.5, "features in the panel"),
        Axis(0.6, 1.0, grid=True),
        "a panel as it grows",
        420,
        280,
        title="120 x 2000, five features matter",
    )
    right.line(sizes, model.quotients_[:15], "series s2", label="quotient")
    right.line(
        search.path_["n_features"],
        search.path_["balanced_accuracy"],
        "series s1",
        label="balanced accuracy, held out",
    )
    right.rule("cursor", x=search.n_features_)
    return Sheet([[left, right]], "the limit q -> 0")


PICTURES = {
    "planes": planes,
    "many-features": many_features,
    "shrinking": shrinking,
    "steps": steps,
    "closed-form": closed_form,
}


def draw(folder: Path = FOLDER) -> None:
    """Write all pictures."""
    folder.mkdir(exist_ok=True)
    for name, picture in PICTURES.items():
        (folder / f"{name}.svg").write_text(picture().svg() + "\n", encoding="utf-8")


if __name__ == "__main__":
    draw()
