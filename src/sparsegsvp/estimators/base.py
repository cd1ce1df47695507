"""`PlaneClassifier`: fitted attributes, prediction and input checks of both estimators."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_feature_names,
    _check_sample_weight,
    _check_y,
    check_consistent_length,
    check_is_fitted,
)

from .._mixins import SupportSelector
from .._typing import BoolArray, Float64Array, IntArray
from .._validate import first_few, forget_fit
from ..linalg import Matrix
from ..linalg.matrix import in_memory, read_matrix
from ..metrics import BatchTies
from ..metrics.batches import batch_ties
from ..solvers.penalties import Penalty
from ..solvers.working_set import Solution
from .decision import Calibrator, margin, predicted_codes, probabilities, scores
from .planes import PlaneProblems, PlaneSettings, feature_order
from .refit import Planes, warn_about

# What tau and pool of `GSVPSVM` are by default, but on the path to a given number of features.
TAU, POOL = 1.0, 0.5


def _calibrates(estimator: Any) -> bool:
    decision = getattr(estimator, "decision_", estimator.decision)
    if decision == "calibrated" or (not isinstance(decision, str) and "calibrated" in decision):
        return True
    if estimator.decision == "calibrated":
        raise AttributeError(
            "there are no probabilities: the model was fitted from moments, which hold no rows "
            "to calibrate on. Call fit with rows"
        )
    raise AttributeError('predict_proba needs decision="calibrated"')


class PlaneClassifier(ClassifierMixin, SupportSelector, BaseEstimator):
    """A fitted set of planes: predicts, gives probabilities and selects features."""

    calibrator_: tuple[Float64Array, Float64Array] | None
    batch_audit_: dict[str, BatchTies]
    # for models that were saved before they had one
    penalty: str | Penalty | None = "l1"
    penalty_factor: Any = None
    feature_groups: Any = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def distances(self, X: Any) -> Float64Array:
        """Signed distance of each row to each plane, in standardised units.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            A Dask array or data frame is read once, chunk by chunk. To a model fitted on a
            data frame, one of other columns that holds the panel's is enough, in any order.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            ``X @ coef_.T + intercept_``, read off the selected columns alone.
        """
        check_is_fitted(self)
        assay = self._panel_columns(X)
        if assay is None:
            return self._distances(read_matrix(X, estimator=self, reset=False))
        matrix = read_matrix(assay)
        return self._distances(matrix, np.arange(matrix.shape[1]))

    def _distances(self, X: Matrix, columns: IntArray | None = None) -> Float64Array:
        """Distances of checked rows; ``columns`` says where the panel is, if not where it was."""
        panel = np.flatnonzero(self.support_)
        columns = panel if columns is None else columns
        return X.combine(columns, self.coef_[:, panel].T) + self.intercept_

    def _panel_columns(self, X: Any) -> Any:
        """`panel_columns`, refusing what scikit-learn's checks ask to refuse, in its words."""
        if set(getattr(X, "columns", ())) == set(getattr(self, "feature_names_in_", ())):
            return None  # in another order, which is refused where the rows are read
        try:
            return panel_columns(self, X)
        except ValueError as missing:
            try:
                _check_feature_names(self, X, reset=False)
            except ValueError as error:
                error.add_note(str(missing))
                raise error from None
            raise

    def decision_function(self, X: Any) -> Float64Array:
        """Confidence in each class.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            As in `distances`.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes positive for ``classes_[1]``, and zero where `predict` changes;
            otherwise one column per class.
        """
        distances = self.distances(X)
        decision = str(getattr(self, "decision_", self.decision))
        calibrator = self._calibrator() if decision == "calibrated" else None
        return margin(scores(distances, self.scale_, decision, calibrator))

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            As in `distances`.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        codes = predicted_codes(self.decision_function(X))
        return self.classes_[codes]

    @available_if(_calibrates)
    def predict_proba(self, X: Any) -> Float64Array:
        """Class probabilities, for equal class priors.

        For a prevalence pi multiply the odds by pi / (1 - pi).

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            As in `distances`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return probabilities(self.distances(X), self.scale_, self._calibrator())

    def _calibrator(self) -> Calibrator:
        if self.calibrator_ is None:
            raise ValueError('the model has no calibrator: fit it with decision="calibrated"')
        return Calibrator(*self.calibrator_)

    def _audit(
        self,
        batches: dict[str, NDArray[np.str_]],
        X: Matrix,
        codes: IntArray,
        groups: Any = None,
    ) -> None:
        """Ask what batches have to do with the labels and the panel; warn where it is too much."""
        if not batches:
            return
        columns = X.columns(np.flatnonzero(self.support_))
        panels = [np.arange(columns.shape[1])]
        groups = None if groups is None else np.asarray(groups)
        self.batch_audit_ = {
            name: batch_ties(name, values, columns, codes, self.classes_, groups, panels, seed=0)
            for name, values in batches.items()
        }
        for ties in self.batch_audit_.values():
            for notice in ties.notices():
                if notice.severity == "serious":
                    warnings.warn(notice.text, UserWarning, stacklevel=3)

    def _store(
        self, problems: PlaneProblems, solutions: Sequence[Solution], planes: Planes
    ) -> None:
        """Set the fitted attributes and warn of constant features and planes not as asked."""
        cov = problems.cov
        m = cov.means.shape[1]
        std = cov.standardization
        coef, intercept = planes.raw(std.center, std.inverse)
        self.coef_ = np.zeros((len(self.classes_), m))
        self.coef_[:, planes.panel] = coef
        self.intercept_ = intercept
        self.support_ = np.zeros(m, dtype=bool)
        self.support_[planes.panel] = True
        self.scale_ = planes.scale
        for name in ("recalibration_", "batch_audit_"):
            self.__dict__.pop(name, None)  # of an earlier fit, which `partial_fit` keeps until here
        # what other samples are held against, in the units of X
        panel = planes.panel
        self.class_counts_ = cov.share * cov.n_samples
        self.panel_means_ = std.center[panel] + cov.means[:, panel] * std.scale[panel]
        self.panel_variances_ = cov.variances[:, panel] * std.scale[panel] ** 2
        self.delta_ = np.array([solution.delta for solution in solutions])
        self.objective_ = np.array([solution.objective for solution in solutions])
        self.kkt_residual_ = np.array([solution.kkt_residual for solution in solutions])
        # a plane on the best single feature takes none, but finding it was one
        self.n_iter_ = max(1, max(solution.n_iter for solution in solutions))
        self.feature_order_ = feature_order(problems, solutions)
        labels = self.classes_.tolist()
        factors = problems.problems[0].weights
        _warn_constant(std.varying, factors, getattr(self, "feature_names_in_", None))
        warn_about(solutions, planes, labels)
        failed = [label for label, s in zip(labels, solutions) if not s.converged]
        if failed:
            warnings.warn(
                f"the certificate of the plane of class {failed[0]!r} is "
                f"{self.kkt_residual_.max():.2g} and not met: raise max_iter, tol or tau",
                ConvergenceWarning,
                stacklevel=4,
            )


def panel_columns(model: Any, X: Any) -> Any:
    """The panel's columns, in the model's order, of a data frame with other columns than its own.

    None where there is nothing to look up: X has the very columns the model was fitted on, is
    not a data frame or repeats a name, or the model knows no names.
    """
    names, given = getattr(model, "feature_names_in_", None), list(getattr(X, "columns", ()))
    if names is None or not given or not all(isinstance(name, str) for name in given):
        return None
    columns = set(given)
    if given == names.tolist() or len(columns) < len(given):
        return None
    panel = names[model.get_support()].tolist()
    absent = [name for name in panel if name not in columns]
    if absent:
        shown = ", ".join(map(repr, absent[:10])) + (" ..." if absent[10:] else "")
        raise ValueError(f"columns of the panel are missing: {shown}")
    return X[panel]


def make_settings(estimator: Any, penalty: Penalty, tau: Any, pool: Any) -> PlaneSettings:
    """The planes' settings from an estimator's parameters, checked.

    Where the number of features is given and tau or pool is not, the planes are refitted with
    what is the default otherwise.
    """
    to_size = estimator.n_features is not None
    return PlaneSettings(
        penalty=penalty,
        tau=tau,
        pool=pool,
        refit_tau=TAU if to_size and estimator.tau is None else None,
        refit_pool=POOL if to_size and estimator.pool is None else None,
        tol=estimator.tol,
        max_iter=estimator.max_iter,
        selection=estimator.selection,
        refit=bool(estimator.refit),
    )


def given_penalty(estimator: Any) -> Penalty | None:
    """The penalty an estimator was given as an object; None for "l1", that of q and eps."""
    given = estimator.penalty
    return None if isinstance(given, str) and given == "l1" else given


def validate_rows(
    estimator: Any, X: Any, y: Any, sample_weight: Any
) -> tuple[Matrix, IntArray, Float64Array | None]:
    """Checked rows, class codes and weights; sets ``classes_`` on the estimator, and that alone."""
    forget_fit(estimator)
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None"
        )
    y, sample_weight = in_memory(y), in_memory(sample_weight)
    matrix = read_matrix(X, estimator=estimator, ensure_min_samples=2)
    y = _check_y(y, estimator=estimator)
    check_consistent_length(np.broadcast_to(0.0, matrix.shape), y)
    check_classification_targets(y)
    matrix.check_values("X")
    classes, codes = np.unique(y, return_inverse=True)
    codes = codes.astype(np.intp)
    weight = None
    if sample_weight is not None:
        weight = _check_sample_weight(
            sample_weight, codes[:, None], dtype=np.float64, ensure_non_negative=True
        )
        weightless = np.bincount(codes, weight, minlength=len(classes)) == 0.0
        if weightless.any():
            raise ValueError(
                f"all samples of class {classes[weightless].tolist()[0]!r} have weight zero: "
                "drop the class or weigh it"
            )
    check_class_sizes(classes, np.bincount(codes))
    estimator.classes_ = classes
    return matrix, codes, weight


def check_class_sizes(classes: np.ndarray, counts: np.ndarray) -> None:
    """Refuse fewer than two classes, or fewer than two rows in one."""
    if len(classes) < 2:
        raise ValueError(
            f"the labels hold one class only ({classes.tolist()[0]!r}): "
            "a classifier needs at least two"
        )
    for label, count in zip(classes.tolist(), counts.tolist()):
        if count < 2:
            raise ValueError(
                f"class {label!r} has {'one sample' if count else 'no samples'}: every class "
                "needs at least two. Add samples or drop the class"
            )


def _warn_constant(varying: BoolArray, factors: Float64Array, names: np.ndarray | None) -> None:
    """Warn of constant features, by themselves of those that were to be in the panel."""
    for what, which in (
        ("constant feature(s) are left out", (factors > 0.0) & (factors < np.inf)),
        ("feature(s) of penalty_factor 0 are constant, so no plane can use them", factors == 0.0),
    ):
        constant = np.flatnonzero(~varying & which)
        if len(constant) == 0:
            continue
        shown = first_few(constant if names is None else (names[i] for i in constant))
        warnings.warn(f"{len(constant)} {what}: {shown}", UserWarning, stacklevel=5)
