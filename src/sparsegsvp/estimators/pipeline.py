"""`PanelPipeline`, which predicts from the panel's columns alone, and `Panel`, a given panel."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from .._mixins import SupportSelector
from .._typing import BoolArray, Float64Array, IntArray
from .._validate import close_names, find_columns, first_few, forget_fit

_BLOCK = 4_000_000  # numbers built at a time


def _last_has(name: str) -> Any:
    """Whether the last step has a method, as `available_if` asks it."""

    def check(pipeline: Any) -> bool:
        getattr(last_step(pipeline), name)
        return True

    return check


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
    >>> len(panel)
    2
    >>> bool((model.predict(frame[panel]) == model.predict(frame)).all())
    True
    """

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Fit the steps one after the other, as ``Pipeline`` does."""
        for _, step in self.steps:  # none stays fitted to other rows where a later one fails
            if hasattr(step, "fit"):
                forget_fit(step)
        return super().fit(X, y, **params)

    @available_if(_last_has("get_support"))
    def get_support(self, indices: bool = False) -> BoolArray | IntArray:
        """Return which of the columns that the pipeline was fitted on form the panel."""
        last = last_step(self)
        if last.n_features_in_ != self.n_features_in_:
            raise ValueError(
                f"the steps before the last must keep the columns, but they turn "
                f"{self.n_features_in_} into {last.n_features_in_}"
            )
        return last.get_support(indices=indices)

    @available_if(_last_has("predict"))
    def predict(self, X: Any, **params: Any) -> np.ndarray:
        """Return the class of each row."""
        return self._answer("predict", X, params)

    @available_if(_last_has("predict_proba"))
    def predict_proba(self, X: Any, **params: Any) -> Float64Array:
        """Return class probabilities, one column a class."""
        return self._answer("predict_proba", X, params)

    @available_if(_last_has("decision_function"))
    def decision_function(self, X: Any, **params: Any) -> Float64Array:
        """Return the confidence in each class."""
        return self._answer("decision_function", X, params)

    def _answer(self, method: str, X: Any, params: dict[str, Any]) -> Any:
        """What the pipeline says of X or, where X has other columns, its last step of the panel."""
        assay = panel_columns(self, X)
        if assay is None:
            return getattr(super(), method)(X, **params)
        values = check_array(assay, accept_sparse="csr", ensure_all_finite="allow-nan")
        return getattr(last_step(self), method)(prepared_rows(self, values))


def last_step(model: Any) -> Any:
    """Return the last step of a pipeline, or the model itself."""
    return model.steps[-1][1] if hasattr(model, "steps") else model


def panel_columns(model: Any, X: Any) -> Any:
    """The panel's columns of a data frame with other columns than the model's, in its order.

    None where there is nothing to look up: X is no data frame, has the very columns of training
    or repeats a name, or the model knows no names.
    """
    names, given = getattr(model, "feature_names_in_", None), list(getattr(X, "columns", ()))
    if names is None or not given or given == names.tolist() or len(set(given)) < len(given):
        return None
    panel = names[model.get_support()].tolist()
    absent = set(panel).difference(given)
    if absent:
        raise ValueError(f"columns of the panel are missing: {first_few(sorted(absent), 10)}")
    return X[panel]


def prepared_rows(model: Any, X: Any) -> Any:
    """Rows as the last step of a pipeline sees them, from the panel's columns alone.

    X is an array or a CSR matrix of these columns, in the model's order. The other columns have
    no weight, so any number will do, as long as every step treats each column by itself: the
    rows are made twice, with other numbers, and refused where the panel's columns come out
    differently.
    """
    steps = [step for _, step in model.steps[:-1]]
    panel = np.flatnonzero(last_step(model).get_support())
    m = int(last_step(model).n_features_in_)
    blocks = []
    for start in range(0, X.shape[0], max(1, _BLOCK // m)):
        rows = X[start : start + max(1, _BLOCK // m)]
        rows = rows.toarray() if sparse.issparse(rows) else rows
        made = [_transformed(steps, rows, panel, m, filler) for filler in (1.0, 2.0)]
        if not np.array_equal(made[0][:, panel], made[1][:, panel], equal_nan=True):
            raise ValueError(
                "a step before the last mixes columns, so the panel's columns alone are not "
                "enough: pass all columns"
            )
        blocks.append(made[0])
    return np.concatenate(blocks)


def _transformed(
    steps: list[Any], rows: NDArray[Any], panel: IntArray, m: int, filler: float
) -> NDArray[Any]:
    """Rows of all m columns, of which the panel's are given, as the steps transform them."""
    full = np.full((len(rows), m), filler)
    full[:, panel] = rows
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        for step in steps:
            full = step.transform(full)
    return full


class Panel(SupportSelector, BaseEstimator):
    """Keep the columns of a given panel, such as a published one.

    Before a classifier in a pipeline it makes a procedure that `nested_evaluate` scores by the
    same folds as any other. The score of a panel that was chosen on these very samples flatters,
    since the folds cannot leave its choice out.

    Parameters
    ----------
    names : sequence of str or int
        Names of columns, or their numbers from 0. Their order does not matter.

    Attributes
    ----------
    support_ : ndarray of bool of shape (n_features_in_,)
        The columns that are kept.
    n_features_in_ : int
        Number of columns seen in `fit`.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Their names, if X had any.

    See Also
    --------
    sparsegsvp.evaluation.paired_difference : Compares the scores of two procedures.

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
        """Find the panel's columns.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            A data frame, if the panel is given by names.
        y : None
            Ignored.

        Returns
        -------
        Panel
            The object itself.
        """
        forget_fit(self)
        validate_data(self, X, accept_sparse=True, ensure_all_finite="allow-nan")
        columns = self._columns()
        self.support_ = np.zeros(self.n_features_in_, dtype=bool)
        self.support_[columns] = True
        return self

    def _columns(self) -> list[int]:
        """The numbers of the panel's columns, each of which must be there once."""
        given = self.names
        if isinstance(given, str) or not np.iterable(given) or len(list(given)) == 0:
            raise ValueError(f"names must be a list of names or numbers of columns, got {given!r}")
        known = [str(name) for name in getattr(self, "feature_names_in_", ())]
        for name in given:
            if isinstance(name, bool | np.bool_) or not isinstance(name, str | Integral):
                raise ValueError(f"names must hold names or numbers of columns, got {name!r}")
            if known.count(name) > 1:
                raise ValueError(f"the panel names {name!r}, and so do several columns")
        found, absent = find_columns(given, known, self.n_features_in_)
        if absent:
            raise ValueError(_missing(absent, known, self.n_features_in_))
        return found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
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
