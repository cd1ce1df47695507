"""`GSVPSVM`: exactly k features, and a classifier on them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from operator import attrgetter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from .._typing import Array
from .._validate import (
    check_choice,
    check_integer,
    check_real,
    forget_fit,
    refuse_dask,
    warn_caller,
    warn_constant,
)
from ..linalg import ClassMoments
from ..linalg.rows import check_class_sizes, read_classes
from ..solvers.penalties import penalty_factors
from ..solvers.subset import Covariances, check_panel, forward
from .base import DECISIONS, FITTED, SAMPLE, PanelClassifier


@dataclass(frozen=True, eq=False)
class Training:
    """What a model is fitted to: checked rows and labels, or moments, and covariances."""

    classes: np.ndarray
    names: np.ndarray | None
    factor: Array
    covariances: Any
    rows: Any = None
    codes: Any = None
    weight: Any = None


@dataclass(eq=False, repr=False)
class GSVPSVM(PanelClassifier):
    r"""Select exactly k features and classify on them.

    Features are added one by one, each the one that lowers

    .. math::
        \sum_{i<j} \left(\frac{\sqrt{D_{ij}^2 + 4} - \sqrt{D_{ij}^2}}{2}\right)^2, \qquad
        D_{ij}^2 = (\mu_i - \mu_j)^\top (S + \tau I)^{-1} (\mu_i - \mu_j)

    most: the paper's quotient for each pair of classes, minimised over planes on the panel, in
    the limit q -> 0. S is the pooled within-class covariance of the standardised features. The
    panel of k features begins with that of k - 1.

    Parameters
    ----------
    n_features : int, default=10
        How many features to select; all that vary, with a warning, if these are fewer.
    tau : float, default=None
        Floor of the squared distances, in units of a feature's variance. None stands for a
        multiple of Ledoit and Wolf's shrinkage, which falls to nothing as the samples grow.
    clip : float, default=3.0
        Values are clipped this many pooled within-class standard deviations from their class's
        mean, so that outliers neither select nor decide; None for never. Zeros stay.
    max_correlation : float, default=0.9
        A feature whose within-class correlation with a chosen one reaches this in size is taken
        only where no other is left; it is listed in `stand_ins_`. 1 turns it off.
    penalty_factor : array of shape (n_features_in_,) or mapping, default=None
        0 for features that are always in the panel, infinity for those that never are, else what
        a feature's gain is divided by. A mapping gives it for some, by name.
    decision : str, default="logistic"
        "logistic": ridge logistic regression on the panel's columns, every class counting the
        same. "discriminant": the class scores of the closed form itself, which need no rows;
        `partial_fit` and `fit_moments` use it. "calibrated", "scaled", "distance": from the
        distances to one plane per class, by logistic regression on their logarithms, divided by
        their class-balanced root mean squares, or as they are, which is the paper's rule.
    standardize : bool, default=True
        Whether features are scaled to unit variance, without a copy.

    Attributes
    ----------
    classes_, support_ : ndarrays of shapes (n_classes,) and (n_features_in_,)
        Class labels, and the mask of the panel.
    feature_order_, quotients_ : ndarrays of shape (n_features,)
        The panel in the order of choice, its first j features being the panel of size j, and the
        criterion after each step.
    feature_importances_ : ndarray of shape (n_features_in_,)
        What each feature took from the criterion when it was chosen.
    pair_gains_ : ndarray of shape (n_features, n_pairs)
        The same of each feature of `feature_order_` by pair of classes, (0, 1), (0, 2), ... first.
    stand_ins_ : list of list of tuple
        Those that may stand for each feature of `feature_order_`, nearest first: index, correlation
        within classes (0.8 or more in size), and what the criterion loses by the exchange.
    planes_, plane_intercepts_, scale_ : ndarrays, one row a class
        One plane per class against the others, the best on the panel, in the units of X, and the
        class-balanced root mean square distance of the training rows to it.
    tau_, decision_ : float and str
        The floor and the decision in use.
    panel_coef_, panel_intercept_ : ndarrays
        The decision's linear part: on the panel's columns, clipped to `limits_`, or for
        "calibrated" on log distances. One row for two classes, else one a class.
    coef_, intercept_ : ndarrays
        The same on X, in scikit-learn's shapes, where `decision_function` is linear in X: with
        ``clip=None`` and a decision that is linear.
    limits_ : ndarray of shape (2, n_selected) or None
        Values beyond are clipped when rows are classified; zeros stay.
    prior_, class_counts_ : ndarrays of shape (n_classes,)
        The class shares that probabilities are for, equal ones, and the training rows of each
        class; with sample weights, its share of them.
    panel_means_, panel_variances_ : ndarrays of shape (n_classes, n_selected)
        Mean and variance of the selected features in each class, in the units of X.
    moments_ : ClassMoments
        After `partial_fit`: the moments of all batches so far.
    n_features_in_, feature_names_in_ : int and ndarray of str
        Number of features, and their names, where X has any.

    See Also
    --------
    GSVPSVMCV : Chooses the number of features by cross-validation.
    LqGSVPSVM : The penalised problem, 0 < q <= 1, with a certificate.

    Examples
    --------
    >>> from sparsegsvp import GSVPSVM
    >>> from sparsegsvp.datasets import load_breast_cancer
    >>> data = load_breast_cancer()
    >>> model = GSVPSVM(n_features=3).fit(data.X, data.y)
    >>> [str(data.feature_names[f]) for f in model.feature_order_]
    ['worst concave points', 'worst radius', 'worst texture']
    >>> model.score(data.X, data.y) > 0.95
    True
    """

    n_features: int = 10
    _: KW_ONLY
    tau: float | None = None
    clip: float | None = 3.0
    max_correlation: float = 0.9
    penalty_factor: Any = None
    decision: str = "logistic"
    standardize: bool = True

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> GSVPSVM:
        """Select a panel and fit the decision.

        Parameters
        ----------
        X : array, CSR/CSC matrix, data frame or Dask collection of shape (n_samples, n_features)
            float32 and float64 are used without a copy. A Dask array, or a Dask data frame of
            numbers, is read chunk by chunk and never gathered.
        y : array of shape (n_samples,)
            Class labels, two or more.
        sample_weight : array of shape (n_samples,), default=None
            Non-negative weights; only their ratios matter, and a row of weight 0 is no row.

        """
        self.fit_with_path(X, y, (), sample_weight)
        return self

    def fit_with_path(
        self, X: Any, y: Any, sizes: Sequence[int], sample_weight: Any = None
    ) -> dict[int, GSVPSVM]:
        """Fit as `fit` does, and models of other sizes, as `fit_path` gives them."""
        models = self._models(sizes)
        table = self._read(X, y, sample_weight)
        forget_fit(self)
        self._fit_sizes(table, [self, *models.values()])
        return models

    def fit_path(
        self, X: Any, y: Any, sizes: Sequence[int], sample_weight: Any = None
    ) -> dict[int, GSVPSVM]:
        """Fit models of several sizes from one path: that of size k is ``GSVPSVM(k).fit``.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        sizes : sequence of int
            Numbers of features; those beyond the features that vary give all of them.

        Returns
        -------
        dict of int to GSVPSVM
            Models by size; this estimator itself is not fitted.
        """
        models = self._models(sizes)
        table = self._read(X, y, sample_weight)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "n_features=.* is more than", UserWarning)
            self._fit_sizes(table, list(models.values()))
        return models

    def _models(self, sizes: Sequence[int]) -> dict[int, GSVPSVM]:
        models = {}
        for size in sizes:
            check_integer("n_features", size, least=1)
            models[size] = clone(self).set_params(n_features=size)
        return models

    def _read(self, X: Any, y: Any, sample_weight: Any) -> Training:
        """Check the parameters and the rows, and take their covariances."""
        self._check_parameters()
        header = clone(self)  # is told names and number of features
        rows, classes, codes, weight = read_classes(X, y, sample_weight, estimator=header)
        names = getattr(header, "feature_names_in_", None)
        factor = penalty_factors(self.penalty_factor, rows.shape[1], names)
        covariances = Covariances(
            rows, codes, weight, len(classes), clip=self.clip, standardize=bool(self.standardize),
            sample=SAMPLE if self.decision in FITTED else 0,
        )  # fmt: skip
        return Training(classes, names, factor, covariances, rows, codes, weight)

    def _fit_sizes(self, table: Training, models: list[GSVPSVM]) -> None:
        """Fit models that differ in size alone; all share one path."""
        cov = table.covariances
        warn_constant(np.flatnonzero(~cov.varying[0]), table.names)
        size = attrgetter("n_features")
        least, most = size(min(models, key=size)), size(max(models, key=size))
        most = check_panel(most, cov.varying[0], table.factor, least)
        [path] = forward(
            cov, most, tau=self.tau, max_correlation=self.max_correlation,
            penalty_factor=table.factor,
        )  # fmt: skip
        for model in models:
            k = min(model.n_features, most)
            model.classes_, model.n_features_in_ = table.classes, len(table.factor)
            if table.names is not None:
                model.feature_names_in_ = np.asarray(table.names, dtype=object)
            order, center, scale = path.order[:k], path.center[:k], path.scale[:k]
            model._set_panel(
                order, cov.panel(order), int(cov.n_samples[0]), center, scale, cov.limits
            )
            model.feature_order_, model.tau_ = order, path.tau
            model.stand_ins_, model.quotients_ = path.stand_ins(k), path.quotients[1 : k + 1]
            model.pair_gains_ = -np.diff(path.pairs[: k + 1], axis=0)
            model.feature_importances_ = np.zeros(len(table.factor))
            model.feature_importances_[order] = model.pair_gains_.sum(axis=1)
            if model.decision_ == "discriminant":
                weights, offsets = path.scores(k)
                weights = weights[:, np.argsort(order)]
                if len(table.classes) == 2:
                    weights, offsets = weights[1:] - weights[:1], offsets[1:] - offsets[:1]
                model.panel_coef_, model.panel_intercept_ = weights, offsets

    def fit_moments(self, moments: ClassMoments) -> GSVPSVM:
        """Fit from per-class moments alone: no rows are needed, and none is clipped.

        Sites that cannot share rows share `ClassMoments`, whose sum gives the model of the pooled
        rows. That protects rows only as averages do: a class of few rows, or two sums that differ
        by one row, reveal them. A decision that needs rows becomes "discriminant".

        Parameters
        ----------
        moments : ClassMoments
            Of two classes or more, at least two rows each.
        """
        forget_fit(self)
        self._check_parameters()
        if not isinstance(moments, ClassMoments):
            raise ValueError(
                f"moments must be a ClassMoments, got {type(moments).__name__}: build one "
                "with ClassMoments.from_data"
            )
        check_class_sizes(moments.classes, moments.counts)
        names = moments.feature_names
        factor = penalty_factors(self.penalty_factor, moments.n_features, names)
        covariances = Covariances.of_moments(moments, bool(self.standardize))
        self._fit_sizes(Training(moments.classes, names, factor, covariances), [self])
        if self.decision_ != self.decision:
            warn_caller(
                f'moments hold no rows for decision="{self.decision}", so "discriminant" is '
                "used: pass it to be rid of this warning, or fit on rows"
            )
        return self

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> GSVPSVM:
        """Add a batch of rows to the moments seen so far, and fit to all of them.

        `fit` and `fit_moments` forget the batches. As in `fit_moments`, no row is clipped.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`, in memory.
        classes : array, default=None
            All labels that will come, needed at the first call if the first batch does
            not hold two rows of every class. The model is fitted once every class has two.
        """
        seen: ClassMoments | None = getattr(self, "moments_", None)
        # a batch that is refused leaves no trace, and can be sent again
        trial = clone(self)
        trial.__dict__.update(vars(self))
        if seen is None:  # of an earlier `fit`, and perhaps of other features
            forget_fit(trial)
        refuse_dask(X)
        X, y = validate_data(
            trial, X, y, reset=seen is None, accept_sparse=("csr", "csc"),
            dtype=(np.float64, np.float32),
        )  # fmt: skip
        check_classification_targets(y)
        known: Any = classes if seen is None else seen.classes
        batch = ClassMoments.from_data(X, y, sample_weight, classes=known)
        moments = replace(batch, feature_names=getattr(trial, "feature_names_in_", None))
        if seen is not None:
            moments = seen + moments
        elif classes is None:
            check_class_sizes(moments.classes, moments.counts)
        if len(moments.counts) >= 2 and (moments.counts >= 2).all():
            trial.fit_moments(moments)
        forget_fit(self)
        self.__dict__.update(trial.__dict__, moments_=moments)
        return self

    def _check_parameters(self) -> None:
        check_integer("n_features", self.n_features, least=1)
        check_choice("decision", self.decision, DECISIONS)
        check_real("max_correlation", self.max_correlation, above=0.0, most=1.0)
        for name in ("tau", "clip"):
            if getattr(self, name) is not None:
                check_real(name, getattr(self, name), least=0.0)
