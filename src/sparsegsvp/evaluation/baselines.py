"""Methods of a comparison: what there is by name, and orders of features behind one selector."""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import sklearn
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import RFE, SelectFromModel, SelectKBest, SelectorMixin, f_classif
from sklearn.linear_model import LogisticRegression, enet_path
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC, l1_min_c
from sklearn.utils import Tags, check_random_state
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from .._typing import BoolArray, Float64Array, IntArray
from .._validate import check_choice, check_integer, close_names, forget_fit
from .procedure import by_weight

RANDOM_PANEL = "random panel"
# What a feature must vary by: squares of less vanish, and liblinear does not end on them.
_SMALLEST = 1e-150
_STEPS = 80  # of a tenth each, down to 1/4000 of the largest penalty
_ONE_BY_ONE = 64  # features from which recursive elimination drops single ones


class Baseline(SelectorMixin, BaseEstimator):
    """A selector that keeps the first ``n_features`` of an order of standardised features.

    ``kind`` is a name among `KINDS`, whose function makes the order, or "random panel".
    """

    def __init__(self, kind: str, n_features: int = 10, random_state: Any = None) -> None:
        self.kind = kind
        self.n_features = n_features
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike) -> Baseline:
        """Order the features; some kinds order only as many as are asked for."""
        forget_fit(self)
        random = check_choice("kind", self.kind, [*KINDS, RANDOM_PANEL]) == RANDOM_PANEL
        X, y = validate_data(self, X, y, dtype=np.float64, accept_sparse=random)
        check_classification_targets(y)
        size = check_integer("n_features", self.n_features, least=1, most=self.n_features_in_)
        classes, codes = np.unique(y, return_inverse=True)
        if classes.size < 2:
            raise ValueError("y holds one class; at least two are needed.")
        if random:
            rng = check_random_state(self.random_state)
            self.feature_order_ = rng.permutation(self.n_features_in_)
            return self
        if not (np.ptp(X, axis=0) > _SMALLEST).any():
            raise ValueError(
                f"every feature of X varies by less than {_SMALLEST:g}: check how X was read, "
                "filtered and scaled."
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.feature_order_ = KINDS[self.kind](StandardScaler().fit_transform(X), codes, size)
        return self

    @property
    def order_ignores_size(self) -> bool:
        """Whether one fit serves all sizes."""
        return self.kind in (RANDOM_PANEL, "RFE")

    def _get_support_mask(self) -> BoolArray:
        check_is_fitted(self, "feature_order_")
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[self.feature_order_[: self.n_features]] = True
        return mask

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = self.kind == RANDOM_PANEL
        return tags


def _mrmr(X: Float64Array, y: IntArray, size: int) -> IntArray:
    """Features by their F statistic over their mean correlation with those chosen before (mRMR).

    Ding, Peng (2005), Minimum redundancy feature selection from microarray gene expression data,
    Journal of Bioinformatics and Computational Biology 3(2), 185-205.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        scores = f_classif(X, y)[0]
    # constant features last; those that separate without spread first
    relevance = np.minimum(np.where(np.isnan(scores), -1.0, scores), 1e12)
    order = [int(relevance.argmax())]
    redundancy = np.zeros(X.shape[1])
    while len(order) < size:
        redundancy += np.abs(X[:, order[-1]] @ X) / len(X)
        scores = relevance / np.maximum(redundancy / len(order), 1e-3)
        scores[order] = -np.inf
        order.append(int(scores.argmax()))
    return np.array(order, dtype=np.intp)


def _eliminate(X: Float64Array, y: IntArray, size: int) -> IntArray:
    """Recursive elimination of the smallest weights of a linear SVM (SVM-RFE).

    The weaker half is dropped at each fit until 64 features are left, then one by one.

    Guyon, Weston, Barnhill, Vapnik (2002), Gene selection for cancer classification using
    support vector machines, Machine Learning 46, 389-422.
    """
    svm = LinearSVC(class_weight="balanced", dual="auto", random_state=0)
    left = np.arange(X.shape[1])
    dropped: list[IntArray] = []  # the last to go comes first
    while left.size > _ONE_BY_ONE:
        weights = np.linalg.norm(svm.fit(X[:, left], y).coef_, axis=0)
        keep = max(_ONE_BY_ONE, 1 << ((left.size - 1).bit_length() - 1))
        order = np.argsort(-weights, kind="stable")
        dropped.insert(0, left[order[keep:]])
        left = left[np.sort(order[:keep])]
    ranking = RFE(svm, n_features_to_select=1, step=1).fit(X[:, left], y).ranking_
    return np.concatenate([left[np.argsort(ranking, kind="stable")], *dropped])


def _l1_logistic(X: Float64Array, y: IntArray, size: int) -> IntArray:
    """Logistic regression with an l1 penalty (lasso); a fit for each size.

    Balanced, at the weakest penalty, to a factor of 2^(1/16), at which ``size`` features enter.
    With more than two classes one problem per class against the rest, and the union counts.
    """
    version = tuple(int(part) for part in sklearn.__version__.split(".")[:2])
    l1 = {"l1_ratio": 1} if version >= (1, 8) else {"penalty": "l1"}
    model = LogisticRegression(
        solver="liblinear", class_weight="balanced", random_state=0, max_iter=1000, **l1
    )
    targets = [y == k for k in range(0 if y.max() > 1 else 1, y.max() + 1)]

    def solve(C: float) -> Float64Array:
        model.set_params(C=C)
        return np.linalg.norm([model.fit(X, target).coef_[0] for target in targets], axis=0)

    low, C = None, l1_min_c(X, y, loss="log")
    weights = solve(C)
    while np.count_nonzero(weights) < size and C < 1e8:
        low, C = C, 2 * C
        weights = solve(C)
    for _ in range(0 if low is None else 4):
        middle = float(np.sqrt(low * C))
        trial = solve(middle)
        if np.count_nonzero(trial) >= size:
            C, weights = middle, trial
        else:
            low = middle
    return by_weight(weights)


def _elastic_net(X: Float64Array, y: IntArray, size: int) -> IntArray:
    """Least squares with an l1 and an l2 penalty; correlated features stay together.

    Balanced, half of the penalty l1, on the indicators of the classes together. Going down from
    the penalty at which the first feature enters, it stops where ``size`` have.

    Zou, Hastie (2005), Regularization and variable selection via the elastic net, Journal of the
    Royal Statistical Society B 67(2), 301-320.
    """
    weight = compute_sample_weight("balanced", y)
    target = np.eye(y.max() + 1)[y]
    target = 2 * target[:, 1] - 1 if y.max() == 1 else target
    root = np.sqrt(weight)
    rows, wanted = (
        np.asfortranarray(((part - np.average(part, axis=0, weights=weight)).T * root).T)
        for part in (X, target)
    )
    alpha = float(np.linalg.norm(np.atleast_2d(wanted.T @ rows), axis=0).max() / (0.5 * y.size))
    alpha, coef = alpha or 1.0, None
    for _ in range(_STEPS):
        alpha *= 0.9
        options = {"alphas": [alpha], "l1_ratio": 0.5, "precompute": False, "copy_X": False}
        coef = enet_path(rows, wanted, coef_init=coef, **options)[1][..., 0]
        weights = np.linalg.norm(np.atleast_2d(coef), axis=0)
        if np.count_nonzero(weights) >= size:
            break
    return by_weight(weights)


def _abess(X: Float64Array, y: IntArray, size: int) -> IntArray:
    """Best subset selection by splicing (abess): exactly so many features of logistic regression.

    Zhu, Wen, Zhu, Zhang, Wang (2020), A polynomial algorithm for best-subset selection problem,
    PNAS 117(52), 33117-33123.
    """
    package, two = importlib.import_module("abess"), y.max() == 1
    kind = package.LogisticRegression if two else package.MultinomialRegression
    target = y if two else np.eye(y.max() + 1)[y]
    model = kind(support_size=size).fit(
        X, target, sample_weight=compute_sample_weight("balanced", y)
    )
    coef = np.asarray(model.coef_)
    return by_weight(np.abs(coef) if two else np.linalg.norm(coef, axis=1))


#: The orders by name; the first line of a function says what it does.
KINDS: dict[str, Callable[[Float64Array, IntArray, int], IntArray]] = {
    "mRMR": _mrmr,
    "l1 logistic": _l1_logistic,
    "elastic net": _elastic_net,
    "RFE": _eliminate,
    "abess": _abess,
}

#: Other names that people know methods by.
_ALIASES = {
    "l1 logistic": "lasso l1 logistic",
    "elastic net": "glmnet enet",
    "random forest": "rf forest trees",
    "gradient boosting": "gbm boosting xgboost lightgbm",
    "RFE": "svm svmrfe recursivefeatureelimination",
    "F test": "ttest anova",
    "mRMR": "minimumredundancy",
    "abess": "bestsubset",
    "TruncatedRayleighFlow": "rifle",
}
#: What the methods of scikit-learn's parts do; others say it themselves.
_LINES = {
    "F test": "Features one by one, by analysis of variance (t-test).",
    "random forest": "Features by their importance to 500 trees on bootstrapped samples.",
    "gradient boosting": "Features by their importance to 100 small trees, one after the other.",
}


def default_methods() -> dict[str, Any]:
    """Return the methods of a comparison that names none.

    Returns
    -------
    dict
        From a name to an unfitted estimator: `GSVPSVM`, everything in `sparsegsvp.related`, and
        from scikit-learn's parts the F test, mRMR, l1 logistic regression, elastic net, recursive
        elimination, random forest and boosting; best subset selection where abess is installed.

    Examples
    --------
    >>> from sparsegsvp.evaluation import default_methods
    >>> {"l1 logistic", "RFE", "F test", "mRMR"} <= set(default_methods())
    True
    """
    from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier

    from .. import related
    from ..estimators import GSVPSVM

    importance = partial(SelectFromModel, threshold=-np.inf, max_features=10)
    forest = RandomForestClassifier(500, class_weight="balanced")
    boosting = GradientBoostingClassifier(subsample=0.5, max_features="sqrt")
    there = [kind for kind in KINDS if kind != "abess" or importlib.util.find_spec("abess")]
    methods = {"GSVPSVM": GSVPSVM(), **{name: getattr(related, name)() for name in related.__all__}}
    methods |= {"F test": SelectKBest(f_classif), **{kind: Baseline(kind) for kind in there}}
    return methods | {
        "random forest": importance(forest),
        "gradient boosting": importance(boosting),
    }


def method_names() -> dict[str, str]:
    """Return what each of `default_methods` does, in a line.

    Examples
    --------
    >>> from sparsegsvp.evaluation import method_names
    >>> method_names()["F test"]
    'Features one by one, by analysis of variance (t-test).'
    """
    texts = {n: KINDS.get(n, type(m)).__doc__ or "" for n, m in default_methods().items()}
    return {name: text.strip().partition("\n")[0] for name, text in texts.items()} | _LINES


def find_method(name: str) -> str:
    """Return how `default_methods` spells a name, whatever its capitals, blanks and dashes."""

    def folded(text: str) -> str:
        return "".join(c for c in text.lower() if c.isalnum())

    names = list(default_methods())
    known = {alias: key for key in names for alias in _ALIASES.get(key, "").split()}
    known |= {folded(key): key for key in names}
    if folded(name) in known:
        return known[folded(name)]
    close = close_names(name, names)
    hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
    raise ValueError(f"there is no method {name!r} among {names}.{hint}")
