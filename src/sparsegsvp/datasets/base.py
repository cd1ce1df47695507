"""The record every loader returns, the embedded data, and simulated data."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.signal import lfilter
from sklearn.datasets import load_breast_cancer as _load_breast_cancer
from sklearn.utils import check_random_state

from .._validate import check_integer, check_real

_BREAST = """\
Breast Cancer Wisconsin (Diagnostic): 569 fine-needle aspirates, 30 measurements of the
cell nuclei in each image (ten properties; their mean, standard error and worst value).
The rows are in the order of scikit-learn's copy. The classes are coded as in the paper,
benign = 0 and malignant = 1, so that a positive is a cancer; scikit-learn codes them the
other way round.
"""
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


@overload
def load_breast_cancer(*, return_X_y: Literal[False] = False) -> Dataset: ...
@overload
def load_breast_cancer(*, return_X_y: Literal[True]) -> Arrays: ...
def load_breast_cancer(*, return_X_y: bool = False) -> Dataset | Arrays:
    """Load the breast cancer data of scikit-learn with benign = 0 and malignant = 1.

    Parameters
    ----------
    return_X_y : bool, default=False
        Return only the pair ``(X, y)``.

    Returns
    -------
    Dataset or tuple of ndarray
        569 samples (357 benign, 212 malignant), 30 features. The rows are in scikit-learn's
        order, whose own ``load_breast_cancer`` has malignant = 0; the classes are the paper's.

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
        description=_BREAST,
    )


@overload
def make_planted(
    n_samples: int = ...,
    n_features: int = ...,
    n_informative: int = ...,
    *,
    effect: float = ...,
    correlation: float = ...,
    n_classes: int = ...,
    weights: Sequence[float] | None = ...,
    dtype: DTypeLike = ...,
    random_state: int | np.random.RandomState | None = ...,
    return_X_y: Literal[False] = False,
) -> Dataset: ...
@overload
def make_planted(
    n_samples: int = ...,
    n_features: int = ...,
    n_informative: int = ...,
    *,
    effect: float = ...,
    correlation: float = ...,
    n_classes: int = ...,
    weights: Sequence[float] | None = ...,
    dtype: DTypeLike = ...,
    random_state: int | np.random.RandomState | None = ...,
    return_X_y: Literal[True],
) -> Arrays: ...
def make_planted(
    n_samples: int = 200,
    n_features: int = 1000,
    n_informative: int = 5,
    *,
    effect: float = 1.5,
    correlation: float = 0.0,
    n_classes: int = 2,
    weights: Sequence[float] | None = None,
    dtype: DTypeLike = np.float64,
    random_state: int | np.random.RandomState | None = 0,
    return_X_y: bool = False,
) -> Dataset | Arrays:
    """Simulate Gaussian classes that differ in a few features only.

    Within a class every feature has variance 1, and features f and g have correlation
    ``correlation ** abs(f - g)``, as neighbouring bins of a spectrum have. The informative
    features lie at random positions. The j-th of them sets class ``j % n_classes`` apart:
    its mean there is ``effect`` within-class standard deviations away from its mean in the
    other classes, upward or downward at random.

    Parameters
    ----------
    n_samples, n_features : int, default=200, 1000
    n_informative : int, default=5
        The number of features that carry signal; 0 gives pure noise.
    effect : float, default=1.5
        The shift of an informative feature, in within-class standard deviations.
    correlation : float in [0, 1), default=0.0
        Correlation of neighbouring features within a class.
    n_classes : int, default=2
    weights : sequence of float, optional
        Relative class sizes, one per class; even classes by default. Counts that sum to
        `n_samples` are met exactly.
    dtype : float32 or float64, default=float64
    random_state : int, RandomState or None, default=0
    return_X_y : bool, default=False
        Return only the pair ``(X, y)``.

    Returns
    -------
    Dataset or tuple of ndarray
        The rows are shuffled; ``support`` holds the informative features.

    Examples
    --------
    >>> from sparsegsvp.datasets import make_planted
    >>> data = make_planted(n_samples=60, n_features=500, n_informative=3, weights=(2, 1))
    >>> data
    Dataset(60 samples x 500 features; class 0 40, class 1 20)
    >>> data.support
    array([172, 310, 348])
    """
    sizes = _class_sizes(n_samples, n_classes, weights)
    check_integer("n_features", n_features, least=1)
    check_integer("n_informative", n_informative, least=0, most=n_features)
    check_real("correlation", correlation, least=0, below=1)
    check_real("effect", effect)
    dtype = np.dtype(dtype)
    if dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ValueError(f"dtype must be float32 or float64, got {dtype}.")

    rng = check_random_state(random_state)
    y = rng.permutation(np.repeat(np.arange(n_classes, dtype=np.int64), sizes))
    support = np.sort(rng.permutation(n_features)[:n_informative]).astype(np.int64)
    signs = rng.choice([-1.0, 1.0], size=n_informative)
    X = rng.standard_normal((n_samples, n_features)).astype(dtype, copy=False)
    if correlation > 0.0:
        # x_f = c x_{f-1} + sqrt(1 - c^2) e_f keeps variance 1 when it starts at x_0 = e_0.
        X[:, 1:] *= np.sqrt(1.0 - correlation**2)
        X = lfilter(np.ones(1, dtype), np.array([1.0, -correlation], dtype), X, axis=1)
        X = X.astype(dtype, copy=False)
    for j, feature in enumerate(support):
        X[y == j % n_classes, feature] += dtype.type(effect * signs[j])
    if return_X_y:
        return X, y
    return Dataset(
        X=X,
        y=y,
        feature_names=np.array([f"f{index}" for index in range(n_features)]),
        class_names=np.array([f"class {index}" for index in range(n_classes)]),
        description=(
            f"Simulated: {n_informative} informative features, effect {effect}, "
            f"correlation {correlation}."
        ),
        support=support,
    )


def _class_sizes(
    n_samples: int, n_classes: int, weights: Sequence[float] | None
) -> NDArray[np.int64]:
    """Split `n_samples` in proportion to `weights` by the largest remainders."""
    check_integer("n_classes", n_classes, least=2)
    share = np.ones(n_classes) if weights is None else np.asarray(weights, dtype=np.float64)
    if share.shape != (n_classes,) or not np.all(np.isfinite(share)) or np.any(share <= 0):
        raise ValueError(f"weights must be {n_classes} positive numbers, one per class.")
    exact = n_samples * share / share.sum()
    # 1e-9 guards counts such as 58/77 * 77, which floor would lower by one.
    sizes = np.floor(exact + 1e-9).astype(np.int64)
    order = np.argsort(sizes - exact, kind="stable")
    sizes[order[: n_samples - sizes.sum()]] += 1
    if sizes.min() < 1:
        raise ValueError(
            f"n_samples={n_samples} leaves a class without samples: {sizes.tolist()}. "
            "Ask for more samples or for less uneven weights."
        )
    return sizes
