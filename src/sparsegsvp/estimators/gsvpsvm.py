"""`GSVPSVM`: a sparse panel and one plane per class, at a given penalty."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from .._parallel import one_thread
from .._typing import Float64Array
from .._validate import check_choice, check_integer, forget_fit
from ..linalg import ClassMoments, Covariances, MomentCovariances
from ..linalg.covariances import make_covariances
from ..linalg.matrix import in_memory
from ..metrics.batches import check_batches
from ..solvers.penalties import Penalty, make_penalty
from .base import (
    POOL,
    TAU,
    PlaneClassifier,
    check_class_sizes,
    given_penalty,
    make_settings,
    validate_rows,
)
from .decision import DECISIONS, SAMPLE, balanced_sample, fit_calibrator, log_distances
from .groups import Steering
from .planes import (
    POOL_FOR_SIZE,
    PlaneProblems,
    PlaneSettings,
    paths_to_sizes,
    tau_for_size,
)


class GSVPSVM(PlaneClassifier):
    r"""Select a small panel of features and classify by the nearest of several planes.

    For each class i a unit normal w and bias b solve

    .. math::
        \min_{\|w\|_2 = 1,\, b} \frac{\mathrm{MSD}_i(w, b) + \tau}{\mathrm{MSD}_j(w, b) + \tau}
        + \delta \sum_f l_f\, p(|w_f|)

    on standardised features. MSD is the mean squared distance of a class to the plane, with its
    spread shrunk toward the pooled one; j stands for the other classes; the factors :math:`l_f`
    are 1 unless `penalty_factor` says otherwise. The features of all planes form the panel, on
    which the planes are refitted without a penalty.

    Parameters
    ----------
    q : float, default=1.0
        Exponent of the penalty: ``p(t) = t`` for 1, ``(t + eps)^q - eps^q`` below.
    delta : float or sequence of float, default=0.1
        Strength of the penalty, positive, for all planes or one per class.
    tau : float, default=None
        Floor on squared distances, in units of a feature's variance, which keeps the problem
        well posed with more features than samples. None stands for 1.
    pool : float, default=None
        How far each class's spread is shrunk toward the pooled one, from 0 (the generalized
        singular value problem) to 1 (for two classes, sparse Fisher discrimination). None stands
        for 0.5.
    n_features : int, default=None
        Select exactly this many features (all that vary, if fewer) instead of those at `delta`:
        the heaviest of the first point on the path that has half as many again. Unless `tau` and
        `pool` are given, that path has ``tau = max(3, n_features)`` and ``pool = 1``, which
        selects the same features more often from other samples; the planes are then refitted
        with 1 and 0.5. `selection` is not used.
    selection : {"nonzero", "elbow"}, default="nonzero"
        Whether a plane selects all features with a weight, or those up to the elbow of its sorted
        weights.
    refit : bool, default=True
        Whether the planes are refitted on the panel without a penalty.
    decision : {"calibrated", "scaled", "distance"}, default="calibrated"
        "distance" takes the nearest plane; "scaled" divides distances by their class-balanced root
        mean square first; "calibrated" is a logistic regression on the logarithms of the scaled
        distances, and alone has probabilities. It needs rows: `partial_fit` and `fit_moments` warn
        and use "scaled" instead.
    standardize : bool, default=True
        Whether features are scaled to unit variance, without a copy.
    eps : float, default=1e-3
        Smoothing of the penalty for q < 1.
    tol : float, default=1e-6
        Tolerance on the certificate, relative to the largest useful delta.
    max_iter : int, default=1000
        Largest number of iterations of each plane at each delta.
    penalty : "l1", L1, Lq or an object like them, default="l1"
        The penalty p. "l1" is that of `q` and `eps`, the name by which ``SelectFromModel`` knows
        to keep all features with a weight; for an object see `sparse_gsvp`.
    penalty_factor : array of shape (n_features_in_,) or mapping, default=None
        A factor of each feature's penalty, or of some by name where X has names, the others being
        1: 0 for features that are always in the panel, infinity for those that never are, a cost
        for those that may be. Features of factor 0 count among `n_features`. A constant feature
        is left out all the same, with a warning.
    feature_groups : array of shape (n_features_in_,) or mapping, default=None
        A label of each feature, or of some by name where X has names; None for features that go by
        themselves. Features of one label, such as the levels of a category, are in the panel
        together or not at all, and count as one among `n_features`. The penalty knows nothing of
        groups: once a feature is selected the others of its label join the panel, where the planes
        are refitted exactly; with ``refit=False`` they have no weight there, nor has a constant
        one. The certificate is that of the penalised planes. A `penalty_factor` of 0 or infinity
        holds for the whole group.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    coef_, intercept_ : ndarrays of shape (n_classes, n_features) and (n_classes,)
        The planes in the units of X: ``X @ coef_.T + intercept_`` are distances in standardised
        units.
    support_ : ndarray of bool of shape (n_features,)
        The panel.
    feature_order_ : ndarray of int of shape (n_features,)
        All features, most important first; those of `penalty_factor` 0 before all others, those
        of infinity after them.
    delta_ : ndarray of shape (n_classes,)
        Penalty used for each plane.
    objective_, kkt_residual_ : ndarrays of shape (n_classes,)
        Objective and largest violation of stationarity of the penalised solutions.
    n_iter_ : int
        Iterations of the plane that took the most.
    scale_ : ndarray of shape (n_classes,)
        Class-balanced root mean square distance of the training rows to each plane.
    class_counts_ : ndarray of shape (n_classes,)
        Training rows of each class; with sample weights, its share of them.
    panel_means_, panel_variances_ : ndarrays of shape (n_classes, n_selected)
        Mean and variance of the selected features in each class, in the units of X.
    decision_ : str
        The decision in use.
    calibrator_ : tuple of ndarray or None
        For ``decision_="calibrated"``, coefficients and intercepts of its logistic regression.
    batch_audit_ : dict of str to BatchTies
        After a fit with `batch`: what each variable has to do with labels and panel.
    moments_ : ClassMoments
        After `partial_fit`: the moments of all batches so far.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Their names, where X has any.

    See Also
    --------
    GSVPSVMCV : Chooses the penalty by cross-validation.

    Notes
    -----
    The calibrator is fitted on the training distances, which is over-confident with many more
    features than samples; `GSVPSVMCV` uses out-of-fold distances. Probabilities are for equal
    class priors.

    The estimator is a selector itself (`transform`, `get_support`). ``SelectFromModel`` keeps the
    same features, unless their spread exceeds some 1e4: it drops sizes of ``coef_`` below 1e-5, in
    the units of X. Give it a smaller threshold then, as with a penalty object.

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

    The same number of features, among them two that are asked for:

    >>> factors = [0, 0] + 28 * [1]
    >>> model = GSVPSVM(n_features=5, penalty_factor=factors).fit(X, y)
    >>> model.support_[:2].tolist(), int(model.support_.sum())
    ([True, True], 5)
    """

    def __init__(
        self,
        q: float = 1.0,
        delta: float | Sequence[float] = 0.1,
        tau: float | None = None,
        pool: float | None = None,
        n_features: int | None = None,
        selection: str = "nonzero",
        refit: bool = True,
        decision: str = "calibrated",
        standardize: bool = True,
        eps: float = 1e-3,
        tol: float = 1e-6,
        max_iter: int = 1000,
        penalty: str | Penalty = "l1",
        penalty_factor: Any = None,
        feature_groups: Any = None,
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
        self.penalty = penalty
        self.penalty_factor = penalty_factor
        self.feature_groups = feature_groups

    __metadata_request__fit = {"batch": True}  # noqa: RUF012

    def fit(self, X: Any, y: Any, sample_weight: Any = None, batch: Any = None) -> GSVPSVM:
        """Select a panel and fit the planes.

        Parameters
        ----------
        X : array or CSR/CSC matrix of shape (n_samples, n_features)
            float32 and float64 are used without a copy. A Dask array, or a Dask data frame of
            numbers, is read chunk by chunk and never gathered.
        y : array of shape (n_samples,)
            Class labels, two or more.
        sample_weight : array of shape (n_samples,), default=None
            Non-negative weights.
        batch : array-like, data frame or mapping from name to array-like, default=None
            Where or when each row was measured, by one variable or several. The fit does not
            depend on it: `batch_audit_` says whether the labels can be told from the batches
            alone, and the batches from the panel; a warning, whether labels and batches are nearly
            the same. Requested by default under scikit-learn's metadata routing.

        Returns
        -------
        self : GSVPSVM
            The fitted estimator.
        """
        settings = self._check_parameters()
        matrix, codes, weight = validate_rows(self, X, y, sample_weight)
        names = getattr(self, "feature_names_in_", None)
        settings = Steering.of(self, matrix.shape[1], names).applied(settings)
        batches = check_batches(in_memory(batch), len(codes))
        with one_thread():
            cov = make_covariances(
                matrix, codes, weight, len(self.classes_), standardize=bool(self.standardize)
            )
            self._solve(cov, settings)
            self.decision_ = self.decision
            if self.decision == "calibrated":
                sample = balanced_sample(codes, SAMPLE, seed=0)
                features = log_distances(self._distances(matrix)[sample], self.scale_)
                sample_weight = None if weight is None else weight[sample]
                found = fit_calibrator(features, codes[sample], len(self.classes_), sample_weight)
                self.calibrator_ = (found.coef, found.intercept)
            self._audit(batches, matrix, codes)
        return self

    def fit_moments(self, moments: ClassMoments) -> GSVPSVM:
        """Fit from per-class moments alone: no rows are needed.

        Sites that cannot share rows share `ClassMoments`, whose sum gives the model of the pooled
        rows. That protects single rows only as far as averages do: a class of few rows, or two
        sums that differ by one row, reveal them. ``decision="calibrated"`` becomes "scaled".

        Parameters
        ----------
        moments : ClassMoments
            Of two classes or more, at least two rows each.

        Returns
        -------
        self : GSVPSVM
            The fitted estimator.
        """
        forget_fit(self)
        self._fit_moments(moments)
        return self

    def _fit_moments(self, moments: ClassMoments) -> None:
        settings = self._check_parameters()
        if not isinstance(moments, ClassMoments):
            raise ValueError(
                f"moments must be a ClassMoments, got {type(moments).__name__}: build one "
                "with ClassMoments.from_data"
            )
        check_class_sizes(moments.classes, moments.counts)
        steering = Steering.of(self, moments.n_features, moments.feature_names)
        settings = steering.applied(settings)
        self.classes_ = moments.classes
        self.n_features_in_ = moments.n_features
        if moments.feature_names is not None:
            self.feature_names_in_ = np.asarray(moments.feature_names, dtype=object)
        with one_thread():
            self._solve(MomentCovariances(moments, bool(self.standardize)), settings)
        self.decision_ = self.decision
        if self.decision == "calibrated":
            self.decision_ = "scaled"
            warnings.warn(
                'moments hold no rows to calibrate on, so decision="scaled" is used, which has '
                "no probabilities: pass it to be rid of this warning, or fit on rows",
                UserWarning,
                stacklevel=3,
            )

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> GSVPSVM:
        """Add a batch of rows to the moments seen so far, and fit to all of them.

        `fit` and `fit_moments` forget the batches. As in `fit_moments`, there are no
        probabilities.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`, in memory.
        classes : array, default=None
            All labels that will come, needed at the first call if the first batch does
            not hold two rows of every class.

        Returns
        -------
        self : GSVPSVM
            Fitted once every class has two rows.
        """
        seen: ClassMoments | None = getattr(self, "moments_", None)
        # a batch that is refused leaves no trace, and can be sent again
        trial = copy(self)
        if seen is None:  # of an earlier `fit`, and perhaps of other features
            forget_fit(trial)
        X, y = validate_data(
            trial,
            X,
            y,
            reset=seen is None,
            accept_sparse=("csr", "csc"),
            dtype=(np.float64, np.float32),
        )
        check_classification_targets(y)
        known: Any = classes if seen is None else seen.classes
        batch = ClassMoments.from_data(X, y, sample_weight, classes=known)
        moments = replace(batch, feature_names=getattr(trial, "feature_names_in_", None))
        if seen is not None:
            moments = seen + moments
        elif classes is None:
            check_class_sizes(moments.classes, moments.counts)
        if len(moments.counts) >= 2 and (moments.counts >= 2).all():
            trial._fit_moments(moments)
        forget_fit(self)
        self.__dict__.update(trial.__dict__, moments_=moments)
        return self

    def _check_parameters(self) -> PlaneSettings:
        check_choice("decision", self.decision, DECISIONS)
        penalty = make_penalty(self.q, self.eps, given_penalty(self))
        tau, pool = TAU, POOL
        if self.n_features is not None:
            check_integer("n_features", self.n_features, least=1)
            tau, pool = tau_for_size(int(self.n_features)), POOL_FOR_SIZE
        return make_settings(
            self,
            penalty,
            tau if self.tau is None else self.tau,
            pool if self.pool is None else self.pool,
        )

    def _solve(self, cov: Covariances, settings: PlaneSettings) -> None:
        """Find the panel and the planes and store them, without a calibrator."""
        if not cov.standardization.varying.any():
            raise ValueError("all features are constant: there is nothing to select from")
        problems = PlaneProblems(cov, settings)
        if self.n_features is None:
            solutions = problems.at(self._deltas(len(cov.share)))
            panel = problems.select(solutions)
        else:
            k = int(self.n_features)
            [paths] = paths_to_sizes([problems], [k])
            solutions = problems.with_gradients([path[0] for path in paths])
            panel = problems.heaviest(solutions, k)
        self._store(problems, solutions, problems.planes(solutions, panel))
        self.calibrator_ = None

    def _deltas(self, n_classes: int) -> Float64Array:
        deltas = np.atleast_1d(np.asarray(self.delta, dtype=np.float64))
        if deltas.shape not in ((1,), (n_classes,)) or not np.isfinite(deltas).all():
            raise ValueError(
                f"delta must be one number or one per class ({n_classes}), got {self.delta!r}"
            )
        if (deltas <= 0.0).any():
            raise ValueError(
                f"delta must be positive, got {self.delta!r}: at 0 every feature is kept. Use a "
                "small delta, or sparse_gsvp for the exact unpenalised solution"
            )
        return np.broadcast_to(deltas, (n_classes,))
