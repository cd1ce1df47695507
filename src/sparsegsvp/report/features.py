"""What pictures of single features show: boxes, differences between classes, heatmaps."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from .._typing import Float64Array

Part = dict[str, Any]

_MAX_OUTLIERS = 12


def column(X: Any, index: int) -> Float64Array:
    """One column of a dense or sparse table, as dense numbers."""
    part = X[:, [index]]
    part = part.toarray() if hasattr(part, "toarray") else np.asarray(part)
    return part.ravel().astype(np.float64)


def box(values: Float64Array, label: str) -> Part | None:
    """The numbers of a box plot: quartiles, whiskers to 1.5 times the box, and outliers.

    Missing values are left out; None when nothing is left. At most 12 outliers are listed, the
    most extreme on either side; ``n_outliers`` counts all.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsegsvp.report.features import box
    >>> found = box(np.array([1.0, 2.0, 3.0, 4.0, 100.0]), "ill")
    >>> found["median"], found["high"], found["outliers"]
    (3.0, 4.0, [100.0])
    """
    x = np.sort(values[np.isfinite(values)])
    if not x.size:
        return None
    q1, median, q3 = (float(v) for v in np.quantile(x, [0.25, 0.5, 0.75]))
    reach = 1.5 * (q3 - q1)
    inside = x[(x >= q1 - reach) & (x <= q3 + reach)]
    below, above = x[x < q1 - reach], x[x > q3 + reach]
    half = _MAX_OUTLIERS // 2
    return {
        "label": label,
        "n": int(x.size),
        "low": float(inside[0]),
        "q1": q1,
        "median": median,
        "q3": q3,
        "high": float(inside[-1]),
        "mean": float(x.mean()),
        "outliers": [*below[:half].tolist(), *above[-half:].tolist()],
        "n_outliers": int(below.size + above.size),
    }


def effect_sizes(
    values: Float64Array, codes: NDArray[np.intp], n_classes: int
) -> list[float | None]:
    """The standardised mean difference of each class to the others (for two: Cohen's d).

    The mean of a class minus the mean of the other class means, divided by the pooled
    within-class standard deviation, without missing values. None where that deviation is zero
    or a class is empty.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsegsvp.report.features import effect_sizes
    >>> effect_sizes(np.array([0.0, 2.0, 4.0, 6.0]), np.array([0, 0, 1, 1]), 2)
    [-2.82..., 2.82...]
    """
    parts = [values[(codes == k) & np.isfinite(values)] for k in range(n_classes)]
    if any(part.size == 0 for part in parts):
        return [None] * n_classes
    means = np.array([part.mean() for part in parts])
    freedom = sum(part.size for part in parts) - n_classes
    squares = sum(float(((part - part.mean()) ** 2).sum()) for part in parts)
    spread = np.sqrt(squares / max(freedom, 1))
    if freedom < 1 or spread <= 1e-12 * np.abs(means).max():  # only rounding is left
        return [None] * n_classes
    others = (means.sum() - means) / (n_classes - 1)
    return [float(v) for v in (means - others) / spread]


def single_auc(values: Float64Array, codes: NDArray[np.intp], n_classes: int) -> float | None:
    """The area under the ROC curve of one feature alone, in its better direction.

    None unless there are two classes with values in both.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsegsvp.report.features import single_auc
    >>> single_auc(np.array([4.0, 3.0, 2.0, 1.0]), np.array([0, 0, 1, 1]), 2)
    1.0
    """
    known = np.isfinite(values)
    if n_classes != 2 or np.unique(codes[known]).size < 2:
        return None
    area = float(roc_auc_score(codes[known] == 1, values[known]))
    return max(area, 1.0 - area)
