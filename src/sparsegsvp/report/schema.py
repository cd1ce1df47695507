"""What ``results.json`` holds, and what the page is drawn from.

One document serves both: the command line writes it, `build_report` reads it. Everything in
it is JSON: text, numbers, lists and dictionaries; what is not known is None, never NaN.
Dates and timings are not part of it, so that two runs can be compared byte for byte.
"""

from __future__ import annotations

import math
import types
from collections.abc import Mapping
from typing import (
    Any,
    Literal,
    TypedDict,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

FORMAT = "sparsegsvp-results"
FORMAT_VERSION = 2


class IntervalDict(TypedDict):
    """An estimate with its confidence interval."""

    value: float
    low: float
    high: float
    level: float


class Run(TypedDict):
    """How the results came about."""

    command: str  # what repeats the run, empty when unknown
    parameters: dict[str, Any]
    seed: int | None
    skipped: list[str]  # what was left out to save time, in words


class Data(TypedDict):
    """The table."""

    source: str
    digest: str
    target: str | None
    n_samples: int
    n_features: int
    classes: list[str]
    class_counts: list[int]
    positive: str | None  # of two classes
    n_missing: int
    n_groups: int | None
    group_association: float | None  # Cramer's V of group and class, None without groups
    units: str | None  # of the values, e.g. "log2(max(x, 1))"
    record: list[str]
    dropped: dict[str, str]


class Model(TypedDict):
    """The fit on all samples."""

    estimator: str
    q: float
    tau: float
    pool: float
    delta: list[float]
    decision: str
    rule: str
    selection: str
    scoring: str
    n_splits: int
    max_features: int | None
    intercept: list[float]
    scale: list[float]
    objective: list[float]
    kkt_residual: list[float]


class Box(TypedDict):
    """A box plot of one feature in one class."""

    label: str
    n: int
    low: float  # ends of the whiskers
    q1: float
    median: float
    q3: float
    high: float
    mean: float
    outliers: list[float]
    n_outliers: int  # all of them, also those not listed


class SubstituteDict(TypedDict):
    """A feature that stands in for another."""

    feature: str
    index: int
    correlation: float
    frequency: float


class PanelFeature(TypedDict):
    """One feature of the panel; lists have one entry per class."""

    feature: str
    index: int
    rank: int
    weights: list[float]  # of each plane, in standardised units
    coefficients: list[float]  # of each plane, in the units of the table
    effects: list[float | None]  # standardised mean difference of each class to the others
    higher_in: str | None
    auc: float | None  # of the feature alone, for two classes, at least 0.5
    frequency: float | None
    group_frequency: float | None
    substitutes: list[SubstituteDict]
    boxes: list[Box]


class StabilityDict(TypedDict):
    """How much the panel changes when the samples do."""

    source: Literal["stability selection", "outer folds"]
    n_panels: int
    mean_size: float
    index: float | None  # Nogueira's
    low: float | None
    high: float | None
    jaccard: float | None
    threshold: float | None
    n_stable: int | None
    error_bound: float | None


class Roc(TypedDict):
    """ROC curves of the outer folds, averaged at equal false positive rates."""

    fpr: list[float]
    tpr: list[float]
    low: list[float]  # middle 80% of the fold curves
    high: list[float]
    auc: IntervalDict | None
    n_folds: int
    label: str


class Calibration(TypedDict):
    """Observed against predicted share of the positive class, classes weighted equally."""

    predicted: list[float]
    observed: list[float]
    count: list[int]
    label: str


class Confusion(TypedDict):
    """Out-of-fold predictions of the first repeat; rows are true classes."""

    classes: list[str]
    counts: list[list[int]]


class Histogram(TypedDict):
    """Permutation distribution."""

    edges: list[float]
    counts: list[int]
    observed: float
    p_value: float
    n: int
    stopped_early: bool
    chance: float


class Scatter(TypedDict):
    """Samples in a plane."""

    x: list[float]
    y: list[float]
    label: list[int]  # class codes
    wrong: list[bool]
    name: list[str]
    classes: list[str]
    x_title: str
    y_title: str
    n_total: int  # at most so many are drawn, see x
    note: str


class PathStep(TypedDict):
    """One point of the path."""

    rho: float
    delta: list[float]
    panel: list[int]  # positions in `PathFigure.features`
    entering: list[int]
    leaving: list[int]
    score: float
    score_error: float
    accuracy: float | None
    accuracy_error: float | None


class PathFigure(TypedDict):
    """Panels and inner cross-validation along the path."""

    features: list[str]
    steps: list[PathStep]
    weights: list[list[float]]  # feature by step: signed weight of largest size
    chosen: int
    score_name: str


class WeightCurve(TypedDict):
    """Sorted weights of one plane."""

    label: str
    features: list[str]  # heaviest first, as many as are shown
    weights: list[float]
    n_nonzero: int
    elbow: int | None  # how many lie up to the elbow


class StabilityBar(TypedDict):
    """Selection frequency of one feature."""

    feature: str
    frequency: float
    group_frequency: float | None
    in_panel: bool


class Figures(TypedDict):
    """What each picture shows."""

    roc: Roc | None
    calibration: Calibration | None
    confusion: Confusion | None
    permutation: Histogram | None
    planes: Scatter | None
    pca_before: Scatter | None
    pca_after: Scatter | None
    path: PathFigure | None
    weights: list[WeightCurve]
    stability: list[StabilityBar]


class Verdict(TypedDict):
    """The answer, in words."""

    level: Literal["signal", "inconclusive", "none", "not tested"]
    headline: str
    sentences: list[str]


class NoticeDict(TypedDict):
    """Something the reader has to know: `sparsegsvp._notices.Notice` as JSON."""

    code: str
    severity: Literal["serious", "caution", "note"]
    title: str
    text: str


class Methods(TypedDict):
    """For the paper."""

    paragraph: str
    citations: list[str]


class Test(TypedDict):
    """Scores on an independent cohort."""

    source: str
    digest: str
    n_samples: int
    class_counts: list[int]
    scores: dict[str, IntervalDict]
    confusion: Confusion


class Results(TypedDict):
    """The whole document."""

    format: str
    format_version: int
    versions: dict[str, str]
    run: Run
    data: Data
    model: Model
    verdict: Verdict
    notices: list[NoticeDict]
    panel: list[PanelFeature]
    scores: dict[str, IntervalDict]
    stability: StabilityDict | None
    test: Test | None
    figures: Figures
    methods: Methods
    evaluation: dict[str, Any] | None  # EvaluationResult.to_dict()


def validate(results: Mapping[str, Any]) -> None:
    """Check that a document has the shape of `Results`.

    Parameters
    ----------
    results : dict
        The document, for instance read from ``results.json``.

    Raises
    ------
    ValueError
        Naming the first place that is wrong, and what belongs there.

    Examples
    --------
    >>> from sparsegsvp.report import validate
    >>> validate({"format": "sparsegsvp-results", "format_version": 2})
    Traceback (most recent call last):
        ...
    ValueError: results['versions'] is missing...
    """
    if not isinstance(results, Mapping):
        raise ValueError(f"results must be a dictionary, got {type(results).__name__}.")
    if results.get("format") != FORMAT:
        raise ValueError(f"results['format'] must be {FORMAT!r}, got {results.get('format')!r}.")
    if results.get("format_version") != FORMAT_VERSION:
        raise ValueError(
            f"results['format_version'] is {results.get('format_version')!r} and this version "
            f"reads {FORMAT_VERSION}: write the results again with the installed version."
        )
    check(results, Results, "results")


def check(value: Any, kind: Any, where: str, *, open_ended: bool = False) -> None:
    """Check one value against an annotation, and what it holds.

    Parameters
    ----------
    value : object
        What was read.
    kind : type
        The annotation, of the kinds this module uses.
    where : str
        What the error calls the value.
    open_ended : bool, default=False
        Whether dictionaries may hold more than the annotation names.
    """
    origin, args = get_origin(kind), get_args(kind)
    if kind is Any:
        return
    if origin in (Union, types.UnionType):
        if value is None and type(None) in args:
            return
        inner = next(a for a in args if a is not type(None))
        check(value, inner, where, open_ended=open_ended)
    elif origin is Literal:
        if value not in args:
            raise ValueError(f"{where} must be one of {args}, got {value!r}.")
    elif is_typeddict(kind):
        _check_fields(value, kind, where, open_ended)
    elif origin is list:
        if not isinstance(value, list):
            raise ValueError(f"{where} must be a list, got {type(value).__name__}.")
        for i, item in enumerate(value):
            check(item, args[0], f"{where}[{i}]", open_ended=open_ended)
    elif origin is dict:
        if not isinstance(value, dict) or not all(isinstance(k, str) for k in value):
            raise ValueError(f"{where} must be a dictionary with text as keys.")
        for key, item in value.items():
            check(item, args[1], f"{where}[{key!r}]", open_ended=open_ended)
    else:
        _check_scalar(value, kind, where)


def _check_fields(value: Any, kind: Any, where: str, open_ended: bool) -> None:
    if not isinstance(value, dict | Mapping):
        raise ValueError(f"{where} must be a dictionary, got {type(value).__name__}.")
    fields = get_type_hints(kind)
    for name, annotation in fields.items():
        if name not in value:
            raise ValueError(f"{where}[{name!r}] is missing; it holds {kind.__name__}.{name}.")
        check(value[name], annotation, f"{where}[{name!r}]", open_ended=open_ended)
    unknown = sorted(set(value) - set(fields))
    if unknown and not open_ended:
        raise ValueError(f"{where} has an unknown entry {unknown[0]!r}.")


def _check_scalar(value: Any, kind: Any, where: str) -> None:
    is_bool = isinstance(value, bool)
    if kind is float:
        good = isinstance(value, int | float) and not is_bool and math.isfinite(value)
    elif kind is int:
        good = isinstance(value, int) and not is_bool
    else:
        good = isinstance(value, kind)
    if not good:
        raise ValueError(f"{where} must be a finite {kind.__name__}, got {value!r}.")
