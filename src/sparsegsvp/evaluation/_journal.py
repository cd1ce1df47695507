"""An append-only log of finished work that survives being killed.

One JSON object per line: a header that identifies the work, then one line per finished
piece, in the order they finish. On resuming, a torn last line is discarded and finished
pieces are not repeated. When all is done the file is rewritten once, in canonical order,
so that its bytes depend on neither interruptions nor the number of workers. Timings never
repeat exactly, so they go to a file of their own beside it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from io import BufferedRandom
from pathlib import Path
from typing import Any

import numpy as np

try:
    import fcntl
except ImportError:  # pragma: no cover  (not on this platform: two writers go unnoticed)
    fcntl = None  # type: ignore[assignment]

Key = tuple[Any, ...]

# Of a message that is kept, in characters.
_LONGEST = 300


def plain(value: Any) -> Any:
    """Turn numbers, arrays and containers into what JSON can hold; nan becomes None.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsegsvp.evaluation._journal import plain
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


def message_of(kind: type, said: object) -> str:
    """Return an error or a warning as one short text.

    Examples
    --------
    >>> from sparsegsvp.evaluation._journal import message_of
    >>> message_of(ValueError, "no")
    'ValueError: no'
    """
    text = f"{kind.__name__}: {said}"
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def dumps(value: Any) -> str:
    """Return one line of canonical JSON."""
    return json.dumps(plain(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


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


class Journal:
    """Finished pieces of work, in memory and (with a path) on disk.

    Parameters
    ----------
    path : path-like or None
        The log; without one, nothing is written.
    header : mapping
        What identifies the work; resuming a log of other work is refused.
    resume : bool
        Continue an existing log. Without it an existing log is an error, never overwritten.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None, header: Mapping[str, Any], *, resume: bool
    ) -> None:
        self.records: dict[Key, Any] = {}
        self.timings: dict[Key, Any] = {}
        self.header = plain(header)
        self._log: BufferedRandom | None = None
        self._times: BufferedRandom | None = None
        if path is None:
            if resume:
                raise ValueError("resume=True needs log, the file to continue from.")
            return
        self.path = Path(path)
        self.timings_path = self.path.with_name(f"{self.path.stem}.timings{self.path.suffix}")
        if self.path.exists() and not resume:
            raise ValueError(
                f"{self.path} exists already: pass resume=True to continue it, or another name."
            )
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._log = _open_locked(self.path)
            self._times = _open_locked(self.timings_path)
            self._restore()
        except BaseException:
            self.close()
            raise

    def _restore(self) -> None:
        assert self._log is not None and self._times is not None
        lines = _whole_lines(self._log)
        if lines:
            self._check_header(lines[0])
            for number, line in enumerate(lines[1:], start=2):
                if not isinstance(line, dict) or not {"key", "value"} <= line.keys():
                    raise ValueError(f"line {number} of {self.path} is not a record of this log.")
                self.records[tuple(line["key"])] = line["value"]
        else:
            _append(self._log, {"header": self.header})
        for line in _whole_lines(self._times):
            self.timings[tuple(line["key"])] = line["seconds"]

    def _check_header(self, first: Any) -> None:
        found = first.get("header") if isinstance(first, dict) else None
        if found is None:
            raise ValueError(f"{self.path} is not a log of this kind; choose another file.")
        names = sorted(
            name
            for name in set(found) | set(self.header)
            if found.get(name) != self.header.get(name)
        )
        if names:
            raise ValueError(
                f"{self.path} holds other work: {', '.join(names)} differ. "
                "Resume with the same data and settings, or start a new log."
            )

    def add(self, key: Key, value: Any, seconds: Any = None) -> Any:
        """Record a finished piece; return it as it will be read back."""
        value = json.loads(dumps(value))
        if seconds is not None:
            # the timing first: a piece that is on record always has its time
            self.timings[key] = seconds
            if self._times is not None:
                _append(self._times, {"key": list(key), "seconds": seconds})
        if self._log is not None:
            _append(self._log, {"key": list(key), "value": value})
        self.records[key] = value
        return value

    def finish(self, order: Iterable[Key]) -> None:
        """Rewrite the log in the given order (pieces not named are dropped) and close it."""
        keys = [key for key in order if key in self.records]
        if self._log is not None:
            scratch = self.path.with_name(self.path.name + ".tmp")
            lines = [{"header": self.header}]
            lines += [{"key": list(key), "value": self.records[key]} for key in keys]
            with open(scratch, "wb") as handle:
                handle.write("".join(dumps(line) + "\n" for line in lines).encode())
                handle.flush()
                os.fsync(handle.fileno())
            os.replace(scratch, self.path)
        self.close()

    def close(self) -> None:
        """Close the files and let others open them."""
        for handle in (self._log, self._times):
            if handle is not None:
                handle.close()
        self._log = self._times = None


def _open_locked(path: Path) -> BufferedRandom:
    """Open for reading and appending; the lock goes with the process, however it ends."""
    handle = open(path, "a+b")  # noqa: SIM115  (held open until close)
    if fcntl is not None:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            handle.close()
            raise ValueError(f"{path} is being written by another process.") from error
    return handle


def _whole_lines(handle: BufferedRandom) -> list[Any]:
    """Parse the complete lines and cut off a torn last one."""
    handle.seek(0)
    content = handle.read()
    end = content.rfind(b"\n") + 1
    lines = content[:end].splitlines()
    parsed = []
    for number, line in enumerate(lines, start=1):
        try:
            parsed.append(json.loads(line))
        except ValueError as error:
            # A power cut may leave a last line of the right length with the wrong bytes.
            if number == len(lines):
                end -= len(line) + 1
                break
            raise ValueError(
                f"line {number} of {handle.name} is damaged; remove the file and start anew."
            ) from error
    handle.truncate(end)
    return parsed


def _append(handle: BufferedRandom, line: Any) -> None:
    handle.seek(0, os.SEEK_END)
    handle.write((dumps(line) + "\n").encode())
    handle.flush()
    with contextlib.suppress(OSError):  # a pipe or a special file cannot be synced
        os.fsync(handle.fileno())
