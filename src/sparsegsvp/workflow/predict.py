"""A fitted model on other samples: an independent cohort, or unlabelled ones."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..estimators.pipeline import last_step, prepared_rows
from ..io import InputError, Table, csv_text
from ..io.errors import listed, option


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

    Attributes
    ----------
    classes : list of str
    labels : ndarray of shape (n_samples,)
    distances : ndarray of shape (n_samples, n_classes)
    proba : ndarray of shape (n_samples, n_classes) or None
        None for a model that gives no probabilities.
    imputed : dict of str to int
        How many missing values the model filled in each feature that had any.
    """

    def __init__(self, model: Any, X: Any, where: str = "") -> None:
        fitted = last_step(model)
        self.classes = [str(c) for c in fitted.classes_]
        labels, distances, proba = [], [], []
        done = 0
        for seen in prepared_rows(model, X):
            _refuse_gaps(model, seen, where, done)
            done += len(seen)
            labels.append(fitted.predict(seen))
            distances.append(fitted.distances(seen))
            if hasattr(fitted, "predict_proba"):
                proba.append(fitted.predict_proba(seen))
        self.labels = np.concatenate(labels)
        self.distances = np.concatenate(distances)
        self.proba = np.concatenate(proba) if proba else None
        self.imputed = {
            _feature_name(model, j): n
            for j, n in zip(np.flatnonzero(fitted.support_).tolist(), _missing(X))
            if n
        }

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
        shown = ", ".join(counts[:5]) + (f" and {len(counts) - 5} more" if counts[5:] else "")
        what = "1 missing value was" if total == 1 else f"{total:,} missing values were"
        return f"{what} replaced by medians of the training samples: {shown}"

    def set_prevalence(self, positive: str, prevalence: float) -> None:
        """Move probabilities and labels to another share of the positive class than one half.

        The odds are multiplied by ``prevalence / (1 - prevalence)``, and every sample gets the
        label that is then the more probable.
        """
        name = option("prevalence")
        if len(self.classes) != 2:
            raise InputError(f"{name} is for two classes", remedy="leave it out")
        if not 0 < prevalence < 1:
            raise InputError(f"{name} is {prevalence:g}", remedy="it lies between 0 and 1")
        if self.proba is None:
            raise InputError("the model gives no probabilities", remedy=f"leave {name} out")
        if positive not in self.classes:
            raise InputError(
                f"there is no class '{positive}' ({option('positive')})",
                remedy=f"the model knows {' and '.join(self.classes)}",
            )
        share = np.full(2, 1 - prevalence)
        share[self.classes.index(positive)] = prevalence
        weighted = self.proba * share
        self.proba = weighted / weighted.sum(axis=1, keepdims=True)
        self.labels = np.array(self.classes)[self.proba.argmax(axis=1)]


def _missing(X: Any) -> list[int]:
    """How many values of each column are missing; what a sparse matrix leaves out are zeros."""
    if sparse.issparse(X):
        columns = X.tocoo().col[np.isnan(X.tocoo().data)]
        return [int(n) for n in np.bincount(columns, minlength=X.shape[1])]
    return [int(n) for n in np.isnan(np.asarray(X)).sum(axis=0)]


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
    names = needed_features(model)
    if list(table.feature_names) == names:
        return Predictions(model, table.X, table.source)
    where = {name: j for j, name in enumerate(table.feature_names)}
    absent = [name for name in names if name not in where]
    if absent:
        raise InputError(
            f"{len(absent)} of the {len(names)} features of the panel are missing: "
            f"{listed(absent)}",
            where=table.source,
            remedy="names must match exactly",
        )
    return Predictions(model, table.X[:, [where[name] for name in names]], table.source)


def predictions_csv(table: Table, found: Predictions) -> str:
    """Write one line per sample: label, distance to each plane, probabilities if any."""
    proba = found.proba
    header = ["sample", "prediction"] + ([] if table.y is None else ["label"])
    header += [f"distance to {label}" for label in found.classes]
    if proba is not None:
        header += [f"probability of {label}" for label in found.classes]
    rows = []
    for i, label in enumerate(found.labels):
        name = str(i + 1) if table.ids is None else str(table.ids[i])
        row: list[Any] = [name, str(label)] + ([] if table.y is None else [str(table.y[i])])
        row += list(found.distances[i])
        rows.append(row if proba is None else [*row, *proba[i]])
    return csv_text(header, rows)
