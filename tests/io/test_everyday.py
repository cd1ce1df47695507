"""Files as people have them: what is found out is done and said, what is in doubt is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from sparsegsvp.io import InputError, make_table, read_table
from sparsegsvp.io.cells import MISSING
from sparsegsvp.workflow.predict import check_cohort

GENES = "ID_REF,s1,s2,s3,s4\nTP53,1,2,3,4\nMYC,5,6,7,8.5\n"
TURNED = GENES + "diagnosis,ill,well,ill,well\n"
VALUES = [[1, 5], [2, 6], [3, 7], [4, 8.5]]


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def refusal(path, **options) -> str:
    with pytest.raises(InputError) as caught:
        read_table(path, **options)
    return str(caught.value)


# --- features in rows ------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"id": "ID_REF"}, {"transpose": True, "id": "ID_REF"}])
def test_a_target_that_names_a_row_turns_the_table(tmp_path, options):
    """The name of the first column is no name of a row, and says nothing new."""
    table = read_table(write(tmp_path / "a.csv", TURNED), target="diagnosis", **options)
    np.testing.assert_array_equal(table.X, VALUES)
    assert table.feature_names == ("TP53", "MYC") and list(table.sample_names) == [
        "s1",
        "s2",
        "s3",
        "s4",
    ]
    said = "features are in rows, samples in columns: 'diagnosis' names a row"
    assert (said in table.record) == ("transpose" not in options)


@pytest.mark.parametrize("suffix", ["csv", "xlsx", "parquet", "indexed.parquet"])
def test_labels_that_match_the_columns_turn_the_table(tmp_path, suffix):
    import pandas as pd

    path = tmp_path / f"a.{suffix}"
    frame = pd.read_csv(write(tmp_path / "text.csv", GENES))
    if suffix == "indexed.parquet":
        frame.set_index("ID_REF").to_parquet(path)
    else:
        {"csv": frame.to_csv, "xlsx": frame.to_excel, "parquet": frame.to_parquet}[suffix](
            path, index=False
        )
    labels = write(tmp_path / "labels.csv", "id,class\ns4,x\ns3,y\ns2,x\ns1,y\n")
    table = read_table(path, labels=labels)
    np.testing.assert_array_equal(table.X, VALUES)
    assert list(table.y) == list("yxyx")
    assert "the columns have the names of labelled samples" in " ".join(table.record)


def test_a_column_comes_before_a_row(tmp_path):
    """Names that are columns already are never looked for in rows."""
    text = "id,a,class\nclass,1,x\na,2,y\ns3,3,x\n"
    table = read_table(write(tmp_path / "a.csv", text), target="class", id="id")
    assert table.X.ravel().tolist() == [1, 2, 3] and list(table.sample_names) == [
        "class",
        "a",
        "s3",
    ]


def test_a_row_of_measurements_is_no_target(tmp_path):
    """A mistyped target that happens to be the name of a sample turns nothing."""
    path = write(tmp_path / "a.csv", "id,g1,g2,class\ncontrol,1.5,2.5,x\ns2,2,4,y\n")
    assert "'control' names a row, not a column" in refusal(path, target="control", drop="class")


def test_descriptions_of_genes_are_no_samples(tmp_path):
    """Columns that no label names are left out, text or not, and named."""
    text = "ID_REF,Symbol,s1,s2,length,s3\np1,TP53,1,2,7,3\np2,MYC,4,5,7,6\n"
    labels = write(tmp_path / "labels.csv", "id,class\ns1,x\ns2,y\ns3,x\n")
    path = write(tmp_path / "a.csv", text)
    for options in ({}, {"transpose": True}):
        table = read_table(path, labels=labels, **options)
        assert table.X.tolist() == [[1, 4], [2, 5], [3, 6]] and list(table.y) == list("xyx")
        assert table.dropped == {"Symbol": "no label", "length": "no label"}
        said = "left out, being columns of no labelled sample: 'Symbol' and 'length'"
        assert said in table.record
        assert not any("as asked" in sentence for sentence in table.record)
    table = read_table(path, labels=labels, drop="Symbol,p2")
    assert table.dropped == {"Symbol": "asked for", "p2": "asked for", "length": "no label"}


def test_features_asked_for_are_looked_for_in_rows(tmp_path):
    path = write(tmp_path / "a.csv", GENES)
    table = read_table(path, features=["MYC", "TP53"], id="sample")
    np.testing.assert_array_equal(table.X, np.array(VALUES)[:, ::-1])
    assert table.record[1:3] == (
        "features are in rows, samples in columns: the rows have the names of the features",
        "the header names the samples; there is no row 'sample'",
    )
    assert "1 of the 3 rows needed are missing: 'KRAS'" in refusal(
        path, features=["MYC", "KRAS", "TP53"]
    )
    # where rows have fewer of them than the header, samples are in rows
    assert "1 of the 2 columns needed" in refusal(path, features=["s1", "KRAS"])


def test_in_doubt_the_option_is_named(tmp_path):
    path = write(tmp_path / "a.csv", "id,1,2,3\n1,1,2,3\n2,3,4,9\n3,5,6,7\n4,0,1,1\n")
    labels = write(tmp_path / "labels.csv", "id,class\n1,x\n2,y\n3,x\n")
    message = refusal(path, labels=labels)
    assert "name columns ('1' and '2') and rows" in message
    assert "say transpose=True if" in message and "else transpose=False" in message
    assert read_table(path, labels=labels, transpose=False).X.tolist() == [
        [1, 2, 3], [3, 4, 9], [5, 6, 7]
    ]  # fmt: skip
    assert read_table(path, labels=labels, transpose=True).X.shape == (3, 4)
    message = refusal(write(tmp_path / "g.csv", GENES), target="diagnosis")
    assert "there is no column 'diagnosis' (target)" in message
    assert "use transpose=True and give the labels in a second file (labels)" in message


# --- headers and first columns ---------------------------------------------------------


@pytest.mark.parametrize(
    ("above", "said"),
    [
        ([], None),
        ([["Table S1. Expression"]], "the header is on line 2; passed over above it: line 1"),
        ([[], [], []], None),
        ([["Table S1"], [], [None, "by A. Author", "2020"], []], "on line 5; passed over above"),
    ],
)
def test_titles_above_the_header_of_a_sheet(tmp_path, above, said):
    import openpyxl

    book = openpyxl.Workbook()
    header = ["patient", *(f"g{j}" for j in range(6)), "class"]
    rows = [[f"p{i}", *(i + j / 8 for j in range(6)), "xy"[i % 2]] for i in range(4)]
    for line in [*above, header, *rows]:
        book.active.append(line)
    book.save(tmp_path / "a.xlsx")
    table = read_table(tmp_path / "a.xlsx", target="class", id="patient")
    assert table.feature_names == tuple(header[1:7])
    np.testing.assert_array_equal(table.X, [row[1:7] for row in rows])
    found = [sentence for sentence in table.record if "header" in sentence]
    assert (not found) if said is None else said in found[0]


def test_a_row_of_numbers_is_never_a_header(tmp_path):
    """Names that are lost are an error; the first sample does not become the header."""
    import openpyxl

    book = openpyxl.Workbook()
    for line in (["a"], [1, 2, 3, "x"], [4, 5, 6, "y"]):
        book.active.append(line)
    book.save(tmp_path / "a.xlsx")
    assert "column 2 has no name but holds '2'" in refusal(tmp_path / "a.xlsx", target="a")


@pytest.mark.parametrize("header", ["", '""', "Unnamed: 0"])
@pytest.mark.parametrize("names", [["0", "1", "2"], ["s1", "s2", "s3"]])
def test_an_unnamed_first_column_is_no_feature(tmp_path, header, names):
    """Row numbers of a table sorted by class would be the best feature of all."""
    rows = "\n".join(f"{name},{i}.5,q{i},{'xyy'[i]}" for i, name in enumerate(names))
    path = write(tmp_path / "a.csv", f"{header},g,sample,class\n{rows}\n")
    table = read_table(path, target="class", drop=["sample"])
    assert table.feature_names == ("g",) and list(table.sample_names) == names
    assert "the first column has no name and was taken for sample identifiers" in table.record
    table = read_table(path, target="class", id="sample")
    assert table.feature_names == ("g",) and list(table.sample_names) == ["q0", "q1", "q2"]
    assert "the first column has no name and was left out, as names of rows" in table.record


# --- missing values --------------------------------------------------------------------


@pytest.mark.parametrize(
    "code", ["NA", "n.d.", "ND", "<LOD", "#N/A", "NaN", "null", ".", "Missing"]
)
def test_the_usual_codes_are_known_and_counted(tmp_path, code):
    path = write(tmp_path / "a.csv", f"a,b,class\n1,2,x\n{code},4,y\n3, {code.lower()} ,x\n")
    table = read_table(path, target="class")
    np.testing.assert_array_equal(table.X, [[1, 2], [np.nan, 4], [3, np.nan]])
    counted = {code: 2} if code == code.lower() else {code: 1, code.lower(): 1}
    listing = ", ".join(f"'{name}' {n}" for name, n in counted.items())
    assert f"taken as missing: {listing}" in table.record
    low = code.lower() in ("n.d.", "nd", "<lod")
    assert [notice.code for notice in table.notices] == (["detection"] if low else [])
    frame = make_table(_frame(code), target="class")
    np.testing.assert_array_equal(frame.X, table.X)
    assert [n.code for n in frame.notices] == [n.code for n in table.notices]


def _frame(code):
    import pandas as pd

    return pd.DataFrame({"a": [1, code, 3], "b": [2, 4, code], "class": list("xyx")})


def test_no_number_is_a_code_unasked():
    for code in MISSING - {"nan"}:
        with pytest.raises(ValueError, match="could not convert"):
            float(code)


@pytest.mark.parametrize("na", ["-999, n.m.", ["-999", "N.M."]])
def test_more_codes(tmp_path, na):
    path = write(tmp_path / "a.csv", "a,b,class\n1,-999,x\n-999.0,4,y\nn.m.,6,x\n7,8,N.M.\n")
    assert "'n.m.' is not a number" in refusal(path, target="class")
    table = read_table(path, target="class", na=na)
    np.testing.assert_array_equal(table.X, [[1, np.nan], [np.nan, 4], [np.nan, 6]])
    assert list(table.y) == ["x", "y", "x"]  # a code given is one among labels, too
    assert "taken as missing: '-999' 2, 'n.m.' 1" in table.record
    turned = write(tmp_path / "t.csv", "gene,s1,s2\na,-999,n.m.\nb,1,2\n")
    table = read_table(turned, transpose=True, na=na)  # a has no value left
    assert table.X.ravel().tolist() == [1, 2] and table.dropped == {"a": "no value"}


def test_codes_of_data_in_memory_leave_the_data_alone():
    X = np.array([[1.0, -9.0], [-9.0, 2.0], [3.0, 4.0]])
    before = X.copy()
    table = make_table(X, list("xyx"), na="-9")
    np.testing.assert_array_equal(table.X, [[1, np.nan], [np.nan, 2], [3, 4]])
    np.testing.assert_array_equal(X, before)
    S = sparse.csr_matrix(X)
    np.testing.assert_array_equal(make_table(S, list("xyx"), na="-9").X.toarray(), table.X)
    np.testing.assert_array_equal(S.toarray(), before)
    with pytest.raises(InputError, match=r"0 cannot mark missing values in a sparse matrix \(na\)"):
        make_table(S, list("xyx"), na="0")


def test_an_unknown_code_is_proposed_by_name(tmp_path):
    rows = "".join(f"{i},{i if i % 3 else 'u.d.'},{'xy'[i % 2]}\n" for i in range(12))
    path = write(tmp_path / "a.csv", "a,b,class\n" + rows)
    assert "if it stands for a missing value, use na='u.d.'" in refusal(path, target="class")
    assert read_table(path, target="class", na="u.d.").n_missing == 4
    path.write_text("a,b,class\n" + "1,2,x\n" * 15 + "1,2O,y\n")
    assert "drop=['b']; if it stands for a missing value, use na='2O'" in refusal(
        path, target="class"
    )


# --- names -----------------------------------------------------------------------------

SHARED = np.array([[1.0, 10, 5, np.nan], [3, 20, 6, 2], [5, 60, 7, 7]])  # a, b, a, a


@pytest.mark.parametrize(
    ("how", "expected"),
    [("mean", [3, 11 / 3, 19 / 3]), ("max", [5, 6, 7])],
)
@pytest.mark.parametrize("kind", ["rows", "columns", "frame", "objects", "matrix", "sparse"])
def test_shared_names_are_made_one(tmp_path, kind, how, expected):
    """The same of every source, a missing value counting for nothing."""
    names, labels = ["a", "b", "a", "a"], list("xyx")
    cells = [["" if np.isnan(v) else str(v) for v in row] for row in SHARED]
    options = {"target": "class", "collapse": how}
    if kind == "rows":
        lines = [["g", "s1", "s2", "s3"], *([n, *c] for n, c in zip(names, zip(*cells)))]
        lines.append(["class", *labels])
    elif kind == "columns":
        lines = [[*names, "class"], *([*c, y] for c, y in zip(cells, labels))]
    if kind in ("rows", "columns"):
        data = write(tmp_path / "a.csv", "\n".join(map(",".join, lines)) + "\n")
    elif kind in ("frame", "objects"):
        import pandas as pd

        data = pd.DataFrame(SHARED if kind == "frame" else np.array(cells), columns=names)
        data["class"] = labels
    else:
        data = sparse.csr_matrix(SHARED) if kind == "sparse" else SHARED
        options = {"collapse": how, "y": labels, "feature_names": names}
    table = make_table(data, **options)
    X = table.X.toarray() if kind == "sparse" else table.X
    assert table.feature_names == ("a", "b")
    np.testing.assert_allclose(X, np.column_stack([expected, [10, 20, 60]]), rtol=1e-15)
    assert sum("1 name is shared by 3 features" in sentence for sentence in table.record) == 1
    del options["collapse"]
    with pytest.raises(InputError, match=r"make them one with collapse='mean' or 'max'"):
        make_table(data, **options)


def test_only_features_are_made_one(tmp_path):
    path = write(tmp_path / "a.csv", "a,class,class\n1,x,y\n2,y,x\n")
    assert "column name 'class' appears 2 times" in refusal(path, target="class", collapse="mean")
    assert "collapse must be 'mean' or 'max', got 'sum'" in refusal(path, collapse="sum")
    wanted = write(tmp_path / "b.csv", "b,a,c,a\n1,2,3,4\n5,6,7,8\n")
    table = read_table(wanted, features=["a", "b"], collapse="mean")
    assert table.feature_names == ("a", "b") and table.X.tolist() == [[3, 1], [7, 5]]


@pytest.mark.parametrize("drop", ["b,c", ["b, c"], ["b", "c"], "b,c,b"])
@pytest.mark.parametrize("turned", [False, True])
def test_several_names_after_one_option(tmp_path, drop, turned):
    lines = [["a", "b", "c", "class"], ["1", "2", "3", "x"], ["4", "5", "6", "y"]]
    lines = [["g", "s1", "s2"], *map(list, zip(*lines))] if turned else lines
    path = write(tmp_path / "a.csv", "\n".join(map(",".join, lines)) + "\n")
    assert read_table(path, target="class", drop=drop).feature_names == ("a",)
    assert "there is no" in refusal(path, target="class", drop="b,q")


@pytest.mark.parametrize("turned", [False, True])
def test_a_name_with_a_comma_is_tried_first(tmp_path, turned):
    lines = [["b,c", "b", "c", "class"], ["1", "2", "3", "x"], ["4", "5", "6", "y"]]
    lines = [["g", "s1", "s2"], *map(list, zip(*lines))] if turned else lines
    path = write(tmp_path / "a.tsv", "\n".join(map("\t".join, lines)) + "\n")
    assert read_table(path, target="class", drop="b,c").feature_names == ("b", "c")


# --- labels ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "expected", "said"),
    [
        (["tumor", "Tumor", "tumor", "well"], ["tumor"] * 3 + ["well"], "'tumor' 2, 'Tumor' 1"),
        (["Ill", "ill ", "well", "well"], ["Ill"] * 2 + ["well"] * 2, "'Ill' 1, 'ill ' 1"),
        (["1.0", "1", "1", "0"], ["1", "1", "1", "0"], "'1' 2, '1.0' 1"),
        (["Stage  I", "stage I", "b", "b"], ["Stage  I"] * 2 + ["b"] * 2, "'stage I' 1"),
        (["a", "b", "1", "01"], ["a", "b", "1", "01"], None),
    ],
)
def test_spellings_of_a_label_are_one_class(tmp_path, labels, expected, said):
    """The most frequent spelling stays, the first in order among equals."""
    rows = "\n".join(f'{i},"{label}"' for i, label in enumerate(labels))
    if len(set(labels)) == len(labels) and said is None:
        rows += f"\n9,{labels[0]}"
        expected = [*expected, labels[0]]
    table = read_table(write(tmp_path / "a.csv", f"g,class\n{rows}\n"), target="class")
    assert list(table.y) == expected
    found = [notice for notice in table.notices if notice.code == "spelling"]
    assert len(found) == (said is not None)
    if said is not None:
        assert said in found[0].text
        assert any(said in s and s.startswith("labels in several") for s in table.record)


def test_the_class_of_interest_follows_its_class(tmp_path):
    path = write(tmp_path / "a.csv", "g,class\n1,ill\n2,Ill\n3,ill\n4,well\n")
    table = read_table(path, target="class", positive="Ill")
    assert table.positive == table.positive_class == "ill"
    assert "did you mean 'ill'?" in refusal(path, target="class", positive="ILL")


def test_a_cohort_may_spell_its_labels_otherwise():
    table = make_table(np.arange(4.0)[:, None], ["ill", "well", "ill", "well"])
    cohort = make_table(np.arange(4.0)[:, None] + 9, ["ILL", " well", "well", "ILL"])
    found = check_cohort(cohort, table)
    assert list(found.y) == ["ill", "well", "well", "ill"]
    assert found.record[-1].endswith("'ILL' is taken for 'ill'")
    assert found.notices[-1].code == "spelling"
    assert check_cohort(found, table) is found
    other = make_table(np.arange(4.0)[:, None] + 9, ["ILL", "sick", "well", "ILL"])
    with pytest.raises(InputError, match="label 'sick' does not occur"):
        check_cohort(other, table)


def test_second_files_may_spell_a_label_twice(tmp_path):
    path = write(tmp_path / "a.csv", "id,g\ns1,1\ns2,2\ns3,3\n")
    labels = write(tmp_path / "l.csv", "id,class\ns1,Ill\ns1,ill\ns2,well\ns3,Ill\n")
    assert list(read_table(path, labels=labels, target="class").y) == ["Ill", "well", "Ill"]


# --- scale -----------------------------------------------------------------------------


def _intensities(rng, n=40, m=60):
    return np.exp2(rng.normal(8, 2, m) + rng.normal(0, 1, (n, m)))


SCALES = {
    # name: (values, whether the logarithm is advised)
    "intensities": (_intensities, True),
    "counts": (lambda rng: rng.poisson(_intensities(rng)), True),
    "sparse counts": (lambda rng: sparse.csr_matrix(rng.poisson(_intensities(rng))), True),
    "with a gap": (lambda rng: np.where(np.eye(40, 60) > 0, np.nan, _intensities(rng)), True),
    "logarithms": (lambda rng: np.log2(_intensities(rng)), False),
    "standardised": (lambda rng: rng.normal(size=(40, 60)) * 300, False),
    "percent": (lambda rng: rng.uniform(0, 100, (40, 60)), False),
    "pixels": (lambda rng: rng.integers(0, 256, (40, 60)), False),
    "large but alike": (lambda rng: rng.normal(5000, 100, (40, 60)), False),
    "few columns": (lambda rng: _intensities(rng, m=12), False),
    "unlike columns": (lambda rng: rng.lognormal(0, 1, (40, 60)) * np.r_[1e3, [0.01] * 59], False),
}


@pytest.mark.parametrize("case", SCALES)
def test_raw_intensities_are_recognised(case):
    make, advised = SCALES[case]
    table = make_table(make(np.random.default_rng(3)), ["x", "y"] * 20)
    assert [n.code for n in table.notices] == (["raw"] if advised else [])
    assert table.without_notice("raw").notices == ()
