"""Whatever a disk or a signal does at whichever step: old or new, whole, and nothing else.

A dry run counts the steps of a command on the disk; then each of them fails in turn (some of
them in `make test`), in every way. After each: results and files are the earlier ones or the new
ones, whole; nothing of the user's has changed; nothing is left lying about; one line says what
went wrong, with which file, and what to do; and the same command, given again, makes what an
undisturbed one makes, to the byte.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
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

# Workers take long to start, and write nothing.
SCENES = [
    pytest.param(name, marks=pytest.mark.campaign) if "figures" in name else name
    for name, scene in victims.SCENES.items()
    if not scene.workers
]


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    made = victims.Victims()
    yield made
    made.close()


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", SCENES)
def test_every_step_may_go_wrong(name, server, tmp_path, campaign):
    stage = victims.Stage(victims.SCENES[name], server, tmp_path)
    faults = stage.faults()
    assert len(stage.steps) > 5
    # some write many files, all in the same way
    many = {"reproduce": 300, "select with figures": 30}
    most = campaign.count(4, many.get(name, len(faults)))
    rng = np.random.default_rng([campaign.seed, sorted(victims.SCENES).index(name)])
    faults = [faults[i] for i in sorted(rng.choice(len(faults), most, replace=False))]
    problems = {}
    for fault, at in faults:
        found = stage.trial(fault, at)
        if found:
            step = stage.steps[at - 1].replace(str(stage.place), "")
            problems[f"{fault} at {at} of {len(stage.steps)}, {step}"] = found
    campaign.record("faults injected", len(faults))
    assert not problems, "\n".join(f"{where}: {found}" for where, found in problems.items())
