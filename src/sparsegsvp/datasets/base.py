"""The record every loader returns, and the folder of data that are not shipped."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

DATA_VARIABLE = "SPARSEGSVP_DATA"

#: What loaders give with return_X_y=True.
Arrays = tuple[NDArray[np.floating[Any]], NDArray[np.int64]]


def data_folder() -> Path | None:
    """Return the folder of external data that ``SPARSEGSVP_DATA`` names.

    Returns
    -------
    Path or None
        None where the environment variable is not set, or set but empty.

    Examples
    --------
    >>> from sparsegsvp.datasets import data_folder
    >>> data_folder()  # doctest: +SKIP
    PosixPath('data')
    """
    folder = os.environ.get(DATA_VARIABLE)
    return Path(folder) if folder else None


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A table of samples and features with class labels.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        The measurements, float32 or float64.
    y : ndarray of shape (n_samples,), int64
        The class of each sample, an index into `class_names`.
    feature_names : ndarray of shape (n_features,), str
    class_names : ndarray of shape (n_classes,), str
    description : str
        What the data are, where they come from, and what is known to be wrong with them.
    support : ndarray of int or None
        The features that carry the signal, in ascending order, where that is known
        (simulated data), otherwise None.

    Examples
    --------
    >>> from sparsegsvp.datasets import load_breast_cancer
    >>> data = load_breast_cancer()
    >>> data
    Dataset(569 samples x 30 features; benign 357, malignant 212)
    >>> data.labels[:3]
    array(['malignant', 'malignant', 'malignant'], dtype='<U9')
    """

    X: NDArray[np.floating[Any]]
    y: NDArray[np.int64]
    feature_names: NDArray[np.str_]
    class_names: NDArray[np.str_]
    description: str
    support: NDArray[np.int64] | None = None

    @property
    def labels(self) -> NDArray[np.str_]:
        """The class of each sample by name."""
        return self.class_names[self.y]

    @property
    def class_counts(self) -> NDArray[np.int64]:
        """The number of samples of each class, in the order of `class_names`."""
        return np.bincount(self.y, minlength=len(self.class_names))

    def __repr__(self) -> str:
        counts = ", ".join(
            f"{name} {count}" for name, count in zip(self.class_names, self.class_counts)
        )
        return f"Dataset({self.X.shape[0]} samples x {self.X.shape[1]} features; {counts})"
