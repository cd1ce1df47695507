"""The command line: ``sparsegsvp select``, ``predict``, ``compare`` and more.

The commands parse options, print and write files. What they do is in `sparsegsvp.workflow`,
which knows nothing of the terminal.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; the entry point of the ``sparsegsvp`` program.

    Examples
    --------
    >>> from sparsegsvp.cli import main
    >>> main()  # doctest: +SKIP
    """
    try:
        from .app import run
    except ImportError as error:
        if error.name is None or error.name.split(".")[0] not in ("typer", "rich"):
            raise
        print(
            f"sparsegsvp: {error.name} is not installed; "
            'install the command line with: pip install "sparsegsvp[cli]"',
            file=sys.stderr,
        )
        sys.exit(1)
    sys.exit(run())
