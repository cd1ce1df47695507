"""The paper's protocol and its experiments, each from a data set and plain arguments to values.

"Printed" is the text of the paper; "run" is what its authors' public code does with the settings
in it. ``published.toml`` holds both, and what their notebook prints.
"""

from __future__ import annotations

import tomllib
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import RFE, chi2, f_classif, mutual_info_classif
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, confusion_matrix, recall_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from .._typing import Progress
from ..datasets import Dataset
from ..estimators import GSVPSVM, GSVPSVMCV, PGDGSVPSVM, LqGSVPSVM, elbow_features
from ..estimators.pgd import fit_together
from ..evaluation.cache import Cache, digest, run_pieces
from ..solvers import l1_pgd_gsvp, lq_pgd_gsvp

Array = NDArray[Any]
Row = dict[str, Any]
Results = dict[str, Any]  # of pieces, by name
Part = tuple[Array, Array]  # samples and their classes

PARTS = ("train", "validation", "test")
#: The seed of the published split.
PUBLISHED = 42
#: The study of q and eps (section 5.4), as the authors ran it.
SWEEP = {"delta": (1e-4, 2e-4), "step_size": 10**-1.5, "conventions": "code"}
QS = tuple(round(0.1 * k, 1) for k in range(1, 11))
EPS = (10**-2.5, 10**-2.0, 10**-1.5)
#: The steps of the authors' search, up to a factor.
STEPS = tuple(10.0 ** -(1 + 0.5 * k) for k in range(6))
_FORMAT = 3  # raise when a piece returns something else for the same arguments
_CURVE, _WEIGHTS, _TOP = 240, 400, 20  # points of a history, weights of a plane, names


# ------------------------------------------------------------------------------ the protocol


@dataclass(frozen=True)
class Study:
    """A data set of the paper and what is published about it, as in ``published.toml``."""

    key: str
    title: str
    classes: tuple[str, str]
    shape: tuple[int, int]
    second_split: float
    split: dict[str, list[int]]
    grid: list[list[float]]
    size: int
    methods: dict[str, dict[str, Any]]
    jaccard: list[float] = field(default_factory=list)
    notebook_sweep: dict[str, list[Any]] = field(default_factory=dict)

    def model(self, method: str, source: str = "code", **more: Any) -> PGDGSVPSVM:
        """A method with the settings the authors ran ("code") or printed ("paper")."""
        entry, kind = self.methods[method], "run" if source == "code" else "printed"
        settings = {"delta": tuple(entry[f"delta_{kind}"]), "step_size": entry[f"step_{kind}"]}
        return PGDGSVPSVM(**{"q": entry.get("q"), "conventions": source, **settings, **more})


_ENTRIES = tomllib.loads((resources.files(__package__) / "published.toml").read_text("utf-8"))
CLAIMS = _ENTRIES.pop("claims")
STUDIES = {key: Study(key=key, **entry) for key, entry in _ENTRIES.items()}


@dataclass(frozen=True, eq=False)
class PaperSplit:
    """Training, validation and test samples, class 0 first in each."""

    train: Part
    validation: Part
    test: Part

    @property
    def held_out(self) -> Part:
        """Validation and test part together."""
        X, y = zip(self.validation, self.test)
        return np.concatenate(X), np.concatenate(y)


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


def parts_of(data: Dataset, study: str, seed: int = PUBLISHED) -> PaperSplit:
    """The parts of a data set, split as the paper does."""
    return paper_split(data.X, data.y, STUDIES[study].second_split, seed)


def batch_normalised_predict(Z: Array, weights: Array, biases: Array) -> NDArray[np.intp]:
    r"""The rule behind the published scores: distances divided by their norm over the batch.

    A sample is given to class 0 if :math:`|z'w_1 + b_1| / n_1 \le |z'w_2 + b_2| / n_2`, where
    :math:`n_k` is the Euclidean norm of :math:`|Zw_k + b_k|` over all samples being predicted.
    The class of a sample therefore depends on the samples beside it, and a sample predicted
    alone always belongs to class 0. It exists for the reproduction only.

    ``Z`` are standardised samples; ``weights`` and ``biases`` have one row per class.
    """
    distances = np.abs(Z @ weights.T + biases)
    distances /= np.linalg.norm(distances, axis=0)
    return (distances[:, 0] > distances[:, 1]).astype(np.intp)


def nearest_plane_predict(Z: Array, weights: Array, biases: Array) -> NDArray[np.intp]:
    r"""The rule the paper prints (equation 21): the nearer plane, :math:`|z'w + b| / \|w\|`."""
    distances = np.abs(Z @ weights.T + biases) / np.linalg.norm(weights, axis=1)
    return (distances[:, 0] > distances[:, 1]).astype(np.intp)


def counts_of(y: Array, predicted: Array) -> list[int]:
    """TN, FP, FN, TP with class 1 as the positive one."""
    return [int(n) for n in confusion_matrix(y, predicted, labels=[0, 1]).ravel()]


def balanced(counts: Sequence[int]) -> float:
    """Balanced accuracy of TN, FP, FN, TP."""
    tn, fp, fn, tp = counts
    return (tn / (tn + fp) + tp / (tp + fn)) / 2


def _score(y: Array, predicted: Array) -> float:
    return float(balanced_accuracy_score(y, predicted))


# ------------------------------------------------------------------------ the paper's method


def row(data: Dataset, study: str, method: str, source: str, max_iter: int) -> Row:
    """One row of the paper's tables, with everything its figures show.

    ``free`` is the same without the stopping rule, where that ended a plane before the cap.
    """
    parts, names = parts_of(data, study), data.feature_names
    model, free = (
        STUDIES[study].model(method, source, max_iter=max_iter, tol=t) for t in (1e-4, 0)
    )
    fit_together([model], *parts.train)
    if model.converged_.any():
        fit_together([free], *parts.train)
    else:
        free = model
    return {
        **_outcome(model, parts),
        "free": None if free is model else _outcome(free, parts),
        "history": [_thinned(history) for history in model.history_],
        "cycles": _cycles(free, parts.train, names),
        "weights": [_heaviest(w, names) for w in model.weights_],
        "sorted": [_sorted_weights(w) for w in model.weights_],
        "top": [[[str(names[f]), float(w[f])] for f in kept[:_TOP]]
                for w, kept in zip(model.weights_, model.features_)],
        "pca": _embedding(parts, model.support_),
    }  # fmt: skip


def rounding(
    data: Dataset, study: str, methods: Sequence[str], max_iter: int, threads: int = 1,
    together: bool = False, order: int | None = None,
) -> Row:  # fmt: skip
    """The rows as the authors ran them, with sums taken in another order: of each method by key.

    By so many threads, by products of matrices (``together``) instead of vectors, or with the
    training rows in another order.
    """
    parts = parts_of(data, study)
    X, y = parts.train
    if order is not None:
        rows = np.random.RandomState(order).permutation(len(y))
        X, y = X[rows], y[rows]
    models = {
        m: [STUDIES[study].model(m, max_iter=max_iter, tol=tol) for tol in (1e-4, 0.0)]
        for m in methods
    }
    with threadpool_limits(threads):
        if together:
            fit_together([model for pair in models.values() for model in pair], X, y)
        for pair in [] if together else models.values():
            fit_together(pair[:1], X, y)
            if pair[0].converged_.any():
                fit_together(pair[1:], X, y)
            else:
                pair[1] = pair[0]
    return {
        m: {**_outcome(stopped, parts), "free": _outcome(free, parts)}
        for m, (stopped, free) in models.items()
    }


def sweep(data: Dataset, study: str, qs: Sequence[float], eps: float, max_iter: int) -> Results:
    """What is selected at each q with one eps; of this package, by `LqGSVPSVM`."""
    parts = parts_of(data, study)
    given: dict[str, Any] = {"eps": eps, "max_iter": max_iter, **SWEEP}
    models = {q: PGDGSVPSVM(q=q, **given) for q in qs}
    fit_together(list(models.values()), *parts.train)
    results = {}
    for q, model in models.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            own = LqGSVPSVM(q=q, eps=eps, refit=False).fit(*parts.train)
        results[f"{q:g}"] = {
            **_outcome(model, parts),
            "panel": np.flatnonzero(model.support_).tolist(),
            "sorted": [_sorted_weights(w) for w in model.weights_],
            "own": np.flatnonzero(own.support_).tolist(),
        }
    return results


def starts(
    data: Dataset, study: str, methods: Sequence[str], seeds: Sequence[int], max_iter: int
) -> Results:
    """Panels of the paper's methods from other starts, and their scores on what is held out."""
    parts = parts_of(data, study)
    models = {
        f"{m}/{seed}": STUDIES[study].model(m, max_iter=max_iter, random_state=seed)
        for m in methods
        for seed in seeds
    }
    fit_together(list(models.values()), *parts.train)
    return {name: _judged(model, parts) for name, model in models.items()}


def split(data: Dataset, study: str, methods: Sequence[str], seed: int, max_iter: int) -> Results:
    """The same on another split, and this package's methods on it."""
    parts, entry = parts_of(data, study, seed), STUDIES[study]
    models: dict[str, Any] = {m: entry.model(m, max_iter=max_iter) for m in methods}
    fit_together(list(models.values()), *parts.train)
    models[f"GSVPSVM({entry.size})"] = GSVPSVM(n_features=entry.size).fit(*parts.train)
    models["GSVPSVMCV"] = GSVPSVMCV().fit(*parts.train)
    return {name: _judged(model, parts) for name, model in models.items()}


def search(data: Dataset, study: str, method: str, seed: int, nodes: int, max_iter: int) -> Row:
    """Deltas and step by their score on the validation part, on the authors' own grid.

    20 even nodes for each delta, paired, and six steps, times what makes the published step one
    of them. Of equal scores the one with the fewest features is taken, then the first. The test
    part is scored as published and as printed.
    """
    parts, entry = parts_of(data, study, seed), STUDIES[study]
    deltas = list(zip(*(np.linspace(low, high, 20) for low, high in entry.grid)))[:: 20 // nodes]
    tried: list[tuple[float, int, int, Row]] = []
    for step in STEPS:
        how = {"max_iter": max_iter, "step_size": step * entry.methods[method]["factor"]}
        for model in _fit_alive([entry.model(method, delta=d, **how) for d in deltas], parts):
            fit = _outcome(model, parts)
            fit |= {"delta": model.delta, "step_size": model.step_size}
            score = balanced(fit["confusion"]["validation"]["batch"]["selected"])
            tried.append((-score, sum(fit["counts"]), len(tried), fit))
    value, size, _, fit = min(tried)
    counts = fit["confusion"]["test"]
    return {
        **{name: fit[name] for name in ("delta", "step_size", "elbows")},
        "features": size,
        "tried": len(tried),
        "tied": sum(other[0] == value for other in tried),
        "validation": -value,
        "test": balanced(counts["batch"]["all"]),
        "test_printed": balanced(counts["printed"]["selected"]),
    }


def _fit_alive(models: list[PGDGSVPSVM], parts: PaperSplit) -> list[PGDGSVPSVM]:
    """Fit models, and leave out those whose iterate vanishes."""
    with suppress(ValueError):
        fit_together(models, *parts.train)
        return models
    alive = []
    for model in models:
        with suppress(ValueError):
            fit_together([model], *parts.train)
            alive.append(model)
    return alive


# ------------------------------------------------------------------ this package, and others


def own(data: Dataset, study: str) -> Results:
    """`GSVPSVM` of a given size and `GSVPSVMCV` on the published split."""
    parts, k = parts_of(data, study), STUDIES[study].size
    results: Results = {"pca_all": _embedding(parts, np.ones(data.X.shape[1], dtype=bool))}
    for name, model in ((f"GSVPSVM({k})", GSVPSVM(n_features=k)), ("GSVPSVMCV", GSVPSVMCV())):
        model.fit(*parts.train)
        results[name] = {
            "panel": model.feature_order_.tolist(),
            "counts": {
                part: counts_of(y, model.predict(X))
                for part, (X, y) in (("validation", parts.validation), ("test", parts.test))
            },
            "pca": _embedding(parts, model.support_),
        }
    return results


def filters(data: Dataset, study: str, size: int, seeds: Sequence[int]) -> Results:
    """What chi-squared, F and mutual information rank first, and how well a few of them predict."""
    ranked: dict[str, list[int]] = {}
    scores: dict[str, list[float]] = {}
    for parts in (parts_of(data, study, seed) for seed in seeds):
        (X, y), (X_test, y_test) = parts.train, parts.test
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of constant features, which come last below
            values = {
                "chi-squared": chi2(MinMaxScaler(clip=True).fit_transform(X), y)[0],
                "F": f_classif(X, y)[0],
                "mutual information": mutual_info_classif(X, y, random_state=0),
            }
        for name, value in values.items():
            order = np.argsort(-np.nan_to_num(value, nan=-np.inf), kind="stable")
            ranked.setdefault(name, order[:_TOP].tolist())
            model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=5000))
            predicted = model.fit(X[:, order[:size]], y).predict(X_test[:, order[:size]])
            scores.setdefault(name, []).append(_score(y_test, predicted))
    return {"top": ranked, "size": size, "scores": scores}


def elimination(data: Dataset, study: str, sizes: Sequence[int], seeds: Sequence[int]) -> Results:
    """Recursive elimination with a linear support vector machine, down to each size."""
    panels: dict[str, list[int]] = {}
    scores: dict[str, list[float]] = {}
    for parts in (parts_of(data, study, seed) for seed in seeds):
        X, y = parts.test
        for size in sizes:
            selector = RFE(SVC(kernel="linear"), n_features_to_select=size)
            model = make_pipeline(StandardScaler(), selector).fit(*parts.train)
            panels.setdefault(str(size), np.flatnonzero(selector.support_).tolist())
            scores.setdefault(str(size), []).append(float(np.mean(model.predict(X) == y)))
    return {"panels": panels, "scores": scores}


def imbalance(
    data: Dataset, study: str, methods: Sequence[str], shares: Sequence[float], seed: int,
    max_iter: int,
) -> Results:  # fmt: skip
    """Recall of both classes when only a share of class 1 is left in the training part."""
    parts, entry = parts_of(data, study, seed), STUDIES[study]
    (X, y), (X_test, y_test) = parts.train, parts.held_out
    rare = np.random.RandomState(seed).permutation(np.flatnonzero(y == 1))
    results: Results = {}
    for share in shares:
        keep = np.setdiff1d(np.arange(y.size), rare[round(share * rare.size) :])
        models: dict[str, Any] = {m: entry.model(m, max_iter=max_iter) for m in methods}
        fit_together(list(models.values()), X[keep], y[keep])
        models["GSVPSVM"] = GSVPSVM(n_features=entry.size).fit(X[keep], y[keep])
        results[f"{share:g}"] = {
            name: recall_score(y_test, model.predict(X_test), average=None).tolist()
            for name, model in models.items()
        }
    return results


# ------------------------------------------------------------------------ what is kept of a fit


def standardised(model: PGDGSVPSVM, X: Array) -> Array:
    """Samples in the units of a model's weights."""
    return (X - model.mean_) / model.scale_


def _cut_weights(model: PGDGSVPSVM) -> Array:
    """The weights of both planes up to their elbows."""
    weights = np.zeros_like(model.weights_)
    for k, kept in enumerate(model.features_):
        weights[k, kept] = model.weights_[k, kept]
    return weights


def _outcome(model: PGDGSVPSVM, parts: PaperSplit) -> Row:
    """Elbows, features and counts of a fit, under every rule: confusion[part][rule][weights]."""
    first, second = (set(kept.tolist()) for kept in model.features_)
    planes = {"selected": _cut_weights(model), "all": model.weights_}
    rules = {"batch": batch_normalised_predict, "printed": nearest_plane_predict}
    return {
        "elbows": model.elbows_.tolist(),
        "features": [kept.tolist() for kept in model.features_],
        "counts": [len(first - second), len(second - first), len(first & second)],
        "converged": model.converged_.tolist(),
        "iterations": [len(history["relative_error"]) for history in model.history_],
        "confusion": {
            part: {
                rule: {
                    kind: counts_of(y, decide(standardised(model, X), weights, model.biases_))
                    for kind, weights in planes.items()
                }
                for rule, decide in rules.items()
            }
            for part, (X, y) in (("validation", parts.validation), ("test", parts.test))
        },
    }


def _judged(model: Any, parts: PaperSplit) -> Row:
    """Panel and score of a fit on all held-out samples; of the paper's, by the batch rule too."""
    X, y = parts.held_out
    panel = np.flatnonzero(model.support_).tolist()
    result = {"panel": panel, "printed": _score(y, model.predict(X))}
    if isinstance(model, PGDGSVPSVM):
        Z = standardised(model, X)
        for kind, weights in (("selected", _cut_weights(model)), ("all", model.weights_)):
            result[kind] = _score(y, batch_normalised_predict(Z, weights, model.biases_))
        result["capped"] = not model.converged_.all()
    return result


def _thinned(history: Mapping[str, Array]) -> dict[str, list[Any]]:
    """A history at logarithmically spaced iterations, first and last included."""
    last = len(history["objective"]) - 1
    at = np.unique(np.geomspace(1, max(last, 1), _CURVE).astype(int))
    curves = {name: history[name][at].tolist() for name in ("objective", "fidelity", "penalty")}
    errors = history["relative_error"][at - 1]
    return {"iteration": at.tolist(), **curves, "relative_error": errors.tolist()}


def _cycles(model: PGDGSVPSVM, train: Part, names: Array) -> list[Row | None]:
    """For each plane that ends in a 2-cycle: where it began, and both of its points."""
    X, y = train
    blocks = [standardised(model, X[y == k]) for k in (0, 1)]
    cycles: list[Row | None] = [None, None]
    for k in np.flatnonzero(model.cycles_ >= 0).tolist():
        other = _step_on(model, blocks, k)
        points = [np.abs(model.weights_[k]), np.abs(other)]
        shown = np.argsort(-np.maximum(*points), kind="stable")[:10]
        course, since = model.history_[k]["objective"], int(model.cycles_[k])
        cycles[k] = {
            "since": since,
            "elbows": [int(model.elbows_[k]), elbow_features(other).size],
            "names": names[shown].tolist(),
            "sizes": [point[shown].tolist() for point in points],
            "entry": course[max(0, since - 60) : since + 20].tolist(),
        }
    return cycles


def _step_on(model: PGDGSVPSVM, blocks: list[Array], k: int) -> Array:
    """The weights of a plane after one more iteration."""
    how: dict[str, Any] = {"delta": np.broadcast_to(model.delta, 2)[k], "max_iter": 1, "tol": 0.0}
    how |= {"step_size": model.step_size, "z0": np.append(model.weights_[k], model.biases_[k])}
    if model.q is None:
        return l1_pgd_gsvp(blocks[k], blocks[1 - k], **how).w
    how |= {"q": model.q, "eps": model.eps, "conventions": model.conventions}
    return lq_pgd_gsvp(blocks[k], blocks[1 - k], **how).w


def _sorted_weights(w: Array) -> list[float]:
    """The largest magnitudes, in descending order, relative to the first."""
    magnitudes = np.sort(np.abs(w))[::-1][:_WEIGHTS]
    return [float(v) for v in magnitudes / (magnitudes[0] or 1.0)]


def _heaviest(w: Array, names: Array) -> dict[str, list[Any]]:
    """Position, name and value of the largest weights, by position."""
    at = np.sort(np.argsort(-np.abs(w), kind="stable")[:_WEIGHTS])
    return {"at": at.tolist(), "name": names[at].tolist(), "value": w[at].tolist()}


def _embedding(parts: PaperSplit, support: Array) -> Row:
    """Training and validation samples by two principal components, as drawn and corrected.

    As drawn by the authors, training rows in their own units and validation rows standardised
    are put together and standardised once more. Corrected, both are standardised by the training
    rows, whose components are taken.
    """
    (X, y), (X_other, y_other) = parts.train, parts.validation
    X, X_other = X[:, support].astype(np.float64), X_other[:, support].astype(np.float64)
    scaler = StandardScaler().fit(X)
    Z, Z_other = scaler.transform(X), scaler.transform(X_other)
    mixed = StandardScaler().fit_transform(np.vstack([X, Z_other]))
    shown = {"drawn": (mixed, mixed), "corrected": (Z, np.vstack([Z, Z_other]))}
    result: Row = {"y": [*y.tolist(), *y_other.tolist()], "n_train": len(y), "size": X.shape[1]}
    for name, (fitted, rows) in shown.items():
        points = np.zeros((len(rows), 2))
        k = min(2, X.shape[1])
        points[:, :k] = PCA(k, svd_solver="full").fit(fitted).transform(rows)
        result[name] = points.round(4).tolist()
    return result


# ------------------------------------------------------------------------------- the pieces


@dataclass(frozen=True)
class Plan:
    """How much to run; by default all of it, as for the breast cancer data.

    Attributes
    ----------
    n_starts, n_splits, n_orders : int
        Random starts, random splits, and orders of the training rows.
    n_claims, n_searches : int
        Random splits, beside the published one, of claims about other methods and of the search.
    searched : tuple of str
        The methods whose deltas and step are searched.
    nodes : int
        How many of the 20 nodes of the search's grid are tried.
    max_iter : int
        Cap on the iterations of the paper's method.
    qs, eps : tuple of float
        The grid of the study of q.
    """

    n_starts: int = 20
    n_splits: int = 20
    n_orders: int = 10
    n_claims: int = 5
    n_searches: int = 5
    searched: tuple[str, ...] = ("l1", "q=1", "q=0.1")
    nodes: int = 20
    max_iter: int = 10_000
    qs: tuple[float, ...] = QS
    eps: tuple[float, ...] = EPS


PLANS = {
    "breast": Plan(),
    # a fit takes the better part of a minute, and the authors' grid is known of l1 alone
    "ovarian": Plan(n_starts=10, n_splits=10, n_orders=2, n_searches=0, searched=("l1",)),
}
Piece = tuple[str, Any, dict[str, Any]]  # name, function, arguments


def pieces(study: Study, plan: Plan) -> list[Piece]:
    """All pieces of a study's reproduction, those that matter most first."""
    methods, cap = list(study.methods), {"max_iter": plan.max_iter}
    every, seeds = {"methods": methods, **cap}, [PUBLISHED, *range(plan.n_claims)]
    given = {"nodes": plan.nodes, **cap}
    claims: list[Piece] = [("claim/filters", filters, {"size": 6, "seeds": [PUBLISHED, 0, 1]})]
    if study.key == "breast":
        more = {"sizes": [18, 7], "seeds": [PUBLISHED, *range(4 * plan.n_claims)]}
        shares = {"shares": [1.0, 0.3, 0.1], **every}
        claims = [("claim/elimination", elimination, more)]
        claims += [(f"claim/imbalance/{k}", imbalance, {"seed": k, **shares}) for k in seeds]
    return [
        *((f"row/{m}/{s}", row, {"method": m, "source": s, **cap})
          for s in ("code", "paper") for m in methods),
        ("own", own, {}),
        ("rounding/two threads", rounding, {"threads": 2, **every}),
        ("rounding/products of matrices", rounding, {"together": True, **every}),
        *((f"rounding/rows in order {k + 1}", rounding, {"together": True, "order": k, **every})
          for k in range(plan.n_orders)),
        *((f"sweep/{eps:.4g}", sweep, {"qs": list(plan.qs), "eps": eps, **cap})
          for eps in plan.eps),
        *((f"splits/{k}", split, {"seed": k, **every}) for k in range(plan.n_splits)),
        *([("starts", starts, {"seeds": list(range(plan.n_starts)), **every})]
          if plan.n_starts else []),
        *claims,
        *((f"search/{m}/{k}", search, {"method": m, "seed": k, **given})
          for k in (PUBLISHED, *range(plan.n_searches)) for m in plan.searched),
    ]  # fmt: skip


def run(
    study: Study, data: Dataset, plan: Plan, cache: Path | None, *, n_jobs: int | None = None,
    progress: Progress | None = None,
) -> tuple[Results, int]:  # fmt: skip
    """Results of all pieces by name, and how many were computed; the others were in the cache."""
    work, kept = pieces(study, plan), Cache(cache)
    base = digest(_FORMAT, study.key, data.X, data.y)
    keys = {name: digest(base, call.__name__, arguments) for name, call, arguments in work}
    missing = [piece for piece in work if kept.get(keys[piece[0]]) is None]
    calls = [(data, study.key, call, arguments) for _, call, arguments in missing]
    values = run_pieces(_piece, calls, n_jobs=n_jobs, progress=progress, stage=study.title)
    for value, (name, _, _) in zip(values, missing):
        kept.add(keys[name], value)
    return {name: kept.get(key) for name, key in keys.items()}, len(missing)


def _piece(data: Dataset, study: str, call: Any, arguments: dict[str, Any]) -> Any:
    return call(data, study, **arguments)
