"""Columns to adjust for: from any source the same features, by their levels where they are text."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from sparsegsvp.estimators.pipeline import Log2
from sparsegsvp.io import InputError, make_table, read_table
from sparsegsvp.report import role_lines


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(12, 60)).round(3), columns=[f"G{j}" for j in range(60)])
    frame.insert(0, "sample", [f"s{i}" for i in range(12)])
    frame["age"] = [61, 45, np.nan, 52, 66, 58, 71, 49, 55, 60, 63, 47]
    frame["sex"] = list("MFFMMFMFMFFM")
    frame["stage"] = ["I", "II", "III"] * 4
    frame["class"] = ["ill", "well"] * 6
    return frame


MADE = {
    "age": ("age",),
    "sex": ("sex=M vs F",),
    "stage": ("stage=II vs I", "stage=III vs I"),
}
ASKED = {"adjust": ["age", "sex", "stage"]}


def check(table, frame) -> None:
    assert table.covariates == MADE
    assert table.feature_names[-4:] == ("age", "sex=M vs F", "stage=II vs I", "stage=III vs I")
    assert table.covariate_columns == list(range(60, 64))
    X = table.X.toarray() if sparse.issparse(table.X) else table.X
    np.testing.assert_array_equal(X[:, 60], frame["age"])
    np.testing.assert_array_equal(X[:, 61], frame["sex"] == "M")
    np.testing.assert_array_equal(X[:, 62], frame["stage"] == "II")
    np.testing.assert_array_equal(X[:, 63], frame["stage"] == "III")
    np.testing.assert_array_equal(X[:, :60], frame[[f"G{j}" for j in range(60)]])
    assert table.n_missing == 1
    reasons = {c.column: (c.role, c.reason) for c in table.roles}
    for name in ("age", "sex=M vs F", "stage=III vs I"):
        assert reasons[name] == ("feature", "adjusted for: in every panel")
    lines = [line for line in role_lines(table) if line["role"] == "feature"]
    assert sum(line["count"] for line in lines) == 64
    assert not table.dropped


def test_every_source_gives_the_same(frame, tmp_path) -> None:
    check(make_table(frame, target="class", **ASKED), frame)
    path = tmp_path / "table.csv"
    frame.to_csv(path, index=False)
    check(read_table(path, target="class", **ASKED), frame)
    clinical = ["sample", "age", "sex", "stage", "class"]
    sheet, numbers = tmp_path / "sheet.csv", tmp_path / "numbers.csv"
    frame[clinical].iloc[::-1].to_csv(sheet, index=False)
    frame.drop(columns=clinical[1:]).to_csv(numbers, index=False)
    check(read_table(numbers, target="class", labels=sheet, **ASKED), frame)
    turned = tmp_path / "turned.csv"
    frame.set_index("sample").T.to_csv(turned)
    check(read_table(turned, target="class", transpose=True, **ASKED), frame)


def test_annotated_data_has_them_in_obs(frame) -> None:
    anndata = pytest.importorskip("anndata")
    genes = frame[[f"G{j}" for j in range(60)]]
    obs = frame[["age", "sex", "stage", "class"]].set_index(frame["sample"])
    for X in (genes.to_numpy(), sparse.csr_matrix(genes.to_numpy())):
        data = anndata.AnnData(X, obs=obs, var=pd.DataFrame(index=genes.columns))
        check(make_table(data, target="class", **ASKED), frame)


def test_annotated_data_of_another_cohort_is_encoded_too(frame, tmp_path) -> None:
    anndata = pytest.importorskip("anndata")
    genes = frame[[f"G{j}" for j in range(60)]]
    obs = frame[["stage", "class"]].set_index(frame["sample"])
    data = anndata.AnnData(genes.to_numpy(), obs=obs, var=pd.DataFrame(index=genes.columns))
    data.write_h5ad(tmp_path / "cohort.h5ad")
    wanted = ["stage=III vs I", "G5", "stage=II vs I"]
    for source in (data, tmp_path / "cohort.h5ad"):
        table = make_table(source, target="class", features=wanted)
        np.testing.assert_array_equal(table.X[:, 0], frame["stage"] == "III")
        np.testing.assert_array_equal(table.X[:, 2], frame["stage"] == "II")


def test_another_cohort_is_encoded_by_the_names_of_the_features(frame, tmp_path) -> None:
    wanted = ["stage=III vs I", "G5", "sex=M vs F", "stage=II vs I", "age"]
    cohort = frame[frame["stage"] != "III"].copy()  # a level that does not occur is no matter
    path = tmp_path / "cohort.csv"
    cohort.to_csv(path, index=False)
    for table in (make_table(cohort, target="class", features=wanted),
                  read_table(path, target="class", features=wanted),
                  read_table(path, target="class", features=wanted, **ASKED)):  # fmt: skip
        assert list(table.feature_names) == wanted
        np.testing.assert_array_equal(table.X[:, 0], 0.0)
        np.testing.assert_array_equal(table.X[:, 1], cohort["G5"])
        np.testing.assert_array_equal(table.X[:, 2], cohort["sex"] == "M")
        np.testing.assert_array_equal(table.X[:, 4], cohort["age"])
    for source in (cohort, path):
        only = make_table(source, target="class", features=wanted[2:3])
        np.testing.assert_array_equal(only.X[:, 0], cohort["sex"] == "M")
    # columns that are coded already are taken as they are
    coded = make_table(frame, target="class", **ASKED)
    again = pd.DataFrame(coded.X, columns=coded.feature_names).assign(y=frame["class"])
    np.testing.assert_array_equal(
        make_table(again, target="y", features=wanted).X[:, :4],
        coded.X[:, [63, 5, 61, 62]],
    )


def test_codes_for_missing_values_and_decimal_commas(frame) -> None:
    changed = frame.assign(age=["61,5", "-999", "n.a.", *map(str, range(50, 59))])
    table = make_table(changed, target="class", adjust="age", na="-999", drop=["sex", "stage"])
    column = table.X[:, table.feature_names.index("age")]
    np.testing.assert_array_equal(column[:4], [61.5, np.nan, np.nan, 50.0])


@pytest.mark.parametrize(
    ("change", "asked", "message"),
    [
        ({}, {"adjust": "aeg"}, r"there is no column 'aeg' \(adjust\); did you mean 'age'"),
        ({}, {"adjust": "age", "drop": ["age"]}, "'age' is given as adjust and as drop"),
        ({"sex": "M"}, {"adjust": "sex"}, "'sex' .adjust. needs two values or more, and has 'M'"),
        ({"age": 61}, {"adjust": "age"}, "'age' .adjust. needs two values or more, and has '61'"),
        ({"age": None}, {"adjust": "age"}, "'age' .adjust. needs two values or more, and has none"),
        ({"sex": ["X", *"MFMFMFMFMFM"]}, {"adjust": "sex"}, "has the value 'X' in one sample only"),
        ({"sex": [None, *"MFMFMFMFMFM"]}, {"adjust": "sex"}, "has no value on sample 's0'"),
        ({"age": [">90", *range(11)]}, {"adjust": "age"}, "'>90' is not a number; correct"),
        ({"age": ["inf", *range(11)]}, {"adjust": "age"}, "column 'age': inf is infinite"),
        ({"sex": list("MFMFMFMFMFMX")}, {"features": ["sex=M vs F", "G1"]},
         "'sex' .adjust. has values that are new: 'X', not 'F' and 'M'"),
        ({"age": list("abcdefghijkl")}, {"features": ["age", "G1"], "adjust": "age"},
         "'age' .adjust. holds text .'a', 'b'"),
    ],
    ids=str,
)  # fmt: skip
def test_what_cannot_be_adjusted_for_is_refused(frame, change, asked, message) -> None:
    with pytest.raises(InputError, match=message):
        make_table(frame.assign(**change), target="class", **asked)


@pytest.mark.parametrize("kind", [np.array, sparse.csr_matrix, sparse.csc_matrix])
def test_the_logarithm_leaves_columns_alone(kind) -> None:
    X = np.array([[8.0, 0.0, 3.0], [4.0, 1.0, 0.0]])
    out = Log2(skip=(1, 2)).fit_transform(kind(X))
    out = out.toarray() if sparse.issparse(out) else out
    np.testing.assert_array_equal(out, [[3.0, 0.0, 3.0], [2.0, 1.0, 0.0]])
