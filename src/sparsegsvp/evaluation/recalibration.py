"""Recalibration of a fitted model: to a prevalence, or to another cohort.

A model's probabilities are for equal class shares. Another share moves all log odds by one number.
A cohort measured elsewhere may need more: an intercept, where all probabilities are too high or too
low, or a slope too, where they are too extreme. The ranking of the samples stays as it was (but for
a slope below 0, which is refused); labels follow the new probabilities.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logit

from .._validate import check_choice, check_real
from ..estimators.pipeline import last_step
from ..metrics import at_prevalence, calibration_line

METHODS = ("intercept", "slope")


def recalibrate(
    model: Any,
    X: Any = None,
    y: ArrayLike | None = None,
    *,
    prevalence: float | None = None,
    method: str = "intercept",
    pos_label: Any = None,
    source: str = "",
) -> Any:
    r"""Return a copy of a model of two classes with other probabilities, and labels by them.

    Parameters
    ----------
    model : estimator
        A fitted `GSVPSVM` or `GSVPSVMCV` that gives probabilities, or a pipeline that ends in
        one. It is left as it is.
    X : array, sparse matrix or data frame of shape (n_samples, n_features), optional
        A cohort to recalibrate to; without one, only the prevalence changes.
    y : array-like of shape (n_samples,), optional
        Its labels.
    prevalence : float, optional
        Share of the positive class that probabilities are to be for; by default what they are
        for already (one half, if the model was not recalibrated before). The cohort's own share
        plays no part: a cohort seldom has that of the place where a model is used.
    method : {"intercept", "slope"}, default="intercept"
        Estimate from the cohort an intercept of the log odds, or slope and intercept. The first
        takes far fewer samples.
    pos_label : label, optional
        The class whose share `prevalence` is, by default the last in sorted order.
    source : str, default=""
        What the cohort is called, for the record.

    Returns
    -------
    estimator
        The last step has ``recalibration_``, which says what was done, goes with the model when
        it is saved, and is named wherever its probabilities are written.

    Examples
    --------
    >>> from sparsegsvp import GSVPSVM
    >>> from sparsegsvp.datasets import make_planted
    >>> from sparsegsvp.evaluation import recalibrate
    >>> X, y = make_planted(120, 20, 2, effect=1.5, return_X_y=True)
    >>> model = GSVPSVM().fit(X[:60], y[:60])
    >>> rare = recalibrate(model, prevalence=0.1)
    >>> p, q = model.predict_proba(X)[:, 1], rare.predict_proba(X)[:, 1]
    >>> bool(abs(q / (1 - q) / (p / (1 - p)) - 1 / 9).max() < 1e-9)
    True
    >>> recalibrate(model, X[60:], y[60:]).recalibration_["method"]
    'intercept'
    """
    check_choice("method", method, METHODS)
    fitted = last_step(model)
    classes = np.asarray(fitted.classes_)
    if len(classes) != 2 or not hasattr(fitted, "predict_proba"):
        raise ValueError("recalibration takes a model of two classes that gives probabilities.")
    if X is None and prevalence is None:
        raise ValueError("recalibration takes a prevalence, or a cohort with labels, or both.")
    one = 1 if pos_label is None else [str(c) for c in classes].index(str(pos_label))
    before = prior_of(model, classes[one])
    share = before if prevalence is None else prevalence
    check_real("prevalence", share, above=0, below=1)
    slope, shift, n_samples = 1.0, 0.0, None
    if X is not None:
        truth = np.asarray(y).astype(str)
        check_known(truth, classes)
        slope, shift = _line(model, X, truth == str(classes[one]), one, before, method)
        n_samples = int(truth.size)
    # log odds of the positive class: (b x - prior) * slope + shift + prior of the new share
    moved = slope * -float(logit(before)) + shift + float(logit(share))
    sign = 1.0 if one == 1 else -1.0
    again = copy.deepcopy(model)
    last = last_step(again)
    coef, intercept = last.calibrator_
    last.calibrator_ = (coef * slope, np.asarray(intercept * slope + sign * moved))
    earlier = recalibration_of(model)
    last.recalibration_ = {
        "prevalence": float(share),
        "positive": str(classes[one]),
        "method": "prevalence" if X is None else method,
        "slope": slope * (1.0 if earlier is None else float(earlier["slope"])),
        "intercept": shift,
        "n_samples": n_samples,
        "source": source,
        "digest": "",
    }
    return again


def check_known(labels: NDArray[Any], classes: Iterable[Any]) -> None:
    """Raise ValueError if a cohort has a class that a model does not know."""
    unknown = sorted({str(label) for label in labels.tolist()} - {str(c) for c in classes})
    if unknown:
        raise ValueError(f"the cohort has class {unknown[0]!r}, which the model does not know.")


def _line(
    model: Any, X: Any, positive: np.ndarray, one: int, prior: float, method: str
) -> tuple[float, float]:
    """Slope and intercept, at equal shares, that a cohort asks for."""
    if positive.all() or not positive.any():
        raise ValueError("the cohort has one class only: recalibration needs samples of both.")
    even = at_prevalence(model.predict_proba(X)[:, one], 0.5, prior=prior)
    line = calibration_line(positive, even)
    if method == "intercept":
        return 1.0, line.intercept.value
    if line.slope is None or line.slope_intercept is None:
        raise ValueError(
            "the cohort gives no slope, since the probabilities separate its classes or are all "
            "equal: recalibrate the intercept alone."
        )
    if line.slope.value <= 0:
        raise ValueError(
            f"the slope in the cohort is {line.slope.value:.2f}: there the model ranks the samples "
            "the wrong way round, which no recalibration repairs."
        )
    return line.slope.value, line.slope_intercept


def recalibration_of(model: Any) -> dict[str, Any] | None:
    """Return what was done to a model's probabilities; None where nothing was."""
    return getattr(last_step(model), "recalibration_", None)


def recalibrated_share(model: Any, positive: Any) -> float | None:
    """Return the share of a class that a model was recalibrated to; None where it was not."""
    found = recalibration_of(model)
    if found is None:
        return None
    share = float(found["prevalence"])
    return share if str(found["positive"]) == str(positive) else 1 - share


def prior_of(model: Any, positive: Any) -> float:
    """Return the share of a class that a model's probabilities are for."""
    share = recalibrated_share(model, positive)
    return 0.5 if share is None else share


def recalibration_text(model: Any) -> str:
    """Say what a model was recalibrated to; empty where it was not."""
    found = recalibration_of(model)
    return "" if found is None else f"probabilities are recalibrated: {recalibration_words(found)}"


def recalibration_words(found: Mapping[str, Any]) -> str:
    """Say what ``recalibration_`` records: the prevalence, and the cohort if there was one."""
    text = f"a prevalence of {100 * found['prevalence']:.3g}% of '{found['positive']}'"
    if found["method"] != "prevalence":
        what = "intercept" if found["method"] == "intercept" else "slope and intercept"
        where = f" of {found['source']}" if found["source"] else ""
        text += f", {what} by {found['n_samples']} samples{where}"
    return text


def recalibration_effect(found: Mapping[str, Any]) -> str:
    """Say what a recalibration did to the log odds at equal class shares.

    Examples
    --------
    >>> from sparsegsvp.evaluation.recalibration import recalibration_effect
    >>> recalibration_effect({"method": "slope", "slope": 0.8, "intercept": -0.3})
    'at equal class shares, log odds were multiplied by 0.80 and moved by -0.30'
    """
    if found["method"] == "prevalence":
        return "at equal class shares, log odds are as they were"
    by = f"multiplied by {found['slope']:.2f} and " if found["method"] == "slope" else ""
    return f"at equal class shares, log odds were {by}moved by {found['intercept']:+.2f}"
