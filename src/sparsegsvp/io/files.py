"""Writing: files and folders that appear whole or not at all, and tables for spreadsheets.

What is not finished has a hidden name beside the real one and is renamed when it is complete. A
process that is killed leaves the old results or the new; what it had begun is removed by the next.
"""

from __future__ import annotations

import datetime
import io
import math
import os
import re
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Any

from .errors import InputError, listed, naming, need, option
from .text import looks_numeric

_ROOM = "check that the folder exists, is yours and has room"
_UNFINISHED, _REPLACED = ".sparsegsvp-partial-", ".sparsegsvp-before-"


def write_atomic(path: str | PathLike[str], content: str | bytes) -> Path:
    """Write a file whole or not at all: to a hidden sibling, which then takes its name.

    A symbolic link is followed, and what is no regular file (a device, a pipe) is written to as
    it is. Text is written as UTF-8, line endings untouched.
    """
    data = content.encode("utf-8", "replace") if isinstance(content, str) else content
    final = Path(os.path.realpath(path))
    with _refusing("it cannot be written", path, _ROOM):
        if final.is_dir():
            raise InputError("this is a folder", where=str(path), remedy="name a file")
        if final.exists() and not final.is_file():
            final.write_bytes(data)
            return Path(path)
        _remove_left_behind(final.parent)
        partial = _hidden(final, _UNFINISHED)
        try:
            with open(partial, "wb") as handle:
                handle.write(data)
                handle.flush()
                os.fsync(handle.fileno())
            if final.exists():
                with suppress(OSError):  # not every disk has permissions
                    os.chmod(partial, stat.S_IMODE(final.stat().st_mode))
            os.replace(partial, final)
        finally:
            partial.unlink(missing_ok=True)
    return Path(path)


@contextmanager
def whole_folder(path: str | PathLike[str], *, owned: Collection[str] = ()) -> Iterator[Path]:
    """Yield a hidden folder to fill, which takes the place of `path` when the block ends.

    If the block raises, whatever stood at `path` is untouched. `owned` names files of an earlier
    run that may be replaced, and folders, with a slash at their end; a folder that holds anything
    else is refused before any work is done.
    """
    final = Path(os.path.realpath(path))  # a link stays, even one to a folder not yet there
    with _refusing("the folder cannot be made", path, "choose another folder"):
        final.parent.mkdir(parents=True, exist_ok=True)
        _put_back(final)
        _refuse_foreign(final, owned)
        _remove_left_behind(final.parent)
        inside = final.is_dir() and _cannot_be_renamed(final)
        partial = _hidden(final / "results" if inside else final, _UNFINISHED)
        partial.mkdir()
    try:
        yield partial
        with naming(path):
            _refuse_foreign(final, owned)  # it may have come up meanwhile
            if inside:
                _move_in(partial, final)
            else:
                _swap(partial, final)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _swap(partial: Path, final: Path) -> None:
    """Put a complete folder in the place of another; `_put_back` undoes half of it."""
    before = _hidden(final, _REPLACED)
    if final.exists():
        os.rename(final, before)
    try:
        os.rename(partial, final)
    except BaseException:
        if before.exists():
            os.rename(before, final)
        raise
    shutil.rmtree(before, ignore_errors=True)


def _put_back(final: Path) -> None:
    """Put old results back that a process killed between two renames had moved away."""
    for before in final.parent.glob(f"{_REPLACED}{final.name}-*"):
        if _is_left_behind(before):
            if final.exists():
                shutil.rmtree(before, ignore_errors=True)
            else:
                os.rename(before, final)


def _move_in(partial: Path, final: Path) -> None:
    """Put files in place one by one, where the folder itself cannot be renamed."""
    new = {item.name for item in partial.iterdir()}
    for item in partial.iterdir():
        there = final / item.name
        if there.is_dir():
            shutil.rmtree(there)
        os.replace(item, there)
    for item in final.iterdir():
        if item.name not in new and item != partial:
            shutil.rmtree(item) if item.is_dir() else item.unlink()


def _cannot_be_renamed(folder: Path) -> bool:
    """Whether a folder is a volume of its own, or the one that somebody stands in."""
    return os.path.ismount(folder) or Path.cwd() == folder or not os.access(folder.parent, os.W_OK)


def _hidden(final: Path, prefix: str) -> Path:
    """Return a hidden name beside a file or folder that tells the process it belongs to."""
    name = tempfile.mktemp(prefix=f"{prefix}{final.name[:80]}-", suffix=f".{os.getpid()}", dir="")
    return final.parent / name


def _is_left_behind(path: Path) -> bool:
    """Whether the process that made a hidden file or folder has ended."""
    try:
        os.kill(int(path.name.rpartition(".")[2]), 0)
    except ProcessLookupError:
        return True
    except (OSError, ValueError):
        return False
    return False


def _remove_left_behind(folder: Path) -> None:
    """Remove what processes that were killed have left unfinished in a folder."""
    for path in folder.glob(f"{_UNFINISHED}*"):
        if _is_left_behind(path):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


@contextmanager
def _refusing(what: str, path: str | PathLike[str], remedy: str) -> Iterator[None]:
    """Turn what the system refuses in a block into an `InputError`."""
    try:
        yield
    except OSError as error:
        why = error.strerror or error
        raise InputError(f"{what} ({why})", where=str(path), remedy=remedy) from error


def prepare_output(
    path: str | PathLike[str], *, force: bool = False, owned: Collection[str] | None = None
) -> None:
    """Find out before the work whether a file, or with `owned` a folder, can be written.

    With `force` a file of this name, or results of an earlier run, may be replaced.
    """
    final = Path(os.path.realpath(path))
    with _refusing("nothing can be written there", path, _ROOM):
        if owned is not None:
            _put_back(final)
            _refuse_foreign(final, owned)
            earlier = sorted(_shown(final), key=_written) if final.exists() else []
            what, remedy = "the folder holds the results of an earlier run", "choose another folder"
            place = final
            while not place.exists():
                place = place.parent
        else:
            place = final.parent
            if final.is_dir():
                raise InputError("this is a folder", where=str(path), remedy="name a file")
            if final.exists() and not final.is_file():
                return  # a device or a pipe
            earlier = [final] if final.exists() else []
            what, remedy = "there is such a file already", "choose another name"
        if earlier and not force:
            when = datetime.datetime.fromtimestamp(_written(earlier[-1]))
            raise InputError(
                f"{what} ({earlier[-1].name} of {when:%Y-%m-%d %H:%M})",
                where=str(path),
                remedy=f"{remedy}, or replace it with {option('force', True)}",
            )
        with tempfile.TemporaryFile(dir=place):
            pass


def _written(path: Path) -> float:
    return path.stat().st_mtime


def _shown(folder: Path) -> list[Path]:
    """What is in a folder, without what is unfinished or was left behind."""
    return [p for p in folder.iterdir() if not p.name.startswith((_UNFINISHED, _REPLACED))]


def _refuse_foreign(final: Path, owned: Collection[str]) -> None:
    if not final.exists():
        return
    if not final.is_dir():
        raise InputError("this is a file, not a folder", where=str(final), remedy="choose another")
    names = {f"{p.name}/" if p.is_dir() else p.name for p in _shown(final)}
    foreign = sorted(name.rstrip("/") for name in names.difference(owned))
    if foreign:
        raise InputError(
            f"the folder holds other files ({listed(foreign, 3)})",
            where=str(final),
            remedy="choose a new or empty folder",
        )


# --- tables for spreadsheets -----------------------------------------------------------

_FORMULA_STARTS = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
_BLANKS = " \u00a0"
_CELL_ENDS = re.compile("([;\t\r\n])")  # where another locale, or another line, begins a cell
# Characters that XML cannot hold.
_UNWRITABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def harmless(text: str) -> str:
    """Put an apostrophe before all that a spreadsheet would run as a formula.

    Where the list separator is a semicolon, as in much of Europe, or a tab, cells also begin
    within a cell, and lines in any case. Plain numbers such as -1 stay as they are.
    """
    cells = _CELL_ENDS.split(text)
    safe = "".join(f"'{cell}" if _is_formula(cell) else cell for cell in cells)
    return f"'{safe}" if text.lstrip(_BLANKS).startswith(("\t", "\r", "\n")) else safe


def _is_formula(cell: str) -> bool:
    return cell.lstrip(_BLANKS).startswith(_FORMULA_STARTS) and not looks_numeric(cell)


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Format rows as CSV: text made harmless, numbers so that they read back exactly."""
    return "".join(",".join(map(_csv_cell, line)) + "\n" for line in (header, *rows))


def _csv_cell(cell: Any) -> str:
    if cell is None:
        return ""
    if not isinstance(cell, str):
        return repr(cell.item() if hasattr(cell, "item") else cell)
    text = harmless(cell)
    # Python's writer leaves a lone carriage return unquoted, and its reader then fails.
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',;"\t\r\n') else text


def workbook(sheets: Mapping[str, tuple[Sequence[str], Sequence[Sequence[Any]]]]) -> bytes:
    """Return an .xlsx file of (header, rows) by name: the same bytes every time, no formulas."""
    openpyxl = need("openpyxl", "cli")
    book = openpyxl.Workbook(write_only=True)
    book.properties.created = book.properties.modified = datetime.datetime(1980, 1, 1)
    for name, (header, rows) in sheets.items():
        page = book.create_sheet(name)
        page.freeze_panes = "A2"
        page.column_dimensions["A"].width = 32
        for row in (header, *rows):
            page.append([_excel_cell(page, cell) for cell in row])
    written, content = io.BytesIO(), io.BytesIO()
    book.save(written)
    with zipfile.ZipFile(written) as source, zipfile.ZipFile(content, "w") as target:
        for entry in source.infolist():
            data = source.read(entry)
            if entry.filename == "docProps/core.xml":  # openpyxl writes the time of saving
                data = re.sub(
                    rb"(<dcterms:modified[^>]*>)[^<]*", rb"\g<1>1980-01-01T00:00:00Z", data
                )
            target.writestr(zipfile.ZipInfo(entry.filename), data, zipfile.ZIP_DEFLATED)  # of 1980
    return content.getvalue()


def _excel_cell(page: Any, value: Any) -> Any:
    from openpyxl.cell import WriteOnlyCell

    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    if not isinstance(value, str):
        return value.item() if hasattr(value, "item") else value
    cell = WriteOnlyCell(page, _UNWRITABLE.sub("\ufffd", value))
    cell.data_type = "s"
    return cell
