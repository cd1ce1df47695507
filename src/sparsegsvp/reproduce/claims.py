"""Experiments on what the paper says beside its tables: its search, other methods, imbalance."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_selection import RFE, chi2, f_classif, mutual_info_classif
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, recall_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC

from ..datasets import Dataset
from ..estimators import GSVPSVM, GSVPSVMCV, PGDGSVPSVM
from ..estimators.pgd import fit_together
from .protocol import (
    STUDIES,
    Parts,
    batch_normalised_predict,
    nearest_plane_predict,
    paper_split,
    settings,
)
from .runs import cut_weights, fit_quietly

Array = NDArray[Any]
Result = dict[str, Any]

PUBLISHED = 42  # the seed of the published split
# Delta over [1e-4, 1] and [2e-4, 1], the step over 10^-0.5 ... 10^-3.5 (section 5): the ends and
# steps of the grid are the paper's, the number of deltas is not printed.
DELTAS = tuple(np.geomspace(low, 1.0, 6).tolist() for low in (1e-4, 2e-4))
STEPS = tuple(10.0 ** -(0.5 + 0.5 * k) for k in range(7))


def _split(data: Dataset, study: str, seed: int) -> Parts:
    return paper_split(data.X, data.y, STUDIES[study].second_split, random_state=seed)


# ------------------------------------------------------------------------------ the search


def searched(data: Dataset, study: str, method: str, seed: int, max_iter: int) -> Result:
    """Delta and step by their score on the validation part, as the text describes.

    Both planes of every delta are fitted with every step, and all pairs of deltas scored as the
    authors did, with the selected features and by the batch. Of equal scores the one with the
    fewest features is taken, then the first. The test part is scored as published (all weights,
    by the batch) and as printed (the selected features, equation 21).
    """
    parts = _split(data, study, seed)
    common = settings(study, method, "code", max_iter)
    models = [m for step in STEPS for m in _fitted({**common, "step_size": step}, parts)]
    (X, y), (X_test, y_test) = parts.validation, parts.test
    Z, Z_test = ((part - models[0].mean_) / models[0].scale_ for part in (X, X_test))
    tried = []
    for i, j in product(range(len(models)), repeat=2):
        if models[i].step_size == models[j].step_size:
            weights, _, biases = _planes(models[i], models[j])
            score = _score(y, batch_normalised_predict(Z, weights, biases))
            tried.append((-score, int(np.count_nonzero(weights.any(axis=0))), i, j))
    value, size, i, j = min(tried)
    weights, whole, biases = _planes(models[i], models[j])
    return {
        "delta": [float(np.ravel(m.delta)[k]) for k, m in enumerate((models[i], models[j]))],
        "step_size": models[i].step_size,
        "features": size,
        "tried": len(tried),
        "tied": sum(found[0] == value for found in tried),
        "validation": -value,
        "test": _score(y_test, batch_normalised_predict(Z_test, whole, biases)),
        "test_printed": _score(y_test, nearest_plane_predict(Z_test, weights, biases)),
    }


def _fitted(common: dict[str, Any], parts: Parts) -> list[PGDGSVPSVM]:
    """Models of every delta, fitted; without those whose iterate vanished, if any did."""
    models = [PGDGSVPSVM(**{**common, "delta": pair}) for pair in zip(*DELTAS)]
    try:
        fit_together(models, *parts.train)
        return models
    except ValueError:
        alive = []
        for model in models:
            with suppress(ValueError):
                fit_together([model], *parts.train)
                alive.append(model)
        return alive


def _planes(one: PGDGSVPSVM, two: PGDGSVPSVM) -> tuple[Array, Array, Array]:
    """First plane of one model and second of another: weights up to the elbow, all, biases."""
    cut = np.array([cut_weights(one)[0], cut_weights(two)[1]])
    whole = np.array([one.weights_[0], two.weights_[1]])
    return cut, whole, np.array([one.biases_[0], two.biases_[1]])


def searched_own(data: Dataset, study: str, seed: int) -> Result:
    """`GSVPSVMCV` on the same training part: its own estimate, and its score on the test part."""
    parts = _split(data, study, seed)
    model = fit_quietly(GSVPSVMCV(), *parts.train)
    X, y = parts.test
    return {
        "features": int(model.support_.sum()),
        "validation": float(model.cv_results_["mean_balanced_accuracy"][model.best_index_]),
        "test": _score(y, model.predict(X)),
        "tried": len(model.cv_results_["mean_test_score"]),
    }


def _score(y: Array, predicted: Array) -> float:
    return float(balanced_accuracy_score(y, predicted))


# --------------------------------------------------------------------------- other methods


def filters(data: Dataset, study: str, top: int, size: int, seeds: Sequence[int]) -> Result:
    """The features that three filters rank first, and what a classifier makes of a few of them.

    The filters are chi-squared, the F statistic and mutual information on the training part;
    the classifier is a logistic regression on their first ``size`` features, without tuning.
    """
    ranked: dict[str, list[int]] = {}
    scores: dict[str, list[float]] = {}
    for seed in seeds:
        parts = _split(data, study, seed)
        (X, y), (X_test, y_test) = parts.train, parts.test
        scaler = MinMaxScaler(clip=True).fit(X)  # chi-squared asks for counts, or their like
        for name, values in (
            ("chi-squared", chi2(scaler.transform(X), y)[0]),
            ("F", f_classif(X, y)[0]),
            ("mutual information", mutual_info_classif(X, y, random_state=0)),
        ):
            order = np.argsort(-np.nan_to_num(values, nan=-np.inf), kind="stable")
            if seed == seeds[0]:
                ranked[name] = order[:top].tolist()
            kept = order[:size]
            model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=5000))
            model.fit(X[:, kept], y)
            scores.setdefault(name, []).append(_score(y_test, model.predict(X_test[:, kept])))
    return {"top": ranked, "size": size, "scores": scores}


def elimination(data: Dataset, study: str, sizes: Sequence[int], seeds: Sequence[int]) -> Result:
    """Recursive elimination with a linear support vector machine, down to each size."""
    panels: dict[str, list[int]] = {}
    scores: dict[str, list[float]] = {}
    for seed in seeds:
        parts = _split(data, study, seed)
        (X, y), (X_test, y_test) = parts.train, parts.test
        for size in sizes:
            model = make_pipeline(
                StandardScaler(), RFE(SVC(kernel="linear"), n_features_to_select=size)
            )
            model.fit(X, y)
            if seed == seeds[0]:
                panels[str(size)] = np.flatnonzero(model[-1].support_).tolist()
            accuracy = float(np.mean(model.predict(X_test) == y_test))
            scores.setdefault(str(size), []).append(accuracy)
    return {"panels": panels, "scores": scores}


def imbalance(
    data: Dataset,
    study: str,
    methods: Sequence[str],
    shares: Sequence[float],
    seed: int,
    **cap: int,
) -> Result:
    """Recall of both classes when only a share of class 1 is left in the training part.

    The paper's methods run with their published settings and the printed rule; the held-out
    samples, validation and test together, keep their classes.
    """
    parts = _split(data, study, seed)
    X, y = parts.train
    held = [np.concatenate(pair) for pair in zip(parts.validation, parts.test)]
    rare = np.flatnonzero(y == 1)
    found: Result = {}
    for share in shares:
        dropped = np.random.RandomState(seed).permutation(rare)[round(share * rare.size) :]
        keep = np.setdiff1d(np.arange(y.size), dropped)
        models: dict[str, Any] = {
            method: PGDGSVPSVM(**settings(study, method, "code", **cap)) for method in methods
        }
        fit_together(list(models.values()), X[keep], y[keep])
        models["GSVPSVM"] = fit_quietly(GSVPSVM(), X[keep], y[keep])
        found[f"{share:g}"] = {
            name: recall_score(held[1], model.predict(held[0]), average=None).tolist()
            for name, model in models.items()
        }
    return found
