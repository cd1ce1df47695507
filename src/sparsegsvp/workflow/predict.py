"""A fitted model on other samples: an independent cohort, or unlabelled ones."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..io import InputError, Table, csv_text
from ..io.errors import listed, option

_BLOCK = 4_000_000  # numbers built at a time


def last_step(model: Any) -> Any:
    """Return the last step of a pipeline, or the model itself."""
    return model.steps[-1][1] if hasattr(model, "steps") else model


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
    """

    def __init__(self, model: Any, X: Any, where: str = "") -> None:
        fitted = last_step(model)
        self.classes = [str(c) for c in fitted.classes_]
        panel = np.flatnonzero(fitted.support_)
        n, m = X.shape[0], int(fitted.n_features_in_)
        labels, distances, proba = [], [], []
        step = max(1, _BLOCK // m)
        for start in range(0, n, step):
            rows = X[start : start + step]
            rows = rows.toarray() if sparse.issparse(rows) else np.asarray(rows)
            # The model's own order of columns in one memory layout, whatever those of X, so
            # that the same operations give the same bits. What is not in the panel has weight
            # zero: any number will do.
            full = np.ones((rows.shape[0], m))
            full[:, panel] = rows
            seen = _before_the_planes(model, full, where)
            labels.append(fitted.predict(seen))
            distances.append(fitted.distances(seen))
            if hasattr(fitted, "predict_proba"):
                proba.append(fitted.predict_proba(seen))
        self.labels = np.concatenate(labels)
        self.distances = np.concatenate(distances)
        self.proba = np.concatenate(proba) if proba else None

    def counts(self) -> str:
        """Say how many samples got each label."""
        drawn = Counter(str(label) for label in self.labels)
        return ", ".join(f"{drawn[label]} '{label}'" for label in self.classes)

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


def _before_the_planes(model: Any, X: NDArray[np.float64], where: str) -> NDArray[np.float64]:
    """Run the steps of a pipeline before its last; refuse gaps that none of them fills."""
    steps = model.steps[:-1] if hasattr(model, "steps") else []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # names were matched before
        for _, step in steps:
            X = step.transform(X)
    gaps = np.argwhere(np.isnan(X))
    if len(gaps):
        names = getattr(model, "feature_names_in_", None)
        name = "" if names is None else f" of '{names[gaps[0][1]]}'"
        raise InputError(
            f"a value{name} is missing in row {gaps[0][0] + 1}",
            where=where,
            remedy=f"fill it; this model was trained without {option('impute', 'median')}",
        )
    return X


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
