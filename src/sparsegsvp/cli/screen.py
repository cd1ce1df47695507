"""What the terminal shows: sentences on stdout, progress on stderr."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, TaskID
from rich.table import Table as Grid
from rich.text import Text

from .._validate import first_few, one_line
from ..io.errors import naming, spelled
from .options import flag

if TYPE_CHECKING:
    from ..evaluation import Comparison
    from ..io import Table
    from .preview import Candidate

_EVERY = 10.0  # seconds between plain lines of progress
_WORTH_SAYING = 2.0  # seconds that a stage took
_SHOWN = 30  # rows of a panel on the screen
_NAMED = 8  # names in a line
_LEFT_OUT = ("batch", "covariate", "ignored")
_COLORS = {"signal": "bold green", "weak": "bold yellow", "none": "bold red"}
_SCORES = ("balanced_accuracy", "roc_auc", "sensitivity", "specificity")


class Screen:
    """Shows a run as it goes, and ends its progress bar when it is left.

    Names, labels and identifiers come from files. Here, and nowhere else, they are freed of what
    a terminal would obey: escape sequences, line breaks, marks that turn the direction. To the
    file that the variable SPARSEGSVP_PROGRESS names, a JSON object with stage, done and total is
    added for each step of progress.
    """

    def __init__(self) -> None:
        self.out = Console(highlight=False, soft_wrap=True)
        self.err = Console(stderr=True, highlight=False, soft_wrap=True)
        watched = os.environ.get("SPARSEGSVP_PROGRESS")
        self.progress_file = Path(watched) if watched else None
        self.bar: Progress | None = None
        self.task: TaskID | None = None
        self.current: str | None = None
        self.before: str | None = None
        self.started = self.last = 0.0

    def __enter__(self) -> Screen:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def say(self, text: str = "", style: str = "") -> None:
        """Print a sentence; names from a file are text, never markup."""
        self.out.print(Text(one_line(spelled(text, flag)), style=style))

    def remark(self, text: str) -> None:
        """Print a sentence where it does not mix with the output."""
        self.err.print(Text(one_line(spelled(text, flag))))

    def pass_on(self, text: str) -> None:
        """Print lines of a file as they are, or without control characters on a terminal."""
        if self.out.is_terminal:
            text = "\n".join(one_line(line) for line in text.split("\n"))
        sys.stdout.write(text)

    def progress(self, stage: str, done: int, total: int) -> None:
        """Show how far a stage has come; a new stage ends the one before."""
        if self.progress_file is not None:
            step = json.dumps({"stage": stage, "done": done, "total": total})
            with naming(self.progress_file), self.progress_file.open("a", encoding="utf-8") as file:
                file.write(step + "\n")
        stage = one_line(stage)
        if stage != self.current:
            self._end()
            self._begin(stage, done, total)
        if self.bar is not None and self.task is not None:
            self.bar.update(self.task, completed=done)
        elif done < total and time.perf_counter() - self.last >= _EVERY:
            self.last = time.perf_counter()
            left = (self.last - self.started) / max(done, 1) * (total - done)
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
        self.current = stage
        self.started = self.last = time.perf_counter()
        if not self.err.is_terminal:
            if stage != self.before:
                self.err.print(Text(f"{stage} ..."))
            return
        self.bar = Progress(console=self.err, transient=True)
        # of one piece it is not known how far it has come
        known = None if total == 1 else total
        self.task = self.bar.add_task(escape(stage), total=known, completed=done)
        self.bar.start()

    def _end(self) -> None:
        """Remove the bar, or say how long the stage took where there is none."""
        if self.bar is not None:
            self.bar.stop()
            self.bar = self.task = None
        elif self.current is not None:
            seconds = time.perf_counter() - self.started
            if seconds >= _WORTH_SAYING:
                self.err.print(Text(f"{self.current}: {seconds:.1f} s"))
        self.current, self.before = None, self.current or self.before

    def show_candidates(self, candidates: Sequence[Candidate], commands: Sequence[str]) -> None:
        """Show the columns that may hold the classes, their values, and the command for each."""
        for candidate, command in zip(candidates[:_NAMED], commands):
            counts = first_few((f"{label} {n}" for label, n in candidate.counts.items()), _NAMED)
            best = ", most likely" if candidate.proposed else ""
            where = "row" if candidate.in_row else "column"
            self.say(f"{where} '{candidate.name}' ({counts}){best}:")
            self.say(f"  {self.as_called(command)}", style="bold")

    def show_table(self, table: Table) -> None:
        """Say what was read and what looks odd."""
        for sentence in table.record:
            self.say(sentence)
        if table.positive_guessed:
            self.say("--positive names another class of interest")
        for notice in table.notices:
            self.say(f"note: {notice}", style="yellow")
            for action in notice.actions:
                self.say(f"  {flag(action.option, action.value)}  {action.label}")

    def show_roles(self, table: Table) -> None:
        """Show what each column is for: a line for each role and reason, features last."""
        from ..report import role_lines

        grid = Grid(box=None, padding=(0, 2, 0, 0))
        for title in ("role", "columns", "why"):
            grid.add_column(title, overflow="fold", header_style="bold")
        lines = role_lines(table)
        for line in lines:
            names = [one_line(name) or "(names of rows)" for name in line["columns"]]
            shown = first_few(names, _NAMED)
            out = line["role"] in _LEFT_OUT
            why = f"{line['reason']}: left out" if out else line["reason"]
            cells = Text(shown or f"{line['count']:,} columns"), Text(one_line(why))
            grid.add_row(line["role"], *cells, style="yellow" if out else "")
        self.say()
        self.out.print(grid)
        doubted = {line["role"] for line in lines if "asked" not in line["reason"]}
        if doubted.intersection(_LEFT_OUT):
            self.say(
                "--set keep=COLUMNS uses as features what is left out, --drop COLUMNS leaves out "
                "more"
            )
        self.say()

    def show_selection(self, document: Mapping[str, Any]) -> None:
        """Say what was found and how far to trust it; then ladder, panel, scores and notices."""
        from ..report import ladder_lines
        from ..report.words import headed, signed

        verdict = document["verdict"]
        self.say()
        self.say(verdict["headline"], style=_COLORS.get(verdict["answer"], "bold"))
        for line in (*verdict["sentences"], "", *ladder_lines(document)):
            self.say(line)
        self._show_panel(document)
        for name in _SCORES:
            if name in document["scores"]:
                self.say(f"{headed(name)}: {signed(document['scores'][name])}")
        if document["adjusted"] is not None:
            alone, added = (signed(document["adjusted"][name]) for name in ("alone", "added"))
            names = ", ".join(document["adjusted"]["names"])
            self.say(f"{names} alone: balanced accuracy {alone}; the panel adds {added}")
        if document["given"] is not None:
            score, more = (signed(document["given"][name]) for name in ("score", "difference"))
            self.say(f"Given panel: balanced accuracy {score}; difference to the selection {more}")
        if document["cohort"] is not None:
            cohort = document["cohort"]
            self.say(f"On {cohort['source']}, {cohort['n_samples']} samples:", style="bold")
            self.show_cohort(cohort)
        for notice in document["notices"]:
            style = "" if notice["severity"] == "note" else "yellow"
            self.say(f"{notice['title']}: {notice['text']}", style=style)

    def _show_panel(self, document: Mapping[str, Any]) -> None:
        panel = document["panel"]
        grid = Grid(title=f"Panel of {len(panel)}, in the order chosen", title_justify="left")
        for title in ("feature", "higher in", "chosen again", "by chance", "stand-ins"):
            grid.add_column(title, overflow="fold")
        for row in panel[:_SHOWN]:
            stand_ins = first_few((s["feature"] for s in row["stand_ins"]), 3)
            again, chance = (
                "" if row[name] is None else f"{row[name]:.0%}"
                for name in ("with_stand_ins", "noise")
            )
            cells = (row["feature"], row["higher_in"] or "", again, chance, stand_ins)
            grid.add_row(*(Text(one_line(cell)) for cell in cells))
        self.say()
        self.out.print(grid)
        if len(panel) > _SHOWN:
            self.say(f"and {len(panel) - _SHOWN} more")

    def show_cohort(self, cohort: Mapping[str, Any], *, aside: bool = False) -> None:
        """Say what an independent cohort shows; ``aside`` keeps it apart from a file's lines."""
        from ..report import cohort_lines

        for line in cohort_lines(cohort):
            (self.remark if aside else self.say)(f"  {line}")

    def show_comparison(self, document: Mapping[str, Any], comparison: Comparison) -> None:
        """Show balanced accuracy by method and size, and what follows."""
        scores = comparison.table.pivot(index="method", columns="size", values="balanced_accuracy")
        self.say()
        self.say("Balanced accuracy by method and panel size", style="bold")
        for line in scores.round(3).rename_axis(index=None, columns=None).to_string().splitlines():
            self.say(line)
        self.say(document["verdict"]["headline"], style="bold")
        for sentence in document["verdict"]["sentences"]:
            self.say(sentence)

    @staticmethod
    def as_called(command: str) -> str:
        """Spell a command so that it works as printed: with its path where the shell finds none."""
        program = sys.argv[0]
        if Path(program).stem != "sparsegsvp" or shutil.which("sparsegsvp") is not None:
            return command
        near = os.path.relpath(program)
        program = program if near.startswith("..") else near
        return command.replace("sparsegsvp", f'"{program}"' if " " in program else program, 1)
