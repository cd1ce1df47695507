r"""Whether the values of other samples are shifted or scaled against those of training.

Another site's assay may measure a feature a little higher, or in other units. A model remembers
mean and variance of each class of its training samples for each feature of its panel, and other
samples are held against them.

With at least three labelled samples of each class, classes are compared with themselves: the
shift is the mean over the classes of their differences, so that it depends neither on how many
samples of each class there are, nor (to first order) on features having been chosen for their
difference. Otherwise the mix of classes is taken as unknown: only a mean outside the range of the
training classes' means is a shift, and only a spread that no mix of them has is a scaling.

A feature is named if a test at the level 0.01, shared by all features and both questions
(Bonferroni), rejects, and the effect is worth a word: half a standard deviation, or a factor
of 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm
from scipy.stats import t as student

from .._notices import Notice
from .._typing import Float64Array, Record
from ..estimators.pipeline import last_step

LEVEL = 0.01
LEAST_SHIFT = 0.5  # training standard deviations
LEAST_FACTOR = 2.0
# Fewer samples than this hardly know their own spread: they take that of training if it is
# larger, and the tails of Student's distribution with 4 degrees of freedom, as if they were long.
_FEW, _LONG_TAILS = 10, 4


@dataclass(frozen=True)
class FeatureShift(Record):
    """One feature of a panel in other samples, against training.

    Attributes
    ----------
    feature : str
    shift : float
        How much higher the values are, in training standard deviations within classes.
    factor : float or None
        Their standard deviation over that of training; None where too few samples show one.
    shifted, scaled : bool
        Whether that is beyond chance and worth a word.
    """

    feature: str
    shift: float
    factor: float | None
    shifted: bool
    scaled: bool


def check_shift(
    model: Any, values: ArrayLike, labels: ArrayLike | None = None
) -> list[FeatureShift] | None:
    """Compare the panel's values in other samples with those of the training samples.

    Parameters
    ----------
    model : estimator
        A fitted `GSVPSVM` or `GSVPSVMCV`, or a pipeline that ends in one.
    values : array-like of shape (n_samples, n_panel)
        The panel's features, in the model's order, as the last step of the model takes them;
        ``nan`` where missing.
    labels : array-like of shape (n_samples,), optional
        True classes, where they are known.

    Returns
    -------
    list of FeatureShift, or None
        One for each feature of the panel; None for a model that does not remember its training
        samples, because an older version fitted it.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsegsvp import GSVPSVM
    >>> from sparsegsvp.datasets import make_planted
    >>> from sparsegsvp.evaluation import check_shift
    >>> X, y = make_planted(100, 20, 2, effect=2.5, return_X_y=True)
    >>> model = GSVPSVM(n_features=2).fit(X, y)
    >>> other = X[:, model.get_support()] + [0.0, 3.0]
    >>> [found.shifted for found in check_shift(model, other, y)]
    [False, True]
    """
    fitted = last_step(model)
    memory = getattr(fitted, "panel_means_", None)
    if memory is None:
        return None
    x = np.asarray(values, dtype=np.float64)
    names = getattr(model, "feature_names_in_", None)
    panel = np.flatnonzero(fitted.support_)
    codes = None
    if labels is not None:
        place = {str(label): k for k, label in enumerate(fitted.classes_.tolist())}
        codes = np.array([place.get(str(label), -1) for label in np.asarray(labels).tolist()])
    alpha = LEVEL / (2 * max(len(panel), 1))
    found = []
    for j, feature in enumerate(panel.tolist()):
        known = np.isfinite(x[:, j])
        training = _Training(
            fitted.panel_means_[:, j], fitted.panel_variances_[:, j], fitted.class_counts_
        )
        groups = None if codes is None else codes[known]
        name = str(feature) if names is None else str(names[feature])
        found.append(_compare(name, x[known, j], groups, training, alpha))
    return found


@dataclass(frozen=True)
class _Training:
    """Mean, variance and number of training samples of each class, of one feature."""

    means: Float64Array
    variances: Float64Array
    counts: Float64Array

    @property
    def deviation(self) -> float:
        """Standard deviation within the classes, each counting the same."""
        return float(np.sqrt(self.variances.mean()))


def _compare(
    name: str, x: Float64Array, codes: Any, training: _Training, alpha: float
) -> FeatureShift:
    if not x.size or training.deviation == 0.0:
        return FeatureShift(name, 0.0, None, False, False)
    parts = [x[:0] if codes is None else x[codes == k] for k in range(len(training.means))]
    if min(part.size for part in parts) < 3:
        shift, p_shift = _shift_of_mix(x, training)
        factor, p_scale = _scale_of_mix(x, training)
    else:
        shift, p_shift = _shift_by_class(parts, training)
        within = np.concatenate([part - part.mean() for part in parts])
        factor, p_scale = _scale(within, within.size - len(parts), training.deviation, training)
    if factor == 0.0:
        p_scale = _constant(x, parts, training)
    shift /= training.deviation
    return FeatureShift(
        name,
        float(shift),
        factor,
        bool(p_shift <= alpha and abs(shift) >= LEAST_SHIFT),
        factor is not None
        and bool(p_scale <= alpha and max(factor, 1 / max(factor, 1e-300)) >= LEAST_FACTOR),
    )


def _shift_by_class(parts: Sequence[Float64Array], training: _Training) -> tuple[float, float]:
    """Mean difference over the classes, and its p-value by Welch's test."""
    gap = float(np.mean([part.mean() - mean for part, mean in zip(parts, training.means)]))
    terms = [_mean_variance(part, v) for part, v in zip(parts, training.variances)]
    terms += [(v / n, n - 1) for v, n in zip(training.variances, training.counts)]
    return gap, _welch(gap * len(parts), terms)


def _shift_of_mix(x: Float64Array, training: _Training) -> tuple[float, float]:
    """How far the mean lies outside the range of the class means, and its p-value."""
    mean, means = float(x.mean()), training.means
    if means.min() <= mean <= means.max():
        return 0.0, 1.0
    k = int(means.argmax() if mean > means.max() else means.argmin())
    gap = mean - float(means[k])
    own = _mean_variance(x, float(training.variances.max()))
    return gap, _welch(gap, [own, (training.variances[k] / training.counts[k], np.inf)])


def _mean_variance(x: Float64Array, in_training: float) -> tuple[float, float]:
    """Variance of the mean of some samples, and its degrees of freedom."""
    own = float(x.var(ddof=1)) if x.size > 1 else 0.0
    if x.size < _FEW:
        return max(own, in_training) / x.size, _LONG_TAILS
    return own / x.size, x.size - 1


def _welch(gap: float, terms: Sequence[tuple[float, float]]) -> float:
    """Two-sided p-value of a sum of means, with Satterthwaite's degrees of freedom."""
    variance = sum(term for term, _ in terms)
    if variance <= 0:
        return float(gap == 0)
    spread = sum(term**2 / max(freedom, 1) for term, freedom in terms)
    freedom = variance**2 / spread if spread > 0 else np.inf
    return float(2 * student.sf(abs(gap) / np.sqrt(variance), freedom))


def _scale_of_mix(x: Float64Array, training: _Training) -> tuple[float | None, float]:
    """How far the spread lies outside what mixes of the classes have, and its p-value."""
    if x.size < 2:
        return None, 1.0
    narrow = float(np.sqrt(training.variances.min()))
    wide = float(np.sqrt(training.variances.max() + np.ptp(training.means) ** 2 / 4))
    sd = float(x.std(ddof=1))
    if narrow <= sd <= wide:
        return 1.0, 1.0
    return _scale(x - x.mean(), x.size - 1, wide if sd > wide else narrow, training)


def _scale(
    centred: Float64Array, freedom: int, reference: float, training: _Training
) -> tuple[float | None, float]:
    """Ratio of standard deviations, and the p-value of its logarithm.

    The variance of a variance depends on the tails: the kurtosis of the samples enters, or
    that of the normal distribution where it is larger.
    """
    if freedom < _FEW - 1 or reference <= 0:
        return None, 1.0
    variance = float(centred @ centred) / freedom
    if variance == 0.0:
        return 0.0, 1.0
    kurtosis = max(3.0, float(np.mean(centred**4) / np.mean(centred**2) ** 2))
    error = np.sqrt((kurtosis - 1) / freedom + (kurtosis - 1) / training.counts.sum())
    factor = float(np.sqrt(variance)) / reference
    return factor, float(2 * norm.sf(abs(2 * np.log(factor)) / error))


def _constant(x: Float64Array, parts: Sequence[Float64Array], training: _Training) -> float:
    """Bound the probability that samples do not vary, by Cantelli's inequality.

    At most the share v / (v + g^2) of a class with variance v lies as far as g above its mean, or
    below it. A feature that is nearly always at its floor is so in other samples too.
    """
    sizes = np.array([part.size for part in parts])
    values = np.array([part[0] if part.size else x[0] for part in parts])
    total = training.variances + (values - training.means) ** 2
    shares = np.divide(training.variances, total, out=np.ones_like(total), where=total > 0)
    return float(np.prod(shares**sizes) if sizes.any() else shares.max() ** x.size)


def shift_notice(found: Sequence[FeatureShift] | None, where: str) -> Notice | None:
    """Say which features are shifted or scaled, and by how much; None where none is.

    Parameters
    ----------
    found : sequence of FeatureShift or None
        What `check_shift` returned.
    where : str
        What the samples are called.

    Returns
    -------
    Notice or None
    """
    odd = [one for one in found or () if one.shifted or one.scaled]
    if not odd:
        return None
    odd.sort(key=lambda one: -abs(one.shift))
    said = []
    for one in odd[:5]:
        parts = []
        if one.shifted:
            side = "higher" if one.shift > 0 else "lower"
            parts.append(f"{abs(one.shift):.1f} training standard deviations {side}")
        if one.scaled and one.factor is not None:
            spread = f"{one.factor:.2g} times as spread" if one.factor else "one value throughout"
            parts.append(spread)
        said.append(f"{one.feature} ({', '.join(parts)})")
    more = f" and {len(odd) - 5} more" if len(odd) > 5 else ""
    text = (
        f"In {where}, {len(odd)} of {len(found or ())} features of the panel "
        f"{'has' if len(odd) == 1 else 'have'} other values than in training: {', '.join(said)}"
        f"{more}. Check units, normalisation and assay before believing the predictions."
    )
    return Notice("shift", "caution", text)
