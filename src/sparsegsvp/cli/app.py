"""The program: one app, and the commands in the order that its help shows."""

from __future__ import annotations

import os
import signal
import sys
from typing import Annotated

import typer

from . import commands
from .screen import guarded

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


for panel, function in (
    ("Panels", commands.select),
    ("Panels", commands.predict),
    ("Evidence", commands.evaluate),
    ("Evidence", commands.compare),
    ("Evidence", commands.reproduce),
    ("Panels", commands.demo),
):
    app.command(rich_help_panel=panel, cls=commands.WithScheduler)(guarded(function))
