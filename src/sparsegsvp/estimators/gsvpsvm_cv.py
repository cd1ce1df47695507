"""`GSVPSVMCV`: the number of features by cross-validation."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, check_cv
from threadpoolctl import threadpool_limits

from .._typing import Array, BoolArray, IntArray
from .._validate import check_choice, check_integer, check_seed, forget_fit
from ..linalg.rows import is_dask
from ..solvers.subset import Path, check_panel, forward
from .base import PanelClassifier, clip_values
from .gsvpsvm import GSVPSVM, Training

RULES = ("paired", "best", "1se")
SCORINGS = ("balanced_error", "error")
# A smaller panel is taken when its errors exceed the best's by at most this many standard errors
# of the difference, or by this part of what the best gains over guessing (docs/panels.md).
_ERRORS, _PART_PAIR, _PART_MANY = 0.25, 0.03, 0.01
# Of few rows one draw of the folds says little of a size: these are drawn several times.
_FEW, _REPEATS = 50, 4


@dataclass(eq=False, repr=False)
class GSVPSVMCV(PanelClassifier):
    """Select as few features as predict well, and classify on them.

    Panels are nested, so that one path a fold scores every size. The size is chosen by the errors
    of the held-out rows; the model is `GSVPSVM` of that size on all rows.

    Parameters
    ----------
    max_features : int, default=None
        The largest size that is tried. None stands for ``30 + 5 * (n_classes - 2)``.
    cv : int, splitter or iterable, default=5
        Number of stratified folds, or what ``sklearn.model_selection.check_cv`` takes. Folds by
        number depend on what is in the rows, not on their order; of 50 rows or fewer they are drawn
        four times, since one draw says little of a size.
    rule : {"paired", "best", "1se"}, default="paired"
        "best" takes the size of the smallest loss, "1se" the smallest within one standard error
        of it, and "paired" the smallest whose losses on the same held-out rows exceed the best's by
        at most a quarter of a standard error of the difference, or by at most 3% of what the best
        gains over guessing (1% with more than two classes).
    scoring : {"balanced_error", "error"}, default="balanced_error"
        The loss: the share of held-out rows that are classified wrongly, every class counting
        the same or every row.
    decision, tau, clip, max_correlation, penalty_factor, standardize
        As in `GSVPSVM`.
    random_state : int, default=0
        Seed of the folds.
    n_jobs : int, default=None
        Threads for the products with the data; None leaves it to BLAS.

    Attributes
    ----------
    n_features_ : int
        The size that was chosen.
    path_ : dict of str to ndarray
        By size, out of fold: ``n_features``, ``loss``, ``loss_se``, ``balanced_accuracy``,
        ``balanced_accuracy_se``.
    classes_, support_, feature_order_, quotients_, feature_importances_, stand_ins_, tau_
        As in `GSVPSVM`, as are the other attributes that a fit sets.

    Examples
    --------
    >>> from sparsegsvp import GSVPSVM, GSVPSVMCV
    >>> from sparsegsvp.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = GSVPSVMCV().fit(X, y)
    >>> model.n_features_ <= 8
    True
    >>> same = GSVPSVM(n_features=model.n_features_).fit(X, y)
    >>> bool((same.decision_function(X) == model.decision_function(X)).all())
    True
    """

    __metadata_request__fit = {"groups": True}  # noqa: RUF012

    max_features: int | None = None
    _: KW_ONLY
    cv: Any = 5
    rule: str = "paired"
    scoring: str = "balanced_error"
    decision: str = "logistic"
    tau: float | None = None
    clip: float | None = 3.0
    max_correlation: float = 0.9
    penalty_factor: Any = None
    standardize: bool = True
    random_state: int = 0
    n_jobs: int | None = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> GSVPSVMCV:
        """Choose the size and fit the model.

        Parameters
        ----------
        X, y, sample_weight
            As in `GSVPSVM.fit`.
        groups : array of shape (n_samples,), default=None
            Rows of one group, such as the samples of a patient, are held out together.
        """
        self.fit_with_path(X, y, (), sample_weight, groups)
        return self

    def fit_with_path(
        self, X: Any, y: Any, sizes: Sequence[int], sample_weight: Any = None, groups: Any = None
    ) -> dict[int, GSVPSVM]:
        """Fit as `fit` does, and models of given sizes, as `fit_path` gives them."""
        with nullcontext() if self.n_jobs is None else threadpool_limits(self.n_jobs):
            table, path, size = self._search(X, y, sample_weight, groups)
            model, models = self._of_size(size), {k: self._of_size(k) for k in sizes}
            model._fit_sizes(table, [model, *models.values()])
        forget_fit(self)
        fitted = vars(model).keys() - model.get_params(deep=False).keys()
        self.__dict__.update({name: vars(model)[name] for name in fitted})
        self.path_, self.n_features_ = path, size
        return models

    def fit_path(
        self, X: Any, y: Any, sizes: Sequence[int], sample_weight: Any = None
    ) -> dict[int, GSVPSVM]:
        """Fit models of given sizes, without a search, as `GSVPSVM.fit_path` does."""
        return self._of_size(1).fit_path(X, y, sizes, sample_weight)

    def _of_size(self, size: int) -> GSVPSVM:
        """The model of one size, not fitted."""
        model = GSVPSVM(size)
        return model.set_params(**{k: getattr(self, k) for k in vars(model) if k != "n_features"})

    def _search(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None
    ) -> tuple[Training, dict[str, np.ndarray], int]:
        """The checked table, the out-of-fold losses by size, and the size that the rule takes."""
        check_choice("rule", self.rule, RULES)
        check_choice("scoring", self.scoring, SCORINGS)
        seed = check_seed(self.random_state)
        if self.max_features is not None:
            check_integer("max_features", self.max_features, least=1)
        table = self._of_size(1)._read(X, y, sample_weight)
        codes, weight, everything = table.codes, table.weight, table.covariances
        groups = groups.compute() if is_dask(groups) else groups
        folds = _folds(self.cv, codes, weight, everything.row_values(), groups, seed)
        marks = [[np.bincount(rows, minlength=len(codes)) > 0 for rows in fold] for fold in folds]
        train, held = zip(*marks)
        n_classes = len(table.classes)
        for mask in train:
            absent = np.bincount(codes[mask], minlength=n_classes) == 0
            if absent.any():
                label = table.classes[absent].tolist()[0]
                raise ValueError(
                    f"a training fold has no sample of class {label!r}: use fewer folds, other "
                    "groups, or add samples"
                )
        sets = everything.folds(np.array(train))
        candidates = sets.varying.all(axis=0) & np.isfinite(table.factor)
        most = self.max_features or 30 + 5 * (n_classes - 2)
        most = check_panel(min(most, int(candidates.sum())), candidates, table.factor)
        paths = forward(
            sets, most, tau=self.tau, max_correlation=self.max_correlation,
            penalty_factor=table.factor,
        )  # fmt: skip
        least = max(1, int(np.count_nonzero(table.factor == 0.0)))
        sums = _held_out(table, held, paths, self.scoring)
        path, size = _choose(*sums, n_classes, least, self.rule)
        return table, path, size


def _folds(
    cv: Any, codes: IntArray, weight: Array, values: Array, groups: Any, seed: int
) -> Iterator[tuple[IntArray, IntArray]]:
    """Training and held-out rows of each fold, of rows that count."""
    counted = np.flatnonzero(weight > 0.0)
    if not isinstance(cv, int | np.integer):
        for inside, outside in check_cv(cv, codes, classifier=True).split(codes, codes, groups):
            yield np.intersect1d(inside, counted), np.intersect1d(outside, counted)
        return
    check_integer("cv", cv, least=2)
    order = counted[np.lexsort((codes[counted], values[counted]))]
    labels, number = codes[order], None
    n_splits, kind = min(cv, int(np.bincount(labels).max())), StratifiedKFold
    if groups is not None:
        names = np.asarray(groups)[order]
        # groups are numbered as the rows come, so that their names do not matter
        _, first, number = np.unique(names, return_index=True, return_inverse=True)
        number = np.argsort(np.argsort(first))[number]
        n_splits, kind = min(cv, int(number.max()) + 1), StratifiedGroupKFold
        if n_splits < 2:
            raise ValueError(
                "all samples are in one group: none of them can be held out. Leave groups away, "
                "or choose the size yourself with GSVPSVM"
            )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class")
        for repeat in range(_REPEATS if len(order) <= _FEW else 1):
            splitter = kind(n_splits, shuffle=True, random_state=(seed + repeat) % 2**32)
            for inside, outside in splitter.split(labels, labels, number):
                yield order[inside], order[outside]


def _held_out(
    table: Training, held: Sequence[BoolArray], paths: list[Path], scoring: str
) -> tuple[Array, Array]:
    """Weighted sums over held-out rows of their errors with k sizes and a 1, and of products.

    The error is how often a row was classified wrongly when held out. Sums (2, k + 1) and products
    (2, k + 1, k + 1), of squared weights, are for balanced classes and for ``scoring``.
    """
    n_classes, limits = len(table.classes), table.covariances.limits
    union, place = np.unique([path.order for path in paths], return_inverse=True)
    place = place.reshape(len(paths), -1)
    totals = np.bincount(table.codes, table.weight * np.any(held, axis=0), minlength=n_classes)
    if not totals.any():
        raise ValueError("no fold holds out a sample: cv must split rows of positive weight")
    shares = np.ones((2, n_classes)) / totals.sum()
    shares[: 1 + (scoring == "balanced_error")] = 1.0 / (n_classes * np.where(totals, totals, 1.0))

    def visit(state: Any, columns: Array, code: IntArray, w: Array, *masks: BoolArray) -> Array:
        columns = clip_values(columns, None if limits is None else limits[:, union])
        wrong, times = np.zeros((len(code), place.shape[1] + 1)), np.sum(masks, axis=0)
        for path, at, mask in zip(paths, place, masks):
            wrong[mask, :-1] += (path.predictions(columns[mask][:, at]) != code[mask]).T
        wrong /= np.maximum(times, 1)[:, None]
        wrong[:, -1] = times > 0
        by_class = [w * (code == k) @ wrong for k in range(n_classes)]  # counts add up exactly
        weighted = [wrong * (share[code] * w)[:, None] for share in shares]
        new = np.vstack([*by_class, *(part.T @ part for part in weighted)])
        return new if state is None else state + new

    sums = table.rows.take(union).reduce_rows(visit, np.add, (table.codes, table.weight, *held))
    return shares @ sums[:n_classes], sums[n_classes:].reshape(2, -1, sums.shape[1])


def _choose(
    sums: Array, products: Array, n_classes: int, least: int, rule: str
) -> tuple[dict[str, np.ndarray], int]:
    """Losses by size, and the smallest size of at least ``least`` that the rule allows."""

    def mean_and_error(contrast: Array, of: int) -> tuple[Array, Array]:
        mean, away = contrast @ sums[of], contrast.copy()
        away[:, -1] -= mean
        return mean, np.sqrt(np.maximum((away @ products[of] * away).sum(axis=1), 0.0))

    sizes = np.eye(len(sums[0]))[:-1]
    error, error_se = mean_and_error(sizes, 0)
    loss, loss_se = mean_and_error(sizes, 1)
    path = {
        "n_features": np.arange(1, len(loss) + 1),
        "loss": loss,
        "loss_se": loss_se,
        "balanced_accuracy": 1.0 - error,
        "balanced_accuracy_se": error_se,
    }
    best = least - 1 + int(np.round(loss[least - 1 :], 12).argmin())
    allowed: BoolArray = np.arange(len(loss)) == best
    if rule == "1se":
        allowed = loss <= loss[best] + loss_se[best]
    elif rule == "paired":
        excess, excess_se = mean_and_error(sizes - sizes[best], 1)
        part = _PART_PAIR if n_classes == 2 else _PART_MANY
        gain = max(0.0, 1.0 - 1.0 / n_classes - loss[best])
        allowed = excess <= np.maximum(_ERRORS * excess_se, part * gain) + 1e-12
    return path, least + int(np.flatnonzero(allowed[least - 1 :])[0])
