"""Results as JSON, text and tables hold them, and digests to recognise them by."""

from __future__ import annotations

import hashlib
import html
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._versions import versions
from ..metrics import Interval


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


def identity(
    kind: str, X: Any, y: Any, groups: Any = None, batch: Any = None, **settings: Any
) -> dict[str, Any]:
    """Return what identifies work on samples in a log: its kind and settings, data and versions."""
    return {
        "kind": kind,
        "data": digest(X, y, [] if groups is None else groups),
        **({} if batch is None else {"batches": digest(batch)}),
        "versions": versions(),
        **settings,
    }


def message_of(kind: type, said: object) -> str:
    """Return an error or a warning as one text of at most 300 characters."""
    text = f"{kind.__name__}: {said}"
    return text if len(text) <= 300 else text[:297] + "..."


def dumps(value: Any) -> str:
    """Return one line of canonical JSON."""
    return json.dumps(plain(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


# ------------------------------------------------------------------------------ text and tables


def number(value: float) -> str:
    """Write a score with two digits, never rounding an imperfect one up to 1.

    Examples
    --------
    >>> from sparsegsvp.evaluation.values import number
    >>> number(0.914), number(0.998), number(1.0)
    ('0.91', '0.99', '1.00')
    """
    text = f"{value:.2f}"
    return "0.99" if value < 1.0 and text == "1.00" else text


def ranged(score: Interval | None) -> str:
    """Return a score with its interval as text."""
    return "-" if score is None else f"{score.value:.2f} ({score.low:.2f} to {score.high:.2f})"


def html_table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a plain table for notebooks."""
    lines = ["".join(f"<th>{html.escape(head)}</th>" for head in heads)]
    lines += ["".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows]
    body = "".join(f"<tr>{line}</tr>" for line in lines if line != "<th></th>" * len(heads))
    return f"<table><caption>{html.escape(title)}</caption>{body}</table>"


def data_frame(rows: Sequence[dict[str, Any]]) -> Any:
    """Return rows as a pandas data frame; say how to get pandas where it is missing."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(
            'to_frame needs pandas: pip install "sparsegsvp[cli]". to_dict needs nothing.'
        ) from error
    return pd.DataFrame(rows)


class Shown:
    """A result that shows itself, as text and in notebooks: a title, and lines of two cells."""

    _heads = ("", "")

    def __repr__(self) -> str:
        return "\n".join([self._title(), *(f"  {name}: {text}" for name, text in self._lines())])

    def _repr_html_(self) -> str:
        return html_table(self._title(), self._heads, self._lines())

    def _title(self) -> str:
        raise NotImplementedError

    def _lines(self) -> list[tuple[str, str]]:
        raise NotImplementedError


class Scored(Shown):
    """A result with scores by name, which also come as a data frame."""

    scores: dict[str, Interval]

    def to_frame(self) -> Any:
        """Return the scores as a pandas data frame: one row each, with its interval."""
        return data_frame([{"score": k, **v.to_dict()} for k, v in self.scores.items()])
