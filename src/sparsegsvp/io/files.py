"""Writing: files and folders that appear whole or not at all, CSV that no spreadsheet runs."""

from __future__ import annotations

import datetime
import os
import secrets
import shutil
import signal
import tempfile
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from types import FrameType
from typing import Any

from .errors import InputError, listed, option
from .text import looks_numeric

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def write_atomic(path: str | PathLike[str], content: str | bytes) -> Path:
    """Write a file so that nobody ever sees half of it.

    The content goes to a sibling first, which then takes the name of the file; if anything
    fails before that, the old file (or none) is what remains.

    Parameters
    ----------
    path : path-like
        The file; an existing one is replaced.
    content : str or bytes
        Text is written as UTF-8, line endings untouched.

    Returns
    -------
    pathlib.Path
        The path written.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sparsegsvp.io import write_atomic
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_atomic(pathlib.Path(folder) / "a.txt", "whole")
    ...     path.read_text(), sorted(p.name for p in path.parent.iterdir())
    ('whole', ['a.txt'])
    """
    final = Path(path)
    if final.is_dir():
        raise InputError("this is a folder", where=str(final), remedy="name a file")
    data = content.encode("utf-8") if isinstance(content, str) else content
    partial = final.parent / f".{final.name}.partial-{secrets.token_hex(4)}"
    try:
        with open(partial, "xb") as handle:
            handle.write(data)
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(partial, final)
    except OSError as error:
        raise InputError(
            f"it cannot be written ({error.strerror})",
            where=str(final),
            remedy="check that the folder exists, is yours and has room",
        ) from error
    finally:
        with suppress(FileNotFoundError, NotADirectoryError):
            partial.unlink()
    return final


@contextmanager
def whole_folder(path: str | PathLike[str], *, owned: Collection[str] = ()) -> Iterator[Path]:
    """Fill a folder that appears under its name only when it is complete.

    Inside the ``with`` block files are written to a temporary sibling. If the block raises
    (or is interrupted), it is removed and whatever stood at `path` is untouched.

    Parameters
    ----------
    path : path-like
        The folder. Its parents are made if needed.
    owned : collection of str, default=()
        Names of files of an earlier run that may be replaced. A folder that holds anything
        else is refused at once, before any work is done.

    Yields
    ------
    pathlib.Path
        The temporary folder to write into.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sparsegsvp.io import whole_folder
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     out = pathlib.Path(parent) / "out"
    ...     with whole_folder(out) as folder:
    ...         _ = (folder / "a.txt").write_text("1")
    ...         seen_early = out.exists()
    ...     seen_early, sorted(p.name for p in out.iterdir())
    (False, ['a.txt'])
    """
    final = Path(os.path.abspath(path))
    _refuse_foreign(final, owned)
    anchor = final.parent
    while not anchor.exists():
        anchor = anchor.parent
    partial = anchor / f".{final.name}.partial-{secrets.token_hex(4)}"
    try:
        partial.mkdir()
    except OSError as error:
        raise InputError(
            f"the folder cannot be made ({error.strerror})",
            where=str(path),
            remedy="choose another folder",
        ) from error
    try:
        yield partial
        with _interrupts_wait():
            _put_in_place(partial, final, owned)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def prepare_output(
    path: str | PathLike[str], *, force: bool = False, owned: Collection[str] | None = None
) -> None:
    """Find out before the work whether its results can be written; write nothing.

    Parameters
    ----------
    path : path-like
        A file or, with `owned`, a folder.
    force : bool, default=False
        Whether a file of this name, or results of an earlier run, may be replaced.
    owned : collection of str or None, default=None
        Names of files of an earlier run, for a folder.

    Raises
    ------
    InputError
        If something is there that may not be replaced, or nothing can be written there.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sparsegsvp.io import prepare_output
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "a.csv"
    ...     prepare_output(path)
    ...     _ = path.write_text("1")
    ...     prepare_output(path, force=True)
    """
    place = final = Path(os.path.abspath(path))
    if owned is not None:
        _refuse_foreign(final, owned)
        earlier = sorted(final.iterdir(), key=_written) if final.exists() else []
        if earlier and not force:
            raise InputError(
                f"the folder holds the results of an earlier run ({_dated(earlier[-1])})",
                where=str(path),
                remedy=f"choose another folder, or replace them with {option('force', True)}",
            )
        while not place.exists():
            place = place.parent
    else:
        place = final.parent
        if final.is_dir():
            raise InputError("this is a folder", where=str(path), remedy="name a file")
        if final.exists() and not final.is_file():
            return  # a device or a pipe
        if final.exists() and not force:
            raise InputError(
                f"there is such a file already ({_dated(final)})",
                where=str(path),
                remedy=f"choose another name, or replace it with {option('force', True)}",
            )
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        raise InputError(
            f"nothing can be written there ({error.strerror})",
            where=str(path),
            remedy="check that the folder exists, is yours and has room",
        ) from error


def _written(path: Path) -> float:
    return path.stat().st_mtime


def _dated(path: Path) -> str:
    when = datetime.datetime.fromtimestamp(_written(path))
    return f"{path.name} of {when:%Y-%m-%d %H:%M}"


def _refuse_foreign(final: Path, owned: Collection[str]) -> None:
    if not final.exists():
        return
    if not final.is_dir():
        raise InputError("this is a file, not a folder", where=str(final), remedy="choose another")
    foreign = sorted(p.name for p in final.iterdir() if p.name not in owned or p.is_dir())
    if foreign:
        raise InputError(
            f"the folder holds other files ({listed(foreign, 3)})",
            where=str(final),
            remedy="choose a new or empty folder",
        )


def _put_in_place(partial: Path, final: Path, owned: Collection[str]) -> None:
    if not final.exists():
        final.parent.mkdir(parents=True, exist_ok=True)
        os.rename(partial, final)
        return
    # The folder itself stays (it may be the working directory): old files out, new files
    # in, and back again if a step fails.
    _refuse_foreign(final, owned)
    backup = final.parent / f".{final.name}.before-{secrets.token_hex(4)}"
    backup.mkdir()
    old, new = sorted(final.iterdir()), sorted(partial.iterdir())
    moved_in: list[Path] = []
    try:
        for file in old:
            os.rename(file, backup / file.name)
        for file in new:
            os.rename(file, final / file.name)
            moved_in.append(final / file.name)
    except BaseException:
        for file in moved_in:
            file.unlink()
        for file in backup.iterdir():
            os.rename(file, final / file.name)
        raise
    finally:
        shutil.rmtree(backup, ignore_errors=True)


@contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Delay Ctrl-C until a few renames are done."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[tuple[int, FrameType | None]] = []
    previous = signal.signal(signal.SIGINT, lambda number, frame: held.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
        if held and callable(previous):
            previous(*held[0])


def harmless(text: str) -> str:
    """Make text from a file safe to open in a spreadsheet.

    A cell that begins with ``=``, ``+``, ``-``, ``@``, a tab or a line break would be run
    as a formula; an apostrophe before it makes it text. Plain numbers such as ``-1``, which
    are labels often enough, stay as they are.

    Parameters
    ----------
    text : str
        The cell.

    Returns
    -------
    str
        The cell, or the cell behind an apostrophe.

    Examples
    --------
    >>> from sparsegsvp.io import harmless
    >>> harmless("=cmd|'/c calc'!A1"), harmless("-1"), harmless("TP53")
    ("'=cmd|'/c calc'!A1", '-1', 'TP53')
    """
    if text.lstrip(" \u00a0").startswith(_FORMULA_STARTS) and not looks_numeric(text):
        return "'" + text
    return text


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Format rows as CSV: text made harmless, numbers so that they read back exactly.

    Parameters
    ----------
    header : sequence of str
        Names of the columns.
    rows : iterable of sequences
        Cells: text, numbers, or None for an empty one.

    Returns
    -------
    str
        The file's content, lines ended by ``\\n``.

    Examples
    --------
    >>> from sparsegsvp.io import csv_text
    >>> print(csv_text(["feature", "weight"], [["@SUM(A1)", -0.5], ["b,c", None]]), end="")
    feature,weight
    '@SUM(A1),-0.5
    "b,c",
    """
    lines = [[harmless(str(name)) for name in header]]
    lines += [[_csv_cell(cell) for cell in row] for row in rows]
    return "".join(",".join(map(_quoted, line)) + "\n" for line in lines)


def _csv_cell(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, str):
        return harmless(str(cell))
    if hasattr(cell, "item"):  # a NumPy scalar prints its type otherwise
        cell = cell.item()
    return repr(cell)


def _quoted(cell: str) -> str:
    # Python's writer leaves a lone carriage return unquoted, and its reader then fails.
    if any(c in cell for c in ',"\r\n'):
        return '"' + cell.replace('"', '""') + '"'
    return cell
