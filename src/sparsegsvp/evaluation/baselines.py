"""Baseline selectors of a comparison, made of scikit-learn's parts.

Each gives a panel of ``n_features``, or of at least as many where they enter a model, and
``feature_order_``, the order of the features to cut or fill it by.
"""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import numpy as np
import sklearn
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
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
from .._validate import check_integer, check_real, forget_fit

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

    n_features: int
    feature_order_: IntArray
    n_features_in_: int
    order_ignores_size = True  # one fit serves all sizes

    def _get_support_mask(self) -> BoolArray:
        check_is_fitted(self)
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[self.feature_order_[: self.n_features]] = True
        return mask

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "feature_order_")

    def _read(self, X: Any, y: Any, **checks: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """Check training data; what scikit-learn's parts would not end on is refused."""
        forget_fit(self)
        X, y = validate_data(self, X, y, **checks)
        check_classification_targets(y)
        check_integer("n_features", self.n_features, least=1, most=self.n_features_in_)
        if np.unique(y).size < 2:
            raise ValueError("y holds one class; at least two are needed.")
        if isinstance(X, np.ndarray) and not (np.ptp(X, axis=0) > _SMALLEST).any():
            raise ValueError(
                f"every feature of X varies by less than {_SMALLEST:g}: check how X was read, "
                "filtered and scaled."
            )
        return X, y

    def _order_by(self, weights: Float64Array) -> None:
        """Order the features that have a weight by its size."""
        self.feature_order_ = np.argsort(-weights, kind="stable")[: np.count_nonzero(weights)]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


class RandomPanel(_OrderedSelector):
    """Features drawn at random: what any method has to beat."""

    def __init__(self, n_features: int = 10, random_state: Any = None) -> None:
        self.n_features = n_features
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike) -> RandomPanel:
        """Draw an order of the features."""
        X, _ = self._read(X, y, accept_sparse="csr")
        self.feature_order_ = check_random_state(self.random_state).permutation(X.shape[1])
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _f_scores(X: NDArray[Any], y: NDArray[Any]) -> Float64Array:
    """Return F statistics; constant features last, those that separate without spread first."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        scores = f_classif(X, y)[0]
    return np.where(np.isnan(scores), -1.0, scores)


class MRMR(_OrderedSelector):
    """Features by their F statistic over their mean correlation with those chosen before (mRMR).

    References
    ----------
    Ding, Peng (2005), Minimum redundancy feature selection from microarray gene expression data,
    Journal of Bioinformatics and Computational Biology 3(2), 185-205.
    """

    order_ignores_size = False  # only as many are ordered as are asked for

    def __init__(self, n_features: int = 10) -> None:
        self.n_features = n_features

    def fit(self, X: Any, y: ArrayLike) -> MRMR:
        """Choose features one after the other."""
        X, y = self._read(X, y, dtype=np.float64)
        relevance = np.minimum(_f_scores(X, y), 1e12)
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
        self.feature_order_ = np.array(order, dtype=np.intp)
        return self


class RecursiveElimination(_OrderedSelector):
    """Recursive elimination of the smallest weights of a linear SVM (SVM-RFE).

    The weaker half by weight is dropped at each fit until 64 features are left, then
    scikit-learn's :class:`~sklearn.feature_selection.RFE` drops them one by one. ``C`` is that of
    :class:`~sklearn.svm.LinearSVC`, balanced.

    References
    ----------
    Guyon, Weston, Barnhill, Vapnik (2002), Gene selection for cancer classification using
    support vector machines, Machine Learning 46, 389-422.
    """

    def __init__(self, n_features: int = 10, C: float = 1.0) -> None:
        self.n_features = n_features
        self.C = C

    def fit(self, X: Any, y: ArrayLike) -> RecursiveElimination:
        """Drop features until one is left."""
        X, y = self._read(X, y)
        svm = LinearSVC(C=self.C, class_weight="balanced", dual="auto", random_state=0)
        left = np.arange(X.shape[1])
        dropped: list[IntArray] = []  # the last to go comes first
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            while left.size > 64:
                weights = np.linalg.norm(svm.fit(X[:, left], y).coef_, axis=0)
                keep = max(64, 1 << ((left.size - 1).bit_length() - 1))
                order = np.argsort(-weights, kind="stable")
                dropped.insert(0, left[order[keep:]])
                left = left[np.sort(order[:keep])]
            ranking = RFE(svm, n_features_to_select=1, step=1).fit(X[:, left], y).ranking_
        last = left[np.argsort(ranking, kind="stable")]
        self.feature_order_ = np.concatenate([last, *dropped])
        return self


class _LinearSelector(ClassifierMixin, _OrderedSelector):
    """A selector that is a linear classifier: of two classes, or of each against the rest."""

    order_ignores_size = False
    classes_: NDArray[Any]
    coef_: Float64Array
    intercept_: Float64Array

    def decision_function(self, X: Any) -> Float64Array:
        """Return the signed value (two classes) or one value per class."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False)
        values = X @ self.coef_.T + self.intercept_
        return values[:, 0] if self.classes_.size == 2 else values

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted labels."""
        values = self.decision_function(X)
        codes = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
        return self.classes_[codes]


class L1Logistic(_LinearSelector):
    r"""Logistic regression with an l1 penalty (lasso); a fit for each size.

    .. math:: \min_{w, b} \; \|w\|_1 + C \sum_i s_i \log(1 + e^{-y_i (x_i'w + b)})

    with balanced sample weights :math:`s_i`; the smallest C (to a factor of
    :math:`2^{1/16}`) at which at least ``n_features`` features enter. With more than two classes
    one problem per class against the rest, and the union counts.
    """

    def __init__(self, n_features: int = 10) -> None:
        self.n_features = n_features

    def fit(self, X: Any, y: ArrayLike) -> L1Logistic:
        """Find the penalty, then keep its model."""
        X, y = self._read(X, y)
        self.classes_ = np.unique(y)
        low, C = None, l1_min_c(X, y, loss="log")
        models = self._solve(X, y, C)
        while self._size(models) < self.n_features and C < 1e8:
            low, C = C, 2 * C
            models = self._solve(X, y, C)
        for _ in range(4 if low is not None else 0):
            middle = np.sqrt(low * C)
            trial = self._solve(X, y, middle)
            if self._size(trial) >= self.n_features:
                C, models = middle, trial
            else:
                low = middle
        self.C_ = float(C)
        self.coef_ = np.vstack([model.coef_ for model in models])
        self.intercept_ = np.concatenate([model.intercept_ for model in models])
        self._order_by(np.linalg.norm(self.coef_, axis=0))
        return self

    def _solve(self, X: Any, y: Any, C: float) -> list[LogisticRegression]:
        labels = self.classes_[1:] if self.classes_.size == 2 else self.classes_
        version = tuple(int(part) for part in sklearn.__version__.split(".")[:2])
        l1 = {"l1_ratio": 1} if version >= (1, 8) else {"penalty": "l1"}
        options = {"solver": "liblinear", "class_weight": "balanced", "random_state": 0, **l1}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return [
                LogisticRegression(C=C, max_iter=1000, **options).fit(X, y == label)
                for label in labels
            ]

    @staticmethod
    def _size(models: list[LogisticRegression]) -> int:
        return int(np.count_nonzero(np.any([m.coef_[0] != 0 for m in models], axis=0)))


class ElasticNetSelector(_LinearSelector):
    r"""Least squares with an l1 and an l2 penalty; correlated features stay together.

    .. math:: \min_w \; \frac{1}{2n} \sum_i s_i (y_i - x_i'w)^2
        + \alpha \rho \|w\|_1 + \frac{\alpha (1 - \rho)}{2} \|w\|^2

    with balanced sample weights :math:`s_i`, columns and the labels (1 and -1) centred. Going
    down from the penalty at which the first feature enters, in steps of a tenth, it stops where
    ``n_features`` have. With more than two classes the indicators of the classes are regressed
    together. ``l1_ratio`` is :math:`\rho`, and ``alpha_`` the penalty found. Squares, since they
    have an exact coordinate descent.

    References
    ----------
    Zou, Hastie (2005), Regularization and variable selection via the elastic net, Journal of the
    Royal Statistical Society B 67(2), 301-320.
    """

    def __init__(self, n_features: int = 10, l1_ratio: float = 0.5) -> None:
        self.n_features = n_features
        self.l1_ratio = l1_ratio

    def fit(self, X: Any, y: ArrayLike) -> ElasticNetSelector:
        """Walk down the path until enough features have entered."""
        check_real("l1_ratio", self.l1_ratio, above=0, most=1)
        X, y = self._read(X, y, dtype=np.float64)
        self.classes_, codes = np.unique(y, return_inverse=True)
        weight = compute_sample_weight("balanced", codes)
        target = np.eye(self.classes_.size)[codes]
        if self.classes_.size == 2:
            target = 2 * target[:, 1:] - 1
        root = np.sqrt(weight)[:, None]
        mean, level = (np.average(part, axis=0, weights=weight) for part in (X, target))
        rows = np.asfortranarray((X - mean) * root)
        wanted = np.asfortranarray((target - level) * root)
        wanted = wanted[:, 0] if wanted.shape[1] == 1 else wanted
        # where the first feature enters; a tenth less at each step
        largest = np.linalg.norm(np.atleast_2d(wanted.T @ rows), axis=0).max()
        alpha = float(largest / (codes.size * self.l1_ratio)) or 1.0
        coef: Any = None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            for _ in range(_STEPS):
                alpha *= 0.9
                options = {"alphas": [alpha], "l1_ratio": self.l1_ratio, "precompute": False}
                coef = enet_path(rows, wanted, coef_init=coef, copy_X=False, **options)[1][..., 0]
                weights = np.linalg.norm(np.atleast_2d(coef), axis=0)
                if np.count_nonzero(weights) >= self.n_features:
                    break
        self.alpha_ = alpha
        self.coef_ = np.atleast_2d(coef)
        self.intercept_ = level - self.coef_ @ mean
        self._order_by(weights)
        return self


class Abess(_OrderedSelector):
    """Best subset selection by splicing (abess): exactly so many features of logistic regression.

    Needs the package ``abess``.

    References
    ----------
    Zhu, Wen, Zhu, Zhang, Wang (2020), A polynomial algorithm for best-subset selection problem,
    PNAS 117(52), 33117-33123.
    """

    order_ignores_size = False

    def __init__(self, n_features: int = 10) -> None:
        self.n_features = n_features

    def fit(self, X: Any, y: ArrayLike) -> Abess:
        """Select, and order the features by the size of their standardised coefficients."""
        X, y = self._read(X, y, dtype=np.float64)
        package = importlib.import_module("abess")
        X = StandardScaler().fit_transform(X)
        classes, codes = np.unique(y, return_inverse=True)
        two = classes.size == 2
        kind = package.LogisticRegression if two else package.MultinomialRegression
        target = codes if two else np.eye(classes.size)[codes]
        model = kind(support_size=self.n_features)
        model.fit(X, target, sample_weight=compute_sample_weight("balanced", codes))
        coef = np.asarray(model.coef_)
        self._order_by(np.abs(coef) if two else np.linalg.norm(coef, axis=1))
        return self
