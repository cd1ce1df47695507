"""The command line: ``sparsegsvp select``, ``predict``, ``evaluate``, ``compare`` and more.

The commands only parse options and print. What they do is in functions that know nothing
of the terminal: `select`, `evaluate_table`, `compare_table`, `predict_table`.
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
        from ._app import run
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
