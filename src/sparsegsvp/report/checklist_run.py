"""What a run says on the parts of the TRIPOD+AI checklist.

Each function goes through a stretch of the checklist and adds sentences, or pieces of them, to
``say``, by the number of the part.
"""

from __future__ import annotations

from collections import defaultdict

from ..evaluation.recalibration import recalibration_effect, recalibration_words
from ..evaluation.scores import SCORE_TITLES
from .words import (
    Part,
    class_counts_text,
    contrast,
    folds_of,
    interval,
    joined,
    line_words,
    number,
    percent,
    plural,
)

Said = defaultdict[str, list[str]]


def checklist_answers(results: Part) -> dict[str, str]:
    """Return what the run says on the parts that it knows something about, by number."""
    say: Said = defaultdict(list)
    for stretch in (_introduction, _data, _analysis, _output, _participants, _performance, _use):
        stretch(results, say)
    return {part: " ".join(pieces) for part, pieces in say.items()}


def _introduction(r: Part, say: Said) -> None:
    """Title, abstract and objectives."""
    estimated, test = r["evaluation"] is not None, r["test"]
    what = contrast(r["data"]["classes"], r["data"]["positive"])
    done = "Development and internal validation" if estimated else "Development"
    done += " and evaluation in an independent cohort" if test else ""
    say["1"] += [
        f"Proposed: {done} of a model with {plural(len(r['panel']), 'feature')} to tell {what}.",
    ]
    say["2"] += r["verdict"]["sentences"]
    say["4"] += [
        "Development of a model, with selection of its predictors",
        "and internal validation." if estimated else "and without an estimate.",
    ]
    if test:
        scores = _scores(test["scores"])
        say["2"] += [f"In the independent cohort, {_samples(r, 'test')}: {scores}."]
        say["4"] += ["Evaluation in an independent cohort."]


# Codes of notices that come from the checks of the table.
_ABOUT_THE_TABLE = {"repeats", "orientation", "roles", "patients", "leak", "table", "spelling",
                    "detection", "raw", "batch"}  # fmt: skip


def _data(r: Part, say: Said) -> None:
    """Sources, preparation, outcome, predictors, sample size and missing values."""
    data, learning = r["data"], r["learning"]
    for part, name in ((data, "Development"), (r["test"], "Evaluation")):
        if part and (part["source"] or part["digest"]):
            digest = f" (SHA-256 {part['digest']})" if part["digest"] else ""
            say["5a"] += [f"{name}: {part['source'] or 'a table in memory'}{digest}."]
    say["7"] += [f"{text[:1].upper()}{text[1:].rstrip('.')}." for text in data["record"]]
    say["7"] += _logarithm(r)
    for line in data["roles"]:
        if line["role"] in ("batch", "covariate", "ignored"):
            names = joined(line["columns"])
            say["7"] += [f"Left out as {line['role']} ({line['reason']}): {names}."]
    checks = [notice for notice in r["notices"] if notice["code"] in _ABOUT_THE_TABLE]
    say["7"] += [f"{notice['title']}: {notice['text']}" for notice in checks]
    if data["roles"] and not checks:
        say["7"] += [
            "The checks of the table (repeated rows, identifiers, columns that give the class",
            "away, raw values) found nothing.",
        ]
    column = f"The column {data['target']}" if data["target"] else "The label"
    counts = class_counts_text(data["class_counts"], data["classes"])
    interest = f"; the class of interest is {data['positive']}" if data["positive"] else ""
    say["8a"] += [f"{column} has {len(data['classes'])} classes: {counts}{interest}."]
    say["9a"] += [
        f"All {plural(data['n_features'], 'numeric column')} of the table were candidates;",
        "selection among them took place inside every training part.",
    ]
    if data["dropped"]:
        left_out = [f"{name} ({why})" for name, why in data["dropped"].items()]
        say["9a"] += [f"Left out: {joined(left_out)}."]
    if r["panel"]:
        say["9b"] += [f"The panel: {joined([row['feature'] for row in r['panel']], 30)}."]
    if data["units"]:
        say["9b"] += [f"Values as {data['units']}."]
    per = data["n_features"] / data["n_samples"]
    say["10"] += [f"{_samples(r)}, {per:.3g} candidate features per sample."]
    unknown = "Whether more samples would help was not measured (no learning curve in this run)."
    say["10"] += [unknown if learning is None else learning["sentence"]]
    if data["n_missing"]:
        share = data["n_missing"] / (data["n_samples"] * data["n_features"])
        say["11"] += [
            f"{plural(data['n_missing'], 'value')} ({share:.2%}) were missing and filled with the",
            "feature's median, computed in each training part alone; no sample was left out for",
            "it.",
        ]
    else:
        say["11"] += ["No value was missing."]


# What the plots of the document are called.
_PLOTS = {
    "roc": "ROC curve",
    "calibration": "calibration curve",
    "decision": "decision curve",
    "confusion": "confusion matrix",
    "learning": "learning curve",
}


def _analysis(r: Part, say: Said) -> None:
    """How the data were used, the model, clusters and measures."""
    evaluation, grouped = r["evaluation"], r["data"]["n_groups"]
    say["12a"] += [f"The final model was fitted on all {_samples(r)}."]
    if evaluation is not None:
        folds, repeats = folds_of(evaluation)
        say["12a"] += [
            f"The procedure was estimated by nested cross-validation: {plural(repeats, 'repeat')}",
            f"of {folds} stratified outer folds{'' if grouped is None else ', groups whole'}, with",
            "selection and tuning inside.",
        ]
    if r["test"]:
        say["12a"] += [f"An independent cohort of {_samples(r, 'test')} took no part in the fit."]
    say["12b"] += _logarithm(r)
    say["12b"] += [
        "Features were standardised with means and spreads of the training part, and enter",
        "linearly; none was categorised.",
    ]
    say["12c"] += [r["methods"]["paragraph"]]
    if grouped is not None:
        say["12d"] += [
            f"{plural(grouped, 'group')} were kept whole in all folds, so that none is on both",
            "sides of a split; the model has no term for them.",
        ]
    for audit in _audits(r):
        say["12d"] += [f"{audit['name']} ({plural(len(audit['batches']), 'value')}) was audited."]
        say["12d"] += audit["sentences"]
    measures = [_title_of(name) for name in r["scores"] if name != "prevalence"]
    if measures and r["figures"]["calibration"]:
        measures.append("calibration intercept and slope")
    if measures:
        say["12e"] += [
            f"Measures: {joined(measures, 20)}. Balanced accuracy, Brier score and log loss count",
            "every class alike, so that they do not follow the shares of this study.",
        ]
    else:
        say["12e"] += ["Nothing was measured in this run."]
    drawn = [title for name, title in _PLOTS.items() if r["figures"][name]]
    if drawn:
        say["12e"] += [f"Plots: {joined(drawn, 9)}."]
    if evaluation is not None and evaluation["permutation"]:
        draws = plural(len(evaluation["permutation"]["distribution"]), "draw")
        say["12e"] += [f"A permutation test ({draws}) compares with shuffled labels."]
    if r["stability"] is not None:
        say["12e"] += ["Nogueira's index measures the stability of the panel."]
    say["12g"] += [
        "By the saved model, from the panel's features alone, with the scaling and medians of the",
        "development data; nothing of an evaluated sample is used for another's prediction.",
    ]
    if evaluation is not None:
        say["12g"] += ["In the outer folds, by the fit that did not see the sample."]


def _output(r: Part, say: Said) -> None:
    """Updating, class imbalance, and what the model gives out."""
    updated, counts = r["model"]["recalibration"], r["data"]["class_counts"]
    say["13"] += [
        f"The largest class has {max(counts) / min(counts):.1f} times the samples of the smallest.",
        "No sample was added, left out or repeated for it: every class counts alike in fitting,",
        "tuning and scores.",
    ]
    if updated is None:
        shares = "equal shares"
        text = "The model was not updated or recalibrated after its evaluation in this run."
        say["12f"] += [text]
        say["24"] += [text]
        say["13"] += [
            "Probabilities are therefore for equal shares of the classes and have to be moved to",
            "the prevalence where the model is used.",
        ]
    else:
        shares = f"a prevalence of {percent(updated['prevalence'])}"
        effect = recalibration_effect(updated)
        say["12f"] += [
            f"Its probabilities were recalibrated to {recalibration_words(updated)}. Panel and",
            "ranking stayed as they were; predictions made with the model say so.",
        ]
        say["13"] += ["Probabilities were recalibrated afterwards (12f)."]
        say["24"] += [
            f"{effect[:1].upper()}{effect[1:]}; all were then moved to {shares} of",
            f"{updated['positive']}. How the recalibrated model does takes samples that it was not",
            "recalibrated to.",
        ]
    say["15"] += [
        f"The distance to the plane of each class, a probability of each class for {shares}, and",
        "the label of the likeliest class (for two classes: a threshold of 0.5).",
    ]
    if r["thresholds"]:
        own = next(row["threshold"] for row in r["thresholds"] if row["own"])
        say["15"] += [
            "Sensitivity, specificity, predictive values and net benefit at other thresholds, at a",
            f"prevalence of {percent(own)}, are in results.json; none was chosen by them.",
        ]


def _participants(r: Part, say: Said) -> None:
    """Who was in which analysis, and how the cohorts differ."""
    stability, learning = r["stability"], r["learning"]
    say["20a"] += [f"In the table: {_samples(r)}."]
    say["21"] += [f"Final fit and selection: {_samples(r)}."]
    if r["evaluation"] is not None:
        folds, repeats = folds_of(r["evaluation"])
        times = "once" if repeats == 1 else f"{repeats} times"
        say["21"] += [
            f"Internal validation: the same samples, each predicted {times} by a fit on",
            f"{folds - 1} of {folds} folds.",
        ]
    if stability is not None and stability["source"] == "stability selection":
        say["21"] += [f"Stability: {stability['n_panels']} refits on halves of the samples."]
    if learning is not None:
        sizes = joined([str(n) for n in learning["sizes"]], 9)
        say["21"] += [f"Learning curve: {learning['n_repeats']} parts each of {sizes} samples."]
    if r["test"]:
        say["20a"] += [f"In the evaluation cohort: {_samples(r, 'test')}."]
        say["21"] += [f"Evaluation: {_samples(r, 'test')}."]
        say["16"] += [
            f"Development: {_samples(r)}. Evaluation: {_samples(r, 'test')}.",
            "Features and labels have the same names in both.",
        ]
        if r["test"]["shift"] is not None:
            odd = [f["feature"] for f in r["test"]["shift"] if f["shifted"] or f["scaled"]]
            say["16"] += [
                "Of the panel's values, compared within classes, those of",
                f"{joined(odd) if odd else 'no feature'} differ beyond chance, by half a standard",
                "deviation or a factor of 2 in spread.",
            ]
        say["20c"] += say["16"]


def _performance(r: Part, say: Said) -> None:
    """The whole model, and how well it predicts, also by cluster."""
    model, test = r["model"], r["test"]
    say["22"] += [
        f"{model['estimator']} with {plural(len(r['panel']), 'feature')}: penalty exponent q =",
        f"{model['q']:g}, floor tau = {model['tau']:g}, pooling {model['pool']:g}, penalties",
        f"{', '.join(f'{d:.3g}' for d in model['delta'])}. Weights, intercepts and coefficients in",
        "the units of the table are in results.json and panel.csv; model.skops holds the fitted",
        "model with scaling and calibration, ready to predict.",
    ]
    if r["scores"]:
        known = {name: score for name, score in r["scores"].items() if name != "prevalence"}
        say["23a"] += [f"Internal validation: {_scores(known)}{_calibration(r['figures'])}."]
    else:
        say["23a"] += ["Not estimated in this run."]
    if test:
        say["23a"] += [f"Independent cohort: {_scores(test['scores'])}{_calibration(test)}."]
    for audit in _audits(r):
        unseen = audit["unseen"]
        if unseen is None:
            continue
        say["23b"] += [
            f"On values of {audit['name']} that were left out of the fit, balanced accuracy",
            f"{interval(unseen['score'])}, where ordinary folds give {number(unseen['ordinary'])}",
            "on the same samples.",
        ]
        recognised = []
        for batch, recalls in zip(audit["batches"], unseen["recalls"]):
            shares = [f"{x:.0%} of {c}" for c, x in zip(audit["classes"], recalls) if x is not None]
            recognised += [f"{batch}: {', '.join(shares)}"] if shares else []
        if recognised:
            say["23b"] += [f"Recognised when left out: {joined(recognised, 12)}."]


def _use(r: Part, say: Said) -> None:
    """Code, interpretation, limitations, and what use and further research take."""
    run, filled = r["run"], r["run"]["parameters"].get("impute")
    say["18f"] += [f"Made with {', '.join(f'{name} {v}' for name, v in r['versions'].items())}."]
    if run["seed"] is not None:
        say["18f"] += [f"Seed {run['seed']}."]
    if run["command"]:
        say["18f"] += [f"The run is repeated by: {run['command']}"]
    say["25"] += [f"{r['verdict']['headline'].rstrip('.')}."]
    say["26"] += [f"{notice['title']}: {notice['text']}" for notice in r["notices"]]
    if not r["test"]:
        say["26"] += ["No independent cohort was predicted."]
    if filled == "median":
        say["27a"] += [
            "A missing value is filled with the median of the development data, and said."
        ]
    elif filled is not None:
        say["27a"] += ["Missing values are refused."]
    say["27a"] += [
        "A missing column and values that are no numbers are refused; other columns are ignored."
    ]
    if r["learning"] is not None:
        say["27c"] += [r["learning"]["sentence"]]


# --------------------------------------------------------------------- pieces of sentences


def _samples(r: Part, part: str = "data") -> str:
    """How many samples there are, in all and by class, of the table or of the cohort ("test")."""
    counts = class_counts_text(r[part]["class_counts"], r["data"]["classes"])
    return f"{plural(r[part]['n_samples'], 'sample')} ({counts})"


def _logarithm(r: Part) -> list[str]:
    asked = r["run"]["parameters"]
    return [f"Values were taken as log2(max(x, {asked['floor']:g}))."] if asked.get("log2") else []


def _audits(r: Part) -> list[Part]:
    """The audits of batch variables, where there was an evaluation with any."""
    return (r["evaluation"] or {}).get("batches", [])


def _scores(scores: Part) -> str:
    return "; ".join(f"{_title_of(name)} {interval(score)}" for name, score in scores.items())


def _title_of(name: str) -> str:
    """What readers call a score."""
    return SCORE_TITLES.get(name, name.replace("brier", "Brier score").replace("_", " "))


def _calibration(part: Part) -> str:
    """Calibration intercept and slope of a part of the document that may have them."""
    found = part["calibration"]
    return f"; calibration {line_words(found['line'])}" if found and found["line"] else ""
