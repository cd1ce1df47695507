"""Baseline selectors of a comparison, made of scikit-learn's parts.

Each orders the features; the first ``n_features`` of ``feature_order_`` are its panel.
"""

from __future__ import annotations

import importlib
import warnings
from typing import Any, ClassVar

import numpy as np
import sklearn
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import RFE, SelectorMixin, f_classif
from sklearn.linear_model import LogisticRegression, enet_path
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC, l1_min_c
from sklearn.utils import Tags, check_random_state
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from .._typing import BoolArray, Float64Array, IntArray
from .._validate import check_integer, forget_fit

# What a feature must vary by: squares of less vanish, and liblinear does not end on them.
_SMALLEST = 1e-150
_STEPS = 80  # of a tenth each, down to 1/4000 of the largest penalty


def common_classifier() -> Pipeline:
    """Return the classifier that all panels are judged with."""
    return make_pipeline(
        StandardScaler(), LogisticRegression(class_weight="balanced", max_iter=2000)
    )


class _OrderedSelector(SelectorMixin, BaseEstimator):
    """A selector that keeps the first ``n_features`` of ``feature_order_``."""

    feature_order_: IntArray
    n_features_in_: int
    order_ignores_size = False  # whether one fit serves all sizes
    checks: ClassVar[dict[str, Any]] = {"dtype": np.float64}

    def __init__(self, n_features: int = 10) -> None:
        self.n_features = n_features

    def fit(self, X: Any, y: ArrayLike) -> _OrderedSelector:
        """Order the features; what scikit-learn's parts would not end on is refused."""
        forget_fit(self)
        X, y = validate_data(self, X, y, **self.checks)
        check_classification_targets(y)
        check_integer("n_features", self.n_features, least=1, most=self.n_features_in_)
        classes, codes = np.unique(y, return_inverse=True)
        if classes.size < 2:
            raise ValueError("y holds one class; at least two are needed.")
        if isinstance(X, np.ndarray) and not (np.ptp(X, axis=0) > _SMALLEST).any():
            raise ValueError(
                f"every feature of X varies by less than {_SMALLEST:g}: check how X was read, "
                "filtered and scaled."
            )
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", UserWarning)  # constant features
            self.feature_order_ = self._order(X, codes)
        return self

    def _order(self, X: NDArray[Any], codes: IntArray) -> IntArray:
        raise NotImplementedError

    def _get_support_mask(self) -> BoolArray:
        check_is_fitted(self, "feature_order_")
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[self.feature_order_[: self.n_features]] = True
        return mask

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = "accept_sparse" in self.checks
        return tags


def _by_size(weights: Float64Array) -> IntArray:
    """Order the features that have a weight by its size; of several rows, by their norm."""
    sizes = np.linalg.norm(np.atleast_2d(weights), axis=0)
    return np.argsort(-sizes, kind="stable")[: np.count_nonzero(sizes)]


class RandomPanel(_OrderedSelector):
    """Features drawn at random: what any method has to beat."""

    order_ignores_size = True
    checks: ClassVar[dict[str, Any]] = {"accept_sparse": "csr"}

    def __init__(self, n_features: int = 10, random_state: Any = None) -> None:
        super().__init__(n_features)
        self.random_state = random_state

    def _order(self, X: Any, codes: IntArray) -> IntArray:
        return check_random_state(self.random_state).permutation(X.shape[1])


class MRMR(_OrderedSelector):
    """Features by their F statistic over their mean correlation with those chosen before (mRMR).

    References
    ----------
    Ding, Peng (2005), Minimum redundancy feature selection from microarray gene expression data,
    Journal of Bioinformatics and Computational Biology 3(2), 185-205.
    """

    def _order(self, X: NDArray[Any], codes: IntArray) -> IntArray:
        scores = f_classif(X, codes)[0]
        # constant features last, those that separate without spread first
        relevance = np.minimum(np.where(np.isnan(scores), -1.0, scores), 1e12)
        Z = X - X.mean(axis=0)
        norms = np.linalg.norm(Z, axis=0)
        Z = Z / np.where(norms > 0, norms, np.inf)
        order = [int(relevance.argmax())]
        redundancy = np.zeros(X.shape[1])
        while len(order) < self.n_features:
            redundancy += np.abs(Z[:, order[-1]] @ Z)
            scores = relevance / np.maximum(redundancy / len(order), 1e-3)
            scores[order] = -np.inf
            order.append(int(scores.argmax()))
        return np.array(order, dtype=np.intp)


class RecursiveElimination(_OrderedSelector):
    """Recursive elimination of the smallest weights of a linear SVM (SVM-RFE).

    The weaker half by weight is dropped at each fit until 64 features are left, then
    scikit-learn's :class:`~sklearn.feature_selection.RFE` drops them one by one.

    References
    ----------
    Guyon, Weston, Barnhill, Vapnik (2002), Gene selection for cancer classification using
    support vector machines, Machine Learning 46, 389-422.
    """

    order_ignores_size = True

    def _order(self, X: NDArray[Any], codes: IntArray) -> IntArray:
        svm = LinearSVC(class_weight="balanced", dual="auto", random_state=0)
        left = np.arange(X.shape[1])
        dropped: list[IntArray] = []  # the last to go comes first
        while left.size > 64:
            weights = np.linalg.norm(svm.fit(X[:, left], codes).coef_, axis=0)
            keep = max(64, 1 << ((left.size - 1).bit_length() - 1))
            order = np.argsort(-weights, kind="stable")
            dropped.insert(0, left[order[keep:]])
            left = left[np.sort(order[:keep])]
        ranking = RFE(svm, n_features_to_select=1, step=1).fit(X[:, left], codes).ranking_
        return np.concatenate([left[np.argsort(ranking, kind="stable")], *dropped])


class L1Logistic(_OrderedSelector):
    r"""Logistic regression with an l1 penalty (lasso); a fit for each size.

    .. math:: \min_{w, b} \; \|w\|_1 + C \sum_i s_i \log(1 + e^{-y_i (x_i'w + b)})

    with balanced sample weights :math:`s_i`; the smallest C (to a factor of
    :math:`2^{1/16}`) at which at least ``n_features`` features enter. With more than two classes
    one problem per class against the rest, and the union counts.
    """

    def _order(self, X: NDArray[Any], codes: IntArray) -> IntArray:
        low, C = None, l1_min_c(X, codes, loss="log")
        order = self._solve(X, codes, C)
        while order.size < self.n_features and C < 1e8:
            low, C = C, 2 * C
            order = self._solve(X, codes, C)
        for _ in range(4 if low is not None else 0):
            middle = np.sqrt(low * C)
            trial = self._solve(X, codes, middle)
            if trial.size >= self.n_features:
                C, order = middle, trial
            else:
                low = middle
        return order

    def _solve(self, X: Any, codes: IntArray, C: float) -> IntArray:
        version = tuple(int(part) for part in sklearn.__version__.split(".")[:2])
        l1 = {"l1_ratio": 1} if version >= (1, 8) else {"penalty": "l1"}
        options = {"solver": "liblinear", "class_weight": "balanced", "random_state": 0, **l1}
        model, last = LogisticRegression(C=C, max_iter=1000, **options), int(codes.max())
        classes = [1] if last == 1 else range(last + 1)
        return _by_size(np.vstack([model.fit(X, codes == k).coef_ for k in classes]))


class ElasticNetSelector(_OrderedSelector):
    r"""Least squares with an l1 and an l2 penalty; correlated features stay together.

    .. math:: \min_w \; \frac{1}{2n} \sum_i s_i (y_i - x_i'w)^2
        + \frac{\alpha}{2} \|w\|_1 + \frac{\alpha}{4} \|w\|^2

    with balanced sample weights :math:`s_i`, columns and labels (1 and -1, or indicators) centred.
    Going down from the penalty at which the first feature enters, in steps of a tenth, it stops
    where ``n_features`` have. Squares, since they have an exact coordinate descent.

    References
    ----------
    Zou, Hastie (2005), Regularization and variable selection via the elastic net, Journal of the
    Royal Statistical Society B 67(2), 301-320.
    """

    def _order(self, X: NDArray[Any], codes: IntArray) -> IntArray:
        weight = compute_sample_weight("balanced", codes)
        target, root = np.eye(int(codes.max()) + 1)[codes], np.sqrt(weight)[:, None]
        if target.shape[1] == 2:
            target = 2 * target[:, 1:] - 1
        rows, wanted = (
            np.asfortranarray((part - np.average(part, axis=0, weights=weight)) * root)
            for part in (X, target)
        )
        # where the first feature enters
        alpha = float(np.linalg.norm(wanted.T @ rows, axis=0).max() / (codes.size * 0.5)) or 1.0
        wanted = wanted[:, 0] if wanted.shape[1] == 1 else wanted
        coef, order = None, np.array([], dtype=np.intp)
        for _ in range(_STEPS):
            alpha *= 0.9
            options = {"alphas": [alpha], "l1_ratio": 0.5, "precompute": False}
            coef = enet_path(rows, wanted, coef_init=coef, copy_X=False, **options)[1][..., 0]
            order = _by_size(coef)
            if order.size >= self.n_features:
                break
        return order


class Abess(_OrderedSelector):
    """Best subset selection by splicing (abess): exactly so many features of logistic regression.

    Needs the package ``abess``.

    References
    ----------
    Zhu, Wen, Zhu, Zhang, Wang (2020), A polynomial algorithm for best-subset selection problem,
    PNAS 117(52), 33117-33123.
    """

    def _order(self, X: NDArray[Any], codes: IntArray) -> IntArray:
        package, two = importlib.import_module("abess"), codes.max() == 1
        kind = package.LogisticRegression if two else package.MultinomialRegression
        target = codes if two else np.eye(int(codes.max()) + 1)[codes]
        model = kind(support_size=self.n_features)
        weight = compute_sample_weight("balanced", codes)
        model.fit(StandardScaler().fit_transform(X), target, sample_weight=weight)
        coef = np.asarray(model.coef_)
        return _by_size(coef if two else coef.T)
