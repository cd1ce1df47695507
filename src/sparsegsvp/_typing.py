"""Names for what passes between modules."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Float64Array = NDArray[np.float64]
Array = Float64Array  # as the mathematics calls it
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]

# Called as progress(stage, done, total) when a stage begins and after each piece of its work.
# What it raises ends the work.
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Record:
    """A dataclass that gives its fields as a dictionary."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary, arrays as lists."""
        return asdict(self, dict_factory=_with_lists)


def _with_lists(fields: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in fields}
