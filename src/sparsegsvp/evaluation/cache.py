"""Pieces of work: run on one thread each, in processes if asked, timed, and kept if finished."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
from joblib import Parallel, delayed, effective_n_jobs

from .. import __version__
from .._threads import one_thread
from .._typing import Progress


def versions() -> dict[str, str]:
    """Return the versions that results depend on, as every document of the package holds them."""
    return {
        "sparsegsvp": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }


def plain(value: Any) -> Any:
    """Turn numbers, arrays and containers into what JSON can hold; nan becomes None."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
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
            text = json.dumps(plain(part), sort_keys=True, separators=(",", ":"))
            state.update(text.encode())
        state.update(b"\0")
    return state.hexdigest()[:32]


class Cache:
    """A file of finished pieces of work, one JSON line each, found again by their digests.

    A line that was cut off is ignored. Without a path, nothing is kept.

    Examples
    --------
    >>> from sparsegsvp.evaluation.cache import Cache, digest
    >>> kept = Cache(None)
    >>> kept.add(digest("work", 1), {"score": 0.5})
    >>> kept.get(digest("work", 1))
    {'score': 0.5}
    """

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self.path = None if path is None else Path(path)
        self._values: dict[str, Any] = {}
        if self.path is not None and self.path.exists():
            for line in self.path.read_text(encoding="utf-8").splitlines():
                with suppress(ValueError, TypeError, KeyError):
                    record = json.loads(line)
                    self._values[record["key"]] = record["value"]

    def get(self, key: str) -> Any:
        """Return the value of a piece, or None."""
        return self._values.get(key)

    def add(self, key: str, value: Any) -> None:
        """Keep the value of a finished piece."""
        self._values[key] = value = plain(value)
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"key": key, "value": value}) + "\n")


def run_pieces(
    function: Callable[..., Any],
    pieces: Sequence[tuple[Any, ...]],
    *,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    stage: str = "",
) -> Iterator[Any]:
    """Yield ``function(*piece)`` for every piece, in their order, each computed on one thread."""
    if progress is not None:
        progress(stage, 0, len(pieces))
    if min(effective_n_jobs(n_jobs), len(pieces)) > 1:
        calls = (delayed(_single)(function, *piece) for piece in pieces)
        results = Parallel(n_jobs=n_jobs, return_as="generator")(calls)
    else:
        results = (_single(function, *piece) for piece in pieces)
    for done, result in enumerate(results, start=1):
        yield result
        if progress is not None:
            progress(stage, done, len(pieces))


def _single(function: Callable[..., Any], *piece: Any) -> Any:
    with one_thread():
        return function(*piece)


class Clock:
    """Passes progress on, and keeps the seconds of each stage."""

    def __init__(self, progress: Progress | None = None) -> None:
        self.seconds: dict[str, float] = {}
        self.progress: Progress = progress or (lambda stage, done, total: None)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the seconds that are enclosed to a stage."""
        start = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start

    def run(self, stage: str, function: Any, pieces: Any, n_jobs: int | None) -> list[Any]:
        """Run the pieces of a stage."""
        with self.stage(stage):
            options: dict[str, Any] = {"n_jobs": n_jobs, "progress": self.progress}
            return list(run_pieces(function, pieces, stage=stage, **options))
