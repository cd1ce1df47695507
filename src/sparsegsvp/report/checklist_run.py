"""Sentences of a run on the parts of the TRIPOD+AI checklist, by their numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from ..evaluation.recalibration import recalibration_effect, recalibration_words
from ..evaluation.scores import TITLES
from . import words
from .words import Part, plural

#: The function that fills a part, by its number; it yields sentences, or pieces of them.
FROM_RUN: dict[str, Callable[[Part], Iterator[str]]] = {}
Filled = TypeVar("Filled", bound=Callable[[Part], Iterator[str]])


def _says(*numbers: str) -> Callable[[Filled], Filled]:
    """Make a function the one that fills these parts."""

    def register(fill: Filled) -> Filled:
        FROM_RUN.update(dict.fromkeys(numbers, fill))
        return fill

    return register


def _samples(r: Part) -> str:
    return _described(r["data"], r)


def _cohort(r: Part) -> str:
    return _described(r["test"], r)


def _described(part: Part, r: Part) -> str:
    """Write how many samples a part of the document is of, in all and by class."""
    counts = words.counted(part["class_counts"], r["data"]["classes"])
    return f"{plural(part['n_samples'], 'sample')} ({counts})"


def _folds(r: Part) -> tuple[int, int]:
    """Return the number of outer folds and of their repeats."""
    found = r["evaluation"]["folds"]
    repeats = len({fold["repeat"] for fold in found})
    return len(found) // max(repeats, 1), repeats


@_says("1")
def _title(r: Part) -> Iterator[str]:
    what = words.contrast(r["data"]["classes"], r["data"]["positive"])
    done = "Development" if r["evaluation"] is None else "Development and internal validation"
    done += " and evaluation in an independent cohort" if r["test"] else ""
    yield f"Proposed: {done} of a model with {plural(len(r['panel']), 'feature')} to tell {what}."


@_says("2")
def _abstract(r: Part) -> Iterator[str]:
    yield from r["verdict"]["sentences"]
    if r["test"]:
        yield f"In the independent cohort, {_cohort(r)}: {_scores(r['test']['scores'])}."


@_says("4")
def _objectives(r: Part) -> Iterator[str]:
    yield "Development of a model, with selection of its predictors"
    yield "and without an estimate." if r["evaluation"] is None else "and internal validation."
    if r["test"]:
        yield "Evaluation in an independent cohort."


@_says("5a")
def _sources(r: Part) -> Iterator[str]:
    for part, name in ((r["data"], "Development"), (r["test"], "Evaluation")):
        if part and (part["source"] or part["digest"]):
            digest = f" (SHA-256 {part['digest']})" if part["digest"] else ""
            yield f"{name}: {part['source'] or 'a table in memory'}{digest}."


@_says("7")
def _preparation(r: Part) -> Iterator[str]:
    data, asked = r["data"], r["run"]["parameters"]
    for text in data["record"]:
        yield f"{text[:1].upper()}{text[1:].rstrip('.')}."
    if asked.get("log2"):
        yield f"Values were taken as log2(max(x, {asked['floor']:g}))."
    for line in data["roles"]:
        if line["role"] in ("batch", "covariate", "ignored"):
            names = words.listed(line["columns"])
            yield f"Left out as {line['role']} ({line['reason']}): {names}."
    checks = [n for n in r["notices"] if n["code"] in _ABOUT_THE_TABLE]
    for notice in checks:
        yield f"{notice['title']}: {notice['text']}"
    if data["roles"] and not checks:
        yield "The checks of the table (repeated rows, identifiers, columns that give the class "
        yield "away, raw values) found nothing."


_ABOUT_THE_TABLE = {"repeats", "orientation", "roles", "patients", "leak", "table", "spelling",
                    "detection", "raw", "batch"}  # fmt: skip


@_says("8a")
def _outcome(r: Part) -> Iterator[str]:
    data = r["data"]
    column = f"The column {data['target']}" if data["target"] else "The label"
    counts = words.counted(data["class_counts"], data["classes"])
    interest = f"; the class of interest is {data['positive']}" if data["positive"] else ""
    yield f"{column} has {len(data['classes'])} classes: {counts}{interest}."


@_says("9a")
def _candidates(r: Part) -> Iterator[str]:
    yield f"All {plural(r['data']['n_features'], 'numeric column')} of the table were candidates;"
    yield "selection among them took place inside every training part."
    if r["data"]["dropped"]:
        left_out = [f"{name} ({why})" for name, why in r["data"]["dropped"].items()]
        yield f"Left out: {words.listed(left_out)}."


@_says("9b")
def _predictors(r: Part) -> Iterator[str]:
    names = [feature["feature"] for feature in r["panel"]]
    if names:
        yield f"The panel: {words.listed(names, 30)}."
    if r["data"]["units"]:
        yield f"Values as {r['data']['units']}."


@_says("10")
def _sample_size(r: Part) -> Iterator[str]:
    data = r["data"]
    per = data["n_features"] / data["n_samples"]
    yield f"{_samples(r)}, {per:.3g} candidate features per sample."
    if r["learning"] is not None:
        yield r["learning"]["sentence"]
    else:
        yield "Whether more samples would help was not measured (no learning curve in this run)."


@_says("11")
def _missing(r: Part) -> Iterator[str]:
    data = r["data"]
    n = data["n_missing"]
    if not n:
        yield "No value was missing."
        return
    share = n / (data["n_samples"] * data["n_features"])
    yield f"{plural(n, 'value')} ({share:.2%}) were missing and filled with the feature's median,"
    yield "computed in each training part alone; no sample was left out for it."


@_says("12a")
def _partition(r: Part) -> Iterator[str]:
    yield f"The final model was fitted on all {_samples(r)}."
    if r["evaluation"] is not None:
        folds, repeats = _folds(r)
        grouped = ", groups whole" if r["data"]["n_groups"] is not None else ""
        yield f"The procedure was estimated by nested cross-validation: {plural(repeats, 'repeat')}"
        yield f"of {folds} stratified outer folds{grouped}, with selection and tuning inside."
    if r["test"]:
        yield f"An independent cohort of {_cohort(r)} took no part in the fit."


@_says("12b")
def _handling(r: Part) -> Iterator[str]:
    asked = r["run"]["parameters"]
    if asked.get("log2"):
        yield f"Values were taken as log2(max(x, {asked['floor']:g}))."
    yield "Features were standardised with means and spreads of the training part, and enter"
    yield "linearly; none was categorised."


@_says("12c")
def _model(r: Part) -> Iterator[str]:
    yield r["methods"]["paragraph"]


@_says("12d")
def _clusters(r: Part) -> Iterator[str]:
    n = r["data"]["n_groups"]
    if n is not None:
        yield f"{plural(n, 'group')} were kept whole in all folds, so that none is on both sides"
        yield "of a split; the model has no term for them."
    for audit in (r["evaluation"] or {}).get("batches", ()):
        yield f"{audit['name']} ({plural(len(audit['batches']), 'value')}) was audited."
        yield from audit["sentences"]


@_says("12e")
def _measures(r: Part) -> Iterator[str]:
    names = [_title_of(name) for name in r["scores"] if name != "prevalence"]
    if names and r["figures"]["calibration"]:
        names.append("calibration intercept and slope")
    if names:
        yield f"Measures: {words.listed(names, 20)}. Balanced accuracy, Brier score and log loss"
        yield "count every class alike, so that they do not follow the shares of this study."
    else:
        yield "Nothing was measured in this run."
    drawn = [title for key, title in _PLOTS.items() if r["figures"][key]]
    if drawn:
        yield f"Plots: {words.listed(drawn, 9)}."
    if r["evaluation"] is not None and r["evaluation"]["permutation"]:
        draws = len(r["evaluation"]["permutation"]["distribution"])
        yield f"A permutation test ({plural(draws, 'draw')}) compares with shuffled labels."
    if r["stability"] is not None:
        yield "Nogueira's index measures the stability of the panel."


_PLOTS = {
    "roc": "ROC curve",
    "calibration": "calibration curve",
    "decision": "decision curve",
    "confusion": "confusion matrix",
    "learning": "learning curve",
}


@_says("12f")
def _updating(r: Part) -> Iterator[str]:
    found = r["model"]["recalibration"]
    if found is None:
        yield "The model was not updated or recalibrated after its evaluation in this run."
    else:
        yield f"Its probabilities were recalibrated to {recalibration_words(found)}. Panel and"
        yield "ranking stayed as they were; predictions made with the model say so."


@_says("24")
def _updated(r: Part) -> Iterator[str]:
    found = r["model"]["recalibration"]
    if found is None:
        yield from _updating(r)
    else:
        effect = recalibration_effect(found)
        yield f"{effect[:1].upper()}{effect[1:]}; all were then moved to a prevalence of"
        yield f"{100 * found['prevalence']:.3g}% of {found['positive']}."
        yield "How the recalibrated model does takes samples that it was not recalibrated to."


@_says("12g")
def _predicting(r: Part) -> Iterator[str]:
    yield "By the saved model, from the panel's features alone, with the scaling and medians of"
    yield "the development data; nothing of an evaluated sample is used for another's prediction."
    if r["evaluation"] is not None:
        yield "In the outer folds, by the fit that did not see the sample."


@_says("13")
def _imbalance(r: Part) -> Iterator[str]:
    counts = r["data"]["class_counts"]
    yield f"The largest class has {max(counts) / min(counts):.1f} times the samples of the"
    yield "smallest. No sample was added, left out or repeated for it: every class counts alike in"
    yield "fitting, tuning and scores."
    if r["model"]["recalibration"] is None:
        yield "Probabilities are therefore for equal shares of the classes and have to be moved to"
        yield "the prevalence where the model is used."
    else:
        yield "Probabilities were recalibrated afterwards (12f)."


@_says("15")
def _output(r: Part) -> Iterator[str]:
    found = r["model"]["recalibration"]
    shares = (
        "equal shares" if found is None else f"a prevalence of {100 * found['prevalence']:.3g}%"
    )
    yield f"The distance to the plane of each class, a probability of each class for {shares},"
    yield "and the label of the likeliest class (for two classes: a threshold of 0.5)."
    if r["thresholds"]:
        share = next(row["threshold"] for row in r["thresholds"] if row["own"])
        yield "Sensitivity, specificity, predictive values and net benefit at other thresholds, at"
        yield f"a prevalence of {100 * share:.3g}%, are in results.json; none was chosen by them."


@_says("16", "20c")
def _differences(r: Part) -> Iterator[str]:
    if r["test"]:
        yield f"Development: {_samples(r)}. Evaluation: {_cohort(r)}."
        yield "Features and labels have the same names in both."
        if r["test"]["shift"] is not None:
            odd = [f["feature"] for f in r["test"]["shift"] if f["shifted"] or f["scaled"]]
            which = words.listed(odd) if odd else "no feature"
            yield f"Of the panel's values, compared within classes, those of {which}"
            yield "differ beyond chance, by half a standard deviation or a factor of 2 in spread."


@_says("18f")
def _code(r: Part) -> Iterator[str]:
    used = ", ".join(f"{name} {v}" for name, v in r["versions"].items())
    yield f"Made with {used}."
    if r["run"]["seed"] is not None:
        yield f"Seed {r['run']['seed']}."
    if r["run"]["command"]:
        yield f"The run is repeated by: {r['run']['command']}"


@_says("20a")
def _flow(r: Part) -> Iterator[str]:
    yield f"In the table: {_samples(r)}."
    if r["test"]:
        yield f"In the evaluation cohort: {_cohort(r)}."


@_says("21")
def _events(r: Part) -> Iterator[str]:
    yield f"Final fit and selection: {_samples(r)}."
    if r["evaluation"] is not None:
        folds, repeats = _folds(r)
        yield f"Internal validation: the same samples, each predicted {_times(repeats)} by a fit"
        yield f"on {folds - 1} of {folds} folds."
    if r["stability"] is not None and r["stability"]["source"] == "stability selection":
        yield f"Stability: {r['stability']['n_panels']} refits on halves of the samples."
    if r["learning"] is not None:
        sizes = [str(n) for n in r["learning"]["sizes"]]
        yield f"Learning curve: {r['learning']['n_repeats']} parts each of"
        yield f"{words.listed(sizes, 9)} samples."
    if r["test"]:
        yield f"Evaluation: {_cohort(r)}."


def _times(n: int) -> str:
    return "once" if n == 1 else f"{n} times"


@_says("22")
def _whole_model(r: Part) -> Iterator[str]:
    model = r["model"]
    yield f"{model['estimator']} with {plural(len(r['panel']), 'feature')}: penalty exponent q ="
    yield f"{model['q']:g}, floor tau = {model['tau']:g}, pooling {model['pool']:g}, penalties"
    yield f"{', '.join(f'{d:.3g}' for d in model['delta'])}. Weights, intercepts and coefficients"
    yield "in the units of the table are in results.json and panel.csv; model.skops holds the"
    yield "fitted model with scaling and calibration, ready to predict."


def _scores(scores: Part) -> str:
    return "; ".join(f"{_title_of(name)} {words.interval(s)}" for name, s in scores.items())


def _title_of(name: str) -> str:
    """Return what readers call a score."""
    return TITLES.get(name, name.replace("brier", "Brier score").replace("_", " "))


@_says("23a")
def _performance(r: Part) -> Iterator[str]:
    if r["scores"]:
        known = {name: s for name, s in r["scores"].items() if name != "prevalence"}
        yield f"Internal validation: {_scores(known)}{_calibration(r['figures'])}."
    else:
        yield "Not estimated in this run."
    if r["test"]:
        yield f"Independent cohort: {_scores(r['test']['scores'])}{_calibration(r['test'])}."


def _calibration(part: Part) -> str:
    """Write calibration intercept and slope of a part of the document that may have them."""
    found = part["calibration"]
    return f"; calibration {words.line_words(found['line'])}" if found and found["line"] else ""


@_says("23b")
def _by_cluster(r: Part) -> Iterator[str]:
    for audit in (r["evaluation"] or {}).get("batches", ()):
        unseen = audit["unseen"]
        if unseen is None:
            continue
        yield f"On values of {audit['name']} that were left out of the fit, balanced accuracy"
        yield f"{words.interval(unseen['score'])}, where ordinary folds give"
        yield f"{words.number(unseen['ordinary'])} on the same samples."
        said = []
        for batch, recalls in zip(audit["batches"], unseen["recalls"]):
            known = [(c, x) for c, x in zip(audit["classes"], recalls) if x is not None]
            said += [f"{batch}: " + ", ".join(f"{x:.0%} of {c}" for c, x in known)] if known else []
        if said:
            yield f"Recognised when left out: {words.listed(said, 12)}."


@_says("25")
def _interpretation(r: Part) -> Iterator[str]:
    yield f"{r['verdict']['headline'].rstrip('.')}."


@_says("26")
def _limitations(r: Part) -> Iterator[str]:
    for notice in r["notices"]:
        yield f"{notice['title']}: {notice['text']}"
    if not r["test"]:
        yield "No independent cohort was predicted."


@_says("27a")
def _input(r: Part) -> Iterator[str]:
    filled = r["run"]["parameters"].get("impute")
    if filled == "median":
        yield "A missing value is filled with the median of the development data, and said."
    elif filled is not None:
        yield "Missing values are refused."
    yield "A missing column and values that are no numbers are refused; other columns are ignored."


@_says("27c")
def _next(r: Part) -> Iterator[str]:
    if r["learning"] is not None:
        yield r["learning"]["sentence"]
