"""Names for what passes between modules."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Float64Array = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]

# Called as progress(stage, done, total) when a stage begins and after each piece of its work.
# What it raises ends the work.
Progress = Callable[[str, int, int], None]
