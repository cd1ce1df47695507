"""What the paper prints, and what its authors ran: numbers only.

"Printed" is the text of the paper. "Run" is what the authors' public code does with the
settings in it; where the two differ, both are kept and the page shows both.
"""

from __future__ import annotations

from dataclasses import dataclass

Counts = tuple[int, int, int, int]  # TN, FP, FN, TP


@dataclass(frozen=True)
class Method:
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
class Sweep:
    """The study of q and eps (section 5.4): settings as run, average Jaccard as printed."""

    delta: tuple[float, float] = (1e-4, 2e-4)
    step_size: float = 10**-1.5
    qs: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    eps: tuple[float, ...] = (10**-2.5, 10**-2.0, 10**-1.5)
    jaccard: tuple[float, ...] | None = None


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
    methods: tuple[Method, ...]
    rows: dict[str, PublishedRow]
    sweep: Sweep

    def method(self, key: str) -> Method:
        """Return the method with this key."""
        return next(method for method in self.methods if method.key == key)


BREAST = Study(
    key="breast",
    title="Breast cancer",
    class_names=("benign", "malignant"),
    shape=(569, 30),
    second_split=0.4,
    split={"benign": (249, 64, 44), "malignant": (148, 38, 26)},
    methods=(
        Method(
            "l1",
            "l1",
            None,
            delta_run=(0.8684252631578948, 0.8685052631578948),
            delta_printed=(20627 / 23750, 20627 / 23750),
            step_run=1e-3,
            step_printed=1e-3,
        ),
        Method("q=1", "lq, q = 1", 1.0, (0.3, 0.4), (0.3, 0.4), 3e-3, 3e-3),
        Method("q=0.1", "lq, q = 0.1", 0.1, (0.02, 0.02), (0.02, 0.02), 0.025, 2.5e-3),
    ),
    rows={
        "l1": PublishedRow((4, 4), (3, 3, 1), (64, 0, 1, 37), (44, 0, 2, 24)),
        "q=1": PublishedRow((7, 3), (7, 3, 0), (64, 0, 1, 37), (43, 1, 2, 24)),
        "q=0.1": PublishedRow((5, 3), (5, 3, 0), (63, 1, 2, 36), (43, 1, 2, 24)),
    },
    sweep=Sweep(),
)

OVARIAN = Study(
    key="ovarian",
    title="Ovarian cancer",
    class_names=("Normal", "Cancer"),
    shape=(253, 15154),
    second_split=0.3,
    split={"Normal": (63, 19, 9), "Cancer": (113, 34, 15)},
    methods=(
        Method(
            "l1",
            "l1",
            None,
            delta_run=(0.047377894736842105, 0.047557894736842105),
            delta_printed=(2259 / 47500, 2259 / 47500),
            step_run=4e-3,
            step_printed=4e-3,
        ),
        Method("q=1", "lq, q = 1", 1.0, (0.003, 0.003), (0.003, 0.003), 10**-0.5, 10**-0.5),
        Method("q=0.1", "lq, q = 0.1", 0.1, (0.06, 0.06), (0.06, 0.06), 10**-0.5, 10**-0.5),
    ),
    rows={
        "l1": PublishedRow((67, 42), (60, 35, 7), (19, 0, 2, 32), (9, 0, 1, 14)),
        "q=1": PublishedRow((101, 94), (83, 76, 18), (19, 0, 3, 31), (9, 0, 2, 13)),
        "q=0.1": PublishedRow((2, 2), (2, 2, 0), (19, 0, 0, 34), (9, 0, 0, 15)),
    },
    sweep=Sweep(jaccard=(0.4260, 0.6303, 0.6976)),
)

STUDIES = {study.key: study for study in (BREAST, OVARIAN)}
