"""What the paper says beside its tables, tried and tabled: its search, other methods, imbalance."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import product
from typing import Any

import numpy as np
from sklearn.feature_selection import RFE, chi2, f_classif, mutual_info_classif
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, recall_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC

from ..datasets import Dataset
from ..estimators import GSVPSVM, GSVPSVMCV, PGDGSVPSVM
from ..estimators.pgd import fit_together
from .protocol import (
    Array,
    Finding,
    Findings,
    PaperSplit,
    Row,
    Study,
    batch_normalised_predict,
    nearest_plane_predict,
    settings,
    spaced,
)
from .runs import PUBLISHED, cut_weights, fit_quietly, held_out, parts_of, standardised

# Delta over [1e-4, 1] and [2e-4, 1], the step over 10^-0.5 ... 10^-3.5 (section 5): the ends and
# steps of the grid are the paper's, the number of deltas is not printed.
DELTAS = tuple(np.geomspace(low, 1.0, 6).tolist() for low in (1e-4, 2e-4))
STEPS = tuple(10.0 ** -(0.5 + 0.5 * k) for k in range(7))


# ------------------------------------------------------------------------------ the search


def searched(data: Dataset, study: str, method: str, seed: int, max_iter: int) -> Finding:
    """Delta and step by their score on the validation part, as the text describes.

    Both planes of every delta are fitted with every step, and all pairs of deltas scored as the
    authors did, with the selected features and by the batch. Of equal scores the one with the
    fewest features is taken, then the first. The test part is scored as published (all weights,
    by the batch) and as printed (the selected features, equation 21).
    """
    parts = parts_of(data, study, seed)
    common = settings(study, method, "code", max_iter)
    models = [m for step in STEPS for m in _fitted({**common, "step_size": step}, parts)]
    (X, y), (X_test, y_test) = parts.validation, parts.test
    Z, Z_test = (standardised(models[0], part) for part in (X, X_test))
    tried = []
    for i, j in product(range(len(models)), repeat=2):
        if models[i].step_size == models[j].step_size:
            weights, _, biases = _planes(models[i], models[j])
            score = _score(y, batch_normalised_predict(Z, weights, biases))
            tried.append((-score, int(np.count_nonzero(weights.any(axis=0))), i, j))
    value, size, i, j = min(tried)
    weights, whole, biases = _planes(models[i], models[j])
    return {
        "delta": [float(np.ravel(m.delta)[k]) for k, m in enumerate((models[i], models[j]))],
        "step_size": models[i].step_size,
        "features": size,
        "tried": len(tried),
        "tied": sum(found[0] == value for found in tried),
        "validation": -value,
        "test": _score(y_test, batch_normalised_predict(Z_test, whole, biases)),
        "test_printed": _score(y_test, nearest_plane_predict(Z_test, weights, biases)),
    }


def _fitted(common: dict[str, Any], parts: PaperSplit) -> list[PGDGSVPSVM]:
    """Models of every delta, fitted; without those whose iterate vanished, if any did."""
    models = [PGDGSVPSVM(**{**common, "delta": pair}) for pair in zip(*DELTAS)]
    try:
        fit_together(models, *parts.train)
        return models
    except ValueError:
        alive = []
        for model in models:
            with suppress(ValueError):
                fit_together([model], *parts.train)
                alive.append(model)
        return alive


def _planes(one: PGDGSVPSVM, two: PGDGSVPSVM) -> tuple[Array, Array, Array]:
    """First plane of one model and second of another: weights up to the elbow, all, biases."""
    cut = np.array([cut_weights(one)[0], cut_weights(two)[1]])
    whole = np.array([one.weights_[0], two.weights_[1]])
    return cut, whole, np.array([one.biases_[0], two.biases_[1]])


def searched_own(data: Dataset, study: str, seed: int) -> Finding:
    """`GSVPSVMCV` on the same training part: its own estimate, and its score on the test part."""
    parts = parts_of(data, study, seed)
    model = fit_quietly(GSVPSVMCV(), *parts.train)
    X, y = parts.test
    return {
        "features": int(model.support_.sum()),
        "validation": float(model.cv_results_["mean_balanced_accuracy"][model.best_index_]),
        "test": _score(y, model.predict(X)),
        "tried": len(model.cv_results_["mean_test_score"]),
    }


def _score(y: Array, predicted: Array) -> float:
    return float(balanced_accuracy_score(y, predicted))


# --------------------------------------------------------------------------- other methods


def filters(data: Dataset, study: str, top: int, size: int, seeds: Sequence[int]) -> Finding:
    """The features that three filters rank first, and what a classifier makes of a few of them.

    The filters are chi-squared, the F statistic and mutual information on the training part;
    the classifier is a logistic regression on their first ``size`` features, without tuning.
    """
    ranked: dict[str, list[int]] = {}
    scores: dict[str, list[float]] = {}
    for seed in seeds:
        parts = parts_of(data, study, seed)
        (X, y), (X_test, y_test) = parts.train, parts.test
        scaler = MinMaxScaler(clip=True).fit(X)  # chi-squared asks for counts, or their like
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of constant features, which come last below
            ranks = {
                "chi-squared": chi2(scaler.transform(X), y)[0],
                "F": f_classif(X, y)[0],
                "mutual information": mutual_info_classif(X, y, random_state=0),
            }
        for name, values in ranks.items():
            order = np.argsort(-np.nan_to_num(values, nan=-np.inf), kind="stable")
            if seed == seeds[0]:
                ranked[name] = order[:top].tolist()
            kept = order[:size]
            model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=5000))
            model.fit(X[:, kept], y)
            scores.setdefault(name, []).append(_score(y_test, model.predict(X_test[:, kept])))
    return {"top": ranked, "size": size, "scores": scores}


def elimination(data: Dataset, study: str, sizes: Sequence[int], seeds: Sequence[int]) -> Finding:
    """Recursive elimination with a linear support vector machine, down to each size."""
    panels: dict[str, list[int]] = {}
    scores: dict[str, list[float]] = {}
    for seed in seeds:
        parts = parts_of(data, study, seed)
        (X, y), (X_test, y_test) = parts.train, parts.test
        for size in sizes:
            model = make_pipeline(
                StandardScaler(), RFE(SVC(kernel="linear"), n_features_to_select=size)
            )
            model.fit(X, y)
            if seed == seeds[0]:
                panels[str(size)] = np.flatnonzero(model[-1].support_).tolist()
            accuracy = float(np.mean(model.predict(X_test) == y_test))
            scores.setdefault(str(size), []).append(accuracy)
    return {"panels": panels, "scores": scores}


def imbalance(
    data: Dataset,
    study: str,
    methods: Sequence[str],
    shares: Sequence[float],
    seed: int,
    **cap: int,
) -> Finding:
    """Recall of both classes when only a share of class 1 is left in the training part.

    The paper's methods run with their published settings and the printed rule; the held-out
    samples, validation and test together, keep their classes.
    """
    parts = parts_of(data, study, seed)
    X, y = parts.train
    X_test, y_test = held_out(parts)
    rare = np.flatnonzero(y == 1)
    found: Finding = {}
    for share in shares:
        dropped = np.random.RandomState(seed).permutation(rare)[round(share * rare.size) :]
        keep = np.setdiff1d(np.arange(y.size), dropped)
        models: dict[str, Any] = {
            method: PGDGSVPSVM(**settings(study, method, "code", **cap)) for method in methods
        }
        fit_together(list(models.values()), X[keep], y[keep])
        models["GSVPSVM"] = fit_quietly(GSVPSVM(), X[keep], y[keep])
        found[f"{share:g}"] = {
            name: recall_score(y_test, model.predict(X_test), average=None).tolist()
            for name, model in models.items()
        }
    return found


# ------------------------------------------------------------------------ tables of what was found

_SEARCHED = ("validation", "test", "test_printed")


def search_rows(labels: Mapping[str, str], results: Findings) -> list[Row]:
    """Rows on the search for delta and step: what it picks, and its score on other samples."""
    rows = []
    for method, label in labels.items():
        found = {
            int(name.rpartition("/")[2]): result
            for name, result in results.items()
            if name.startswith(f"search/{method}/")
        }
        if not found:
            continue
        first = found.pop(PUBLISHED)
        rows.append(
            {
                "method": label,
                "split": "published",
                "delta": spaced(first["delta"]) if "delta" in first else None,
                "step_size": first.get("step_size"),
                "features": first["features"],
                "tried": first["tried"],
                "tied": first.get("tied"),
                **{part: first.get(part) for part in _SEARCHED},
            }
        )
        if found:
            means: Row = dict.fromkeys(rows[-1])
            means |= {"method": label, "split": f"mean of {len(found)} others"}
            for column in ("features", *_SEARCHED):
                if column in first:
                    means[column] = float(np.mean([run[column] for run in found.values()]))
            rows.append(means)
    return rows


def claim_rows(study: Study, results: Findings, data: Dataset) -> list[Row]:
    """Rows on claims of the text about other methods and other data, and what was found."""
    rows = []
    if "claim/filters" in results:
        rows += _filter_rows(study, results)
    if "claim/elimination" in results:
        rows += _elimination_rows(study, results, data)
    seeds = [r for name, r in results.items() if name.startswith("claim/imbalance/")]
    if seeds:
        rows.append(_imbalance_row(study, seeds))
    return rows


def _claim(claim: str, tested: str, found: str) -> Row:
    return {"claim": claim, "tested": tested, "found": found}


def _first_and_mean(scores: Sequence[float]) -> str:
    """The score on the published split, and in brackets the mean of the others."""
    first, *others = scores
    return f"{first:.3f}" + (f" ({np.mean(others):.3f})" if others else "")


def _filter_rows(study: Study, results: Findings) -> list[Row]:
    found = results["claim/filters"]
    union = {feature for top in found["top"].values() for feature in top}
    parts = []
    for key in ("l1", "q=1"):
        planes = results[f"row/{key}/code"]["weights"]
        heaviest = sorted(
            (-abs(value), at) for plane in planes for at, value in zip(plane["at"], plane["value"])
        )
        top = list(dict.fromkeys(at for _, at in heaviest))[:20]
        near = sum(min(abs(at - other) for other in union) <= 5 for at in top)
        parts.append(
            f"{study.method(key).label}: {len(union & set(top))} of 20, {near} within 5 bins of one"
        )
    scores = ", ".join(f"{name} {_first_and_mean(v)}" for name, v in found["scores"].items())
    return [
        _claim(
            "14 of the top 20 genes of l1 and q = 1 are among those that three filters rank "
            "first in [EE]",
            "top 20 by weight of either plane, in the union of the filters' top 20 on the same "
            "training part; the list of [EE] was not at hand",
            "; ".join(parts),
        ),
        _claim(
            f"[EE] reached 100% on a test part with {found['size']} genes",
            f"each filter's first {found['size']}, logistic regression: balanced accuracy on "
            f"the paper's test part (mean of {len(next(iter(found['scores'].values()))) - 1} "
            "other splits)",
            scores,
        ),
    ]


def _elimination_rows(study: Study, results: Findings, data: Dataset) -> list[Row]:
    found = results["claim/elimination"]
    scores = ", ".join(f"{k} features {_first_and_mean(v)}" for k, v in found["scores"].items())
    panels = {m.key: results[f"row/{m.key}/code"]["features"] for m in study.methods}
    selected = sorted({f for planes in panels.values() for kept in planes for f in kept})
    outside = [str(data.feature_names[f]) for f in selected if f not in found["panels"]["18"]]
    return [
        _claim(
            "[MJHMZ] reached 99% with 18 features and 96% with 7 by recursive elimination",
            "recursive elimination with a linear support vector machine on the training part: "
            f"accuracy on the test part (mean of {len(found['scores']['18']) - 1} other splits)",
            scores,
        ),
        _claim(
            "the selected features, but for two, are among the 18 of [MJHMZ]",
            "all features that the three methods select, in the 18 of the elimination above; "
            "the list of [MJHMZ] was not at hand",
            f"{len(selected) - len(outside)} of {len(selected)}; not {', '.join(outside)}",
        ),
    ]


def _imbalance_row(study: Study, seeds: list[Row]) -> Row:
    labels = {**{m.key: m.label for m in study.methods}, "GSVPSVM": "GSVPSVM"}
    parts = []
    for key, label in labels.items():
        recalls = {share: np.mean([run[share][key] for run in seeds], axis=0) for share in seeds[0]}
        shown = ", ".join(f"{r[0]:.2f}/{r[1]:.2f} at {share}" for share, r in recalls.items())
        parts.append(f"{label}: {shown}")
    return _claim(
        "the methods handle imbalanced data effectively",
        f"recall of {study.class_names[0]}/{study.class_names[1]} on the held-out samples when "
        f"this share of the {study.class_names[1]} training samples is kept, published "
        f"settings, printed rule; mean of {len(seeds)} splits",
        "; ".join(parts),
    )
