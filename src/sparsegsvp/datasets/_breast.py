"""The breast cancer data that come with scikit-learn, coded as in the paper."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer as _load_breast_cancer

from ._base import Dataset

_DESCRIPTION = """\
Breast Cancer Wisconsin (Diagnostic): 569 fine-needle aspirates, 30 measurements of the
cell nuclei in each image (ten properties; their mean, standard error and worst value).
The rows are in the order of scikit-learn's copy. The classes are coded as in the paper,
benign = 0 and malignant = 1, so that a positive is a cancer; scikit-learn codes them the
other way round.
"""


@overload
def load_breast_cancer(*, return_X_y: Literal[False] = False) -> Dataset: ...
@overload
def load_breast_cancer(
    *, return_X_y: Literal[True]
) -> tuple[NDArray[np.floating[Any]], NDArray[np.int64]]: ...
def load_breast_cancer(
    *, return_X_y: bool = False
) -> Dataset | tuple[NDArray[np.floating[Any]], NDArray[np.int64]]:
    """Load the breast cancer data of scikit-learn with benign = 0 and malignant = 1.

    Parameters
    ----------
    return_X_y : bool, default=False
        Return only the pair ``(X, y)``.

    Returns
    -------
    Dataset or tuple of ndarray
        569 samples (357 benign, 212 malignant), 30 features.

    Notes
    -----
    scikit-learn's own ``load_breast_cancer`` has malignant = 0. Here the classes are as in
    the paper, where class 0 is benign; the row order is unchanged.

    Examples
    --------
    >>> from sparsegsvp.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X.shape, int(y.sum())
    ((569, 30), 212)
    """
    bunch = _load_breast_cancer()
    y = (1 - bunch.target).astype(np.int64)
    if return_X_y:
        return bunch.data, y
    return Dataset(
        X=bunch.data,
        y=y,
        feature_names=np.asarray(bunch.feature_names, dtype=np.str_),
        class_names=np.array(["benign", "malignant"]),
        description=_DESCRIPTION,
    )
