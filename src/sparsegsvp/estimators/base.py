"""`PanelClassifier`: what a fitted panel with planes does, whatever has selected it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_feature_names, check_is_fitted, validate_data

from .._typing import Float64Array, IntArray
from .._validate import first_few
from ..linalg.moments import ClassMoments
from ..linalg.rows import Rows, is_dask, read_rows, repetitions
from ..solvers.exact import panel_planes
from .decision import (
    LINEAR,
    PROBABILISTIC,
    SAMPLE,
    fit_logistic,
    log_distances,
    margins,
    probabilities,
    read_panel,
    winners,
)
from .pipeline import SupportSelector

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

    def distances(self, X: Any) -> Float64Array:
        """Signed distance of each row to each plane, in standardised units.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            A Dask array or data frame is read once, chunk by chunk. To a model fitted on a data
            frame, one that holds the panel's columns in their order is enough.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            ``X @ planes_.T + plane_intercepts_``, read off the selected columns alone; values
            beyond ``limits_`` count as the limit.
        """
        return self._panel_rows(X).map_rows(self._distances)

    def decision_function(self, X: Any) -> Float64Array:
        """Confidence in each class, for X as in `distances`.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes positive for ``classes_[1]``, and zero where `predict` changes;
            otherwise one column per class.
        """
        return self._panel_rows(X).map_rows(self._decide)

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row, for X as in `distances`."""
        decision = self.decision_function(X)
        return self.classes_[winners(decision)]

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Float64Array:
        """Class probabilities (n_samples, n_classes), for equal priors and X as in `distances`.

        For a prevalence pi multiply the odds by pi / (1 - pi).
        """
        return probabilities(self.decision_function(X))

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
        """The panel's columns of a data frame with other columns than the model's; else None.

        They must be in the model's order: all columns in another order are refused by
        scikit-learn, so some of them are as well. Of Dask collections always, with nothing read.
        """
        names, given = getattr(self, "feature_names_in_", None), list(getattr(X, "columns", ()))
        if names is None or not given or given == names.tolist():
            return self._lazy_panel(X) if is_dask(X) else None
        panel = names[self.support_].tolist()
        known = set(panel)
        if [name for name in given if name in known] == panel:
            return X[panel]
        absent = known.difference(given)
        try:
            _check_feature_names(self, X._meta if is_dask(X) else X, reset=False)
        except ValueError as error:
            if absent:
                error.add_note(f"columns of the panel are missing: {first_few(sorted(absent), 10)}")
            else:
                error.add_note(f"put the panel's columns into this order: {first_few(panel, 10)}")
            raise
        return None

    def _lazy_panel(self, X: Any) -> Any:
        """The panel's columns of a Dask array or frame of all features."""
        frame, panel = hasattr(X, "columns"), np.flatnonzero(self.support_)
        # names and number of features are known without reading
        validate_data(self, X._meta if frame else X, reset=False, skip_check_array=True)
        return X.iloc[:, panel] if frame else X[:, panel]

    def _distances(self, columns: Float64Array) -> Float64Array:
        planes = self.planes_[:, self.support_]
        return clip_values(columns, self.limits_) @ planes.T + self.plane_intercepts_

    def _decide(self, columns: Float64Array) -> Float64Array:
        """Decision in scikit-learn's form, of the panel's columns."""
        if self.decision_ in LINEAR:
            features = clip_values(columns, self.limits_)
        else:
            features = self._distances(columns)
            if self.decision_ in ("distance", "scaled"):
                unit = self.scale_ if self.decision_ == "scaled" else 1.0
                return margins(-np.abs(features) / unit)
            features = log_distances(features, self.scale_)
        scores = features @ self.panel_coef_.T + self.panel_intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def _set_panel(
        self,
        order: IntArray,
        rows: Rows,
        codes: IntArray,
        weight: Float64Array,
        center: Float64Array,
        scale: Float64Array,
        limits: Float64Array | None,
        planes: tuple[Float64Array, Float64Array] | None = None,
    ) -> None:
        """Set planes and decision on a panel, from rows as they were clipped.

        ``order`` are its features as they were chosen, with their ``center`` and ``scale``;
        ``limits`` are those of all features, and ``planes`` as in `_set_planes`.
        """
        place, n_classes = np.argsort(order), len(self.classes_)
        panel, center, scale = order[place], center[place], scale[place]
        fitted = self.decision in ("logistic", "calibrated")
        moments, columns, codes_, weight_ = read_panel(
            rows.take(panel), codes, weight, n_classes, SAMPLE if fitted else 0, center,
            np.cos(1.0 + place) / scale,
        )  # fmt: skip
        self._set_planes(panel, moments, center, scale, limits, planes)
        self.decision_ = self.decision
        if not fitted:
            return
        features = (columns - center) / scale
        if self.decision == "calibrated":
            normals = self.planes_[:, panel]
            features = log_distances(columns @ normals.T + self.plane_intercepts_, self.scale_)
        n_samples = min(int(repetitions(weight).sum()), SAMPLE)
        coef, intercept = fit_logistic(features, codes_, n_classes, weight_, n_samples)
        if self.decision == "logistic":
            coef = coef / scale
            intercept = intercept - coef @ center
        self.panel_coef_, self.panel_intercept_ = coef, intercept

    def _set_planes(
        self,
        panel: IntArray,
        moments: ClassMoments,
        center: Float64Array,
        scale: Float64Array,
        limits: Float64Array | None,
        planes: tuple[Float64Array, Float64Array] | None = None,
    ) -> None:
        """Set the planes on a panel (sorted), from its class moments in the units of X.

        ``planes`` are what `panel_planes` returns, where they are known already.
        """
        n_classes, m = len(self.classes_), self.n_features_in_
        self.support_ = np.zeros(m, dtype=bool)
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
        self.planes_ = np.zeros((n_classes, m))
        self.planes_[:, panel] = w / scale
        self.plane_intercepts_ = b - (w / scale) @ center

    @property
    def coef_(self) -> Float64Array:
        """Coefficients on X, where the decision is linear in it: nothing is clipped."""
        coef = np.zeros((len(self.intercept_), self.n_features_in_))
        coef[:, self.support_] = self.panel_coef_
        return coef

    @property
    def intercept_(self) -> Float64Array:
        """Their intercepts."""
        if getattr(self, "decision_", None) not in LINEAR or self.limits_ is not None:
            raise AttributeError("coef_ and intercept_ need a fit, a linear decision and clip=None")
        return self.panel_intercept_


def clip_values(columns: Float64Array, limits: Float64Array | None) -> Float64Array:
    """Values moved into the limits (2, n_columns); a zero stays zero, as in training."""
    return columns if limits is None else np.where(columns == 0.0, 0.0, np.clip(columns, *limits))
