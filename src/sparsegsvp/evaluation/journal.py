"""A log of finished work that survives being killed, and the loop that fills it.

One JSON object per line: a header that identifies the work, then one line per finished
piece, in the order they finish. On resuming, a torn last line is discarded and finished
pieces are not repeated. When all is done the file is rewritten once, in canonical order,
so that its bytes depend on neither interruptions nor the number of workers. Timings never
repeat exactly, so they go to a file of their own beside it.

A file is written to only after its first line proved it to be a log of this very work.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from io import BufferedRandom
from pathlib import Path
from typing import Any, TypeVar

from .._parallel import Outcome, Task, run_tasks
from .._typing import Progress
from .values import dumps

try:
    import fcntl
except ImportError:  # pragma: no cover  (not on this platform: two writers go unnoticed)
    fcntl = None  # type: ignore[assignment]

Key = tuple[Any, ...]
LogPath = str | os.PathLike[str]
Parsed = TypeVar("Parsed")

_TIMINGS_HEADER = {"timings": "sparsegsvp"}


class Journal:
    """Finished pieces of work, in memory and (with a path) on disk.

    Without a ``path`` nothing is written, hashed or turned into JSON. The ``header`` (or what it
    returns, if it is a callable) identifies the work: resuming a log of other work is refused. An
    existing log is an error without ``resume``, never overwritten.

    ``records`` has the value of each finished piece by its key, a tuple, and ``timings`` the
    seconds that it took.
    """

    def __init__(
        self,
        path: LogPath | None,
        header: Mapping[str, Any] | Callable[[], Mapping[str, Any]],
        *,
        resume: bool = False,
    ) -> None:
        self.records: dict[Key, Any] = {}
        self.timings: dict[Key, Any] = {}
        self.path: Path | None = None
        self._order: list[Key] = []
        self._lines: dict[Key, int] = {}
        self._log: _LineFile | None = None
        self._times: _LineFile | None = None
        if path is None:
            if resume:
                raise ValueError("resume=True needs log, the file to continue from.")
            return
        if Path(path).exists() and not resume:
            raise ValueError(
                f"{path} exists already: pass resume=True to continue it, or another name."
            )
        # through symbolic links, so that finishing replaces the file and not the link
        self.path = Path(os.path.realpath(path))
        times = self.path.with_name(f"{self.path.stem}.timings{self.path.suffix}")
        self._header = {"header": header() if callable(header) else header}
        try:
            self._log = _LineFile(self.path, self._header)
            self._times = _LineFile(times, _TIMINGS_HEADER)
            for key, (number, value) in self._log.pieces("value").items():
                self.records[key], self._lines[key] = value, number
            if not self._log.is_new:  # times without a log are left from one that was removed
                self.timings = {k: s for k, (_, s) in self._times.pieces("seconds").items()}
            # both files are ours and whole: only from here on is anything written
            self._times.start(afresh=self._log.is_new or self._times.is_new)
            self._log.start(afresh=self._log.is_new)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __contains__(self, key: object) -> bool:
        return key in self.records

    def add(self, key: Key, value: Any, seconds: Any = None) -> None:
        """Record a finished piece; with a log, as it will be read back."""
        if seconds is not None:
            # the timing first: a piece that is on record always has its time
            self.timings[key] = seconds
            if self._times is not None:
                self._times.append({"key": key, "seconds": seconds})
        if self._log is not None:
            text = self._log.append({"key": key, "value": value})
            value = json.loads(text)["value"]
        self.records[key] = value

    def read(self, key: Key, parse: Callable[[Any], Parsed]) -> Parsed:
        """Return what ``parse`` makes of a record; name the line where it cannot."""
        try:
            return parse(self.records[key])
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            if key not in self._lines:
                raise
            raise _damaged(self.path, self._lines[key]) from error

    def forget(self, keys: Iterable[Key]) -> None:
        """Drop records that are to be made again."""
        for key in keys:
            del self.records[key]

    def part(self, name: str) -> JournalPart:
        """Return the part of this journal under a name, for work whose keys occur elsewhere too."""
        return JournalPart(self, name)

    def plan(self, keys: Iterable[Key]) -> None:
        """Append keys to the canonical order of the finished log.

        Each part of the work plans its own, in the order in which the parts are begun.
        """
        self._order += keys

    def finish(self, *, keep_others: bool = False) -> None:
        """Rewrite the log in canonical order, pieces that nobody planned last or not at all."""
        keys = [key for key in dict.fromkeys(self._order) if key in self.records]
        if keep_others:
            keys += sorted(self.records.keys() - set(keys), key=dumps)
        if self._log is not None:
            lines: list[Any] = [self._header]
            lines += [{"key": key, "value": self.records[key]} for key in keys]
            self._log.replace(lines)
        self.close()

    def close(self) -> None:
        """Close the files and let others open them."""
        for file in (self._log, self._times):
            if file is not None:
                file.close()
        self._log = self._times = None


class JournalPart(Journal):
    """A journal within a journal: its keys are kept there with its name before them.

    Two evaluations of one run have the same keys; in parts of their own they never mix.
    """

    def __init__(self, whole: Journal, name: str) -> None:
        self._whole, self._name = whole, name
        self.records, self.timings = (
            {key[1:]: value for key, value in found.items() if key[0] == name}
            for found in (whole.records, whole.timings)
        )

    def add(self, key: Key, value: Any, seconds: Any = None) -> None:
        """Record a finished piece, in the whole journal too."""
        self._whole.add((self._name, *key), value, seconds)
        self.records[key] = self._whole.records[self._name, *key]
        if seconds is not None:
            self.timings[key] = seconds

    def read(self, key: Key, parse: Callable[[Any], Parsed]) -> Parsed:
        """Return what ``parse`` makes of a record; name the line where it cannot."""
        return self._whole.read((self._name, *key), parse)

    def forget(self, keys: Iterable[Key]) -> None:
        """Drop records that are to be made again."""
        for key in list(keys):
            del self.records[key]
            self._whole.forget([(self._name, *key)])

    def plan(self, keys: Iterable[Key]) -> None:
        """Append keys to the canonical order of the whole journal."""
        self._whole.plan((self._name, *key) for key in keys)

    def finish(self, *, keep_others: bool = False) -> None:
        """Do nothing: the files are the whole journal's."""

    def close(self) -> None:
        """Do nothing: the files are the whole journal's."""


@contextlib.contextmanager
def open_journal(
    log: LogPath | Journal | None,
    header: Mapping[str, Any] | Callable[[], Mapping[str, Any]],
    *,
    resume: bool = False,
) -> Iterator[Journal]:
    """Open a log for one piece of work and finish it, or pass on one that is open already.

    An open `Journal` belongs to whoever opened it: its header is theirs, and so is finishing.
    """
    if isinstance(log, Journal):
        yield log
        return
    with Journal(log, header, resume=resume) as journal:
        yield journal
        journal.finish()


def run_logged(
    tasks: Sequence[Task],
    shared: Any,
    journal: Journal,
    *,
    stage: str = "",
    progress: Progress | None = None,
    record: Callable[[Outcome], tuple[Any, Any]] | None = None,
    **options: Any,
) -> int:
    """Run the tasks that a journal does not hold yet; return how many that were.

    Their keys become the next ones of the journal's canonical order. ``record`` turns an
    outcome into the value and the seconds to keep; ``options`` are those of `run_tasks`.
    """
    journal.plan(task.key for task in tasks)
    left = [task for task in tasks if task.key not in journal]
    done = len(tasks) - len(left)
    if progress is not None:
        progress(stage, done, len(tasks))
    with contextlib.closing(run_tasks(left, shared, **options)) as outcomes:
        for outcome in outcomes:
            value, seconds = (outcome.value, outcome.seconds) if record is None else record(outcome)
            journal.add(outcome.task.key, value, seconds)
            done += 1
            if progress is not None:
                progress(stage, done, len(tasks))
    return len(left)


def seconds_of(journal: Journal, kinds: Collection[str]) -> dict[str, float]:
    """Return the seconds of pieces whose keys begin with one of these words, by key as text."""
    return {
        "/".join(map(str, key)): seconds
        for key, seconds in journal.timings.items()
        if key[0] in kinds
    }


# ------------------------------------------------------------------------------------- files


class _LineFile:
    """A file of JSON lines that begins with a known one; nothing is written before `start`.

    Opening a file that exists locks and reads it. One that does not begin with the header, or
    with the torn beginning of it, is refused and left as it is.
    """

    def __init__(self, path: Path, header: Mapping[str, Any]) -> None:
        self.path = path
        self._first = (dumps(header) + "\n").encode()
        self._handle: BufferedRandom | None = None
        self._lines: list[Any] = []
        self._end = 0  # of the last whole line
        if not path.exists():
            return
        if not path.is_file():
            raise ValueError(f"{path} is not a regular file; choose another name for the log.")
        self._handle = _open_locked(path, "r+b")
        try:
            content = self._handle.read()
            self._check_first_line(content)
            self._lines, self._end = _whole_lines(content, path)
        except BaseException:
            self.close()
            raise

    def _check_first_line(self, content: bytes) -> None:
        if content.startswith(self._first) or self._first.startswith(content):
            return
        try:
            found = json.loads(content.partition(b"\n")[0])["header"]
            wanted = json.loads(self._first)["header"]
            names = sorted(
                name for name in found.keys() | wanted.keys() if found.get(name) != wanted.get(name)
            )
        except (AttributeError, KeyError, TypeError, ValueError):
            raise ValueError(
                f"{self.path} is not a log of this kind, and was left as it is; choose another "
                "name for the log, or move that file away."
            ) from None
        said = ", ".join(textwrap.shorten(name, 60) for name in names[:8])
        raise ValueError(
            f"{self.path} holds other work: {said} differ. "
            "Resume with the same data and settings, choose another file or folder, or delete "
            "that file to start anew."
        )

    @property
    def is_new(self) -> bool:
        """Whether there is no file, or nothing in it."""
        return not self._lines

    def pieces(self, name: str) -> dict[Key, tuple[int, Any]]:
        """Return line number and content of each piece, by its key."""
        found = {}
        for number, line in enumerate(self._lines[1:], start=2):
            known = isinstance(line, dict) and line.keys() == {"key", name}
            key = line["key"] if known else None
            if not isinstance(key, list) or not all(isinstance(k, (int, str)) for k in key):
                raise _damaged(self.path, number)
            found[tuple(key)] = number, line[name]
        return found

    def start(self, *, afresh: bool) -> None:
        """Begin to write: cut off a torn last line, or (afresh) all but the header."""
        self._lines.clear()
        try:
            if self._handle is None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._handle = _open_locked(self.path, "x+b")
            self._handle.truncate(0 if afresh else self._end)
        except OSError as error:
            raise _cannot_write(self.path, error) from error
        if afresh:
            self._write(self._first)

    def append(self, line: Any) -> str:
        """Write a line and make sure it stays; return its text."""
        text = dumps(line)
        self._write((text + "\n").encode())
        return text

    def _write(self, content: bytes) -> None:
        assert self._handle is not None
        try:
            self._handle.seek(0, os.SEEK_END)
            self._handle.write(content)
            self._handle.flush()
            os.fsync(self._handle.fileno())
        except OSError as error:
            raise _cannot_write(self.path, error) from error

    def replace(self, lines: Iterable[Any]) -> None:
        """Put these lines in the place of the file, whole or not at all."""
        # A name of its own for each log, whose lock is ours: what a process that was killed here
        # has left is replaced. By its digest, since the name may be as long as names can be.
        digest = hashlib.sha256(os.fsencode(self.path.name)).hexdigest()
        scratch = self.path.with_name(f".sparsegsvp-log-{digest[:16]}")
        try:
            scratch.unlink(missing_ok=True)
            with open(scratch, "xb") as handle:
                handle.write("".join(dumps(line) + "\n" for line in lines).encode())
                handle.flush()
                os.fsync(handle.fileno())
            os.chmod(scratch, self.path.stat().st_mode & 0o777)
            self.close()
            os.replace(scratch, self.path)
        except BaseException as error:
            with contextlib.suppress(OSError):
                scratch.unlink(missing_ok=True)
            if isinstance(error, OSError):
                raise _cannot_write(self.path, error) from error
            raise

    def close(self) -> None:
        """Close the file, and so give up its lock."""
        if self._handle is not None:
            with contextlib.suppress(OSError):  # of a disk that is full: said already
                self._handle.close()
        self._handle = None


def _open_locked(path: Path, mode: str) -> Any:
    """Open a file for this process alone; the lock goes with the process, however it ends."""
    handle = open(path, mode)  # noqa: SIM115  (held open until close)
    if fcntl is not None:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            handle.close()
            raise ValueError(f"{path} is being written by another process.") from error
    return handle


def _whole_lines(content: bytes, path: Path) -> tuple[list[Any], int]:
    """Parse the complete lines of a log; also return where the last of them ends."""
    end = content.rfind(b"\n") + 1
    lines = content[:end].split(b"\n")[:-1]
    parsed = []
    for number, line in enumerate(lines, start=1):
        try:
            parsed.append(json.loads(line))
        except ValueError as error:
            # a power cut may leave a last line of the right length with the wrong bytes
            if number == len(lines) > 1:
                end -= len(line) + 1
                break
            raise _damaged(path, number) from error
    return parsed, end


def _damaged(path: Path | None, number: int) -> ValueError:
    return ValueError(
        f"line {number} of {path} is damaged; remove that line to have its piece computed again, "
        "or the file to start anew."
    )


def _cannot_write(path: Path, error: OSError) -> OSError:
    return OSError(
        error.errno,
        f"the log cannot be written ({error.strerror}); what it holds is kept, and resume=True "
        "continues from there",
        str(path),
    )
