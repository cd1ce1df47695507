"""What the terminal shows: sentences on stdout, progress on stderr."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

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

from ..io.errors import naming, one_line
from .options import Showing

if TYPE_CHECKING:
    from ..io import Preview, Table
    from ..workflow import RunEstimate

_EVERY = 10.0  # seconds between plain lines of progress
_WORTH_SAYING = 2.0  # seconds that a stage took
_SHOWN = 30  # rows of a panel on the screen
_NAMED = 8  # columns of a role on the screen
_LEFT_OUT = ("batch", "covariate", "ignored")


def _speaks_unicode(console: Console) -> bool:
    return console.encoding.lower().startswith("utf")


class Screen:
    """Shows a run as it goes, and ends its progress bar when it is left.

    Names, labels and identifiers come from files. Here, and nowhere else, they are freed of what
    a terminal would obey: escape sequences, line breaks, marks that turn the direction.

    ``quiet`` shows nothing but errors, ``as_json`` nothing but one JSON object at the end. To
    ``progress_file`` a JSON object with stage, done and total is added for each step of progress.
    """

    def __init__(
        self, *, quiet: bool = False, as_json: bool = False, progress_file: Path | None = None
    ) -> None:
        self.silent = quiet or as_json
        self.as_json = as_json
        self.progress_file = progress_file
        self.out = Console(highlight=False, soft_wrap=True)
        self.err = Console(stderr=True, highlight=False, soft_wrap=True)
        self.bar: Progress | None = None
        self.task: TaskID | None = None
        self.current: str | None = None
        self.started = self.last = 0.0
        self.already = 0  # done when the stage began, by an earlier run or stage

    @classmethod
    def of(cls, showing: Showing) -> Screen:
        """Make the screen that the options ask for."""
        return cls(quiet=showing.quiet, as_json=showing.json, progress_file=showing.progress_file)

    def __enter__(self) -> Screen:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    # --- sentences ---

    def say(self, text: str = "", style: str = "") -> None:
        """Print a sentence; names from a file are text, never markup."""
        if not self.silent:
            self.out.print(Text(one_line(text), style=style))

    def remark(self, text: str) -> None:
        """Print a sentence where it does not mix with the output."""
        if not self.silent:
            self.err.print(Text(one_line(text)))

    def pass_on(self, text: str) -> None:
        """Print lines of a file as they are, or without control characters on a terminal."""
        if self.silent:
            return
        if self.out.is_terminal:
            text = "\n".join(one_line(line) for line in text.split("\n"))
        sys.stdout.write(text)

    def show(self, grid: Grid) -> None:
        """Print a table."""
        if not self.silent:
            self.out.print(grid)

    def give(self, value: dict[str, Any]) -> None:
        """Print the one JSON object of ``--json``."""
        if self.as_json:
            plain = not _speaks_unicode(self.out)
            text = json.dumps(value, indent=1, ensure_ascii=plain, allow_nan=False)
            print(text.encode("utf-8", "replace").decode("utf-8"))

    # --- progress ---

    def progress(self, stage: str, done: int, total: int) -> None:
        """Show how far a stage has come; a new stage ends the one before."""
        if self.progress_file is not None:
            step = json.dumps({"stage": stage, "done": done, "total": total})
            with naming(self.progress_file), self.progress_file.open("a", encoding="utf-8") as file:
                file.write(step + "\n")
        if self.silent:
            return
        stage = one_line(stage)
        if stage != self.current:
            self._end()
            self._begin(stage, done, total)
        if self.bar is not None and self.task is not None:
            self.bar.update(self.task, completed=done, total=total)
        elif done < total and time.perf_counter() - self.last >= _EVERY:
            self.last = time.perf_counter()
            left = (self.last - self.started) / max(done - self.already, 1) * (total - done)
            self.err.print(Text(f"{stage}: {done} of {total}, about {left:.0f} s left"))
        if done >= total:
            self._end()

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Enclose a stage that is one piece."""
        self.progress(name, 0, 1)
        yield
        self.progress(name, 1, 1)

    def _begin(self, stage: str, done: int, total: int) -> None:
        self.current, self.already = stage, done
        self.started = self.last = time.perf_counter()
        if not self.err.is_terminal:
            self.err.print(Text(f"{stage} ..."))
            return
        spinner = "dots" if _speaks_unicode(self.err) else "line"
        columns: list[Any] = [
            SpinnerColumn(spinner),
            TextColumn("{task.description}", markup=False),
        ]
        if total == 1:
            columns.append(TimeElapsedColumn())
        else:
            columns += [BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()]
        self.bar = Progress(*columns, console=self.err, transient=True)
        self.task = self.bar.add_task(stage, total=total, completed=done)
        self.bar.start()

    def _end(self) -> None:
        """Remove the bar, or say how long the stage took where there is none."""
        if self.bar is not None:
            self.bar.stop()
            self.bar = self.task = None
        elif self.current is not None and not self.silent:
            seconds = time.perf_counter() - self.started
            if seconds >= _WORTH_SAYING:
                self.err.print(Text(f"{self.current}: {seconds:.1f} s"))
        self.current = None

    # --- results ---

    def show_preview(self, found: Preview) -> None:
        """Show the first rows of a file, and what may hold the classes."""
        self.say(
            f"{found.source} ({found.kind}): {len(found.names):,} columns, {found.n_rows:,} rows"
        )
        grid = Grid(box=None, padding=(0, 2, 0, 0))
        for name in found.shown:
            grid.add_column(Text(one_line(name)), overflow="ellipsis", header_style="bold")
        for row in found.rows:
            grid.add_row(*(Text(one_line(cell)) for cell in row))
        self.show(grid)
        if not found.candidates:
            self.say("No column looks like classes; they may be in a second file (--labels).")
        for one in found.candidates[:_NAMED]:
            counts = ", ".join(f"{label} {n}" for label, n in one.counts.items())
            self.say(f"may hold the classes: --target {shlex.quote(one.name)} ({counts})")

    def show_table(self, table: Table) -> None:
        """Say what was read and what looks odd."""
        for sentence in table.record:
            self.say(sentence)
        if table.positive is None and table.positive_class is not None:
            self.say("--positive names another class of interest")
        for notice in table.notices:
            self.say(f"note: {notice}", style="yellow")

    def show_roles(self, table: Table) -> None:
        """Show what each column is for: a line for each role and reason, features last."""
        grid = Grid(box=None, padding=(0, 2, 0, 0))
        for title in ("role", "columns", "why"):
            grid.add_column(title, overflow="fold", header_style="bold")
        lines = table.role_lines()
        for line in lines:
            names = [one_line(name) or "(names of rows)" for name in line["columns"]]
            shown = ", ".join(names[:_NAMED])
            if len(names) > _NAMED:
                shown += f" and {len(names) - _NAMED} more"
            out = line["role"] in _LEFT_OUT
            why = f"{line['reason']}: left out" if out else line["reason"]
            grid.add_row(
                line["role"],
                Text(shown or f"{line['count']:,} columns"),
                Text(why),
                style="yellow" if out else "",
            )
        self.say()
        self.show(grid)
        if any(line["role"] in _LEFT_OUT and line["reason"] != "asked for" for line in lines):
            self.say(
                "--keep COLUMNS uses as features what is left out, --drop COLUMNS leaves out more"
            )
        if any(line["role"] == "batch" and line["reason"] != "asked for" for line in lines):
            self.say("--batch COLUMN checks whether a panel shows the batch instead of the class")
        if any(notice.code == "patients" for notice in table.notices):
            self.say("--group COLUMN keeps the samples of each patient together")
        self.say()

    def show_plan(self, plan: RunEstimate) -> None:
        """Say how long a run would take, or give the plan."""
        self.say(plan.sentence())
        self.say("Nothing was run or written (--dry-run).")
        self.give(plan.to_dict())

    def show_panel(self, document: Mapping[str, Any]) -> None:
        """Show the panel as soon as it is known."""
        panel, classes = document["panel"], document["data"]["classes"]
        model = document["model"]
        size = "1 feature" if len(panel) == 1 else f"{len(panel)} features"
        self.say()
        self.say(
            f"Panel of {size} (tau {model['tau']:g}, pool {model['pool']:g}, "
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

    def show_estimate(self, document: Mapping[str, Any]) -> None:
        """Say the estimate with its interval, and what to be careful about."""
        evaluation, verdict = document["evaluation"], document["verdict"]
        self.say()
        self.say(verdict["headline"], style="bold red" if verdict["level"] == "none" else "bold")
        cohort = document.get("test")
        # the first says what was read; what an independent cohort says comes below
        told = verdict["sentences"][:-1] if cohort is not None else verdict["sentences"]
        self.say(told[-1])
        for name, title in _SCORES.items():
            score = evaluation["scores"].get(name)
            if score is not None and score["low"] is not None:
                self.say(f"{title}: {_interval(score)}")
        if "figures" in document:  # a selection's, not a method's
            from ..workflow import out_of_fold_lines

            for line in out_of_fold_lines(document):
                self.say(line)
        sizes = evaluation["panel_size_summary"]
        if sizes is not None:
            spread = f"median {sizes['median']:g}, {sizes['low']} to {sizes['high']} features"
            if sizes["low"] == sizes["high"]:
                spread = f"{sizes['low']} feature{'s' if sizes['low'] > 1 else ''} each"
            self.say(f"Panels behind these scores: {spread}")
        test = evaluation["permutation"]
        if test is not None:
            drawn = test["n_permutations"]
            self.say(f"Permutation test: p = {test['p_value']:.3g} ({drawn} permutations)")
        for title, index in _indices(document):
            self.say(f"{title}: {index:.2f}")
        for audit in evaluation.get("batches", ()):
            self.say(" ".join(audit["sentences"]))
        for other in document["beside"]:
            self.say(" ".join(other["sentences"]))
        learning = document.get("learning")
        if learning is not None:
            self.say(learning["sentence"])
        if cohort is not None:
            self.say(f"On {cohort['source']}, {cohort['n_samples']} samples:", style="bold")
            self.show_cohort(cohort)
        for notice in document["notices"]:
            style = "" if notice["severity"] == "note" else "yellow"
            self.say(f"{notice['title']}: {notice['text']}", style=style)

    def show_cohort(
        self, cohort: Mapping[str, Any], *, moved: bool = False, aside: bool = False
    ) -> None:
        """Say what an independent cohort shows: scores, calibration, predictive values.

        ``moved`` says that the labels which are written follow the prevalence, and ``aside``
        keeps it apart from output that is a file's lines.
        """
        from ..workflow import cohort_lines

        for line in cohort_lines(cohort, moved=moved):
            (self.remark if aside else self.say)(f"  {line}")

    def show_paired(self, found: Mapping[str, Any], *, aside: bool = False) -> None:
        """Say how a second model does on the same samples; ``aside`` as in `show_cohort`."""
        from ..workflow import paired_lines

        say = self.remark if aside else self.say
        say("Against the other model, on the same samples:")
        for line in paired_lines(found):
            say(f"  {line}")

    def show_comparison(self, document: Mapping[str, Any]) -> None:
        """Show balanced accuracy by method and size, the Pareto front in bold."""
        found, verdict = document["comparison"], document["verdict"]
        rows = {(row["method"], row["size"]): row for row in found["rows"]}
        grid = Grid(title="Balanced accuracy at equal panel size (stability)", title_justify="left")
        grid.add_column("method")
        for size in found["sizes"]:
            grid.add_column(str(size), justify="right")
        for method in dict.fromkeys(row["method"] for row in found["rows"]):
            cells = [Text(one_line(method))]
            for size in found["sizes"]:
                row = rows[method, size]
                if row["score"] is None:
                    cells.append(Text(row["status"], style="red"))
                    continue
                text = f"{row['score']['value']:.3f}"
                if row["stability"] is not None and row["stability"]["value"] is not None:
                    text += f" ({row['stability']['value']:.2f})"
                cells.append(Text(text, style="bold" if row["on_front"] else ""))
            grid.add_row(*cells)
        self.say()
        self.show(grid)
        self.say(verdict["headline"], style="bold")
        self.say(" ".join(verdict["sentences"]))
        for note in found["notes"]:
            self.say(note, style="dim")


def as_called(command: str) -> str:
    """Spell a command so that it works as printed: with its path where the shell finds none."""
    program = sys.argv[0]
    if Path(program).stem != "sparsegsvp" or shutil.which("sparsegsvp") is not None:
        return command
    near = os.path.relpath(program)
    program = program if near.startswith("..") else near
    return command.replace("sparsegsvp", f'"{program}"' if " " in program else program, 1)


_SCORES = {
    "balanced_accuracy": "Balanced accuracy",
    "auc": "Area under the ROC curve",
    "sensitivity": "Sensitivity",
    "specificity": "Specificity",
}


def _indices(results: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Nogueira's index over the outer folds and, if there are any, over half samples."""
    found = []
    folds = results["evaluation"]["stability"]
    if folds is not None and folds["value"] is not None:
        found.append(("Stability of the panel over the folds (Nogueira)", folds["value"]))
    halves = results.get("stability")
    if halves is not None and halves["source"] != "outer folds" and halves["index"] is not None:
        found.append(("Stability of the panel over half samples", halves["index"]))
    return found


def _interval(score: dict[str, Any]) -> str:
    """Write an estimate with its interval."""
    return f"{score['value']:.3f} ({score['low']:.3f} to {score['high']:.3f})"
