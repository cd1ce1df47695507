"""What the terminal shows: sentences on stdout, progress and errors on stderr."""

from __future__ import annotations

import functools
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table as Grid
from rich.text import Text

from ..io._errors import one_line
from ._listener import Listener

if TYPE_CHECKING:
    from ..io import Table

_EVERY = 10.0  # seconds between plain lines of progress
_WORTH_SAYING = 2.0  # seconds that a stage took
_SHOWN = 30  # rows of a panel on the screen

Command = TypeVar("Command", bound=Callable[..., Any])


class Screen(Listener):
    """Shows a run as it goes.

    Parameters
    ----------
    quiet : bool
        Show nothing but errors.
    as_json : bool
        Show nothing but one JSON object at the end.
    """

    def __init__(self, *, quiet: bool = False, as_json: bool = False) -> None:
        super().__init__()
        self.silent = quiet or as_json
        self.as_json = as_json
        self.out = Console(highlight=False, soft_wrap=True)
        self.err = Console(stderr=True, highlight=False, soft_wrap=True)
        self.bar: Progress | None = None
        self.task: TaskID | None = None
        self.started = self.last = 0.0

    # --- sentences ---

    def say(self, text: str = "", style: str = "") -> None:
        """Print a sentence; names from a file are text, never markup."""
        if not self.silent:
            self.out.print(Text(one_line(text), style=style))

    def remark(self, text: str) -> None:
        """Print a sentence where it does not mix with the output."""
        if not self.silent:
            self.err.print(Text(one_line(text)))

    def show(self, grid: Grid) -> None:
        """Print a table."""
        if not self.silent:
            self.out.print(grid)

    def give(self, value: dict[str, Any]) -> None:
        """Print the one JSON object of ``--json``."""
        if self.as_json:
            print(json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False))

    # --- progress ---

    def stage_started(self, name: str, total: int | None) -> None:
        """Begin a bar on a terminal, or a line."""
        if self.silent:
            return
        self.started = self.last = time.perf_counter()
        if not self.err.is_terminal:
            self.err.print(Text(f"{name} ..."))
            return
        columns: list[Any] = [SpinnerColumn(), TextColumn("{task.description}", markup=False)]
        if total is None:
            columns.append(TimeElapsedColumn())
        else:
            columns += [BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()]
        self.bar = Progress(*columns, console=self.err, transient=True)
        self.task = self.bar.add_task(name, total=total)
        self.bar.start()

    def advanced(self, name: str, done: int, total: int) -> None:
        """Move the bar, or print a line every few seconds."""
        if self.silent:
            return
        if self.bar is not None and self.task is not None:
            self.bar.update(self.task, completed=done, total=total)
            return
        now = time.perf_counter()
        if done < total and now - self.last >= _EVERY:
            self.last = now
            left = (now - self.started) / max(done, 1) * (total - done)
            self.err.print(Text(f"{name}: {done} of {total}, about {left:.0f} s left"))

    def stage_ended(self, name: str) -> None:
        """Remove the bar, and say how long it took where there is none."""
        if self.silent:
            return
        if self.bar is not None:
            self.bar.stop()
            self.bar = self.task = None
        elif self.seconds.get(name, 0.0) >= _WORTH_SAYING:
            self.err.print(Text(f"{name}: {self.seconds[name]:.1f} s"))

    # --- results ---

    def table_read(self, table: Table) -> None:
        """Say what was read and what looks odd."""
        for sentence in table.record:
            self.say(sentence)
        for hint in table.hints:
            self.say(f"note: {hint}", style="yellow")

    def panel_found(self, results: dict[str, Any]) -> None:
        """Show the panel as soon as it is known."""
        panel, classes = results["panel"], results["data"]["classes"]
        model = results["model"]
        self.say()
        self.say(
            f"Panel of {len(panel)} features (tau {model['tau']:g}, pool {model['pool']:g}, "
            f"q {model['q']:g}), heaviest first; how well it does follows",
            style="bold",
        )
        grid = Grid()
        grid.add_column("feature", overflow="fold")
        grid.add_column("higher in")
        for label in classes:
            grid.add_column(Text(f"weight, {one_line(label)}"), justify="right")
        for row in panel[:_SHOWN]:
            cells = [Text(one_line(row["feature"])), Text(one_line(row["higher_in"] or ""))]
            grid.add_row(*cells, *(Text(f"{weight:+.3f}") for weight in row["weights"]))
        self.show(grid)
        if len(panel) > _SHOWN:
            self.say(f"and {len(panel) - _SHOWN} more")

    def estimated(self, results: dict[str, Any]) -> None:
        """Say the estimate with its interval, and what to be careful about."""
        evaluation = results["evaluation"]
        verdict = results.get("verdict")
        signal = evaluation["signal"]
        self.say()
        if verdict is not None:
            self.say(verdict["headline"], style="bold" if signal else "bold red")
            self.say(verdict["sentences"][-1])
        for name, title in _SCORES.items():
            score = evaluation["scores"].get(name)
            if score is not None and score["low"] is not None:
                self.say(f"{title}: {interval(score)}")
        test = evaluation["permutation"]
        if test is not None:
            drawn = test["n_permutations"]
            self.say(f"Permutation test: p = {test['p_value']:.3g} ({drawn} permutations)")
        for title, index in _indices(results):
            self.say(f"{title}: {index:.2f}")
        cohort = results.get("test")
        if cohort is not None:
            self.say(f"On {cohort['source']}, {cohort['n_samples']} samples:", style="bold")
            for name, title in _SCORES.items():
                if name in cohort["scores"]:
                    self.say(f"  {title}: {interval(cohort['scores'][name])}")
        if verdict is not None:
            for notice in results["warnings"]:
                style = "" if notice["severity"] == "note" else "yellow"
                self.say(f"{notice['title']}: {notice['text']}", style=style)
        else:
            for text in evaluation["warnings"]:
                self.say(f"warning: {text}", style="yellow")


_SCORES = {
    "balanced_accuracy": "Balanced accuracy",
    "auc": "Area under the ROC curve",
    "sensitivity": "Sensitivity",
    "specificity": "Specificity",
}


def _indices(results: dict[str, Any]) -> list[tuple[str, float]]:
    """Nogueira's index over the outer folds and, if there are any, over half samples."""
    found = []
    folds = results["evaluation"]["stability"]
    if folds is not None and folds["value"] is not None:
        found.append(("Stability of the panel over the folds (Nogueira)", folds["value"]))
    halves = results.get("stability")
    if halves is not None and halves["source"] != "outer folds" and halves["index"] is not None:
        found.append(("Stability of the panel over half samples", halves["index"]))
    return found


def interval(score: dict[str, Any]) -> str:
    """Write an estimate with its interval."""
    return f"{score['value']:.3f} ({score['low']:.3f} to {score['high']:.3f})"


# --- errors ----------------------------------------------------------------------------


def guarded(command: Command) -> Command:
    """Turn what goes wrong in a command into one line and an exit code.

    2 for input that cannot be used, 130 for Ctrl-C, 1 for anything else. With ``--debug``
    the traceback is shown too.
    """

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        debug = bool(kwargs.get("debug"))
        try:
            return command(*args, **kwargs)
        except (typer.Exit, typer.BadParameter):
            raise
        except KeyboardInterrupt:
            _complain(_interrupted(command.__name__, kwargs), debug)
            raise typer.Exit(130) from None
        except BrokenPipeError:
            # Whoever read our output has gone; say nothing when Python closes stdout.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(1) from None
        except (ValueError, FileNotFoundError, IsADirectoryError, PermissionError) as error:
            _complain(str(error), debug)
            raise typer.Exit(2) from None
        except ImportError as error:
            _complain(str(error), debug)
            raise typer.Exit(1) from None
        except MemoryError:
            _complain("there is not enough memory; try --jobs 1 or a smaller table", debug)
            raise typer.Exit(1) from None
        except Exception as error:
            _complain(f"{type(error).__name__}: {error}; --debug shows where", debug)
            raise typer.Exit(1) from None

    return run  # type: ignore[return-value]


def _interrupted(name: str, options: dict[str, Any]) -> str:
    if name == "reproduce":
        return "interrupted; run it again to continue where it stopped"
    if options.get("log") is not None:
        return "interrupted; --resume continues where it stopped"
    return "interrupted; nothing was written"


def _complain(message: str, debug: bool) -> None:
    if debug:
        traceback.print_exc()
    print(f"sparsegsvp: {one_line(message)}", file=sys.stderr, flush=True)
