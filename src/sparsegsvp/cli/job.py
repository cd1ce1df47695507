"""A command at work on a table: what it reads, plans, writes and says at its end."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .command import Groups, spell, values
from .options import Batches, Cells, Cohort, Columns, Logging, Showing, Transform
from .screen import Screen, as_called

if TYPE_CHECKING:
    from ..io import Table
    from ..workflow import RunEstimate


class Job:
    """A command, the groups of options it was given, and the screen it is shown on.

    ``path`` is its table, or None for data that come with the package; ``out`` the folder for
    the results, if any are written; ``more`` are options of its own that repeat the run.
    """

    def __init__(
        self, name: str, path: Path | None, given: Groups, out: Path | None, **more: Any
    ) -> None:
        self.path, self.given, self.out = path, given, out
        self.screen = Screen.of(given[Showing])
        self.command = spell(name, path, *given.asked(), **more)

    @property
    def command_with_out(self) -> str:
        """The command that repeats the run, into the same folder if one is written."""
        return self.command + ("" if self.out is None else f" --out {shlex.quote(str(self.out))}")

    def check_log(self) -> None:
        """Refuse a log that cannot be written or continued, before any work is done."""
        from ..io import InputError, prepare_output

        log, resume = self.given[Logging].log, self.given[Logging].resume
        if log is None:
            if resume:
                raise InputError(
                    "--resume needs --log", remedy="name the file of the run to continue"
                )
            return
        if self.out is not None and self.out.resolve() in log.resolve().parents:
            raise InputError(
                "the log (--log) lies in the folder for the results (--out)",
                where=str(log),
                remedy="put it beside the folder, which is written whole at the end",
            )
        if log.is_file() and not resume:
            raise InputError(
                "there is such a log already (--log)",
                where=str(log),
                remedy="continue it with --resume, or choose another name",
            )
        prepare_output(log, force=True)

    def parameters(self, *kinds: type, **more: Any) -> dict[str, Any]:
        """Return what the workflow is asked to do: values of some groups, and the progress."""
        found = {**more, "progress": self.screen.progress, **self.given.values(*kinds)}
        if Batches in self.given:
            found["center_batches"] = self.given[Batches].center_batches
        return found

    def read(self) -> tuple[Table, Table | None]:
        """Read the table, and the independent cohort if one is named; say what was read."""
        from ..io import listed_names, read_table

        assert self.path is not None
        batches = self.given[Batches] if Batches in self.given else Batches()
        options = values(self.given[Columns], self.given[Cells], batches)
        del options["center_batches"]  # which is no matter of reading
        for name in ("drop", "keep", "batch"):
            options[name] = tuple(options[name] or ())
        for name in ("adjust",):
            options[name] = listed_names(options[name] or ())
        with self.screen.stage(f"reading {self.path.name}"):
            table = read_table(self.path, **options)
        table = table.without_notice("raw") if self.given[Transform].log2 else table
        self.screen.show_table(table)
        self.screen.show_roles(table)
        return table, self._read_cohort(table) if Cohort in self.given else None

    def _read_cohort(self, data: Table) -> Table | None:
        """Read an independent cohort, if one is named: the same features, and known labels."""
        from ..io import check_cohort, read_table

        cohort = self.given[Cohort]
        if cohort.test is None:
            return None
        with self.screen.stage(f"reading {cohort.test.name}"):
            test = read_table(
                cohort.test,
                target=data.target,
                features=data.feature_names,
                adjust=tuple(data.covariates),
                labels=cohort.test_labels,
                on=None if cohort.test_labels is None else self.given[Columns].on,
                **self.given.values(Cells),
            )
            test = check_cohort(test, data)
        for sentence in about_cohort(test):
            self.screen.say(f"cohort: {sentence}")
        return test

    def show_plan(self, make: Callable[..., RunEstimate], asked: Mapping[str, Any]) -> None:
        """Do what ``--dry-run`` asks for: read the table and say how long a run would take."""
        with self.screen:
            plan = make(self.read()[0], **asked)
        self.screen.show_plan(plan)

    @contextmanager
    def results(self, kind: Any, *, force: bool) -> Iterator[Any]:
        """Enclose the work: give the folder to write to, and end the progress at its end."""
        from ..workflow import results_folder

        with self.screen, results_folder(self.out, kind, force=force) as folder:
            yield folder

    def place(self, name: str = "") -> str | None:
        """Return the full path of the folder, or of a file in it; None where none is written."""
        return None if self.out is None else str((self.out / name).resolve())

    def finish(self, found: dict[str, Any], where: str, style: str = "bold") -> None:
        """Say where the results are and how to repeat the run, or give what ``--json`` prints."""
        if self.out is not None:
            self.screen.say(where, style=style)
        self.screen.say(f"Repeat: {as_called(self.command_with_out)}")
        self.screen.give(found)


def about_cohort(table: Table) -> list[str]:
    """Return what was read; which class is of interest is the model's matter."""
    counts = ", ".join(f"{n} '{label}'" for label, n in table.class_counts().items())
    return [table.record[0], f"labels in '{table.target}': {counts}", *table.record[2:]]


def summary(document: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return what ``--json`` prints: the numbers that matter, and where the rest is."""
    evaluation, data = document["evaluation"], document["data"]
    test = evaluation["permutation"]
    found = {
        **{key: data[key] for key in ("source", "digest", "n_samples", "n_features", "classes")},
        "scores": evaluation["scores"],
        "p_value": None if test is None else test["p_value"],
        "verdict": evaluation["verdict"],
        "beside": document["beside"],
        "notices": [f"{n['title']}: {n['text']}" for n in document["notices"]],
        **more,
    }
    if "panel" in document:
        found["panel"] = [row["feature"] for row in document["panel"]]
        found["headline"] = document["verdict"]["headline"]
        found["skipped"] = document["run"]["skipped"]
        learning = document["learning"]
        found["learning"] = None if learning is None else learning["sentence"]
        found["test"] = None if document["test"] is None else document["test"]["scores"]
    return found
