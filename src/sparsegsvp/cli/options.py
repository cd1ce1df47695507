"""The options of the command line, each declared once.

An option is named as the parameter of the library that it sets. From the same declaration come
the flags of a command and its help, the command line that repeats a run, the spelling of a
parameter in errors, and the fields of the form in the app. What is rarely needed has no flag of
its own: ``--set NAME=VALUE`` sets it.
"""

from __future__ import annotations

import functools
import inspect
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from .._validate import quote, suggestion
from ..io.errors import InputError, option

EVERYDAY, SAMPLES, FILE, RUN, RARE = (
    "Options", "The samples", "The file", "The run", "Rarely needed",
)  # fmt: skip


@dataclass(frozen=True)
class Option:
    """An option: a parameter of the library, its help and how the command line spells it."""

    name: str
    label: str
    help: str
    section: str
    kind: type = str
    many: bool = False
    default: Any = None
    metavar: str | None = None
    flags: tuple[str, ...] = ()

    @property
    def flag(self) -> str:
        """The long flag."""
        return next((f for f in self.flags if f[:2] == "--"), "--" + self.name.replace("_", "-"))

    @property
    def says_what(self) -> bool:
        """Whether it says what is done, not where results go or how many processes do it."""
        return self.name not in ("out", "force", "dry_run", "n_jobs", "cache", "rungs")

    def annotation(self) -> Any:
        """The annotated type that typer makes the option of."""
        kind: Any = list[self.kind] if self.many else self.kind  # type: ignore[name-defined]
        info = typer.Option(
            *dict.fromkeys([*self.flags, self.flag]),
            help=self.help,
            metavar="" if self.kind is bool else self.metavar,
            rich_help_panel=self.section,
            show_default=self.default is not None and self.default is not False,
        )
        return Annotated[kind | None if self.default is None else kind, info]

    def words(self, value: Any) -> list[str]:
        """Spell a value as words of a command."""
        items = value if self.many else [value]
        if self.section == RARE:
            return [w for item in items for w in ("--set", f"{self.name}={_text(item)}")]
        if self.kind is bool:
            return [self.flag]
        return [word for item in items for word in (self.flag, _text(item))]

    def parse(self, text: str) -> Any:
        """Return the value that ``--set`` gives as text."""
        try:
            return _SWITCH[text.lower()] if self.kind is bool else self.kind(text)
        except (KeyError, ValueError):
            like = "yes or no" if self.kind is bool else "a number"
            raise InputError(f"--set {self.name} is {quote(text)}", remedy=f"give {like}") from None


_SWITCH = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}


def _text(value: Any) -> str:
    """Write a value as it can be read back, numbers as briefly as that allows."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        short = f"{value:g}"
        return short if float(short) == value else repr(value)
    return str(value)


OPTIONS = {
    item.name: item
    for item in (
        Option("target", "Column of the classes", "Column with the class labels.", EVERYDAY,
               metavar="COLUMN", flags=("--target", "-t")),
        Option("positive", "Class of interest", "The class to be found, of two; by default guessed "
               "from the names.", EVERYDAY, metavar="LABEL"),
        Option("n_features", "Number of features", "Exactly so many features; by default as many "
               "as it takes.", EVERYDAY, int, metavar="K", flags=("--n-features", "-k")),
        Option("must", "Always in the panel", "Features of every panel, with commas between them.",
               EVERYDAY, many=True, metavar="NAMES"),
        Option("ban", "Never in the panel", "Features of no panel.", EVERYDAY, many=True,
               metavar="NAMES"),
        Option("fast", "A first look", "A first look in a fraction of the time: one repeat, few "
               "permutations and half samples.", EVERYDAY, bool, default=False),
        Option("prevalence", "How common the class of interest is", "Share of the class of "
               "interest where the panel is to be used, such as 0.1, for predictive values and the "
               "decision curve.", EVERYDAY, float, metavar="P"),
        Option("out", "Folder", "Folder for the results.", EVERYDAY, Path,
               default=Path("sparsegsvp-report"), metavar="DIR", flags=("--out", "-o")),
        Option("group", "Samples that belong together", "Patients or other groups whose samples "
               "are never split between training and test.", SAMPLES, metavar="COLUMN"),
        Option("batch", "Batches to audit", "Plates, days or sites: does the panel show them "
               "instead of the class? May be repeated.", SAMPLES, many=True, metavar="COLUMN"),
        Option("adjust", "Adjust for", "Age, sex and the like, in the decision in every fold: what "
               "does the panel add to them?", SAMPLES, many=True, metavar="COLUMNS"),
        Option("panel", "Another panel to score", "Score this panel too, on the same folds: too "
               "high a score if it was chosen with these samples.", SAMPLES, many=True,
               metavar="NAMES"),
        Option("test", "Another cohort", "An independent cohort to score.", SAMPLES, Path,
               metavar="FILE"),
        Option("labels", "File of the classes", "A second file that has the labels.", FILE, Path,
               metavar="FILE"),
        Option("sheet", "Sheet", "Sheet of a workbook.", FILE, metavar="NAME"),
        Option("drop", "Leave out", "Columns to leave out.", FILE, many=True, metavar="COLUMNS"),
        Option("na", "Codes for missing values", "Codes for missing values besides NA and the "
               "like, with commas between them.", FILE, metavar="CODES"),
        Option("log2", "Take logarithms", "Take logarithms of the values first.", FILE, bool,
               default=False),
        Option("dry_run", "", "Show what was read and what each column is for, and stop.", RUN,
               bool, default=False),
        Option("force", "", "Replace the results of an earlier run.", RUN, bool, default=False),
        Option("random_state", "Seed", "Seed of all random choices.", RUN, int, default=0,
               metavar="N", flags=("--seed",)),
        Option("n_jobs", "", "Processes; -1 for one per core. Changes no result.", RUN, int,
               default=-1, metavar="N", flags=("--jobs", "-j")),
        Option("methods", "Methods", "Only these methods, with commas between them; a wrong "
               "name is answered with all there are.", EVERYDAY, many=True,
               metavar="NAMES", flags=("--method", "-m")),
        Option("sizes", "Panel sizes", "Panel sizes, with commas between them.", EVERYDAY,
               default="2,4,8,16,32", metavar="SIZES"),
        Option("cache", "", "A file that keeps what is finished, for a run that is interrupted.",
               RUN, Path, metavar="FILE"),
        Option("keep", "Use as features", "columns that look clinical or technical", RARE,
               many=True),
        Option("id", "Names of the samples", "column with the names of samples", RARE),
        Option("on", "Names of the samples in the file of classes", "the same in --labels", RARE),
        Option("transpose", "Features are in rows", "yes or no: features are in rows", RARE, bool),
        Option("separator", "Separator", "mark between cells", RARE),
        Option("decimal", "Decimal mark", "'.' or ','", RARE),
        Option("thousands", "Thousands mark", "mark within large numbers", RARE),
        Option("encoding", "Encoding", "of a text file", RARE),
        Option("layer", "Layer", "of an .h5ad file", RARE),
        Option("collapse", "Features of one name", "mean or max of features of one name",
               RARE),
        Option("floor", "Smallest value under the logarithm", "of --log2; 16 is usual for "
               "microarrays", RARE, float, default=1.0),
        Option("folds", "Folds", "of the outer cross-validation", RARE, int, default=5),
        Option("repeats", "Repeats", "of the outer cross-validation", RARE, int, default=5),
        Option("rungs", "A report for every size", "yes: a report for every size of the ladder",
               RARE, bool, default=False),
        Option("permutations", "Permutations", "shuffled tables to test against", RARE, int,
               default=99),
    )
}  # fmt: skip
READING = ("sheet", "na", "id", "transpose", "separator", "decimal", "thousands", "encoding",
            "layer", "collapse")  # fmt: skip
ROLES = ("target", "positive", "group", "batch", "adjust", "labels", "on", "drop", "keep")
_TABLE = ("labels", "drop", "log2", "floor", "keep", "on", *READING)
_RUNNING = ("out", "force", "random_state", "n_jobs")
COMMANDS: dict[str, tuple[str, ...]] = {
    "select": ("target", "positive", "n_features", "must", "ban", "prevalence", "fast", "group",
               "batch", "adjust", "panel", "test", "permutations", "folds", "repeats", "rungs",
               "dry_run", *_TABLE, *_RUNNING),
    "compare": ("target", "methods", "sizes", "group", "folds", "repeats", "cache", *_TABLE,
                *_RUNNING),
    "predict": ("target", "positive", "force", *READING),
    "reproduce": ("out", "n_jobs"),
    "demo": ("fast", *_RUNNING),
    "app": (),
}  # fmt: skip


def reading_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is given of `read_table`'s parameters."""
    return {name: given[name] for name in (*ROLES, *READING) if given.get(name) is not None}


def split_names(texts: Iterable[str]) -> list[str]:
    """Take names with commas between them apart."""
    return [part.strip() for text in texts for part in text.split(",") if part.strip()]


def options_of(command: str) -> list[Option]:
    """Return the options of a command in the order of their declaration, which the help shows."""
    return [item for name, item in OPTIONS.items() if name in COMMANDS[command]]


def flag(name: str, value: Any = None) -> str:
    """Spell a parameter of the library as the option of this command line."""
    item = OPTIONS.get({"groups": "group"}.get(name, name))
    if item is None:
        return "--" + name.replace("_", "-")
    if value is None:
        return f"--set {item.name}=..." if item.section == RARE else item.flag
    values = list(value) if isinstance(value, list | tuple) else [value]
    return shlex.join(item.words(values if item.many else values[0]))


def command_line(command: str, paths: Iterable[Path | str], given: Mapping[str, Any]) -> list[str]:
    """Return the words after ``sparsegsvp`` that repeat a command: what is not at its default."""
    # a file whose name begins with a dash would be taken for an option
    words = [command, *(f"./{path}" if str(path)[:1] == "-" else str(path) for path in paths)]
    for item in options_of(command):
        value = given.get(item.name, item.default)
        if value != item.default and value not in (None, [], ()):
            words += item.words(value)
    return words


def repeat_line(command: str, paths: Iterable[Path | str], given: Mapping[str, Any]) -> str:
    """Return the line for the shell that repeats a run, without what changes no result."""
    kept = {name: value for name, value in given.items() if OPTIONS[name].says_what}
    return shlex.join(["sparsegsvp", *command_line(command, paths, kept)])


def command(name: str, **defaults: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command of a function, which gets its options by name, those of ``--set`` too."""
    options = options_of(name)
    rare = {item.name: item for item in options if item.section == RARE}

    def make(function: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(function, eval_str=True).parameters.values()
        parameters = [p for p in own if p.kind is not inspect.Parameter.VAR_KEYWORD]
        common = [item for item in options if item.section != RARE]
        made = [(p.name, p.default, p.annotation) for p in parameters]
        made += [(i.name, defaults.get(i.name, i.default), i.annotation()) for i in common]
        if rare:
            said = "; ".join(f"{item.name} ({item.help})" for item in rare.values())
            info = typer.Option(
                "--set", metavar="NAME=VALUE", rich_help_panel=FILE, help=f"Rarely needed: {said}."
            )
            made.append(("settings", None, Annotated[list[str] | None, info]))

        @functools.wraps(function)
        def run(**given: Any) -> None:
            given |= _settings(given.pop("settings", None) or (), rare)
            function(**given)

        run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [
                inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=d, annotation=a)
                for n, d, a in made
            ]
        )
        run.__annotations__ = {n: a for n, _, a in made}
        return run

    return make


def _settings(texts: Iterable[str], rare: Mapping[str, Option]) -> dict[str, Any]:
    """Return the values of all options without a flag, given as ``NAME=VALUE`` or not."""
    given: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        item = rare.get(name.strip().replace("-", "_"))
        if item is None or not equals:
            what = f"there is no {quote(name)}" if equals else f"{quote(text)} is no NAME=VALUE"
            raise InputError(f"{what} (--set)", remedy=suggestion(name, list(rare)))
        if item.many:
            given[item.name] = [*given.get(item.name, ()), item.parse(value)]
        elif item.name in given:
            raise InputError(f"--set {item.name} is given twice", remedy="give it once")
        else:
            given[item.name] = item.parse(value)
    return {name: given.get(name, item.default) for name, item in rare.items()}


FILES = ("labels", "test")  # options that are files, by the name under which one is uploaded
_LONGEST = 10_000  # characters of a text


def fields(command: str = "select") -> list[dict[str, Any]]:
    """Describe the options that a form may set: name, label, help, section, kind, many, default."""
    return [
        {"name": item.name, "label": item.label, "help": _plain(item.help), "section": item.section,
         "kind": item.kind.__name__, "many": item.many, "default": item.default}
        for item in options_of(command)
        if item.says_what and item.kind is not Path
    ]  # fmt: skip


def _plain(text: str) -> str:
    """Say a help without flags and files: in the form, options go by their labels."""
    labels = {item.flag: f"“{item.label}”" for item in OPTIONS.values()}
    text = text.replace(" May be repeated.", "")
    text = re.sub(r"--[a-z0-9-]+", lambda flag: labels.get(flag[0], flag[0]), text)
    return f"{text[:1].upper()}{text[1:]}{'' if text[-1] in '.?' else '.'}"


def command_words(
    command: str,
    paths: Sequence[Path | str],
    choices: Mapping[str, Any],
    files: Mapping[str, str] | None = None,
) -> list[str]:
    """Return the words of a command, after ``sparsegsvp``, for what a form has set.

    ``choices`` are values by the names of `fields`, ``files`` files by the options in `FILES`.
    """
    known = {field["name"] for field in fields(command)}
    given: dict[str, Any] = {name: Path(path) for name, path in (files or {}).items()}
    for name, value in choices.items():
        if name not in known:
            raise InputError(f"there is no option {quote(name)}", remedy="reload the page")
        given[name] = _checked(OPTIONS[name], value)
    return command_line(command, paths, given)


def explain(error: InputError) -> dict[str, Any]:
    """Say an error in the words of the form; each value that it proposes becomes an action."""
    actions: list[dict[str, Any]] = []

    def spell(name: str, value: Any) -> str:
        item = OPTIONS.get(name)
        if item is None:
            return name
        values = value if isinstance(value, list) else [value]
        shown = ", ".join("no" if v is False else str(v) for v in values if v not in (None, True))
        label = f"{item.label}: {shown}" if shown else item.label
        if value is not None and item.says_what and item.kind is not Path:
            actions.append({"option": name, "value": value, "label": label})
        return f"“{label}”"

    return {"error": error.spelled(spell), "actions": actions}


def _checked(item: Option, value: Any) -> Any:
    """Return a value from the browser, or refuse what the option does not take."""
    kind: Any = {bool: bool, int: int, float: (int, float)}.get(item.kind, str)
    for part in value if item.many and isinstance(value, list) else [value]:
        right = isinstance(part, kind) and isinstance(part, bool) == (item.kind is bool)
        if kind is str:
            right = right and "\0" not in part and len(part) <= _LONGEST
        if not right or isinstance(value, list) != item.many:
            raise InputError(f"{quote(part)} is no value of {option(item.name)}")
    return value
