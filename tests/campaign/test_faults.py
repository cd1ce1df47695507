"""Whatever a disk or a signal does at whichever step: old or new, whole, and nothing else.

A dry run counts the steps of a command on the disk; then each of them fails in turn (some of
them in `make test`), in every way. After each: results and files are the earlier ones or the new
ones, whole; nothing of the user's has changed; nothing is left lying about; one line says what
went wrong, with which file, and what to do; and the same command, given again, makes what an
undisturbed one makes, to the byte.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

if sys.platform != "linux":
    pytest.skip("reads /proc", allow_module_level=True)
for module in ("typer", "pandas", "skops", "jinja2"):
    pytest.importorskip(module)

_spec = importlib.util.spec_from_file_location("victims", Path(__file__).parent / "victims.py")
victims = importlib.util.module_from_spec(_spec)
sys.modules["victims"] = victims
_spec.loader.exec_module(victims)

ASK = ["table.csv", "--target", "class", "--id", "sample", "--positive", "ill"]
FEW = ["--tau", "1", "--deltas", "3", "--folds", "2", "--repeats", "1", "--jobs", "1"]
SELECT = ["select", *ASK, *FEW, "--fast", "--quiet"]
LOGGED = ["--permutations", "0", "--resamples", "2", "--log", "run.jsonl"]
EVALUATE = ["evaluate", *ASK, *FEW, "--permutations", "2", "--quiet"]
COMPARE = ["compare", *ASK[:3], *FEW[4:], "--method", "GSVPSVM", "--sizes", "2", "--quiet"]


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


OTHER = ["--random-state", "7"]
SCENES = {
    "select": Scene([*SELECT, "--out", "new/out"], ("new/",)),
    "select again": Scene(
        [*SELECT, "--out", "out", "--force"],
        ("out/",),
        ([*SELECT, *OTHER, "--out", "out"],),
        (),
        (),
    ),
    "select with a log": Scene(
        ["select", *ASK, *FEW, *LOGGED, "--progress-file", "steps.jsonl", "--out", "out"],
        ("out/",),
        (),
        ("run.jsonl", "run.timings.jsonl", "steps.jsonl"),
    ),
    "evaluate": Scene(
        [*EVALUATE, "--log", "run.jsonl", "--out", "out", "--force"],
        ("out/",),
        ([*EVALUATE, *OTHER, "--out", "out"],),
        ("run.jsonl", "run.timings.jsonl"),
        (),
    ),
    "compare": Scene(
        [*COMPARE, "--log", "run.jsonl", "--out", "out"],
        ("out/",),
        (),
        ("run.jsonl", "run.timings.jsonl"),
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


@pytest.fixture(scope="module")
def server() -> Iterator[victims.Victims]:
    made = victims.Victims()
    yield made
    made.close()


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

    def __init__(self, scene: Scene, server: victims.Victims, folder: Path) -> None:
        self.scene, self.server, self.folder = scene, server, folder
        self.template, self.place = folder / "template", folder / "place"
        self.template.mkdir()
        write_table(self.template / "table.csv")
        (self.template / "thesis.docx").write_bytes(b"mine")
        for words in scene.before:
            server.remember(words, self.template)
        self.before = victims.files(self.template)
        self._lay_out()
        server.remember(scene.words, self.place)
        self._lay_out()
        ended = server.run(scene.words, self.place)
        assert ended.code == 0, ended.err
        self.after, self.steps = victims.files(self.place), ended.steps
        self.recovered: dict[str, list[str]] = {}

    def _lay_out(self) -> None:
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
        self._lay_out()
        pid = self.server.start(self.scene.words, self.place, fault, at)
        ended = self.server.wait()
        found = victims.files(self.place)
        problems = self._of_files(found, fault, ended.code) + self._of_words(ended, fault)
        if not victims.all_gone(pid):
            problems.append("processes live on")
        return problems + self._of_the_next(found)

    def _of_files(self, found: dict[str, bytes], fault: str, code: int) -> list[str]:
        # nothing can be removed by a process that is dead, or from a disk that is read-only
        hidden = {name for name in found if "/.sparsegsvp-" in f"/{name}"}
        excused = fault in ("kill", "readonly", "io", "twice")
        problems = [f"left lying: {name}" for name in hidden if not excused]
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

    def _of_words(self, ended: victims.Ended, fault: str) -> list[str]:
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

    def _of_the_next(self, found: dict[str, bytes]) -> list[str]:
        """Give the command again; the same state is not tried twice."""
        state = hashlib.sha256()
        for name, content in found.items():
            state.update(f"{re.sub('-[0-9a-f]{16}', '', name)} {len(content)} ".encode() + content)
        known = state.hexdigest()
        if known not in self.recovered:
            words = [*self.scene.words, *self.scene.again]
            words += ["--resume"] if "run.jsonl" in found else []
            ended = self.server.run(words, self.place)
            now, problems = victims.files(self.place), []
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


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", SCENES)
def test_every_step_may_go_wrong(name, server, tmp_path, campaign):
    stage = Stage(SCENES[name], server, tmp_path)
    faults = stage.faults()
    assert len(stage.steps) > 5
    if not campaign.long:
        rng = np.random.default_rng([campaign.seed, sorted(SCENES).index(name)])
        faults = [faults[i] for i in sorted(rng.choice(len(faults), 5, replace=False))]
    problems = {}
    for fault, at in faults:
        found = stage.trial(fault, at)
        if found:
            step = stage.steps[at - 1].replace(str(stage.place), "")
            problems[f"{fault} at {at} of {len(stage.steps)}, {step}"] = found
    campaign.record("faults injected", len(faults))
    assert not problems, "\n".join(f"{where}: {found}" for where, found in problems.items())
