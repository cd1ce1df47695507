"""Pipelines that predict from a panel's columns alone, and steps for them.

`PanelPipeline`; `Panel`, a given panel; `BatchCenterer`; `Log2`.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from .._typing import Array, BoolArray, IntArray
from .._validate import check_real, close_names, find_columns, first_few, forget_fit, warn_caller

_BLOCK = 4_000_000  # numbers built at a time
_FLOATS = (np.float64, np.float32)
_LENIENT = {"accept_sparse": "csr", "dtype": _FLOATS, "ensure_all_finite": "allow-nan"}


class SupportSelector(SelectorMixin):
    """A selector whose fit ends with ``support_``, the mask of its panel."""

    support_: BoolArray

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "support_")

    def _get_support_mask(self) -> BoolArray:
        check_is_fitted(self)
        return self.support_


def last_step(model: Any) -> Any:
    """Return the last step of a pipeline, or the model itself."""
    return model.steps[-1][1] if hasattr(model, "steps") else model


def _last_has(name: str) -> Any:
    """Whether the last step has a method, for `available_if`; it says itself why not."""
    return available_if(lambda pipeline: getattr(last_step(pipeline), name) is not None)


class PanelPipeline(Pipeline):
    """A pipeline that selects features, and predicts from data frames that hold no others.

    The last step selects a panel, as `GSVPSVMCV` does. The steps before it treat every column
    by itself and keep it, as imputers, logarithms and scalers do. Fitted on a data frame, the
    pipeline finds the panel's columns in another one by their names, whatever else that holds
    or lacks; in all else it is scikit-learn's ``Pipeline``.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.impute import SimpleImputer
    >>> from sparsegsvp import GSVPSVM
    >>> from sparsegsvp.datasets import make_planted
    >>> from sparsegsvp.estimators import PanelPipeline
    >>> X, y = make_planted(60, 20, 2, effect=2.5, return_X_y=True)
    >>> frame = pd.DataFrame(X, columns=[f"g{j}" for j in range(20)])
    >>> steps = [("impute", SimpleImputer(strategy="median")), ("model", GSVPSVM(n_features=2))]
    >>> model = PanelPipeline(steps).fit(frame, y)
    >>> panel = frame.columns[model.get_support()]
    >>> bool((model.predict(frame[panel]) == model.predict(frame)).all())
    True
    """

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Fit the steps one after the other, as ``Pipeline`` does."""
        for _, step in self.steps:  # none stays fitted to other rows where a later one fails
            if hasattr(step, "fit"):
                forget_fit(step)
        return super().fit(X, y, **params)

    @_last_has("get_support")
    def get_support(self, indices: bool = False) -> BoolArray | IntArray:
        """Return which of the columns that the pipeline was fitted on form the panel."""
        last = last_step(self)
        if last.n_features_in_ != self.n_features_in_:
            raise ValueError(
                f"the steps before the last must keep the columns, but they turn "
                f"{self.n_features_in_} into {last.n_features_in_}"
            )
        return last.get_support(indices=indices)

    @_last_has("predict")
    def predict(self, X: Any, **params: Any) -> np.ndarray:
        """Return the class of each row."""
        return self._answer("predict", X, params)

    @_last_has("predict_proba")
    def predict_proba(self, X: Any, **params: Any) -> Array:
        """Return class probabilities, one column a class."""
        return self._answer("predict_proba", X, params)

    @_last_has("decision_function")
    def decision_function(self, X: Any, **params: Any) -> Array:
        """Return the confidence in each class."""
        return self._answer("decision_function", X, params)

    def _answer(self, method: str, X: Any, params: dict[str, Any]) -> Any:
        """What the pipeline says of X or, where X has other columns, its last step of the panel."""
        names, given = getattr(self, "feature_names_in_", None), list(getattr(X, "columns", ()))
        if names is None or not given or given == names.tolist() or len(set(given)) < len(given):
            return getattr(super(), method)(X, **params)
        panel = names[self.get_support()].tolist()
        absent = set(panel).difference(given)
        if absent:
            raise ValueError(f"columns of the panel are missing: {first_few(sorted(absent), 10)}")
        values = check_array(X[panel], accept_sparse="csr", ensure_all_finite="allow-nan")
        return getattr(last_step(self), method)(prepared_rows(self, values))


def prepared_rows(model: Any, X: Any) -> Any:
    """Rows as the last step of a pipeline sees them, from the panel's columns, in its order.

    Any number will do for the other columns, as long as steps treat each column by itself: rows
    are made twice, with other numbers, and refused where the panel comes out differently.
    """
    panel = np.flatnonzero(last_step(model).get_support())
    m = int(last_step(model).n_features_in_)
    blocks, size = [], max(1, _BLOCK // m)
    for start in range(0, X.shape[0], size):
        rows = X[start : start + size]
        made = []
        for filler in (1.0, 2.0):
            full = np.full((rows.shape[0], m), filler)
            full[:, panel] = rows.toarray() if sparse.issparse(rows) else rows
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "X does not have valid feature names")
                for _, step in model.steps[:-1]:
                    full = step.transform(full)
            made.append(full)
        if not np.array_equal(made[0][:, panel], made[1][:, panel], equal_nan=True):
            raise ValueError(
                "a step before the last mixes columns, so the panel's columns alone are not "
                "enough: pass all columns"
            )
        blocks.append(made[0])
    return np.concatenate(blocks)


class Panel(SupportSelector, BaseEstimator):
    """Keep the columns of a given panel, such as a published one.

    Before a classifier in a pipeline it makes a procedure that `nested_evaluate` scores by the
    same folds as any other. The score of a panel that was chosen on these very samples flatters,
    since the folds cannot leave its choice out.

    Parameters
    ----------
    names : sequence of str or int
        Names of columns, or their numbers from 0. Their order does not matter.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sparsegsvp import GSVPSVM, Panel, nested_evaluate
    >>> from sparsegsvp.datasets import make_planted
    >>> data = make_planted(60, 200, 3, effect=2.0, random_state=0)
    >>> published = make_pipeline(Panel(data.support), GSVPSVM(n_features=3))
    >>> result = nested_evaluate(published, data.X, data.y, n_repeats=1, n_permutations=0)
    >>> result.scores["balanced_accuracy"].value > 0.8
    True
    """

    def __init__(self, names: Sequence[str | int]) -> None:
        self.names = names

    def fit(self, X: Any, y: Any = None) -> Panel:
        """Find the panel's columns in X, a data frame if they are given by names."""
        forget_fit(self)
        validate_data(self, X, accept_sparse=True, ensure_all_finite="allow-nan")
        given = self.names
        if isinstance(given, str) or not np.iterable(given) or len(list(given)) == 0:
            raise ValueError(f"names must be a list of names or numbers of columns, got {given!r}")
        known = [str(name) for name in getattr(self, "feature_names_in_", ())]
        for name in given:
            if isinstance(name, bool | np.bool_) or not isinstance(name, str | Integral):
                raise ValueError(f"names must hold names or numbers of columns, got {name!r}")
            if known.count(name) > 1:
                raise ValueError(f"the panel names {name!r}, and so do several columns")
        columns, absent = find_columns(given, known, self.n_features_in_)
        if absent:
            raise ValueError(_missing(absent, known, self.n_features_in_))
        self.support_ = np.zeros(self.n_features_in_, dtype=bool)
        self.support_[columns] = True
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        return tags


def _missing(absent: list[Any], names: list[str], n_features: int) -> str:
    """Say which columns of a panel are not there, and what may be meant."""
    named = [name for name in absent if isinstance(name, str)]
    if named and not names:
        return (
            f"the panel names {named[0]!r}, but the data has no names: fit on a data frame, "
            "or give the numbers of columns"
        )
    shown = first_few(map(repr, absent))
    text = f"{len(absent)} column(s) of the panel are not in the data: {shown}"
    if not isinstance(absent[0], str):
        return f"{text}; there are {n_features}, numbered from 0"
    close = close_names(absent[0], names)
    return f"{text}; did you mean {' or '.join(map(repr, close))}?" if close else text


class BatchCenterer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Subtract from every row the mean of its batch, and add the mean of all training rows.

    A batch that does not occur in training is centred by its own rows, so it takes a whole batch,
    in which the classes are mixed about as in training: what the class adds to the mean is
    subtracted too. Rows of such a batch are not transformed one by one as they are together.
    In a pipeline, `sparsegsvp.nested_evaluate` hands the first of its batch variables to this
    step. Otherwise enable scikit-learn's metadata routing: ``batch`` is requested by default.

    Parameters
    ----------
    skip : sequence of int, default=()
        Columns that stay as they are, such as the age of patients.

    Attributes
    ----------
    batches_, means_, mean_ : ndarrays
        The batches of the training rows, their means, and the mean of all training rows.

    Examples
    --------
    >>> from sparsegsvp.estimators import BatchCenterer
    >>> X, plate = [[1.0], [3.0], [11.0], [13.0]], ["a", "a", "b", "b"]
    >>> BatchCenterer().fit_transform(X, batch=plate).ravel()
    array([6., 8., 6., 8.])
    """

    __metadata_request__fit = {"batch": True}  # noqa: RUF012
    __metadata_request__transform = {"batch": True}  # noqa: RUF012

    def __init__(self, skip: Sequence[int] = ()) -> None:
        self.skip = skip

    def fit(self, X: Any, y: Any = None, batch: ArrayLike | None = None) -> BatchCenterer:
        """Find the means of the batches of training rows, which have no missing values."""
        if batch is None:
            raise ValueError("batch is needed: say of each row which batch it is from")
        forget_fit(self)
        X = validate_data(self, X, dtype=_FLOATS)
        names = _texts(batch, X)
        self.batches_, counts = np.unique(names, return_counts=True)
        self.means_ = np.stack([X[names == b].mean(axis=0, dtype="f8") for b in self.batches_])
        # shares before the product: with one batch its mean, to the last bit
        self.mean_ = (counts / names.size) @ self.means_
        return self

    def fit_transform(self, X: Any, y: Any = None, batch: ArrayLike | None = None) -> Any:
        """Find the means of the batches and centre the same rows."""
        return self.fit(X, y, batch=batch).transform(X, batch=batch)

    def transform(self, X: Any, batch: ArrayLike | None = None) -> Any:
        """Centre rows by the means of their batches; without these they are one new batch."""
        check_is_fitted(self, "mean_")
        X = validate_data(self, X, reset=False, dtype=_FLOATS)
        names = np.full(X.shape[0], "") if batch is None else _texts(batch, X)
        known = {} if batch is None else dict(zip(self.batches_, self.means_))
        centred = X.copy()
        for name in np.unique(names):
            rows = names == name
            if name not in known and rows.sum() < 10:  # they say more of themselves than of it
                warn_caller(
                    "a batch that training has not seen is centred by the mean of "
                    f"{rows.sum()} row(s): transform whole batches"
                )
            mean = known[name] if name in known else X[rows].mean(axis=0, dtype="f8")
            shift = self.mean_ - mean
            shift[list(self.skip)] = 0.0
            centred[rows] += shift.astype(X.dtype)
        return centred


def _texts(batch: ArrayLike, X: Any) -> NDArray[np.str_]:
    """Batches as text, one for each row; a number is the same text as integer and as float."""
    values = np.asarray(batch)
    if values.ndim != 1:
        raise ValueError(f"batch must have one value for each row, got shape {values.shape}")
    check_consistent_length(X, values)
    return np.array([f"{v:.15g}" if isinstance(v, Real) else str(v) for v in values.tolist()])


def takes_batch(step: Any) -> bool:
    """Whether a step of a pipeline has to be told the batch of each row that it transforms."""
    return "batch" in inspect.signature(getattr(step, "transform", len)).parameters


def log2_floor(X: Any, floor: float = 1.0, skip: Sequence[int] = ()) -> Any:
    """Compute ``log2(max(x, floor))`` outside of `skip`; sparse input needs ``floor = 1``."""
    if sparse.issparse(X):
        if floor != 1:
            raise ValueError(f"floor={floor} would make every zero of sparse data non-zero: use 1")
        logged = X.tocsr(copy=True)
        taken = ~np.isin(logged.indices, skip)
        logged.data[taken] = np.log2(np.maximum(logged.data[taken], 1))
        return logged
    floored = np.maximum(X, X.dtype.type(floor))
    np.log2(floored, out=floored)
    floored[:, list(skip)] = X[:, list(skip)]
    return floored


class Log2(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Take ``log2(max(x, floor))`` of every value, as is usual for intensities.

    Parameters
    ----------
    floor : float, default=1.0
        Smaller values count as this. Raw microarray intensities are often floored at 16.
    skip : sequence of int, default=()
        Columns that stay as they are, such as the age of patients.

    Examples
    --------
    >>> from sparsegsvp.estimators.pipeline import Log2
    >>> Log2().fit_transform([[-3.0, 2.0, 8.0]])
    array([[0., 1., 3.]])
    """

    def __init__(self, floor: float = 1.0, skip: Sequence[int] = ()) -> None:
        self.floor = floor
        self.skip = skip

    def fit(self, X: Any, y: Any = None) -> Log2:
        """Check the data, an array or sparse matrix, and remember the names of the features."""
        check_real("floor", self.floor, above=0)
        forget_fit(self)
        validate_data(self, X, **_LENIENT)
        return self

    def transform(self, X: Any) -> Any:
        """Return the logarithm of an array or, as CSR, of a sparse matrix."""
        check_is_fitted(self, "n_features_in_")
        X = validate_data(self, X, reset=False, **_LENIENT)
        return log2_floor(X, self.floor, self.skip)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
