"""p-values from draws that stop once the conclusion is clear."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

#: Exceedances after which more draws would not change the conclusion.
MAX_EXCEEDANCES = 10


def sequential_p_value(exceeds: Sequence[bool]) -> tuple[float, int, bool]:
    """Return p-value, number of draws it rests on, and whether the 10th exceedance ended them.

    Parameters
    ----------
    exceeds : sequence of bool
        For each draw, in order, whether permuted labels score at least as well as true ones.

    Examples
    --------
    >>> from sparsegsvp.metrics.draws import sequential_p_value
    >>> sequential_p_value([False] * 18 + [True])
    (0.1, 19, False)
    >>> sequential_p_value([True] * 12)
    (1.0, 10, True)
    """
    hits = np.cumsum(exceeds, dtype=int)
    if hits.size and hits[-1] >= MAX_EXCEEDANCES:
        draws = int(np.argmax(hits >= MAX_EXCEEDANCES)) + 1
        return MAX_EXCEEDANCES / draws, draws, True
    return (1 + int(hits[-1] if hits.size else 0)) / (hits.size + 1), hits.size, False
