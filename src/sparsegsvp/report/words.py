"""Numbers and findings in words: the verdict at the top of the page, the methods paragraph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .schema import Data, IntervalDict, Methods, Model, PanelFeature, StabilityDict, Verdict

# Fleiss's words for kappa, which Nogueira et al. (2018) suggest for their index too
POOR, EXCELLENT = 0.4, 0.75


def number(value: float, digits: int = 2) -> str:
    """Write a score, never rounding an imperfect one up to 1.

    Examples
    --------
    >>> from sparsegsvp.report.words import number
    >>> number(0.914), number(0.998), number(1.0)
    ('0.91', '0.99', '1.00')
    """
    text = f"{value:.{digits}f}"
    if value < 1.0 and float(text) == 1.0:
        text = f"{1.0 - 10.0**-digits:.{digits}f}"
    return text


def interval(found: IntervalDict) -> str:
    """Write an estimate with its interval."""
    return (
        f"{number(found['value'])} ({found['level']:.0%} interval {number(found['low'])} to "
        f"{found['high']:.2f})"
    )


def p_value(p: float) -> str:
    """Write a p-value.

    Examples
    --------
    >>> from sparsegsvp.report.words import p_value
    >>> p_value(0.01), p_value(0.234)
    ('p = 0.01', 'p = 0.23')
    """
    return f"p = {p:.3f}" if p < 0.01 else f"p = {p:.2f}"


def plural(n: int, noun: str) -> str:
    """Write a count with its noun.

    Examples
    --------
    >>> from sparsegsvp.report.words import plural
    >>> plural(1, "feature"), plural(15154, "feature")
    ('1 feature', '15,154 features')
    """
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def listed(names: Sequence[str], most: int = 6) -> str:
    """Write a few names in a row.

    Examples
    --------
    >>> from sparsegsvp.report.words import listed
    >>> listed(["a", "b", "c"]), listed(["a", "b", "c"], most=2)
    ('a, b and c', 'a, b and 1 more')
    """
    names = list(names)
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


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


# ------------------------------------------------------------------------- the verdict


_HEADLINES = {
    "signal": "{share} tell {what}",
    "inconclusive": "Not decided yet: whether {share} tell {what}",
    "none": "No signal: {not_told} better than by chance",
    "not tested": "{share} selected, not tested against chance",
}


def headline(level: str, classes: Sequence[str], positive: str | None, share: str) -> str:
    """Write the verdict as a headline.

    Parameters
    ----------
    level : {"signal", "inconclusive", "none", "not tested"}
        Of `sparsegsvp.evaluation.verdict`.
    classes, positive
        The classes, and the one of interest of two.
    share : str
        What tells them apart, such as "4 of 2,000 features".

    Examples
    --------
    >>> from sparsegsvp.report.words import headline
    >>> headline("signal", ["ill", "well"], "ill", "4 of 2,000 features")
    '4 of 2,000 features tell ill from well'
    """
    what = contrast(classes, positive)
    not_told = (
        "the classes cannot be told apart"
        if len(classes) > 2
        else what.replace(" from ", " cannot be told from ")
    )
    text = _HEADLINES[level].format(share=share, what=what, not_told=not_told)
    return text[:1].upper() + text[1:]


def verdict(
    data: Mapping[str, Any],
    scores: Mapping[str, IntervalDict],
    evaluation: Mapping[str, Any] | None,
    *,
    size: int | None = None,
    stability: StabilityDict | None = None,
) -> Verdict:
    """Say what was found, in a headline and one or two sentences.

    Parameters
    ----------
    data : Data
        The classes, their counts, and the numbers of samples and features.
    scores : dict of IntervalDict
        Of the outer folds; empty when nothing was estimated.
    evaluation : dict or None
        ``EvaluationResult.to_dict()``, whose ``verdict`` is the level.
    size : int, optional
        Number of features of the panel; None where a method is evaluated without one.
    stability : StabilityDict, optional

    Returns
    -------
    Verdict
    """
    level = "not tested" if evaluation is None else evaluation["verdict"]
    share, sentences = "the features", []
    if size is not None:
        share = f"{size:,} of {plural(data['n_features'], 'feature')}"
        sentences.append(_what_was_done(data, size))
    sentences.append(_what_was_found(level, data, scores, evaluation, stability))
    return {
        "level": level,  # type: ignore[typeddict-item]
        "headline": headline(level, data["classes"], data["positive"], share),
        "sentences": sentences,
    }


def _what_was_done(data: Mapping[str, Any], size: int) -> str:
    counts = [f"{n:,} {c}" for n, c in zip(data["class_counts"], data["classes"])]
    return (
        f"In {data['source'] or 'the table'}, {plural(data['n_samples'], 'sample')} "
        f"({', '.join(counts)}) with {plural(data['n_features'], 'feature')} each, "
        f"sparsegsvp selected a panel of {plural(size, 'feature')}."
    )


def _what_was_found(
    level: str,
    data: Mapping[str, Any],
    scores: Mapping[str, IntervalDict],
    evaluation: Mapping[str, Any] | None,
    stability: StabilityDict | None,
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
    if level == "none":
        if permutation is not None:
            text += f" and shuffled labels do about as well ({p_value(permutation['p_value'])})"
        return text + ": this is no better than chance, so the panel must not be read as markers."
    if level == "not tested":
        text += "; whether shuffled labels do as well was not tested"
    elif permutation is not None:
        text += f" ({p_value(permutation['p_value'])} against shuffled labels)"
    if stability is not None and stability["index"] is not None:
        text += (
            f"; selected anew on other samples, the panel's agreement is "
            f"{stability_word(stability['index'])} (stability {number(stability['index'])} of 1)"
        )
    return text + "."


# ---------------------------------------------------------------- the methods paragraph


SOFTWARE_TITLE = (
    "sparsegsvp: sparse generalized singular vectors for feature panels and classification"
)
PAPER_TITLE = (
    "Optimizing Sparse Generalized Singular Vectors for Feature Selection in Proximal Support "
    "Vector Machines with Application to Breast and Ovarian Cancer Detection"
)


def methods(
    data: Data,
    model: Model,
    panel: Sequence[PanelFeature],
    scores: Mapping[str, IntervalDict],
    evaluation: Mapping[str, Any] | None,
    stability: StabilityDict | None,
    versions: Mapping[str, str],
    seed: int | None,
) -> Methods:
    """Write the paragraph for a paper, with what to cite."""
    deltas = ", ".join(f"{d:.3g}" for d in model["delta"])
    text = [
        f"Features were selected with sparsegsvp {versions.get('sparsegsvp', '')} (scikit-learn "
        f"{versions.get('scikit-learn', '')}, NumPy {versions.get('numpy', '')}, SciPy "
        f"{versions.get('scipy', '')}), a sparse, regularised form of the generalized singular "
        "vector method for proximal support vector machines (Ugwu and Kirby).",
        f"The data comprised {plural(data['n_samples'], 'sample')} "
        f"({', '.join(f'{c}: {n}' for c, n in zip(data['classes'], data['class_counts']))}) and "
        f"{plural(data['n_features'], 'feature')}; features were standardised.",
        "For each class, a hyperplane close to its samples and far from the others was fitted "
        f"with an l{model['q']:g} penalty; penalty (delta = {deltas}) and distance floor (tau = "
        f"{model['tau']:g}) were chosen by {model['n_splits']}-fold cross-validation "
        f"({model['scoring'].replace('_', ' ')}"
        f"{', one-standard-error rule' if model['rule'] == '1se' else ''}), with spread pooling "
        f"{model['pool']:g}, and the planes were refitted on the union of the selected features "
        f"(n = {len(panel)}).",
    ]
    if evaluation is not None:
        text.append(_evaluation_methods(data, scores, evaluation))
    if stability is not None and stability["index"] is not None:
        where = (
            "random halves of the samples (complementary pairs)"
            if stability["source"] == "stability selection"
            else "the outer training sets"
        )
        text.append(
            f"Selection stability over {stability['n_panels']} refits on {where} was "
            f"{number(stability['index'])} (Nogueira's index)."
        )
    if seed is not None:
        text.append(f"The random seed was {seed}.")
    citations = [
        f"The sparsegsvp developers. {SOFTWARE_TITLE}, version {versions.get('sparsegsvp', '')}.",
        f"Ugwu, U. O. and Kirby, M. (2024). {PAPER_TITLE}. arXiv:2410.03978.",
    ]
    if evaluation is not None:
        citations.append(
            "Nadeau, C. and Bengio, Y. (2003). Inference for the generalization error. "
            "Machine Learning 52, 239-281."
        )
    if stability is not None:
        citations.append(
            "Nogueira, S., Sechidis, K. and Brown, G. (2018). On the stability of feature "
            "selection algorithms. Journal of Machine Learning Research 18(174), 1-54."
        )
    return {"paragraph": " ".join(text), "citations": citations}


def _evaluation_methods(
    data: Data, scores: Mapping[str, IntervalDict], evaluation: Mapping[str, Any]
) -> str:
    repeats = len({fold["repeat"] for fold in evaluation["folds"]})
    folds = len(evaluation["folds"]) // max(repeats, 1)
    grouped = ", keeping groups together," if data["n_groups"] is not None else ""
    text = (
        "Predictive performance of the whole procedure was estimated by nested cross-validation "
        f"({plural(repeats, 'repeat')} of {folds} stratified outer folds{grouped} with selection "
        "and tuning inside): balanced accuracy "
        f"{interval(scores['balanced_accuracy'])}, intervals corrected for overlapping training "
        "sets (Nadeau and Bengio, 2003)"
    )
    if "auc" in scores:
        text += f", area under the ROC curve {interval(scores['auc'])}"
    permutation = evaluation.get("permutation")
    if permutation:
        text += (
            f"; a permutation test with {len(permutation['distribution'])} draws gave "
            f"{p_value(permutation['p_value'])}"
        )
    return text + "."
