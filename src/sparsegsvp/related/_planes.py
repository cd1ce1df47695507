"""A plane for each class, and the classifier that decides by the nearer one."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from .._typing import Float64Array as Array
from ._panels import PanelMixin, order_features
from ._problem import read_binary_problem


@dataclass(frozen=True)
class Plane:
    """One plane on the columns of the class blocks, and how it was found.

    Attributes
    ----------
    w : ndarray of shape (k,)
    b : float
        The plane ``x'w + b = 0`` at any scale.
    objective : float
        Value of the method's problem, at the scale the method works in.
    score : ndarray of shape (k,) or None
        Ranks the features whose weight is exactly zero (sparse methods): larger is nearer to
        entering the plane.
    n_iter : int
    history : ndarray
        The objective after each iteration, start included; empty for direct solutions.
    converged : bool
    """

    w: Array
    b: float
    objective: float
    score: Array | None = None
    n_iter: int = 0
    history: Array | Sequence[float] = ()
    converged: bool = True

    def normalized(self) -> tuple[Array, float]:
        """Return w and b with ``||w|| = 1`` and the heaviest weight positive."""
        norm = float(np.linalg.norm(self.w))
        if not norm > 0.0 or not np.isfinite(norm):
            raise ValueError(
                "a plane came out without a direction (w = 0): the data leave nothing to "
                "choose by; lower the penalty, or check for duplicated samples."
            )
        if self.w[np.abs(self.w).argmax()] < 0:
            norm = -norm
        return self.w / norm, float(self.b) / norm


class NearestPlaneMixin(ClassifierMixin):
    """The decision rule: a sample belongs to the class whose plane is nearer.

    The rows of ``coef_`` have unit norm in standardised units, so ``|X coef_' + intercept_|``
    is already the distance ``|x'w_i + b_i| / ||w_i||`` and is not divided again.
    """

    classes_: NDArray[Any]
    coef_: Array
    intercept_: Array

    def decision_function(self, X: ArrayLike) -> Array:
        """Distance to the first class's plane minus distance to the second's.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            Positive where ``predict`` gives ``classes_[1]``.
        """
        check_is_fitted(self)
        table: NDArray[Any] = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        distance = np.abs(table @ self.coef_.T + self.intercept_)
        return distance[:, 0] - distance[:, 1]

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the label of the nearer plane for each row of X."""
        nearer_second = self.decision_function(X) > 0
        return self.classes_[nearer_second.astype(int)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


class PlanePairClassifier(PanelMixin, NearestPlaneMixin, BaseEstimator):
    """Fit two planes, rank the features over both, cut the panel, decide by the nearer plane.

    A method gives :meth:`_check_parameters` and either :meth:`_fit_plane`, for the plane that is
    near the first block and far from the second, or :meth:`_fit_planes`, for both at once.
    ``self.n_features`` and ``self.standardize`` are parameters of every method.

    The panel is the union of the planes' non-zero features or, with ``n_features``, as many as
    that of the heaviest (largest ``|w_f|`` over the two unit planes); then :meth:`_refit_planes`
    finds the planes anew on the panel.
    """

    standardize: bool

    def _check_parameters(self) -> None:
        """Raise ValueError for parameters that make no sense."""

    def _fit_plane(self, A: Array, B: Array) -> Plane:
        raise NotImplementedError

    def _fit_planes(self, A: Array, B: Array) -> tuple[Plane, Plane]:
        return self._fit_plane(A, B), self._fit_plane(B, A)

    def _refit_planes(self, A: Array, B: Array) -> tuple[Plane, Plane]:
        """Planes on the panel's columns; by default the method itself."""
        return self._fit_planes(A, B)

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Find the two planes and the panel.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Two classes, each with at least two samples.

        Returns
        -------
        self
        """
        self._check_n_features()
        self._check_parameters()
        problem = read_binary_problem(self, X, y, standardize=self.standardize)
        planes = self._fit_planes(problem.A, problem.B)
        self._warn_unless_converged(planes)
        weights = np.abs([plane.normalized()[0] for plane in planes])
        scores = [plane.score for plane in planes if plane.score is not None]
        order = order_features(weights.max(axis=0), np.max(scores, axis=0) if scores else None)
        size = self._panel_size(len(order))
        if size is None:
            chosen, kept = np.flatnonzero(weights.max(axis=0)), planes
            columns = np.arange(len(order))
        else:
            columns = chosen = np.sort(order[:size])
            kept = self._refit_planes(problem.A[:, columns], problem.B[:, columns])
        W = np.zeros((2, len(order)))
        b = np.zeros(2)
        for i, plane in enumerate(kept):
            W[i, columns], b[i] = plane.normalized()
        self.classes_ = problem.classes
        self.coef_, self.intercept_ = problem.standardizer.planes_in_input_units(W, b)
        self.objective_ = np.array([plane.objective for plane in planes])
        if any(len(plane.history) for plane in planes):
            self.n_iter_ = max(plane.n_iter for plane in planes)
            self.history_ = [np.asarray(plane.history, dtype=np.float64) for plane in planes]
        self._set_panel(problem.features, order, chosen)
        return self

    def _warn_unless_converged(self, planes: tuple[Plane, Plane]) -> None:
        late = " and ".join(str(i) for i, plane in enumerate(planes) if not plane.converged)
        if late:
            warnings.warn(
                f"{type(self).__name__} stopped at max_iter before plane {late} settled: "
                "raise max_iter or tol, or penalise more.",
                ConvergenceWarning,
                stacklevel=3,
            )
