"""Files and folders written beside and renamed: a kill leaves the old results or the new."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .._validate import listed
from .errors import InputError, naming, option

_REPLACE = f"choose another name, or replace it with {option('force', True)}"


def write_atomic(path: str | os.PathLike[str], content: str | bytes) -> Path:
    """Write a file whole or not at all, text as UTF-8; a device or a pipe is written to."""
    final = Path(os.path.realpath(path))  # a link stays
    data = content.encode() if isinstance(content, str) else content
    with naming(path):
        if final.exists() and not final.is_file():  # or a folder, which the system refuses
            final.write_bytes(data)
            return Path(path)
        partial = _hidden(final)
        try:
            partial.write_bytes(data)
            if final.exists():
                shutil.copymode(final, partial)
            os.replace(partial, final)
        finally:
            partial.unlink(missing_ok=True)
    return Path(path)


@contextmanager
def whole_folder(
    path: str | os.PathLike[str], *, owned: Collection[str] = (), force: bool = True
) -> Iterator[Path]:
    """Yield a hidden folder that takes the place of `path`, where all is `owned`, in the end."""
    final = Path(os.path.realpath(path))
    partial, before = _hidden(final), _hidden(final, "before")
    with naming(path):
        _check_folder(final, owned, force)
        partial.mkdir(parents=True)
    try:
        yield partial
        with naming(path):
            _check_folder(final, owned, force)  # it may have come up meanwhile
            if final.exists():
                os.rename(final, before)
            os.rename(partial, final)
    finally:
        if before.exists() and not final.exists():
            os.rename(before, final)
        for left in (partial, before):
            shutil.rmtree(left, ignore_errors=True)


def prepare_output(path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Find out before the work whether a file can be written."""
    final = Path(os.path.realpath(path))
    with naming(path):
        if final.is_dir():
            raise InputError("this is a folder", str(path), "name a file")
        if final.is_file() and not force:
            raise InputError("there is such a file already", str(path), _REPLACE)
        if final.is_file() or not final.exists():  # no device, no pipe
            tempfile.TemporaryFile(dir=final.parent).close()


def _hidden(final: Path, kind: str = "partial") -> Path:
    return final.with_name(f".{final.name[:80]}.{kind}-{os.getpid()}")


def _check_folder(final: Path, owned: Collection[str], force: bool) -> None:
    """Refuse a folder that may not be replaced, after tidying up what was left behind."""
    for path in final.parent.glob(f".{final.name[:80]}.*-*"):
        with suppress(PermissionError, ValueError):
            try:
                os.kill(int(path.name.rpartition("-")[2]), 0)
            except ProcessLookupError:  # its process has ended
                if ".before-" in path.name and not final.exists():
                    os.rename(path, final)
                shutil.rmtree(path, ignore_errors=True)
    what, remedy = "", "choose a new or empty folder"
    inside = list(final.iterdir()) if final.is_dir() else []
    if final.exists() and not final.is_dir():
        what = "this is a file, not a folder"
    elif foreign := {f"{p.name}/" if p.is_dir() else p.name for p in inside}.difference(owned):
        what = f"the folder holds other files ({listed(sorted(foreign), 3)})"
    elif inside and not force:
        what, remedy = "the folder holds the results of an earlier run", _REPLACE
    elif os.path.ismount(final) or Path.cwd() == final:
        what = "a volume, or where you are, cannot be replaced as a whole"
    if what:
        raise InputError(what, str(final), remedy)
