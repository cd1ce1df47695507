"""The common judge: one classifier on the columns of a panel, the same for every panel."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._baselines import common_classifier
from ._folds import Fold
from ._scores import mean_recall


def panel_score(
    matrix: Any, codes: NDArray[np.intp], fold: Fold, panel: NDArray[np.intp]
) -> tuple[float, NDArray[np.intp], NDArray[np.float64]]:
    """Return balanced accuracy, predicted codes and probabilities of the common classifier."""
    columns = matrix[:, np.sort(panel)]
    columns = columns.toarray() if hasattr(columns, "toarray") else np.asarray(columns, float)
    train, test = columns[fold.train], columns[fold.test]
    if np.isnan(columns).any():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a column with no value at all
            fill = np.nan_to_num(np.nanmedian(train, axis=0))
        train, test = (np.where(np.isnan(part), fill, part) for part in (train, test))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = common_classifier().fit(train, codes[fold.train])
        predicted = model.predict(test)
        score = mean_recall(codes[fold.test], predicted)
    return score, predicted, model.predict_proba(test)
