"""Everyday files that version 0.2 read wrong: each is read right now, or refused with a remedy."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sparsegsvp.cli.preview import find_targets
from sparsegsvp.io import InputError, make_table, read_table
from sparsegsvp.io.roles import guess_positive


def write(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


def refusal(path, **options) -> str:
    with pytest.raises(InputError) as caught:
        read_table(path, **options)
    return str(caught.value)


# --- quotes and separators ---------------------------------------------------------------


@pytest.mark.parametrize("where", ["first", "middle", "last"])
@pytest.mark.parametrize("closed", [False, True])
def test_a_stray_quote_loses_no_sample(tmp_path, where, closed):
    """One that is never closed, or by another stray one in the same column 20 lines below."""
    column = {"first": 0, "middle": 2, "last": 3}[where]
    rows = [[f"s{i}", str(i), f"ok{i}", "xy"[i % 2]] for i in range(40)]
    rows[10][column] = '"' + rows[10][column]
    if closed:
        rows[30][column] += '"'
    text = "\n".join(map(",".join, [["id", "g", "note", "class"], *rows])) + "\n"
    message = refusal(write(tmp_path / "a.csv", text), target="class", id="id", drop="note")
    assert f"line 12, cell {column + 1}: a quotation mark" in message
    assert "close it or remove it" in message


def test_quotes_that_are_no_quotes_and_cells_of_two_lines(tmp_path):
    text = 'id,5" probe,"note, long",class\ns1,1,"two\nlines",x\ns2,2,"a ""b"", c",y\ns3,3,d,x\n'
    table = read_table(write(tmp_path / "a.csv", text), target="class", id="id", drop="note, long")
    assert table.feature_names == ('5" probe',) and table.X.ravel().tolist() == [1, 2, 3]
    escaped = 'id,g,class\n"a \\"b\\"",1,x\n"c",2,y\n'  # as R's write.table has it
    assert "line 2, cell 1: a quotation mark" in refusal(
        write(tmp_path / "b.csv", escaped), target="class", id="id"
    )


def test_a_separator_at_the_end_of_each_row_shifts_nothing(tmp_path):
    rows = [f"{'ab'[i % 2]},{i},{i + 0.5},{i * 2}" for i in range(8)]
    header = "status,g1,g2,g3"
    expected = [[i, i + 0.5, i * 2] for i in range(8)]
    text = "\n".join([f"{header},", *(f"{row}," for row in rows)])
    table = read_table(write(tmp_path / "a.csv", text), target="status")
    assert table.X.tolist() == expected and list(table.y) == list("abababab")
    # names of rows that the header lacks, as R writes them, are still that
    named = "\n".join([header, *(f"r{i},{row}" for i, row in enumerate(rows))])
    table = read_table(write(tmp_path / "a.csv", named), target="status")
    assert table.X.tolist() == expected and table.sample_names[3] == "r3"
    # where both may be meant, both are named
    message = refusal(write(tmp_path / "a.csv", "\n".join([header, *(f"{row}," for row in rows)])))
    assert "line 2: the rows have a cell more than the header" in message
    assert "a separator ends each row, or the header lacks the name of the first column" in message


# --- numbers -----------------------------------------------------------------------------

COUNTS = [1042, 783, 12400, 951, 2077, 640]
DOTTED = ["1.042", "783", "12.400", "951", "2.077", "640"]


def _excel(path, columns):
    pd.DataFrame(columns).to_excel(path, index=False)
    return path


@pytest.mark.parametrize("kind", ["csv", "xlsx", "frame"])
def test_thousands_dots_are_refused_or_told(tmp_path, kind):
    columns = {"g1": DOTTED, "g2": list("123456"), "class": list("xyxyxy")}
    data = pd.DataFrame(columns)
    if kind == "csv":
        data = tmp_path / "a.csv"
        pd.DataFrame(columns).to_csv(data, sep=";", index=False)
    elif kind == "xlsx":
        data = _excel(tmp_path / "a.xlsx", columns)
    with pytest.raises(InputError) as caught:
        make_table(data, target="class")
    message = str(caught.value)
    assert "'1.042' may have a decimal point or a thousands separator: it is" in message
    assert "1.042 or 1042" in message
    assert "decimal='.'" in message and "thousands='.'" in message
    assert make_table(data, target="class", thousands=".").X[:, 0].tolist() == COUNTS
    read = make_table(data, target="class", decimal=".")
    assert read.X[:, 0].tolist() == [float(cell) for cell in DOTTED]


@pytest.mark.parametrize(
    "cells",
    [
        ["1.042", "7.831", "0.951"],  # three decimals, and nothing that could be whole
        ["1.042", "783", "1042"],  # 1042 has no separator, so the others have none
        ["1.042", "783", "95.1"],
        ["0.042", "783", "951"],
        ["1.042", "783.000", "951.250"],  # three decimals everywhere
    ],
)
def test_decimals_that_cannot_be_thousands_are_read(tmp_path, cells):
    rows = "".join(f"{cell};{'xyx'[i]}\n" for i, cell in enumerate(cells))
    table = read_table(write(tmp_path / "a.csv", f"g;class\n{rows}"), target="class")
    assert table.X.ravel().tolist() == [float(cell) for cell in cells]


@pytest.mark.parametrize(
    ("cell", "mark", "value"),
    [("1,047.2", ",", 1047.2), ("1.047,2", ".", 1047.2), ("1'047.2", "'", 1047.2),
     ("1 047", " ", 1047), ("1\u202f047", " ", 1047), ("1,234,567", ",", 1234567)],
)  # fmt: skip
def test_other_thousands_are_called_so(tmp_path, cell, mark, value):
    path = write(tmp_path / "a.tsv", f"g\th\tclass\n{cell}\t2\tx\n5\t3\ty\n5\t4\ty\n")
    message = refusal(path, target="class")
    assert "thousands separator" in message and f"thousands={mark!r}" in message
    assert read_table(path, target="class", thousands=mark).X[:, 0].tolist() == [value, 5, 5]


def test_one_parser_reads_features_and_what_is_adjusted_for(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(6, 4)).round(3), columns=list("abcd"))
    frame["class"] = list("xyxyxy")
    frame["age"] = ["1,201", "55", "60", "48", "70", "66"]
    for role in ({"adjust": "age"}, {"keep": "age"}):
        with pytest.raises(InputError, match="'1,201'"):
            make_table(frame, target="class", **role)
    frame["age"] = ["-999.0", "55", "N.m.", "48", "70", "66"]
    for role in ({"adjust": "age"}, {"keep": "age"}):
        table = make_table(frame, target="class", na=["-999", "n.M."], **role)
        age = table.X[:, table.feature_names.index("age")]
        np.testing.assert_array_equal(age, [np.nan, 55, np.nan, 48, 70, 66])


@pytest.mark.parametrize("codes", [(-9999.0,), (999999.0,), (-9999.0, 999999.0)])
def test_codes_among_values_are_noticed(codes):
    X = np.random.default_rng(0).uniform(-1, 3, size=(30, 5))
    X[4, 1], X[7, 3] = codes[0], codes[-1]
    y = ["x", "y"] * 15
    (notice,) = make_table(X, y).notices
    (action,) = notice.actions
    assert notice.code == "codes" and action.option == "na"
    again = make_table(X, y, na=action.value)
    assert again.n_missing == 2 and not again.notices
    # a large value among large ones is none
    assert not make_table(np.random.default_rng(0).uniform(0, 9999, size=(30, 5)), y).notices


# --- names and labels ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["id", "sample", "barcode", "chip"])
@pytest.mark.parametrize("kind", ["csv", "xlsx", "parquet"])
def test_identifiers_stay_as_they_are_written(tmp_path, name, kind):
    ids = ["001", "002", "010", "1e5"]
    long = [f"12345678901234567{i}" for i in range(4)]
    for names in (ids, long):
        frame = pd.DataFrame({name: names, "g": [0.5, 1.5, 2.5, 3.5], "class": list("xyxy")})
        path = tmp_path / f"a.{kind}"
        {"csv": frame.to_csv, "xlsx": frame.to_excel, "parquet": frame.to_parquet}[kind](
            path, index=False
        )
        table = read_table(path, target="class", id=name)
        assert list(table.sample_names) == names and table.feature_names == ("g",)
        if name != "chip" and names is long:
            table = read_table(path, target="class")  # by its name
            assert list(table.sample_names) == names and table.feature_names == ("g",)


def test_labels_that_are_not_there_are_no_class(tmp_path):
    text = "g,class\n1,x\n2,NA\n3,y\n4,\n5,NaN\n6,y\n7,unknown\n8,unknown\n"
    table = read_table(write(tmp_path / "a.csv", text), target="class")
    assert table.class_counts() == {"unknown": 2, "x": 1, "y": 2}
    left, doubt = (n for n in table.notices if n.code == "missing labels")
    assert "3 samples were left out, having no label" in left.text
    assert doubt.actions[0].value == "unknown"  # a class, or not: said
    assert read_table(tmp_path / "a.csv", target="class", na="unknown").class_counts() == {
        "x": 1, "y": 2,
    }  # fmt: skip
    signs = write(tmp_path / "b.csv", "g,class\n1,+\n2,-\n3,+\n4,-\n")
    assert read_table(signs, target="class").class_counts() == {"+": 2, "-": 2}


@pytest.mark.parametrize(
    ("first", "second"),
    [("ER+", "ER-"), ("+", "-"), ("pos", "neg"), ("case", "control"), ("tumor", "normal"),
     ("yes", "no"), ("1", "0"), ("HER2 positive", "HER2 negative"), ("true", "false"),
     ("T", "N"), ("Y", "N"), ("relapse", "no relapse"), ("cancer", "benign"), ("TRUE", "FALSE")],
)  # fmt: skip
def test_the_class_of_interest_is_guessed_and_said_to_be(first, second):
    assert guess_positive(sorted([first, second])) == first
    table = make_table(np.arange(4.0)[:, None], [second, first] * 2)
    assert table.positive_class == first and table.positive_guessed
    assert "taken by its name" in table.record[1]


def test_a_small_table_with_text_names_the_remedy_that_works():
    frame = pd.DataFrame({"Sex": list("mfmfmf"), "Smoker": ["yes", "no"] * 3, "bmi": range(6)})
    frame["class"] = list("xxyyxy")
    with pytest.raises(InputError) as caught:
        make_table(frame, target="class")
    assert "adjust=['Sex', 'Smoker']" in str(caught.value)
    assert "drop=['Sex', 'Smoker']" in str(caught.value)
    table = make_table(frame, target="class", adjust=["Sex", "Smoker"])
    assert table.feature_names == ("bmi", "Sex=m vs f", "Smoker=yes vs no")


# --- what may be the target ----------------------------------------------------------------


def test_targets_are_listed_and_never_a_sex_or_batch_proposed(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(12, 8)), columns=[f"g{j}" for j in range(8)])
    frame.insert(0, "patient_id", [f"p{i // 2}" for i in range(12)])
    frame["Sex"] = ["m", "f"] * 6
    frame["Age"] = [60, 61, 62] * 4
    frame["Batch"] = ["a", "a", "b"] * 4
    frame["plate"] = [1, 2, 3] * 4
    path = tmp_path / "a.csv"
    frame.to_csv(path, index=False)
    assert not any(c.proposed for c in find_targets(path))
    frame["tissue"] = ["colon", "colon", "breast", "breast"] * 3
    frame.to_csv(path, index=False)
    first, *others = find_targets(path)
    assert first.name == "tissue" and first.proposed and first.counts == {"breast": 6, "colon": 6}
    assert {"Sex", "Batch"} <= {c.name for c in others} and not any(c.proposed for c in others)
    turned = frame.set_index("patient_id").T
    turned.columns = [f"s{i}" for i in range(12)]
    turned.to_csv(path, index_label="gene")
    assert [(c.name, c.in_row) for c in find_targets(path) if c.proposed] == [("tissue", True)]


# --- Excel, GEO, encodings -----------------------------------------------------------------


def test_a_hidden_sheet_is_not_the_first(tmp_path):
    import openpyxl

    book = openpyxl.Workbook()
    book.active.title = "lists"
    book.active.append(["a", "b"])
    book.active.sheet_state = "hidden"
    for name, shift in (("data", 0), ("more", 10)):
        page = book.create_sheet(name)
        for row in (["g", "class"], [1 + shift, "x"], [2 + shift, "y"]):
            page.append(row)
    book.save(tmp_path / "a.xlsx")
    table = read_table(tmp_path / "a.xlsx", target="class")
    assert table.X.ravel().tolist() == [1, 2]
    assert "the first of 2 sheets, 'data'" in table.record
    assert read_table(tmp_path / "a.xlsx", target="class", sheet="more").X[0, 0] == 11
    assert "'data' and 'more'" in refusal(tmp_path / "a.xlsx", target="class", sheet="zzz")


def test_samples_of_geo_by_titles_alone(tmp_path):
    titles = "\t".join(f'"biopsy {i}"' for i in range(4))
    kinds = "\t".join(f'"tissue: {t}"' for t in ("tumor", "normal") * 2)
    text = (
        f'!Series_title\t"x"\n!Sample_title\t{titles}\n!Sample_characteristics_ch1\t{kinds}\n'
        f'!series_matrix_table_begin\n"ID_REF"\t{titles}\n"p1"\t1\t2\t3\t4\n"p2"\t5\t6\t7\t8\n'
        "!series_matrix_table_end\n"
    )
    table = read_table(write(tmp_path / "a.txt", text), target="tissue")
    assert table.X.tolist() == [[1, 5], [2, 6], [3, 7], [4, 8]]
    assert list(table.sample_names) == [f"biopsy {i}" for i in range(4)]
    assert list(table.y) == ["tumor", "normal"] * 2


def test_an_encoding_that_is_a_guess_is_said(tmp_path):
    text = "Größe,Befund\n1,müde\n2,wach\n3,müde\n"
    for encoding, noticed in (("utf-8", False), ("cp1252", True), ("mac-roman", True)):
        path = write(tmp_path / "a.csv", text, encoding)
        codes = [notice.code for notice in read_table(path, target="Befund").notices]
        assert ("encoding" in codes) is noticed
    named = read_table(path, target="Befund", encoding="mac-roman")
    assert named.feature_names == ("Größe",) and "encoding" not in [n.code for n in named.notices]


def test_titles_and_the_separator_that_excel_writes(tmp_path):
    body = "id;g1;g2;class\ns1;1,5;2;x\ns2;2,5;3;y\ns3;0,5;4;x\n"
    for above in ("", "Table 1\n", "sep=;\n", "My study\n\nversion 2\n"):
        table = read_table(write(tmp_path / "a.csv", above + body), target="class", id="id")
        assert table.X.tolist() == [[1.5, 2], [2.5, 3], [0.5, 4]]


@pytest.mark.parametrize(("mark", "cell"), [(",", "1,5"), (".", "1.25"), (",", "12,34,567")])
def test_a_mark_that_does_not_stand_between_thousands_is_refused(tmp_path, mark, cell):
    """1,5 is not 15, whatever the separator of thousands is."""
    path = write(tmp_path / "a.csv", f"g;class\n{cell};x\n1{mark}234;y\n7;x\n")
    assert f"'{cell}' is not a number" in refusal(path, target="class", thousands=mark)


def test_a_column_to_adjust_for_is_no_feature_twice(tmp_path):
    text = "g,sex=M vs F,sex,class\n1,1,M,x\n2,0,F,y\n3,1,M,x\n5,0,F,y\n"
    path = write(tmp_path / "a.csv", text)
    said = refusal(path, target="class", adjust="sex")
    assert "column 'sex' (adjust) becomes a feature that the table has already" in said


def test_a_file_that_memory_does_not_hold_is_not_called_damaged(tmp_path, monkeypatch):
    def full(*cells):
        raise MemoryError

    monkeypatch.setattr("sparsegsvp.io.frame._numbers", full)
    path = write(tmp_path / "a.csv", "g,class\n1,x\n2,y\n")
    assert "larger than there is more memory for; read it on a larger" in refusal(path)


@pytest.mark.parametrize(("first", "second"), [("1,5", "2.5"), ("1.5", "2,5")])
def test_two_decimal_marks_in_one_file_are_refused(tmp_path, first, second):
    """The first number with a fraction shows the mark of all: later ones are held to it."""
    path = write(tmp_path / "a.csv", f"id;g;class\n1;{first};x\n2;{second};y\n3;7;x\n")
    assert f"'{second}' has a decimal" in refusal(path, target="class")


def test_large_values_beside_others_are_no_codes():
    """A 9999 among thousands is a measurement."""
    X = np.random.default_rng(0).integers(1, 5000, size=(30, 5)).astype(float)
    X[4, 1] = 9999.0
    assert not make_table(X, ["x", "y"] * 15).notices


def test_one_mark_given_says_what_the_other_is(tmp_path):
    """1,234 may be either; where the point separates thousands the comma is decimal."""
    path = write(tmp_path / "a.csv", "id;g;class\n1;1,234;x\n2;2,345;y\n3;3,456;x\n")
    assert "thousands separator: it is 1.234 or 1234" in refusal(path, target="class")
    for options in ({"thousands": "."}, {"decimal": ","}):
        X = read_table(path, target="class", drop="id", **options).X
        np.testing.assert_array_equal(X[:, 0], [1.234, 2.345, 3.456])
    X = read_table(path, target="class", drop="id", thousands=",").X
    np.testing.assert_array_equal(X[:, 0], [1234, 2345, 3456])
