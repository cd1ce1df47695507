"""The paper's protocol and its experiments, each from a data set and plain arguments to values.

"Printed" is the text of the paper; "run" is what its authors' public code does with the settings
in it. ``published.toml`` holds both, and what their notebook prints.
"""

from __future__ import annotations

import subprocess
import tomllib
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib import resources
from itertools import product
from operator import call
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_selection import RFE, SelectKBest, chi2, f_classif, mutual_info_classif
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from .._typing import Progress
from ..datasets import Dataset
from ..estimators import GSVPSVM, GSVPSVMCV, PGDGSVPSVM, elbow_features
from ..estimators.pgd import fit_together
from ..evaluation.cache import Cache, digest, run_pieces, versions
from ..evaluation.compare import common_classifier, with_size
from ..solvers.pgd import pgd_planes

Array = NDArray[Any]
Results = dict[str, Any]
Part = tuple[Array, Array]  # samples and their classes

#: The seed of the published split.
PUBLISHED = 42
#: The study of q and eps (section 5.4), as the authors ran it.
SWEEP: dict[str, Any] = {"delta": (1e-4, 2e-4), "step_size": 10**-1.5, "conventions": "code"}
#: The steps of the authors' search, up to a factor.
STEPS = tuple(10.0 ** -(1 + 0.5 * k) for k in range(6))
_FORMAT = 3  # raise when a piece returns something else for the same arguments
_CURVE, _WEIGHTS = 240, 400  # points of a history, weights of a plane


class Study(SimpleNamespace):
    """A data set of the paper and what is published about it: ``published.toml`` says what."""

    def model(self, method: str, source: str = "code", **more: Any) -> PGDGSVPSVM:
        """A method with the settings the authors ran ("code") or printed ("paper")."""
        entry, kind = self.methods[method], "run" if source == "code" else "printed"
        settings = {"delta": tuple(entry[f"delta_{kind}"]), "step_size": entry[f"step_{kind}"]}
        return PGDGSVPSVM(**{"q": entry.get("q"), "conventions": source, **settings, **more})

    def split_of(self, data: Dataset, seed: int = PUBLISHED) -> PaperSplit:
        """The parts of the data, split as the paper does."""
        return paper_split(data.X, data.y, self.second_split, seed)


_ENTRIES = tomllib.loads((resources.files(__package__) / "published.toml").read_text("utf-8"))
CLAIMS = _ENTRIES.pop("claims")
STUDIES = {key: Study(key=key, **entry) for key, entry in _ENTRIES.items()}


class PaperSplit(NamedTuple):
    """Training, validation and test samples, class 0 first in each."""

    train: Part
    validation: Part
    test: Part


PARTS = PaperSplit._fields


def paper_split(X: Array, y: Array, second_split: float, random_state: int = 42) -> PaperSplit:
    """Split each class by itself: 70% for training, the rest into validation and test.

    ``second_split`` is the share of the held-out 30% that becomes the test part; the published
    split has 42 for ``random_state``.
    """
    pieces: list[list[Array]] = [[], [], []]
    for label in (0, 1):
        rows = np.flatnonzero(y == label)
        train, rest = train_test_split(rows, test_size=0.3, random_state=random_state)
        halves = train_test_split(rest, test_size=second_split, random_state=random_state)
        for piece, part in zip(pieces, (train, *halves)):
            piece.append(part)
    return PaperSplit(*((X[rows], y[rows]) for rows in map(np.concatenate, pieces)))


def batch_normalised_predict(Z: Array, weights: Array, biases: Array) -> NDArray[np.intp]:
    r"""The rule behind the published scores: distances divided by their norm over the batch.

    A sample is given to class 0 if :math:`|z'w_1 + b_1| / n_1 \le |z'w_2 + b_2| / n_2`, where
    :math:`n_k` is the Euclidean norm of :math:`|Zw_k + b_k|` over all samples being predicted.
    A sample predicted alone therefore always belongs to class 0. ``Z`` are standardised samples;
    ``weights`` and ``biases`` have one row per class.
    """
    distances = np.abs(Z @ weights.T + biases)
    distances /= np.linalg.norm(distances, axis=0)
    return (distances[:, 0] > distances[:, 1]).astype(np.intp)


def counts_of(y: Array, predicted: Array) -> list[int]:
    """TN, FP, FN, TP with class 1 as the positive one."""
    return confusion_matrix(y, predicted, labels=[0, 1]).ravel().tolist()


def balanced(counts: Sequence[int]) -> float:
    """Balanced accuracy of TN, FP, FN, TP."""
    tn, fp, fn, tp = counts
    return (tn / (tn + fp) + tp / (tp + fn)) / 2


def row(data: Dataset, study: str, method: str, source: str, max_iter: int) -> Results:
    """One row of the paper's tables and figures; ``free`` is without the stopping rule."""
    parts, names = STUDIES[study].split_of(data), data.feature_names
    model, free = _fit_rows(study, [method], parts.train, max_iter, source)[method]
    return {
        **_outcome(model, parts),
        "free": None if free is model else _outcome(free, parts),
        "history": [_thinned(history) for history in model.history_],
        "cycles": _cycles(free, parts.train, names),
        "weights": [_heaviest(w, names) for w in model.weights_],
        "sorted": [_sorted_weights(w) for w in model.weights_],
    }


def rounding(
    data: Dataset, study: str, methods: Sequence[str], max_iter: int, threads: int = 1,
    together: bool = False, order: int | None = None,
) -> Results:  # fmt: skip
    """The rows again with other sums: by threads, by products of matrices, in another order."""
    parts = STUDIES[study].split_of(data)
    X, y = parts.train
    if order is not None:
        rows = np.random.RandomState(order).permutation(len(y))
        X, y = X[rows], y[rows]
    with threadpool_limits(threads):
        pairs = _fit_rows(study, methods, (X, y), max_iter, together=together)
    return {
        method: {**_outcome(stopped, parts), "free": _outcome(free, parts)}
        for method, (stopped, free) in pairs.items()
    }


def _fit_rows(
    study: str, methods: Sequence[str], train: Part, max_iter: int, source: str = "code",
    together: bool = False,
) -> dict[str, list[PGDGSVPSVM]]:  # fmt: skip
    """Each method, and the same without the stopping rule; one model twice where none stopped."""
    pairs = {
        method: [STUDIES[study].model(method, source, max_iter=max_iter, tol=t) for t in (1e-4, 0)]
        for method in methods
    }
    if together:
        fit_together([model for pair in pairs.values() for model in pair], *train)
        return pairs
    for pair in pairs.values():
        fit_together(pair[:1], *train)
        if pair[0].converged_.any():
            fit_together(pair[1:], *train)
        else:
            pair[1] = pair[0]
    return pairs


def sweep(data: Dataset, study: str, qs: Sequence[float], eps: float, max_iter: int) -> Results:
    """What is selected at each q with one eps."""
    parts = STUDIES[study].split_of(data)
    models = {q: PGDGSVPSVM(q=q, eps=eps, max_iter=max_iter, **SWEEP) for q in qs}
    fit_together(list(models.values()), *parts.train)
    return {
        f"{q:g}": {
            **_outcome(model, parts),
            "panel": np.flatnonzero(model.support_).tolist(),
            "sorted": [_sorted_weights(w) for w in model.weights_],
        }
        for q, model in models.items()
    }


def panels(
    data: Dataset, study: str, methods: Sequence[str], max_iter: int, seed: int = PUBLISHED,
    start: int = 42, share: float = 1.0,
) -> Results:  # fmt: skip
    """All methods on another split, from another start, or with a share of class 1 to train on."""
    entry = STUDIES[study]
    parts = entry.split_of(data, seed)
    X, y = parts.train
    rare = np.random.RandomState(seed).permutation(np.flatnonzero(y == 1))
    keep = np.setdiff1d(np.arange(y.size), rare[round(share * rare.size) :])
    how: dict[str, Any] = {"max_iter": max_iter, "random_state": start}
    models: dict[str, Any] = {method: entry.model(method, **how) for method in methods}
    if models:
        fit_together(list(models.values()), X[keep], y[keep])
    models[f"GSVPSVM({entry.size})"] = GSVPSVM(n_features=entry.size).fit(X[keep], y[keep])
    models["GSVPSVMCV"] = GSVPSVMCV().fit(X[keep], y[keep])
    X, y = (np.concatenate(columns) for columns in zip(*parts[1:]))
    results: Results = {}
    for name, model in models.items():
        counts = {k: counts_of(part[1], model.predict(part[0])) for k, part in zip(PARTS, parts)}
        results[name] = {"panel": np.flatnonzero(model.support_).tolist(), **counts}
        if name in methods:
            results[name]["batch"] = counts_of(y, _batch_rule(model, X)["all"])
    return results


def search(data: Dataset, study: str, method: str, seed: int, max_iter: int) -> Results:
    """Deltas and step by their score on the validation part, on the authors' own grid.

    20 even nodes for each delta, paired, and six steps, times what makes the published step one
    of them. Of equal scores the one with the fewest features is taken, then the first.
    """
    entry = STUDIES[study]
    parts = entry.split_of(data, seed)
    deltas = [*zip(*(np.linspace(low, high, 20) for low, high in entry.grid))]
    tried: list[tuple[float, int, int, Results]] = []
    for step in STEPS:
        how = {"max_iter": max_iter, "step_size": step * entry.methods[method]["factor"]}
        for model in _fit_alive([entry.model(method, delta=d, **how) for d in deltas], parts):
            fit = _outcome(model, parts) | {"delta": model.delta, "step_size": model.step_size}
            score = balanced(fit["confusion"]["validation"]["batch"]["selected"])
            tried.append((-score, sum(fit["counts"]), len(tried), fit))
    value, size, _, fit = min(tried)
    return {
        **{name: fit[name] for name in ("delta", "step_size")},
        "features": size,
        "tried": len(tried),
        "tied": sum(other[0] == value for other in tried),
        "validation": -value,
        "test": balanced(fit["confusion"]["test"]["batch"]["all"]),
        "test_printed": balanced(fit["confusion"]["test"]["printed"]["selected"]),
    }


def _fit_alive(models: list[PGDGSVPSVM], parts: PaperSplit) -> list[PGDGSVPSVM]:
    """Fit models, and leave out those whose iterate vanishes, by halves."""
    with suppress(ValueError):
        fit_together(models, *parts.train)
        return models
    half = len(models) // 2
    return [m for side in (models[:half], models[half:]) if half for m in _fit_alive(side, parts)]


SELECTORS = {
    "chi-squared": SelectKBest(chi2),
    "F": SelectKBest(f_classif),
    "mutual information": SelectKBest(partial(mutual_info_classif, random_state=0)),
    "elimination": RFE(SVC(kernel="linear")),
}


def selectors(
    data: Dataset, study: str, names: Sequence[str], sizes: Sequence[int], seeds: Sequence[int]
) -> Results:
    """Panels of other selectors on the first split, and their accuracy on every test part."""
    results: Results = {f"{name}, {k}": {"scores": []} for name in names for k in sizes}
    for seed, name, k in product(seeds, names, sizes):
        parts, made = STUDIES[study].split_of(data, seed), results[f"{name}, {k}"]
        steps = MinMaxScaler(clip=True), with_size(SELECTORS[name], k), common_classifier()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of constant features, which come last
            model = make_pipeline(*steps).fit(*parts.train)
        made["scores"].append(model.score(*parts.test))
        made.setdefault("panel", np.flatnonzero(model[1].get_support()).tolist())
    return results


def _batch_rule(model: PGDGSVPSVM, X: Array) -> dict[str, Array]:
    """Classes by the batch rule, from the weights up to the elbows, and from all weights."""
    cut = np.zeros_like(model.weights_)
    for k, kept in enumerate(model.features_):
        cut[k, kept] = model.weights_[k, kept]
    Z, weights = (X - model.mean_) / model.scale_, {"selected": cut, "all": model.weights_}
    return {kind: batch_normalised_predict(Z, w, model.biases_) for kind, w in weights.items()}


def _outcome(model: PGDGSVPSVM, parts: PaperSplit) -> Results:
    """Elbows, features and counts of a fit: confusion[part][rule][weights]."""
    first, second = (set(kept.tolist()) for kept in model.features_)
    confusion = {}
    for part, (X, y) in zip(PARTS[1:], parts[1:]):
        rules = {"batch": _batch_rule(model, X), "printed": {"selected": model.predict(X)}}
        confusion[part] = {
            rule: {kind: counts_of(y, predicted) for kind, predicted in kinds.items()}
            for rule, kinds in rules.items()
        }
    return {
        "elbows": model.elbows_.tolist(),
        "features": [kept.tolist() for kept in model.features_],
        "counts": [len(first - second), len(second - first), len(first & second)],
        "converged": model.converged_.tolist(),
        "iterations": [len(history["relative_error"]) for history in model.history_],
        "confusion": confusion,
    }


def _thinned(history: Mapping[str, Array]) -> dict[str, list[Any]]:
    """A history at logarithmically spaced iterations, first and last included."""
    last = len(history["objective"]) - 1
    at = np.unique(np.geomspace(1, max(last, 1), _CURVE).astype(int))
    curves = {name: history[name][at].tolist() for name in ("objective", "fidelity", "penalty")}
    errors = history["relative_error"][at - 1]
    return {"iteration": at.tolist(), **curves, "relative_error": errors.tolist()}


def _cycles(model: PGDGSVPSVM, train: Part, names: Array) -> list[Results | None]:
    """For each plane that ends in a 2-cycle: where it began, and both of its points."""
    X, y = train
    A, B = ((X[y == k] - model.mean_) / model.scale_ for k in (0, 1))
    cycles: list[Results | None] = [None, None]
    for k in np.flatnonzero(model.cycles_ >= 0).tolist():
        here, since = np.append(model.weights_[k], model.biases_[k]), int(model.cycles_[k])
        plane = model._planes(np.ones(len(names), dtype=bool))[k]
        other = pgd_planes(A, B, [replace(plane, start=here, max_iter=1, tol=0.0)])[0].w
        points = [np.abs(model.weights_[k]), np.abs(other)]
        shown = np.argsort(-np.maximum(*points), kind="stable")[:10]
        cycles[k] = {
            "since": since,
            "elbows": [int(model.elbows_[k]), elbow_features(other).size],
            "names": names[shown].tolist(),
            "sizes": [point[shown].tolist() for point in points],
            "entry": model.history_[k]["objective"][max(0, since - 60) : since + 20].tolist(),
        }
    return cycles


def _sorted_weights(w: Array) -> list[float]:
    """The largest magnitudes, in descending order, relative to the first."""
    magnitudes = np.sort(np.abs(w))[::-1][:_WEIGHTS]
    return (magnitudes / (magnitudes[0] or 1.0)).tolist()


def _heaviest(w: Array, names: Array) -> dict[str, list[Any]]:
    """Position, name and value of the largest weights, by position."""
    at = np.sort(np.argsort(-np.abs(w), kind="stable")[:_WEIGHTS])
    return {"at": at.tolist(), "name": names[at].tolist(), "value": w[at].tolist()}


@dataclass(frozen=True)
class Plan:
    """How much to run; by default all of it, as for the breast cancer data.

    Attributes
    ----------
    n_starts, n_splits, n_orders : int
        Random starts, random splits, and orders of the training rows.
    threads : tuple of int
        Numbers of threads, beside one, that the rows are repeated with.
    n_claims, n_searches : int
        Random splits, beside the published one, of claims about other methods and of the search.
    searched : tuple of str
        The methods whose deltas and step are searched.
    max_iter : int
        Cap on the iterations of the paper's method.
    shares : tuple of float
        Of class 1, left in the training part to try the claim about imbalance.
    qs, eps : tuple of float
        The grid of the study of q.
    """

    n_starts: int = 20
    n_splits: int = 20
    n_orders: int = 10
    threads: tuple[int, ...] = (2,)
    n_claims: int = 5
    n_searches: int = 5
    searched: tuple[str, ...] = ("l1", "q=1", "q=0.1")
    max_iter: int = 10_000
    shares: tuple[float, ...] = (0.3, 0.1)
    qs: tuple[float, ...] = tuple(round(0.1 * k, 1) for k in range(1, 11))
    eps: tuple[float, ...] = (10**-2.5, 10**-2.0, 10**-1.5)


PLANS = {
    "breast": Plan(),
    # A fit takes minutes, not a second. The authors' grid is known of l1 alone.
    "ovarian": Plan(n_starts=10, n_splits=10, n_searches=0, searched=("l1",), shares=()),
}


def pieces(study: Study, plan: Plan) -> list[tuple[str, Any, dict[str, Any]]]:
    """All pieces of a study's reproduction, those that matter most first: name, call, arguments."""
    methods, cap = list(study.methods), {"max_iter": plan.max_iter}
    every, seeds = {"methods": methods, **cap}, [PUBLISHED, *range(plan.n_claims)]
    few = study.key == "breast"
    names, sizes = (["elimination"], [18, 7]) if few else ([*SELECTORS][:3], [20, 6])
    return [
        *((f"row/{m}/{s}", row, {"method": m, "source": s, **cap})
          for s in ("code", "paper") for m in methods),
        ("own", panels, {**every, "methods": []}),
        *((f"rounding/{n} threads", rounding, {"threads": n, **every}) for n in plan.threads),
        ("rounding/products of matrices", rounding, {"together": True, **every}),
        *((f"rounding/rows in order {k + 1}", rounding, {"together": True, "order": k, **every})
          for k in range(plan.n_orders)),
        *((f"sweep/{eps:.4g}", sweep, {"qs": list(plan.qs), "eps": eps, **cap})
          for eps in plan.eps),
        *((f"splits/{k}", panels, {"seed": k, **every}) for k in range(plan.n_splits)),
        *((f"starts/{k}", panels, {"start": k, **every}) for k in range(plan.n_starts)),
        *((f"share {s}/{k}", panels, {"share": s, "seed": k, **every})
          for s in plan.shares for k in range(plan.n_claims)),
        ("selectors", selectors, {"names": names, "sizes": sizes, "seeds": seeds}),
        *((f"search/{m}/{k}", search, {"method": m, "seed": k, **cap})
          for k in (PUBLISHED, *range(plan.n_searches)) for m in plan.searched),
    ]  # fmt: skip


def run(
    study: Study, data: Dataset, plan: Plan, cache: Path, *, n_jobs: int | None = None,
    progress: Progress | None = None,
) -> tuple[Results, int, dict[str, str]]:  # fmt: skip
    """Results of all pieces by name, how many were computed now, and the versions of them all."""
    kept, base = Cache(cache), digest(_FORMAT, study.key, data.X, data.y)
    work = {
        name: (
            digest(base, piece.__name__, arguments),
            partial(piece, data, study.key, **arguments),
        )
        for name, piece, arguments in pieces(study, plan)
    }
    missing = {key: (piece,) for key, piece in work.values() if kept.get(key) is None}
    made, now = kept.get("made with") or {}, {**versions(), **commit()}
    if missing:
        made = {k: " and ".join(dict.fromkeys([made.get(k, v), v])) for k, v in now.items()}
        kept.add("made with", made)
    how: dict[str, Any] = {"n_jobs": n_jobs, "progress": progress, "stage": study.title}
    for key, value in zip(missing, run_pieces(call, [*missing.values()], **how)):
        kept.add(key, value)
    return {name: kept.get(key) for name, (key, _) in work.items()}, len(missing), made


def commit() -> dict[str, str]:
    """The commit of the repository this package was imported from, if it was."""
    root = Path(__file__).parents[3]
    say = ["git", "describe", "--always", "--exclude=*", "--abbrev=12", "--dirty=-changed"]
    with suppress(OSError, subprocess.CalledProcessError):
        if (root / ".git").exists():
            said = subprocess.run(say, cwd=root, capture_output=True, text=True, check=True)
            return {"commit": said.stdout.strip()}
    return {}
