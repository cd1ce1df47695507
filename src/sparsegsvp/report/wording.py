"""The page in words: the verdict, the warnings, the methods paragraph.

Thresholds are conventions for readers, not tests; each is named where it is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .schema import Data, IntervalDict, Methods, Model, PanelFeature, StabilityDict, Verdict
from .schema import Warning as Notice

SOFTWARE_TITLE = (
    "sparsegsvp: sparse generalized singular vectors for feature panels and classification"
)
PAPER_TITLE = (
    "Optimizing Sparse Generalized Singular Vectors for Feature Selection in Proximal Support "
    "Vector Machines with Application to Breast and Ovarian Cancer Detection"
)

_ALPHA = 0.05
_WEAK = 0.1  # a lower end less than this above chance is a weak signal
_FEW = 20  # samples of the smallest class
_IMBALANCE = 3.0
_BATCH = 0.5  # Cramer's V of group and class
_MISSING = 0.05
# Fleiss's words for kappa, which Nogueira et al. (2018) suggest for their index too
_POOR, _EXCELLENT = 0.4, 0.75


def number(value: float, digits: int = 2) -> str:
    """Write a score, never rounding an imperfect one up to 1.

    Examples
    --------
    >>> from sparsegsvp.report.wording import number
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
    >>> from sparsegsvp.report.wording import p_value
    >>> p_value(0.01), p_value(0.234)
    ('p = 0.01', 'p = 0.23')
    """
    return f"p = {p:.3f}" if p < 0.01 else f"p = {p:.2f}"


def plural(n: int, noun: str) -> str:
    """Write a count with its noun.

    Examples
    --------
    >>> from sparsegsvp.report.wording import plural
    >>> plural(1, "feature"), plural(15154, "feature")
    ('1 feature', '15,154 features')
    """
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def listed(names: Sequence[str], most: int = 6) -> str:
    """Write a few names in a row.

    Examples
    --------
    >>> from sparsegsvp.report.wording import listed
    >>> listed(["a", "b", "c"]), listed(["a", "b", "c"], most=2)
    ('a, b and c', 'a, b and 1 more')
    """
    names = list(names)
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def contrast(data: Data) -> str:
    """Name what is told apart: the positive class from the other, or all of them."""
    classes = data["classes"]
    if len(classes) > 2:
        return f"the {len(classes)} classes apart"
    first = data["positive"] if data["positive"] in classes else classes[-1]
    other = next(c for c in classes if c != first)
    return f"{first} from {other}"


def stability_word(index: float) -> str:
    """Name a value of Nogueira's index."""
    if index < _POOR:
        return "poor"
    return "excellent" if index > _EXCELLENT else "fair"


# ------------------------------------------------------------------------- the verdict


def verdict(
    data: Data,
    panel: Sequence[PanelFeature],
    scores: Mapping[str, IntervalDict],
    permutation: Mapping[str, Any] | None,
    stability: StabilityDict | None,
) -> Verdict:
    """Say what was found, in a headline and two sentences.

    Parameters
    ----------
    data : Data
    panel : sequence of PanelFeature
    scores : dict of IntervalDict
        Of the outer folds; empty when nothing was estimated.
    permutation : dict or None
        ``PermutationResult.to_dict()``.
    stability : StabilityDict or None

    Returns
    -------
    Verdict
        ``level`` is "chance" whenever the estimate is not shown to be above chance.
    """
    level = _level(len(data["classes"]), scores.get("balanced_accuracy"), permutation)
    size, m = len(panel), data["n_features"]
    what = contrast(data)
    together = f"tell {what}"
    share = f"{size} of {m:,} features"
    headline = {
        "signal": f"{share} {together}",
        "weak": f"A weak signal: {share} {together} a little better than chance",
        "chance": "No signal: "
        + (
            "the classes cannot be told apart better than by chance"
            if len(data["classes"]) > 2
            else f"{what.replace(' from ', ' cannot be told from ')} better than by chance"
        ),
        "unclear": f"Undecided: whether {share} {together} was tested too little to say",
        "not estimated": f"A panel of {plural(size, 'feature')}, not yet tested",
    }[level]
    return {
        "level": level,  # type: ignore[typeddict-item]
        "headline": headline,
        "sentences": [
            _what_was_done(data, size),
            _what_was_found(level, data, scores, permutation, stability),
        ],
    }


def _level(
    n_classes: int, score: IntervalDict | None, permutation: Mapping[str, Any] | None
) -> str:
    if score is None:
        return "not estimated"
    chance = 1.0 / n_classes
    above = score["low"] > chance
    if permutation is None:
        significant = above
    else:
        significant = permutation["p_value"] <= _ALPHA
        smallest = 1.0 / (len(permutation["distribution"]) + 1)
        if not significant and above and smallest > _ALPHA:
            return "unclear"  # so few draws cannot give a small p-value
    if not significant or score["value"] <= chance:
        return "chance"
    return "signal" if score["low"] > chance + _WEAK else "weak"


def _what_was_done(data: Data, size: int) -> str:
    counts = [f"{n:,} {c}" for n, c in zip(data["class_counts"], data["classes"])]
    return (
        f"In {data['source'] or 'the table'}, {plural(data['n_samples'], 'sample')} "
        f"({', '.join(counts)}) with {plural(data['n_features'], 'feature')} each, "
        f"sparsegsvp selected a panel of {plural(size, 'feature')}."
    )


def _what_was_found(
    level: str,
    data: Data,
    scores: Mapping[str, IntervalDict],
    permutation: Mapping[str, Any] | None,
    stability: StabilityDict | None,
) -> str:
    if level == "not estimated":
        return (
            "How well it predicts new samples was not estimated in this run; until it is, "
            "the panel is a suggestion and not a result."
        )
    score = scores["balanced_accuracy"]
    chance = 1.0 / len(data["classes"])
    text = (
        "On samples kept out of selection, tuning and fitting, the whole procedure reaches a "
        f"balanced accuracy of {interval(score)}, where guessing gives {chance:.2f}"
    )
    if level == "chance":
        if permutation is not None:
            text += f" and shuffled labels do about as well ({p_value(permutation['p_value'])})"
        return text + ": this is no better than chance, so the panel must not be read as markers."
    if permutation is not None:
        text += f" ({p_value(permutation['p_value'])} against shuffled labels)"
    if stability is not None and stability["index"] is not None:
        text += (
            f"; selected anew on other samples, the panel's agreement is "
            f"{stability_word(stability['index'])} (stability {number(stability['index'])} of 1)"
        )
    return text + "."


# ------------------------------------------------------------------------ the warnings


def notices(
    data: Data,
    panel: Sequence[PanelFeature],
    found: Verdict,
    scores: Mapping[str, IntervalDict],
    permutation: Mapping[str, Any] | None,
    stability: StabilityDict | None,
    others: Sequence[str] = (),
    skipped: Sequence[str] = (),
) -> list[Notice]:
    """Say what the reader has to know, the most serious first.

    Parameters
    ----------
    data, panel, found, scores, permutation, stability
        See `verdict`.
    others : sequence of str
        Sentences of the evaluation.
    skipped : sequence of str
        What was left out of this run.

    Returns
    -------
    list of Warning
    """
    listing = [
        *_about_signal(found, scores, permutation, len(data["classes"])),
        *_about_data(data),
        *_about_stability(panel, stability),
    ]
    listing += [
        _notice("evaluation", "caution", "From the evaluation", text)
        for text in others
        if not text.startswith("No signal was found")  # said already, and more plainly
    ]
    listing += [
        _notice("table", "note", "About the table", _sentence(text)) for text in data["hints"]
    ]
    listing += [
        _notice("skipped", "note", "Left out of this run", _sentence(text)) for text in skipped
    ]
    rank = {"serious": 0, "caution": 1, "note": 2}
    return sorted(listing, key=lambda notice: rank[notice["severity"]])


def _notice(kind: str, severity: str, title: str, text: str) -> Notice:
    return {"kind": kind, "severity": severity, "title": title, "text": text}  # type: ignore[typeddict-item]


def _sentence(text: str) -> str:
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def _about_signal(
    found: Verdict,
    scores: Mapping[str, IntervalDict],
    permutation: Mapping[str, Any] | None,
    n_classes: int,
) -> list[Notice]:
    level = found["level"]
    if level == "chance":
        return [
            _notice(
                "chance",
                "serious",
                "The estimate is not above chance",
                "A method that selects features always returns some. Here the evidence does not "
                "show that they predict anything: treat the panel as noise unless other data "
                "say otherwise.",
            )
        ]
    if level == "unclear" and permutation is not None:
        return [
            _notice(
                "unclear",
                "serious",
                "Too few permutations to decide",
                f"With {plural(len(permutation['distribution']), 'draw')} the permutation test "
                "cannot reach p = 0.05; run it with 99 or more.",
            )
        ]
    if level == "weak":
        score = scores["balanced_accuracy"]
        return [
            _notice(
                "weak",
                "caution",
                "The signal is weak",
                f"The interval of the balanced accuracy begins at {number(score['low'])}, close "
                f"to chance ({1 / n_classes:.2f}). The panel may help a little, or hardly at all.",
            )
        ]
    score_ = scores.get("balanced_accuracy")
    if score_ is not None and score_["value"] >= 0.99:
        return [
            _notice(
                "perfect",
                "note",
                "Almost perfect separation",
                "This is rare in biology and common where the classes were measured on other "
                "days, machines or sites. Check how the samples were run before believing it.",
            )
        ]
    return []


def _about_data(data: Data) -> list[Notice]:
    found = []
    smallest, largest = min(data["class_counts"]), max(data["class_counts"])
    rare = data["classes"][data["class_counts"].index(smallest)]
    if smallest < _FEW:
        found.append(
            _notice(
                "few",
                "caution",
                "Few samples",
                f"Class {rare} has {plural(smallest, 'sample')}. One sample more or less on the "
                f"right side moves its recall by {1 / smallest:.0%}, and panels chosen from so "
                "few samples tend to change.",
            )
        )
    if largest >= _IMBALANCE * smallest:
        found.append(
            _notice(
                "imbalance",
                "caution",
                "Unequal classes",
                f"The largest class has {largest / smallest:.1f} times the samples of the "
                "smallest. Scores here count both alike; plain accuracy would flatter, and "
                "probabilities are for equal shares, so adjust them to the prevalence you expect.",
            )
        )
    association, groups = data["group_association"], data["n_groups"]
    batch_like = groups is not None and groups <= max(8, data["n_samples"] // 10)
    if association is not None and batch_like and association >= _BATCH:
        found.append(
            _notice(
                "batch",
                "serious",
                "The groups nearly explain the classes",
                f"Group and class go together (Cramér's V = {number(association)}, 1 is "
                "complete). If groups are batches or sites, the panel may tell batches apart "
                "and not the classes; no method can separate the two in these data.",
            )
        )
    cells = data["n_samples"] * data["n_features"]
    if data["n_missing"] > _MISSING * cells:
        found.append(
            _notice(
                "missing",
                "caution",
                "Many missing values",
                f"{data['n_missing'] / cells:.0%} of the values are missing. They were filled "
                "within each training part; if values are missing more often in one class, "
                "that alone can look like signal.",
            )
        )
    return found


def _about_stability(
    panel: Sequence[PanelFeature], stability: StabilityDict | None
) -> list[Notice]:
    found = []
    if stability is not None and stability["index"] is not None and stability["index"] < _POOR:
        found.append(
            _notice(
                "unstable",
                "caution",
                "The panel is unstable",
                f"Selected anew on other samples, the panels agree little (stability "
                f"{number(stability['index'])} of 1). Other panels predict about as well; look "
                "at the substitutes before following up single features.",
            )
        )
    rare = [f["feature"] for f in panel if _support(f) is not None and (_support(f) or 0.0) < 0.5]
    if rare:
        found.append(
            _notice(
                "rare",
                "note",
                "Features that are seldom chosen",
                f"{listed(rare)} {'is' if len(rare) == 1 else 'are'} in the panel but, even with "
                "substitutes counted, chosen in fewer than half of the refits.",
            )
        )
    return found


def _support(feature: PanelFeature) -> float | None:
    group = feature["group_frequency"]
    return feature["frequency"] if group is None else group


# ------------------------------------------------------------------------- the methods


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
    """Write the paragraph for a paper, with what to cite.

    Returns
    -------
    Methods
    """
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
        f"Ugwu, U. O. and Kirby, M. {PAPER_TITLE}.",
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
