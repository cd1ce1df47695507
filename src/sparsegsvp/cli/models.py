"""Commands that use a saved model: predict and recalibrate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .command import command, flag, values
from .options import Cells, Showing, TablePath
from .reading import about_cohort
from .screen import Screen

if TYPE_CHECKING:
    from ..workflow import Predictions


@command
def predict(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", show_default=False, help="A model.skops file.")
    ],
    table: TablePath,
    cells: Cells,
    showing: Showing,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="CSV to write; stdout by default."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if there is one.")] = False,
    prevalence: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="Share of the positive class where the model is used; moves probabilities and "
            "labels.",
        ),
    ] = None,
    positive: Annotated[
        str | None, typer.Option(metavar="LABEL", help="The class of interest.")
    ] = None,
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
    from ..io import (
        InputError,
        guess_positive,
        load_model,
        prepare_output,
        read_table,
        write_atomic,
    )
    from ..workflow import (
        compare_models,
        json_text,
        needed_features,
        predict_table,
        predictions_csv,
        validate_table,
    )

    screen = Screen.of(showing)
    for name, value in (("validation", validation), ("against", against)):
        if value is not None and target is None:
            raise InputError(
                f"{flag(name)} needs --target", remedy="name the column of true labels"
            )
    for path in (out, validation):
        if path is not None:
            prepare_output(path, force=force)
    fitted = load_model(model)
    second = None if against is None else load_model(against)
    names = needed_features(fitted)
    if second is not None:
        names += [name for name in needed_features(second) if name not in names]
    batches = () if batch is None else (batch,)
    data = read_table(table, target=target, features=names, batch=batches, **values(cells))
    for sentence in (data.record if target is None else about_cohort(data))[1:]:
        screen.remark(sentence)  # the first is how much was read
    found = predict_table(fitted, data)
    notice = found.shift_notice(None if target is None else data.labels)
    _remark_on(found, notice, batch, screen)
    of_interest = positive or guess_positive(found.classes)
    shown = paired = None
    if target is not None:
        shown = validate_table(found, data, positive=of_interest, prevalence=prevalence)
    if second is not None:
        paired = compare_models(found, predict_table(second, data), data, positive=of_interest)
    if prevalence is not None:
        found.set_prevalence(of_interest, prevalence)
        if positive is None:
            screen.remark(f"--prevalence is taken for '{of_interest}'; --positive names the other")
    text = predictions_csv(data, found)
    if out is not None:
        write_atomic(out, text)
        screen.say(f"{data.source}: predicted are {found.counts()}")
        screen.say(f"Predictions: {out.resolve()}")
    else:
        screen.pass_on(text)
    if shown is not None:
        screen.show_cohort(shown, moved=prevalence is not None, aside=out is None)
        for text in shown["remarks"]:
            screen.remark(f"note: {text}")
        if paired is not None:
            screen.show_paired(paired, aside=out is None)
        if validation is not None:
            more = {} if paired is None else {"against": paired}
            write_atomic(validation, json_text({**shown, **more}))
    screen.give(
        {
            "source": data.source,
            "digest": data.digest,
            "out": None if out is None else str(out.resolve()),
            **_as_json(found),
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


def _as_json(found: Predictions) -> dict[str, Any]:
    return {
        "predictions": [str(label) for label in found.labels],
        "probabilities": None if found.proba is None else found.proba.tolist(),
        "classes": found.classes,
        "imputed": found.imputed,
        "recalibrated": found.recalibrated or None,
        "centred": found.centred_text() or None,
    }


@command
def recalibrate(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", show_default=False, help="A model.skops file.")
    ],
    cells: Cells,
    showing: Showing,
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
    positive: Annotated[
        str | None, typer.Option(metavar="LABEL", help="The class of interest.")
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help="What TABLE sets: the intercept of the log odds, or slope and intercept (slope)."
        ),
    ] = "intercept",
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if there is one.")] = False,
) -> None:
    """Fit a model's probabilities to a prevalence, or to a cohort with labels.

    Panel and ranking stay; probabilities and labels change, and are marked wherever they are used.
    """
    from ..io import (
        InputError,
        guess_positive,
        load_model,
        prepare_output,
        read_table,
        save_model,
    )
    from ..workflow import (
        needed_features,
        predict_table,
        recalibrate_model,
        recalibration_effect,
        recalibration_of,
        recalibration_text,
    )

    screen = Screen.of(showing)
    if (table is None) != (target is None):
        raise InputError("a cohort needs both TABLE and --target", remedy="give both, or neither")
    if table is None and method == "slope":
        raise InputError("--method slope needs TABLE", remedy="a prevalence alone sets no slope")
    prepare_output(out, force=force)
    fitted = load_model(model)
    data = None
    if table is not None:
        names = needed_features(fitted)
        data = read_table(table, target=target, features=names, **values(cells))
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
