"""`must`, `ban` and `costs`: names in, penalty factors out, the same in every fold."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from sparsegsvp import select_panel
from sparsegsvp.datasets import make_planted
from sparsegsvp.io import InputError, make_table
from sparsegsvp.io.text import names_or_files, read_costs
from sparsegsvp.workflow import evaluate_table, plan_selection
from sparsegsvp.workflow.settings import make_settings
from sparsegsvp.workflow.steering import steering_factors, steering_notices

QUICK = {"fast": True, "tau": 1.0, "n_deltas": 5, "folds": 3}


@pytest.fixture(scope="module")
def frame():
    X, y = make_planted(50, 40, 3, effect=2.0, random_state=1, return_X_y=True)
    frame = pd.DataFrame(X, columns=[f"g{j}" for j in range(40)])
    frame["class"] = np.array(["ill", "well"])[y]
    return frame


@pytest.fixture(scope="module")
def table(frame):
    return make_table(frame, target="class")


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
    settings = make_settings(must="g1, g2", ban=["g3"], costs={"g2": 5.0, "g4": 2.5})
    factors = steering_factors(settings, table)
    expected = np.ones(40)
    expected[[1, 2]], expected[3], expected[4] = 0.0, np.inf, 2.5
    np.testing.assert_array_equal(factors, expected)
    [notice] = steering_notices(factors, table)
    assert "1 features cost more or less" in notice.text
    assert steering_factors(make_settings(), table) is None
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
    assert make_settings(costs=file).costs == costs


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
