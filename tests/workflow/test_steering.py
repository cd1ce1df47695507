"""`must`, `ban` and `costs`: names in, penalty factors out, the same in every fold."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sparsegsvp import load_model, save_model, select_panel
from sparsegsvp.datasets import make_planted
from sparsegsvp.io import InputError, make_table
from sparsegsvp.io.text import names_or_files, read_costs
from sparsegsvp.report import validate
from sparsegsvp.workflow import (
    compare_table,
    evaluate_table,
    needed_features,
    plan_comparison,
    plan_selection,
    predict_table,
)
from sparsegsvp.workflow.procedure import steering_factors, steering_notices
from sparsegsvp.workflow.settings import settings_from

QUICK = {"fast": True, "tau": 1.0, "n_deltas": 5, "folds": 3}


def test_a_selection_keeps_to_what_is_asked_for(frame) -> None:
    plain = select_panel(frame, target="class", **QUICK)
    best = plain.panel.index[0]
    found = select_panel(frame, target="class", must=["g7", "g9"], ban=best, n_features=4, **QUICK)
    for fold in found.evaluation.folds:
        panel = {found.evaluation.feature_names[j] for j in fold.panel}
        assert {"g7", "g9"} <= panel and best not in panel and len(panel) == 4
    assert {"g7", "g9"} <= set(found.panel.index) and best not in found.panel.index
    [notice] = [n for n in found.notices if n.code == "steered"]
    assert "by request, not by choice: 'g7' and 'g9'" in notice.text
    assert f"In no panel by request: '{best}'" in notice.text
    assert found.document["run"]["parameters"]["must"] == ["g7", "g9"]
    assert json.dumps(found.document)
    assert not [n for n in plain.notices if n.code == "steered"]


def test_factors_of_names(table) -> None:
    settings = settings_from(must="g1, g2", ban=["g3"], costs={"g2": 5.0, "g4": 2.5})
    factors = steering_factors(settings, table)
    expected = np.ones(40)
    expected[[1, 2]], expected[3], expected[4] = 0.0, np.inf, 2.5
    np.testing.assert_array_equal(factors, expected)
    [notice] = steering_notices(factors, table)
    assert "1 features cost more or less" in notice.text
    assert steering_factors(settings_from(), table) is None
    assert steering_notices(None, table) == []


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"must": ["g77"]}, r"there is no feature 'g77' \(must\).*did you mean 'g7'"),
        ({"ban": ["h"]}, r"there is no feature 'h' \(ban\)"),
        ({"costs": {"gg1": 2.0}}, r"there is no feature 'gg1' \(costs\).*did you mean 'g1'"),
        ({"must": ["g1"], "ban": ["g1"]}, r"'g1' is to be in every panel \(must\) and in none"),
        ({"ban": [f"g{j}" for j in range(40)]}, "ban leaves no feature"),
        ({"must": ["g1", "g2"], "n_features": 1}, "n_features=1 asks for fewer than the 2"),
        ({"ban": [f"g{j}" for j in range(38)], "n_features": 3}, "n_features=3 asks for more than"),
        ({"costs": {"g1": -1.0}}, "costs must be a number of at least 0, got -1"),
        ({"costs": {"g1": float("inf")}}, "costs must be a number of at least 0, got inf"),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused_before_the_work(table, asked, message) -> None:
    with pytest.raises(InputError, match=message):
        select_panel(table, **asked, **QUICK)


def test_a_column_that_is_left_out_can_be_made_a_feature() -> None:
    X, y = make_planted(50, 300, 3, effect=2.0, random_state=1, return_X_y=True)
    frame = pd.DataFrame(X, columns=[f"g{j}" for j in range(300)])
    frame["age"] = np.random.default_rng(0).integers(30, 80, 50)
    frame["class"] = np.array(["ill", "well"])[y]
    with pytest.raises(InputError, match=r"column 'age' \(must\) is no feature.*keep='age'"):
        select_panel(frame, target="class", must="age", **QUICK)
    found = select_panel(frame, target="class", must="age", keep=["age"], **QUICK)
    assert "age" in found.panel.index


def test_evaluations_and_plans_are_steered_too(table) -> None:
    options = {"repeats": 1, "permutations": 0, "folds": 3, "tau": 1.0, "n_deltas": 5}
    found = evaluate_table(table, must=["g7"], **options)
    assert all(7 in fold.panel for fold in found.evaluation.folds)
    assert any(notice["code"] == "steered" for notice in found.document["notices"])
    with pytest.raises(InputError, match="must, ban, costs and adjust are for the method"):
        evaluate_table(table, method="t-test", must=["g7"], **options)
    assert plan_selection(table, must=["g7"], **QUICK).fits
    with pytest.raises(InputError, match="there is no feature 'x'"):
        plan_selection(table, must=["x"], **QUICK)


# --- categories


@pytest.fixture(scope="module")
def staged(frame):
    rng = np.random.default_rng(2)
    ill = (frame["class"] == "ill").to_numpy()
    stages = np.where(rng.random(50) < 0.05 + 0.85 * ill, "III", rng.choice(["I", "II"], 50))
    return frame.assign(stage=stages, tissue=rng.choice(["gut", "lung", "skin"], 50))


LEVELS = {"stage=II vs I", "stage=III vs I"}
CATEGORIES = {"categorical": ["stage", "tissue"]}


def names_of(found):
    return [{found.feature_names[j] for j in fold.panel} for fold in found.folds]


def whole(panel) -> bool:
    counts = [len([n for n in panel if n.startswith(f"{c}=")]) for c in ("stage", "tissue")]
    return set(counts) <= {0, 2}


def test_categories_are_chosen_as_a_whole_in_every_fold(staged) -> None:
    found = select_panel(staged, target="class", n_features=3, **CATEGORIES, **QUICK)
    panels = [*names_of(found.evaluation), set(found.panel.index)]
    assert all(map(whole, panels))
    assert any(panel >= LEVELS for panel in panels)
    for panel in panels:
        assert len({name.partition("=")[0] for name in panel}) == 3
    [notice] = [n for n in found.notices if n.code == "steered"]
    assert (
        "count as one" in notice.text
        and "'stage' (2 features), 'tissue' (2 features)" in notice.text
    )
    validate(found.document)
    assert json.dumps(found.document)
    assert "(2 features)" in found.to_html()
    again = load_model_of(found)
    fresh = make_table(staged, features=needed_features(again))
    assert predict_table(again, fresh).labels.tolist() == predict_table(
        found.model, found.table).labels.tolist()  # fmt: skip


def load_model_of(found):
    """The model after a journey through its file."""
    pytest.importorskip("skops")
    with tempfile.TemporaryDirectory() as folder:
        save_model(found.model, Path(folder) / "model.skops")
        return load_model(Path(folder) / "model.skops")


def test_a_column_may_be_asked_for_banned_or_dear_by_its_name(staged) -> None:
    table = make_table(staged, target="class", **CATEGORIES)
    places = [table.feature_names.index(name) for name in sorted(LEVELS)]
    for asked, value in (
        ({"must": "stage"}, 0.0),
        ({"must": "stage=II vs I"}, 0.0),
        ({"ban": "stage"}, np.inf),
        ({"ban": "stage=III vs I"}, np.inf),
        ({"costs": {"stage": 2.5}}, 2.5),
    ):
        factors = steering_factors(settings_from(**asked), table)
        expected = np.ones(len(table.feature_names))
        expected[places] = value
        np.testing.assert_array_equal(factors, expected)
    asked = {"must": ["stage", "g7"], "ban": "tissue", "n_features": 3}
    found = select_panel(staged, target="class", **asked, **CATEGORIES, **QUICK)
    for panel in [*names_of(found.evaluation), set(found.panel.index)]:
        assert LEVELS | {"g7"} < panel and len(panel) == 4
        assert not any(name.startswith("tissue") for name in panel)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"must": "stage", "ban": "stage=II vs I"}, r"'stage=.*' is to be in every panel \(must\)"),
        ({"must": ["stage", "tissue"], "n_features": 1}, "n_features=1 asks for fewer than the 2"),
        ({"ban": [f"g{j}" for j in range(39)], "n_features": 4}, "more than the 3 that are left"),
        ({"must": "stag"}, "there is no feature 'stag'.*did you mean 'stage'"),
    ],
    ids=str,
)
def test_what_contradicts_itself_among_categories_is_refused(staged, asked, message) -> None:
    with pytest.raises(InputError, match=message):
        select_panel(staged, target="class", **asked, **CATEGORIES, **QUICK)


def test_only_the_own_method_chooses_categories_as_a_whole(staged) -> None:
    table = make_table(staged, target="class", **CATEGORIES)
    for run in (
        lambda: evaluate_table(table, method="F test", folds=3, repeats=1),
        lambda: compare_table(table, methods=["F test"], sizes=[2]),
        lambda: plan_comparison(table, methods=["F test"], sizes=[2]),
    ):
        with pytest.raises(InputError, match="categorical is for the method GSVPSVMCV"):
            run()


def test_adjusted_levels_count_as_one_too(staged) -> None:
    asked = {"adjust": ["stage", "tissue"], "n_features": 3}
    found = select_panel(staged, target="class", **asked, **QUICK)
    for panel in names_of(found.evaluation):
        assert panel > LEVELS and len(panel) == 5
    options = {"folds": 3, "repeats": 1, "permutations": 0, "tau": 1.0, "n_deltas": 5}
    table = make_table(staged, target="class", adjust="stage", categorical="tissue")
    evaluation = evaluate_table(table, log2=True, **options).evaluation
    assert evaluation.adjusted.names == tuple(sorted(LEVELS))
    assert all(panel >= LEVELS and whole(panel) for panel in names_of(evaluation))


def test_a_cohort_is_coded_alike_and_a_log_knows_the_categories(staged, tmp_path) -> None:
    cohort = staged[staged["tissue"] != "lung"].iloc[::2]
    log = tmp_path / "log.jsonl"
    found = select_panel(
        staged, target="class", must="tissue", n_features=3, test=cohort, log=log,
        **CATEGORIES, **QUICK,
    )  # fmt: skip
    assert found.validation.n_samples == len(cohort)
    other = staged.assign(stage=staged["stage"].to_numpy()[::-1])
    with pytest.raises(ValueError, match="holds other work: categories differ"):
        select_panel(
            other, target="class", must="tissue", n_features=3, log=log, resume=True,
            **CATEGORIES, **QUICK,
        )  # fmt: skip
    strange = cohort.assign(tissue="bone")
    with pytest.raises(InputError, match="'tissue' has the value 'bone', which training has not"):
        select_panel(staged, target="class", test=strange, **CATEGORIES, **QUICK)


# --- lists in files


def test_names_in_files(tmp_path) -> None:
    file = tmp_path / "names.txt"
    file.write_text('TP53\n\n  BRCA1 \n"HLA-A, B"\n', encoding="utf-16")
    assert names_or_files(["EGFR", f"@{file}"]) == ("EGFR", "TP53", "BRCA1", "HLA-A, B")
    assert names_or_files("EGFR") == ("EGFR",)
    empty = tmp_path / "empty.txt"
    empty.write_text("\n \n")
    for given, message in (
        (f"@{empty}", r"empty\.txt: the file is empty"),
        (f"@{tmp_path / 'none'}", "the list cannot be read"),
        (f"@{tmp_path}", "the list cannot be read"),
    ):
        with pytest.raises(InputError, match=message):
            names_or_files(given)


@pytest.mark.parametrize(
    ("text", "costs"),
    [
        ("g1,2\ng2,0.5\n", {"g1": 2.0, "g2": 0.5}),
        ("feature\tcost\ng1\t2\n", {"g1": 2.0}),
        ("g1;2,5\n", {"g1": 2.5}),
        ('"a, b",3\r\n', {"a, b": 3.0}),
        ("name,price\n1,5 anhydroglucitol,2\n", {"1,5 anhydroglucitol": 2.0}),
    ],
)
def test_costs_in_files(tmp_path, text, costs) -> None:
    file = tmp_path / "costs.csv"
    file.write_text(text)
    assert read_costs(file) == costs
    assert settings_from(costs=file).costs == costs


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("g1,2\ng2,much\n", r"costs\.csv, line 2: 'g2,much' is not a name and a number"),
        ("g1\n", "'g1' is not a name and a number"),
        ("g1,-2\n", "the cost of 'g1' is '-2'"),
        ("g1,nan\n", "the cost of 'g1' is 'nan'"),
        ("g1,inf\n", "what is too dear is for ban"),
        ("\n", "the file is empty"),
        ("name,cost\n", r"costs\.csv: there is no cost in it"),
    ],
)
def test_bad_costs_are_refused(tmp_path, text, message) -> None:
    file = tmp_path / "costs.csv"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        read_costs(file)
