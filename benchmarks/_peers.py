"""Adapters for selectors that people use today, none of them required.

    celer, skglm, Boruta, skrebate, abess

Each is a scikit-learn selector with ``n_features`` and ``feature_order_``. One whose package
is missing is reported by `peers`; one that fails or takes too long is reported by the
comparison. mRMR needs no package.
"""

from __future__ import annotations

import importlib.util
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import SelectorMixin, VarianceThreshold, f_classif
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


class _Peer(SelectorMixin, BaseEstimator):
    """Keeps the first ``n_features`` of the order that a subclass computes."""

    def __init__(self, n_features: int = 10) -> None:
        self.n_features = n_features

    def fit(self, X: np.ndarray, y: np.ndarray) -> _Peer:
        codes = np.unique(y, return_inverse=True)[1]
        self.n_features_in_ = X.shape[1]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            order = self._order(np.ascontiguousarray(X, dtype=np.float64), codes)
        self.feature_order_ = np.asarray(order, dtype=np.intp)
        return self

    def _order(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _get_support_mask(self) -> np.ndarray:
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[self.feature_order_[: self.n_features]] = True
        return mask


def _by_size(coef: np.ndarray) -> np.ndarray:
    weights = np.linalg.norm(np.atleast_2d(coef), axis=0)
    return np.argsort(-weights, kind="stable")[: np.count_nonzero(weights)]


def _until(size: int, solve: Callable[[float], np.ndarray], strongest: float) -> np.ndarray:
    """Weaken a penalty by halves until ``size`` features enter, then bisect four times."""
    high, low = strongest, strongest
    coef = solve(low)
    while np.count_nonzero(coef) < size and low > 1e-6 * strongest:
        high, low = low, low / 2
        coef = solve(low)
    for _ in range(4 if low < high else 0):
        middle = np.sqrt(high * low)
        trial = solve(middle)
        if np.count_nonzero(trial) >= size:
            low, coef = middle, trial
        else:
            high = middle
    return coef


@contextmanager
def this_folder_hidden() -> Iterator[None]:
    """Keep coverage.py of this folder from being imported as the package of that name.

    numba imports that package where it is installed, and fails with anything else.
    """
    before, here = sys.path[:], Path(__file__).resolve().parent
    sys.path[:] = [entry for entry in before if Path(entry).resolve() != here]
    try:
        yield
    finally:
        sys.path[:] = before


class Celer(_Peer):
    """celer's l1 logistic regression, at the penalty where ``n_features`` enter."""

    def _order(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        from celer import LogisticRegression

        signs = np.where(y == 1, 1.0, -1.0)
        strongest = np.abs(X.T @ signs).max() / 2

        def solve(alpha: float) -> np.ndarray:
            return np.ravel(LogisticRegression(C=1 / alpha, fit_intercept=False).fit(X, y).coef_)

        return _by_size(_until(self.n_features, solve, strongest))


class SkglmMCP(_Peer):
    """skglm's regression on +-1 labels with the minimax concave penalty.

    With the logistic loss that penalty has no minimum on separable classes, which wide tables
    always have.
    """

    def _order(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        with this_folder_hidden():
            from skglm import MCPRegression

        signs = np.where(y == 1, 1.0, -1.0)
        columns = np.asfortranarray(X)
        strongest = np.abs(X.T @ (signs - signs.mean())).max() / len(y)

        def solve(alpha: float) -> np.ndarray:
            return np.ravel(MCPRegression(alpha).fit(columns, signs).coef_)

        return _by_size(_until(self.n_features, solve, strongest))


class MRMR(_Peer):
    """Maximum relevance, minimum redundancy: the F statistic over the mean |correlation|.

    Greedy: the next feature has the largest quotient of its F statistic and its mean absolute
    correlation, no less than 0.001, with those chosen before. That is what mrmr-selection does
    by default, in milliseconds instead of minutes; on breast, colon, leukemia, cns and gravier
    its version 0.2.8 chose the same 32 features in the same order.
    A small panel is the beginning of a large one, so it is computed once, 32 deep.
    """

    order_ignores_size = True

    def _order(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        relevance = np.nan_to_num(f_classif(X, y)[0], posinf=np.inf)
        left = np.flatnonzero(relevance > 0)
        depth = min(max(self.n_features, 32), len(left))
        units = X[:, left] - X[:, left].mean(axis=0)
        units /= np.linalg.norm(units, axis=0)
        score, redundancy = relevance[left], np.zeros(len(left))
        chosen: list[int] = []
        for n_chosen in range(1, depth + 1):
            score[chosen] = -np.inf
            chosen.append(int(score.argmax()))
            redundancy += np.maximum(np.abs(units.T @ units[:, chosen[-1]]), 0.001)
            mean = redundancy / n_chosen
            # a copy of all that are chosen already adds nothing
            score = np.where(mean < 1 - 1e-12, relevance[left] / mean, 0.0)
        return left[chosen]


class Boruta(_Peer):
    """Boruta around a random forest; its own ranking, confirmed features by importance."""

    order_ignores_size = True

    def _order(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        from boruta import BorutaPy

        forest = RandomForestClassifier(
            n_jobs=1, class_weight="balanced", max_depth=5, random_state=0
        )
        model = BorutaPy(forest, n_estimators=100, max_iter=30, random_state=0).fit(X, y)
        importance = np.nanmean(np.nan_to_num(model.importance_history_), axis=0)
        return np.lexsort((-importance, model.ranking_))


class ReliefF(_Peer):
    """skrebate's ReliefF."""

    order_ignores_size = True

    def _order(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        from skrebate import ReliefF as Original

        model = Original(n_neighbors=10, n_jobs=1).fit(X, y)
        return np.argsort(-model.feature_importances_, kind="stable")


class Abess(_Peer):
    """abess: best subset of exactly ``n_features`` for logistic regression."""

    def _order(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        from abess import LogisticRegression

        model = LogisticRegression(support_size=self.n_features).fit(X, y)
        return _by_size(np.ravel(model.coef_))


# by name, the package that is needed, if any, and the adapter
_PEERS: dict[str, tuple[str | None, type[_Peer]]] = {
    "celer": ("celer", Celer),
    "skglm MCP": ("skglm", SkglmMCP),
    "mRMR": (None, MRMR),
    "Boruta": ("boruta", Boruta),
    "ReliefF": ("skrebate", ReliefF),
    "abess": ("abess", Abess),
}


def peers() -> tuple[dict[str, Any], dict[str, str]]:
    """Return the adapters whose packages are installed, and why the others are left out."""
    found: dict[str, Any] = {}
    missing: dict[str, str] = {}
    for name, (package, adapter) in _PEERS.items():
        if package is not None and importlib.util.find_spec(package) is None:
            missing[name] = f"{package} is not installed"
        else:
            found[name] = make_pipeline(VarianceThreshold(), StandardScaler(), adapter())
    return found, missing
