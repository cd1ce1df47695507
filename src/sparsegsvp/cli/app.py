"""The program: one app, and the commands in the order that its help shows."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from ..io import end_at_once
from . import commands
from .options import refuse_repeats
from .screen import guarded, speak_any_terminal

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
    if "--debug" not in sys.argv:
        os.environ.setdefault("PYTHONWARNINGS", "ignore")
    speak_any_terminal()
    end_at_once()
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


_SCHEDULERS = ("threads", "synchronous", "distributed")


class StrictCommand(TyperCommand):
    """A command that takes an option once, and whose ``--dask`` may stand alone."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Add the scheduler that ``--dask`` means, and refuse what is said twice."""
        words = spell_out(args)
        refuse_repeats(self, ctx, words)
        return super().parse_args(ctx, words)


def spell_out(args: Sequence[str]) -> list[str]:
    """Write ``--dask`` as ``--dask threads`` unless a scheduler or an address follows.

    Examples
    --------
    >>> from sparsegsvp.cli.app import spell_out
    >>> spell_out(["--dask", "folder"])
    ['--dask', 'threads', 'folder']
    >>> spell_out(["folder", "--dask", "tcp://10.0.0.1:8786"])
    ['folder', '--dask', 'tcp://10.0.0.1:8786']
    """
    out: list[str] = []
    for i, word in enumerate(args):
        out.append(word)
        following = args[i + 1] if i + 1 < len(args) else ""
        if word == "--dask" and not (following in _SCHEDULERS or "://" in following):
            out.append("threads")
    return out


for panel, function in (
    ("Panels", commands.select),
    ("Panels", commands.predict),
    ("Panels", commands.recalibrate),
    ("Evidence", commands.evaluate),
    ("Evidence", commands.compare),
    ("Evidence", commands.reproduce),
    ("Panels", commands.look),
    ("Panels", commands.app),
    ("Panels", commands.demo),
):
    app.command(rich_help_panel=panel, cls=StrictCommand)(guarded(function))
