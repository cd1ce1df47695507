"""Runs: commands in processes of their own, each in a folder that keeps everything.

A folder holds the files that were dropped, ``run.json`` with what was chosen and what became of
it, ``progress.jsonl``, and ``report/``, which the command writes. A finished run is its folder: it
can be moved, or repeated on the command line.
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
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .._validate import quote
from ..io.errors import InputError
from ..io.files import write_atomic
from .options import COMMANDS, FILES, command_words, explain, reading_of

#: How careful an estimate is: what each level sets where nothing else is chosen.
CARE: dict[str, dict[str, Any]] = {
    "fast": {"fast": True},
    "usual": {},
    "paper": {"repeats": 10, "permutations": 999},
}
_ID = re.compile(r"\d{8}-\d{6}-[a-z0-9]{4}")
_OURS = ("run.json", "report", "progress.", "predictions-")
_PREDICTING = 300.0  # seconds
_GRACE = 5.0  # seconds in which a command that is ended may clean up
_SHOWN = 8  # predictions
_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
_END_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux

Process = asyncio.subprocess.Process


@dataclass
class Run:
    """A run: its folder, what ``run.json`` holds, and how the table was read last."""

    folder: Path
    record: dict[str, Any]
    process: Process | None = field(default=None, repr=False)
    looks: int = 0
    seen: tuple[Any, dict[str, Any]] | None = field(default=None, repr=False)

    def keep(self, **changes: Any) -> None:
        """Change the record, here and on disk."""
        self.record.update(changes)
        write_atomic(self.folder / "run.json", json.dumps(self.record, indent=1) + "\n")

    def describe(self) -> dict[str, Any]:
        """Return what the page shows of it."""
        state = self.record["state"]
        more = {"progress": self.progress()} if state == "running" else {}
        outputs = sorted(self.outputs()) if state == "finished" else []
        return {"id": self.folder.name, **self.record, **more, "outputs": outputs}

    def outputs(self) -> dict[str, Path]:
        """Return the files that were written, by their names below the run's folder."""
        paths = [*(self.folder / "report").rglob("*"), *self.folder.glob("predictions-*.csv")]
        files = [path for path in paths if path.is_file() and not path.is_symlink()]
        return {path.relative_to(self.folder).as_posix(): path for path in files}

    def progress(self) -> dict[str, Any]:
        """Return the last step that the command has told: stage, done and total."""
        with suppress(OSError, ValueError, IndexError):
            text = (self.folder / "progress.jsonl").read_text(encoding="utf-8")
            last: dict[str, Any] = json.loads(text.split("\n")[-2])  # a line may be in the making
            return last
        return {"stage": "starting", "done": 0, "total": 1}

    def expect(self, state: str, otherwise: str) -> None:
        """Refuse what can be done in one state only."""
        if self.record["state"] != state:
            raise InputError(otherwise, remedy="reload the page")


class Runs:
    """All runs of a folder, with a bound on the bytes of an upload."""

    def __init__(self, folder: Path, *, largest: int = 4 << 30) -> None:
        self.folder, self.largest = folder, largest
        folder.mkdir(parents=True, exist_ok=True)
        self._runs: dict[str, Run] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._few = asyncio.Semaphore(2)  # readers at a time
        for path in sorted(folder.iterdir()):
            if _ID.fullmatch(path.name) and (path / "run.json").is_file():
                with suppress(ValueError, KeyError, OSError):
                    run = Run(path, json.loads((path / "run.json").read_text(encoding="utf-8")))
                    if run.record["state"] == "running":  # its server has gone
                        run.keep(state="interrupted")
                    self._runs[path.name] = run

    def __iter__(self) -> Iterator[Run]:
        return iter(sorted(self._runs.values(), key=lambda run: run.folder.name, reverse=True))

    def __getitem__(self, id: str) -> Run:
        if id not in self._runs:
            raise InputError("there is no such run", remedy="go back to the list")
        return self._runs[id]

    @contextmanager
    def _new(self, name: str) -> Iterator[Run]:
        """Make the folder of a run, which stays if the block succeeds."""
        folder = self.folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
        folder.mkdir()
        run = Run(folder, {
            "name": safe_name(name), "created": time.time(), "files": {}, "choices": {},
            "care": "usual", "command": [], "state": "draft", "error": "", "summary": None,
        })  # fmt: skip
        try:
            yield run
            self._runs[folder.name] = run
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    async def add(self, name: str, body: AsyncIterator[bytes]) -> Run:
        """Begin a run with a file."""
        with self._new(name) as run:
            run.keep(file=await self._receive(run, name, body))
        return run

    def copy(self, run: Run, choices: Mapping[str, Any], care: str) -> Run:
        """Begin another run on the files of one, with the same choices but for those given."""
        record = run.record
        with self._new(record["name"]) as again:
            for name in (record["file"], *record["files"].values()):
                shutil.copyfile(run.folder / name, again.folder / name)
            again.keep(file=record["file"], files=record["files"], care=care or record["care"])
            again.keep(choices={**record["choices"], **choices})
        return again

    async def attach(self, run: Run, name: str, body: AsyncIterator[bytes], option: str) -> Run:
        """Add a file that is an option's value, labels or another cohort; no name takes it away."""
        if option not in FILES:
            raise InputError(f"{quote(option)} is no file of a run")
        run.expect("draft", "the run has begun")
        files = {key: file for key, file in run.record["files"].items() if key != option}
        if name:
            files[option] = await self._receive(run, name, body)
        run.keep(files=files)
        return run

    async def _receive(self, run: Run, name: str, body: AsyncIterator[bytes]) -> str:
        """Write what is uploaded, up to the bound, under a name that is only a name."""
        kept, size = safe_name(name), 0
        while kept.startswith(_OURS) or (run.folder / kept).exists():
            kept = "x" + kept
        path = run.folder / kept
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

    async def look(self, run: Run, choices: Mapping[str, Any], care: str) -> dict[str, Any]:
        """Keep what is chosen for a run, and say how the table is read with it.

        Nobody waits for the answer to a question once there is another one.
        """
        self._choose(run, choices, care)
        run.looks += 1
        mine, options = run.looks, reading_of(choices) | {"log2": choices.get("log2", False)}
        if "labels" in run.record["files"]:
            options["labels"] = str(run.folder / run.record["files"]["labels"])
        if run.seen is None or run.seen[0] != options:
            async with self._few:
                late = mine != run.looks
                answer = {} if late else await asyncio.to_thread(self._read, run, options)
            if mine != run.looks:
                return {"superseded": True}
            run.seen = (options, answer)
        return run.seen[1]

    def _read(self, run: Run, options: Mapping[str, Any]) -> dict[str, Any]:
        """Preview the table in a process with limits of memory and time."""
        from .preview import preview_table

        answer: dict[str, Any] = {"columns": [], "candidates": [], "table": None, "notices": []}
        try:
            answer |= preview_table(run.folder / run.record["file"], **options)
            if "error" in answer:
                what, where, remedy = answer["error"]
                raise InputError(what, where=where, remedy=remedy)
        except InputError as error:
            answer |= explain(error)
        return answer

    def _choose(self, run: Run, choices: Mapping[str, Any], care: str) -> None:
        """Keep choices and the words of the command that they make, once these are checked."""
        run.expect("draft", "the run has begun")
        if care not in CARE:
            raise InputError(f"{quote(care)} is no way to estimate", remedy="reload the page")
        file, files = run.record["file"], run.record["files"]
        words = command_words("select", [file], {**CARE[care], **choices}, files)
        run.keep(choices=dict(choices), care=care, command=words)

    async def begin(self, run: Run, choices: Mapping[str, Any], care: str) -> Run:
        """Start the command of a run."""
        if not choices.get("target"):
            raise InputError("no column is chosen yet that holds the classes", remedy="choose it")
        self._choose(run, choices, care)
        run.keep(state="running")  # at once, so that a second tab cannot start it too
        words = [*run.record["command"], "--out", "report", "--set", "rungs=yes"]
        run.process = await self._start(run, words)
        task = asyncio.create_task(self._follow(run, run.process))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return run

    async def _follow(self, run: Run, process: Process) -> None:
        _, err = await process.communicate()
        run.process = None
        if run.record["state"] == "running" and process.returncode == 0:
            run.keep(state="finished", summary=_summary(run.folder / "report"))
        elif run.record["state"] == "running":
            run.keep(state="failed", error=_complaint(err, process))

    async def predict(
        self, run: Run, name: str, body: AsyncIterator[bytes], size: str
    ) -> dict[str, Any]:
        """Classify the samples of a new file, read as the first was; keep the predictions."""
        run.expect("finished", "the run is not finished")
        sizes = [str(rung["size"]) for rung in run.record["summary"]["ladder"]]
        model = f"report/sizes/{size}/model.skops" if size in sizes else "report/model.skops"
        file = await self._receive(run, name, body)
        out = f"predictions-{1 + len(list(run.folder.glob('predictions-*.csv')))}.csv"
        kept = set(COMMANDS["predict"]) - {"target", "positive"}  # all but what is of its labels
        choices = {name: v for name, v in run.record["choices"].items() if name in kept}
        words = command_words("predict", [model, file], choices)
        process = await self._start(run, [*words, "--out", out])
        try:
            async with asyncio.timeout(_PREDICTING):
                _, err = await process.communicate()
        except TimeoutError:
            err = f"sparsegsvp: it takes more than {_PREDICTING:g} seconds".encode()
        finally:
            _end(process, _KILL)
        if process.returncode != 0:
            raise InputError(_complaint(err, process))
        with (run.folder / out).open(encoding="utf-8", newline="") as handle:
            header, *rows = csv.reader(handle)
        counts = Counter(row[header.index("prediction")] for row in rows)
        notes = [line for line in err.decode("utf-8", "replace").splitlines() if "note:" in line]
        return {"file": out, "counts": counts, "header": header, "rows": rows[:_SHOWN],
                "n_rows": len(rows), "notes": notes}  # fmt: skip

    def cancel(self, run: Run) -> Run:
        """End a run."""
        if run.process is not None:
            run.keep(state="cancelled")
            _end(run.process)
            asyncio.get_running_loop().call_later(_GRACE, _end, run.process, _KILL)
        return run

    async def close(self) -> None:
        """End all processes."""
        for run in self._runs.values():
            if run.process is not None:
                run.keep(state="interrupted")
                _end(run.process)
        for task in list(self._tasks):
            task.cancel()

    async def _start(self, run: Run, words: Sequence[str]) -> Process:
        pipe, none = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
        return await asyncio.create_subprocess_exec(
            sys.executable, "-m", "sparsegsvp.cli", *words, cwd=run.folder,
            stdin=none, stdout=none, stderr=pipe, start_new_session=True,
            env={**os.environ, "SPARSEGSVP_PROGRESS": "progress.jsonl"},
            preexec_fn=_end_with_server if sys.platform == "linux" else None,
        )  # fmt: skip


def safe_name(name: str) -> str:
    """Return a name for a file that is nothing but a name."""
    last = re.split(r"[\\/]", name)[-1]
    kept = "".join(c if c.isalnum() or c in "._- " else "_" for c in last).strip(" .-_")
    stem, dot, suffix = kept.rpartition(".")
    return (f"{stem[:40]}{dot}{suffix[:15]}" if dot else kept[:50]) or "table"


def _summary(folder: Path) -> dict[str, Any]:
    """Return what the page shows of results: headline, panel, score and ladder."""
    document = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    names = ("size", "score", "chosen")
    return {
        **{name: document["verdict"][name] for name in ("headline", "answer")},
        "panel": [row["feature"] for row in document["panel"]],
        "score": document["scores"]["balanced_accuracy"],
        "n_features": document["data"]["n_features"],
        "ladder": [{name: rung[name] for name in names} for rung in document["ladder"]],
    }


def _complaint(err: bytes, process: Process) -> str:
    """Return the sentence with which a command ended, or what its end means."""
    if process.returncode is not None and process.returncode < 0:
        name = signal.Signals(-process.returncode).name
        return f"its process was ended ({name}), perhaps for want of memory; nothing was written"
    _, ours, last = err.decode("utf-8", "replace").strip().rpartition("sparsegsvp: ")
    return last if ours else f"this is a fault of sparsegsvp, or of the memory ({last[-200:]})"


def _end_with_server() -> None:
    """In a new process: let it end when the server does."""
    ctypes.CDLL(None).prctl(_END_WITH_PARENT, signal.SIGTERM)


def _end(process: Process, number: int = signal.SIGTERM) -> None:
    """Send a signal to a command and its workers."""
    with suppress(ProcessLookupError, PermissionError):
        if process.returncode is None:
            os.killpg(process.pid, number) if os.name == "posix" else process.kill()
