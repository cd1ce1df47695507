"""The default methods of a comparison: their names, and a line on each."""

from __future__ import annotations

from typing import Any

from sklearn.feature_selection import SelectKBest, chi2, f_classif
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from .baselines import (
    ElasticNetSelector,
    L1Logistic,
    RecursiveElimination,
    TreeImportance,
    mutual_information,
)

#: What the methods of scikit-learn's parts do; others say it themselves.
_WORDS = {
    "l1 logistic": "Logistic regression with an l1 penalty (lasso); a fit for each size.",
    "elastic net": "Least squares with an l1 and an l2 penalty; correlated features stay together.",
    "random forest": "Features by their importance to 500 trees on bootstrapped samples.",
    "gradient boosting": "Features by their importance to 100 small trees, one after the other.",
    "RFE": "Recursive elimination of the smallest weights of a linear SVM.",
    "F test": "Features one by one, by analysis of variance (the t-test of two classes).",
    "chi-squared": "Features one by one, by the chi-squared statistic of scaled values.",
    "mutual information": "Features one by one, by mutual information with the class.",
}

#: Other names that people know methods by.
KNOWN_AS = {
    "lasso": "l1 logistic",
    "l1": "l1 logistic",
    "logistic": "l1 logistic",
    "glmnet": "elastic net",
    "enet": "elastic net",
    "rf": "random forest",
    "forest": "random forest",
    "trees": "random forest",
    "gbm": "gradient boosting",
    "boosting": "gradient boosting",
    "xgboost": "gradient boosting",
    "lightgbm": "gradient boosting",
    "svm": "RFE",
    "svmrfe": "RFE",
    "recursivefeatureelimination": "RFE",
    "ttest": "F test",
    "anova": "F test",
    "chi2": "chi-squared",
    "mi": "mutual information",
    "mutualinfo": "mutual information",
    "rifle": "TruncatedRayleighFlow",
}


def method_lines() -> dict[str, str]:
    """Return what each of `default_methods` does, in a line."""
    found = {}
    for name, method in default_methods().items():
        own = (type(method).__doc__ or "").strip().partition("\n")[0]
        found[name] = _WORDS.get(name, own)
    return found


def default_methods() -> dict[str, Any]:
    """Return the methods of a comparison that names none.

    Everything in :mod:`sparsegsvp.related`, :class:`~sparsegsvp.GSVPSVM`, and from
    scikit-learn l1 logistic regression, elastic net, random forest, gradient boosting,
    recursive elimination and three filters.

    Returns
    -------
    dict
        From a name to an unfitted estimator.

    Examples
    --------
    >>> from sparsegsvp.evaluation import default_methods
    >>> {"l1 logistic", "RFE", "F test"} <= set(default_methods())
    True
    """
    from .. import related
    from ..estimators import GSVPSVM

    kinds = {name: getattr(related, name) for name in related.__all__}
    return {
        "GSVPSVM": GSVPSVM(),
        **{k: v() for k, v in kinds.items() if isinstance(v, type) and hasattr(v, "fit")},
        "l1 logistic": make_pipeline(StandardScaler(), L1Logistic()),
        "elastic net": make_pipeline(StandardScaler(), ElasticNetSelector()),
        "random forest": TreeImportance(),
        "gradient boosting": TreeImportance(boosted=True, n_trees=100),
        "RFE": make_pipeline(StandardScaler(), RecursiveElimination()),
        "F test": SelectKBest(f_classif),
        "chi-squared": make_pipeline(MinMaxScaler(), SelectKBest(chi2)),
        "mutual information": SelectKBest(mutual_information),
    }
