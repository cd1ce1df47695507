"""The paper's classifier and selector, Algorithm 3, as published."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Tags, check_random_state
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import validate_data

from .._mixins import NearerPlane, SupportSelector
from .._validate import forget_fit, warn_caller
from ..solvers.pgd import PGDPlane, PGDResult, make_pgd_penalty, pgd_planes
from .elbow import elbow_features


class PGDGSVPSVM(NearerPlane, ClassifierMixin, SupportSelector, BaseEstimator):
    r"""The l1- and lq-PGD-GSVPSVM of the paper: Algorithms 1, 2 and 3 exactly.

    For each of the two classes, with rows :math:`C_i` (standardised, a column of ones appended)
    and the other class's rows :math:`C_j`, proximal gradient with a fixed step lowers

    .. math:: \frac{\|C_i z\|_2^2}{\|C_j z\|_2^2} + \delta_i \|z\|_q^q, \qquad z = [w; b],

    the features up to the elbow of the sorted :math:`|w|` are kept, and a sample belongs to the
    class whose plane, cut down to these features, is nearer: :math:`|x'w + b| / \|w\|_2`
    (equation 21).

    It is here for comparison and reproduction. The objective has no minimiser, as the penalty falls
    when z shrinks and the quotient stays: what is selected depends on the start, the step and the
    cap on iterations.

    Parameters
    ----------
    q : float in (0, 1] or None, default=None
        None is the l1 method (Algorithm 1, soft thresholding); a number the lq method
        (Algorithm 2, a weighted l2 step), whose q = 1 is its own reading of the l1 penalty.
    delta : float or pair of float, default=(0.1, 0.1)
        Penalty of each plane.
    step_size : float, default=1e-3
    eps : float, default=1e-3
        Smoothing of the lq penalty.
    max_iter : int, default=10000
    tol : float, default=1e-4
        Stop when the relative change of the objective is below it.
    conventions : {"paper", "code"}, default="paper"
        Where the lq penalty takes its weights: as printed, or as the authors ran it (see
        `sparsegsvp.solvers.pgd.lq_pgd_gsvp`). Without q the two agree.
    prox : {"weighted", "exact"}, default="weighted"
        The proximal step with q: the paper's weighted l2 step, or the proximal operator of the
        lq norm itself, to which ``eps`` and ``conventions`` mean nothing.
    backtracking : bool, default=False
        Halve the step, at first ``step_size``, where it proves too long. The text mentions it;
        published results were obtained with a fixed step.
    random_state : int, RandomState or None, default=42
        Seed of the start, uniform on [0, 1), divided by its norm, the same for both planes.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
    weights_ : ndarray of shape (2, n_features)
        Solutions before the elbow cuts them, in standardised units; one row per class.
    biases_ : ndarray of shape (2,)
        Their biases, not refitted after the cut.
    features_ : list of ndarray
        The features kept by each plane, the heaviest first.
    elbows_ : ndarray of shape (2,)
        Their numbers.
    support_ : ndarray of shape (n_features,), bool
        The features kept by either plane.
    planes_, plane_intercepts_ : ndarrays of shape (2, n_features) and (2,)
        The cut planes in the units of X; ``X @ planes_.T + plane_intercepts_`` are signed
        distances in standardised units.
    mean_, scale_ : ndarray of shape (n_features,)
        The standardisation.
    history_ : list of dict
        Per class: ``objective``, ``fidelity`` and ``penalty`` at the start and after each
        iteration, ``relative_error`` of each iteration.
    n_iter_ : int
        Iterations of the plane that took longer.
    converged_ : ndarray of shape (2,), bool
        Whether the stopping rule fired before the cap.
    cycles_ : ndarray of shape (2,), int
        The iteration from which a plane jumps between two points to the end, -1 where it does not.
    n_features_in_, feature_names_in_ : int and ndarray of str
        As in `GSVPSVM`.

    See Also
    --------
    GSVPSVM : A regularised relative of the problem, with a minimiser.

    Notes
    -----
    Each class is copied once, standardised, in double precision, as for the published results:
    thousands of iterations run on it. A constant feature starts and stays at zero.

    References
    ----------
    U. O. Ugwu and M. Kirby, Optimizing Sparse Generalized Singular Vectors for Feature
    Selection in Proximal Support Vector Machines with Application to Breast and Ovarian
    Cancer Detection, arXiv:2410.03978 (2024).

    Examples
    --------
    >>> from sparsegsvp import PGDGSVPSVM
    >>> from sparsegsvp.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = PGDGSVPSVM(q=0.1, delta=0.02, step_size=0.025, conventions="code").fit(X, y)
    >>> model.converged_
    array([ True,  True])
    >>> sorted({*model.features_[0], *model.features_[1]}) == list(model.get_support(indices=True))
    True
    """

    def __init__(
        self,
        q: float | None = None,
        *,
        delta: float | tuple[float, float] = (0.1, 0.1),
        step_size: float = 1e-3,
        eps: float = 1e-3,
        max_iter: int = 10_000,
        tol: float = 1e-4,
        conventions: Literal["paper", "code"] = "paper",
        prox: Literal["weighted", "exact"] = "weighted",
        backtracking: bool = False,
        random_state: int | np.random.RandomState | None = 42,
    ) -> None:
        self.q = q
        self.delta = delta
        self.step_size = step_size
        self.eps = eps
        self.max_iter = max_iter
        self.tol = tol
        self.conventions = conventions
        self.prox = prox
        self.backtracking = backtracking
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> PGDGSVPSVM:
        """Fit both planes and cut each at its elbow.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Two classes.

        Returns
        -------
        self : PGDGSVPSVM
            The fitted estimator.
        """
        fit_together([self], X, y)
        for label, done, since in zip(self.classes_.tolist(), self.converged_, self.cycles_):
            if since >= 0:
                what = (
                    f"is in a 2-cycle since iteration {since}: the step is too long, and which of "
                    f"two points is kept depends on max_iter={self.max_iter} being even or odd"
                )
            else:
                what = (
                    f"was cut off at max_iter={self.max_iter}: the iteration need not converge, "
                    "its objective has no minimiser"
                )
            if not done:
                advice = "Try a smaller step_size, or use GSVPSVM."
                warn_caller(f"The plane of class {label!r} {what}. {advice}", ConvergenceWarning)
        return self

    def _encode(self, y: NDArray[Any]) -> NDArray[np.intp]:
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if self.classes_.size > 2:
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {kind}. "
                "GSVPSVM fits one plane for each of several classes."
            )
        if self.classes_.size < 2:
            raise ValueError("y holds one class only; the classifier needs samples of two classes.")
        counts = np.bincount(codes)
        if counts.min() < 2:
            raise ValueError(
                f"Class {self.classes_.tolist()[counts.argmin()]!r} has one sample; each class "
                "needs two."
            )
        return codes

    def _planes(self, varies: NDArray[np.bool_]) -> list[PGDPlane]:
        """Both planes as the solver takes them, from the same start, zero at constant features."""
        deltas = np.asarray(self.delta, dtype=np.float64)
        if deltas.ndim == 0:
            deltas = np.repeat(deltas, 2)
        if deltas.shape != (2,):
            raise ValueError(f"delta must be one number, or one per class, got {self.delta!r}.")
        start = check_random_state(self.random_state).uniform(size=varies.size + 1)
        start /= np.linalg.norm(start)
        start[:-1] *= varies
        how = (start, self.step_size, self.max_iter, self.tol, self.backtracking)
        penalties = [
            make_pgd_penalty(delta, self.q, self.eps, self.conventions, self.prox)
            for delta in deltas.tolist()
        ]
        return [PGDPlane(k, penalty, *how) for k, penalty in enumerate(penalties)]

    def _store(self, results: list[PGDResult]) -> None:
        self.weights_ = np.array([result.w for result in results])
        self.biases_ = np.array([result.b for result in results])
        self.n_iter_ = max(result.n_iter for result in results)
        self.converged_ = np.array([result.converged for result in results])
        self.history_ = [dict(vars(result.history)) for result in results]
        cycles = [result.history.cycle for result in results]
        self.cycles_ = np.array([-1 if since is None else since for since in cycles])
        self.features_ = [elbow_features(w) for w in self.weights_]
        self.elbows_ = np.array([features.size for features in self.features_])
        if not self.elbows_.all():
            empty = self.classes_[self.elbows_ == 0].tolist()
            raise ValueError(
                f"The plane of class {empty[0]!r} has no feature left: all features are constant, "
                "or delta or step_size is too large."
            )
        self.support_ = np.zeros(self.n_features_in_, dtype=bool)
        cut = np.zeros_like(self.weights_)
        for k, features in enumerate(self.features_):
            self.support_[features] = True
            cut[k, features] = self.weights_[k, features]
        norms = np.linalg.norm(cut, axis=1)
        self.planes_ = cut / (norms[:, np.newaxis] * self.scale_)
        self.plane_intercepts_ = self.biases_ / norms - self.planes_ @ self.mean_

    def _signed_distances(self, table: NDArray[Any]) -> NDArray[np.float64]:
        panel = np.flatnonzero(self.support_)
        return table[:, panel] @ self.planes_[:, panel].T + self.plane_intercepts_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def fit_together(models: Sequence[PGDGSVPSVM], X: ArrayLike, y: ArrayLike) -> None:
    """Fit several models to the same samples, sharing every pass over them.

    Many fits take a fraction of the time they take one by one, and agree with these up to
    rounding (see `sparsegsvp.solvers.pgd.pgd_planes`). A plane that reaches its cap is told
    by ``converged_`` alone, not by a warning.
    """
    planes: list[PGDPlane] = []
    for model in models:
        forget_fit(model)
        table, labels = validate_data(
            model, X, y, dtype=[np.float64, np.float32], ensure_min_samples=2
        )
        codes = model._encode(labels)
        if not planes:
            mean, scale, varies = _standardisation(table)
        planes += model._planes(varies)
    blocks = [(table[codes == k] - mean) / scale for k in (0, 1)]
    for block in blocks:
        # A column of zeros gives no gradient, and the start is zero there: never selected.
        block[:, ~varies] = 0.0
    results = pgd_planes(blocks[0], blocks[1], planes)
    for model, first, second in zip(models, results[::2], results[1::2]):
        model.mean_, model.scale_ = mean, scale
        model._store([first, second])


def _standardisation(
    X: NDArray[Any],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Mean and scale as StandardScaler has them, and which features are not constant."""
    if max(float(X.max()), -float(X.min())) > 1e150:
        raise ValueError("X holds values whose squares overflow. Rescale the features first.")
    scaler = StandardScaler().fit(X)
    mean = np.asarray(scaler.mean_, dtype=np.float64)
    variance = np.asarray(scaler.var_, dtype=np.float64)
    # Rounding leaves a constant column a variance of the order of (eps * mean)^2.
    varies = variance > (8.0 * np.finfo(X.dtype).eps * np.abs(mean)) ** 2
    return mean, np.where(varies, np.sqrt(variance), 1.0), varies
