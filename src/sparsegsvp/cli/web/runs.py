"""Runs: commands in processes of their own, each in a folder that keeps everything.

    FOLDER/20261117-150201-k3a9/
        run.json         what was chosen, and what became of it
        colon.csv        the file that was dropped, and others beside it
        report/          what the command wrote
        progress.jsonl   how far it has come

Nothing else is kept: a finished run is its folder, and can be moved, or repeated on the command
line.
"""

from __future__ import annotations

import asyncio
import csv
import ctypes
import json
import os
import re
import secrets
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...io.errors import InputError, quote
from ...io.files import write_atomic
from .forms import CARE, FILES, command_words, explain, for_predict, reading_options

if os.name == "posix":
    import resource

_ID = re.compile(r"\d{8}-\d{6}-[a-z0-9]{4}")
_OURS = ("run.json", "report", "progress.", "predictions-")
_END_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux
_GRACE = 5.0  # seconds in which a command that is ended may clean up
_READING, _PREDICTING = 60.0, 300.0  # seconds
_SHOWN = 8  # predictions that are shown
_READER = "from sparsegsvp.io.table import _answer; _answer()"

Process = asyncio.subprocess.Process


@dataclass
class Run:
    """A run and its folder, whose name is the run's.

    ``record`` is what ``run.json`` holds: ``name``, ``created``, ``file`` and further ``files`` by
    their options, ``choices``, ``care``, ``command``, ``state``, ``error`` and the ``summary`` of
    the results.
    """

    folder: Path
    record: dict[str, Any]
    process: Process | None = field(default=None, repr=False)
    reader: Process | None = field(default=None, repr=False)
    looks: int = 0
    seen: tuple[Any, dict[str, Any]] | None = field(default=None, repr=False)

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
        paths = [*(self.folder / "report").rglob("*"), *self.folder.glob("predictions-*.csv")]
        return {
            path.relative_to(self.folder).as_posix(): path
            for path in paths
            if path.is_file() and not path.is_symlink()
        }

    def progress(self) -> dict[str, Any]:
        """Return the last step that the command has told: stage, done and total."""
        with suppress(OSError, ValueError, IndexError):
            text = (self.folder / "progress.jsonl").read_text(encoding="utf-8")
            last: dict[str, Any] = json.loads(text.split("\n")[-2])  # a line may be in the making
            return last
        return {"stage": "starting", "done": 0, "total": 1}

    def begun(self) -> bool:
        """Whether its choices are fixed."""
        return bool(self.record["state"] != "draft")


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
        self._few = asyncio.Semaphore(2)  # readers and predictions at a time
        self._spare: asyncio.Task[Process] | None = None
        for path in sorted(folder.iterdir()):
            if _ID.fullmatch(path.name) and (path / "run.json").is_file():
                with suppress(ValueError, KeyError, OSError):
                    run = Run(path, json.loads((path / "run.json").read_text(encoding="utf-8")))
                    if run.record["state"] == "running":  # its server has gone
                        run.keep(state="interrupted")
                    self._runs[path.name] = run

    def __iter__(self) -> Iterator[Run]:
        return iter(sorted(self._runs.values(), key=lambda run: run.id, reverse=True))

    def __getitem__(self, id: str) -> Run:
        if id not in self._runs:
            raise InputError("there is no such run", remedy="go back to the list")
        return self._runs[id]

    # --- files in

    async def add(self, name: str, body: AsyncIterator[bytes]) -> Run:
        """Begin a run with a file."""
        run = self._new(name)
        try:
            run.keep(file=await self._receive(run, name, body))
        except BaseException:
            shutil.rmtree(run.folder, ignore_errors=True)
            raise
        self._runs[run.id] = run
        return run

    def copy(self, run: Run, choices: Mapping[str, Any]) -> Run:
        """Begin another run on the files of one, with the same choices but for those given."""
        record = run.record
        again = self._new(record["name"])
        try:
            for name in (record["file"], *record["files"].values()):
                shutil.copyfile(run.folder / name, again.folder / name)
            same = {name: record[name] for name in ("file", "files", "care")}
            again.keep(**same, choices={**record["choices"], **choices})
        except BaseException:
            shutil.rmtree(again.folder, ignore_errors=True)
            raise
        self._runs[again.id] = again
        return again

    def _new(self, name: str) -> Run:
        folder = self.folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
        folder.mkdir()
        return Run(folder, {
            "name": safe_name(name), "created": time.time(), "files": {}, "choices": {},
            "care": "usual", "command": [], "state": "draft", "error": "", "summary": None,
        })  # fmt: skip

    async def attach(self, run: Run, option: str, name: str, body: AsyncIterator[bytes]) -> None:
        """Add a file that is an option's value, labels or another cohort; no name takes it away."""
        if option not in FILES:
            raise InputError(f"{quote(option)} is no file of a run")
        _refuse_begun(run)
        files = {key: file for key, file in run.record["files"].items() if key != option}
        if name:
            files[option] = await self._receive(run, name, body)
        run.keep(files=files)

    async def _receive(self, run: Run, name: str, body: AsyncIterator[bytes]) -> str:
        """Write what is uploaded, up to the bound, under a name that is only a name."""
        kept = safe_name(name)
        while kept.startswith(_OURS) or (run.folder / kept).exists():
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

    # --- looking at a table

    async def look(self, run: Run, choices: Mapping[str, Any], care: str) -> dict[str, Any]:
        """Keep what is chosen for a run that has not begun, and say how the table is read with it.

        A new question ends the one before, whose answer nobody waits for.
        """
        self._choose(run, choices, care)
        run.looks += 1
        mine = run.looks
        if run.reader is not None:
            _end(run.reader, at_once=True)
        options = reading_options(choices)
        if "labels" in run.record["files"]:
            options["labels"] = str(run.folder / run.record["files"]["labels"])
        if run.seen is None or run.seen[0] != options:
            async with self._few:
                answer = None if mine != run.looks else await self._read(run, options)
            if mine != run.looks or answer is None:
                return {"superseded": True}
            run.seen = (options, answer)
        return run.seen[1]

    def _choose(self, run: Run, choices: Mapping[str, Any], care: str) -> None:
        """Keep choices and the words of the command that they make, once these are checked."""
        _refuse_begun(run)
        if care not in CARE:
            raise InputError(f"{quote(care)} is no way to estimate", remedy="reload the page")
        record = run.record
        words = command_words(
            "select", [record["file"]], {**CARE[care], **choices}, record["files"]
        )
        run.keep(choices=dict(choices), care=care, command=words)

    async def _read(self, run: Run, options: Mapping[str, Any]) -> dict[str, Any]:
        """Preview the table in a process with limits, which has been waiting for it."""
        spare, self._spare = self._spare, None
        process = await (spare or self._start(self.folder, ["-c", _READER], feed=True))
        self.warm()
        run.reader = process
        path = run.folder / run.record["file"]
        request = {"path": str(path), "options": options, "memory": self.memory}
        remedy = "check the file; it may be damaged"
        try:
            async with asyncio.timeout(_READING):
                out, _ = await process.communicate(json.dumps(request).encode())
        except TimeoutError:
            raise InputError(
                f"reading it takes more than {_READING:g} seconds", where=path.name, remedy=remedy
            ) from None
        finally:
            run.reader = None if run.reader is process else run.reader
            _end(process, at_once=True)
        answer: dict[str, Any] = json.loads(out.strip().rpartition(b"\n")[2] or b"null") or {
            "refused": [
                "reading it ended the process that read it, or took more memory than there is",
                path.name,
                remedy,
            ]
        }
        what, where, remedy = answer.pop("refused", None) or answer.pop("error", None) or ("",) * 3
        trouble = explain(InputError(what, where=where, remedy=remedy)) if what else {}
        seen_to = {"raw"} if options.get("log2") else set()
        notices = [n for n in answer.get("notices", ()) if n["code"] not in seen_to]
        return {"columns": [], "candidates": [], "table": None, **answer, **trouble} | {
            "notices": notices
        }

    def warm(self) -> None:
        """Start a process that has loaded the library when a file has to be read."""
        if self._spare is None:
            start = self._start(self.folder, ["-c", _READER], feed=True)
            self._spare = asyncio.ensure_future(start)

    # --- commands

    async def begin(self, run: Run, choices: Mapping[str, Any], care: str) -> None:
        """Start the command of a run."""
        if not choices.get("target"):
            raise InputError("no column is chosen yet that holds the classes", remedy="choose it")
        self._choose(run, choices, care)
        run.keep(state="running")  # at once, so that a second tab cannot start it too
        words = [*run.record["command"], "--out", "report", "--set", "rungs=yes"]
        run.process = await self._command(run, words, SPARSEGSVP_PROGRESS="progress.jsonl")
        task = asyncio.create_task(self._follow(run, run.process))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _follow(self, run: Run, process: Process) -> None:
        _, err = await process.communicate()
        run.process = None
        if run.record["state"] != "running":
            return
        if process.returncode == 0:
            run.keep(state="finished", summary=_summary(run.folder / "report"))
        else:
            run.keep(state="failed", error=_complaint(err, process.returncode or 0))

    async def predict(
        self, run: Run, name: str, body: AsyncIterator[bytes], size: str | None
    ) -> dict[str, Any]:
        """Classify the samples of a new file, read as the first was; keep the predictions."""
        sizes = [str(rung["size"]) for rung in _finished(run).record["summary"]["ladder"]]
        model = f"report/sizes/{size}/model.skops" if size in sizes else "report/model.skops"
        file = await self._receive(run, name, body)
        number = 1 + sum(1 for _ in run.folder.glob("predictions-*.csv"))
        out = f"predictions-{number}.csv"
        words = command_words("predict", [model, file], for_predict(run.record["choices"]))
        async with self._few:
            process = await self._command(run, [*words, "--out", out])
            try:
                async with asyncio.timeout(_PREDICTING):
                    _, err = await process.communicate()
            except TimeoutError:
                err = f"it takes more than {_PREDICTING:g} seconds".encode()
            finally:
                _end(process, at_once=True)
        if process.returncode != 0:
            raise InputError(_complaint(err, process.returncode or 0))
        with (run.folder / out).open(encoding="utf-8", newline="") as handle:
            header, *rows = csv.reader(handle)
        labels = Counter(row[header.index("prediction")] for row in rows)
        notes = [line for line in err.decode("utf-8", "replace").splitlines() if "note:" in line]
        return {"file": out, "counts": labels, "header": header, "rows": rows[:_SHOWN],
                "n_rows": len(rows), "notes": notes}  # fmt: skip

    def cancel(self, run: Run) -> None:
        """End a run."""
        if run.process is not None:
            run.keep(state="cancelled")
            _end(run.process)

    async def close(self) -> None:
        """End all processes."""
        if self._spare is not None:
            _end(await self._spare, at_once=True)
        for run in self._runs.values():
            if run.reader is not None:
                _end(run.reader, at_once=True)
            if run.process is not None:
                run.keep(state="interrupted")
                _end(run.process)
        for task in list(self._tasks):
            task.cancel()

    async def _command(self, run: Run, words: Sequence[str], **variables: str) -> Process:
        return await self._start(run.folder, ["-m", "sparsegsvp.cli", *words], **variables)

    async def _start(
        self, folder: Path, words: Sequence[str], *, feed: bool = False, **variables: str
    ) -> Process:
        bounded: dict[str, Any] = {}
        if os.name == "posix":
            memory = None if feed else self.memory  # the reader sets its own bound
            bounded = {"start_new_session": True, "preexec_fn": lambda: _bound(memory)}
        pipe, none = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
        return await asyncio.create_subprocess_exec(
            sys.executable,
            *words,
            cwd=folder,
            stdin=pipe if feed else none,
            stdout=pipe,
            stderr=none if feed else pipe,
            env={**os.environ, **variables},
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
    short = f"{stem[:40]}{dot}{suffix[:15]}" if dot else kept[:50]
    return short or "table"


def _summary(folder: Path) -> dict[str, Any]:
    """Return what the page shows of results: their headline, panel, score and ladder."""
    document = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    names = ("size", "score", "chosen_again", "chosen")
    return {
        "headline": document["verdict"]["headline"],
        "answer": document["verdict"]["answer"],
        "panel": [row["feature"] for row in document["panel"]],
        "score": document["scores"]["balanced_accuracy"],
        "n_features": document["data"]["n_features"],
        "ladder": [{name: rung[name] for name in names} for rung in document["ladder"]],
    }


def _refuse_begun(run: Run) -> None:
    if run.begun():
        raise InputError("the run has begun", remedy="begin another with the same file")


def _finished(run: Run) -> Run:
    if run.record["state"] != "finished":
        raise InputError("the run is not finished", remedy="wait for it")
    return run


def _complaint(err: bytes, code: int) -> str:
    """Return the sentence with which a command ended, or what its end means."""
    if code < 0:
        return (
            f"It was ended from outside ({signal.Signals(-code).name}), perhaps for want of "
            "memory. Nothing was written; it can be started again."
        )
    lines = [line for line in err.decode("utf-8", "replace").splitlines() if line.strip()]
    last = lines[-1] if lines else f"the command ended with code {code}"
    return last.removeprefix("sparsegsvp: ")


def _bound(memory: int | None) -> None:
    """In the new process: bound its memory, and let it end with the server."""
    if memory is not None:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_END_WITH_PARENT, signal.SIGTERM)


def _end(process: Process, *, at_once: bool = False) -> None:
    """End a command and its workers; unless at once, they may clean up for a little."""

    def send(number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            if os.name == "posix":
                os.killpg(process.pid, number)
            else:
                process.terminate()

    if process.returncode is None:
        kill = getattr(signal, "SIGKILL", signal.SIGTERM)
        send(kill if at_once else signal.SIGTERM)
        if not at_once:
            asyncio.get_running_loop().call_later(_GRACE, send, kill)
