"""What is said: numbers in words, the verdict, lines of the console, and longer texts.

Methods, answers and checklist are templates that see the document as ``d``. Values are put in as
one line of plain text; the page escapes what comes out, and so does Markdown.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from .._validate import need
from .charts import short, toml_asset

Part = Mapping[str, Any]

#: With more classes than this, dots and shades take the place of boxes, points and curves.
MANY_CLASSES = 6
RANDOM_PANEL = "random panel"

# Fleiss's bounds for kappa, which Nogueira and others suggest for their index too.
POOR, EXCELLENT = 0.4, 0.75

TEXTS = toml_asset("words.toml")


def number(value: float) -> str:
    """Write a score with two digits, and never as 1.00 what is less."""
    if 0.9995 < value < 1.0:
        return ">0.999"
    return f"{value:.3f}" if 0.995 <= value < 1.0 else f"{round(value, 2) + 0.0:.2f}"  # no -0


def interval(score: Part) -> str:
    """Write an estimate with its interval."""
    return f"{number(score['value'])} ({score['level']:.0%} interval {range_words(score)})"


def range_words(score: Part, between: str = " to ") -> str:
    """Write the ends of an interval."""
    return f"{number(score['low'])}{between}{score['high']:.2f}"


def signed(score: Part) -> str:
    """Write an estimate that may be negative or above 1, with its interval."""
    value, low, high = (round(score[key], 2) + 0.0 for key in ("value", "low", "high"))  # no -0
    return f"{value:.2f} ({low:.2f} to {high:.2f})"


def p_value(test: Part) -> str:
    """Write the p-value of a test; at the floor of its draws it reads "at most"."""
    if test["p_value"] < 0.0005:
        return "p < 0.001"
    p = f"{test['p_value']:.3f}" if test["p_value"] < 0.0995 else f"{test['p_value']:.2f}"
    return f"p {'at most' if test.get('at_most') else '='} {p[:4] if p[4:] == '0' else p}"


def plural(n: int, noun: str) -> str:
    """Write a count with its noun."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def joined(names: Sequence[str], most: int = 6) -> str:
    """Write a few names in a row."""
    names = [str(name) for name in names]
    if len(names) > most + 1:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def percent(share: float) -> str:
    """Write a share in percent."""
    return f"{100 * share:.3g}%"


def class_counts(part: Part) -> str:
    """Write how many samples each class has."""
    return ", ".join(f"{n:,} {c}" for n, c in zip(part["class_counts"], part["classes"]))


def contrast(data: Part, link: str = "") -> str:
    """Name what is told apart: the positive class from the other, or all of them."""
    classes = data["classes"]
    if len(classes) > 2:
        return f"the {len(classes)} classes {link}apart"
    first = data["positive"] or classes[-1]
    return f"{first} {link}from {next(c for c in classes if c != first)}"


def stability_word(document: Part) -> str:
    """Say what panel other samples would give, by Nogueira's index."""
    index = document["stability"]["index"]
    if index < POOR:
        if comes_back(document):
            return "these features among others"
        again = [(row["with_stand_ins"] or 0.0) >= 0.5 for row in document["panel"]]
        most = sum(again) > len(again) / 2
        return "some of these features among others" if most else "mostly other features"
    return "much the same panel" if index > EXCELLENT else "partly other features"


def comes_back(document: Part) -> bool:
    """Whether the panel's features, stand-ins counted, are in most panels of half samples."""
    known = [row for row in document["panel"] if row["with_stand_ins"] is not None]
    gains = [row["with_stand_ins"] - (row["noise"] or 0.0) for row in known]
    often = all(row["with_stand_ins"] >= EXCELLENT for row in known)
    return bool(known) and often and sum(gains) >= len(known) / 4


def calibration_words(line: Part) -> str:
    """Write calibration intercept and slope."""
    text = f"intercept {signed(line['intercept'])}"
    if line["slope"] is None:
        return f"{text}; no slope, since the probabilities separate the classes or are equal"
    return f"{text}, slope {signed(line['slope'])}"


def verdict_words(document: Part) -> dict[str, Any]:
    """The headline, and two sentences: what was found, and how far to trust it."""
    data, verdict = document["data"], document["verdict"]
    size = len(document["panel"])
    headline = TEXTS["answer"][verdict["answer"]]["headline"].format(
        share=f"{size:,} of {plural(data['n_features'], 'feature')}",
        tell="tells" if size == 1 else "tell",
        what=contrast(data),
        untold=contrast(data, "cannot be told "),
    )
    sentences = [_found(document), _trust(document)]
    if document["cohort"] is not None:
        sentences.append(cohort_sentence(document["cohort"]))
    return {"headline": headline[:1].upper() + headline[1:], "sentences": sentences}


def _found(document: Part) -> str:
    """What was found: the panel, and the score of panels chosen this way."""
    score, chance = document["scores"]["balanced_accuracy"], document["verdict"]["chance"]
    names = [row["feature"] for row in document["panel"]]
    reached = (
        f"recognise samples that they have not seen with a balanced accuracy of "
        f"{interval(score)[:-1]}; guessing gives {chance:.2f})"
    )
    if document["verdict"]["answer"] == "none" or not names:
        return f"Panels chosen from these data {reached}."
    return f"The panel is {joined(names, 5)}; panels chosen this way {reached}."


def _trust(document: Part) -> str:
    """How far to trust it: chance, other samples, batches."""
    verdict, stability = document["verdict"], document["stability"]
    answer, p = verdict["answer"], verdict["p_value"]
    text = TEXTS["answer"][answer]["trust"]
    if answer != "none":
        text = TEXTS["reason"].get(verdict["reason"], text)
    text = text.format(
        p="not tested" if p is None else p_value(verdict),
        draws=plural(verdict["n_draws"], "shuffled labelling"),
    )
    if answer == "none":
        return f"{text}."
    if stability is not None and stability["index"] is not None:
        index = stability["index"]
        link = "but" if answer == "signal" and index <= EXCELLENT else "and"
        text += f", {link} other samples would give {stability_word(document)} "
        text += f"(stability {number(index)} of 1)"
    mixed = [audit["name"] for audit in document["batches"] if audit["confounded"]]
    if mixed:
        text += f"; classes and {joined(mixed)} hang together, and the panel may show these instead"
    lost = [audit for audit in document["batches"] if audit["lost"] and audit["unseen"]]
    if lost and not mixed:
        unseen = lost[0]["unseen"]["score"]
        text += f"; on a {lost[0]['name']} not seen before it reaches {number(unseen['value'])}"
    return f"{text}."


def cohort_sentence(cohort: Part) -> str:
    """Say how the panel does in another cohort."""
    scores = cohort["scores"]
    name = "balanced_accuracy" if "balanced_accuracy" in scores else "accuracy"
    return (
        f"In another cohort ({plural(cohort['n_samples'], 'sample')}: {class_counts(cohort)}) this "
        f"very panel reaches {'a' if name[0] == 'b' else 'an'} {score_title(name)} of "
        f"{interval(scores[name])}{'' if name[0] == 'b' else '; a class is missing there'}."
    )


def comparison_words(found: Part) -> dict[str, Any]:
    """Say how small a panel does as well as the best, and by what method."""
    done = [row for row in found["rows"] if row["balanced_accuracy"] is not None]
    tried = [row for row in done if row["method"] != RANDOM_PANEL]
    if not tried:
        return {"headline": "No method finished", "sentences": ["The reasons are given below."]}
    tried.sort(key=lambda row: row["balanced_accuracy"], reverse=True)
    best = tried[0]
    # half of an interval of 95% is about two standard errors
    reach = best["balanced_accuracy"] - (best["high"] - best["low"]) / 4
    near = [row for row in tried if row["balanced_accuracy"] >= reach]
    size = min(row["size"] for row in near)
    peers = joined([row["method"] for row in near if row["size"] == size], 3)
    headline, control = f"{plural(size, 'feature')} will do: {peers}", ""
    for row in done:
        if row["method"] == RANDOM_PANEL and row["size"] == size:
            control = f", and a random panel of {size} scores {number(row['balanced_accuracy'])}"
            if row["balanced_accuracy"] >= reach:
                headline = f"A random panel of {plural(size, 'feature')} does as well as any method"
    sentences = [
        f"The best of {plural(len(tried), 'row')} is {best['method']} with "
        f"{plural(best['size'], 'feature')}: balanced accuracy "
        f"{number(best['balanced_accuracy'])} (interval {range_words(best)}); the panels named "
        f"here lie within one standard error of it{control}.",
        "The best of many looks better than it is: estimate the one you choose on folds of "
        "another seed or on other samples.",
    ]
    return {"headline": headline, "sentences": sentences}


def own_rung(document: Part) -> Part | None:
    """The rung that is the procedure itself: where every fold has the size of the panel."""
    sizes = document["sizes"]
    fixed = sizes is not None and sizes["low"] == sizes["high"]
    return next((rung for rung in document["ladder"] if fixed and rung["chosen"]), None)


def ladder_lines(document: Part) -> list[str]:
    """Write the ladder as aligned lines, a star before the run's own; none without a ladder."""
    if not document["ladder"]:
        return []
    own, rungs = own_rung(document), list(document["ladder"])
    if own is None:
        score, stability = document["scores"]["balanced_accuracy"], document["stability"]
        own = {"size": len(document["panel"]), "features": document["panel"], "score": score}
        own["stability"] = None if stability is None else stability["index"]
        rungs.append(own)
    lines = [("", "features", "balanced accuracy", "stability", "adds")]
    before: set[int] = set()
    for rung in sorted(rungs, key=lambda rung: int(rung["size"])):
        added = [row["feature"] for row in rung["features"] if row["index"] not in before]
        before = {row["index"] for row in rung["features"]}
        score, steady = rung["score"], rung["stability"]
        steady = "" if steady is None else number(steady)
        mark, size = "*" if rung is own else "", str(rung["size"])
        line = (mark, size, f"{number(score['value'])} ({range_words(score)})", steady)
        lines.append((*line, joined(added, 4) if added else ""))
    widths = [max(len(line[k]) for line in lines) for k in range(4)]
    made = [
        f"{a:{widths[0]}} {b:>{widths[1]}}  {c:{widths[2]}}  {d:>{widths[3]}}  {e}".rstrip()
        for a, b, c, d, e in lines
    ]
    whole = len(rungs) > len(document["ladder"])
    star = "as chosen, by the whole procedure; the other" if whole else "the size chosen; all"
    return [*made, f"* {star} lines are of exactly so many features"]


def cohort_lines(cohort: Part) -> list[str]:
    """Write what another cohort shows, a line each: scores, calibration, remarks."""
    lines = []
    for name, score in cohort["scores"].items():
        spread = f"{score['low']:.3f} to {score['high']:.3f}"
        lines.append(f"{headed(name)}: {score['value']:.3f} ({spread})")
    if "ppv" in cohort["scores"] or "npv" in cohort["scores"]:
        lines.append(f"Predictive values are at a prevalence of {prevalence_words(cohort)}")
    if cohort["calibration"] is not None:
        said = calibration_words(cohort["calibration"])
        lines.append(f"Calibration: {said}; right would be intercept 0 and slope 1")
    return lines + cohort["remarks"]


def score_title(name: str) -> str:
    """What readers call a score; ``recall ill`` is the recall of that class."""
    if name.startswith("recall "):
        return f"share of {name.removeprefix('recall ')} recognised"
    return str(TEXTS["score"].get(name, name.replace("_", " ")))


def headed(name: str) -> str:
    """The same at the beginning of a line."""
    title = score_title(name)
    return f"{title[:1].upper()}{title[1:]}"


def prevalence_words(cohort: Part) -> str:
    """Say which share of the positive class a cohort's numbers are for."""
    share = percent(cohort["prevalence"])
    return f"{share}, as in the cohort" if cohort["observed_prevalence"] else share


@cache
def environment(package: str | None = None, *, text: bool = False) -> Any:
    """The templates of this package, and of another before them, for HTML or plain ``text``."""
    jinja2 = need("jinja2", "report")
    places = dict.fromkeys([package or __package__, __package__])
    made = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(place) for place in places]),
        autoescape=not text,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        finalize=_one_line if text else None,
    )
    said = (
        number, interval, range_words, signed, p_value, plural, joined, percent, class_counts,
        contrast, score_title, calibration_words, prevalence_words, stability_word, short,
        markdown, shlex.quote,
    )  # fmt: skip
    made.filters |= {function.__name__: function for function in said}
    made.globals |= {"many_classes": MANY_CLASSES, "texts": TEXTS}
    return made


def _one_line(value: Any) -> Any:
    return re.sub(r"\s+", " ", value) if isinstance(value, str) else value


def answers(document: Part) -> dict[str, str]:
    """Answer each question of the page in a line or two: the blocks of a template."""
    made = environment(text=True).get_template("answers.txt")
    context = made.new_context({"d": document})
    return {name: " ".join("".join(block(context)).split()) for name, block in made.blocks.items()}


def methods(document: Part) -> dict[str, Any]:
    """Write the ``paragraph`` on methods for a paper, and the list of ``citations``."""
    text = environment(text=True).get_template("methods.txt").render(d=document)
    paragraph, _, citations = text.partition("\n---\n")
    lines = [line.strip() for line in citations.splitlines() if line.strip()]
    return {"paragraph": " ".join(paragraph.split()), "citations": lines}


@cache
def _template(text: str) -> Any:
    return environment(text=True).from_string(text)


def checklist(document: Part) -> list[dict[str, str]]:
    """Fill all 52 parts of the TRIPOD+AI checklist from a document, in order.

    ``text`` is what the run says, ``status`` who fills the part: "run", "both" or "authors".
    """
    said, parts = methods(document)["paragraph"], []
    for section in toml_asset("checklist.toml")["section"]:
        for part in section["part"]:
            template = _template(part.get("run", ""))
            text = " ".join(template.render(d=document, methods=said).split())
            authors = part.get("authors", "")
            status = ("both" if authors else "run") if text else "authors"
            more = {"section": section["title"], "text": text, "authors": authors}
            parts.append({**part, **more, "status": status})
    return parts


def checklist_markdown(document: Part) -> str:
    """Write the checklist as Markdown, a box to tick for every part."""
    made = environment(text=True).get_template("checklist.md")
    return f"{made.render(parts=checklist(document)).rstrip()}\n"


def markdown(text: str) -> str:
    """Make a text nothing but text in Markdown with HTML."""
    line = "".join(c if c.isprintable() else " " for c in text)
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]#|~$])", r"\\\1", line)
