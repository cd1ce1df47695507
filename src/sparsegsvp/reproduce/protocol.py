"""The paper's protocol: what it prints, what its authors ran, how it splits, decides and scores.

"Printed" is the text of the paper. "Run" is what the authors' public code does with the
settings in it; where the two differ, both are kept and the page shows both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import train_test_split

Array = NDArray[Any]
Counts = tuple[int, int, int, int]  # TN, FP, FN, TP
Row = dict[str, Any]  # of a table, by column
Finding = dict[str, Any]  # what an experiment found
Findings = Mapping[str, Finding]  # of experiments, by name


@dataclass(frozen=True)
class PaperMethod:
    """One of the paper's methods with its settings.

    ``q`` is None for the l1 method (Algorithm 1); the pairs are (class 0, class 1).
    """

    key: str
    label: str
    q: float | None
    delta_run: tuple[float, float]
    delta_printed: tuple[float, float]
    step_run: float
    step_printed: float
    eps: float = 1e-3


@dataclass(frozen=True)
class PublishedRow:
    """The published outcome of one method: elbows, features, and two confusion matrices."""

    elbows: tuple[int, int]
    features: tuple[int, int, int]  # only in w1, only in w2, in both
    validation: Counts
    test: Counts


@dataclass(frozen=True)
class NotebookRow:
    """What the authors' public notebook prints of the same run; None where it does not say."""

    validation: Counts
    test: Counts
    smaller_elbow: int | None = None
    common: int | None = None
    total: int | None = None


@dataclass(frozen=True)
class NotebookPoint:
    """The same of one q: the smaller elbow, features in both planes, validation counts."""

    smaller_elbow: int
    common: int
    validation: Counts


@dataclass(frozen=True)
class Sweep:
    """The study of q and eps (section 5.4): settings as run, average Jaccard as printed.

    ``notebook`` holds what the authors' older notebook prints, by (q, eps).
    """

    delta: tuple[float, float] = (1e-4, 2e-4)
    step_size: float = 10**-1.5
    qs: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    eps: tuple[float, ...] = (10**-2.5, 10**-2.0, 10**-1.5)
    jaccard: tuple[float, ...] | None = None
    notebook: tuple[tuple[float, float, NotebookPoint], ...] = ()


@dataclass(frozen=True)
class Study:
    """A data set of the paper with everything published about it."""

    key: str
    title: str
    class_names: tuple[str, str]
    shape: tuple[int, int]
    second_split: float
    """Share of the held-out 30% that becomes the test part."""
    split: dict[str, tuple[int, int, int]]
    """Class name -> training, validation and test samples, as printed."""
    methods: tuple[PaperMethod, ...]
    rows: dict[str, PublishedRow]
    sweep: Sweep
    notebook: dict[str, NotebookRow] = field(default_factory=dict)

    def method(self, key: str) -> PaperMethod:
        """Return the method with this key."""
        return next(method for method in self.methods if method.key == key)


# The l1 method's deltas as run; the paper prints both to fewer digits, as one fraction.
_L1_BREAST = (0.8684252631578948, 0.8685052631578948)
_L1_OVARIAN = (0.047377894736842105, 0.047557894736842105)

BREAST = Study(
    key="breast",
    title="Breast cancer",
    class_names=("benign", "malignant"),
    shape=(569, 30),
    second_split=0.4,
    split={"benign": (249, 64, 44), "malignant": (148, 38, 26)},
    methods=(
        PaperMethod("l1", "l1", None, _L1_BREAST, (20627 / 23750, 20627 / 23750), 1e-3, 1e-3),
        PaperMethod("q=1", "lq, q = 1", 1.0, (0.3, 0.4), (0.3, 0.4), 3e-3, 3e-3),
        PaperMethod("q=0.1", "lq, q = 0.1", 0.1, (0.02, 0.02), (0.02, 0.02), 0.025, 2.5e-3),
    ),
    rows={
        "l1": PublishedRow((4, 4), (3, 3, 1), (64, 0, 1, 37), (44, 0, 2, 24)),
        "q=1": PublishedRow((7, 3), (7, 3, 0), (64, 0, 1, 37), (43, 1, 2, 24)),
        "q=0.1": PublishedRow((5, 3), (5, 3, 0), (63, 1, 2, 36), (43, 1, 2, 24)),
    },
    sweep=Sweep(),
)

_NOTEBOOK_SWEEP = tuple(
    (q, 10**-2.5, NotebookPoint(elbow, common, validation))
    for q, elbow, common, validation in (
        (0.1, 129, 4, (15, 4, 10, 24)),
        (0.2, 135, 6, (18, 1, 8, 26)),
        (0.3, 162, 6, (18, 1, 16, 18)),
        (0.4, 237, 13, (18, 1, 13, 21)),
        (0.5, 417, 67, (19, 0, 9, 25)),
        (0.6, 567, 94, (19, 0, 8, 26)),
        (0.7, 758, 125, (19, 0, 8, 26)),
        (0.8, 1044, 163, (19, 0, 9, 25)),
        (0.9, 1187, 224, (18, 1, 9, 25)),
        (1.0, 1177, 219, (17, 2, 8, 26)),
    )
)

OVARIAN = Study(
    key="ovarian",
    title="Ovarian cancer",
    class_names=("Normal", "Cancer"),
    shape=(253, 15154),
    second_split=0.3,
    split={"Normal": (63, 19, 9), "Cancer": (113, 34, 15)},
    methods=(
        PaperMethod("l1", "l1", None, _L1_OVARIAN, (2259 / 47500, 2259 / 47500), 4e-3, 4e-3),
        PaperMethod("q=1", "lq, q = 1", 1.0, (0.003, 0.003), (0.003, 0.003), 10**-0.5, 10**-0.5),
        PaperMethod("q=0.1", "lq, q = 0.1", 0.1, (0.06, 0.06), (0.06, 0.06), 10**-0.5, 10**-0.5),
    ),
    rows={
        "l1": PublishedRow((67, 42), (60, 35, 7), (19, 0, 2, 32), (9, 0, 1, 14)),
        "q=1": PublishedRow((101, 94), (83, 76, 18), (19, 0, 3, 31), (9, 0, 2, 13)),
        "q=0.1": PublishedRow((2, 2), (2, 2, 0), (19, 0, 0, 34), (9, 0, 0, 15)),
    },
    sweep=Sweep(jaccard=(0.4260, 0.6303, 0.6976), notebook=_NOTEBOOK_SWEEP),
    notebook={
        "l1": NotebookRow((19, 0, 2, 32), (9, 0, 1, 14), smaller_elbow=42),
        "q=1": NotebookRow((19, 0, 3, 31), (9, 0, 2, 13), smaller_elbow=94),
        "q=0.1": NotebookRow((19, 0, 0, 34), (8, 1, 0, 15), common=1, total=3),
    },
)

STUDIES = {study.key: study for study in (BREAST, OVARIAN)}


def settings(study: str, method: str, source: str, max_iter: int) -> dict[str, Any]:
    """Return the parameters of a method as the authors ran it or as the paper prints it."""
    entry = STUDIES[study].method(method)
    run = source == "code"
    return {
        "q": entry.q,
        "delta": entry.delta_run if run else entry.delta_printed,
        "step_size": entry.step_run if run else entry.step_printed,
        "eps": entry.eps,
        "conventions": source,
        "max_iter": max_iter,
    }


# ------------------------------------------------------- splitting, deciding, scoring


@dataclass(frozen=True, eq=False)
class PaperSplit:
    """Training, validation and test samples, class 0 first in each."""

    train: tuple[Array, Array]
    validation: tuple[Array, Array]
    test: tuple[Array, Array]


def paper_split(X: Array, y: Array, second_split: float, random_state: int = 42) -> PaperSplit:
    """Split each class by itself: 70% for training, the rest into validation and test.

    ``second_split`` is the share of the held-out 30% that becomes the test part; the published
    split has 42 for ``random_state``.
    """
    pieces: list[list[Array]] = [[], [], []]
    for label in (0, 1):
        rows = np.flatnonzero(y == label)
        train, rest = train_test_split(rows, test_size=0.3, random_state=random_state)
        validation, test = train_test_split(rest, test_size=second_split, random_state=random_state)
        for piece, part in zip(pieces, (train, validation, test)):
            piece.append(part)
    indices = [np.concatenate(piece) for piece in pieces]
    train, validation, test = ((X[rows], y[rows]) for rows in indices)
    return PaperSplit(train, validation, test)


def batch_normalised_predict(Z: Array, weights: Array, biases: Array) -> NDArray[np.intp]:
    r"""The rule behind the published scores: distances divided by their norm over the batch.

    A sample is given to class 0 if :math:`|z'w_1 + b_1| / n_1 \le |z'w_2 + b_2| / n_2`, where
    :math:`n_k` is the Euclidean norm of :math:`|Zw_k + b_k|` over all samples being predicted.
    The class of a sample therefore depends on the samples beside it, and a sample predicted
    alone always belongs to class 0. It exists for the reproduction only.

    ``Z`` are standardised samples; ``weights`` and ``biases`` have one row per class.
    """
    distances = np.abs(Z @ weights.T + biases)
    distances /= np.linalg.norm(distances, axis=0)
    return (distances[:, 0] > distances[:, 1]).astype(np.intp)


def nearest_plane_predict(Z: Array, weights: Array, biases: Array) -> NDArray[np.intp]:
    r"""The rule the paper prints (equation 21): the nearer plane, :math:`|z'w + b| / \|w\|`.

    ``Z`` are standardised samples; ``weights`` and ``biases`` have one row per class.
    """
    distances = np.abs(Z @ weights.T + biases) / np.linalg.norm(weights, axis=1)
    return (distances[:, 0] > distances[:, 1]).astype(np.intp)


def confusion_counts(y: Array, predicted: Array) -> Counts:
    """TN, FP, FN, TP with class 1 as the positive one."""
    tn, fp, fn, tp = confusion_matrix(y, predicted, labels=[0, 1]).ravel().tolist()
    return tn, fp, fn, tp


def classification_report(counts: Counts) -> dict[str, Any]:
    """The columns of the paper's classification reports; None where nothing is predicted."""
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


def sweep_name(whose: str, q: float, eps: float) -> str:
    """The name of a result of the study of q, of the "paper" or of this package's "own" method."""
    return f"sweep/{whose}/{q:g}/{eps:.4g}"


def spaced(numbers: Sequence[float]) -> str:
    """Numbers side by side, such as TN FP FN TP."""
    return " ".join(f"{number:g}" for number in numbers)
