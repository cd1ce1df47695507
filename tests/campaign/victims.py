"""Commands that run in children of a server, whole, with a fault at a chosen step, or killed.

The server has imported everything and forks: a command takes a fraction of a second. Tasks that
were computed once are remembered, so that what a trial repeats is reading and writing. In the
child every call that changes the disk is a step; steps are counted, and one of them may fail.
`SCENES` are the commands, and `Stage` judges what is on the disk after one of them.
"""

from __future__ import annotations

import atexit
import builtins
import errno
import functools
import hashlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

# What goes wrong, at step k: `full` and `readonly` stay so, `devices` is the rename across two.
FAULTS = ("full", "io", "readonly", "devices", "kill", "SIGTERM", "SIGINT", "SIGHUP", "twice")


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code (negative after a signal), what it said, its steps."""

    code: int
    out: str
    err: str
    steps: list[str]


class Victims:
    """The server, seen from the tests; one command at a time."""

    def __init__(self) -> None:
        self._scratch = Path(tempfile.mkdtemp(prefix="victims-"))
        self._server = subprocess.Popen(
            [sys.executable, __file__, str(self._scratch)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"},
        )  # fmt: skip

    def close(self) -> None:
        self._server.stdin.close()
        self._server.wait(timeout=30)
        for path in self._scratch.iterdir():
            path.unlink()
        self._scratch.rmdir()

    def _ask(self, **question: Any) -> None:
        self._server.stdin.write(json.dumps(question) + "\n")
        self._server.stdin.flush()

    def _answer(self) -> Any:
        return json.loads(self._server.stdout.readline())

    def remember(self, words: Sequence[Any], folder: Path) -> None:
        """Run a command in the server itself, so that its tasks are known to all children."""
        self._ask(words=[str(word) for word in words], folder=str(folder), fork=False)
        assert self._answer()["code"] == 0, (self._scratch / "err").read_text()

    def start(self, words: Sequence[Any], folder: Path, fault: str = "", at: int = 0) -> int:
        """Start a command in a folder, in a session of its own; return its process."""
        self._ask(
            words=[str(word) for word in words], folder=str(folder), fork=True, fault=fault, at=at
        )
        return self._answer()["pid"]

    def wait(self) -> Ended:
        code = self._answer()["code"]
        out, err, steps = ((self._scratch / n).read_text() for n in ("out", "err", "steps"))
        return Ended(code, out, err, steps.splitlines())

    def run(self, words: Sequence[Any], folder: Path, fault: str = "", at: int = 0) -> Ended:
        self.start(words, folder, fault, at)
        return self.wait()


def alive(session: int) -> list[int]:
    """The processes of a session that have not ended."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = path.read_text().rpartition(") ")[2].split()
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(int(path.parent.name))
    return found


def all_gone(session: int, seconds: float = 10.0) -> bool:
    """Whether no process of a session is left, waiting a little for those that look after it."""
    end = time.monotonic() + seconds
    while alive(session):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def files(folder: Path) -> dict[str, bytes]:
    """Every file of a folder by its name in it, and every empty folder."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            found[path.relative_to(folder).as_posix()] = path.read_bytes()
        elif not any(path.iterdir()):
            found[path.relative_to(folder).as_posix() + "/"] = b""
    return found


# --- the disk as a child sees it -----------------------------------------------------------


class _File(io.FileIO):
    """A file whose writes are steps."""

    disk: Disk

    def write(self, data: Any) -> int:
        half = bytes(data)[: len(bytes(data)) // 2]
        write = super().write
        return self.disk.step("write", self.name, lambda: write(data), torn=lambda: write(half))

    def truncate(self, size: int | None = None) -> int:
        cut = super().truncate
        return self.disk.step("truncate", self.name, lambda: cut(size))


class Disk:
    """Counts the steps on a folder, and lets one of them go wrong."""

    def __init__(self, folder: str, fault: str, at: int) -> None:
        self.folder, self.fault, self.at = folder, fault, at
        self.steps: list[str] = []
        self.held = False

    def install(self) -> None:
        for name in ("mkdir", "rmdir", "unlink", "remove", "chmod", "truncate", "fsync"):
            setattr(os, name, self._one(name, getattr(os, name)))
        for name in ("rename", "replace", "link", "symlink"):
            setattr(os, name, self._two(name, getattr(os, name)))
        self._os_open, self._open = os.open, io.open
        os.open = self._open_number
        import _io

        builtins.open = io.open = _io.open = self._open_file

    def _watched(self, path: Any, dir_fd: int | None = None) -> str | None:
        """The path if it is in the folder."""
        if isinstance(path, int):
            text = os.readlink(f"/proc/self/fd/{path}")
        else:
            text = os.fsdecode(os.fspath(path))
            base = os.getcwd() if dir_fd is None else os.readlink(f"/proc/self/fd/{dir_fd}")
            text = os.path.normpath(os.path.join(base, text))
        return text if text.startswith(self.folder) else None

    def _one(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(call)
        def step(path: Any, *args: Any, **how: Any) -> Any:
            watched = self._watched(path, how.get("dir_fd"))
            if watched is None:
                return call(path, *args, **how)
            return self.step(name, path, lambda: call(path, *args, **how))

        return step

    def _two(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(call)
        def step(a: Any, b: Any, **how: Any) -> Any:
            if self._watched(b) is None:
                return call(a, b, **how)
            apart = Path(a).parent != Path(b).parent
            return self.step(name, b, lambda: call(a, b, **how), apart=apart)

        return step

    def _open_number(self, path: Any, flags: int, *args: Any, **how: Any) -> int:
        def call() -> int:
            return self._os_open(path, flags, *args, **how)

        writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if not writes or self._watched(path, how.get("dir_fd")) is None:
            return call()
        return self.step("open", path, call)

    def _open_file(
        self, file: Any, mode: str = "r", buffering: int = -1, encoding: Any = None,
        errors: Any = None, newline: Any = None, closefd: bool = True, opener: Any = None,
    ) -> Any:  # fmt: skip
        if not set(mode) & set("wax+") or self._watched(file) is None:
            return self._open(file, mode, buffering, encoding, errors, newline, closefd, opener)
        plain = mode.replace("b", "").replace("t", "")
        raw = self.step("open", file, lambda: _File(file, plain, closefd, opener))
        raw.disk = self
        buffer: Any = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        return buffer if "b" in mode else io.TextIOWrapper(buffer, encoding, errors, newline)

    def step(
        self, what: str, path: Any, call: Callable[[], Any],
        torn: Callable[[], Any] | None = None, apart: bool = False,
    ) -> Any:  # fmt: skip
        """Do what is asked, unless this is the step at which something goes wrong."""
        self.steps.append(f"{what} {path}")
        k, at, fault = len(self.steps), self.at, self.fault
        takes_room = what in ("open", "write", "mkdir", "fsync", "link", "symlink")
        takes_room |= what in ("rename", "replace") and k == at
        failed = {
            "full": (k >= at and takes_room, errno.ENOSPC),
            "io": (k == at, errno.EIO),
            "readonly": (k >= at, errno.EROFS),
            "devices": (k >= at and apart, errno.EXDEV),
        }.get(fault)
        if failed is not None and failed[0]:
            if torn is not None and fault == "full" and k == at:
                return torn()  # what there is room for; the next write finds none
            if what in ("write", "fsync", "truncate"):  # on a file that is open: no name is given
                raise OSError(failed[1], os.strerror(failed[1]))
            raise OSError(failed[1], os.strerror(failed[1]), os.fspath(path))
        if fault == "kill" and k == at:
            if torn is not None:
                torn()
            os.kill(os.getpid(), signal.SIGKILL)
        # The system's own write is over before Python hears of a signal; this one is in Python,
        # and would be left in the middle: so it is sent before the next step.
        if self.held:
            self.held = False
            self._signal()
        done = call()
        if (fault.startswith("SIG") and k == at) or (fault == "twice" and k in (at, at + 1)):
            self.held = torn is not None
            if not self.held:
                self._signal()
        return done

    def _signal(self) -> None:
        name = "SIGTERM" if self.fault == "twice" else self.fault
        os.kill(os.getpid(), signal.Signals[name])


# --- scenes ------------------------------------------------------------------------------

ASK = ["table.csv", "--target", "class", "--id", "sample", "--positive", "ill"]
FEW = ["--tau", "1", "--deltas", "3", "--folds", "2", "--repeats", "1"]
SELECT = ["select", *ASK, *FEW, "--jobs", "1", "--fast", "--quiet"]
LOGGED = ["--jobs", "1", "--permutations", "0", "--resamples", "2", "--log", "run.jsonl"]
EVALUATE = ["evaluate", *ASK, *FEW, "--permutations", "2", "--quiet"]
COMPARE = ["compare", *ASK[:3], *FEW[4:], "--jobs", "1", "--quiet"]
COMPARE += ["--method", "GSVPSVM", "--sizes", "2"]


@dataclass(frozen=True)
class Scene:
    """A command, what stood there before, and what it makes."""

    words: list[str]
    makes: tuple[str, ...]
    """Files, and folders with a slash at their end, each of which is old or new as a whole."""
    before: tuple[list[str], ...] = ()
    keeps: tuple[str, ...] = ()
    """Files that it adds to, in any state after a fault."""
    again: tuple[str, ...] = ("--force",)
    """What is added when the command is given again."""
    workers: bool = False
    """Whether it starts processes, which no server that forks must do."""


OTHER = ["--seed", "7"]
SCENES = {
    "select": Scene([*SELECT, "--out", "new/out"], ("new/",)),
    "select again": Scene(
        [*SELECT, "--out", "out", "--force"],
        ("out/",),
        ([*SELECT, *OTHER, "--out", "out"],),
        (),
        (),
    ),
    "select with figures": Scene([*SELECT, "--figures", "--out", "out"], ("out/",)),
    "select with a log": Scene(
        ["select", *ASK, *FEW, *LOGGED, "--progress-file", "steps.jsonl", "--out", "out"],
        ("out/",),
        (),
        ("run.jsonl", "run.timings.jsonl", "steps.jsonl"),
    ),
    "evaluate": Scene(
        [*EVALUATE, "--jobs", "1", "--log", "run.jsonl", "--out", "out", "--force"],
        ("out/",),
        ([*EVALUATE, *OTHER, "--jobs", "1", "--out", "out"],),
        ("run.jsonl", "run.timings.jsonl"),
        (),
    ),
    "compare": Scene(
        [*COMPARE, "--log", "run.jsonl", "--out", "out"],
        ("out/",),
        (),
        ("run.jsonl", "run.timings.jsonl"),
    ),
    "evaluate in workers": Scene(
        [*EVALUATE, "--jobs", "2", "--log", "run.jsonl", "--out", "out"],
        ("out/",),
        (),
        ("run.jsonl", "run.timings.jsonl"),
        workers=True,
    ),
    "compare with a time limit": Scene(
        [*COMPARE, "--time-limit", "300", "--log", "run.jsonl", "--out", "out"],
        ("out/",),
        (),
        ("run.jsonl", "run.timings.jsonl"),
        workers=True,
    ),
    "predict": Scene(
        ["predict", "model/model.skops", *ASK, "--quiet", "--force",
         "--out", "calls.csv", "--validation", "cohort.json"],
        ("calls.csv", "cohort.json"),
        ([*SELECT, "--out", "model"],
         ["predict", "model/model.skops", "table.csv", "--out", "calls.csv"]),
        (),
        (),
    ),
    "recalibrate": Scene(
        ["recalibrate", "model/model.skops", "--prevalence", "0.1", "--quiet", "--force",
         "--out", "clinic.skops"],
        ("clinic.skops",),
        ([*SELECT, "--out", "model"],
         ["recalibrate", "model/model.skops", "--prevalence", "0.4", "--out", "clinic.skops"]),
        (),
        (),
    ),
    "reproduce": Scene(
        ["reproduce", "--jobs", "1", "--quiet", "--out", "out"],
        ("out/*",),
        (),
        ("out/breast.jsonl", "out/breast.timings.jsonl"),
        (),
    ),
}  # fmt: skip


def write_table(path: Path) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(24, 6)).round(4)
    X[:12, 0] += 3
    X[:12, 3] -= 3
    lines = ["sample," + ",".join(f"g{j}" for j in range(6)) + ",class"]
    for i, row in enumerate(X):
        lines.append(
            f"s{i}," + ",".join(map(repr, row.tolist())) + f",{'ill' if i < 12 else 'well'}"
        )
    path.write_text("\n".join(lines) + "\n")


class Stage:
    """A scene on a disk: the folder before, the same after an undisturbed run, and its steps."""

    def __init__(self, scene: Scene, server: Victims, folder: Path) -> None:
        self.scene, self.server, self.folder = scene, server, folder
        self.template, self.place = folder / "template", folder / "place"
        self.template.mkdir()
        write_table(self.template / "table.csv")
        (self.template / "thesis.docx").write_bytes(b"mine")
        for words in scene.before:
            server.remember(words, self.template)
        self.before = files(self.template)
        if not scene.workers:
            self.lay_out()
            server.remember(scene.words, self.place)
        self.lay_out()
        ended = server.run(scene.words, self.place)
        assert ended.code == 0, ended.err
        self.after, self.steps = files(self.place), ended.steps
        self.recovered: dict[str, list[str]] = {}

    def lay_out(self) -> None:
        shutil.rmtree(self.place, ignore_errors=True)
        shutil.copytree(self.template, self.place)

    def faults(self) -> list[tuple[str, int]]:
        """Every way in which every step can go wrong."""
        signals = ("SIGTERM", "SIGINT", "SIGHUP")
        found = []
        for k, step in enumerate(self.steps, start=1):
            found += [(fault, k) for fault in ("full", "io", "readonly", "kill", "twice")]
            found.append((signals[k % 3], k))
            found += [("devices", k)] if step.startswith(("rename", "replace")) else []
        return found

    def trial(self, fault: str, at: int) -> list[str]:
        """Let one step go wrong; return what should not be."""
        self.lay_out()
        pid = self.server.start(self.scene.words, self.place, fault, at)
        ended = self.server.wait()
        found = files(self.place)
        problems = self.of_files(found, fault, ended.code) + self.of_words(ended, fault)
        if not all_gone(pid):
            problems.append("processes live on")
        return problems + self.of_the_next(found)

    def of_files(self, found: dict[str, bytes], fault: str, code: int) -> list[str]:
        # nothing can be removed by a process that is dead, or from a disk that is read-only
        hidden = {name for name in found if "/.sparsegsvp-" in f"/{name}"}
        excused = fault in ("kill", "readonly", "io", "twice")
        problems = [f"left lying: {name}" for name in hidden if not excused]
        if self.scene.makes[0].endswith("*"):  # one by one, into folders that may be empty
            found = {name: content for name, content in found.items() if name[-1] != "/"}
        shown = found.keys() - hidden - set(self.scene.keeps)
        made = {name: self._unit(name) for name in shown | self.after.keys() | self.before.keys()}
        for unit in sorted({unit for unit in made.values() if unit}):
            names = {name for name in made if made[name] == unit} - hidden - set(self.scene.keeps)
            now, old, new = (
                {n: tree[n] for n in names & tree.keys() if "timings" not in n}
                for tree in (found, self.before, self.after)
            )
            # a replacement that a dead process or disk has cut in two is finished by the next
            cut = fault in ("kill", "readonly") and any("-before-" in name for name in hidden)
            if cut and all(content in found.values() for content in old.values()):
                continue
            if now not in (old, new) or (code == 0 and now != new):
                problems.append(f"{unit} is neither old nor new: {sorted(now)}")
        theirs = {name for name, unit in made.items() if not unit} - set(self.scene.keeps)
        return problems + [
            f"{name} was changed, lost or added"
            for name in sorted(theirs - hidden)
            if found.get(name) != self.before.get(name)
        ]

    def _unit(self, name: str) -> str:
        """The unit of the results that a file belongs to, or none."""
        for unit in self.scene.makes:
            if unit.endswith("*") and name.startswith(unit[:-1]):
                return name
            if name == unit or (unit.endswith("/") and name.startswith(unit)):
                return unit
        return ""

    def of_words(self, ended: Ended, fault: str) -> list[str]:
        codes = {"kill": (-9,), "SIGTERM": (143,), "twice": (143,), "SIGINT": (130,)}
        codes |= {"SIGHUP": (129,)}
        if ended.code not in (0, *codes.get(fault, (2,))):
            return [f"exit code {ended.code}: {ended.err[-300:]}"]
        if "Traceback" in ended.err or ended.err.count("sparsegsvp: ") > 1:
            return [f"said: {ended.err[-500:]}"]
        if ended.code != 2:
            return []
        said = ended.err.strip().splitlines()[-1]
        named = [*self.scene.makes, *self.scene.keeps]
        names = [Path(name.rstrip("/*")).name for name in named] + ["out"]
        good = said.startswith("sparsegsvp: ") and "; " in said
        if not good or not any(name in said for name in names) or "-partial-" in said:
            return [f"a poor message: {said}"]
        return []

    def of_the_next(self, found: dict[str, bytes]) -> list[str]:
        """Give the command again; the same state is not tried twice."""
        state = hashlib.sha256()
        for name, content in found.items():
            state.update(f"{re.sub('-[0-9a-f]{16}', '', name)} {len(content)} ".encode() + content)
        known = state.hexdigest()
        if known not in self.recovered:
            words = [*self.scene.words, *self.scene.again]
            words += ["--resume"] if "run.jsonl" in found else []
            ended = self.server.run(words, self.place)
            now, problems = files(self.place), []
            if ended.code:
                problems = [f"given again: {ended.err[-300:]}"]
            elif now.keys() != self.after.keys():
                problems = [f"given again, there are {sorted(now.keys() ^ self.after.keys())}"]
            problems += [
                f"given again, {name} differs"
                for name in now.keys() & self.after.keys()
                if now[name] != self.after[name] and not re.search("timings|steps", name)
            ]
            self.recovered[known] = problems
        return self.recovered[known]


# --- the server ----------------------------------------------------------------------------


def _remembering(call: Callable[..., Any], known: dict[str, Any]) -> Callable[..., Any]:
    """Let a task that was done once be done at once."""
    import joblib

    @functools.wraps(call)
    def remembered(task: Any, shared: Any, isolate: bool, parent: int | None = None) -> Any:
        try:
            what = (task.function.__qualname__, task.key, task.arguments, task.keywords, shared)
            name = joblib.hash(what)
        except Exception:  # what cannot be hashed is done again
            return call(task, shared, isolate, parent)
        if name not in known:
            known[name] = call(task, shared, isolate, parent)
        return type(known[name])(task, *list(vars(known[name]).values())[1:])

    return remembered


def _serve(scratch: Path) -> None:
    from joblib.externals.loky import process_executor

    import sparsegsvp._parallel as parallel
    import sparsegsvp.reproduce.page as reproduction
    from sparsegsvp.cli import app
    from sparsegsvp.reproduce import Plan

    parallel._call = _remembering(parallel._call, {})
    reproduction.PLANS["breast"] = Plan(
        n_starts=1, n_splits=1, n_row_orders=1, n_tuned=0, n_searches=0, max_iter=10,
        rules=("1se",), qs=(0.9,), eps=(10**-2.5,),
    )  # fmt: skip
    answers = os.fdopen(os.dup(1), "w")

    def run(asked: dict[str, Any]) -> int:
        os.chdir(asked["folder"])
        for number, name in ((1, "out"), (2, "err")):
            handle = os.open(scratch / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(handle, number)
            os.close(handle)
        sys.argv = ["sparsegsvp", *asked["words"]]
        return app.run()

    for line in sys.stdin:
        asked = json.loads(line)
        (scratch / "steps").write_text("")
        if not asked["fork"]:
            code = run(asked)
            for number in (signal.SIGTERM, signal.SIGHUP):  # which the command has taken
                signal.signal(number, signal.SIG_DFL)
        else:
            pid = os.fork()
            if pid == 0:
                code = 130  # of Ctrl-C before the command has begun
                try:
                    os.setsid()
                    os.close(0)
                    os.open(os.devnull, os.O_RDONLY)
                    disk = Disk(asked["folder"], asked["fault"], asked["at"])
                    disk.install()
                    code = run(asked)
                    process_executor._python_exit()  # loky's own is of the process that imported it
                    atexit._run_exitfuncs()
                    (scratch / "steps").write_text("\n".join(disk.steps))
                finally:
                    sys.stdout.flush()
                    os._exit(code)
            print(json.dumps({"pid": pid}), file=answers, flush=True)
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        print(json.dumps({"code": code}), file=answers, flush=True)


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
