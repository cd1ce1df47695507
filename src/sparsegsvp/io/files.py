"""Files and folders that appear whole or not at all: written beside, then renamed.

A process that is killed leaves the old results or the new; what it had begun is hidden beside
them, and put back or removed by the next.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

from .errors import InputError, listed, naming, option


def write_atomic(path: str | PathLike[str], content: str | bytes) -> Path:
    """Write a file whole or not at all, text as UTF-8; a device or a pipe is written to."""
    final = Path(os.path.realpath(path))  # a link stays
    partial = _hidden(final, "partial")
    with _refusing(path):
        if final.exists() and not final.is_file():
            partial = final  # or a folder, which the system refuses
        try:
            partial.write_bytes(content.encode() if isinstance(content, str) else content)
            if partial != final:
                if final.exists():
                    shutil.copymode(final, partial)
                os.replace(partial, final)
        finally:
            if partial != final:
                partial.unlink(missing_ok=True)
    return Path(path)


@contextmanager
def whole_folder(path: str | PathLike[str], *, owned: Collection[str] = ()) -> Iterator[Path]:
    """Yield a hidden folder to fill, which takes the place of `path` when the block ends.

    If the block raises, whatever stood at `path` is untouched. `owned` names files of an earlier
    run that may be replaced, and folders, with a slash at their end; a folder that holds anything
    else is refused before any work is done.
    """
    final = Path(os.path.realpath(path))
    partial, before = _hidden(final, "partial"), _hidden(final, "before")
    with _refusing(path):
        _refuse_foreign(final, owned)
        partial.mkdir(parents=True)
    try:
        yield partial
        with naming(path):
            _refuse_foreign(final, owned)  # it may have come up meanwhile
            if final.exists():
                os.rename(final, before)
            os.rename(partial, final)
    finally:
        if before.exists() and not final.exists():
            os.rename(before, final)
        for left in (partial, before):
            shutil.rmtree(left, ignore_errors=True)


def prepare_output(
    path: str | PathLike[str], *, force: bool = False, owned: Collection[str] | None = None
) -> None:
    """Find out before the work whether a file, or with `owned` a folder, can be written."""
    final = Path(os.path.realpath(path))
    what, place = "there is such a file already", final.parent
    with _refusing(path):
        if owned is not None:
            _refuse_foreign(final, owned)
            what = "the folder holds the results of an earlier run"
            while not place.exists():
                place = place.parent
        elif final.is_dir():
            raise InputError("this is a folder", where=str(path), remedy="name a file")
        if not force and (any(final.iterdir()) if final.is_dir() else final.is_file()):
            remedy = f"choose another name, or replace it with {option('force', True)}"
            raise InputError(what, where=str(path), remedy=remedy)
        if not final.exists() or final.is_file() or final.is_dir():  # no device, no pipe
            tempfile.TemporaryFile(dir=place).close()


def _hidden(final: Path, kind: str) -> Path:
    """Return a hidden name beside a file or folder that tells the process it belongs to."""
    return final.with_name(f".{final.name[:80]}.{kind}-{os.getpid()}")


def _refuse_foreign(final: Path, owned: Collection[str]) -> None:
    """Refuse a folder with files that are not ours, after tidying up what was left behind."""
    for path in final.parent.glob(f".{final.name[:80]}.*-*"):
        try:
            os.kill(int(path.name.rpartition("-")[2]), 0)
        except ProcessLookupError:  # its process has ended
            if ".before-" in path.name and not final.exists():
                os.rename(path, final)
            shutil.rmtree(path, ignore_errors=True)
        except (OSError, ValueError):
            continue
    inside = list(final.iterdir()) if final.is_dir() else []
    foreign = {f"{p.name}/" if p.is_dir() else p.name for p in inside}.difference(owned)
    what = f"the folder holds other files ({listed(sorted(foreign), 3)})" if foreign else ""
    if final.is_dir() and (os.path.ismount(final) or Path.cwd() == final):
        what = "a volume, or where you are, cannot be replaced as a whole"
    elif final.exists() and not final.is_dir():
        what = "this is a file, not a folder"
    if what:
        raise InputError(what, where=str(final), remedy="choose a new or empty folder")


@contextmanager
def _refusing(path: str | PathLike[str]) -> Iterator[None]:
    """Turn what the system refuses in a block into an `InputError`."""
    try:
        yield
    except OSError as error:
        remedy = "check that the folder exists, is yours and has room"
        what = f"it cannot be written ({error.strerror or error})"
        raise InputError(what, where=str(path), remedy=remedy) from error
