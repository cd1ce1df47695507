"""``sparsegsvp predict``: samples classified with a saved model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from .. import _options as opt
from .._console import Screen, guarded


@guarded
def predict(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", show_default=False, help="A model.skops file.")
    ],
    table: opt.TablePath,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="CSV to write; stdout by default."),
    ] = None,
    id: opt.Id = None,
    prevalence: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="Share of the positive class where the model is used; adjusts probabilities.",
        ),
    ] = None,
    positive: opt.Positive = None,
    transpose: opt.Transpose = False,
    layer: opt.Layer = None,
    sheet: opt.Sheet = None,
    separator: opt.Separator = None,
    decimal: opt.Decimal = None,
    quiet: opt.Quiet = False,
    json: opt.AsJson = False,
    debug: opt.Debug = False,
) -> None:
    """Classify samples with a saved model.

    Only the columns of the model's panel are needed, in any order; others are ignored.
    """
    from ...io import load_model, read_table, write_atomic
    from .._cohort import Predictions, panel_names, predictions_text

    screen = Screen(quiet=quiet, as_json=json)
    fitted = load_model(model)
    data = read_table(
        table,
        features=panel_names(fitted),
        id=id,
        transpose=transpose,
        layer=layer,
        sheet=sheet,
        separator=separator,
        decimal=decimal,
    )
    found = Predictions(fitted, data.X, data.source)
    proba = found.proba
    if prevalence is not None:
        proba = found.at_prevalence(positive or found.classes[-1], prevalence)
        if positive is None:
            screen.remark(
                f"--prevalence is taken for '{found.classes[-1]}'; --positive names the other"
            )
    text = predictions_text(data, found, proba)
    if out is not None:
        write_atomic(out, text)
        screen.say(f"{data.source}: {found.counts()}")
        screen.say(f"Predictions: {out.resolve()}")
    elif not json and not quiet:
        sys.stdout.write(text)
    screen.give(
        {
            "source": data.source,
            "digest": data.digest,
            "out": None if out is None else str(out.resolve()),
            "predictions": [str(label) for label in found.labels],
            "probabilities": None if proba is None else proba.tolist(),
            "classes": found.classes,
        }
    )
