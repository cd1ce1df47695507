"""``--dask`` with or without the name of a scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from typer.core import TyperCommand

SCHEDULERS = ("threads", "synchronous", "distributed")


class WithScheduler(TyperCommand):
    """A command whose ``--dask`` may stand alone."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Add the scheduler that ``--dask`` means where none is named."""
        return super().parse_args(ctx, spell_out(args))


def spell_out(args: Sequence[str]) -> list[str]:
    """Write ``--dask`` as ``--dask threads`` unless a scheduler or an address follows.

    Examples
    --------
    >>> from sparsegsvp.cli._scheduler import spell_out
    >>> spell_out(["--dask", "folder"])
    ['--dask', 'threads', 'folder']
    >>> spell_out(["folder", "--dask", "tcp://10.0.0.1:8786"])
    ['folder', '--dask', 'tcp://10.0.0.1:8786']
    """
    out: list[str] = []
    for i, word in enumerate(args):
        out.append(word)
        following = args[i + 1] if i + 1 < len(args) else ""
        if word == "--dask" and not (following in SCHEDULERS or "://" in following):
            out.append("threads")
    return out
