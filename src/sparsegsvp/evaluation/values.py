"""Values as JSON can hold them, and digests to recognise them by."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """Turn numbers, arrays and containers into what JSON can hold; nan becomes None.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsegsvp.evaluation.values import plain
    >>> plain({"a": np.float64(1.5), "b": np.array([1, 2]), "c": float("nan")})
    {'a': 1.5, 'b': [1, 2], 'c': None}
    """
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if hasattr(value, "to_dict"):
        return plain(value.to_dict())
    return str(value)


def digest(*parts: Any) -> str:
    """Return a short digest of arrays and plain values, to recognise the same work."""
    state = hashlib.sha256()
    for part in parts:
        if hasattr(part, "tocsr"):
            part = part.tocsr()
            state.update(digest(part.data, part.indices, part.indptr).encode())
        elif isinstance(part, np.ndarray) and part.dtype.kind in "biufc":
            state.update(f"{part.dtype.str}{part.shape}".encode())
            state.update(np.ascontiguousarray(part).data)
        else:
            state.update(dumps(part).encode())
        state.update(b"\0")
    return state.hexdigest()[:32]


def message_of(kind: type, said: object) -> str:
    """Return an error or a warning as one text of at most 300 characters."""
    text = f"{kind.__name__}: {said}"
    return text if len(text) <= 300 else text[:297] + "..."


def dumps(value: Any) -> str:
    """Return one line of canonical JSON."""
    return json.dumps(plain(value), sort_keys=True, separators=(",", ":"), allow_nan=False)
