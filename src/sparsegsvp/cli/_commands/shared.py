"""What the commands share: settings from options, reading, and what is said at the end."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._console import Screen

if TYPE_CHECKING:
    from ...io import Table
    from .._settings import Settings


def spell(command: str, path: Path | None, **options: Any) -> str:
    """Write the command that repeats a run: only what differs from the defaults."""
    words = ["sparsegsvp", command] + ([] if path is None else [str(path)])
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is None or value is False or value == []:
            continue
        if value is True:
            words.append(flag)
        else:
            for item in value if isinstance(value, list | tuple) else [value]:
                words += [flag, f"{item:g}" if isinstance(item, float) else str(item)]
    return shlex.join(words)


def differing(settings: Settings) -> dict[str, Any]:
    """The settings that are not the defaults, as options."""
    from .._settings import Settings

    default = Settings()
    names = [n for n in vars(settings) if n not in ("jobs", "full_permutation")]
    return {n: getattr(settings, n) for n in names if getattr(settings, n) != getattr(default, n)}


def make_settings(**given: Any) -> Settings:
    """Build the settings from the options that were given; the others keep their defaults."""
    from .._settings import Settings

    values = {name: value for name, value in given.items() if value is not None and value != []}
    for name in ("q", "tau", "pool"):
        if name in values:
            values[name] = tuple(values[name])
    return Settings(**values)


def read(path: Path, screen: Screen, **options: Any) -> Table:
    """Read the table, and show that it is being read."""
    from ...io import read_table

    options["drop"] = tuple(options.get("drop") or ())
    with screen.stage(f"reading {path.name}"):
        return read_table(path, **options)


def summarise(results: dict[str, Any], **more: Any) -> dict[str, Any]:
    """What ``--json`` prints: the numbers that matter, and where the rest is."""
    evaluation = results["evaluation"]
    test = evaluation["permutation"]
    data = results["data"]
    summary = {
        **{key: data[key] for key in ("source", "digest", "n_samples", "n_features", "classes")},
        "scores": evaluation["scores"],
        "p_value": None if test is None else test["p_value"],
        "signal": evaluation["signal"],
        **more,
    }
    if "panel" in results:
        summary["panel"] = [row["feature"] for row in results["panel"]]
        summary["verdict"] = results["verdict"]["headline"]
        summary["warnings"] = [f"{w['title']}: {w['text']}" for w in results["warnings"]]
        summary["skipped"] = results["run"]["skipped"]
        summary["test"] = None if results["test"] is None else results["test"]["scores"]
    return summary


def finish(screen: Screen, results: dict[str, Any], out: Path, command: str) -> None:
    """Say where the report is and how to repeat the run, or give the summary."""
    page = (out / "report.html").resolve()
    screen.say()
    screen.say(f"Report: {page}", style="bold")
    screen.say(f"Repeat: {command}")
    screen.give(summarise(results, out=str(out.resolve()), report=str(page), command=command))


def check_resume(log: Path | None, resume: bool) -> None:
    """Refuse to continue a run without the log that it left."""
    from ...io import InputError

    if resume and log is None:
        raise InputError("--resume needs --log", remedy="name the file of the run to continue")
