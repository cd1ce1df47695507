"""The paragraph on methods for a paper, and what to cite."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..evaluation.recalibration import recalibration_words
from ..evaluation.scores import SCORE_TITLES
from .words import (
    Part,
    folds_of,
    interval,
    joined,
    line_words,
    number,
    p_value,
    plural,
    prevalence_words,
)

SOFTWARE_TITLE = (
    "sparsegsvp: sparse generalized singular vectors for feature panels and classification"
)
PAPER_TITLE = (
    "Optimizing Sparse Generalized Singular Vectors for Feature Selection in Proximal Support "
    "Vector Machines with Application to Breast and Ovarian Cancer Detection"
)


def methods(results: Part) -> dict[str, Any]:
    """Write the paragraph for a paper, with what to cite, from the rest of the document."""
    data, model, versions = results["data"], results["model"], results["versions"]
    stability, seed = results["stability"], results["run"]["seed"]
    text = [
        f"Features were selected with sparsegsvp {versions.get('sparsegsvp', '')} (scikit-learn "
        f"{versions.get('scikit-learn', '')}, NumPy {versions.get('numpy', '')}, SciPy "
        f"{versions.get('scipy', '')}), a sparse, regularised form of the generalized singular "
        "vector method for proximal support vector machines (Ugwu and Kirby).",
        f"The data comprised {plural(data['n_samples'], 'sample')} "
        f"({', '.join(f'{c}: {n}' for c, n in zip(data['classes'], data['class_counts']))}) and "
        f"{plural(data['n_features'], 'feature')}; features were standardised.",
        "For each class, a hyperplane close to its samples and far from the others was fitted "
        f"with an l{model['q']:g} penalty; {_choice_methods(model)}, with spread pooling "
        f"{model['pool']:g}, and the planes were refitted on the union of the selected features "
        f"(n = {len(results['panel'])}).",
    ]
    if results["evaluation"] is not None:
        text.append(_evaluation_methods(data, results["scores"], results["evaluation"]))
    text += [sentence for other in results["beside"] for sentence in other["sentences"]]
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
    if results["learning"] is not None:
        text.append(_learning_methods(results["learning"]))
    if results["test"] is not None:
        text.append(_cohort_methods(results["test"]))
    if model["recalibration"] is not None:
        said = recalibration_words(model["recalibration"])
        text.append(
            f"After its evaluation the model was recalibrated to {said}; panel and ranking stayed."
        )
    if seed is not None:
        text.append(f"The random seed was {seed}.")
    return {"paragraph": " ".join(text), "citations": _citations(results)}


def _citations(results: Part) -> list[str]:
    """What to cite for what was done."""
    evaluation, learning, test = results["evaluation"], results["learning"], results["test"]
    version = results["versions"].get("sparsegsvp", "")
    citations = [
        f"The sparsegsvp developers. {SOFTWARE_TITLE}, version {version}.",
        f"Ugwu, U. O. and Kirby, M. (2024). {PAPER_TITLE}. arXiv:2410.03978.",
    ]
    if evaluation is not None:
        citations.append(
            "Nadeau, C. and Bengio, Y. (2003). Inference for the generalization error. "
            "Machine Learning 52, 239-281."
        )
    if test is not None and "auc" in test["scores"]:
        citations.append(
            "DeLong, E. R., DeLong, D. M. and Clarke-Pearson, D. L. (1988). Comparing the areas "
            "under two or more correlated receiver operating characteristic curves. Biometrics "
            "44, 837-845."
        )
    if results["figures"]["decision"] or (test is not None and test["decision"]):
        citations.append(
            "Vickers, A. J. and Elkin, E. B. (2006). Decision curve analysis: a novel method for "
            "evaluating prediction models. Medical Decision Making 26, 565-574."
        )
    if learning is not None:
        citations.append(
            "Mukherjee, S. and others (2003). Estimating dataset size requirements for classifying "
            "DNA microarray data. Journal of Computational Biology 10, 119-142."
        )
    if results["stability"] is not None:
        citations.append(
            "Nogueira, S., Sechidis, K. and Brown, G. (2018). On the stability of feature "
            "selection algorithms. Journal of Machine Learning Research 18(174), 1-54."
        )
    return citations


_RULES = {
    "paired": ", the smallest panel that the held-out samples could not tell from the best",
    "1se": ", one-standard-error rule",
}


def _choice_methods(model: Mapping[str, Any]) -> str:
    """Say how penalty and floor were chosen, for the paragraph for a paper."""
    if model["n_features"] is not None:
        return (
            f"the number of features was set to {model['n_features']}, with a distance floor of "
            f"tau = {model['tau']:g} in their selection"
        )
    deltas = ", ".join(f"{d:.3g}" for d in model["delta"])
    return (
        f"penalty (delta = {deltas}) and distance floor (tau = {model['tau']:g}) were chosen by "
        f"{model['n_splits']}-fold cross-validation ({model['scoring'].replace('_', ' ')}"
        f"{_RULES.get(model['rule'], '')})"
    )


def _learning_methods(learning: Part) -> str:
    """Report the learning curve: how it was measured, and what it says."""
    sizes = [f"{n:,}" for n in learning["sizes"]]
    return (
        f"For a learning curve the procedure was fitted on nested parts of {joined(sizes, 9)} "
        f"samples, {plural(learning['n_repeats'], 'time')} each, and predicted the samples left "
        "out; an inverse power law was fitted to the balanced accuracies (Mukherjee and others, "
        f"2003). {learning['sentence']}"
    )


def _cohort_methods(test: Part) -> str:
    """Report the independent cohort: scores, calibration, and what the intervals are."""
    scores = test["scores"]
    named = [(name, title) for name, title in SCORE_TITLES.items() if name in scores]
    counts = zip(test["confusion"]["classes"], test["class_counts"])
    text = (
        f"The final model was validated on an independent cohort of "
        f"{plural(test['n_samples'], 'sample')} ({', '.join(f'{c}: {n}' for c, n in counts)}) that "
        f"took no part in selection or fitting: "
        + ", ".join(f"{title} {interval(scores[name])}" for name, title in named)
        + "; intervals of rates are exact"
    )
    if "auc" in scores:
        text += ", that of the area has DeLong's variance"
    if "ppv" in scores or "npv" in scores:
        text += f", predictive values are for a prevalence of {prevalence_words(test)}"
    if test["calibration"] is not None:
        text += f"; calibration of the log odds: {line_words(test['calibration']['line'])}"
    if test["positive"] is not None:
        text += f"; {test['positive']} was the positive class"
    return text + "."


def _evaluation_methods(data: Part, scores: Part, evaluation: Part) -> str:
    folds, repeats = folds_of(evaluation)
    grouped = ", keeping groups together," if data["n_groups"] is not None else ""
    text = (
        "Predictive performance of the whole procedure was estimated by nested cross-validation "
        f"({plural(repeats, 'repeat')} of {folds} stratified outer folds{grouped} with selection "
        "and tuning inside): balanced accuracy "
        f"{interval(scores['balanced_accuracy'])}, intervals corrected for overlapping training "
        "sets (Nadeau and Bengio, 2003) and widened by the sampling of the test samples"
    )
    if "auc" in scores:
        text += f", area under the ROC curve {interval(scores['auc'])}"
    if evaluation.get("calibration_line"):
        text += f", calibration of the log odds: {line_words(evaluation['calibration_line'])}"
    permutation = evaluation.get("permutation")
    if permutation:
        text += (
            f"; a permutation test with {len(permutation['distribution'])} draws gave "
            f"{p_value(permutation['p_value'])}"
        )
    for audit in evaluation.get("batches") or ():
        if audit["unseen"] is not None:
            text += (
                f"; with the values of {audit['name']} left out in turn, balanced accuracy was "
                f"{interval(audit['unseen']['score'])}"
            )
    return text + "."
