"""A fitted model on other samples: labels, probabilities at a prevalence, validation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.impute import SimpleImputer

from .._notices import notice
from .._typing import Float64Array
from .._validate import check_real, listed, one_line, quote
from ..estimators.pipeline import last_step, prepared_rows
from ..evaluation import (
    ExternalValidation,
    FeatureShift,
    check_shift,
    estimator_prior,
    validate_external,
)
from ..io.cells import spelling_key
from ..io.errors import InputError, option
from ..io.table import Table
from ..metrics import move_prior
from ..report.charts import csv_text


def needed_features(model: Any) -> list[str]:
    """Return the names of the features a model needs: those of its panel, and no others."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        raise InputError(
            "the model does not know the names of its features",
            remedy="fit it on a data frame, or with select_panel",
        )
    return [str(names[j]) for j in np.flatnonzero(last_step(model).get_support())]


def check_cohort(cohort: Table, table: Table) -> Table:
    """Refuse a cohort that is the training table, or has labels which that table lacks."""
    if cohort.digest == table.digest:
        what = f"the cohort ({option('test')}) is the training table itself"
        raise InputError(what, cohort.source, "give samples that took no part in training")
    return known_labels(cohort, list(table.class_counts()), table.source)


def known_labels(cohort: Table, known: Sequence[str], source: str) -> Table:
    """Return a table with its labels spelled as those of a source that are known; refuse others."""
    keys = {spelling_key(name): name for name in known}
    names = {
        label: label if label in known else keys.get(spelling_key(label))
        for label in cohort.class_counts()
    }
    if strange := [label for label, name in names.items() if name is None]:
        what = f"label {quote(strange[0])} does not occur in {one_line(source)}"
        remedy = f"rename it, or leave these samples out; the classes are {listed(known)}"
        raise InputError(what, cohort.source, remedy)
    changed = [
        f"{quote(old)} is taken for {quote(new)}" for old, new in names.items() if old != new
    ]
    if not changed or cohort.y is None:
        return cohort
    said = f"labels are spelled otherwise than in {one_line(source)}: {', '.join(changed)}"
    remark = notice("spelling: cohort", source=one_line(cohort.source), text=said)
    y = np.array([names[str(label)] for label in cohort.y], dtype=object)
    return replace(cohort, y=y, record=(*cohort.record, said), notices=(*cohort.notices, remark))


def sample_names(table: Table) -> list[str]:
    """Return the names of the samples, or their numbers from 1 where they have none."""
    if table.sample_names is None:
        return [str(i + 1) for i in range(table.X.shape[0])]
    return [str(name) for name in table.sample_names]


@dataclass(frozen=True, eq=False)
class Predictions:
    """What a model says of the samples of a table; see `predict_table`.

    Attributes
    ----------
    classes : tuple of str
    labels : ndarray of shape (n_samples,)
    proba : ndarray of shape (n_samples, n_classes) or None
        None for a model that gives no probabilities.
    shares : ndarray of shape (n_classes,) or None
        The class shares that labels and probabilities are for; None if these are unknown.
    imputed : dict of str to int
        How many missing values were filled in each feature that had any.
    shift : list of FeatureShift or None
        How the values differ from those of training.
    table : Table
    """

    classes: tuple[str, ...]
    labels: np.ndarray
    proba: Float64Array | None
    shares: Float64Array | None
    imputed: dict[str, int]
    shift: list[FeatureShift] | None
    table: Table

    def counts(self) -> str:
        """Say how many samples got each label."""
        drawn = Counter(self.labels.tolist())
        return ", ".join(f"{drawn[label]} '{label}'" for label in self.classes)

    def remarks(self) -> list[str]:
        """Say what was filled in, what differs from training, and what class shares are meant."""
        remarks = []
        if self.imputed:
            total = sum(self.imputed.values())
            what = "1 missing value was" if total == 1 else f"{total:,} missing values were"
            features = listed(self.imputed)
            remarks.append(f"{what} replaced by medians of the training samples, in {features}.")
        odd = [s for s in self.shift or () if s.shifted or s.scaled]
        if odd:
            remarks.append(
                f"The values of {listed(s.feature for s in odd)} differ from those of the training "
                "samples by more than chance: other units, another platform or other samples?"
            )
        if self.shares is not None and self.proba is not None:
            shares = ", ".join(f"{p:.3g} '{c}'" for c, p in zip(self.classes, self.shares))
            remarks.append(f"Labels and probabilities are for class shares of {shares}.")
        return remarks

    def frame(self) -> Any:
        """Return a data frame with a row for each sample: prediction, label and probabilities."""
        import pandas as pd

        frame = pd.DataFrame({"sample": sample_names(self.table), "prediction": self.labels})
        if self.table.y is not None:
            frame["label"] = [str(label) for label in self.table.y]
        if self.proba is not None:
            names = [f"probability of {label}" for label in self.classes]
            frame[names] = self.proba
        return frame.set_index("sample")

    def csv(self) -> str:
        """Write a line for each sample: its name, prediction, label if known, probabilities."""
        return frame_csv(self.frame().reset_index())


def frame_csv(frame: Any) -> str:
    """Write a data frame as CSV, missing values as empty cells."""
    rows = frame.astype(object).where(frame.notna(), None).to_numpy().tolist()
    return csv_text(list(frame.columns), rows)


def predict_table(
    model: Any,
    table: Table,
    *,
    prevalence: float | str | None = None,
    positive: str | None = None,
) -> Predictions:
    """Predict the samples of a table that holds a model's panel and perhaps more columns.

    Parameters
    ----------
    model : estimator
        Fitted on data with names, as `select_panel` does.
    table : Table
        Samples; columns are found by their names.
    prevalence : float or "training", optional
        The class shares that labels and probabilities are for: that of the positive class of two,
        or those of the training samples. By default those the model is made for; for others see
        `sparsegsvp.metrics.move_prior`.
    positive : str, optional
        The class whose share `prevalence` is, if it is a number; by default the second.

    Returns
    -------
    Predictions

    Examples
    --------
    >>> import pandas as pd
    >>> from sparsegsvp import GSVPSVM
    >>> from sparsegsvp.datasets import make_planted
    >>> from sparsegsvp.io import make_table
    >>> from sparsegsvp.workflow import predict_table
    >>> X, y = make_planted(60, 20, 2, effect=2.5, return_X_y=True)
    >>> frame = pd.DataFrame(X, columns=[f"g{j}" for j in range(20)])
    >>> model = GSVPSVM(n_features=2).fit(frame, y.astype(str))
    >>> rare = predict_table(model, make_table(frame), prevalence=0.01)
    >>> equal = predict_table(model, make_table(frame))
    >>> bool((rare.labels == "1").sum() < (equal.labels == "1").sum())
    True
    """
    frame = panel_frame(model, table)
    last = last_step(model)
    classes = tuple(str(c) for c in last.classes_)
    gaps = np.isnan(frame.to_numpy())
    imputed = {n: int(k) for n, k in zip(frame.columns, gaps.sum(axis=0)) if k}
    steps = [step for _, step in getattr(model, "steps", ())]
    if imputed and not any(isinstance(step, SimpleImputer) for step in steps):
        row, column = np.argwhere(gaps)[0]
        raise InputError(
            f"a value of {quote(frame.columns[column])} is missing in sample "
            f"{quote(sample_names(table)[row])}",
            where=table.source,
            remedy="fill it; this model does not",
        )
    labels = model.predict(frame).astype(str)
    proba = model.predict_proba(frame) if hasattr(model, "predict_proba") else None
    shares = estimator_prior(model, len(classes))
    if prevalence is not None:
        wanted = _shares(prevalence, positive, classes, last)
        if proba is None:
            raise InputError(
                "the model gives no probabilities", remedy=f"leave {option('prevalence')} out"
            )
        trained = _shares("training", None, classes, last) if shares is None else shares
        proba, shares = move_prior(proba, trained, wanted), wanted
        labels = np.array(classes)[proba.argmax(axis=1)]
    shift = _shift(model, frame, None if table.y is None else table.labels)
    return Predictions(classes, labels, proba, shares, imputed, shift, table)


def validate_table(
    model: Any, table: Table, *, positive: str | None = None, prevalence: float | None = None
) -> ExternalValidation:
    """Validate a model on a table with labels, and compare its values with training."""
    table = known_labels(table, [str(c) for c in last_step(model).classes_], "the model")
    frame = panel_frame(model, table)
    validation = validate_external(
        model, frame, table.labels, pos_label=positive, prevalence=prevalence
    )
    shift = _shift(model, frame, table.labels)
    return replace(validation, shift=None if shift is None else tuple(shift))


def _shift(model: Any, frame: Any, labels: Any) -> list[FeatureShift] | None:
    """Compare the panel's values, as the last step takes them, with those of training."""
    values = frame.to_numpy()
    gaps = np.isnan(values)
    if hasattr(model, "steps"):
        values = prepared_rows(model, values)[:, last_step(model).get_support()]
    return check_shift(model, np.where(gaps, np.nan, values), labels)


def panel_frame(model: Any, table: Table) -> Any:
    """Return the columns that a model needs as a data frame, in the model's order."""
    import pandas as pd

    names, places = needed_features(model), {n: j for j, n in enumerate(table.feature_names)}
    absent = [name for name in names if name not in places]
    if absent:
        raise InputError(
            f"{len(absent)} of the {len(names)} features of the panel are missing: "
            f"{listed(absent)}",
            where=table.source,
            remedy="names must match exactly",
        )
    X = table.X[:, [places[name] for name in names]]
    return pd.DataFrame(X.toarray() if sparse.issparse(X) else X, columns=names)


def _shares(prevalence: Any, positive: str | None, classes: tuple[str, ...], last: Any) -> Any:
    """Return the class shares that a prevalence stands for."""
    name = option("prevalence")
    if prevalence == "training":
        counts = getattr(last, "class_counts_", None)
        if counts is None:
            raise InputError(
                "the model does not know how many samples of each class it was trained on",
                remedy=f"give {name} as a number",
            )
        return np.asarray(counts, dtype=np.float64) / np.sum(counts)
    try:
        share = check_real(name, float(prevalence), above=0, below=1)
    except (ValueError, TypeError):
        raise InputError(
            f"{name} is {quote(prevalence)}", remedy="give a number between 0 and 1, or 'training'"
        ) from None
    if len(classes) != 2:
        raise InputError(
            f"{name} as a number is for two classes, and the model knows {len(classes)}",
            remedy=f"use {option('prevalence', 'training')}, or move_prior of sparsegsvp.metrics",
        )
    of_interest = classes[1] if positive is None else positive
    if of_interest not in classes:
        raise InputError(
            f"there is no class '{positive}' ({option('positive')})",
            remedy=f"the model knows {' and '.join(classes)}",
        )
    return np.array([share if label == of_interest else 1 - share for label in classes])
