"""The program: one app, the commands in the order that its help shows, and what an error prints."""

from __future__ import annotations

import errno
import functools
import io
import os
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand

from .._validate import one_line
from ..io.errors import InputError
from . import commands
from .options import flag

Command = TypeVar("Command", bound=Callable[..., Any])

app = typer.Typer(
    name="sparsegsvp",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Small, stable feature panels from tables of samples and features, with an honest "
    "estimate of how well they classify.",
    epilog="Start with: sparsegsvp demo",
)


def run() -> int:
    """Run the program; return its exit code."""
    # Worker processes would print every warning that the results carry as notices.
    if not _debugging():
        os.environ.setdefault("PYTHONWARNINGS", "ignore")
    for stream in (sys.stdout, sys.stderr):  # a terminal that lacks a character shows its code
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    # A polite kill and a closed terminal clean up like Ctrl-C does.
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None:
            signal.signal(number, lambda number, _: sys.exit(128 + number))
    try:
        app()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except KeyboardInterrupt:
        return 130
    return 0


def _debugging() -> bool:
    return os.environ.get("SPARSEGSVP_DEBUG", "0") not in ("", "0")


def _version(wanted: bool) -> None:
    if wanted:
        from .. import __version__

        print(f"sparsegsvp {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    pass


class StrictCommand(TyperCommand):
    """A command that takes an option once, unless it is one of those that add up."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse an option that takes one value and is given twice, since the last would win."""
        given: list[Any] = self.make_parser(ctx).parse_args(args=list(args))[2]
        counts = Counter(id(parameter) for parameter in given)
        for parameter in given:
            single = parameter.param_type_name == "option" and not parameter.multiple
            if single and counts[id(parameter)] > 1:
                raise typer.BadParameter(
                    f"it is given {counts[id(parameter)]} times and takes one value: give it once.",
                    ctx=ctx,
                    param=parameter,
                )
        return super().parse_args(ctx, args)


def guarded(command: Command) -> Command:
    """Turn what goes wrong in a command into one line and an exit code.

    2 for input that cannot be used, 130 for Ctrl-C, 1 for anything else. With
    ``SPARSEGSVP_DEBUG=1`` the traceback is shown too.
    """

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except (typer.Exit, typer.BadParameter):
            raise
        except BrokenPipeError:
            # Whoever read our output has gone; say nothing when Python closes stdout.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(1) from None
        except (Exception, KeyboardInterrupt) as error:
            message, code = _explain(error, command.__name__)
            if _debugging():
                for line in traceback.format_exc().splitlines():
                    print(one_line(line), file=sys.stderr)
            print(f"sparsegsvp: {one_line(message)}", file=sys.stderr, flush=True)
            raise typer.Exit(code) from None

    return run  # type: ignore[return-value]


_ADVICE = dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "make room, or choose another folder")
_ADVICE |= dict.fromkeys(
    (errno.EROFS, errno.EACCES, errno.EPERM), "choose a folder that you may write to"
)
_ADVICE |= dict.fromkeys((errno.ENOENT, errno.ENOTDIR), "check that the folder exists")


def _explain(error: BaseException, name: str) -> tuple[str, int]:
    """Return what is said of an error in a command, and the exit code."""
    if isinstance(error, KeyboardInterrupt):
        if name == "reproduce":
            return "interrupted; run it again to continue where it stopped", 130
        return "interrupted; nothing was written", 130
    if isinstance(error, InputError):
        return error.spelled(flag), 2
    if isinstance(error, OSError) and error.errno is not None:  # a full or read-only disk above all
        where = f"{error.filename}: " if error.filename else ""
        advice = _ADVICE.get(error.errno)
        return f"{where}{error.strerror or error}{f'; {advice}' if advice else ''}", 2
    if isinstance(error, ImportError) and not (error.name or "").startswith("sparsegsvp"):
        return str(error), 1
    if isinstance(error, MemoryError):
        return "there is not enough memory; try --jobs 1 or a smaller table", 1
    return (
        f"{type(error).__name__}: {error}; this is a fault of sparsegsvp, not of your file: "
        "SPARSEGSVP_DEBUG=1 shows where, please report it"
    ), 1


for function, example in (
    (commands.select, "select tumors.csv --target diagnosis --batch plate"),
    (commands.predict, "predict sparsegsvp-report/model.skops new.csv --out calls.csv"),
    (commands.compare, "compare tumors.csv --target diagnosis --sizes 2,4,8"),
    (commands.reproduce, "reproduce breast"),
    (commands.demo, "demo"),
    (commands.app, "app --folder my-runs"),
):
    app.command(cls=StrictCommand, epilog=f"Example: sparsegsvp {example}")(guarded(function))
