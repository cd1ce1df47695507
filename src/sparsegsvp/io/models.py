"""Models as files without pickle: checked before, while and after they are loaded.

`Log2`, the logarithm as a step of a pipeline, is here so that a saved model takes it too.

A model is a skops archive (a zip of ``.npy`` arrays and one ``schema.json``) to which two
things are done. It is made canonical, so that equal models are equal bytes; and a member
`SEAL` is added that names the format and holds the digest of all other members.

Loading trusts a list of types and nothing else, which `archive` has: some plain ones and some
of scikit-learn by name, and the estimators and records of this package. The digest reveals
damage and careless edits, not forgery: whoever rewrites a file can rewrite its digest. What a
forged file can do is limited by the list.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from .._validate import check_integer, check_real
from ..estimators.impute import EachValue
from ..estimators.pipeline import last_step
from .archive import (
    MAX_BYTES,
    canonical,
    check_arrays,
    check_model_type,
    checked_seal,
    foreign_types,
    sealed,
    type_name,
    types_in,
    unpacked,
    updated_schema,
    zipped,
)
from .errors import InputError, error_text, listed, locating, need, quote
from .files import write_atomic

_CHANGED = "do not use it unless you know who changed it"


def log2_floor(X: Any, floor: float = 1.0, skip: Sequence[int] = ()) -> Any:
    """Compute ``log2(max(x, floor))``; missing values stay missing, float32 stays float32.

    Sparse input stays sparse and needs ``floor = 1``, for which zeros stay zeros. Columns of
    `skip` stay as they are.
    """
    if sparse.issparse(X):
        if floor != 1:
            raise ValueError(
                f"floor={floor} would make every zero of sparse data non-zero: use floor=1"
            )
        logged = X.copy()
        np.maximum(logged.data, 1, out=logged.data)
        np.log2(logged.data, out=logged.data)
        if len(skip):
            column = X.indices
            if X.format == "csc":
                column = np.repeat(np.arange(X.shape[1]), np.diff(X.indptr))
            kept = np.isin(column, skip)
            logged.data[kept] = X.data[kept]
        return logged
    floored = np.maximum(X, X.dtype.type(floor))
    np.log2(floored, out=floored)
    floored[:, list(skip)] = X[:, list(skip)]
    return floored


class Log2(EachValue):
    """Take ``log2(max(x, floor))`` of every value, as intensities usually are.

    Parameters
    ----------
    floor : float, default=1.0
        Smaller values, negative ones among them, count as this. Raw microarray
        intensities are often floored at 16.
    skip : sequence of int, default=()
        Columns that stay as they are, such as the age of patients.

    Attributes
    ----------
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X had any.

    Examples
    --------
    >>> from sparsegsvp.io import Log2
    >>> Log2().fit_transform([[1.0, 8.0], [-3.0, 2.0]])
    array([[0., 3.],
           [0., 1.]])
    """

    skip: Sequence[int] = ()  # for models that were saved before they had it

    def __init__(self, floor: float = 1.0, skip: Sequence[int] = ()) -> None:
        self.floor = floor
        self.skip = skip

    def fit(self, X: Any, y: Any = None) -> Log2:
        """Check the data and remember the names of the features.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The data.
        y : None
            Ignored.

        Returns
        -------
        Log2
            The object itself.
        """
        check_real("floor", self.floor, above=0)
        self._validated(X, reset=True)
        return self

    def transform(self, X: Any) -> Any:
        """Take the logarithm.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The data.

        Returns
        -------
        ndarray or sparse matrix of shape (n_samples, n_features)
            Its logarithm.
        """
        check_is_fitted(self, "n_features_in_")
        return log2_floor(self._validated(X, reset=False), self.floor, self.skip)


# --- saving and loading ------------------------------------------------------------------


def save_model(model: Any, path: str | PathLike[str]) -> Path:
    """Write a fitted model to a file, without pickle.

    Parameters
    ----------
    model : estimator
        An estimator of this package, or a scikit-learn ``Pipeline`` that ends in one.
    path : path-like
        The file, usually ``*.skops``; written whole or not at all.

    Returns
    -------
    pathlib.Path
        The path written.

    Raises
    ------
    InputError
        A ValueError, if the model holds something that `load_model` would refuse, such as
        a function given as ``scoring``.

    Notes
    -----
    Equal models give equal bytes. Needs ``pip install "sparsegsvp[persist]"``.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> from sparsegsvp import load_model, save_model
    >>> from sparsegsvp.related import GEPSVM
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(40, 5)), np.repeat(["ill", "well"], 20)
    >>> model = GEPSVM().fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = save_model(model, pathlib.Path(folder) / "model.skops")
    ...     again = load_model(path)
    >>> bool((again.predict(X) == model.predict(X)).all())
    True
    """
    skops = need("skops.io", "persist")
    with locating(str(path)):
        check_model_type(model)
        try:
            archive = skops.dumps(model)
        except Exception as error:
            raise InputError(
                f"the model holds something that cannot be saved ({error_text(error)})",
                remedy="use names instead of functions for parameters such as scoring",
            ) from error
        members = canonical(archive)
        foreign = foreign_types(json.loads(members["schema.json"]))
        if foreign:
            raise InputError(
                f"the model holds {listed(foreign, limit=100)}, which loading would refuse",
                remedy="use names instead of functions and plain parameters",
            )
    return write_atomic(path, sealed(members, type_name(model)))


def load_model(path: str | PathLike[str], *, max_bytes: int = MAX_BYTES) -> Any:
    """Load a model that `save_model` wrote, trusting nothing else.

    Parameters
    ----------
    path : path-like
        The file.
    max_bytes : int, default=2**30
        Refuse archives that would unpack to more than this.

    Returns
    -------
    estimator
        It predicts exactly as the saved one did.

    Raises
    ------
    InputError
        A ValueError that says which: not a model, damaged, changed, foreign types, too
        large, or written by a newer version.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sparsegsvp import load_model
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "model.skops"
    ...     _ = path.write_text("not a model")
    ...     try:
    ...         load_model(path)
    ...     except ValueError as error:
    ...         print(str(error).removeprefix(folder))
    /model.skops: this is not a model file, or it is cut short; save the model again
    """
    check_integer("max_bytes", max_bytes, least=1)
    with locating(str(path)):
        members = unpacked(Path(path), max_bytes)
        named = checked_seal(members)
        model = _rebuilt(members)
        if type_name(model) != named:
            raise InputError(
                f"it holds {type_name(model)} but says {quote(named, 80)}", remedy=_CHANGED
            )
        _try_out(model, sum(map(len, members.values())))
    return model


def _rebuilt(members: dict[str, bytes]) -> Any:
    """Build the model of an archive, if every type and array in it is what a model has."""
    schema = updated_schema(members)
    foreign = foreign_types(schema)
    if foreign:
        raise InputError(
            f"it holds types that are not part of a model: {listed(foreign, limit=100)}",
            remedy="do not use it unless you know who made it; load_model never will",
        )
    check_arrays(members)
    try:
        # all types were checked; skops asks for those that it does not know itself
        model = need("skops.io", "persist").loads(zipped(members), trusted=types_in(schema))
    except Exception as error:
        raise InputError(
            f"the model cannot be rebuilt ({error_text(error)})",
            remedy="save it again with this version of sparsegsvp and scikit-learn",
        ) from error
    check_model_type(model)
    return model


def _try_out(model: Any, n_bytes: int) -> None:
    """Refuse a model whose parts do not fit together, by letting it treat a row of ones.

    Each part may be sound by itself and the seal too, where somebody changed both.
    """
    last = last_step(model)
    m: int = getattr(last, "n_features_in_", 0)
    names = getattr(model, "feature_names_in_", None)
    try:
        check_is_fitted(last)
    except NotFittedError:
        return
    given = getattr(model, "n_features_in_", m)  # of which a step before the last may keep some
    try:
        for n in (m, given):
            if not 0 < n <= n_bytes:  # there is at least a byte for each
                raise ValueError(f"{n} features")
        if hasattr(last, "get_support"):  # which a transformer of values has not
            support = np.asarray(last.get_support())
            if support.shape != (m,) or support.dtype != bool or not support.any():
                raise ValueError("the panel is not among the features")
        if names is not None and (
            names.shape != (given,) or not all(type(n) is str for n in names)
        ):
            raise ValueError("the names are not those of the features")
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            for method in ("transform", "predict", "decision_function", "predict_proba"):
                if hasattr(model, method):
                    getattr(model, method)(np.ones((1, given)))
            if hasattr(last, "distances"):
                last.distances(np.ones((1, m)))
    except Exception as error:
        raise InputError(
            f"the parts of the model do not fit together ({error_text(error)})", remedy=_CHANGED
        ) from error
