"""What ``results.json`` holds, and what the page is drawn from.

One document serves both: the command line writes it, `build_report` reads it. Everything in
it is JSON: text, numbers, lists and dictionaries; what is not known is None, never NaN.
Dates and timings are not part of it, so that two runs can be compared byte for byte.

`DOCUMENT` describes it and is what `validate` checks. A paragraph is a kind of dictionary, named
in its first line; the lines below have names of entries and their types and, after #, a
remark. ``[x]`` is a list of x, ``{x}`` a dictionary of x by text, ``x?`` x or None, ``a|b`` one
of these words, ``any`` whatever JSON can hold; a name with a capital is another paragraph.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from reprlib import repr as shown
from typing import Any

FORMAT = "sparsegsvp-results"
FORMAT_VERSION = 2

#: A document, as `DOCUMENT` describes it.
Results = dict[str, Any]

DOCUMENT = """\
Results
    format: str; format_version: int; versions: {str}; run: Run
    data: Data; model: Model; verdict: Verdict; notices: [Notice]; panel: [Feature]
    scores: {Interval}; thresholds: [Threshold]; stability: Stability?; learning: Learning?
    test: Test?
    figures: Figures; methods: Methods; beside: [Beside]
    evaluation: {any}?  # EvaluationResult.to_dict(): batches are [Batches], threshold_counts Counts

Interval  # an estimate with its confidence interval
    value, low, high, level: float

Run  # how the results came about
    command: str; parameters: {any}; seed: int?  # the command repeats the run, if it is known
    skipped: [str]  # what was left out to save time, in words

Data  # the table
    source, digest: str; target, units: str?  # units such as "log2(max(x, 1))"
    n_samples, n_features, n_missing: int; n_groups: int?
    classes: [str]; class_counts: [int]; positive: str?  # positive of two classes
    group_association: float?  # Cramer's V of group and class, None without groups
    record: [str]; dropped: {str}; roles: [Role]

Role  # columns of one role, for one reason; features are counted, and listed where it matters
    role: target|id|group|batch|covariate|ignored|feature; columns: [str]; count: int; reason: str

Model  # the fit on all samples
    estimator, decision, rule, selection, scoring: str
    q, tau, pool: float; n_splits: int; n_features: int?
    delta, intercept, scale, objective, kkt_residual: [float]; recalibration: Recalibration?

Recalibration  # other probabilities than those of the fit: for a prevalence, or by a cohort too
    prevalence, slope, intercept: float; positive, source, digest: str; n_samples: int?
    method: prevalence|intercept|slope

Verdict  # the answer, in words
    level: signal|inconclusive|none|not tested; headline: str; sentences: [str]

Notice  # something the reader has to know: `sparsegsvp._notices.Notice` as JSON
    code, title, text: str; severity: serious|caution|note

Feature  # one of the panel; lists have one entry per class
    feature: str; index, rank: int
    weights, coefficients: [float]  # of each plane: in standardised units, in those of the table
    effects: [float?]  # standardised mean difference of each class to the others
    higher_in: str?; auc: float?  # of the feature alone, for two classes, at least 0.5
    frequency, group_frequency: float?; substitutes: [Substitute]; boxes: [Box]

Substitute  # a feature that stands in for another
    feature: str; index: int; correlation, frequency: float

Box  # a box plot of one feature in one class; low and high are the ends of the whiskers
    label: str; low, q1, median, q3, high, mean: float; outliers: [float]
    n, n_outliers: int  # all of them, also those not listed

Stability  # how much the panel changes when the samples do; the index is Nogueira's
    source: stability selection|outer folds; n_panels: int; n_stable: int?; mean_size: float
    index, jaccard, threshold: float?; error_words: str?  # how many wrong features, or why unknown

Batches  # the audit of a batch variable: `sparsegsvp.evaluation.BatchAudit` as JSON
    name: str; batches, classes, sentences: [str]; counts: [[int]]  # counts by batch and class
    labels: ClassFromBatch; panel: BatchFromPanel?; unseen: UnseenBatches?
    confounded, complete, shown, lost: bool

ClassFromBatch  # the class told from the batch alone, by balanced accuracy
    accuracy, shuffled, p_value: float; strength: float?

BatchFromPanel  # the batch told from the panel within classes, by area under the ROC curve
    auc, p_value: float; by_batch: [float?]

UnseenBatches  # the score on batches that were left out, and on the same samples in ordinary folds
    score, loss: Interval; ordinary: float; recalls: [[float?]]; not_left_out: [str]
    together: bool; n_train: int

Beside  # a fixed panel on the folds of the selection; the difference is that of balanced accuracy
    kind: given panel|covariates alone; features, sentences: [str]; published: bool
    scores: {Interval}; difference: Interval; p_value: float

Learning  # growing parts of the samples: one entry of a list per size, the smallest first
    n_samples, n_repeats: int; fractions: [float]; sizes: [int]; scores: [[float]]  # by repeat
    accuracy: [Interval]; stability, panel_sizes: [float?]; chance: float; law: Law?
    forecast: [Forecast]; reason: str?; sentence: str  # why nothing is foretold; all in words

Law  # balanced accuracy of n samples: a - b n^-c
    a, b, c: float

Forecast
    n_samples: int; accuracy: Interval

Test  # what an independent cohort says; curves and what follows for two classes only
    source, digest: str; n_samples: int; class_counts: [int]; positive: str?
    recalibration: Recalibration?  # of the model, before
    prevalence: float?; observed_prevalence: bool  # share of positives, the cohort's own or given
    scores: {Interval}; recalls: [Interval?]; confusion: Confusion
    roc: Roc?; calibration: Calibration?; decision: Decision?
    thresholds: [Threshold]; threshold_counts: Counts?
    shift: [Shift]?; remarks: [str]  # the panel's values against training; what cannot be said

Threshold  # acting from a probability on, at the prevalence; own is that of the model's labels
    threshold, net_benefit: float; own: bool
    sensitivity, specificity: Interval; ppv, npv: Interval?

Counts  # acting from each probability on, for equal class shares, rising: for any prevalence
    threshold: [float]; tp, fp, tn, fn: [int]  # above the last one no sample is called positive

Shift  # a feature in a cohort: training standard deviations higher, times as spread
    feature: str; shift: float; factor: float?; shifted, scaled: bool

Methods  # for the paper
    paragraph: str; citations: [str]

Figures  # what each picture shows
    roc: Roc?; calibration: Calibration?; decision: Decision?
    confusion: Confusion?; permutation: Histogram?
    planes, pca_before, pca_after: Scatter?; path: Path?; weights: [Weights]; stability: [Bar]
    learning: Learned?; heatmap: Heatmap?; volcano: Volcano?; correlations: Correlations?

Roc  # ROC curves of the outer folds, averaged at equal false positive rates, or one cohort's
    fpr, tpr, low, high: [float]  # low to high: the middle 80% of the folds, empty for a cohort
    auc: Interval?; n_folds: int; label: str

Calibration  # observed against predicted share of the positive class, classes weighted equally
    predicted, observed: [float]; count: [int]; label: str; line: Line?

Line  # logistic recalibration of the log odds; of the intercept the slope is held at 1
    intercept: Interval; slope: Interval?; slope_intercept: float?

Decision  # decision curve: net benefit, in true positives per sample
    prevalence: float; label: str
    thresholds, net_benefit, low, high, treat_all: [float]

Confusion  # rows are true classes; out of fold, the mean over the repeats
    classes: [str]; counts: [[float]]

Histogram  # the permutation distribution
    edges: [float]; counts: [int]; observed, p_value, chance: float; n: int; stopped_early: bool

Scatter  # samples in a plane: at most so many are drawn of n_total; label holds class codes
    x, y: [float]; label: [int]; wrong: [bool]; name, classes: [str]
    probability: [float?]; positive: str?  # out of fold, of the positive class or of the own one
    x_title, y_title, note: str; n_total: int

Heatmap  # the panel over samples, clustered; values by feature, in standard deviations
    feature, name, classes: [str]; values: [[float?]]; label: [int]; wrong: [bool]
    probability: [float?]; positive: str?; n_total: int

Volcano  # features by difference of two classes and q-value; of many in one place only one
    feature, higher_in: [str]; difference, p, q: [float]; in_panel: [bool]
    contrast, unit: str; n_total, n_below: int  # how many there are, and have q of at most 0.05

Correlations  # within classes; a substitute stands for a feature of the panel
    feature: [str]; stands_for: [str?]; values: [[float]]

Path  # panels and inner cross-validation along the path
    features: [str]; steps: [Step]; chosen: int; score_name: str
    weights: [[float]]  # feature by step: the largest |weight| of any plane

Step  # one point of the path; features are positions among those of the path
    rho, score, score_error: float; accuracy, accuracy_error: float?; delta: [float]
    panel, entering, leaving: [int]

Weights  # sorted weights of one plane; as many features as are shown, the heaviest first
    label: str; features: [str]; weights: [float]; n_nonzero: int
    elbow: int?  # how many lie up to the elbow

Bar  # selection frequency of one feature
    feature: str; frequency: float; group_frequency: float?; in_panel: bool

Learned  # the learning curve: what was measured, and the law where something is foretold
    measured, ahead: Curve; stability: [float?]; n_samples: int; chance: float

Curve  # an estimate with its limits by number of samples
    n: [int]; value, low, high: [float]

Comparison  # what the page of a comparison reads of its results.json, which holds more
    command: str; data, parameters: {any}; versions: {str}; verdict: Words; comparison: Compared

Words
    headline: str; sentences: [str]

Compared
    reference: str; sizes: [int]; n_samples, n_features, n_folds: int
    rows: [Row]; curves: {any}; notes: [str]

Row  # a method at a size
    method, status: str; size: int; error: str?; score, native: Interval?
    standard_error: float?; stability, difference: {any}?; on_front, near_front: bool
"""


class DocumentError(ValueError):
    """A document that nothing can be drawn from or said of: another shape, or parts at odds."""


@contextmanager
def fitting_together() -> Iterator[None]:
    """Turn what goes wrong on the way from a document into one kind of error."""
    try:
        yield
    except (DocumentError, ImportError):
        raise
    except Exception as error:
        raise DocumentError(
            f"the parts of results do not fit together ({type(error).__name__}: "
            f"{shown(str(error))}): write the results again with the installed version."
        ) from error


def validate(results: Mapping[str, Any]) -> None:
    """Check that a document has the shape that `sparsegsvp.report.schema.DOCUMENT` describes.

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
    sparsegsvp.report.schema.DocumentError: results['versions'] is missing...
    """
    if not isinstance(results, Mapping):
        raise DocumentError(f"results must be a dictionary, got {type(results).__name__}.")
    if results.get("format") != FORMAT:
        raise DocumentError(
            f"results['format'] must be {FORMAT!r}, got {shown(results.get('format'))}."
        )
    if results.get("format_version") != FORMAT_VERSION:
        raise DocumentError(
            f"results['format_version'] is {shown(results.get('format_version'))} and this version "
            f"reads {FORMAT_VERSION}: write the results again with the installed version."
        )
    check_kind(results, "Results", "results")
    if results["evaluation"] is not None:
        batches = results["evaluation"].get("batches", [])
        check_kind(batches, "[Batches]", "results['evaluation']['batches']")
        counts = results["evaluation"].get("threshold_counts")
        check_kind(counts, "Counts?", "results['evaluation']['threshold_counts']")


def _read(description: str) -> dict[str, dict[str, str]]:
    """Kind of dictionary -> entry -> type, from a description."""
    kinds = {}
    for paragraph in description.strip().split("\n\n"):
        head, *lines = (line.split("#")[0].strip() for line in paragraph.splitlines())
        pairs = [pair.split(": ") for line in lines for pair in line.split("; ")]
        kinds[head] = {name: kind for names, kind in pairs for name in names.split(", ")}
    return kinds


_KINDS = _read(DOCUMENT)
_SCALARS: dict[str, Any] = {"str": str, "bool": bool, "int": int, "float": (int, float)}


def check_kind(value: Any, kind: str, where: str, *, open_ended: bool = False) -> None:
    """Check a value, and all that it holds, against a type of `DOCUMENT`.

    ``where`` is what an error calls the value. ``open_ended`` lets dictionaries hold more than
    is described.
    """
    parts: list[tuple[Any, str, str]] = []
    if kind == "any" or (kind.endswith("?") and value is None):
        return
    if kind.endswith("?"):
        parts = [(value, kind[:-1], "")]
    elif "|" in kind:
        if value not in kind.split("|"):
            raise DocumentError(f"{where} must be one of {kind.split('|')}, got {shown(value)}.")
    elif kind in _SCALARS:
        good = isinstance(value, _SCALARS[kind]) and isinstance(value, bool) == (kind == "bool")
        if not good or (kind == "float" and not math.isfinite(value)):
            raise DocumentError(f"{where} must be a finite {kind}, got {shown(value)}.")
    elif kind.startswith("["):
        if not isinstance(value, list):
            raise DocumentError(f"{where} must be a list, got {type(value).__name__}.")
        parts = [(item, kind[1:-1], f"[{i}]") for i, item in enumerate(value)]
    elif not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        found = type(value).__name__
        raise DocumentError(f"{where} must be a dictionary with text as keys, got {found}.")
    elif kind.startswith("{"):
        parts = [(item, kind[1:-1], f"[{key!r}]") for key, item in value.items()]
    else:
        entries = _KINDS[kind]
        for name, entry in entries.items():
            if name not in value:
                missing = f"{where}[{name!r}] is missing; it holds {kind}.{name}: {entry}."
                raise DocumentError(missing)
            parts.append((value[name], entry, f"[{name!r}]"))
        unknown = sorted(set(value) - set(entries))
        if unknown and not open_ended:
            raise DocumentError(f"{where} has an unknown entry {shown(unknown[0])}.")
    for part, its_kind, place in parts:
        check_kind(part, its_kind, where + place, open_ended=open_ended)
