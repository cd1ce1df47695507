"""The paper's way of splitting, deciding and scoring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from .published import Counts

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Parts:
    """Training, validation and test samples, class 0 first in each."""

    train: tuple[Array, Array]
    validation: tuple[Array, Array]
    test: tuple[Array, Array]


def paper_split(X: Array, y: Array, second_split: float) -> Parts:
    """Split each class by itself: 70% for training, the rest into validation and test.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
        Classes 0 and 1.
    second_split : float
        Share of the held-out 30% that becomes the test part.

    Returns
    -------
    Parts

    Examples
    --------
    >>> from sparsegsvp.datasets import load_breast_cancer
    >>> from sparsegsvp.reproduce.protocol import paper_split
    >>> parts = paper_split(*load_breast_cancer(return_X_y=True), second_split=0.4)
    >>> len(parts.train[1]), len(parts.validation[1]), len(parts.test[1])
    (397, 102, 70)
    """
    pieces: list[list[Array]] = [[], [], []]
    for label in (0, 1):
        rows = np.flatnonzero(y == label)
        train, rest = train_test_split(rows, test_size=0.3, random_state=42)
        validation, test = train_test_split(rest, test_size=second_split, random_state=42)
        for piece, part in zip(pieces, (train, validation, test)):
            piece.append(part)
    indices = [np.concatenate(piece) for piece in pieces]
    train, validation, test = ((X[rows], y[rows]) for rows in indices)
    return Parts(train, validation, test)


def batch_normalised_predict(Z: Array, weights: Array, biases: Array) -> NDArray[np.intp]:
    r"""The rule behind the published scores: distances divided by their norm over the batch.

    A sample is given to class 0 if :math:`|z'w_1 + b_1| / n_1 \le |z'w_2 + b_2| / n_2`, where
    :math:`n_k` is the Euclidean norm of :math:`|Zw_k + b_k|` over all samples being predicted.
    The class of a sample therefore depends on the samples beside it, and a sample predicted
    alone always belongs to class 0. It exists for the reproduction only.

    Parameters
    ----------
    Z : ndarray of shape (n_samples, n_features)
        Standardised samples.
    weights : ndarray of shape (2, n_features)
    biases : ndarray of shape (2,)

    Returns
    -------
    ndarray of shape (n_samples,)
        0 or 1.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsegsvp.reproduce.protocol import batch_normalised_predict
    >>> Z = np.array([[0.1, 2.0], [3.0, 0.1]])
    >>> batch_normalised_predict(Z, np.eye(2), np.zeros(2))
    array([0, 1])
    >>> batch_normalised_predict(Z[1:], np.eye(2), np.zeros(2))  # the second one, alone
    array([0])
    """
    distances = np.abs(Z @ weights.T + biases)
    distances /= np.linalg.norm(distances, axis=0)
    return _nearer(distances)


def nearest_plane_predict(Z: Array, weights: Array, biases: Array) -> NDArray[np.intp]:
    r"""The rule the paper prints (equation 21): the nearer plane, :math:`|z'w + b| / \|w\|`.

    Parameters
    ----------
    Z : ndarray of shape (n_samples, n_features)
        Standardised samples.
    weights : ndarray of shape (2, n_features)
    biases : ndarray of shape (2,)

    Returns
    -------
    ndarray of shape (n_samples,)
        0 or 1.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsegsvp.reproduce.protocol import nearest_plane_predict
    >>> Z = np.array([[0.1, 2.0], [3.0, 0.1]])
    >>> nearest_plane_predict(Z, np.eye(2), np.zeros(2))
    array([0, 1])
    """
    return _nearer(np.abs(Z @ weights.T + biases) / np.linalg.norm(weights, axis=1))


def _nearer(distances: Array) -> NDArray[np.intp]:
    return (distances[:, 0] > distances[:, 1]).astype(np.intp)


def confusion(y: Array, predicted: Array) -> Counts:
    """TN, FP, FN, TP with class 1 as the positive one.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsegsvp.reproduce.protocol import confusion
    >>> confusion(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1]))
    (1, 1, 0, 2)
    """
    cells = np.bincount(2 * np.asarray(y) + np.asarray(predicted), minlength=4)
    tn, fp, fn, tp = (int(cell) for cell in cells)
    return tn, fp, fn, tp


def classification_report(counts: Counts) -> dict[str, float | int | None]:
    """The columns of the paper's classification reports; None where nothing is predicted.

    Examples
    --------
    >>> from sparsegsvp.reproduce.protocol import classification_report
    >>> round(classification_report((44, 0, 2, 24))["balanced_accuracy"], 4)
    0.9615
    """
    tn, fp, fn, tp = counts
    specificity, recall = tn / (tn + fp), tp / (tp + fn)
    return {
        "balanced_accuracy": (specificity + recall) / 2,
        "specificity": specificity,
        "recall": recall,
        "precision": tp / (tp + fp) if tp + fp else None,
        "TN": tn,
        "FP": fp,
        "FN": fn,
        "TP": tp,
    }
