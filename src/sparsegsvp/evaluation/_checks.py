"""Samples that occur more than once, which make every score too good."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from .._notices import Notice


def _row_keys(X: Any) -> list[bytes]:
    """Return one key per row, equal for rows with equal bytes."""
    if sparse.issparse(X):
        X = X.tocsr().copy()
        X.sum_duplicates()
        X.eliminate_zeros()
        return [
            X.indices[a:b].tobytes() + X.data[a:b].tobytes()
            for a, b in zip(X.indptr[:-1], X.indptr[1:])
        ]
    rows = np.asarray(X)
    if rows.dtype == object:
        return [repr(row.tolist()).encode() for row in rows]
    return [np.ascontiguousarray(row).tobytes() for row in rows]


def _repeats(keys: list[Any], groups: NDArray[Any] | None) -> int:
    """Count the samples whose key also occurs in another group (any other sample without)."""
    seen: dict[Any, list[int]] = {}
    for i, key in enumerate(keys):
        seen.setdefault(key, []).append(i)
    total = 0
    for members in seen.values():
        apart = len(members) if groups is None else np.unique(groups[members]).size
        total += len(members) if apart > 1 else 0
    return total


def repeated_samples(
    X: Any, ids: ArrayLike | None = None, groups: NDArray[Any] | None = None
) -> list[Notice]:
    """Look for samples that may occur on both sides of a split.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        The table.
    ids : array-like of shape (n_samples,), optional
        Sample or subject identifiers.
    groups : ndarray of shape (n_samples,), optional
        Groups; repeats within one group are harmless.

    Returns
    -------
    list of Notice
        Of the code "repeats"; empty when nothing was found.

    Examples
    --------
    >>> from sparsegsvp.evaluation import repeated_samples
    >>> repeated_samples([[1, 2], [1, 2], [3, 4]])[0].text
    '2 of 3 rows are exact duplicates of another row...
    """
    remedy = (
        "If they come from the same subject, pass that column as groups, "
        "so that a sample is never tested on its own copy."
    )
    texts = []
    keys = _row_keys(X)
    rows = _repeats(keys, groups)
    if rows:
        texts.append(
            f"{rows} of {len(keys)} rows are exact duplicates of another row"
            f"{'' if groups is None else ' in another group'}. {remedy}"
        )
    if ids is not None:
        repeated = _repeats(list(np.asarray(ids).tolist()), groups)
        if repeated:
            texts.append(f"{repeated} of {len(keys)} rows share an identifier. {remedy}")
    return [Notice("repeats", "serious", text) for text in texts]
