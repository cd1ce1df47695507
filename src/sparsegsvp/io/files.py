"""Writing: files and folders that appear whole or not at all.

What is not finished has a hidden name, and the process that makes it holds a lock on it. A
process that is killed leaves its own behind; the next one to write there finds it without a
lock and removes it, or finishes a replacement that was under way.
"""

from __future__ import annotations

import datetime
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from os import PathLike
from pathlib import Path
from types import FrameType
from typing import Any

from .errors import InputError, listed, naming, one_line, option
from .guards import handling_signals

try:
    import fcntl
except ImportError:  # pragma: no cover  (not on this platform: nothing is taken for left behind)
    fcntl = None  # type: ignore[assignment]

_ROOM = "check that the folder exists, is yours and has room"
# What is being made; what it replaces; what is complete and on its way into its place.
_UNFINISHED, _REPLACED = ".sparsegsvp-partial-", ".sparsegsvp-before-"
_INCOMING = ".sparsegsvp-new-"


def write_atomic(path: str | PathLike[str], content: str | bytes) -> Path:
    """Write a file whole or not at all.

    The content goes to a sibling first, which then takes the name of the file; if anything
    fails before that, the old file (or none) is what remains. A symbolic link is followed, and
    what is no regular file (a device, a pipe) is written to as it is.

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
    data = content.encode("utf-8", "replace") if isinstance(content, str) else content
    with _refusing("it cannot be written", path, _ROOM):
        kind = _kind(path)
        if kind is not None and stat.S_ISDIR(kind):
            raise InputError("this is a folder", where=str(path), remedy="name a file")
        if kind is not None and not stat.S_ISREG(kind):
            with open(path, "wb") as handle:
                handle.write(data)
            return Path(path)
        final = Path(os.path.realpath(path))
        with _unfinished(final.parent, lambda path: path.touch(exist_ok=False)) as partial:
            with open(partial, "wb") as handle:
                handle.write(data)
                handle.flush()
                os.fsync(handle.fileno())
            if kind is not None:
                with suppress(OSError):  # not every disk has permissions
                    os.chmod(partial, stat.S_IMODE(kind))
            os.replace(partial, final)
    return Path(path)


@contextmanager
def whole_folder(path: str | PathLike[str], *, owned: Collection[str] = ()) -> Iterator[Path]:
    """Fill a folder that appears under its name only when it is complete.

    Inside the ``with`` block files are written to a hidden folder: in `path` if that exists,
    else beside it. If the block raises (or is interrupted), it is removed and whatever stood at
    `path` is untouched.

    Parameters
    ----------
    path : path-like
        The folder. Its parents are made if needed.
    owned : collection of str, default=()
        Names of files of an earlier run that may be replaced, and of folders, with a slash at
        their end. A folder that holds anything else is refused at once, before any work is done.

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
    final = Path(os.path.realpath(path))  # a link stays, even one to a folder not yet there
    with ExitStack() as stack:
        with _refusing("the folder cannot be made", path, "choose another folder"):
            finish_replacement(final)
            _refuse_foreign(final, owned)
            # Inside the folder if there is one: it may be a volume of its own, to which nothing
            # can be moved from outside. Else with the folders that are missing above it.
            place = _first_there(final)
            top = stack.enter_context(_unfinished(place, os.mkdir))
            above, *below = final.relative_to(place).parts or ("",)
            partial = top.joinpath(*below)
            partial.mkdir(parents=True, exist_ok=True)
        with _named_for(final, partial):
            yield partial
        with _signals_wait(), naming(path):
            if above and not os.path.lexists(place / above):
                os.rename(top, place / above)
            else:
                _replace(partial, final, owned)


@contextmanager
def _refusing(what: str, path: str | PathLike[str], remedy: str) -> Iterator[None]:
    """Turn what the system refuses in a block into an `InputError`."""
    try:
        yield
    except OSError as error:
        why = error.strerror or error
        raise InputError(f"{what} ({why})", where=str(path), remedy=remedy) from error


@contextmanager
def _named_for(final: Path, partial: Path) -> Iterator[None]:
    """Let errors name a file by the folder that it is for, not by the hidden one it is in."""
    try:
        yield
    except OSError as error:
        if error.filename is not None:
            error.filename = str(error.filename).replace(str(partial), str(final))
        raise
    except InputError as error:
        if str(partial) not in error.where:
            raise
        where = error.where.replace(str(partial), str(final))
        raise InputError(error.what, where=where, remedy=error.remedy) from error.__cause__


def _first_there(path: Path) -> Path:
    """Return a path, or the nearest folder above it that there is."""
    return path if path.exists() else _first_there(path.parent)


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
    final = Path(os.path.abspath(path))
    if owned is not None:
        _refuse_foreign(final, owned)
        earlier = sorted(_shown(final), key=_written) if final.exists() else []
        if earlier and not force:
            raise InputError(
                f"the folder holds the results of an earlier run ({_dated(earlier[-1])})",
                where=str(path),
                remedy=f"choose another folder, or replace them with {option('force', True)}",
            )
        place = _first_there(final)
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
    with _refusing("nothing can be written there", path, _ROOM), tempfile.TemporaryFile(dir=place):
        pass


def _written(path: Path) -> float:
    return path.stat().st_mtime


def _dated(path: Path) -> str:
    when = datetime.datetime.fromtimestamp(_written(path))
    return f"{path.name} of {when:%Y-%m-%d %H:%M}"


def _name(path: Path) -> str:
    """What the owned names call a file, or a folder, which ends in a slash."""
    return f"{path.name}/" if path.is_dir() else path.name


def _shown(folder: Path) -> list[Path]:
    """What is in a folder, without what is unfinished or was left behind."""
    hidden = (_UNFINISHED, _REPLACED, _INCOMING)
    return [path for path in folder.iterdir() if not path.name.startswith(hidden)]


def _refuse_foreign(final: Path, owned: Collection[str]) -> None:
    if not final.exists():
        return
    if not final.is_dir():
        raise InputError("this is a file, not a folder", where=str(final), remedy="choose another")
    foreign = sorted(p.name for p in _shown(final) if _name(p) not in owned)
    if foreign:
        raise InputError(
            f"the folder holds other files ({listed(foreign, 3)})",
            where=str(final),
            remedy="choose a new or empty folder",
        )


def _replace(partial: Path, final: Path, owned: Collection[str]) -> None:
    """Put the files of one folder in the place of another's, which may have come up meanwhile."""
    final.mkdir(parents=True, exist_ok=True)
    # The folder itself stays (it may be the working directory): old files out, new files
    # in, and back again if a step fails. That all old ones are out, and the new ones go in, is
    # told by the name under which these wait; see `finish_replacement`.
    _refuse_foreign(final, owned)
    old = sorted(p for p in final.iterdir() if _name(p) in owned)
    backup, lock = _claim(final, os.mkdir, _REPLACED)
    incoming = final / backup.name.replace(_REPLACED, _INCOMING)
    moved_in: list[Path] = []
    try:
        for file in old:
            os.rename(file, backup / file.name)
        os.rename(partial, incoming)
        for file in sorted(incoming.iterdir()):
            os.rename(file, final / file.name)
            moved_in.append(final / file.name)
        _forget_old([backup], incoming)
    except BaseException:
        with suppress(OSError):
            os.rename(incoming, partial)
        shutil.rmtree(incoming, ignore_errors=True)  # if it could not be renamed
        _put_back(backup, final, moved_in)
        raise
    finally:
        _release(lock)


def _forget_old(backups: Sequence[Path], incoming: Path) -> None:
    """Remove what was replaced, and then the sign that it was."""
    for backup in backups:
        shutil.rmtree(backup, ignore_errors=True)
    if not any(backup.exists() for backup in backups):
        with suppress(OSError):
            incoming.rmdir()


def _put_back(backup: Path, final: Path, moved_in: Sequence[Path]) -> None:
    """Undo a replacement that failed; what cannot be put back stays where it is, and is named."""
    remedy = f"the old ones are in {one_line(backup)}: move them"
    with _refusing("the new results cannot be put there, nor the old ones back", final, remedy):
        for file in moved_in:
            shutil.rmtree(file) if file.is_dir() else file.unlink()
        for file in sorted(backup.iterdir()):
            shutil.move(file, final / file.name)  # copies what cannot be renamed
        backup.rmdir()


def finish_replacement(path: str | PathLike[str]) -> None:
    """Finish what a process that was killed had begun when it replaced the results in a folder.

    If all old files were out, the rest of the new ones is put in; else the old ones are put back.

    Parameters
    ----------
    path : path-like
        The folder; there need be none.
    """
    final = Path(os.path.realpath(path))
    for incoming in _left_behind(final, _INCOMING):
        for file in sorted(incoming.iterdir()):
            os.rename(file, final / file.name)
        _forget_old(list(_left_behind(final, _REPLACED)), incoming)
    if not any(final.glob(f"{_INCOMING}*")):
        for backup in _left_behind(final, _REPLACED):
            for file in sorted(backup.iterdir()):
                os.rename(file, final / file.name)
            backup.rmdir()


def _kind(path: str | PathLike[str]) -> int | None:
    """Return the mode of what a path leads to, None if there is nothing."""
    try:
        return os.stat(path).st_mode
    except FileNotFoundError:
        return None


# --- unfinished files and folders ------------------------------------------------------


def _claim(place: Path, make: Callable[[Path], None], prefix: str) -> tuple[Path, int | None]:
    """Make a file or folder of a new name, locked for as long as this process lives."""
    while True:
        path, number = place / f"{prefix}{secrets.token_hex(8)}", None
        make(path)
        if fcntl is not None:  # pragma: no branch  (it is on this platform)
            try:
                number = os.open(path, os.O_RDONLY)
            except OSError:
                _remove(path)
                raise
            with suppress(OSError):  # not every disk has locks
                fcntl.flock(number, fcntl.LOCK_EX)
        if path.exists():  # pragma: no branch  (no test can be so quick)
            return path, number
        _release(number)  # another process took it for left behind before it was locked


def _release(number: int | None) -> None:
    """Give up the lock that `_claim` returned."""
    if number is not None:  # pragma: no branch  (there are locks on this platform)
        os.close(number)


@contextmanager
def _unfinished(place: Path, make: Callable[[Path], None]) -> Iterator[Path]:
    """Enclose work on an unfinished file or folder; it is removed unless it was moved away."""
    for path in _left_behind(place, _UNFINISHED):
        _remove(path)
    made: Path | None = None
    lock: int | None = None
    try:
        with _signals_wait():  # one between making it and knowing of it must not leave it
            made, lock = _claim(place, make, _UNFINISHED)
        yield made
    finally:
        with _signals_wait():  # being told to end again must not leave it
            if made is not None:
                _remove(made)
                _release(lock)


def _remove(path: Path) -> None:
    """Remove a file or folder of ours; what the disk refuses is left to the next process."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def _left_behind(folder: Path, prefix: str) -> Iterator[Path]:
    """Yield what processes that were killed have left in a folder, and no living one holds."""
    if fcntl is None:  # pragma: no cover  (not on this platform)
        return
    for path in folder.glob(f"{prefix}*"):
        with suppress(OSError):
            number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
                yield path
            finally:
                os.close(number)


@contextmanager
def _signals_wait() -> Iterator[None]:
    """Delay Ctrl-C and other requests to end until a few renames are done."""
    held: list[tuple[int, FrameType | None]] = []
    previous: dict[int, Any] = {}
    try:
        with handling_signals(lambda *request: held.append(request), python=True) as previous:
            yield
    finally:
        if held:
            previous[held[0][0]](*held[0])
