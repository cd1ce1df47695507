"""`GSVPSVM`: a sparse panel and one plane per class, at a given penalty."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from .._typing import BoolArray, Float64Array, IntArray
from ..linalg import ClassMoments, Covariances, MomentCovariances, as_matrix
from ..linalg._checks import check_values
from ..solvers._api import make_covariances
from ..solvers._threads import one_blas_thread
from ..solvers.working_set import Solution
from ._decision import (
    DECISIONS,
    Calibrator,
    fit_calibrator,
    log_distances,
    margin,
    probabilities,
    scores,
)
from ._planes import PlaneProblems, Planes, Settings, feature_order, warn_about

# The path walked for `n_features`: fine enough that panels grow by few features a step.
_N_FEATURES_GRID = np.geomspace(1.0, 1e-3, 60)


def _calibrates(estimator: Any) -> bool:
    decision = getattr(estimator, "decision_", estimator.decision)
    if decision == "calibrated" or (not isinstance(decision, str) and "calibrated" in decision):
        return True
    raise AttributeError('predict_proba needs decision="calibrated"')


class PlaneClassifier(ClassifierMixin, SelectorMixin, BaseEstimator):
    """What a fitted set of planes can do: predict, give probabilities, select features."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    def distances(self, X: Any) -> Float64Array:
        """Signed distance of each row to each plane, in standardised units.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            ``X @ coef_.T + intercept_``, read off the selected columns alone.
        """
        check_is_fitted(self)
        X = validate_data(
            self,
            X,
            reset=False,
            accept_sparse=("csr", "csc"),
            dtype=(np.float64, np.float32),
        )
        panel = np.flatnonzero(self.support_)
        columns = X[:, panel]
        columns = columns.toarray() if sp.issparse(columns) else columns
        return columns.astype(np.float64) @ self.coef_[:, panel].T + self.intercept_

    def decision_function(self, X: Any) -> Float64Array:
        """Confidence in each class.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes positive for ``classes_[1]``, and zero where `predict` changes;
            otherwise one column per class.
        """
        return margin(self._scores(X))

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        found = margin(self._scores(X))
        codes = (found > 0.0).astype(np.intp) if found.ndim == 1 else found.argmax(axis=1)
        return self.classes_[codes]

    @available_if(_calibrates)
    def predict_proba(self, X: Any) -> Float64Array:
        """Class probabilities, for equal class priors.

        For a prevalence pi multiply the odds by pi / (1 - pi).

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return probabilities(self.distances(X), self.scale_, Calibrator(*self.calibrator_))

    def _scores(self, X: Any) -> Float64Array:
        distances = self.distances(X)
        calibrator = None if self.calibrator_ is None else Calibrator(*self.calibrator_)
        return scores(distances, self.scale_, self._decision(), calibrator)

    def _decision(self) -> str:
        return str(getattr(self, "decision_", self.decision))

    def _get_support_mask(self) -> BoolArray:
        check_is_fitted(self)
        return self.support_

    def _store(
        self,
        problems: PlaneProblems,
        solutions: Sequence[Solution],
        planes: Planes,
        names: np.ndarray | None,
    ) -> None:
        """Set the fitted attributes and warn of what a user should know."""
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
        self.delta_ = np.array([solution.delta for solution in solutions])
        self.objective_ = np.array([solution.objective for solution in solutions])
        self.kkt_residual_ = np.array([solution.kkt_residual for solution in solutions])
        self.n_iter_ = np.array([solution.n_iter for solution in solutions])
        self.feature_order_ = feature_order(problems, solutions)
        _warn_constant(std.varying, names)
        warn_about(solutions, planes, self.classes_.tolist())
        failed = [
            label for label, s in zip(self.classes_.tolist(), solutions) if not s.converged
        ]
        if failed:
            warnings.warn(
                f"the certificate of the plane of class {failed[0]!r} is "
                f"{self.kkt_residual_.max():.2g} and not met: raise max_iter, tol or tau",
                ConvergenceWarning,
                stacklevel=3,
            )


class GSVPSVM(PlaneClassifier):
    r"""Select a small panel of features and classify by the nearest of several planes.

    For each class i a unit normal w and bias b solve

    .. math::
        \min_{\|w\|_2 = 1,\, b} \frac{\mathrm{MSD}_i(w, b) + \tau}{\mathrm{MSD}_j(w, b) + \tau}
        + \delta \sum_f p(|w_f|)

    on standardised features, where MSD is the mean squared distance of a class to the
    plane with its spread shrunk toward the pooled one, and j stands for the other classes.
    The features selected by any plane form the panel, on which the planes are refitted
    without a penalty.

    Parameters
    ----------
    q : float, default=1.0
        Exponent of the penalty: ``p(t) = t`` for 1, ``(t + eps)^q - eps^q`` below.
    delta : float or sequence of float, default=0.1
        Strength of the penalty, positive, for all planes or one per class.
    tau : float, default=1.0
        Floor on squared distances, in units of a feature's variance. It keeps the problem
        well posed when there are more features than samples.
    pool : float, default=0.5
        How far each class's spread is shrunk toward the pooled one, from 0 (the
        generalized singular value problem) to 1 (for two classes, sparse Fisher
        discrimination).
    n_features : int, optional
        Use the least penalised solution whose panel has at most this many features,
        instead of `delta`.
    selection : {"nonzero", "elbow"}, default="nonzero"
        Features a plane selects: all that are not zero, or those up to the elbow of its
        sorted weights.
    refit : bool, default=True
        Whether the planes are refitted on the panel without a penalty.
    decision : {"calibrated", "scaled", "distance"}, default="calibrated"
        "distance" takes the nearest plane; "scaled" divides distances by their
        class-balanced root mean square first; "calibrated" is a logistic regression on
        the logarithms of the scaled distances.
    standardize : bool, default=True
        Whether features are scaled to unit variance. They are never copied for that.
    eps : float, default=1e-3
        Smoothing of the penalty for q < 1.
    tol : float, default=1e-6
        Tolerance on the certificate, relative to the largest useful delta.
    max_iter : int, default=1000
        Largest number of iterations of each plane at each delta.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    coef_, intercept_ : ndarrays of shape (n_classes, n_features) and (n_classes,)
        The planes, in the units of X. ``X @ coef_.T + intercept_`` are distances in
        standardised units.
    support_ : ndarray of bool of shape (n_features,)
        The panel.
    feature_order_ : ndarray of int of shape (n_features,)
        All features, most important first.
    delta_ : ndarray of shape (n_classes,)
        Penalty used for each plane.
    objective_, kkt_residual_, n_iter_ : ndarrays of shape (n_classes,)
        Of the penalised solutions: objective, largest violation of stationarity,
        iterations.
    scale_ : ndarray of shape (n_classes,)
        Class-balanced root mean square distance of the training rows to each plane.
    calibrator_ : tuple of ndarray or None
        For ``decision="calibrated"``: coefficients and intercepts of the logistic
        regression on the logarithms of the scaled distances.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    See Also
    --------
    GSVPSVMCV : Chooses the penalty by cross-validation.

    Notes
    -----
    The calibrator is fitted on the training distances, which is over-confident when there
    are many more features than samples; `GSVPSVMCV` uses out-of-fold distances.
    Probabilities are for equal class priors.

    Examples
    --------
    >>> from sparsegsvp import GSVPSVM
    >>> from sparsegsvp.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = GSVPSVM(n_features=5).fit(X, y)
    >>> int(model.support_.sum())
    5
    >>> model.score(X, y) > 0.93
    True
    """

    def __init__(
        self,
        q: float = 1.0,
        delta: float | Sequence[float] = 0.1,
        tau: float = 1.0,
        pool: float = 0.5,
        n_features: int | None = None,
        selection: str = "nonzero",
        refit: bool = True,
        decision: str = "calibrated",
        standardize: bool = True,
        eps: float = 1e-3,
        tol: float = 1e-6,
        max_iter: int = 1000,
    ) -> None:
        self.q = q
        self.delta = delta
        self.tau = tau
        self.pool = pool
        self.n_features = n_features
        self.selection = selection
        self.refit = refit
        self.decision = decision
        self.standardize = standardize
        self.eps = eps
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> GSVPSVM:
        """Select a panel and fit the planes.

        Parameters
        ----------
        X : array or CSR/CSC matrix of shape (n_samples, n_features)
            float32 and float64 are used as they are, without a copy.
        y : array of shape (n_samples,)
            Class labels, two or more.
        sample_weight : array of shape (n_samples,), optional
            Non-negative weights.

        Returns
        -------
        GSVPSVM
            The fitted estimator.
        """
        if self.decision not in DECISIONS:
            raise ValueError(f"decision must be one of {DECISIONS}, got {self.decision!r}")
        X, codes, weight = validate_rows(self, X, y, sample_weight)
        with one_blas_thread():
            cov = make_covariances(
                as_matrix(X), codes, weight, len(self.classes_), standardize=self.standardize
            )
            self._solve(cov)
            self.calibrator_ = None
            if self.decision == "calibrated":
                features = log_distances(self.distances(X), self.scale_)
                found = fit_calibrator(features, codes, len(self.classes_), weight)
                self.calibrator_ = (found.coef, found.intercept)
        return self

    def fit_moments(self, moments: ClassMoments) -> GSVPSVM:
        """Fit from per-class moments alone: no rows are needed.

        Sites that cannot share rows share `ClassMoments`, whose sum gives the model of
        the pooled rows. That protects single rows only as far as averages do: a class of
        few rows, or two sums that differ by one row, reveal them.

        Parameters
        ----------
        moments : ClassMoments
            Of two classes or more, at least two rows each.

        Returns
        -------
        GSVPSVM
            The fitted estimator.
        """
        self._check_without_rows("fit_moments")
        if not isinstance(moments, ClassMoments):
            raise ValueError(
                f"moments must be a ClassMoments, got {type(moments).__name__}: build one "
                "with ClassMoments.from_data"
            )
        check_class_sizes(moments.classes, moments.counts)
        self.classes_ = moments.classes
        self.n_features_in_ = moments.n_features
        if moments.feature_names is not None:
            self.feature_names_in_ = np.asarray(moments.feature_names, dtype=object)
        with one_blas_thread():
            self._solve(MomentCovariances(moments, self.standardize))
        self.calibrator_ = None
        return self

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> GSVPSVM:
        """Add a batch of rows to the moments seen so far, and fit to all of them.

        Parameters
        ----------
        X : array or CSR/CSC matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        classes : array, optional
            All labels that will come, needed at the first call if the first batch does
            not hold two rows of every class.
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        GSVPSVM
            Fitted once every class has two rows.
        """
        self._check_without_rows("partial_fit")
        first = not hasattr(self, "moments_")
        X, y = validate_data(
            self,
            X,
            y,
            reset=first,
            accept_sparse=("csr", "csc"),
            dtype=(np.float64, np.float32),
        )
        check_classification_targets(y)
        known = classes if first else self.moments_.classes
        batch = ClassMoments.from_data(X, y, sample_weight, classes=known)
        moments = batch if first else self.moments_ + batch
        if first and classes is None:
            check_class_sizes(moments.classes, moments.counts)
        self.moments_ = moments
        if len(moments.counts) >= 2 and (moments.counts >= 2).all():
            names = getattr(self, "feature_names_in_", None)
            self.fit_moments(moments)
            if names is not None:
                self.feature_names_in_ = names
        return self

    def _check_without_rows(self, name: str) -> None:
        if self.decision not in DECISIONS or self.decision == "calibrated":
            raise ValueError(
                f'{name} sees no rows to calibrate on: use decision="scaled" or '
                f'"distance", got {self.decision!r}'
            )

    def _solve(self, cov: Covariances) -> None:
        settings = check_settings(self)
        m = cov.means.shape[1]
        check_panel_size(self.n_features, m)
        if not cov.standardization.varying.any():
            raise ValueError("all features are constant: there is nothing to select from")
        problems = PlaneProblems(cov, settings)
        if self.n_features is None:
            deltas = self._deltas(len(cov.share))
            if (deltas == 0.0).any():
                raise ValueError(
                    "delta must be positive: with delta = 0 every feature is kept. Use a "
                    "small delta, or sparse_gsvp for the exact unpenalised solution"
                )
            solutions = problems.at(deltas)
            panel = problems.select(solutions)
        else:
            solutions, panel = _at_most(problems, int(self.n_features))
        planes = problems.planes(solutions, panel)
        self._store(problems, solutions, planes, getattr(self, "feature_names_in_", None))

    def _deltas(self, n_classes: int) -> Float64Array:
        deltas = np.atleast_1d(np.asarray(self.delta, dtype=np.float64))
        if deltas.shape not in ((1,), (n_classes,)) or not np.isfinite(deltas).all():
            raise ValueError(
                f"delta must be one number or one per class ({n_classes}), got {self.delta!r}"
            )
        if (deltas < 0.0).any():
            raise ValueError(f"delta must not be negative, got {self.delta!r}")
        return np.broadcast_to(deltas, (n_classes,))


def _at_most(problems: PlaneProblems, k: int) -> tuple[list[Solution], IntArray]:
    """The least penalised solutions on the path whose panel has at most k features."""
    best: tuple[list[Solution], IntArray] | None = None
    for _, solutions in problems.walk(_N_FEATURES_GRID):
        panel = problems.select(solutions)
        if len(panel) > k:
            # even the first may have more, one feature of each plane
            return best or (solutions, problems.heaviest(solutions, panel, k))
        best = (solutions, panel)
    assert best is not None
    return best


def check_settings(estimator: Any) -> Settings:
    """The solver's settings of an estimator, checked."""
    for name, low, high in (("tau", 0.0, np.inf), ("pool", 0.0, 1.0), ("tol", 0.0, np.inf)):
        value = getattr(estimator, name)
        if not (np.isscalar(value) and np.isfinite(value) and low <= value <= high):
            bound = f"in [{low:g}, {high:g}]" if np.isfinite(high) else f"at least {low:g}"
            raise ValueError(f"{name} must be a number {bound}, got {value!r}")
    if estimator.selection not in ("nonzero", "elbow"):
        raise ValueError(
            f'selection must be "nonzero" or "elbow", got {estimator.selection!r}'
        )
    return Settings(
        q=float(estimator.q),
        tau=float(estimator.tau),
        pool=float(estimator.pool),
        eps=float(estimator.eps),
        tol=float(estimator.tol),
        max_iter=int(estimator.max_iter),
        selection=estimator.selection,
        refit=bool(estimator.refit),
    )


def check_panel_size(n_features: Any, available: int) -> None:
    """Refuse a panel that is empty or larger than the table."""
    if n_features is None:
        return
    if not isinstance(n_features, int | np.integer) or n_features < 1:
        raise ValueError(f"n_features must be a positive integer or None, got {n_features!r}")
    if n_features > available:
        raise ValueError(
            f"n_features={n_features} asks for more features than the {available} there are"
        )


def validate_rows(
    estimator: Any, X: Any, y: Any, sample_weight: Any
) -> tuple[Any, IntArray, Float64Array | None]:
    """Checked rows, class codes and weights; sets ``classes_`` on the estimator."""
    X, y = validate_data(
        estimator,
        X,
        y,
        accept_sparse=("csr", "csc"),
        dtype=(np.float64, np.float32),
        ensure_min_samples=2,
    )
    check_classification_targets(y)
    check_values(as_matrix(X), "X")
    classes, codes = np.unique(y, return_inverse=True)
    codes = codes.astype(np.intp)
    weight = None
    if sample_weight is not None:
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    rows = np.ones(len(codes)) if weight is None else weight
    check_class_sizes(classes, np.bincount(codes, rows > 0, minlength=len(classes)))
    estimator.classes_ = classes
    return X, codes, weight


def check_class_sizes(classes: np.ndarray, counts: np.ndarray) -> None:
    """Refuse fewer than two classes, or fewer than two rows in one."""
    if len(classes) < 2:
        raise ValueError(
            f"the labels hold one class only ({classes.tolist()[0]!r}): "
            "a classifier needs at least two"
        )
    small = np.flatnonzero(np.asarray(counts) < 2)
    if len(small):
        raise ValueError(
            f"class {classes[small[0]]!r} has {int(counts[small[0]])} samples of positive "
            "weight: every class needs at least two. Add samples or drop the class"
        )


def _warn_constant(varying: BoolArray, names: np.ndarray | None) -> None:
    constant = np.flatnonzero(~varying)
    if len(constant) == 0:
        return
    shown = [str(names[i]) if names is not None else str(i) for i in constant[:5]]
    more = f" and {len(constant) - 5} more" if len(constant) > 5 else ""
    warnings.warn(
        f"{len(constant)} constant feature(s) are left out: {', '.join(shown)}{more}",
        UserWarning,
        stacklevel=4,
    )
