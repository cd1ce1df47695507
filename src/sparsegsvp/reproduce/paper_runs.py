"""The paper's method, run: one function per experiment, plain values out."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedShuffleSplit

from ..datasets import Dataset
from ..estimators.pgd import PGDGSVPSVM
from .protocol import (
    Parts,
    batch_normalised_predict,
    classification_report,
    confusion,
    nearest_plane_predict,
    paper_split,
)
from .published import STUDIES
from .store import Result

Array = NDArray[Any]

# Enough of a curve to draw it: points of a history, heaviest weights of a plane.
_HISTORY_POINTS = 240
_SORTED_WEIGHTS = 400
_TOP = 10


def fit(X: Array, y: Array, **settings: Any) -> PGDGSVPSVM:
    """Fit the paper's method; a run that reaches the cap is counted, not warned about."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return PGDGSVPSVM(**settings).fit(X, y)


def settings_of(study: str, method: str, source: str, max_iter: int) -> dict[str, Any]:
    """Return the parameters of a method as the authors ran it or as the paper prints it."""
    entry = STUDIES[study].method(method)
    run = source == "code"
    return {
        "q": entry.q,
        "delta": entry.delta_run if run else entry.delta_printed,
        "step_size": entry.step_run if run else entry.step_printed,
        "eps": entry.eps,
        "conventions": source,
        "max_iter": max_iter,
    }


def published_row(data: Dataset, study: str, method: str, source: str, max_iter: int) -> Result:
    """One row of the paper's tables: the fit, and its scores under every decision rule.

    Parameters
    ----------
    data : Dataset
    study, method : str
        Keys of `sparsegsvp.reproduce.published`.
    source : {"code", "paper"}
        As the authors ran it, or as the paper prints it.
    max_iter : int

    Returns
    -------
    dict
        ``reports[part][rule][weights]`` with part "validation" or "test", rule "batch" or
        "distance", weights "selected" (cut at the elbow) or "all".
    """
    parts = paper_split(data.X, data.y, STUDIES[study].second_split)
    settings = settings_of(study, method, source, max_iter)
    model = fit(*parts.train, **settings)
    cut = np.zeros_like(model.weights_)
    for k, kept in enumerate(model.features_):
        cut[k, kept] = model.weights_[k, kept]
    rules = {"batch": batch_normalised_predict, "distance": nearest_plane_predict}
    planes = {"selected": cut, "all": model.weights_}
    reports: Result = {}
    alone = {}
    for name in ("validation", "test"):
        X, y = getattr(parts, name)
        Z = (X - model.mean_) / model.scale_
        reports[name] = {
            rule: {
                kind: classification_report(confusion(y, decide(Z, weights, model.biases_)))
                for kind, weights in planes.items()
            }
            for rule, decide in rules.items()
        }
        # The published rule asked about one sample at a time.
        alone[name] = int(
            sum(batch_normalised_predict(row[None], cut, model.biases_)[0] for row in Z)
        )
    return {
        "elbows": model.elbows_.tolist(),
        "features": [kept.tolist() for kept in model.features_],
        "counts": feature_counts(model.features_),
        "reports": reports,
        "class_1_when_alone": alone,
        "converged": model.converged_.tolist(),
        "iterations": [len(history["relative_error"]) for history in model.history_],
        "history": [thin_history(history) for history in model.history_],
        "sorted": [sorted_weights(w) for w in model.weights_],
        "weights": [heaviest(w, data.feature_names) for w in model.weights_],
        "top": [
            [[str(data.feature_names[f]), float(model.weights_[k, f])] for f in kept[:_TOP]]
            for k, kept in enumerate(model.features_)
        ],
        "pca": project(parts, model.support_),
    }


def sweep_point(
    data: Dataset,
    study: str,
    q: float,
    eps: float,
    delta: tuple[float, float],
    step_size: float,
    max_iter: int,
) -> Result:
    """The features selected at one (q, eps) of the paper's section 5.4."""
    parts = paper_split(data.X, data.y, STUDIES[study].second_split)
    model = fit(
        *parts.train,
        q=q,
        eps=eps,
        delta=tuple(delta),
        step_size=step_size,
        conventions="code",
        max_iter=max_iter,
    )
    return {
        "q": q,
        "eps": eps,
        "elbows": model.elbows_.tolist(),
        "panel": np.flatnonzero(model.support_).tolist(),
        "converged": model.converged_.tolist(),
        "sorted": [sorted_weights(w) for w in model.weights_],
    }


def start_run(data: Dataset, study: str, method: str, seed: int, max_iter: int) -> Result:
    """The published split and settings from another start; the held-out 30% scored."""
    parts = paper_split(data.X, data.y, STUDIES[study].second_split)
    settings = settings_of(study, method, "code", max_iter)
    return _outcome(fit(*parts.train, **settings, random_state=seed), *held_out(parts))


def row_order_run(data: Dataset, study: str, method: str, seed: int, max_iter: int) -> Result:
    """The published split, settings and start with the training rows in another order.

    Mathematically nothing changes; sums are rounded differently.
    """
    parts = paper_split(data.X, data.y, STUDIES[study].second_split)
    settings = settings_of(study, method, "code", max_iter)
    X, y = parts.train
    order = np.random.RandomState(seed).permutation(len(y))
    return _outcome(fit(X[order], y[order], **settings), *held_out(parts))


def split_run(data: Dataset, study: str, method: str, seed: int, max_iter: int) -> Result:
    """The published settings on another random, stratified 70/30 split."""
    train, test = random_split(data, seed)
    settings = settings_of(study, method, "code", max_iter)
    model = fit(data.X[train], data.y[train], **settings)
    return _outcome(model, data.X[test], data.y[test])


def _outcome(model: PGDGSVPSVM, X: Array, y: Array) -> Result:
    return {
        "panel": np.flatnonzero(model.support_).tolist(),
        "balanced_accuracy": float(balanced_accuracy_score(y, model.predict(X))),
        "capped": not bool(model.converged_.all()),
    }


# --- shared with the runs of this package's method ------------------------------------------


def held_out(parts: Parts) -> tuple[Array, Array]:
    """Validation and test part together."""
    X = np.concatenate([parts.validation[0], parts.test[0]])
    return X, np.concatenate([parts.validation[1], parts.test[1]])


def random_split(data: Dataset, seed: int) -> tuple[Array, Array]:
    """Row numbers of a random, stratified 70/30 split."""
    splitter = StratifiedShuffleSplit(n_splits=1, test_size=0.3, random_state=seed)
    return next(splitter.split(data.X, data.y))


def feature_counts(features: list[Array]) -> list[int]:
    """Features only the first plane has, only the second, and both."""
    first, second = (set(np.asarray(kept).tolist()) for kept in features)
    return [len(first - second), len(second - first), len(first & second)]


def thin_history(history: dict[str, Array]) -> dict[str, list[Any]]:
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


def sorted_weights(w: Array) -> list[float]:
    """The largest magnitudes, in descending order, relative to the first."""
    magnitudes = np.sort(np.abs(w))[::-1][:_SORTED_WEIGHTS]
    return (magnitudes / magnitudes[0] if magnitudes[0] else magnitudes).tolist()


def heaviest(w: Array, names: Array) -> dict[str, list[Any]]:
    """Position, name and value of the largest weights, by position."""
    at = np.sort(np.argsort(-np.abs(w), kind="stable")[:_SORTED_WEIGHTS])
    return {"at": at.tolist(), "name": names[at].tolist(), "value": w[at].tolist()}


def project(parts: Parts, support: Array | None) -> Result:
    """Test samples in the plane of the first two principal components of the training part.

    Only test samples are drawn: training samples of a selected panel look separated even in
    pure noise.
    """
    (X, _), (X_test, y_test) = parts.train, parts.test
    columns = np.arange(X.shape[1]) if support is None else np.flatnonzero(support)
    X, X_test = X[:, columns].astype(np.float64), X_test[:, columns].astype(np.float64)
    mean, scale = X.mean(axis=0), X.std(axis=0)
    scale[scale == 0.0] = 1.0
    n_components = min(2, columns.size)
    pca = PCA(n_components, svd_solver="full").fit((X - mean) / scale)
    points = np.zeros((len(X_test), 2))
    points[:, :n_components] = pca.transform((X_test - mean) / scale)
    return {"points": points.round(6).tolist(), "y": y_test.tolist(), "n_features": columns.size}
