"""Selectors of exactly k features at equal terms: X is standardised, y holds codes from 0."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import f_classif
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC, l1_min_c

from sparsegsvp import subset_gsvp

OURS = "GSVPSVM"
# scikit-learn 1.8 has another name for it
_L1: Any = {"penalty": "l1"} if LogisticRegression().penalty == "l2" else {"l1_ratio": 1.0}

# method(X, y, sizes) -> the panel of each size
Method = Callable[[np.ndarray, np.ndarray, Sequence[int]], Mapping[int, np.ndarray]]


def nested(order: Callable[[np.ndarray, np.ndarray, int], np.ndarray]) -> Method:
    """A method whose panel of size k is the beginning of one order."""

    def panels(X: np.ndarray, y: np.ndarray, sizes: Sequence[int]) -> dict[int, np.ndarray]:
        ranked = order(X, y, max(sizes))
        return {k: ranked[:k] for k in sizes}

    return panels


def ours(X: np.ndarray, y: np.ndarray, most: int) -> np.ndarray:
    return subset_gsvp(X, y, most).order


def f_test(X: np.ndarray, y: np.ndarray, most: int) -> np.ndarray:
    return np.argsort(-np.nan_to_num(f_classif(X, y)[0]), kind="stable")


def mrmr(X: np.ndarray, y: np.ndarray, most: int, *, quotient: bool) -> np.ndarray:
    """Greedy: relevance against the mean |correlation| with the features chosen before.

    The F statistic divided by it, as mrmr-selection does, or, as a share of the largest F, less
    it.
    """
    relevance = np.nan_to_num(f_classif(X, y)[0], posinf=0.0)
    relevance /= relevance.max()
    redundancy, score = np.zeros(X.shape[1]), relevance.copy()
    chosen: list[int] = []
    while len(chosen) < most:
        score[chosen] = -np.inf
        chosen.append(int(score.argmax()))
        redundancy += np.maximum(np.abs(X.T @ X[:, chosen[-1]]) / len(X), 0.001)
        mean = redundancy / len(chosen)
        score = relevance / mean if quotient else relevance - mean
    return np.array(chosen)


def l1_path(solve: Callable[[np.ndarray, np.ndarray, float], np.ndarray]) -> Method:
    """l1 logistic regression, one class against the rest, weaker until the features suffice.

    The panel of size k has the largest coefficients where k or more are not zero for the first
    time.
    """

    def panels(X: np.ndarray, y: np.ndarray, sizes: Sequence[int]) -> dict[int, np.ndarray]:
        classes = np.unique(y)[-1:] if y.max() == 1 else np.unique(y)
        C, result = 1.05 * min(l1_min_c(X, y == k, loss="log") for k in classes), {}
        waiting = list(sizes)
        for _ in range(40):
            coef = np.array([solve(X, np.where(y == k, 1, -1), C) for k in classes])
            weight = np.linalg.norm(coef, axis=0)
            order = np.argsort(-weight, kind="stable")
            while waiting and np.count_nonzero(weight) >= waiting[0]:
                result[waiting[0]] = order[: waiting[0]]
                waiting.pop(0)
            if not waiting:
                break
            C *= 1.35
        return {**{k: order[:k] for k in waiting}, **result}

    return panels


def liblinear(X: np.ndarray, signs: np.ndarray, C: float) -> np.ndarray:
    model = LogisticRegression(
        C=C, solver="liblinear", class_weight="balanced", tol=1e-3, random_state=0, **_L1
    )
    return model.fit(X, signs).coef_[0]


def celer(X: np.ndarray, signs: np.ndarray, C: float) -> np.ndarray:
    from celer import LogisticRegression as Celer

    return np.ravel(Celer(C=C, fit_intercept=False, tol=1e-3).fit(X, signs).coef_)


def rfe(X: np.ndarray, y: np.ndarray, sizes: Sequence[int]) -> dict[int, np.ndarray]:
    """Recursive elimination by a linear support vector machine, a fifth at a time."""
    left, result = np.arange(X.shape[1]), {}
    for size in sorted(sizes, reverse=True):
        while len(left) > size:
            model = LinearSVC(
                class_weight="balanced", dual=len(left) > len(X), tol=1e-3, random_state=0
            )
            weight = np.linalg.norm(model.fit(X[:, left], y).coef_, axis=0)
            keep = max(size, int(0.8 * len(left)))
            left = left[np.argsort(-weight, kind="stable")[:keep]]
        result[size] = left
    return result


def forest(X: np.ndarray, y: np.ndarray, most: int) -> np.ndarray:
    model = RandomForestClassifier(200, class_weight="balanced", random_state=0).fit(X, y)
    return np.argsort(-model.feature_importances_, kind="stable")


def abess(X: np.ndarray, y: np.ndarray, sizes: Sequence[int]) -> dict[int, np.ndarray]:
    import abess.linear

    result = {}
    for size in sizes:
        if y.max() == 1:
            model = abess.linear.LogisticRegression(support_size=size)
        else:
            model = abess.linear.MultinomialRegression(support_size=size)
        targets = y if y.max() == 1 else np.eye(y.max() + 1)[y]
        coef = np.reshape(model.fit(X, targets).coef_, (X.shape[1], -1))
        weight = np.linalg.norm(coef, axis=1)
        result[size] = np.argsort(-weight, kind="stable")[: min(size, np.count_nonzero(weight))]
    return result


def random_order(X: np.ndarray, y: np.ndarray, most: int) -> np.ndarray:
    return np.random.default_rng(int(1e6 * np.abs(X).sum())).permutation(X.shape[1])


def methods() -> dict[str, Method]:
    """By name, those whose packages are installed."""
    known: dict[str, tuple[str | None, Method]] = {
        OURS: (None, nested(ours)),
        "F test": (None, nested(f_test)),
        "mRMR, quotient": (None, nested(lambda X, y, k: mrmr(X, y, k, quotient=True))),
        "mRMR, difference": (None, nested(lambda X, y, k: mrmr(X, y, k, quotient=False))),
        "l1 logistic": (None, l1_path(liblinear)),
        "celer": ("celer", l1_path(celer)),
        "RFE": (None, rfe),
        "forest": (None, nested(forest)),
        "abess": ("abess", abess),
        "random": (None, nested(random_order)),
    }
    present = {}
    for name, (package, method) in known.items():
        if package is not None and importlib.util.find_spec(package) is None:
            print(f"{name} is left out: {package} is not installed", flush=True)
        else:
            present[name] = method
    return present
