"""Names for what passes between modules."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Float64Array = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]

# Called after each piece of work with the number done, the number in all, and what it was.
Progress = Callable[[int, int, str], None]
