"""`make_table`: data in memory are what the same data in a file would be."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from sparsegsvp.io import InputError, Table, make_table, read_table
from sparsegsvp.workflow.predict import check_cohort

ROLES = {"target": "class", "id": "sample", "group": "patient"}


def assert_same(table, other):
    """Equal but for source, digest and the wording of the record."""
    X, Z = (t.X.toarray() if sparse.issparse(t.X) else t.X for t in (table, other))
    np.testing.assert_array_equal(X, Z)
    assert table.X.dtype == other.X.dtype
    for name in ("y", "sample_names", "groups"):
        mine, theirs = getattr(table, name), getattr(other, name)
        assert (mine is None) == (theirs is None), name
        assert mine is None or list(mine) == list(theirs), name
    names = ("feature_names", "target", "positive", "notices", "dropped", "n_missing")
    for name in names:
        assert getattr(table, name) == getattr(other, name), name


def as_polars(frame):
    return pytest.importorskip("polars").from_pandas(frame)


@pytest.mark.parametrize("convert", [pd.DataFrame, as_polars])
@pytest.mark.parametrize("case", ["plain", "gaps", "repeats", "text", "whole numbers"])
def test_a_frame_is_the_csv_of_it(sheet, tmp_path, convert, case):
    frame = sheet.frame()
    if case == "gaps":
        frame.loc[2, "TP53"] = np.nan
        frame.loc[5, "class"] = None
        frame["empty"] = np.nan
        frame["same"] = 7.5
    elif case == "repeats":
        frame.loc[4, sheet.names] = frame.loc[1, sheet.names]
        frame.loc[3, "sample"] = "s0"
    elif case == "text":
        frame["HLA-A"] = [repr(v) for v in frame["HLA-A"]]
        frame.loc[2, "HLA-A"] = "NA"
    elif case == "whole numbers":
        frame["count"] = np.arange(8)
        frame["class"] = np.arange(8) % 2
    path = tmp_path / "a.csv"
    frame.to_csv(path, index=False)
    table = make_table(convert(frame), **ROLES)
    expected = read_table(path, **ROLES)
    assert_same(table, expected)
    assert table.X.strides == expected.X.strides  # so that results agree to the last bit
    assert table.source == "data frame" and len(table.digest) == 64
    # but for the first sentence and the places: a file has lines, a frame has rows
    said, other = ([re.sub(r" \(.*", "", s) for s in t.record[1:]] for t in (table, expected))
    assert said == other
    assert bool(table.notices) == (case in ("repeats", "gaps"))


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.floats(-1e100, 1e100) | st.none(),
            st.integers(-(2**50), 2**50),
            st.sampled_from(["ill", "well", "NA", None]),
        ),
        min_size=2,
        max_size=8,
    )
)
def test_any_frame_is_the_csv_of_it(tmp_path_factory, rows):
    """Law: a frame gives the table of its CSV, or is refused where that is."""
    frame = pd.DataFrame(rows, columns=["a", "b", "class"]).astype({"a": float})
    path = tmp_path_factory.mktemp("law") / "a.csv"
    frame.to_csv(path, index=False)
    try:
        expected = read_table(path, target="class")
    except InputError as error:
        with pytest.raises(InputError) as caught:
            make_table(frame, target="class")
        assert caught.value.what == error.what
    else:
        assert_same(make_table(frame, target="class"), expected)


def test_the_index_names_the_samples_unless_it_counts(sheet, tmp_path):
    frame = sheet.frame().drop(columns="patient")
    indexed = frame.set_index("sample")
    indexed.to_csv(tmp_path / "named.csv")
    indexed.rename_axis(None).to_csv(tmp_path / "unnamed.csv")
    options = {"target": "class"}
    named = make_table(indexed, **options)
    assert_same(named, read_table(tmp_path / "named.csv", id="sample", **options))
    assert_same(make_table(indexed, id="sample", **options), named)
    unnamed = make_table(indexed.rename_axis(None), **options)
    assert_same(unnamed, read_table(tmp_path / "unnamed.csv", **options))
    assert make_table(frame.drop(columns="sample"), **options).sample_names is None
    # an index that begins later tells which samples of a larger frame they were
    assert list(make_table(frame[2:].drop(columns="sample"), **options).sample_names) == list(
        "234567"
    )
    by_class = make_table(frame.set_index("class").drop(columns="sample"), target="class")
    assert list(by_class.y) == sheet.labels and by_class.sample_names is None
    levels = frame.set_index(["sample", "class"])
    assert make_table(levels, sheet.labels).sample_names[0] == "s0, B"
    other = make_table(indexed.assign(other=list("abcdefgh")), id="other", **options)
    assert list(other.sample_names) == list("abcdefgh") and other.feature_names == tuple(
        sheet.names
    )


def test_columns_of_several_levels_keep_the_name_of_the_index(sheet):
    frame = sheet.frame().set_index("sample")[sheet.names]
    frame.columns = pd.MultiIndex.from_tuples([("x", name) for name in frame.columns])
    table = make_table(frame, sheet.labels, id="sample")
    assert list(table.sample_names) == sheet.ids and table.feature_names[0] == "('x', 'TP53')"


def test_identifiers_that_are_given_come_before_an_index(sheet):
    frame = sheet.frame().set_index("sample")[sheet.names]
    given = make_table(frame, sheet.labels, ids=[f"t{i}" for i in range(8)])
    assert list(given.sample_names) == [f"t{i}" for i in range(8)]
    assert "the index was left out, as names of rows" in given.record
    assert list(make_table(frame, sheet.labels).sample_names) == sheet.ids
    long = frame.set_axis([123456789012345670 + i for i in range(8)])
    assert make_table(long, sheet.labels).sample_names[3] == "123456789012345673"


def test_labels_and_groups_apart(sheet):
    frame = sheet.frame()
    expected = make_table(frame, **ROLES)
    apart = make_table(
        frame[sheet.names],
        frame["class"],
        ids=sheet.ids,
        groups=np.array(sheet.groups),
        positive="C",
    )
    assert_same(apart, dataclasses.replace(expected, positive="C"))
    assert make_table(sheet.X, [1, 0] * 4, positive=1).positive_class == "1"
    numbers = make_table(sheet.X, np.array([1.0, 0.0, np.nan, 1.0] * 2))
    assert numbers.class_counts() == {"0": 2, "1": 4} and numbers.target == "y"


@pytest.mark.parametrize("convert", [np.asarray, np.asfortranarray, sparse.csr_matrix, list])
def test_matrices(sheet, convert):
    table = make_table(convert(sheet.X), sheet.labels, feature_names=sheet.names)
    expected = make_table(sheet.frame()[sheet.names], sheet.labels)
    assert_same(table, expected)
    assert sparse.issparse(table.X) == (convert is sparse.csr_matrix)
    assert make_table(convert(sheet.X), sheet.labels).feature_names == tuple(
        f"f{j}" for j in range(5)
    )
    picked = make_table(convert(sheet.X), sheet.labels, features=["f3", "f0"])
    X = picked.X.toarray() if sparse.issparse(picked.X) else picked.X
    np.testing.assert_array_equal(X, sheet.X[:, [3, 0]])
    assert make_table(convert(sheet.X), sheet.labels, drop=["f1"]).dropped == {"f1": "asked for"}


def test_sparse_input_is_not_changed_and_duplicates_are_summed():
    X = sparse.coo_matrix(([1.0, 2.0, 3.0], ([0, 0, 1], [1, 1, 0])), shape=(3, 2)).tocsr()
    raw = sparse.csr_matrix((np.ones(3), [1, 0, 0], [0, 2, 3, 3]), shape=(3, 2))
    for matrix in (X, raw):
        before = [a.copy() for a in (matrix.data, matrix.indices, matrix.indptr)]
        table = make_table(matrix, ["a", "b", "a"])
        np.testing.assert_array_equal(table.X.toarray(), matrix.toarray())
        assert table.X.has_canonical_format
        for old, new in zip(before, (matrix.data, matrix.indices, matrix.indptr)):
            np.testing.assert_array_equal(old, new)


def test_types_of_pandas_and_polars():
    frame = pd.DataFrame(
        {
            "nullable": pd.array([1, None, 3], dtype="Int64"),
            "truth": [True, False, True],
            "maybe": pd.array([True, None, False], dtype="boolean"),
            "objects": pd.Series([1, 2.5, None], dtype=object),
            "category": pd.Categorical([4, 5, 4]),
            "class": pd.Categorical(["x", "y", "x"]),
        }
    )
    nan = np.nan
    X = [[1, 1, 1, 1, 4], [nan, 0, nan, 2.5, 5], [3, 1, 0, nan, 4]]
    np.testing.assert_array_equal(make_table(frame, target="class").X, X)
    single = pd.DataFrame({"a": np.float32([1.5, 2.5]), "b": np.float32([0, 1])})
    assert make_table(single, ["x", "y"]).X.dtype == np.float32
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"a": [1, None, 3], "b": [True, None, False], "c": ["1.5", "2", None]})
    np.testing.assert_array_equal(
        make_table(frame, ["x", "y", "x"]).X, [[1, 1, 1.5], [nan, nan, 2], [3, 0, nan]]
    )
    single = pl.DataFrame({"a": [1.5, 2.5]}, schema={"a": pl.Float32})
    assert make_table(single, ["x", "y"]).X.dtype == np.float32


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_anndata_is_the_file_of_it(sheet, write_sheet, tmp_path, kind):
    anndata = pytest.importorskip("anndata")
    path = tmp_path / f"{kind}.h5ad"
    write_sheet(sheet, path)
    options = {"target": "class", "group": "patient"}
    for more in ({}, {"layer": "doubled"}, {"drop": ["TP53"]}):
        expected = read_table(path, **options, **more)
        adata = anndata.read_h5ad(path)
        assert_same(make_table(adata, **options, **more), expected)
        backed = anndata.read_h5ad(path, backed="r")
        assert_same(make_table(backed, **options, **more), expected)
    with pytest.raises(InputError, match=r"no layer 'double' \(layer\); did you mean 'doubled'"):
        make_table(adata, target="class", layer="double")
    with pytest.raises(InputError, match=r"'Class' \(target\) is said of samples; did you mean"):
        make_table(adata, target="Class")


def test_a_path_and_a_table(sheet, write_sheet, tmp_path):
    path = tmp_path / "a.tsv"
    options = write_sheet(sheet, path)
    table = make_table(path, **options, separator="\t")
    expected = read_table(path, **options)
    assert_same(table, expected)
    assert table.digest == expected.digest and table.source == "a.tsv"
    assert make_table(str(path), **options).digest == expected.digest
    assert make_table(table) is table
    with pytest.raises(InputError, match=r"a Table has no use for drop, target; leave"):
        make_table(table, target="class", drop=["a"])
    with pytest.raises(InputError, match=r"a\.tsv: a file has no use for y; leave"):
        make_table(path, sheet.labels)


FRAME = pd.DataFrame({"age": [1, 2, 3, 4], "sex": list("FMFM"), "class": list("xyxy")})
LAZY = type("Lazy", (), {"__dask_graph__": None})()


@pytest.mark.parametrize(
    ("data", "options", "expected"),
    [
        (FRAME, {"target": "Class"}, "data frame: there is no column 'Class' (target); did you"),
        (
            FRAME,
            {"target": "class"},
            "column 'sex' holds text ('F' on row 1); leave text out with drop=['sex'], have",
        ),
        (FRAME, {"target": "class", "y": [1, 2, 1, 2]}, "target and y are both given"),
        (FRAME, {"y": [1, 2], "drop": ["sex", "class"]}, "y has 2 values for 4 samples"),
        (FRAME, {"y": np.eye(4), "drop": ["sex", "class"]}, "y must be one-dimensional"),
        (FRAME, {"target": "class", "separator": ";"}, "data frame has no use for separator"),
        (FRAME, {"target": "class", "layer": "raw"}, "a data frame has no use for layer"),
        (
            FRAME,
            {"target": "class", "feature_names": list("abc")},
            "a data frame has no use for feature_names",
        ),
        (FRAME, {"target": "class", "source": "visit 2"}, "visit 2: column 'sex' holds text"),
        (np.eye(3), {}, "matrix: there are no labels; give them as y"),
        (np.eye(3), {"target": "class"}, "a matrix has no column 'class' (target)"),
        (np.ones(3), {"y": [1, 2, 1]}, "the data are 1-dimensional"),
        (np.eye(2), {"y": [0, 1], "feature_names": ["a"]}, "1 feature_names for 2 columns"),
        (np.eye(2), {"y": [0, 1], "feature_names": ["a", "a"]}, "'a' appears 2 times"),
        (np.array([["1", "2"], ["u", "3"]]), {"y": [0, 1]}, "holds <U1, not numbers; give a data"),
        (np.array([[1, np.inf], [2, 3]]), {"y": [0, 1]}, "row 1, column 'f1': inf is infinite"),
        (sparse.csr_matrix(np.eye(2) * 1j), {"y": [0, 1]}, "holds complex128, not numbers"),
        (LAZY, {"y": [0, 1]}, "not in memory yet; compute or collect them"),
    ],
)
def test_refusals(data, options, expected):
    with pytest.raises(InputError) as caught:
        make_table(data, **options)
    assert expected in str(caught.value)


def test_the_digest_is_of_values_names_and_labels(sheet):
    frame = sheet.frame()
    table = make_table(frame, **ROLES)
    assert make_table(frame.copy(), **ROLES).digest == table.digest
    value, name, label = frame.copy(), frame.rename(columns={"TP53": "TP54"}), frame.copy()
    value.loc[0, "TP53"] += 1e-9
    label.loc[0, "class"] = "ill"
    digests = {make_table(f, **ROLES).digest for f in (frame, value, name, label)}
    assert len(digests) == 4


def test_what_a_table_says_of_itself(sheet):
    table = make_table(sheet.frame(), **ROLES, positive="ill")
    assert table.labels.tolist() == sheet.labels and table.labels.dtype.kind == "U"
    assert table.positive_class is None  # three classes
    two = make_table(sheet.X, list("abababab"))
    assert two.positive_class == "b"
    assert make_table(sheet.X, list("abababab"), positive="a").positive_class == "a"
    assert table.class_counts() == {"B": 3, "C": 2, "ill": 3}
    assert table.X.shape == (8, 5) and not table.notices
    unlabelled: Table = make_table(sheet.frame(), id="sample", drop=["class", "patient"])
    with pytest.raises(InputError, match="data frame: there are no labels; name them: target"):
        unlabelled.labels


def test_a_cohort_is_other_samples_of_the_same_classes(sheet):
    frame = sheet.frame()
    table = make_table(frame, **ROLES)
    check_cohort(make_table(frame[1:], **ROLES), table)
    with pytest.raises(InputError, match=r"the cohort \(test\) is the training table itself"):
        check_cohort(make_table(frame, **ROLES), table)
    other = frame.assign(**{"class": list("UVUVUVUV")})
    with pytest.raises(InputError, match=r"label 'U' does not occur in data frame"):
        check_cohort(make_table(other, **ROLES), table)


@pytest.mark.parametrize("options", [{"drop": ["f1"]}, {"features": ["f0", "f2"]}, {"na": "3"}])
def test_a_matrix_is_left_as_it_was_given(options):
    """Columns are taken and codes marked in place in our own matrices alone."""
    X = np.random.default_rng(0).normal(size=(6, 4))
    X[2, 2] = 3.0
    before = X.copy()
    make_table(X, list("ababab"), **options)
    np.testing.assert_array_equal(X, before)
