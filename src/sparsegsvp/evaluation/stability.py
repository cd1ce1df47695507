"""Stability selection: which features a procedure keeps choosing on subsets of the samples."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, column_or_1d, get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from .._parallel import Task
from .._typing import BoolArray, IntArray, Progress
from .._validate import check_choice, check_integer, check_real, check_seed, forget_fit
from .bounds import error_control
from .folds import check_labels, complementary_pair, derive_seed, subsample
from .journal import Journal, open_journal, run_logged
from .panels import Procedure, describe, panel_stability, selected_features
from .substitutes import Substitute, find_substitutes, group_frequency
from .values import identity

HALVES = "stability in half samples"
_RESAMPLING = ("complementary_pairs", "subsample", "bootstrap")


class StabilitySelection(SelectorMixin, MetaEstimatorMixin, BaseEstimator):
    r"""Select the features that a selector keeps choosing on subsets of the samples.

    The whole estimator, with its scaling and tuning, is run on ``n_resamples`` subsets;
    a feature is kept when the share of runs that select it,

    .. math:: \hat\Pi_f = \frac1N \sum_{r=1}^N [f \in \hat S(\text{subset } r)] ,

    reaches ``threshold``.

    Parameters
    ----------
    estimator : estimator
        Anything whose fit says which features it uses: a selector with ``get_support``, a
        sparse linear model, a search over one, or a pipeline that holds one.
    n_resamples : int, default=100
        Number of fits; even for complementary pairs.
    sample_fraction : float, default=0.5
        Share of each class in a subset. Complementary pairs are halves, so 0.5 only.
    threshold : float, default=0.6
        Smallest selection frequency of a kept feature, in (0, 1].
    resampling : {"complementary_pairs", "subsample", "bootstrap"}, default="complementary_pairs"
        Disjoint pairs of exactly half of the samples; subsets drawn without replacement;
        or with replacement. All keep classes even and groups whole. Only the first has an
        error bound.
    n_jobs : int, optional
        Fits at a time. The result does not depend on it.
    random_state : int, default=0
        Seed; also given to every ``random_state`` of the estimator that is None.

    Attributes
    ----------
    selection_frequencies_ : ndarray of shape (n_features,)
        :math:`\hat\Pi_f`.
    selections_ : boolean ndarray of shape (n_resamples, n_features)
        Which features each run selected; rows 2i and 2i+1 are a pair.
    mean_panel_size_ : float
        Mean number of features a run selects.
    stability_ : StabilityIndex
        Nogueira's index over the runs, without an interval, since the subsets overlap.
    error_control_ : ErrorControl or None
        A bound on the number of wrong features that says something: one that is below the
        number of features found, at ``threshold`` or a higher one; see
        :func:`~sparsegsvp.evaluation.error_control`.
    error_words_ : str
        The same in a sentence, or why there is none.
    error_bound_ : float or None
        The bound of ``error_control_`` if it holds at ``threshold``.
    substitutes_ : dict
        From a feature to those that stand in for it: pooled within-class correlation of at
        least 0.8 and selected more often where it is not (Fisher's exact test at 0.05). Not a
        proof of equivalence.
    group_frequencies_ : ndarray of shape (n_features,)
        How often the feature or any of its substitutes is selected.
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, when X has string column names.

    References
    ----------
    Meinshausen, Bühlmann (2010), Stability selection, JRSS B 72(4), 417-473.

    Shah, Samworth (2013), Variable selection with error control: another look at stability
    selection, JRSS B 75(1), 55-80.

    Examples
    --------
    >>> from sklearn.feature_selection import SelectKBest
    >>> from sparsegsvp import StabilitySelection
    >>> from sparsegsvp.datasets import make_planted
    >>> data = make_planted(60, 50, 2, effect=1.5)
    >>> stable = StabilitySelection(SelectKBest(k=3), n_resamples=40).fit(data.X, data.y)
    >>> stable.get_support(indices=True), data.support
    (array([23, 26]), array([23, 26]))
    >>> round(stable.error_bound_, 3)
    0.9
    """

    def __init__(
        self,
        estimator: Any,
        n_resamples: int = 100,
        sample_fraction: float = 0.5,
        threshold: float = 0.6,
        resampling: str = "complementary_pairs",
        n_jobs: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.estimator = estimator
        self.n_resamples = n_resamples
        self.sample_fraction = sample_fraction
        self.threshold = threshold
        self.resampling = resampling
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        groups: ArrayLike | None = None,
        *,
        batch: ArrayLike | None = None,
        progress: Progress | None = None,
        log: str | os.PathLike[str] | Journal | None = None,
        resume: bool = False,
    ) -> StabilitySelection:
        """Run the estimator on the subsets and count.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The table, as it is: frames reach the estimator as frames.
        y : array-like of shape (n_samples,)
            Labels.
        groups : array-like of shape (n_samples,), optional
            Samples of one group are drawn together; then the groups are what is halved.
        batch : array-like of shape (n_samples,), optional
            Batches, for a step of the estimator that centres them.
        progress, log, resume
            As in :func:`~sparsegsvp.nested_evaluate`; the stage is "stability in half samples".

        Returns
        -------
        StabilitySelection
            The fitted object.
        """
        self._check_parameters()
        forget_fit(self)
        given = X
        X, labels, ids = self._read(X, y, groups)
        subsets = self._draw(labels, ids)
        seed = int(self.random_state)

        def header() -> dict[str, Any]:
            # a subset depends on its number, not on how many there are: more may be added
            names = ("estimator", "sample_fraction", "resampling", "random_state")
            settings = {name: describe(getattr(self, name)) for name in names}
            return identity("stability", X, labels, ids, batch, **settings)

        tasks = [
            Task(("half", i), _select, (subset, derive_seed(seed, 1, i)))
            for i, subset in enumerate(subsets)
        ]
        Z = np.zeros((len(subsets), X.shape[1]), dtype=bool)
        # frames reach the estimator as frames: it may look for names
        named = hasattr(self, "feature_names_in_")
        lots = None if batch is None else column_or_1d(batch)
        shared = Procedure(self.estimator, given if named else X, labels, ids, lots)
        with open_journal(log, header, resume=resume) as journal:
            run_logged(tasks, shared, journal, stage=HALVES, progress=progress, n_jobs=self.n_jobs)
            for i, task in enumerate(tasks):
                journal.read(task.key, partial(_mark, Z[i]))
        self._count(X, labels, Z)
        return self

    def _read(
        self, X: Any, y: ArrayLike, groups: ArrayLike | None
    ) -> tuple[Any, NDArray[Any], NDArray[Any] | None]:
        """Return the table, the labels and the groups, checked."""
        missing = _takes_missing_values(self.estimator)
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            ensure_min_samples=4,
            ensure_all_finite="allow-nan" if missing else True,
        )
        labels, _, ids = check_labels(y, groups)
        return X, labels, ids

    def _count(self, X: Any, y: NDArray[Any], Z: BoolArray) -> None:
        """Set the attributes that follow from what each subset selected."""
        self.selections_ = Z
        self.selection_frequencies_ = Z.mean(axis=0)
        self.mean_panel_size_ = float(Z.sum(axis=1).mean())
        self.stability_ = panel_stability(Z, X.shape[1])
        if self.resampling == "complementary_pairs":
            self.error_control_, self.error_words_ = error_control(
                self.selection_frequencies_, self.threshold, len(Z) // 2
            )
        else:
            self.error_control_ = None
            self.error_words_ = (
                f"How many of the features are wrong is bounded for complementary pairs only, "
                f"not for resampling={self.resampling!r}."
            )
        control = self.error_control_
        self.error_bound_ = None if control is None or control.is_raised else control.bound
        self.substitutes_ = find_substitutes(X, y, Z)
        self.group_frequencies_ = self.selection_frequencies_.copy()
        for feature, others in self.substitutes_.items():
            self.group_frequencies_[feature] = group_frequency(Z, feature, others)

    def _check_parameters(self) -> None:
        check_choice("resampling", self.resampling, _RESAMPLING)
        check_integer("n_resamples", self.n_resamples, least=2)
        check_real("threshold", self.threshold, above=0, most=1)
        check_real("sample_fraction", self.sample_fraction, above=0, most=1)
        if self.resampling == "complementary_pairs":
            if self.sample_fraction != 0.5:
                raise ValueError(
                    "complementary pairs are halves, so sample_fraction must be 0.5; "
                    "use resampling='subsample' for another share."
                )
            if self.n_resamples % 2:
                raise ValueError(
                    f"n_resamples={self.n_resamples} must be even for complementary pairs."
                )
        check_seed(self.random_state)

    def _draw(self, y: NDArray[Any], groups: NDArray[Any] | None) -> list[IntArray]:
        """Return the rows of each subset, all of which must hold every class."""
        seed, fraction = int(self.random_state), float(self.sample_fraction)

        def rng(i: int) -> np.random.Generator:
            return np.random.default_rng(derive_seed(seed, 0, i))

        if self.resampling == "complementary_pairs":
            pairs = (complementary_pair(y, groups, rng(i)) for i in range(self.n_resamples // 2))
            subsets = [half for pair in pairs for half in pair]
        else:
            replace = self.resampling == "bootstrap"
            subsets = [
                subsample(y, groups, fraction, rng(i), replace=replace)
                for i in range(self.n_resamples)
            ]
        n_classes = np.unique(y).size
        if any(np.unique(y[subset]).size < n_classes for subset in subsets):
            raise ValueError(
                "a subset lacks a class: there are too few samples (or groups) of it for "
                f"sample_fraction={self.sample_fraction}; use resampling='subsample' with a "
                "larger sample_fraction, or collect more."
            )
        return subsets

    def substitutes(self, feature: int | str) -> tuple[Substitute, ...]:
        """Return the substitutes of one feature, most frequent first.

        Parameters
        ----------
        feature : int or str
            Column number or name.

        Returns
        -------
        tuple of Substitute
        """
        check_is_fitted(self)
        if isinstance(feature, str):
            names = list(getattr(self, "feature_names_in_", []))
            if feature not in names:
                raise ValueError(f"feature {feature!r} is not among the columns seen in fit.")
            feature = names.index(feature)
        return self.substitutes_.get(int(feature), ())

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "group_frequencies_")

    def _get_support_mask(self) -> BoolArray:
        check_is_fitted(self)
        # frequencies are counts over N: allow for the rounding of the division
        return self.selection_frequencies_ >= self.threshold - 1e-12

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = _takes_missing_values(self.estimator)
        tags.target_tags.required = True
        return tags


def _takes_missing_values(estimator: Any) -> bool:
    """Return whether missing values may reach an estimator; a pipeline's first step decides."""
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[0][1]
    return bool(get_tags(estimator).input_tags.allow_nan)


def _select(procedure: Procedure, rows: IntArray, seed: int) -> IntArray:
    """Fit a clone on the rows drawn, with a seed, and return the features it selects."""
    panel = selected_features(procedure.fit(rows, seed), procedure.X.shape[1])
    if panel is None:
        raise ValueError(
            f"{type(procedure.estimator).__name__} does not say which features it uses; "
            "give an estimator with get_support, or a linear model with coef_."
        )
    return panel


def _mark(row: BoolArray, panel: Any) -> None:
    row[np.asarray(panel, dtype=np.intp)] = True
