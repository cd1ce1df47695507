"""`LqGSVPSVM`: the penalised problem, one sparse plane per class, with its certificate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._typing import Float64Array, IntArray
from .._validate import (
    check_choice,
    check_integer,
    check_real,
    first_few,
    forget_fit,
    warn_caller,
    warn_constant,
)
from ..linalg.covariances import Part, covariances_of
from ..linalg.moments import class_moments
from ..linalg.rows import read_classes, repetitions
from ..solvers.exact import balanced_scale, panel_planes
from ..solvers.newton import Problem, Solution
from ..solvers.path import Path
from ..solvers.penalties import Penalty, penalty_factors
from ..solvers.quotient import OneVsRest, check_definite
from ..solvers.subset import row_identity
from .base import PanelClassifier
from .decision import DECISIONS
from .elbow import elbow_features


class LqGSVPSVM(PanelClassifier):
    r"""Select features by a penalty on one plane per class, and classify on them.

    For each class i a unit normal w and bias b solve

    .. math::
        \min_{\|w\|_2 = 1,\, b} \frac{\mathrm{MSD}_i(w, b) + \tau}{\mathrm{MSD}_j(w, b) + \tau}
        + \delta \sum_f l_f\, p(|w_f|)

    on standardised features. MSD is the mean squared distance of a class to the plane, with its
    spread shrunk toward the pooled one; j stands for the other classes; the factors :math:`l_f`
    are 1 unless `penalty_factor` says otherwise. Every solution carries a certificate that it is
    stationary. The features of all planes form the panel, on which the planes are refitted
    without a penalty.

    Parameters
    ----------
    q : float, default=1.0
        Exponent of the penalty: ``p(t) = t`` for 1, ``(t + eps)^q - eps^q`` below.
    delta : float or sequence of float, default=0.1
        Strength of the penalty, positive, for all planes or one per class.
    tau : float, default=1.0
        Floor on squared distances, in units of a feature's variance, which keeps the problem
        well posed with more features than samples.
    pool : float, default=0.5
        How far each class's spread is shrunk toward the pooled one, from 0 (the generalized
        singular value problem) to 1 (for two classes, sparse Fisher discrimination).
    selection : {"nonzero", "elbow"}, default="nonzero"
        Whether a plane selects all features with a weight, or those up to the elbow of its sorted
        weights.
    refit : bool, default=True
        Whether the planes are refitted on the panel without a penalty.
    decision : {"logistic", "calibrated", "scaled", "distance"}, default="logistic"
        "logistic": ridge logistic regression on the panel's columns, every class counting the
        same. The others go by the distances to the planes: by logistic regression on their
        logarithms, divided by their class-balanced root mean squares, or as they are, which is
        the paper's rule. The first two have probabilities.
    penalty_factor : array of shape (n_features_in_,) or mapping, default=None
        The factors l_f, or those of some features by name where X has names, the others being 1:
        0 for features that are always in the panel, infinity for those that never are. A
        constant feature is left out all the same, with a warning.
    standardize : bool, default=True
        Whether features are scaled to unit variance, without a copy.
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
    support_ : ndarray of bool of shape (n_features_in_,)
        The panel.
    feature_order_ : ndarray of int of shape (n_selected,)
        The panel by the largest weight in any penalised plane, the heaviest first; those of
        `penalty_factor` 0 before all others.
    delta_ : ndarray of shape (n_classes,)
        The penalty of each plane.
    objective_, kkt_residual_ : ndarrays of shape (n_classes,)
        Objective and largest violation of stationarity of the penalised planes.
    n_iter_ : int
        Iterations of the plane that took the most.
    planes_, plane_intercepts_ : ndarrays of shape (n_classes, n_features_in_) and (n_classes,)
        One plane per class against the others in the units of X: ``X @ planes_.T +
        plane_intercepts_`` are distances in standardised units.
    scale_ : ndarray of shape (n_classes,)
        Class-balanced root mean square distance of the training rows to each plane.
    decision_ : str
        The decision in use.
    panel_coef_, panel_intercept_ : ndarrays
        The decision's linear part: on the panel's columns, or for "calibrated" on log distances.
    coef_, intercept_ : ndarrays
        For ``decision="logistic"`` the same on X, in scikit-learn's shapes:
        ``X @ coef_.T + intercept_`` is `decision_function`.
    prior_ : ndarray of shape (n_classes,)
        The class shares that probabilities are for: equal ones.
    class_counts_ : ndarray of shape (n_classes,)
        Training rows of each class; with sample weights, its share of them.
    panel_means_, panel_variances_ : ndarrays of shape (n_classes, n_selected)
        Mean and variance of the selected features in each class, in the units of X.
    limits_ : None
        No value is clipped.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Their names, where X has any.

    See Also
    --------
    GSVPSVM : Exactly k features, the limit q -> 0, in closed form.
    sparsegsvp.sparse_gsvp_path : Solutions of one plane at many penalties.

    Notes
    -----
    The certificate is of a stationary point, not of a global minimum: with a small `tau` or a
    small `pool`, and with q < 1, there are several.

    Examples
    --------
    >>> from sparsegsvp import LqGSVPSVM
    >>> from sparsegsvp.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LqGSVPSVM(delta=0.1).fit(X, y)
    >>> model.feature_order_.tolist()
    [27, 22, 7, 20, 21]
    >>> bool(model.kkt_residual_.max() < 1e-6), model.score(X, y) > 0.93
    (True, True)
    """

    def __init__(
        self,
        q: float = 1.0,
        delta: float | Sequence[float] = 0.1,
        tau: float = 1.0,
        pool: float = 0.5,
        selection: str = "nonzero",
        refit: bool = True,
        decision: str = "logistic",
        penalty_factor: Any = None,
        standardize: bool = True,
        eps: float = 1e-3,
        tol: float = 1e-6,
        max_iter: int = 1000,
    ) -> None:
        self.q = q
        self.delta = delta
        self.tau = tau
        self.pool = pool
        self.selection = selection
        self.refit = refit
        self.decision = decision
        self.penalty_factor = penalty_factor
        self.standardize = standardize
        self.eps = eps
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LqGSVPSVM:
        """Solve the problem of every plane, select the panel and fit the decision.

        Parameters
        ----------
        X : array, CSR/CSC matrix, data frame or Dask collection of shape (n_samples, n_features)
            float32 and float64 are used without a copy. A Dask array, or a Dask data frame of
            numbers, is read chunk by chunk and never gathered.
        y : array of shape (n_samples,)
            Class labels, two or more.
        sample_weight : array of shape (n_samples,), default=None
            Non-negative weights; only their ratios matter, and a row of weight 0 is no row.

        Returns
        -------
        self : LqGSVPSVM
            The fitted estimator.
        """
        penalty = self._check_parameters()
        forget_fit(self)
        rows, self.classes_, codes, weight = read_classes(X, y, sample_weight, estimator=self)
        self.n_features_in_, n_classes = rows.shape[1], len(self.classes_)
        self.delta_ = self._deltas(n_classes)
        names = getattr(self, "feature_names_in_", None)
        factors = penalty_factors(self.penalty_factor, rows.shape[1], names)
        cov = covariances_of(
            [Part(rows, codes, weight)], n_classes, standardize=bool(self.standardize)
        )
        warn_constant(np.flatnonzero(~cov.varying & (factors < np.inf)).tolist(), names)
        planes = [OneVsRest.of_class(i, cov.share, self.pool) for i in range(n_classes)]
        problems = [Problem(cov, plane, self.tau, penalty, factors) for plane in planes]
        if not problems[0].eligible.any():
            raise ValueError("all features are constant: there is nothing to select from")
        if self.tau == 0.0:
            check_definite(cov, planes[0], np.flatnonzero(problems[0].eligible))
        options: Any = {"tol": self.tol, "max_iter": self.max_iter, "first_above": False}
        solutions = [
            Path(problem, **options).continue_to(delta)
            for problem, delta in zip(problems, self.delta_.tolist())
        ]
        self.objective_ = np.array([solution.objective for solution in solutions])
        self.kkt_residual_ = np.array([solution.kkt_residual for solution in solutions])
        self.n_iter_ = max(solution.n_iter for solution in solutions)
        self._warn_of(solutions)
        order = self._panel(solutions, problems[0].free)
        panel = np.sort(order)
        if len(panel) > cov.max_block:
            raise ValueError(
                f"the planes have {len(panel)} features together, and at most {cov.max_block} can "
                f"be refitted: raise delta, which is {self.delta!r}"
            )
        means, covariances = cov.means[:, panel], cov.blocks(panel, np.eye(n_classes))
        if self.refit:
            normals = panel_planes(means, covariances, cov.share, self.tau, self.pool)
        else:
            cut = [_truncated(*pair, panel) for pair in zip(problems, solutions)]
            w, b = np.array([normal for normal, _ in cut]), np.array([bias for _, bias in cut])
            normals = w, b, balanced_scale(w, b, means, covariances)
        columns = rows.take(panel)
        moments = class_moments(columns, codes, weight, n_classes)
        center, scale = cov.center[panel], 1.0 / cov.inverse[panel]
        self._set_panel(panel, moments, center, scale, None, normals)
        self.feature_order_ = order
        key, _ = row_identity(rows, cov.share, cov.means, cov.center, cov.inverse)
        self._set_decision(
            columns, codes, weight, key, int(repetitions(weight).sum()), center, scale
        )
        return self

    def _check_parameters(self) -> Penalty:
        check_real("tau", self.tau, least=0)
        check_real("pool", self.pool, least=0, most=1)
        check_real("tol", self.tol, least=0)
        check_integer("max_iter", self.max_iter, least=1)
        check_choice("selection", self.selection, ("nonzero", "elbow"))
        check_choice("decision", self.decision, [d for d in DECISIONS if d != "discriminant"])
        return Penalty(self.q, self.eps)

    def _deltas(self, n_classes: int) -> Float64Array:
        deltas = np.asarray(self.delta, dtype=np.float64)
        if deltas.shape not in ((), (n_classes,)) or not (
            np.isfinite(deltas).all() and (deltas > 0.0).all()
        ):
            raise ValueError(
                f"delta must be a positive number, or one for each of the {n_classes} classes, "
                f"got {self.delta!r}"
            )
        return np.broadcast_to(deltas, n_classes).copy()

    def _panel(self, solutions: Sequence[Solution], must: IntArray) -> IntArray:
        """The features that the planes select, and those that must be in, the heaviest first."""
        weight = np.zeros((len(solutions), self.n_features_in_))
        selected = np.zeros(self.n_features_in_, dtype=bool)
        selected[must] = True
        for row, solution in zip(weight, solutions):
            row[solution.features] = np.abs(solution.w)
            chosen = solution.features
            if self.selection == "elbow":
                # of those that are there by choice; one of the zeros follows, as in all weights
                by_choice = ~np.isin(chosen, must)
                curve = np.append(solution.w[by_choice], 0.0)
                chosen = chosen[by_choice][elbow_features(curve)]
            selected[chosen] = True
        largest = weight.max(axis=0)
        largest[must] = np.inf
        panel = np.flatnonzero(selected)
        # of single features, each of weight 1, that of the better plane comes first
        best = np.array([solution.bias.ratio for solution in solutions])[weight.argmax(axis=0)]
        return panel[np.lexsort((best[panel], -largest[panel]))]

    def _warn_of(self, solutions: Sequence[Solution]) -> None:
        pairs = list(zip(self.classes_.tolist(), solutions))
        failed = [label for label, solution in pairs if not solution.converged]
        if failed:
            warn_caller(
                f"the certificate is not met for the plane of {first_few(map(repr, failed))}: "
                "raise max_iter or tol, or tau (a larger floor makes the problem better "
                "conditioned)",
                ConvergenceWarning,
            )
        clipped = [label for label, solution in pairs if solution.bias.clipped]
        if clipped:
            warn_caller(
                f"the best bias of the plane of {first_few(map(repr, clipped))} ran off to "
                "infinity and was clipped: along its direction the class means coincide. Try a "
                "larger pool or tau",
                RuntimeWarning,
            )


def _truncated(problem: Problem, solution: Solution, panel: IntArray) -> tuple[Float64Array, float]:
    """A penalised plane cut to the panel, a unit normal again so that distances stay distances.

    The bias is the solution's own, as the paper has it.
    """
    dense = np.zeros(len(problem.factors))
    dense[solution.features] = solution.w
    own_mean = float((problem.plane.own_mean @ problem.cov.means) @ dense)
    sign = -1.0 if solution.bias.other < 0.0 else 1.0
    norm = float(np.linalg.norm(dense[panel])) or 1.0
    return sign * dense[panel] / norm, sign * (solution.bias.own - own_mean) / norm
