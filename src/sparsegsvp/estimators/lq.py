"""`LqGSVPSVM`: the penalised problem, one sparse plane per class, with its certificate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._typing import Array, IntArray
from .._validate import check_choice, check_integer, check_real, forget_fit
from ..linalg.moments import sample_rows
from ..linalg.rows import read_classes, repetitions
from ..solvers.newton import Problem, Solution
from ..solvers.path import Path, warn_of
from ..solvers.penalties import Penalty, penalty_factors
from ..solvers.quotient import OneVsRest, Part, covariances_of, panel_planes
from .base import DECISIONS, FITTED, SAMPLE, PanelClassifier
from .pgd import elbow_features


@dataclass(eq=False, repr=False)
class LqGSVPSVM(PanelClassifier):
    r"""Select features by a penalty on one plane per class, and classify on them.

    For each class i a unit normal w and bias b solve

    .. math::
        \min_{\|w\|_2 = 1,\, b} \frac{\mathrm{MSD}_i(w, b) + \tau}{\mathrm{MSD}_j(w, b) + \tau}
        + \delta \sum_f l_f\, p(|w_f|)

    on standardised features. MSD is the mean squared distance of a class to the plane, with its
    spread shrunk toward the pooled one; j stands for the other classes. Every solution carries a
    certificate that it is stationary, not that it is a global minimum: with a small `tau` or
    `pool`, and with q < 1, there are several. The features of all planes form the panel, on which
    the planes are refitted without a penalty.

    Parameters
    ----------
    q, eps : float, default=1.0 and 1e-3
        Exponent and smoothing of the penalty: ``t`` for q = 1, ``(t + eps)^q - eps^q`` below.
    delta : float or sequence of float, default=0.1
        Strength of the penalty, positive, for all planes or one per class.
    tau : float, default=1.0
        Floor on squared distances, in units of a feature's variance.
    pool : float, default=0.5
        How far each class's spread is shrunk toward the pooled one, from 0 (the generalized
        singular value problem) to 1 (for two classes, sparse Fisher discrimination).
    selection : {"nonzero", "elbow"}, default="nonzero"
        Whether a plane selects all features with a weight, or those up to the weights' elbow.
    refit : bool, default=True
        Whether the planes are refitted on the panel without a penalty.
    decision : {"logistic", "calibrated", "scaled", "distance"}, default="logistic"
        As in `GSVPSVM`; the first two have probabilities.
    penalty_factor : array of shape (n_features_in_,) or mapping, default=None
        The factors l_f, of all or some by name, else 1: 0 for always, infinity for never selected.
    standardize : bool, default=True
        Whether features are scaled to unit variance, without a copy.
    tol, max_iter : float, default=1e-6, and int, default=1000
        Tolerance on the certificate, relative to delta_max, and iterations of each plane.

    Attributes
    ----------
    feature_order_ : ndarray of int of shape (n_selected,)
        The panel by the largest weight in any penalised plane, the heaviest first; those of
        `penalty_factor` 0 before all others.
    delta_, objective_, kkt_residual_ : ndarrays of shape (n_classes,)
        Penalty, objective and largest violation of stationarity of the penalised planes.
    n_iter_ : int
        Iterations of the plane that took the most.
    classes_, support_, planes_, plane_intercepts_, scale_, decision_, coef_, intercept_, prior_
        As in `GSVPSVM`, with ``panel_coef_``, ``panel_means_`` and the rest; ``coef_`` and
        ``intercept_`` for ``decision="logistic"``. No value is clipped: ``limits_`` is None.

    See Also
    --------
    GSVPSVM : Exactly k features, the limit q -> 0, in closed form.
    sparsegsvp.sparse_gsvp_path : Solutions of one plane at many penalties.

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

    q: float = 1.0
    delta: float | Sequence[float] = 0.1
    tau: float = 1.0
    pool: float = 0.5
    selection: str = "nonzero"
    refit: bool = True
    decision: str = "logistic"
    penalty_factor: Any = None
    standardize: bool = True
    eps: float = 1e-3
    tol: float = 1e-6
    max_iter: int = 1000

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LqGSVPSVM:
        """Solve every plane's problem, select the panel, fit the decision, as in `GSVPSVM.fit`."""
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
        planes = [OneVsRest.of_class(i, cov.share, self.pool) for i in range(n_classes)]
        problems = [Problem(cov, plane, self.tau, penalty, factors) for plane in planes]
        problems[0].check(names)
        solutions = [
            Path(problem, tol=self.tol, max_iter=self.max_iter, first_above=False).at(delta)
            for problem, delta in zip(problems, self.delta_.tolist())
        ]
        self.objective_ = np.array([solution.objective for solution in solutions])
        self.kkt_residual_ = np.array([solution.kkt_residual for solution in solutions])
        self.n_iter_ = max(solution.n_iter for solution in solutions)
        warn_of(solutions, [f"the plane of {label!r}" for label in self.classes_.tolist()])
        order = self._panel(solutions, problems[0].free)
        panel = np.sort(order)
        if len(panel) > cov.max_block:
            raise ValueError(
                f"the planes have {len(panel)} features together, and at most {cov.max_block} can "
                f"be refitted: raise delta, which is {self.delta!r}"
            )
        if self.refit:
            blocks = cov.blocks(panel, np.eye(n_classes))
            normals = panel_planes(cov.means[:, panel], blocks, cov.share, self.tau, self.pool)
        else:
            # the penalised planes cut to the panel, with their biases as the paper has it
            w = np.array([solution.dense(rows.shape[1]) for solution in solutions])
            bias = [solution.bias.sign * solution.bias.own for solution in solutions]
            b = bias - np.einsum("if,if->i", cov.means, w)
            # unit normals again, so that distances stay distances
            norm = np.linalg.norm(w[:, panel], axis=1)
            norm[norm == 0.0] = 1.0
            normals = w[:, panel] / norm[:, None], b / norm
        center, scale = cov.center[order], 1.0 / cov.inverse[order]
        place, size = np.argsort(order), SAMPLE if self.decision in FITTED else 0
        data = sample_rows(
            rows.take(panel), codes, weight, n_classes, size, center[place],
            1.0 / scale[place], 1.0 + place,
        )  # fmt: skip
        times = int(repetitions(weight).sum())
        self._set_panel(order, data, times, center, scale, None, normals)
        self.feature_order_ = order
        return self

    def _check_parameters(self) -> Penalty:
        check_real("tau", self.tau, least=0)
        check_real("pool", self.pool, least=0, most=1)
        check_real("tol", self.tol, least=0)
        check_integer("max_iter", self.max_iter, least=1)
        check_choice("selection", self.selection, ("nonzero", "elbow"))
        check_choice("decision", self.decision, [d for d in DECISIONS if d != "discriminant"])
        return Penalty(self.q, self.eps)

    def _deltas(self, n_classes: int) -> Array:
        deltas = np.asarray(self.delta, dtype=np.float64)
        finite = np.isfinite(deltas).all() and (deltas > 0.0).all()
        if deltas.shape not in ((), (n_classes,)) or not finite:
            raise ValueError(
                f"delta must be a positive number, or one for each of the {n_classes} classes, "
                f"got {self.delta!r}"
            )
        return np.broadcast_to(deltas, n_classes).copy()

    def _panel(self, solutions: Sequence[Solution], must: IntArray) -> IntArray:
        """The features that the planes select, and those that must be in, the heaviest first."""
        weight = np.abs([solution.dense(self.n_features_in_) for solution in solutions])
        largest = weight.max(axis=0)
        selected = largest > 0.0
        if self.selection == "elbow":
            selected[:] = False
            for solution in solutions:
                # of those that are there by choice; one of the zeros follows, as in all weights
                by_choice = ~np.isin(solution.features, must)
                curve = np.append(solution.w[by_choice], 0.0)
                selected[solution.features[by_choice][elbow_features(curve)]] = True
        selected[must], largest[must] = True, np.inf
        panel = np.flatnonzero(selected)
        # of single features, each of weight 1, that of the better plane comes first
        best = np.array([solution.bias.ratio for solution in solutions])[weight.argmax(axis=0)]
        return panel[np.lexsort((best[panel], -largest[panel]))]
