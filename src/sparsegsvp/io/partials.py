"""Unfinished files and folders, that are moved to their places whole or removed.

They have hidden names, and the process that makes one holds a lock on it. A process that is
killed leaves its own behind; the next one to write there finds it without a lock and removes it.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

try:
    import fcntl
except ImportError:  # pragma: no cover  (not on this platform: nothing is taken for left behind)
    fcntl = None  # type: ignore[assignment]

UNFINISHED, REPLACED = ".sparsegsvp-partial-", ".sparsegsvp-before-"


def new_file(path: Path) -> None:
    """Make an empty file that must not be there yet."""
    open(path, "xb").close()


def claim(place: Path, make: Callable[[Path], None], prefix: str) -> tuple[Path, int | None]:
    """Make a file or folder of a new name, locked for as long as this process lives."""
    while True:
        path, number = place / f"{prefix}{secrets.token_hex(8)}", None
        make(path)
        if fcntl is not None:
            number = os.open(path, os.O_RDONLY)
            with suppress(OSError):  # not every disk has locks
                fcntl.flock(number, fcntl.LOCK_EX)
        if path.exists():
            return path, number
        release(number)  # another process took it for left behind before it was locked


def release(number: int | None) -> None:
    """Give up the lock that `claim` returned."""
    if number is not None:
        os.close(number)


@contextmanager
def unfinished(place: Path, make: Callable[[Path], None]) -> Iterator[Path]:
    """Enclose work on an unfinished file or folder; it is removed unless it was moved away."""
    remove_left_behind(place)
    path, lock = claim(place, make, UNFINISHED)
    try:
        yield path
    finally:
        with signals_wait():  # being told to end again must not leave it
            _remove(path)
            release(lock)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(FileNotFoundError, NotADirectoryError):
            path.unlink()


def remove_left_behind(folder: Path, prefix: str = UNFINISHED) -> None:
    """Remove what processes that were killed have left in a folder, and no living one holds."""
    if fcntl is None:  # pragma: no cover  (not on this platform)
        return
    for path in folder.glob(f"{prefix}*"):
        with suppress(OSError):
            number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(path)
            finally:
                os.close(number)


@contextmanager
def signals_wait() -> Iterator[None]:
    """Delay Ctrl-C and other requests to end until a few renames are done."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    names = ("SIGINT", "SIGTERM", "SIGHUP")
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    held: list[tuple[int, FrameType | None]] = []
    previous = {
        number: signal.signal(number, lambda *request: held.append(request))
        for number in numbers
        if callable(signal.getsignal(number))
    }
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        if held:
            handler = previous[signal.Signals(held[0][0])]
            assert callable(handler)
            handler(*held[0])
