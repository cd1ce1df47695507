"""Commands that use a saved model: predict and recalibrate."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..io.errors import InputError
from .command import Groups, command, flag
from .job import about_cohort
from .options import Cells, Showing, TablePath
from .screen import Screen

if TYPE_CHECKING:
    from ..io import Table
    from ..workflow import Predictions

ModelPath = Annotated[
    Path, typer.Argument(metavar="MODEL", show_default=False, help="A model.skops file.")
]
Positive = Annotated[str | None, typer.Option(metavar="LABEL", help="The class of interest.")]
Replace = Annotated[bool, typer.Option("--force", help="Replace FILE if there is one.")]


def _read_panel(models: Sequence[Any], path: Path, given: Groups, **roles: Any) -> Table:
    """Read the columns of a table that some models need, and those that have a role."""
    from ..io import read_table
    from ..workflow import needed_features

    names = [name for model in models for name in needed_features(model)]
    return read_table(path, features=list(dict.fromkeys(names)), **roles, **given.values(Cells))


@command(Cells, Showing)
def predict(
    given: Groups,
    model: ModelPath,
    table: TablePath,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="CSV to write; stdout by default."),
    ] = None,
    force: Replace = False,
    prevalence: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="Share of the positive class where the model is used; moves probabilities and "
            "labels.",
        ),
    ] = None,
    positive: Positive = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--target", "-t", metavar="COLUMN",
            help="True labels, if TABLE has them: says how well the model does here.",
        ),
    ] = None,
    validation: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="JSON to write what --target shows into."),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL",
            help="A second model, to compare with the first on the same labelled samples: DeLong's "
            "test of the areas, McNemar's of the labels.",
        ),
    ] = None,
    batch: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Batches of TABLE, for a model that centres them; else all samples are one.",
        ),
    ] = None,
) -> None:  # fmt: skip
    """Classify samples with a saved model; with --target, validate it on them.

    Only the columns of the model's panel are needed, in any order; others are ignored.
    """
    from ..io import guess_positive, load_model, prepare_output
    from ..workflow import compare_models, predict_table, validate_table

    screen = Screen.of(given[Showing])
    for name, value in (("validation", validation), ("against", against)):
        if value is not None and target is None:
            raise InputError(
                f"{flag(name)} needs --target", remedy="name the column of true labels"
            )
    for path in (out, validation):
        if path is not None:
            prepare_output(path, force=force)
    models = [load_model(path) for path in (model, against) if path is not None]
    batches = () if batch is None else (batch,)
    data = _read_panel(models, table, given, target=target, batch=batches)
    for sentence in (data.record if target is None else about_cohort(data))[1:]:
        screen.remark(sentence)  # the first is how much was read
    found = predict_table(models[0], data)
    notice = found.shift_notice(None if target is None else data.labels)
    _remark_on(found, notice, batch, screen)
    of_interest = positive or guess_positive(found.classes)
    shown = paired = None
    if target is not None:
        shown = validate_table(found, data, positive=of_interest, prevalence=prevalence)
    if against is not None:
        paired = compare_models(found, predict_table(models[1], data), data, positive=of_interest)
    if prevalence is not None:
        found.set_prevalence(of_interest, prevalence)
        if positive is None:
            screen.remark(f"--prevalence is taken for '{of_interest}'; --positive names the other")
    _write_predictions(found, data, out, screen)
    if shown is not None:
        screen.show_cohort(shown, moved=prevalence is not None, aside=out is None)
        _write_validation(shown, paired, validation, screen, aside=out is None)
    screen.give(
        {
            "source": data.source,
            "digest": data.digest,
            "out": None if out is None else str(out.resolve()),
            "predictions": [str(label) for label in found.labels],
            "probabilities": None if found.proba is None else found.proba.tolist(),
            "classes": found.classes,
            "imputed": found.imputed,
            "recalibrated": found.recalibrated or None,
            "centred": found.centred_text() or None,
            "notices": [] if notice is None else [str(notice)],
            "validation": shown,
            "against": paired,
        }
    )


def _remark_on(
    found: Predictions, notice: object | None, batch: str | None, screen: Screen
) -> None:
    """Say what was filled in, moved and centred, and which features differ from training."""
    if found.imputed:
        screen.remark(found.imputed_text())
    for note in (found.recalibrated, found.centred_text()):
        if note:
            screen.remark(f"note: {note}")
    if batch is not None and not found.centred:
        screen.remark("note: this model centres no batches, so --batch changes nothing")
    if notice is not None:
        screen.remark(f"note: {notice}")


def _write_predictions(found: Predictions, data: Table, out: Path | None, screen: Screen) -> None:
    """Write a line for each sample into a file, or else to the output."""
    from ..io import write_atomic
    from ..workflow import predictions_csv

    text = predictions_csv(data, found)
    if out is None:
        screen.pass_on(text)
        return
    write_atomic(out, text)
    screen.say(f"{data.source}: predicted are {found.counts()}")
    screen.say(f"Predictions: {out.resolve()}")


def _write_validation(
    shown: dict[str, Any],
    paired: dict[str, Any] | None,
    path: Path | None,
    screen: Screen,
    *,
    aside: bool,
) -> None:
    """Say what else the true labels show, and write all of it into a file if one is named."""
    from ..io import write_atomic
    from ..workflow import json_text

    for text in shown["remarks"]:
        screen.remark(f"note: {text}")
    if paired is not None:
        screen.show_paired(paired, aside=aside)
    if path is not None:
        more = {} if paired is None else {"against": paired}
        write_atomic(path, json_text({**shown, **more}))


@command(Cells, Showing)
def recalibrate(
    given: Groups,
    model: ModelPath,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Model to write.")],
    table: Annotated[
        Path | None,
        typer.Argument(metavar="[TABLE]", show_default=False, help="A cohort with labels."),
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", "-t", metavar="COLUMN", help="Class labels.")
    ] = None,
    prevalence: Annotated[
        float | None,
        typer.Option(
            metavar="P", help="Share of the positive class that probabilities are to be for."
        ),
    ] = None,
    positive: Positive = None,
    method: Annotated[
        str,
        typer.Option(
            help="What TABLE sets: the intercept of the log odds, or slope and intercept (slope)."
        ),
    ] = "intercept",
    force: Replace = False,
) -> None:
    """Fit a model's probabilities to a prevalence, or to a cohort with labels.

    Panel and ranking stay; probabilities and labels change, and are marked wherever they are used.
    """
    from ..io import guess_positive, load_model, prepare_output, save_model
    from ..workflow import (
        predict_table,
        recalibrate_model,
        recalibration_effect,
        recalibration_of,
        recalibration_text,
    )

    screen = Screen.of(given[Showing])
    if (table is None) != (target is None):
        raise InputError("a cohort needs both TABLE and --target", remedy="give both, or neither")
    if table is None and method == "slope":
        raise InputError("--method slope needs TABLE", remedy="a prevalence alone sets no slope")
    prepare_output(out, force=force)
    fitted = load_model(model)
    data = None
    if table is not None:
        data = _read_panel([fitted], table, given, target=target)
        for sentence in about_cohort(data):
            screen.say(sentence)
        notice = predict_table(fitted, data).shift_notice(data.labels)
        if notice is not None:
            screen.say(f"note: {notice} No recalibration mends these.", style="yellow")
    of_interest = positive or guess_positive([str(c) for c in fitted.classes_])
    again = recalibrate_model(
        fitted, data, positive=of_interest, prevalence=prevalence, method=method
    )
    save_model(again, out)
    said = recalibration_text(again)
    screen.say(said[:1].upper() + said[1:])
    if positive is None:
        screen.say(f"The class of interest is '{of_interest}'; --positive names the other")
    done = recalibration_of(again)
    if data is not None and done is not None:
        effect = recalibration_effect(done)
        screen.say(effect[:1].upper() + effect[1:])
        screen.say("Test the new model on other samples than these: predict --target")
    screen.say(f"Model: {out.resolve()}")
    screen.give({"out": str(out.resolve()), "recalibrated": said, "recalibration": done})
