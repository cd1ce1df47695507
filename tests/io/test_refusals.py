"""Each bad input has its one line: what, where, remedy."""

from __future__ import annotations

import gzip

import pytest

from sparsegsvp._notices import Notice
from sparsegsvp.io import InputError, read_table

GOOD = "id,a,b,class\ns1,1,2,x\ns2,3,4,y\ns3,5,6,x\n"


def refusal(path, content=None, **options) -> str:
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError) as caught:
        read_table(path, **options)
    message = str(caught.value)
    assert "\n" not in message
    assert isinstance(caught.value, ValueError)
    return message


CASES = {
    # name: (content, options, what the message must say)
    "no target": (GOOD, {"target": "Klasse"}, "there is no column 'Klasse' (target)"),
    "close target": (GOOD, {"target": "Class"}, "did you mean 'class'?"),
    "no id": (GOOD, {"target": "class", "id": "ids"}, "no column 'ids' (id); did you mean 'id'"),
    "no group": (GOOD, {"group": "patient"}, "there is no column 'patient' (group)"),
    "no drop": (GOOD, {"drop": ["c"]}, "there is no column 'c' (drop)"),
    "one column twice": (
        GOOD,
        {"target": "class", "id": "class"},
        "column 'class' is given as target and as id",
    ),
    "dropped target": (
        GOOD,
        {"target": "class", "drop": ["class"]},
        "column 'class' is given as target and as drop",
    ),
    "no positive": (
        GOOD,
        {"target": "class", "id": "id", "positive": "X"},
        "no sample has the label 'X' (positive) in 'class'; did you mean 'x'?",
    ),
    "only white space": ("\n  \n\n", {}, "the file is empty"),
    "header only": ("a,b,class\n", {"target": "class"}, "a header but no sample"),
    "one column": ("a\n1\n2\n", {}, "only one column was found"),
    "no feature": ("id,class\ns1,x\ns2,y\n", {"target": "class", "id": "id"}, "no column of num"),
    "duplicate header": (
        "a,b,a,class\n1,2,3,x\n4,5,6,y\n",
        {"target": "class"},
        "column name 'a' appears 2 times (columns 1 and 3)".replace(" and", ","),
    ),
    "categorical": (
        "age,sex,class\n1,F,x\n2,M,y\n3,F,x\n4,M,y\n",
        {"target": "class"},
        "column 'sex' holds text ('F' on line 2); leave text out with drop=['sex'], have it in",
    ),
    "several categorical": (
        "age,sex,site,class\n1,F,A,x\n2,M,B,y\n3,F,A,x\n4,M,A,y\n",
        {"target": "class"},
        "columns 'sex' and 'site' hold text ('F' on line 2)",
    ),
    "identifiers": (
        GOOD,
        {"drop": ["class"]},
        "column 'id' holds text ('s1' on line 2); if it names the samples use id='id'",
    ),
    "a slip": (
        "a,b,class\n" + "1,2,x\n" * 15 + "1,2O,y\n" + "1,2,y\n" * 5,
        {"target": "class"},
        "line 17, column 'b': '2O' is not a number",
    ),
    "below detection": (
        "a,b,class\n" + "1,2,x\n" * 15 + "1,<0.01,y\n",
        {"target": "class"},
        "line 17, column 'b': '<0.01' is not a number",
    ),
    "infinite": ("a,b,class\n1,2,x\ninf,2,y\n", {"target": "class"}, "line 3, column 'a': inf is"),
    "huge": ("a,b,class\n1,2,x\n1,-1e300,y\n", {"target": "class"}, "column 'b': -1e+300 is too"),
    "ragged": ("a,b,class\n1,2,x\n1,2\n1,2,y\n", {"target": "class"}, "line 3: 2 cells where the"),
    "unquoted decimal comma": (
        "a,b,class\n" + "1,2,x\n" * 20 + "1,5,2,y\n",
        {"target": "class"},
        "line 22: 4 cells where the header has 3; every line needs one cell per",
    ),
    "open quote": (
        'a,b,class\n1,"2,x\n1,2,y\n',
        {"target": "class"},
        "line 2, cell 2: a quotation mark",
    ),
    "one class": ("a,b,class\n1,2,x\n3,4,x\n", {"target": "class"}, "has only the value 'x'"),
    "measurements": (
        "a,b,class\n1,2,0.1\n3,4,0.2\n5,6,0.1\n",
        {"target": "class"},
        "holds measurements such as '0.1' and '0.2'",
    ),
    "identifiers as target": (
        GOOD,
        {"target": "id", "drop": ["class"]},
        "has a different value in every row",
    ),
    "no label": ("a,b,class\n1,2,\n3,4,\n", {"target": "class"}, "no sample has a label"),
    "no group for one": (
        "a,b,class,g\n1,2,x,1\n3,4,y,\n",
        {"target": "class", "group": "g"},
        "line 3: there is no value in group",
    ),
    "unnamed column": ("a,,class\n1,2,x\n3,4,y\n", {"target": "class"}, "column 2 has no name but"),
    "no header": ("1,2,0\n3,4,1\n", {"target": "class"}, "the first line holds only numbers"),
    "transposed": (
        "gene,s1,s2\nA,1,2\nB,3,4\nclass,x,y\n",
        {"target": "class", "transpose": False},
        "'class' names a row, not a column; the table has features in rows: use transpose=True",
    ),
    "not transposed": (
        GOOD,
        {"target": "class", "transpose": True},
        "no row 'class' (target); it names a column: if the samples are in rows, leave transpose",
    ),
    "text among the samples": (
        "gene,what,s1,s2\nA,one,1,2\nB,two,3,4\nC,three,5,6\n",
        {"transpose": True},
        "column 'what', row 'A': 'one' is not a number; correct it, leave the cell empty",
    ),
    "repeated gene": (
        "gene,s1,s2\nA,1,2\nB,3,4\nA,5,6\n",
        {"transpose": True},
        "row name 'A' appears 2 times (rows 1, 3)",
    ),
    "zero bytes": (b"\x00\x01\x02\x03" * 100, {}, "this is not a text table"),
    "control characters": (
        "a,b,class\n1,2,x\n\x1b[31m,4,y\n5,6,y\n",
        {"target": "class"},
        "line 3, column 'a': ' [31m' is not a number",
    ),
    "layer of a csv": (GOOD, {"layer": "raw"}, "layer is for AnnData"),
    "on without labels": (GOOD, {"on": "id"}, "on is for the file of labels"),
    "positive alone": ("a,b\n1,2\n3,4\n", {"positive": "x"}, "positive needs target"),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_text(tmp_path, case):
    content, options, expected = CASES[case]
    assert expected in refusal(tmp_path / "t.csv", content, **options)


def test_the_file_is_named_first(tmp_path):
    assert refusal(tmp_path / "t.csv", GOOD, target="q").startswith("t.csv: ")


def test_paths(tmp_path):
    assert "this is a folder" in refusal(tmp_path)
    (tmp_path / "cohort.csv").write_text(GOOD)
    assert "did you mean 'cohort.csv'?" in refusal(tmp_path / "cohrt.csv")
    assert "there is no such file; check the path" in refusal(tmp_path / "zzz")
    assert "the file is empty" in refusal(tmp_path / "e.csv", b"")
    assert "files of type '.doc' are not read; text (CSV, TSV, GEO)" in refusal(
        tmp_path / "a.doc", b"x"
    )
    assert "not an Excel workbook" in refusal(tmp_path / "a.xls", b"x")
    assert "files of type '' are not read" in refusal(tmp_path / "table", b"x")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.xlsx", "not an Excel workbook"),
        ("a.parquet", "not a Parquet file"),
        ("a.h5ad", "not an .h5ad file"),
    ],
)
def test_wrong_content_for_the_extension(tmp_path, name, expected):
    if name.endswith("h5ad"):
        pytest.importorskip("anndata")
    assert expected in refusal(tmp_path / name, GOOD)


def test_cut_short(tmp_path, sheet, write_sheet):
    packed = gzip.compress(GOOD.encode() * 1000)
    message = refusal(tmp_path / "a.csv.gz", packed[: len(packed) // 2])
    assert "gzip data are damaged or cut short" in message
    for name in ("a.xlsx", "a.parquet"):
        write_sheet(sheet, tmp_path / name)
        whole = (tmp_path / name).read_bytes()
        assert "this is not a" in refusal(tmp_path / name, whole[: len(whole) // 2])


def test_excel_dates_for_gene_names(tmp_path):
    import datetime

    import openpyxl

    book = openpyxl.Workbook()
    book.active.append(["a", datetime.datetime(2024, 9, 2), "class"])
    book.active.append([1, 2, "x"])
    book.save(tmp_path / "a.xlsx")
    assert "SEPT2" in refusal(tmp_path / "a.xlsx", target="class")
    book = openpyxl.Workbook()
    for row in (
        ["a", "b", "class"],
        [1, datetime.datetime(2024, 9, 2), "x"],
        [3, 4, "y"],
        [5, 6, "y"],
    ):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    assert "line 2, column 'b': '2024-09-02" in refusal(tmp_path / "a.xlsx", target="class")
    assert "no sheet 'Shet'" in refusal(tmp_path / "a.xlsx", target="class", sheet="Shet")


def test_duplicate_columns_of_excel_and_parquet(tmp_path):
    import openpyxl
    import pyarrow as pa
    import pyarrow.parquet as pq

    book = openpyxl.Workbook()
    for row in (["a", "a", "class"], [1, 2, "x"], [3, 4, "y"]):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    assert "column name 'a' appears 2 times" in refusal(tmp_path / "a.xlsx", target="class")
    columns = [pa.array([1.0, 2.0]), pa.array([3.0, 4.0]), pa.array(["x", "y"])]
    pq.write_table(pa.Table.from_arrays(columns, ["a", "a", "class"]), tmp_path / "a.parquet")
    assert "column name 'a' appears 2 times" in refusal(tmp_path / "a.parquet", target="class")


def test_huge_values_of_a_sparse_matrix(tmp_path, sheet, write_sheet):
    import dataclasses

    X = sheet.X.copy()
    X[4, 2] = 1e300
    write_sheet(dataclasses.replace(sheet, X=X), tmp_path / "sparse.h5ad")
    message = refusal(tmp_path / "sparse.h5ad", target="class")
    assert "sample 's4', column 'HLA-A': 1e+300 is too large" in message


def test_what_is_left_out_or_odd_is_said(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,same,empty,a,class\ns1,7,,1,x\ns2,7,,2,y\ns1,7,,3,x\ns4,7,,1,y\n")
    table = read_table(path, target="class", id="id")
    assert table.feature_names == ("same", "a")
    assert table.dropped == {"empty": "no value"}
    assert "1 feature is left out, having no value: 'empty'" in table.record
    assert "1 feature is constant: 'same'" in table.record
    remedy = "if they are one patient, name the patients as groups."
    assert [notice.text for notice in table.notices] == [
        f"1 identifier is repeated ('s1'): {remedy}",
    ]
    assert table.notices[0].actions[0].value == "id"
    dropped = read_table(path, target="class", drop=["id"])
    assert "left out as asked: 'id'" in dropped.record


def test_groups_keep_repeats_together(tmp_path):
    """Within a group a name may repeat; in another group it is worth a word."""
    path = tmp_path / "a.csv"
    path.write_text("id,a,class,g\ns1,1,x,p\ns2,2,y,q\ns1,5,x,p\ns4,3,y,r\n")
    assert not read_table(path, target="class", group="g", id="id").notices
    path.write_text("id,a,class,g\ns1,1,x,p\ns2,2,y,q\ns1,5,x,p\ns2,3,y,r\n")
    (across,) = read_table(path, target="class", group="g", id="id").notices
    expected = "1 identifier is repeated ('s2') in different groups."
    assert across == Notice("repeats", "serious", expected)
