"""Numbers and findings in words, and the verdict.

``data``, ``scores``, ``panel`` and ``stability`` are those parts of the document, ``evaluation``
is ``EvaluationResult.to_dict()``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..evaluation.comparison import RANDOM_PANEL
from ..evaluation.scores import SCORE_TITLES
from ..evaluation.values import number

Part = Mapping[str, Any]

# Fleiss's words for kappa, which Nogueira et al. (2018) suggest for their index too
POOR, EXCELLENT = 0.4, 0.75


def interval(found: Part) -> str:
    """Write an estimate with its interval."""
    return (
        f"{number(found['value'])} ({found['level']:.0%} interval {number(found['low'])} to "
        f"{found['high']:.2f})"
    )


def p_value(p: float) -> str:
    """Write a p-value."""
    return f"p = {p:.3f}" if p < 0.01 else f"p = {p:.2f}"


def plural(n: int, noun: str) -> str:
    """Write a count with its noun."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def joined(names: Sequence[str], most: int = 6) -> str:
    """Write a few names in a row."""
    names = list(names)
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def class_counts_text(counts: Sequence[int], classes: Sequence[str]) -> str:
    """Write how many samples each class has."""
    return ", ".join(f"{n:,} {c}" for n, c in zip(counts, classes))


def percent(share: float) -> str:
    """Write a share, such as a prevalence, in percent."""
    return f"{100 * share:.3g}%"


def folds_of(evaluation: Part) -> tuple[int, int]:
    """Return the number of outer folds in a repeat, and of repeats."""
    repeats = len({fold["repeat"] for fold in evaluation["folds"]})
    return len(evaluation["folds"]) // max(repeats, 1), repeats


def contrast(classes: Sequence[str], positive: str | None) -> str:
    """Name what is told apart: the positive class from the other, or all of them."""
    if len(classes) > 2:
        return f"the {len(classes)} classes apart"
    first = positive if positive in classes else classes[-1]
    other = next(c for c in classes if c != first)
    return f"{first} from {other}"


def stability_word(index: float) -> str:
    """Name a value of Nogueira's index."""
    if index < POOR:
        return "poor"
    return "excellent" if index > EXCELLENT else "fair"


def path_score(path: Part) -> str:
    """Name the score of the inner folds that a path is drawn with; the higher the better."""
    if all(step["accuracy"] is not None for step in path["steps"]):
        return "balanced accuracy"
    name = str(path["score_name"]).replace("_", " ")
    return f"minus {name}" if name == "balanced log loss" else name


# ------------------------------------------------------------------------- the verdict


_HEADLINES = {
    "signal": "{share} tell {what}",
    "inconclusive": "Not decided yet: whether {share} tell {what}",
    "none": "No signal: {not_told} better than by chance",
    "not tested": "{share} selected, not tested against chance",
}


def headline(level: str, classes: Sequence[str], positive: str | None, share: str) -> str:
    """Write the verdict as a headline; ``share`` says what tells the classes apart."""
    what = contrast(classes, positive)
    not_told = (
        "the classes cannot be told apart"
        if len(classes) > 2
        else what.replace(" from ", " cannot be told from ")
    )
    text = _HEADLINES[level].format(share=share, what=what, not_told=not_told)
    return text[:1].upper() + text[1:]


def describe_verdict(
    data: Part,
    scores: Part,
    evaluation: Part | None,
    *,
    size: int | None = None,
    stability: Part | None = None,
) -> dict[str, Any]:
    """Say what was found, in a headline and one or two sentences.

    Parameters
    ----------
    data, scores : dict
        The parts of the document of these names; no scores when nothing was estimated.
    evaluation : dict or None
        ``EvaluationResult.to_dict()``, whose ``verdict`` is the level.
    size : int, optional
        Number of features of the panel; None where a method is evaluated without one.
    stability : dict, optional
        The part of the document of this name.

    Returns
    -------
    dict
        ``level``, ``headline`` and ``sentences``.

    Examples
    --------
    >>> from sparsegsvp.report import describe_verdict
    >>> data = {"classes": ["ill", "well"], "class_counts": [9, 11], "positive": "ill",
    ...         "source": "blood.csv", "n_samples": 20, "n_features": 300}
    >>> describe_verdict(data, {}, None, size=4)["headline"]
    '4 of 300 features selected, not tested against chance'
    """
    level = "not tested" if evaluation is None else evaluation["verdict"]
    share, sentences = "the features", []
    if size is not None:
        share = f"{size:,} of {plural(data['n_features'], 'feature')}"
        counts = class_counts_text(data["class_counts"], data["classes"])
        sentences.append(
            f"In {data['source'] or 'the table'}, {plural(data['n_samples'], 'sample')} "
            f"({counts}) with {plural(data['n_features'], 'feature')} each, "
            f"sparsegsvp selected a panel of {plural(size, 'feature')}."
        )
    sentences.append(_what_was_found(level, data, scores, evaluation, stability))
    return {
        "level": level,
        "headline": headline(level, data["classes"], data["positive"], share),
        "sentences": sentences,
    }


def _sizes(evaluation: Mapping[str, Any]) -> str:
    """Write the sizes of the panels that a score belongs to."""
    found = evaluation.get("panel_size_summary")
    if found is None:
        return ""
    if found["low"] == found["high"]:
        return f", with panels of {plural(found['low'], 'feature')}"
    return (
        f", with panels of {found['low']} to {plural(found['high'], 'feature')} "
        f"(median {found['median']:g})"
    )


def _what_was_found(
    level: str,
    data: Part,
    scores: Part,
    evaluation: Part | None,
    stability: Part | None,
) -> str:
    if evaluation is None or "balanced_accuracy" not in scores:
        return (
            "How well it predicts new samples was not estimated in this run; until it is, "
            "the panel is a suggestion and not a result."
        )
    permutation = evaluation.get("permutation")
    chance = 1.0 / len(data["classes"])
    text = (
        "On samples kept out of selection, tuning and fitting, the whole procedure reaches a "
        f"balanced accuracy of {interval(scores['balanced_accuracy'])}, where guessing gives "
        f"{chance:.2f}"
    )
    text += _sizes(evaluation)
    if level == "none":
        if permutation is not None:
            text += f" and shuffled labels do about as well ({p_value(permutation['p_value'])})"
        return text + ": this is no better than chance, so the panel must not be read as markers."
    if level == "not tested":
        text += "; whether shuffled labels do as well was not tested"
    elif permutation is not None:
        text += f"; against shuffled labels {p_value(permutation['p_value'])}"
    if stability is not None and stability["index"] is not None:
        text += (
            f"; selected anew on other samples, the panel's agreement is "
            f"{stability_word(stability['index'])} (stability {number(stability['index'])} of 1)"
        )
    return f"{text}.{_about_batches(evaluation)}"


def _about_batches(evaluation: Part) -> str:
    """Say at the top what batches have to do with a score, where they have."""
    text = ""
    for audit in evaluation.get("batches") or ():
        unseen = audit["unseen"]
        if audit["confounded"]:
            text += (
                f" But class and {audit['name']} hang together: the panel may show "
                f"{audit['name']}, not the class."
            )
        if unseen is not None and (audit["confounded"] or audit["lost"]):
            text += (
                f" On values of {audit['name']} that it has not seen, the procedure reaches "
                f"{interval(unseen['score'])}."
            )
    return text


def comparison_verdict(found: Part) -> dict[str, Any]:
    """Say how small a panel does as well as the best, and by what method.

    The headline names the smallest panel within one standard error of the best score of
    ``Comparison.to_dict()``; the sentences say what stands behind it, and what to beware of.
    """

    def value(row: Part) -> float:
        return float(row["score"]["value"])

    done = [row for row in found["rows"] if row["score"] is not None]
    tried = [row for row in done if row["method"] != RANDOM_PANEL]
    if not tried:
        return {
            "headline": "No method finished",
            "sentences": ["Why each of them did not is said below."],
        }
    best = max(tried, key=value)
    reach = value(best) - (best["standard_error"] or 0.0)
    near = [row for row in tried if value(row) >= reach]
    smallest = min(row["size"] for row in near)
    peers = sorted((row for row in near if row["size"] == smallest), key=value, reverse=True)
    names = joined([row["method"] for row in peers], 3)
    score = number(value(peers[0]))
    sentences = [
        f"The best of {plural(len(tried), 'row')} is {best['method']} with "
        f"{plural(best['size'], 'feature')}: balanced accuracy {interval(best['score'])}; "
        f"the panels named here lie within one standard error of it.",
        "The best of many is flattered by being picked: estimate the one you choose "
        "on folds of another seed or on other samples.",
    ]
    control = next((r for r in done if r["method"] == RANDOM_PANEL and r["size"] == smallest), None)
    if control is not None:
        sentences.insert(1, f"A random panel of {smallest} scores {number(value(control))}.")
    headline = f"{plural(smallest, 'feature').capitalize()} will do: {names} ({score})"
    if control is not None and value(control) >= reach:
        headline = f"A random panel of {plural(smallest, 'feature')} does as well as any method"
    return {"headline": headline, "sentences": sentences}


# ------------------------------------------------------------------------ another cohort


def cohort_sentence(test: Part) -> str:
    """Say how the panel does in another cohort; ``test`` is that part of the document."""
    said = class_counts_text(test["class_counts"], test["confusion"]["classes"])
    text = (
        f"In another cohort ({test['source'] or 'given with it'}; "
        f"{plural(test['n_samples'], 'sample')}: {said}) this very panel reaches "
    )
    scores = test["scores"]
    if "balanced_accuracy" not in scores:
        return f"{text}an accuracy of {interval(scores['accuracy'])}; one class is missing there."
    text += f"a balanced accuracy of {interval(scores['balanced_accuracy'])}"
    if "auc" in scores:
        text += f" and an area under the ROC curve of {interval(scores['auc'])}"
    return text + "."


def cohort_lines(test: Part, *, moved: bool = False) -> list[str]:
    """Say what another cohort shows, a line each: scores, prevalence and calibration.

    These are of the model's own labels. ``moved`` adds the rates of labels that follow the
    prevalence: of acting from a probability of one half on.
    """
    where = "" if test["prevalence"] is None else prevalence_words(test)
    lines = _score_lines(test["scores"], where, test["calibration"])
    half = next((row for row in test["thresholds"] if row["threshold"] == 0.5), None)
    if moved and half is not None and not half["own"]:
        titles = {k: SCORE_TITLES[k] for k in ("sensitivity", "specificity", "ppv", "npv")}
        rates = [f"{title} {half[k]['value']:.3f}" for k, title in titles.items() if half[k]]
        lines.append(
            "These are of the model's own labels; labels moved to the prevalence have "
            + ", ".join(rates)
        )
    return lines


def out_of_fold_lines(results: Part) -> list[str]:
    """Say what the outer folds show of use: predictive values and calibration, a line each."""
    found, counts = results["figures"], results["data"]["class_counts"]
    own = next((row for row in results["thresholds"] if row["own"]), None)
    if own is None:
        return _score_lines({}, "", found["calibration"])
    share = found["decision"]["prevalence"]
    there = counts[results["data"]["classes"].index(results["data"]["positive"])] / sum(counts)
    where = percent(share) + (", as in the table" if share == there else "")
    return _score_lines({k: own[k] for k in ("ppv", "npv")}, where, found["calibration"])


def _score_lines(scores: Part, prevalence: str, calibration: Part | None) -> list[str]:
    """Write scores with their intervals, what they are for, and the calibration, a line each."""
    lines = []
    for name, title in SCORE_TITLES.items():
        s = scores.get(name)
        if s is not None:
            title = f"{title[:1].upper()}{title[1:]}{' (equal class shares)' * (name == 'brier')}"
            lines.append(f"{title}: {s['value']:.3f} ({s['low']:.3f} to {s['high']:.3f})")
        if name == "npv" and (scores.get("ppv") or s):
            lines.append(f"Predictive values are at a prevalence of {prevalence}")
    if calibration is not None and calibration["line"] is not None:
        said = line_words(calibration["line"])
        lines.append(f"Calibration: {said}; right would be intercept 0 and slope 1")
    return lines


def paired_lines(found: Part) -> list[str]:
    """Say how two models differ on the same samples; ``found`` is from `compare_models`."""
    lines: list[str] = []
    areas, labels = found["areas"], found["labels"]
    if areas is not None:
        gap = areas["difference"]
        tested = "not tested" if areas["p_value"] is None else p_value(areas["p_value"])
        lines.append(
            f"Area under the ROC curve: {areas['first']:.3f} against {areas['second']:.3f}, "
            f"difference {gap['value']:.3f} ({gap['low']:.3f} to {gap['high']:.3f}), {tested} "
            "(DeLong)"
        )
    lines.append(
        f"Labels: {plural(labels['only_first'], 'sample')} right by this model alone, "
        f"{labels['only_second']:,} by the other alone, {p_value(labels['p_value'])} (McNemar)"
    )
    return lines + found["remarks"]


def prevalence_words(test: Part) -> str:
    """Say which share of the positive class a part of the document is for."""
    share = percent(test["prevalence"])
    return f"{share}, as in the cohort" if test.get("observed_prevalence") else share


def line_words(line: Part) -> str:
    """Write calibration intercept and slope."""
    text = f"intercept {signed(line['intercept'])}"
    if line["slope"] is None:
        return f"{text}; no slope, since the probabilities separate the classes or are equal"
    return f"{text}, slope {signed(line['slope'])}"


def signed(found: Part) -> str:
    """Write an estimate that may be negative or above 1, with its interval."""
    value, low, high = (round(found[key], 2) + 0.0 for key in ("value", "low", "high"))  # no -0
    return f"{value:.2f} ({low:.2f} to {high:.2f})"
