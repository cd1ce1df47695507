"""The program: one app, and the commands in the order that its help shows."""

from __future__ import annotations

import os
import signal
import sys
from typing import Annotated

import typer

from ._commands.compare import compare
from ._commands.demo import demo
from ._commands.evaluate import evaluate
from ._commands.predict import predict
from ._commands.reproduce import reproduce
from ._commands.select import select
from ._scheduler import WithScheduler

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
    # Worker processes would print every warning that the results carry in plain words.
    if "--debug" not in sys.argv:
        os.environ.setdefault("PYTHONWARNINGS", "ignore")
    # A polite kill cleans up like Ctrl-C does.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
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


app.command(rich_help_panel="Panels", cls=WithScheduler)(select)
app.command(rich_help_panel="Panels")(predict)
app.command(rich_help_panel="Evidence")(evaluate)
app.command(rich_help_panel="Evidence")(compare)
app.command(rich_help_panel="Evidence")(reproduce)
app.command(rich_help_panel="Panels")(demo)
