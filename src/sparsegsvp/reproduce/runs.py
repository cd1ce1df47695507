"""The experiments, each from a data set and plain arguments to plain values."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedShuffleSplit

from ..datasets import Dataset
from ..estimators import GSVPSVM, GSVPSVMCV, PGDGSVPSVM
from ..estimators.base import POOL, TAU
from ..estimators.pgd import fit_together
from ..solvers import GSVPResult, sparse_gsvp
from .protocol import (
    STUDIES,
    Array,
    Finding,
    PaperSplit,
    batch_normalised_predict,
    classification_report,
    confusion_counts,
    nearest_plane_predict,
    paper_split,
    settings,
    sweep_name,
)

PUBLISHED = 42  # the seed of the published split
# Enough of a curve to draw it: points of a history, heaviest weights of a plane.
_HISTORY_POINTS = 240
_SORTED_WEIGHTS = 400
_TOP = 10
# The panel of a random start is refitted without a penalty, as GSVPSVM refits its own: a
# penalty this small removes nothing.
_NO_PENALTY = 1e-9

# ---------------------------------------------------------------------- the paper's method


def published_row(data: Dataset, study: str, method: str, source: str, max_iter: int) -> Finding:
    """One row of the paper's tables: the fit, and its scores under every decision rule.

    ``source`` is "code", as the authors ran it, or "paper", as the paper prints it. The result
    has ``reports[part][rule][weights]`` with part "validation" or "test", rule "batch" or
    "distance", weights "selected" (cut at the elbow) or "all".
    """
    parts = parts_of(data, study)
    model = fit_quietly(PGDGSVPSVM(**settings(study, method, source, max_iter)), *parts.train)
    cut = cut_weights(model)
    rules = {"batch": batch_normalised_predict, "distance": nearest_plane_predict}
    planes = {"selected": cut, "all": model.weights_}
    reports: Finding = {}
    alone = {}
    for name in ("validation", "test"):
        X, y = getattr(parts, name)
        Z = standardised(model, X)
        reports[name] = {
            rule: {
                kind: classification_report(confusion_counts(y, decide(Z, weights, model.biases_)))
                for kind, weights in planes.items()
            }
            for rule, decide in rules.items()
        }
        # The published rule asked about one sample at a time.
        alone[name] = int(
            sum(batch_normalised_predict(row[None], cut, model.biases_)[0] for row in Z)
        )
    return {
        **_elbows(model),
        "reports": reports,
        "class_1_when_alone": alone,
        "iterations": [len(history["relative_error"]) for history in model.history_],
        "history": [_thinned(history) for history in model.history_],
        "weights": [_heaviest(w, data.feature_names) for w in model.weights_],
        "top": _top(model.weights_, model.features_, data.feature_names),
        "pca": _project(parts, model.support_),
    }


def sweep_points(
    data: Dataset,
    study: str,
    qs: Sequence[float],
    eps: float,
    delta: Sequence[float],
    **how: Any,
) -> dict[str, Finding]:
    """The features selected at each q with one eps, of the paper's section 5.4.

    Validation is scored as the authors did, with the selected features and by the batch.
    """
    parts = parts_of(data, study)
    X, y = parts.validation
    both = (delta[0], delta[1])
    models = {q: PGDGSVPSVM(q=q, eps=eps, delta=both, conventions="code", **how) for q in qs}
    fit_together(list(models.values()), *parts.train)
    found = {}
    for q, model in models.items():
        Z = standardised(model, X)
        predicted = batch_normalised_predict(Z, cut_weights(model), model.biases_)
        found[sweep_name("paper", q, eps)] = {
            **_elbows(model),
            "q": q,
            "eps": eps,
            "panel": np.flatnonzero(model.support_).tolist(),
            "validation": confusion_counts(y, predicted),
        }
    return found


def _elbows(model: PGDGSVPSVM) -> Finding:
    """What the elbows keep of both planes, and the weights that they are of."""
    return {
        "elbows": model.elbows_.tolist(),
        "features": [kept.tolist() for kept in model.features_],
        "counts": _feature_counts(model.features_),
        "converged": model.converged_.tolist(),
        "sorted": [_sorted_weights(w) for w in model.weights_],
    }


def standardised(model: PGDGSVPSVM, X: Array) -> Array:
    """Samples in the units of a model's weights."""
    return (X - model.mean_) / model.scale_


def cut_weights(model: PGDGSVPSVM) -> Array:
    """The weights of both planes up to their elbows."""
    weights = np.zeros_like(model.weights_)
    for k, kept in enumerate(model.features_):
        weights[k, kept] = model.weights_[k, kept]
    return weights


# ------------------------------------------------------------------- this package's method


def tuned(data: Dataset, study: str, rule: str) -> Finding:
    """`GSVPSVMCV` with a rule, otherwise its defaults, on the published split."""
    parts = parts_of(data, study)
    X, y = parts.train
    model = fit_quietly(GSVPSVMCV(rule=rule), X, y)
    weights = model.coef_ * X.std(axis=0, dtype=np.float64)
    order = np.argsort(-np.abs(weights), axis=1, kind="stable")
    kept = [row[np.abs(weights[k, row]) > 0.0] for k, row in enumerate(order)]
    reports = {}
    for name in ("validation", "test"):
        X_part, y_part = getattr(parts, name)
        reports[name] = classification_report(confusion_counts(y_part, model.predict(X_part)))
    return {
        "panel": np.flatnonzero(model.support_).tolist(),
        "names": data.feature_names[model.support_].tolist(),
        "counts": _feature_counts(kept),
        "reports": reports,
        "chosen": {
            "delta": np.atleast_1d(model.delta_).astype(float).tolist(),
            "tau": float(model.tau_),
            "pool": float(model.pool_),
            "q": float(model.q_),
            "decision": str(model.decision_),
        },
        "kkt_residual": float(np.max(model.kkt_residual_)),
        "weights": [_heaviest(w, data.feature_names) for w in weights],
        "top": _top(weights, kept, data.feature_names),
        "pca": _project(parts, model.support_),
        "pca_all": _project(parts, None),
    }


def own_sweep_point(data: Dataset, study: str, q: float, eps: float) -> Finding:
    """`GSVPSVM` at one (q, eps), everything else at its defaults."""
    X, y = parts_of(data, study).train
    model = fit_quietly(GSVPSVM(q=q, eps=eps, refit=False), X, y)
    weights = model.coef_ * X.std(axis=0, dtype=np.float64)
    return {
        "q": q,
        "eps": eps,
        "panel": np.flatnonzero(model.support_).tolist(),
        "counts": [int(np.count_nonzero(w)) for w in weights],
        "sorted": [_sorted_weights(w)[:60] for w in weights],
    }


def own_convergence(data: Dataset, study: str) -> Finding:
    """The course of the objective on the published training part, for both planes."""
    planes = [
        {
            "objective": np.asarray(result.history, dtype=float).tolist(),
            "kkt_residual": float(result.kkt_residual),
            "delta_max": float(result.delta_max),
            "iterations": int(result.n_iter),
        }
        for result in _own_planes(data, study)
    ]
    return {"planes": planes}


def _own_planes(data: Dataset, study: str, start: Array | None = None) -> list[GSVPResult]:
    """Both planes of `GSVPSVM()` on the published training part, by the function behind it."""
    X, y = parts_of(data, study).train
    Z = _scaled_as(X, X)
    model = GSVPSVM()
    names = ("delta", "q", "eps", "tol", "max_iter")
    defaults = {name: getattr(model, name) for name in names} | {"tau": TAU, "pool": POOL}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return [sparse_gsvp(Z[y == k], Z[y != k], **defaults, w0=start) for k in (0, 1)]


# ------------------------------------------------------------------------- the sensitivity

# Settings of this package's methods; the rest is at its defaults. The study is about panels, so
# GSVPSVMCV follows its rule for small ones; one tau instead of four takes a quarter of the time.
OWN_METHODS: dict[str, dict[str, Any]] = {"GSVPSVM": {}, "GSVPSVMCV": {"rule": "1se", "tau": [1.0]}}


def paper_runs(
    data: Dataset, study: str, change: str, methods: Sequence[str], seeds: Sequence[int], **cap: int
) -> dict[str, Finding]:
    """Panels of the paper's methods after a change, and their scores on what they did not see.

    See `changed_samples` for the changes. All runs share the samples of the first seed, so
    several seeds in one call are for "starts" alone.
    """
    X, y, X_test, y_test = changed_samples(data, study, change, seeds[0])
    models = {
        (method, seed): PGDGSVPSVM(
            **settings(study, method, "code", **cap),
            random_state=seed if change == "starts" else 42,
        )
        for method in methods
        for seed in seeds
    }
    fit_together(list(models.values()), X, y)
    return {
        f"{change}/{method}/{seed}": {
            **_judged(model, X_test, y_test),
            "capped": not model.converged_.all(),
        }
        for (method, seed), model in models.items()
    }


def own_run(
    data: Dataset, study: str, method: str, change: str, seed: int, **parameters: Any
) -> Finding:
    """The same of one of this package's methods."""
    if method == "GSVPSVM" and change == "starts":
        return _own_start(data, study, seed)
    model = {"GSVPSVM": GSVPSVM, "GSVPSVMCV": GSVPSVMCV}[method](**parameters)
    if change == "starts":
        model.set_params(random_state=seed)
    return _outcome(model, *changed_samples(data, study, change, seed))


def changed_samples(
    data: Dataset, study: str, change: str, seed: int
) -> tuple[Array, Array, Array, Array]:
    """Training samples and their classes, and those held out, after a change.

    The change is "starts" (another start; of `GSVPSVMCV` other folds, the only thing in it that
    is drawn: the published samples), "rows" (the training rows in another order, which only
    rounds sums differently) or "splits" (another random, stratified 70/30 split instead of the
    published one).
    """
    if change == "splits":
        splitter = StratifiedShuffleSplit(n_splits=1, test_size=0.3, random_state=seed)
        train, test = next(splitter.split(data.X, data.y))
        return data.X[train], data.y[train], data.X[test], data.y[test]
    parts = parts_of(data, study)
    X, y = parts.train
    if change == "rows":
        order = np.random.RandomState(seed).permutation(len(y))
        X, y = X[order], y[order]
    return X, y, *held_out(parts)


def _own_start(data: Dataset, study: str, seed: int) -> Finding:
    """Both planes of `GSVPSVM` from a random start instead of its own."""
    start = np.random.RandomState(seed).uniform(size=(data.X.shape[1],))
    planes = _own_planes(data, study, start)
    panel = np.flatnonzero(np.any([plane.w != 0.0 for plane in planes], axis=0))
    X, y, X_test, y_test = changed_samples(data, study, "starts", seed)
    found = _outcome(GSVPSVM(delta=_NO_PENALTY), X[:, panel], y, X_test[:, panel], y_test)
    capped = not all(plane.converged for plane in planes)
    return {**found, "panel": panel.tolist(), "capped": capped}


# ----------------------------------------------------------------------------- fits, splits


def fit_quietly(model: Any, X: Array, y: Array) -> Any:
    """Fit a model; one that reaches its cap says so in its attributes, not by a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


def _outcome(model: Any, X: Array, y: Array, X_test: Array, y_test: Array) -> Finding:
    """Panel and score of one fit; one that reaches its cap is counted, not warned about."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        model.fit(X, y)
    capped = any(issubclass(w.category, ConvergenceWarning) for w in caught)
    return {**_judged(model, X_test, y_test), "capped": capped}


def _judged(model: Any, X_test: Array, y_test: Array) -> Finding:
    return {
        "panel": np.flatnonzero(model.support_).tolist(),
        "balanced_accuracy": float(balanced_accuracy_score(y_test, model.predict(X_test))),
    }


def _scaled_as(train: Array, X: Array) -> Array:
    """Samples less the mean of the training samples, by their standard deviation."""
    mean, scale = train.mean(axis=0, dtype=np.float64), train.std(axis=0, dtype=np.float64)
    scale[scale == 0.0] = 1.0
    return (X - mean) / scale


def parts_of(data: Dataset, study: str, seed: int = PUBLISHED) -> PaperSplit:
    """The parts of a data set, split as the paper does; its own split has the default seed."""
    return paper_split(data.X, data.y, STUDIES[study].second_split, random_state=seed)


def held_out(parts: PaperSplit) -> tuple[Array, Array]:
    """Validation and test part together."""
    X = np.concatenate([parts.validation[0], parts.test[0]])
    return X, np.concatenate([parts.validation[1], parts.test[1]])


# ---------------------------------------------------------------------- what is kept of a fit


def _feature_counts(features: list[Array]) -> list[int]:
    """Features only the first plane has, only the second, and both."""
    first, second = (set(np.asarray(kept).tolist()) for kept in features)
    return [len(first - second), len(second - first), len(first & second)]


def _thinned(history: dict[str, Array]) -> dict[str, list[Any]]:
    """A history at logarithmically spaced iterations, first and last included."""
    last = len(history["objective"]) - 1
    at = np.unique(np.geomspace(1, max(last, 1), _HISTORY_POINTS).astype(int))
    at = at[at <= last]
    return {
        "iteration": at.tolist(),
        "objective": history["objective"][at].tolist(),
        "fidelity": history["fidelity"][at].tolist(),
        "penalty": history["penalty"][at].tolist(),
        "relative_error": history["relative_error"][at - 1].tolist(),
    }


def _sorted_weights(w: Array) -> list[float]:
    """The largest magnitudes, in descending order, relative to the first."""
    magnitudes = np.sort(np.abs(w))[::-1][:_SORTED_WEIGHTS]
    return (magnitudes / magnitudes[0] if magnitudes[0] else magnitudes).tolist()


def _heaviest(w: Array, names: Array) -> dict[str, list[Any]]:
    """Position, name and value of the largest weights, by position."""
    at = np.sort(np.argsort(-np.abs(w), kind="stable")[:_SORTED_WEIGHTS])
    return {"at": at.tolist(), "name": names[at].tolist(), "value": w[at].tolist()}


def _top(weights: Array, kept: list[Array], names: Array) -> list[list[list[Any]]]:
    """Name and value of the first few features kept in each plane."""
    return [[[str(names[f]), float(w[f])] for f in rows[:_TOP]] for w, rows in zip(weights, kept)]


def _project(parts: PaperSplit, support: Array | None) -> Finding:
    """Test samples in the plane of the first two principal components of the training part.

    Only test samples are drawn: training samples of a selected panel look separated even in
    pure noise.
    """
    (X, _), (X_test, y_test) = parts.train, parts.test
    columns = np.arange(X.shape[1]) if support is None else np.flatnonzero(support)
    X, X_test = X[:, columns].astype(np.float64), X_test[:, columns].astype(np.float64)
    n_components = min(2, columns.size)
    pca = PCA(n_components, svd_solver="full").fit(_scaled_as(X, X))
    points = np.zeros((len(X_test), 2))
    points[:, :n_components] = pca.transform(_scaled_as(X, X_test))
    return {"points": points.round(6).tolist(), "y": y_test.tolist(), "n_features": columns.size}
