"""`PanelClassifier`: a fitted panel with planes and a decision, whatever has selected it."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_feature_names, check_is_fitted, validate_data

from .._typing import Array, IntArray
from .._validate import first_few
from ..linalg.moments import Sample
from ..linalg.rows import Rows, is_dask, read_rows
from ..solvers.quotient import panel_planes
from .pipeline import SupportSelector

DECISIONS = ("logistic", "discriminant", "calibrated", "scaled", "distance")
FITTED = ("logistic", "calibrated")  # decisions that are fitted to rows
LINEAR = ("logistic", "discriminant")  # decisions that are linear in the panel's columns
PROBABILISTIC = ("logistic", "discriminant", "calibrated")  # decisions that have probabilities
SAMPLE = 20_000  # rows that a logistic regression is fitted on, at most

# Scaled distances below this are all "on the plane"; their logarithm must not run away.
_FLOOR = 0.05
# Inverse strength of the ridge, for two classes and for more (docs/panels.md).
_STRENGTH_PAIR, _STRENGTH_MANY = 0.3, 1.0
# Coefficients up to which the matrix of second derivatives is formed, which is exact and fast.
_FEW = 500
# The planes on a panel: floor on squared distances, share of the pooled spread.
TAU, POOL = 1.0, 0.5


def _has_probabilities(estimator: Any) -> bool:
    decision = getattr(estimator, "decision_", estimator.decision)
    if decision not in PROBABILISTIC:
        raise AttributeError(f'predict_proba needs decision="logistic", not {decision!r}')
    return True


class PanelClassifier(ClassifierMixin, SupportSelector, BaseEstimator):
    """A fitted panel: predicts from its columns alone, and selects them."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def distances(self, X: Any) -> Array:
        """Signed distance of each row to each plane, in standardised units.

        Parameters
        ----------
        X : array, sparse matrix, data frame or Dask collection of shape (n_samples, n_features)
            To a model of a data frame, one with the panel's columns in their order is enough.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            ``X @ planes_.T + plane_intercepts_``, values beyond ``limits_`` counting as the limit.
        """
        return self._panel_rows(X).map_rows(self._distances)

    def decision_function(self, X: Any) -> Array:
        """Confidence in each class (n_samples, n_classes), for X as in `distances`.

        For two classes (n_samples,), positive for ``classes_[1]``, zero where `predict` changes.
        """
        return self._panel_rows(X).map_rows(self._decide)

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row, for X as in `distances`."""
        decision = self.decision_function(X)
        winner = decision > 0.0 if decision.ndim == 1 else decision.argmax(axis=1)
        return self.classes_[winner.astype(np.intp)]

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Array:
        """Class probabilities (n_samples, n_classes), for equal priors and X as in `distances`.

        For a prevalence pi multiply the odds by pi / (1 - pi).
        """
        decision = self.decision_function(X)
        if decision.ndim == 1:
            return np.column_stack([expit(-decision), expit(decision)])
        return softmax(decision, axis=1)

    def transform(self, X: Any) -> Any:
        """The panel's columns, in the order of the table; of a Dask collection nothing is read."""
        check_is_fitted(self)
        assay = self._assay(X)
        if is_dask(X):
            return assay
        return super().transform(X) if assay is None else np.asarray(assay)

    def _panel_rows(self, X: Any) -> Rows:
        """The panel's columns of checked rows."""
        check_is_fitted(self)
        assay = self._assay(X)
        if assay is not None:
            return read_rows(assay, reset=False)
        return read_rows(X, estimator=self, reset=False).take(np.flatnonzero(self.support_))

    def _assay(self, X: Any) -> Any:
        """The panel's columns, in order, of a frame that has others, or of Dask's; else None."""
        names, given = getattr(self, "feature_names_in_", None), list(getattr(X, "columns", ()))
        if names is None or not given or given == names.tolist():
            return self._lazy_panel(X) if is_dask(X) else None
        panel = names[self.support_].tolist()
        known = set(panel)
        if [name for name in given if name in known] == panel:
            return X[panel]
        absent = sorted(known.difference(given))
        order = "put the panel's columns into this order"
        what = "columns of the panel are missing" if absent else order
        try:
            _check_feature_names(self, X._meta if is_dask(X) else X, reset=False)
        except ValueError as error:
            error.add_note(f"{what}: {first_few(absent or panel, 10)}")
            raise
        return None

    def _lazy_panel(self, X: Any) -> Any:
        """The panel's columns of a Dask array or frame of all features."""
        frame, panel = hasattr(X, "columns"), np.flatnonzero(self.support_)
        # names and number of features are known without reading
        validate_data(self, X._meta if frame else X, reset=False, skip_check_array=True)
        return X.iloc[:, panel] if frame else X[:, panel]

    def _distances(self, columns: Array) -> Array:
        planes = self.planes_[:, self.support_]
        return clip_values(columns, self.limits_) @ planes.T + self.plane_intercepts_

    def _decide(self, columns: Array) -> Array:
        """Decision in scikit-learn's form, of the panel's columns."""
        binary = len(self.classes_) == 2
        if self.decision_ in LINEAR:
            features = clip_values(columns, self.limits_)
        else:
            features = self._distances(columns)
            if self.decision_ in ("distance", "scaled"):
                near = -np.abs(features) / (self.scale_ if self.decision_ == "scaled" else 1.0)
                return near[:, 1] - near[:, 0] if binary else near
            features = log_distances(features, self.scale_)
        scores = features @ self.panel_coef_.T + self.panel_intercept_
        return scores[:, 0] if binary else scores

    def _set_panel(
        self,
        order: IntArray,
        data: Sample,
        n_samples: int,
        center: Array,
        scale: Array,
        limits: Array | None,
        planes: tuple[Array, Array] | None = None,
    ) -> None:
        """Set planes, unless given, and decision on features ``order``, as chosen.

        ``data`` is of the panel, sorted, in the units of X; its rows stand for ``n_samples``.
        Without any the decision is "discriminant".
        """
        place, n_classes, moments = np.argsort(order), len(self.classes_), data.moments
        panel, center, scale = order[place], center[place], scale[place]
        self.support_ = np.zeros(self.n_features_in_, dtype=bool)
        self.support_[panel] = True
        self.limits_ = None if limits is None else limits[:, panel]
        self.prior_ = np.full(n_classes, 1.0 / n_classes)
        covariances = moments.scatters / moments.weights[:, None, None]
        self.class_counts_ = moments.weights / moments.weights.sum() * moments.counts.sum()
        self.panel_means_ = moments.means
        self.panel_variances_ = np.einsum("kff->kf", covariances).copy()
        means = (moments.means - center) / scale
        covariances /= np.multiply.outer(scale, scale)
        w, b = planes or panel_planes(means, covariances, moments.weights, TAU, POOL)
        # variances and squared distances of the classes (columns) along the planes (rows)
        squares = np.einsum("if,kfg,ig->ik", w, covariances, w, optimize=True).clip(min=0.0)
        squares += (w @ means.T + b[:, None]) ** 2
        distance = np.sqrt(squares.mean(axis=1))
        self.scale_ = np.where(distance > 0.0, distance, 1.0)
        self.planes_ = np.zeros((n_classes, self.n_features_in_))
        self.planes_[:, panel] = w / scale
        self.plane_intercepts_ = b - (w / scale) @ center
        fitted = self.decision in FITTED
        self.decision_ = "discriminant" if fitted and not len(data.codes) else self.decision
        if self.decision_ not in FITTED:
            return
        features = (data.columns - center) / scale
        if self.decision == "calibrated":
            features = log_distances(features @ w.T + b, self.scale_)
        n_samples = min(n_samples, SAMPLE)
        coef, intercept = fit_logistic(features, data.codes, n_classes, data.weight, n_samples)
        if self.decision == "logistic":
            coef = coef / scale
            intercept = intercept - coef @ center
        self.panel_coef_, self.panel_intercept_ = coef, intercept

    @property
    def coef_(self) -> Array:
        """Coefficients on X, where the decision is linear in it: nothing is clipped."""
        coef = np.zeros((len(self.intercept_), self.n_features_in_))
        coef[:, self.support_] = self.panel_coef_
        return coef

    @property
    def intercept_(self) -> Array:
        """Their intercepts."""
        if getattr(self, "decision_", None) not in LINEAR or self.limits_ is not None:
            raise AttributeError("coef_ and intercept_ need a fit, a linear decision and clip=None")
        return self.panel_intercept_


def clip_values(columns: Array, limits: Array | None) -> Array:
    """Values moved into the limits (2, n_columns); a zero stays zero, as in training."""
    return columns if limits is None else np.where(columns == 0.0, 0.0, np.clip(columns, *limits))


def log_distances(distances: Array, scale: Array) -> Array:
    """Logarithm of each scaled distance, smoothly floored."""
    return np.log(np.hypot(distances / scale, _FLOOR))


def fit_logistic(
    features: Array, codes: IntArray, n_classes: int, weight: Array, n_samples: int
) -> tuple[Array, Array]:
    """Coefficients and intercepts of a ridge logistic regression on standardised features.

    Every class counts the same, so probabilities are for equal priors, and all of them together
    as ``n_samples`` rows, so that the scale of the weights and repeated rows change nothing.
    """
    totals = np.bincount(codes, weight, minlength=n_classes)
    balanced = weight * n_samples / (n_classes * totals[codes])
    few = features.shape[1] * (1 if n_classes == 2 else n_classes) <= _FEW
    model = LogisticRegression(
        C=_STRENGTH_PAIR if n_classes == 2 else _STRENGTH_MANY,
        solver="newton-cholesky" if few else "newton-cg",  # others end where rounding leads
        tol=1e-10,
        max_iter=200,
    )
    with config_context(skip_parameter_validation=True, assume_finite=True):
        model.fit(features, codes, sample_weight=balanced)
    return model.coef_, model.intercept_
