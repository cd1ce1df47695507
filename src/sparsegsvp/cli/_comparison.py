"""A comparison as a table on the screen: one row per method, one column per size."""

from __future__ import annotations

from rich.table import Table as Grid
from rich.text import Text

from ..evaluation import Comparison
from ..io._errors import one_line


def comparison_grid(found: Comparison) -> Grid:
    """Lay out balanced accuracy by method and size; the Pareto front is bold.

    Parameters
    ----------
    found : Comparison
        The comparison.

    Returns
    -------
    rich.table.Table
    """
    grid = Grid(title="Balanced accuracy at equal panel size (stability)", title_justify="left")
    grid.add_column("method")
    for size in found.sizes:
        grid.add_column(str(size), justify="right")
    for method in found.methods:
        cells = [Text(one_line(method))]
        for size in found.sizes:
            row = found.row(method, size)
            if row.score is None:
                cells.append(Text(row.status, style="red"))
                continue
            text = f"{row.score.value:.3f}"
            if row.stability is not None and row.stability.value == row.stability.value:
                text += f" ({row.stability.value:.2f})"
            cells.append(Text(text, style="bold" if row.on_front else ""))
        grid.add_row(*cells)
    return grid
