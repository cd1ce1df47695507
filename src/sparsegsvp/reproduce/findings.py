"""Tables of what the paper says beside its own: the claim, how it was tested, what was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..datasets import Dataset
from .claims import PUBLISHED
from .protocol import Results, Row, Study, spaced

_SEARCHED = ("validation", "test", "test_printed")


def search_rows(labels: Mapping[str, str], results: Results) -> list[Row]:
    """What the search for delta and step picks, and what its score is worth elsewhere."""
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


def claim_rows(study: Study, results: Results, data: Dataset) -> list[Row]:
    """Claims of the text about other methods and other data, and what was found."""
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


def _filter_rows(study: Study, results: Results) -> list[Row]:
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


def _elimination_rows(study: Study, results: Results, data: Dataset) -> list[Row]:
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
