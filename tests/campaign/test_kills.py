"""Processes that are killed at any moment: the next run makes what an undisturbed one makes.

20 moments, signals and commands are drawn from the seed in `make test`, 200 in the campaign.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

if sys.platform != "linux":
    pytest.skip("reads /proc", allow_module_level=True)
for module in ("typer", "pandas", "skops", "jinja2"):
    pytest.importorskip(module)

_spec = importlib.util.spec_from_file_location("victims", Path(__file__).parent / "victims.py")
victims = sys.modules["victims"] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(victims)

SIGNALS = ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP")
# How many kills of each in `make test`, and in the campaign.
ALONE = {"select with a log": (7, 60), "select again": (7, 60), "evaluate": (3, 30),
         "reproduce": (3, 30)}  # fmt: skip
WITH_WORKERS = {"evaluate in workers": 10, "compare with a time limit": 10}


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    made = victims.Victims()
    yield made
    made.close()


def killed(stage: Any, rng: np.random.Generator, seconds: float) -> tuple[str, list[str]]:
    """Kill a command once or twice at a random moment; return how, and what should not be."""
    first, second = (SIGNALS[i] for i in rng.integers(len(SIGNALS), size=2))
    moment, later = rng.uniform(0, seconds), rng.uniform(0, 0.02)
    to_group, twice = rng.random() < 0.3, rng.random() < 0.25
    stage.lay_out()
    pid = stage.server.start(stage.scene.words, stage.place)
    kill = os.killpg if to_group else os.kill
    with suppress(ProcessLookupError):
        time.sleep(moment)
        kill(pid, signal.Signals[first])
        if twice:
            time.sleep(later)
            kill(pid, signal.Signals[second])
    ended = stage.server.wait()
    sent = {first, second} if twice else {first}
    dead = any(ended.code == -signal.Signals[name] for name in sent)
    how = f"{' and '.join(sorted(sent))} after {moment:.2f} of {seconds:.2f} s"
    codes = {0} | {128 + signal.Signals[name] for name in sent}
    problems = [] if dead or ended.code in codes else [f"code {ended.code}: {ended.err[-300:]}"]
    if "Traceback" in ended.err:
        problems.append(f"said: {ended.err[-500:]}")
    if not victims.all_gone(pid, 60):
        problems.append(f"processes live on: {victims.alive(pid)}")
    found = victims.files(stage.place)
    fault = "kill" if dead else "twice" if twice else first
    return how, problems + stage.of_files(found, fault, ended.code) + stage.of_the_next(found)


def kill_often(name: str, number: int, server: Any, folder: Path, campaign: Any) -> None:
    stage = victims.Stage(victims.SCENES[name], server, folder)
    rng = np.random.default_rng([campaign.seed, 7, sorted(victims.SCENES).index(name)])
    # as long as an undisturbed run takes, and a little more
    start = time.monotonic()
    stage.lay_out()
    server.run(stage.scene.words, stage.place)
    seconds = 1.05 * (time.monotonic() - start)
    found = [killed(stage, rng, seconds) for _ in range(number)]
    campaign.record("kills survived", sum(not problems for _, problems in found))
    bad = [f"{how}: {problems}" for how, problems in found if problems]
    assert not bad, "\n".join(bad)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", ALONE)
def test_a_kill_at_any_moment(name, server, tmp_path, campaign):
    kill_often(name, campaign.count(*ALONE[name]), server, tmp_path, campaign)


@pytest.mark.campaign
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", WITH_WORKERS)
def test_a_kill_of_a_run_with_workers(name, server, tmp_path, campaign):
    """Workers end with their parent, whatever ends it."""
    kill_often(name, WITH_WORKERS[name], server, tmp_path, campaign)
