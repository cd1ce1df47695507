"""Runs: commands in processes of their own, each in a folder that keeps everything.

    FOLDER/20261117-150201-k3/
        run.json         what was asked, and what became of it
        colon.csv        the file that was dropped, and others beside it
        report/          what the command wrote
        log.jsonl        finished pieces, from which an interrupted run goes on
        progress.jsonl   how far it has come

Nothing else is kept: a run that is finished is its folder, and can be moved, or repeated on the
command line.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import math
import os
import re
import secrets
import shutil
import signal
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...io import write_atomic
from ...io.errors import InputError
from .forms import FILES, command_words

if os.name == "posix":
    import resource

_ID = re.compile(r"\d{8}-\d{6}-[a-z0-9]{4}")
_END_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux
_GRACE = 5.0  # seconds in which a command that is ended may clean up
_MOST = 1 << 20  # characters of a command's output that are kept


@dataclass
class Run:
    """A run and its folder, whose name is the run's.

    ``record`` is what ``run.json`` holds: ``name``, ``file`` and further ``files`` by their
    options, ``choices``, ``fast``, ``command``, ``state``, ``error``, ``summary`` of what was
    found, and ``plan``, the seconds that each stage was thought to take.
    """

    folder: Path
    record: dict[str, Any]
    process: asyncio.subprocess.Process | None = field(default=None, repr=False)
    asking: list[asyncio.subprocess.Process] = field(default_factory=list, repr=False)
    planning: int = 0

    @property
    def id(self) -> str:
        """The name of its folder."""
        return self.folder.name

    def keep(self, **changes: Any) -> None:
        """Change the record, here and on disk."""
        self.record.update(changes)
        write_atomic(self.folder / "run.json", json.dumps(self.record, indent=1) + "\n")

    def describe(self) -> dict[str, Any]:
        """Return what the page shows of it."""
        state = self.record["state"]
        return {
            "id": self.id,
            **self.record,
            "progress": self.progress() if state == "running" else None,
            "outputs": sorted(self.outputs()) if state == "finished" else [],
        }

    def outputs(self) -> dict[str, Path]:
        """Return the files that were written, by their names below the run's folder."""
        found: dict[str, Path] = {}
        for top in self.folder.glob("report*"):
            for path in top.rglob("*"):
                if path.is_file() and not path.is_symlink():
                    found[path.relative_to(self.folder).as_posix()] = path
        for path in self.folder.glob("predictions-*.csv"):
            found[path.name] = path
        return found

    def progress(self) -> dict[str, Any]:
        """Return the stage, how much of the whole is done, and about how long the rest takes."""
        plan: dict[str, float] = self.record.get("plan") or {}
        seen: dict[str, tuple[int, int]] = {}
        stage = "reading the table"
        for line in _lines(self.folder / "progress.jsonl"):
            stage = line["stage"]
            seen[stage] = (line["done"], line["total"])
        if not plan:
            return {"stage": stage, "part": None, "left": None}
        done = math.fsum(
            plan[name] * (seen[name][0] / max(seen[name][1], 1)) for name in seen if name in plan
        )
        whole = math.fsum(plan.values())
        part = min(done / whole, 0.99) if whole else 0.0
        spent = time.time() - self.record["started"]
        # at first by the plan, later by how long it has really taken
        left = (1 - part) * ((1 - part) * whole + part * (spent / part if part > 0 else whole))
        return {"stage": stage, "part": round(part, 3), "left": round(max(left, 1.0), 1)}


class Superseded(Exception):
    """A question was ended by the next one, and nobody waits for its answer."""


class Runs:
    """All runs of a folder, which is made when it is not there.

    ``memory`` bounds the address space of a command in bytes, where the system can; ``largest``
    the bytes of a file that is uploaded.
    """

    def __init__(self, folder: Path, *, memory: int | None = None, largest: int = 4 << 30) -> None:
        self.folder, self.memory, self.largest = folder, memory, largest
        folder.mkdir(parents=True, exist_ok=True)
        self._runs: dict[str, Run] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._few = asyncio.Semaphore(2)  # short commands at a time
        for path in sorted(folder.iterdir()):
            if _ID.fullmatch(path.name) and (path / "run.json").is_file():
                with suppress(ValueError, OSError):
                    record = json.loads((path / "run.json").read_text(encoding="utf-8"))
                    run = Run(path, record)
                    if record["state"] == "running":  # its server has gone
                        run.keep(state="interrupted")
                    self._runs[path.name] = run

    def __iter__(self) -> Any:
        return iter(sorted(self._runs.values(), key=lambda run: run.id, reverse=True))

    def __getitem__(self, id: str) -> Run:
        if id not in self._runs:
            raise InputError("there is no such run", remedy="go back to the list")
        return self._runs[id]

    # --- files in ---

    async def add(self, name: str, body: AsyncIterator[bytes]) -> Run:
        """Begin a run with a file."""
        id = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
        folder = self.folder / id
        folder.mkdir()
        record = {"name": safe_name(name), "created": time.time(), "files": {}, "choices": {}}
        more = {"fast": False, "command": [], "state": "draft", "error": "", "plan": {}}
        run = Run(folder, {**record, **more, "summary": None})
        try:
            run.record["file"] = await self._receive(run, name, body)
            run.keep()
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        self._runs[id] = run
        return run

    async def attach(self, run: Run, option: str, name: str, body: AsyncIterator[bytes]) -> None:
        """Add a file that is an option's value: labels, or another cohort."""
        if option not in FILES:
            raise InputError(f"{option!r} is no file of a run")
        _refuse_begun(run)
        run.keep(files={**run.record["files"], option: await self._receive(run, name, body)})

    async def _receive(self, run: Run, name: str, body: AsyncIterator[bytes]) -> str:
        """Write what is uploaded, up to the bound, under a name that is only a name."""
        taken = {path.name for path in run.folder.iterdir()}
        kept = safe_name(name)
        while kept in taken or kept.startswith(("run.json", "report", "log.", "progress.")):
            kept = "x" + kept
        path, size = run.folder / kept, 0
        try:
            with path.open("xb") as file:
                async for chunk in body:
                    size += len(chunk)
                    if size > self.largest:
                        raise InputError(
                            f"{kept} is larger than {self.largest:,} bytes",
                            remedy="run sparsegsvp select on it in a terminal",
                        )
                    file.write(chunk)
            if size == 0:
                raise InputError(f"{kept} is empty")
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return kept

    # --- commands ---

    async def ask(self, run: Run, words: Sequence[str]) -> dict[str, Any]:
        """Run a short command in the run's folder, and return the object that it prints."""
        async with self._few:
            process = await self._start(run, [*words, "--json"])
            run.asking.append(process)
            try:
                out, err = await process.communicate()
            finally:
                run.asking.remove(process)
        if process.returncode:
            raise InputError(_complaint(err, process.returncode))
        found: dict[str, Any] = json.loads(out)
        return found

    async def plan(self, run: Run, choices: Mapping[str, Any], fast: bool) -> dict[str, Any]:
        """Keep what was chosen for a run that has not begun, and say what it would do.

        A new choice ends the question before it, whose answer nobody waits for.
        """
        _refuse_begun(run)
        record = run.record
        words = command_words("select", record["file"], choices, record["files"], fast=fast)
        run.keep(choices=dict(choices), fast=fast, command=words)
        run.planning += 1
        mine = run.planning
        for process in run.asking:
            _end(process)
        try:
            found = await self.ask(run, [*words, "--dry-run"])
        except InputError:
            if mine != run.planning:
                raise Superseded from None
            raise
        if mine != run.planning:
            raise Superseded
        run.keep(plan=found["seconds"])
        return {**found, "command": words}

    async def begin(self, run: Run) -> None:
        """Start the command of a run; what was finished before an interruption is kept."""
        record, log = run.record, run.folder / "log.jsonl"
        if not record["command"]:
            raise InputError("nothing is chosen yet", remedy="choose the column of labels")
        if record["state"] in ("running", "finished"):
            raise InputError("the run has begun")
        resumed = record["state"] == "interrupted" and log.exists()
        # at once, so that a second tab cannot start it too
        run.keep(state="running", started=time.time(), error="")
        if not resumed:
            log.unlink(missing_ok=True)
        (run.folder / "progress.jsonl").unlink(missing_ok=True)
        words = [*record["command"], "--out", "report", "--log", log.name]
        words += ["--resume"] if resumed else []
        words += ["--progress-file", "progress.jsonl", "--quiet", "--force"]
        run.process = await self._start(run, words)
        task = asyncio.create_task(self._follow(run, run.process))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _follow(self, run: Run, process: asyncio.subprocess.Process) -> None:
        _, err = await process.communicate()
        run.process = None
        if run.record["state"] == "cancelled":
            return
        if process.returncode == 0:
            found = summarize(run.folder / "report" / "results.json")
            run.keep(state="finished", summary=found)
        else:
            run.keep(state="failed", error=_complaint(err, process.returncode or 0))

    async def copy(self, run: Run) -> Run:
        """Begin another run on the files of one, with the same choices."""
        again = await self.add(run.record["name"], _chunks(run.folder / run.record["file"]))
        for option, name in run.record["files"].items():
            await self.attach(again, option, name, _chunks(run.folder / name))
        again.keep(choices=run.record["choices"], fast=run.record["fast"])
        return again

    async def bench(self, run: Run, panel: Any) -> dict[str, Any]:
        """Score a panel that was chosen by hand under the protocol of a finished run."""
        record = _finished(run).record
        choices = {**record["choices"], "panel": panel, "permutations": 0}
        if record["fast"]:  # which stands for one repeat
            choices["repeats"] = 1
        for option in ("resamples", "plan", "prevalence", "max_permutations"):
            choices.pop(option, None)  # not options of evaluate
        files = {key: file for key, file in record["files"].items() if not key.startswith("test")}
        found = await self.ask(run, command_words("evaluate", record["file"], choices, files))
        given: dict[str, Any] = found["beside"][0]
        return given

    async def predict(self, run: Run, name: str, body: AsyncIterator[bytes]) -> dict[str, Any]:
        """Classify the samples of a new file, and keep the predictions beside the report."""
        _finished(run)
        file = await self._receive(run, name, body)
        out = f"predictions-{len(list(run.folder.glob('predictions-*.csv'))) + 1}.csv"
        found = await self.ask(run, ["predict", "report/model.skops", file, "--out", out])
        return {**found, "file": out}

    def cancel(self, run: Run) -> None:
        """End a run; what it had finished is dropped."""
        if run.process is not None:
            run.keep(state="cancelled")
            _end(run.process)

    async def close(self) -> None:
        """End all that runs; it can go on another time."""
        for run in self._runs.values():
            for process in run.asking:
                _end(process)
            if run.process is not None:
                _end(run.process)
                run.keep(state="interrupted")
                # what _follow would say of it is no failure of the run
                run.process = None
        for task in list(self._tasks):
            task.cancel()

    async def _start(self, run: Run, words: Sequence[str]) -> asyncio.subprocess.Process:
        bounded: dict[str, Any] = {}
        if os.name == "posix":
            bounded = {"start_new_session": True, "preexec_fn": lambda: _bound(self.memory)}
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "sparsegsvp.cli",
            *words,
            cwd=run.folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            **bounded,
        )


def safe_name(name: str) -> str:
    """Return a name for a file that is nothing but a name.

    Examples
    --------
    >>> from sparsegsvp.cli.web.runs import safe_name
    >>> safe_name("../../etc/passwd"), safe_name("-rf.csv"), safe_name("C:\\\\data\\\\my table.csv")
    ('passwd', 'rf.csv', 'my table.csv')
    """
    last = re.split(r"[\\/]", name)[-1]
    kept = "".join(c if c.isalnum() or c in "._- " else "_" for c in last).strip(" .-_")
    stem, dot, suffix = kept.rpartition(".")
    short = f"{stem[:80]}{dot}{suffix[:20]}" if dot else kept[:80]
    return short or "table"


def summarize(path: Path) -> dict[str, Any] | None:
    """Return what a list of runs shows of a finished one."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        evaluation = document["evaluation"]
        score = evaluation["scores"]["balanced_accuracy"]
        return {
            "panel": [row["feature"] for row in document["panel"]],
            "verdict": evaluation["verdict"],
            "score": score["value"],
            "low": score["low"],
            "high": score["high"],
            "sizes": evaluation["panel_size_summary"],
            "n_samples": document["data"]["n_samples"],
            "n_features": document["data"]["n_features"],
        }
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _refuse_begun(run: Run) -> None:
    if run.record["state"] != "draft":
        raise InputError("the run has begun", remedy="begin another with the same file")


def _finished(run: Run) -> Run:
    if run.record["state"] != "finished":
        raise InputError("the run is not finished", remedy="wait for it")
    return run


async def _chunks(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            yield chunk


def _lines(path: Path) -> list[dict[str, Any]]:
    """Return the whole lines of a file of JSON objects; the last may be in the making."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError:
        return []
    return [json.loads(line) for line in text.split("\n")[:-1]]


def _complaint(err: bytes, code: int) -> str:
    """Return the sentence with which a command ended, or what its end means."""
    lines = [line for line in err.decode("utf-8", "replace")[-_MOST:].splitlines() if line.strip()]
    if code < 0:
        return (
            f"The run was ended from outside ({signal.Signals(-code).name}), perhaps for want of "
            "memory. Nothing was written; it can be started again."
        )
    return (
        lines[-1].removeprefix("sparsegsvp: ") if lines else f"The command ended with code {code}."
    )


def _bound(memory: int | None) -> None:
    """In the new process: bound its memory, and let it end with the server."""
    if memory is not None:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_END_WITH_PARENT, signal.SIGTERM)


def _end(process: asyncio.subprocess.Process) -> None:
    """Ask a command and its workers to end, and end them a little later if they have not."""

    def send(number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            if os.name == "posix":
                os.killpg(process.pid, number)
            else:
                process.terminate()

    if process.returncode is None:
        send(signal.SIGTERM)
        loop = asyncio.get_running_loop()
        loop.call_later(_GRACE, send, getattr(signal, "SIGKILL", signal.SIGTERM))
