"""This package's method in the same experiments."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import balanced_accuracy_score

from ..datasets import Dataset
from ..estimators import GSVPSVM, GSVPSVMCV
from ..solvers import sparse_gsvp
from .paper_runs import (
    _SORTED_WEIGHTS,
    _TOP,
    Result,
    feature_counts,
    heaviest,
    held_out,
    project,
    random_split,
    sorted_weights,
)
from .protocol import classification_report, confusion, paper_split
from .published import STUDIES

Array = NDArray[Any]

# The panel of a random start is refitted without a penalty, as GSVPSVM refits its own: a
# penalty this small removes nothing.
_NO_PENALTY = 1e-9


def _fit(model: Any, X: Array, y: Array) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


def tuned(data: Dataset, study: str, rule: str) -> Result:
    """`GSVPSVMCV` with a rule, otherwise its defaults, on the published split."""
    parts = paper_split(data.X, data.y, STUDIES[study].second_split)
    X, y = parts.train
    model = _fit(GSVPSVMCV(rule=rule), X, y)
    weights = model.coef_ * X.std(axis=0, dtype=np.float64)
    order = np.argsort(-np.abs(weights), axis=1, kind="stable")
    kept = [row[np.abs(weights[k, row]) > 0.0] for k, row in enumerate(order)]
    reports = {}
    for name in ("validation", "test"):
        X_part, y_part = getattr(parts, name)
        reports[name] = classification_report(confusion(y_part, model.predict(X_part)))
    return {
        "panel": np.flatnonzero(model.support_).tolist(),
        "names": data.feature_names[model.support_].tolist(),
        "counts": feature_counts(kept),
        "reports": reports,
        "chosen": {
            "delta": np.atleast_1d(model.delta_).astype(float).tolist(),
            "tau": float(model.tau_),
            "pool": float(model.pool_),
            "q": float(model.q_),
            "decision": str(model.decision_),
        },
        "kkt_residual": float(np.max(model.kkt_residual_)),
        "weights": [heaviest(w, data.feature_names) for w in weights],
        "top": [
            [[str(data.feature_names[f]), float(weights[k, f])] for f in row[:_TOP]]
            for k, row in enumerate(kept)
        ],
        "pca": project(parts, model.support_),
        "pca_all": project(parts, None),
    }


def sweep_point(data: Dataset, study: str, q: float, eps: float) -> Result:
    """`GSVPSVM` at one (q, eps), everything else at its defaults."""
    parts = paper_split(data.X, data.y, STUDIES[study].second_split)
    X, y = parts.train
    model = _fit(GSVPSVM(q=q, eps=eps, refit=False), X, y)
    weights = model.coef_ * X.std(axis=0, dtype=np.float64)
    return {
        "q": q,
        "eps": eps,
        "panel": np.flatnonzero(model.support_).tolist(),
        "counts": [int(np.count_nonzero(w)) for w in weights],
        "sorted": [sorted_weights(w)[: min(_SORTED_WEIGHTS, 60)] for w in weights],
    }


def convergence(data: Dataset, study: str) -> Result:
    """The course of the objective on the published training part, for both planes."""
    blocks = _standardised_classes(data, study)
    planes = []
    for k in (0, 1):
        result = sparse_gsvp(blocks[k], blocks[1 - k], **_defaults())
        planes.append(
            {
                "objective": np.asarray(result.history, dtype=float).tolist(),
                "kkt_residual": float(result.kkt_residual),
                "delta_max": float(result.delta_max),
                "iterations": int(result.n_iter),
            }
        )
    return {"planes": planes}


def start_run(data: Dataset, study: str, seed: int) -> Result:
    """Both planes of `GSVPSVM` from a random start instead of its own."""
    blocks = _standardised_classes(data, study)
    start = np.random.RandomState(seed).uniform(size=data.X.shape[1])
    panel: set[int] = set()
    capped = False
    for k in (0, 1):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            result = sparse_gsvp(blocks[k], blocks[1 - k], **_defaults(), w0=start)
        panel |= set(np.flatnonzero(result.w).tolist())
        capped |= not bool(result.converged)
    columns = sorted(panel)
    parts = paper_split(data.X, data.y, STUDIES[study].second_split)
    X, y = held_out(parts)
    model = _fit(GSVPSVM(delta=_NO_PENALTY), parts.train[0][:, columns], parts.train[1])
    return {
        "panel": columns,
        "balanced_accuracy": float(balanced_accuracy_score(y, model.predict(X[:, columns]))),
        "capped": capped,
    }


def row_order_run(data: Dataset, study: str, seed: int) -> Result:
    """`GSVPSVM` with the training rows in another order."""
    parts = paper_split(data.X, data.y, STUDIES[study].second_split)
    X, y = parts.train
    order = np.random.RandomState(seed).permutation(len(y))
    return _outcome(GSVPSVM(), X[order], y[order], *held_out(parts))


def split_run(data: Dataset, study: str, seed: int) -> Result:
    """`GSVPSVM` on a random, stratified 70/30 split."""
    train, test = random_split(data, seed)
    return _outcome(GSVPSVM(), data.X[train], data.y[train], data.X[test], data.y[test])


def tuned_fold_run(data: Dataset, study: str, seed: int, **settings: Any) -> Result:
    """`GSVPSVMCV` with other folds: the only thing in it that is drawn at random."""
    parts = paper_split(data.X, data.y, STUDIES[study].second_split)
    return _outcome(GSVPSVMCV(random_state=seed, **settings), *parts.train, *held_out(parts))


def tuned_split_run(data: Dataset, study: str, seed: int, **settings: Any) -> Result:
    """`GSVPSVMCV` on a random, stratified 70/30 split."""
    train, test = random_split(data, seed)
    model = GSVPSVMCV(**settings)
    return _outcome(model, data.X[train], data.y[train], data.X[test], data.y[test])


def _outcome(model: Any, X: Array, y: Array, X_test: Array, y_test: Array) -> Result:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        model.fit(X, y)
    return {
        "panel": np.flatnonzero(model.support_).tolist(),
        "balanced_accuracy": float(balanced_accuracy_score(y_test, model.predict(X_test))),
        "capped": any(issubclass(w.category, ConvergenceWarning) for w in caught),
    }


def _standardised_classes(data: Dataset, study: str) -> list[Array]:
    X, y = paper_split(data.X, data.y, STUDIES[study].second_split).train
    mean, scale = X.mean(axis=0, dtype=np.float64), X.std(axis=0, dtype=np.float64)
    scale[scale == 0.0] = 1.0
    return [(X[y == k] - mean) / scale for k in (0, 1)]


def _defaults() -> dict[str, Any]:
    """The settings of `GSVPSVM()` for the function behind it."""
    model = GSVPSVM()
    names = ("delta", "q", "tau", "pool", "eps", "tol", "max_iter")
    return {name: getattr(model, name) for name in names}
