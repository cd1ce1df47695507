"""Guards around readers: bounds on unpacking, one kind of error, interrupts inside of C.

Files come from anywhere. What a library raises about a damaged one becomes an `InputError`;
what a file unpacks to is bounded by its own size, and by the memory of the machine.
"""

from __future__ import annotations

import gzip
import os
import re
import signal
import threading
import warnings
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from os import PathLike
from pathlib import Path
from typing import IO, Any, BinaryIO

from .errors import InputError, did_you_mean, error_text, one_line, option, quote

# Up to here nothing is refused: no machine minds.
ALWAYS_BYTES = 1 << 26
# Text and XML of measurements shrink to a fifth, of counts that are nearly all zero to a
# fiftieth; deflate can do a thousandth, which takes a file made for it.
RATIO = 100
# Numbers of eight bytes that are nearly all zero shrink further.
ARRAY_RATIO = 500


# --- one kind of error -----------------------------------------------------------------


@contextmanager
def guarded(kind: str) -> Iterator[None]:
    """Turn whatever a library raises while it reads a file into an `InputError`.

    An `InputError` and the lack of an optional package pass as they are, as does everything
    that is no `Exception`: Ctrl-C above all. Chained, the original is in the traceback.
    """
    try:
        yield
    except (InputError, ImportError):
        raise
    except MemoryError as error:
        raise InputError(
            "reading it takes more memory than there is",
            remedy="check the file, or read it on a larger machine",
        ) from error
    except OSError as error:
        if error.errno is None or isinstance(error, gzip.BadGzipFile):
            raise _unreadable(kind, error) from error
        raise InputError(
            f"it cannot be read ({error.strerror or one_line(error)})",
            remedy="check the path, and that the file is yours to read",
        ) from error
    except Exception as error:
        raise _unreadable(kind, error) from error


def _unreadable(kind: str, error: Exception) -> InputError:
    return InputError(
        f"it is damaged, or not {kind} ({error_text(error)})",
        remedy="copy, download or save it again",
    )


def guarded_rows(rows: Iterable[Any], kind: str) -> Iterator[Any]:
    """Yield rows; what goes wrong in reading the next is an `InputError`."""
    with guarded(kind):
        yield from rows


@contextmanager
def without_warnings() -> Iterator[None]:
    """Keep the warnings of libraries about a file to themselves: what matters is refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def shown_name(path: str | PathLike[str]) -> str:
    """Return a file's name as text that can be written anywhere, whatever bytes it is of."""
    return os.fsencode(Path(path).name).decode("utf-8", "replace")


# --- unpacking -------------------------------------------------------------------------


def check_unpacked(
    size: int, packed: int, remedy: str, *, ratio: int = RATIO, always: int | None = None
) -> None:
    """Refuse what unpacks to more than a fixed size and a multiple of what it is packed in."""
    always = ALWAYS_BYTES if always is None else always
    if size > max(always, ratio * packed):
        raise InputError(
            f"it unpacks to {_bytes(size)}, which is over {_bytes(always)} and over {ratio} "
            f"times the {_bytes(packed)} it takes",
            remedy=remedy,
        )


def check_memory(n: int, m: int, itemsize: int = 8) -> None:
    """Refuse a matrix that is larger than the memory of the machine."""
    there = machine_memory()
    if there and n * m * itemsize > there:
        raise InputError(
            f"{n} samples of {m} features take {_bytes(n * m * itemsize)}, more than the memory "
            "of this machine",
            remedy=f"leave them on disk with {option('dask')}, or read fewer features",
        )


def machine_memory() -> int:
    """Return the bytes of memory of the machine, 0 where it cannot be asked.

    Examples
    --------
    >>> from sparsegsvp.io import machine_memory
    >>> machine_memory() >= 0
    True
    """
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # pragma: no cover  (not on this platform)
        return 0


def _bytes(size: int) -> str:
    for unit, name in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "kB")):
        if size >= unit:
            return f"{size / unit:.4g} {name}"
    return f"{size} bytes"


class BoundedGzip(gzip.GzipFile):
    """A gzipped file that stops where it has unpacked to more than a text would."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(fileobj=file)
        self._packed = os.fstat(file.fileno()).st_size

    def read(self, size: int | None = -1) -> bytes:
        """Read as `gzip.GzipFile` does, as far as the bound allows."""
        return self._counted(super().read(size))

    def read1(self, size: int = -1) -> bytes:
        """Read as `gzip.GzipFile` does, as far as the bound allows."""
        return self._counted(super().read1(size))

    def _counted(self, data: bytes) -> bytes:
        check_unpacked(
            self.tell(), self._packed, "unpack it yourself if you trust it, and give that file"
        )
        return data


# --- Excel -----------------------------------------------------------------------------

# Sheets shrink to a tenth; openpyxl takes some seconds for 8 MB.
_XML_BYTES, _XML_RATIO = 1 << 23, 50
# Excel's own limits.
_MOST_ROWS, _MOST_COLUMNS = 1_048_576, 16_384


def check_workbook(path: Path) -> None:
    """Refuse a workbook whose parts unpack to more than a sheet would."""
    with zipfile.ZipFile(path) as archive:
        size = sum(entry.file_size for entry in archive.infolist())
    remedy = "save the sheet as CSV if you trust it"
    check_unpacked(size, path.stat().st_size, remedy, ratio=_XML_RATIO, always=_XML_BYTES)


def check_worksheet(sheet: IO[bytes]) -> None:
    """Check that rows and cells come in order, each once, within the limits of Excel.

    openpyxl passes over rows whose numbers do not rise and over cells right of the last one
    given, and it makes up every row that a leap in the numbers leaves out.
    """
    from xml.parsers import expat

    row = column = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal row, column
        if name.endswith("row") and name.rpartition(":")[2] == "row":
            number = int(attributes["r"]) if "r" in attributes else row + 1
            if not row < number <= _MOST_ROWS:
                raise _disordered(f"row {quote(number)} follows row {row}")
            row, column = number, 0
        elif name.endswith("c") and name.rpartition(":")[2] == "c":
            number = _column(attributes["r"], row) if "r" in attributes else column + 1
            if not column < number <= _MOST_COLUMNS:
                raise _disordered(f"cell {quote(attributes.get('r', number))} is out of order")
            column = number

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.ParseFile(sheet)


def _column(place: str, row: int) -> int:
    letters = place.rstrip("0123456789").upper()
    if not re.fullmatch("[A-Z]{1,3}", letters) or place[len(letters) :] not in ("", str(row)):
        raise _disordered(f"cell {quote(place)} is in row {row}")
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - 64
    return number


def _disordered(what: str) -> InputError:
    return InputError(
        f"the sheet is damaged ({what})", remedy="save it again with Excel, or as CSV"
    )


# --- interrupts ------------------------------------------------------------------------

_ends_at_once = False


def end_at_once() -> None:
    """Let Ctrl-C end this process where Python cannot hear it: in a hang inside HDF5.

    For programs, as the command line is one. In a notebook whatever was computed would be lost
    with the process.

    Examples
    --------
    >>> from sparsegsvp.io import end_at_once
    >>> end_at_once()  # doctest: +SKIP
    """
    global _ends_at_once
    _ends_at_once = True


@contextmanager
def interruptible() -> Iterator[None]:
    """Enclose calls that may hang in C and hold Python's lock, as HDF5 does on damaged files.

    Neither Python's handlers nor another thread can run then, so the system's own handling is
    put in their place: a signal ends the process. Only after `end_at_once`, since a notebook
    would lose its state with it; what was half written is removed by the next run.
    """
    with handling_signals(signal.SIG_DFL) if _ends_at_once else nullcontext():
        yield


@contextmanager
def handling_signals(handler: Any, *, python: bool = False) -> Iterator[dict[int, Any]]:
    """Give requests to end another handler; yield those before, which are put back at the end.

    Nothing is done outside the main thread, where Python sets no handlers; with `python`, nor to
    signals that Python does not handle.
    """
    previous: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None and (not python or callable(signal.getsignal(number))):
                previous[number] = signal.signal(number, handler)
    try:
        yield previous
    finally:
        for number, before in previous.items():
            signal.signal(number, before)


# --- the file itself -------------------------------------------------------------------


def existing_file(path: str | PathLike[str]) -> Path:
    """Return the path of a file with something in it."""
    file = Path(path)
    try:
        size = file.stat().st_size
    except (FileNotFoundError, NotADirectoryError, ValueError):
        there = []
        if file.parent.is_dir():
            there = sorted(p.name for p in file.parent.iterdir() if p.is_file())
        remedy = did_you_mean(file.name, there) or "check the path"
        raise InputError("there is no such file", where=str(file), remedy=remedy) from None
    except OSError as error:
        raise InputError(
            f"it cannot be opened ({error.strerror})", where=shown_name(file), remedy="check it"
        ) from None
    if file.is_dir():
        raise InputError("this is a folder", where=str(file), remedy="name the file in it")
    if size == 0:
        raise InputError("the file is empty", where=file.name, remedy="check the path")
    return file
