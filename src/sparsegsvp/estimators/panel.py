"""`Panel`: given columns as a selector, so that a panel from elsewhere can be evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .._typing import BoolArray
from .._validate import close_names, forget_fit


class Panel(SelectorMixin, BaseEstimator):
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
    >>> X, y = make_planted(60, 200, 3, effect=2.0, random_state=0, return_X_y=True)
    >>> published = make_pipeline(Panel([0, 1, 2]), GSVPSVM(n_features=3))
    >>> found = nested_evaluate(published, X, y, n_repeats=1, n_permutations=0)
    >>> found.final_panel
    (0, 1, 2)
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
        places: dict[Any, int] = dict(zip(known, range(self.n_features_in_)))
        places.update((place, place) for place in range(self.n_features_in_))
        for name in given:
            if isinstance(name, bool | np.bool_) or not isinstance(name, str | Integral):
                raise ValueError(f"names must hold names or numbers of columns, got {name!r}")
            if isinstance(name, str) and not known:
                raise ValueError(
                    f"the panel names {name!r}, but the data has no names: fit on a data frame, "
                    "or give the numbers of columns"
                )
            if known.count(name) > 1:
                raise ValueError(f"the panel names {name!r}, and so do several columns")
        absent = [name for name in given if name not in places]
        if absent:
            raise ValueError(_missing(absent, known, self.n_features_in_))
        return [places[name] for name in given]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "support_")

    def _get_support_mask(self) -> BoolArray:
        check_is_fitted(self)
        return self.support_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags


def _missing(absent: list[Any], names: list[str], n_features: int) -> str:
    """Say which columns of a panel are not there, and what may be meant."""
    shown = ", ".join(repr(name) for name in absent[:5])
    more = f" and {len(absent) - 5} more" if len(absent) > 5 else ""
    text = f"{len(absent)} column(s) of the panel are not in the data: {shown}{more}"
    if not isinstance(absent[0], str):
        return f"{text}; there are {n_features}, numbered from 0"
    close = close_names(absent[0], names)
    return f"{text}; did you mean {' or '.join(map(repr, close))}?" if close else text
