"""A fitted model on other samples: an independent cohort, or unlabelled ones."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._notices import Notice
from .._validate import first_few
from ..estimators.center import FEWEST_ROWS, takes_batch
from ..estimators.pipeline import last_step, prepared_rows
from ..evaluation import (
    ExternalValidation,
    FeatureShift,
    check_shift,
    shift_notice,
    validate_predictions,
)
from ..evaluation.paired import compare_predictions
from ..evaluation.recalibration import (
    prior_of,
    recalibrate,
    recalibrated_share,
    recalibration_of,
    recalibration_text,
)
from ..evaluation.scores import class_scores
from ..io import InputError, Table, csv_text, known_labels
from ..io.errors import listed, option
from ..metrics import at_prevalence
from ..report import summarize_test
from .procedure import batch_of, named_rows


def needed_features(model: Any) -> list[str]:
    """Return the names of the features a model needs: those of its panel, and no others.

    A model trained on thousands of features predicts from an assay that measures ten.
    """
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        raise InputError(
            "the model does not know the names of its features",
            remedy="fit it on a data frame, or with select_panel",
        )
    return [str(names[j]) for j in np.flatnonzero(last_step(model).support_)]


class Predictions:
    """Labels, distances and probabilities of some samples, row by row.

    Parameters
    ----------
    model : estimator
        The fitted model.
    X : array or CSR matrix of shape (n_samples, n_panel)
        The panel's features, in the order of `needed_features`.
    where : str
        Name of the table, for messages.
    batch : ndarray of shape (n_samples,), optional
        Batches, for a model that centres them; by default all samples are one.

    Attributes
    ----------
    classes : list of str
    labels : ndarray of shape (n_samples,)
    distances : ndarray of shape (n_samples, n_classes)
    proba : ndarray of shape (n_samples, n_classes) or None
        None for a model that gives no probabilities.
    values : ndarray of shape (n_samples, n_panel)
        The panel's values as the model's last step takes them; ``nan`` where they were missing.
    imputed : dict of str to int
        How many missing values the model filled in each feature that had any.
    """

    def __init__(self, model: Any, X: Any, where: str = "", batch: Any = None) -> None:
        fitted = last_step(model)
        self.classes = [str(c) for c in fitted.classes_]
        self.model, self.where = model, where
        self.centred = _centred(model, np.zeros(X.shape[0]) if batch is None else batch, where)
        panel = np.flatnonzero(fitted.support_)
        blocks: list[tuple[Any, ...]] = []
        done = 0
        for seen in prepared_rows(model, X, batch):
            _refuse_gaps(model, seen, where, done)
            done += len(seen)
            with warnings.catch_warnings():  # columns were found by name, rows have none
                warnings.filterwarnings("ignore", message="X does not have valid feature names")
                decision = class_scores(fitted, seen, len(self.classes))[0]
                found = (fitted.predict(seen), fitted.distances(seen), decision, seen[:, panel])
                proba = (fitted.predict_proba(seen),) if hasattr(fitted, "predict_proba") else ()
            blocks.append(found + proba)
        self.labels, self.distances, self.decision, values, *more = map(
            np.concatenate, zip(*blocks)
        )
        self.proba = more[0] if more else None
        self.values = np.where(_gaps(X), np.nan, values)
        self.imputed = {
            _feature_name(model, j): n
            for j, n in zip(panel.tolist(), np.isnan(self.values).sum(axis=0).tolist())
            if n
        }

    @property
    def recalibrated(self) -> str:
        """What the model was recalibrated to, in words; empty where it was not."""
        return recalibration_text(self.model)

    def counts(self) -> str:
        """Say how many samples got each label."""
        drawn = Counter(str(label) for label in self.labels)
        return ", ".join(f"{drawn[label]} '{label}'" for label in self.classes)

    def imputed_text(self) -> str:
        """Say how many values were filled in, and in which features; empty where none was."""
        if not self.imputed:
            return ""
        total = sum(self.imputed.values())
        counts = [f"{n} of '{name}'" for name, n in self.imputed.items()]
        what = "1 missing value was" if total == 1 else f"{total:,} missing values were"
        return f"{what} replaced by medians of the training samples: {first_few(counts)}"

    def centred_text(self) -> str:
        """Say by what the samples were centred; empty where the model centres no batches."""
        if not self.centred:
            return ""
        sizes = [str(n) for n in self.centred]
        what = f"as one batch of {sizes[0]}"
        if len(sizes) > 1:
            what = f"in {len(sizes)} batches of {first_few(sizes)}"
        return (
            f"{self.where or 'These samples'}: this model centres batches, so the values were "
            f"centred by the means of these very samples, {what}. That is right only where the "
            "classes are mixed about as they were in training."
        )

    def shift(self, labels: Any = None) -> list[FeatureShift] | None:
        """Compare the panel's values with training; see `sparsegsvp.evaluation.check_shift`."""
        return check_shift(self.model, self.values, labels)

    def shift_notice(self, labels: Any = None) -> Notice | None:
        """Name the features whose values differ from training; None where none does."""
        return shift_notice(self.shift(labels), self.where or "these samples")

    def validate(
        self, labels: Any, *, positive: str | None = None, prevalence: float | None = None
    ) -> ExternalValidation:
        """Validate the predictions by true labels; see `sparsegsvp.evaluation.validate_external`.

        Call it before `set_prevalence`, which moves probabilities and labels.
        """
        of_interest = self.classes[-1] if positive is None else positive
        share = recalibrated_share(self.model, of_interest)
        return validate_predictions(
            np.asarray(labels).astype(str),
            self.labels.astype(str),
            self.classes,
            decision=self.decision,
            proba=self.proba,
            positive=of_interest,
            prevalence=share if prevalence is None else prevalence,
            prior=0.5 if share is None else share,
            shift=self.shift(labels),
        )

    def set_prevalence(self, positive: str, prevalence: float) -> None:
        """Move probabilities and labels to another share of the positive class than one half.

        The odds are multiplied by ``prevalence / (1 - prevalence)``, and every sample gets the
        label that is then the more probable.
        """
        name = option("prevalence")
        check_prevalence(prevalence, self.classes)
        if self.proba is None:
            raise InputError("the model gives no probabilities", remedy=f"leave {name} out")
        _check_positive(positive, self.classes)
        one = self.classes.index(positive)
        prior = prior_of(self.model, positive)
        moved = at_prevalence(self.proba[:, one], prevalence, prior=prior)
        self.proba = np.column_stack([moved, 1 - moved] if one == 0 else [1 - moved, moved])
        self.labels = np.array(self.classes)[self.proba.argmax(axis=1)]


def _centred(model: Any, batch: Any, where: str) -> list[int]:
    """Return the sizes of the batches that a model centres, or none; refuse a mean of too few."""
    if not any(takes_batch(step) for _, step in getattr(model, "steps", [])):
        return []
    names, counts = np.unique(np.asarray(batch).astype(str), return_counts=True)
    if counts.min() < FEWEST_ROWS:
        one = "there are" if len(names) == 1 else f"batch '{names[counts.argmin()]}' has"
        raise InputError(
            f"{one} only {counts.min()} samples, and this model centres each batch by its mean",
            where=where,
            remedy=f"predict whole batches of at least {FEWEST_ROWS} samples, or select again "
            f"without {option('center_batches')}",
        )
    return [int(n) for n in counts]


def check_prevalence(prevalence: float, classes: Sequence[str]) -> None:
    """Refuse a prevalence that is none, or that more than two classes cannot have."""
    name = option("prevalence")
    if len(classes) != 2:
        raise InputError(f"{name} is for two classes", remedy="leave it out")
    if not 0 < prevalence < 1:
        raise InputError(f"{name} is {prevalence:g}", remedy="it lies between 0 and 1")


def _check_positive(positive: str, classes: Sequence[str]) -> None:
    """Refuse a class of interest that the model does not know."""
    if positive not in classes:
        raise InputError(
            f"there is no class '{positive}' ({option('positive')})",
            remedy=f"the model knows {' and '.join(classes)}",
        )


def _gaps(X: Any) -> NDArray[np.bool_]:
    """Which values are missing; what a sparse matrix leaves out are zeros."""
    return np.isnan(X.toarray() if sparse.issparse(X) else np.asarray(X))


def _feature_name(model: Any, j: int) -> str:
    names = getattr(model, "feature_names_in_", None)
    return str(j) if names is None else str(names[j])


def _refuse_gaps(model: Any, X: NDArray[np.float64], where: str, done: int) -> None:
    """Refuse values that are missing still; ``done`` rows came before these."""
    gaps = np.argwhere(np.isnan(X))
    if len(gaps):
        raise InputError(
            f"a value of '{_feature_name(model, gaps[0][1])}' is missing in row "
            f"{done + gaps[0][0] + 1}",
            where=where,
            remedy=f"fill it; this model was trained without {option('impute', 'median')}",
        )


def predict_table(model: Any, table: Table) -> Predictions:
    """Predict the samples of a table that holds a model's panel and perhaps more columns."""
    names, batch = needed_features(model), batch_of(table)
    if list(table.feature_names) == names:
        return Predictions(model, table.X, table.source, batch)
    where = {name: j for j, name in enumerate(table.feature_names)}
    absent = [name for name in names if name not in where]
    if absent:
        raise InputError(
            f"{len(absent)} of the {len(names)} features of the panel are missing: "
            f"{listed(absent)}",
            where=table.source,
            remedy="names must match exactly",
        )
    return Predictions(model, table.X[:, [where[name] for name in names]], table.source, batch)


def validate_table(
    found: Predictions,
    table: Table,
    *,
    positive: str | None = None,
    prevalence: float | None = None,
) -> dict[str, Any]:
    """Validate predictions of a table by its labels.

    Parameters
    ----------
    found : Predictions
        From `predict_table`, at the model's own class shares.
    table : Table
        The samples, with labels.
    positive : str, optional
        The class of interest of two.
    prevalence : float, optional
        Its share where the model is to be used; by default the one that the model was recalibrated
        to, or else that of the table.

    Returns
    -------
    dict
        What ``results.json`` holds of an independent cohort.
    """
    if prevalence is not None:
        check_prevalence(prevalence, found.classes)
    table = known_labels(table, found.classes, "the model")
    validation = found.validate(table.labels, positive=positive, prevalence=prevalence)
    used = recalibration_of(found.model)
    shown = summarize_test(validation, source=table.source, digest=table.digest, recalibration=used)
    if used is not None and used.get("digest") == table.digest:
        shown["remarks"].append(
            "The model was recalibrated to these very samples: its calibration here proves nothing."
        )
    return shown


def compare_models(
    found: Predictions, other: Predictions, table: Table, *, positive: str | None = None
) -> dict[str, Any]:
    """Compare the predictions of two models on a table with labels, sample by sample.

    Parameters
    ----------
    found, other : Predictions
        From `predict_table` on this table, each at its model's own class shares.
    table : Table
        The samples, with labels.
    positive : str, optional
        The class of interest.

    Returns
    -------
    dict
        ``PairedModels.to_dict()``, DeLong's test of the areas and McNemar's of the labels, and
        ``remarks``.
    """
    if len(found.classes) != 2 or found.classes != other.classes:
        known = [" and ".join(part.classes) for part in (found, other)]
        raise InputError(
            f"only models of the same two classes can be compared: they know {known[0]}, and "
            f"{known[1]}",
            remedy=f"leave out {option('against')}",
        )
    truth = known_labels(table, found.classes, "the model").labels.astype(str)
    of_interest = positive if positive in found.classes else found.classes[-1]
    one = found.classes.index(of_interest)
    labels = found.labels.astype(str), other.labels.astype(str)
    ranks = found.decision[:, one], other.decision[:, one]
    paired = compare_predictions(truth, truth == of_interest, labels, ranks).to_dict()
    shares = [prior_of(part.model, of_interest) for part in (found, other)]
    remarks = []
    if paired["areas"] is None:
        remarks.append("The areas are not compared: that takes two samples of each class.")
    if shares[0] != shares[1]:
        remarks.append(
            f"Labels are for a prevalence of {shares[0]:.3g} and of {shares[1]:.3g}, so they may "
            "differ for that reason alone."
        )
    return {**paired, "remarks": remarks}


def recalibrate_model(
    model: Any,
    table: Table | None = None,
    *,
    positive: str | None = None,
    prevalence: float | None = None,
    method: str = "intercept",
) -> Any:
    """Return a copy of a model recalibrated to a prevalence, to a table with labels, or both.

    See `sparsegsvp.evaluation.recalibrate`; the table needs the panel's columns alone.
    """
    classes = [str(c) for c in last_step(model).classes_]
    if positive is not None:
        _check_positive(positive, classes)
    if prevalence is not None:
        check_prevalence(prevalence, classes)
    if table is None:
        return recalibrate(model, prevalence=prevalence, pos_label=positive)
    table = known_labels(table, classes, "the model")
    again = recalibrate(
        model,
        named_rows(table),
        table.labels,
        prevalence=prevalence,
        method=method,
        pos_label=positive,
        source=table.source,
    )
    last_step(again).recalibration_["digest"] = table.digest
    return again


def names_or_numbers(table: Table) -> list[str]:
    """Return the names of the samples, or their numbers from 1 where they have none."""
    return [
        str(name)
        for name in (
            range(1, table.X.shape[0] + 1) if table.sample_names is None else table.sample_names
        )
    ]


def predictions_csv(table: Table, found: Predictions) -> str:
    """Write one line per sample: label, distance to each plane, probabilities if any."""
    proba = found.proba
    header = ["sample", "prediction"] + ([] if table.y is None else ["label"])
    header += [f"distance to {label}" for label in found.classes]
    if proba is not None:
        word = "recalibrated probability of" if found.recalibrated else "probability of"
        header += [f"{word} {label}" for label in found.classes]
    rows = []
    for i, (name, label) in enumerate(zip(names_or_numbers(table), found.labels)):
        row: list[Any] = [name, str(label)] + ([] if table.y is None else [str(table.y[i])])
        row += list(found.distances[i])
        rows.append(row if proba is None else [*row, *proba[i]])
    return csv_text(header, rows)
