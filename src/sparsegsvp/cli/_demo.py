"""The embedded data as a table that was read."""

from __future__ import annotations

import hashlib

import numpy as np

from ..datasets import load_breast_cancer
from ..io import Table
from ._settings import Settings

# A small panel, and an estimate within a minute.
DEMO_SETTINGS = Settings(rule="1se", repeats=2, resamples=20)


def demo_table() -> Table:
    """Return the breast cancer data, malignant being the class of interest.

    Returns
    -------
    Table

    Examples
    --------
    >>> from sparsegsvp.cli._demo import demo_table
    >>> demo_table().class_counts()
    {'benign': 357, 'malignant': 212}
    """
    data = load_breast_cancer()
    labels = np.array([str(label) for label in data.labels], dtype=object)
    digest = hashlib.sha256(np.ascontiguousarray(data.X).tobytes())
    digest.update("\n".join(labels).encode())
    n, m = data.X.shape
    source = "breast cancer data of scikit-learn"
    return Table(
        X=data.X,
        feature_names=tuple(str(name) for name in data.feature_names),
        y=labels,
        ids=None,
        groups=None,
        target="diagnosis",
        positive="malignant",
        source=source,
        digest=digest.hexdigest(),
        record=(
            f"read {n} samples and {m} features from the {source}",
            "classes in 'diagnosis': 'benign' 357, 'malignant' 212",
        ),
        hints=(),
        dropped={},
        n_missing=0,
    )
