"""Text files: separators, encodings, decimal marks, and the cost of a wide one."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from sparsegsvp.io import InputError, read_table
from sparsegsvp.io.cells import MISSING, NOT_AVAILABLE, as_label


@pytest.mark.parametrize("separator", [",", ";", "\t", "|", " ", "   "])
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_separators_and_line_endings(tmp_path, separator, ending):
    lines = ["id,a,b,class", "s1,1.5,2,x", "s2,-1e-3,4,y", "s3,0,8,x"]
    path = tmp_path / "a.txt"
    path.write_bytes(ending.join(lines).replace(",", separator).encode())
    table = read_table(path, target="class", id="id")
    np.testing.assert_array_equal(table.X, [[1.5, 2], [-1e-3, 4], [0, 8]])
    assert table.feature_names == ("a", "b")


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "latin-1", "cp1252", "utf-16", "utf-16-le", "utf-16-be"]
)
def test_encodings(tmp_path, encoding):
    unmarked = encoding if encoding[-3:] in ("-le", "-be") else None
    text = "Größe,café,Befund\n1,2,müde\n3,4,wach\n5,6,müde\n"
    path = tmp_path / "a.csv"
    path.write_bytes(text.encode(encoding))
    table = read_table(path, target="Befund", positive="müde", encoding=unmarked)
    assert table.feature_names == ("Größe", "café")
    assert list(table.y) == ["müde", "wach", "müde"]
    if unmarked:
        with pytest.raises(InputError, match=r"zero bytes.*encoding='utf-16-le'"):
            read_table(path, target="Befund")


def test_quoted_cells(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('"gene, one","b ""two""",class\n"1.5","2","x, y"\n3,4,z\n5,6,z\n')
    table = read_table(path, target="class")
    assert table.feature_names == ("gene, one", 'b "two"')
    assert list(table.y) == ["x, y", "z", "z"]


def test_row_names_as_r_writes_them(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text('"a"\t"b"\t"class"\n"r1"\t1\t2\t"x"\n"r2"\t3\t4\t"y"\n')
    table = read_table(path, target="class")
    assert list(table.sample_names) == ["r1", "r2"]
    assert table.feature_names == ("a", "b")


def test_empty_lines_and_trailing_separators(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,b,class,\n1,2,x,\n\n3,4,y,\n,,,\n")
    table = read_table(path, target="class")
    np.testing.assert_array_equal(table.X, [[1, 2], [3, 4]])


@pytest.mark.parametrize("token", sorted(MISSING))
def test_missing_is_missing_in_numbers_and_a_label_in_labels(tmp_path, token):
    path = tmp_path / "a.csv"
    path.write_text(f"a,b,class\n1,2,x\n{token},4,{token}\n5,6,x\n7,8,y\n")
    table = read_table(path, target="class")
    if token not in NOT_AVAILABLE:
        np.testing.assert_array_equal(table.X[:, 0], [1, np.nan, 5, 7])
        assert list(table.y) == ["x", token, "x", "y"]
        assert [n.code for n in table.notices if n.code == "missing labels"] or token == "-"
    else:
        np.testing.assert_array_equal(table.X[:, 0], [1, 5, 7])
        assert "1 sample was left out, having no label (line 3)" in table.record


def test_decimal_commas_are_read_right(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a;b;class\n10;-0,5;x\n2;1,25e3;y\n;1,234;x\n")
    table = read_table(path, target="class")
    np.testing.assert_array_equal(table.X, [[10, -0.5], [2, 1250], [np.nan, 1.234]])
    assert "numbers are written with decimal commas" in table.record
    path.write_text('a,b,class\n"1,5",2,x\n3,"4,25",y\n')
    np.testing.assert_array_equal(read_table(path, target="class").X, [[1.5, 2], [3, 4.25]])


def test_a_stray_decimal_comma_is_refused_by_name_and_line(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("good;bad;class\n1.5;2.5;x\n1.5;2.5;y\n1.5;3,5;x\n")
    with pytest.raises(InputError) as caught:
        read_table(path, target="class")
    assert "line 4, column 'bad': '3,5' has a decimal comma, other" in str(caught.value)


def test_thousands_are_never_guessed(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a;b;class\n1,234;2;x\n5,678;3;y\n")
    with pytest.raises(InputError, match=r"line 2, column 'a': '1,234' may have a decimal comma"):
        read_table(path, target="class")
    said = read_table(path, target="class", decimal=",")
    np.testing.assert_array_equal(said.X[:, 0], [1.234, 5.678])
    for cell in ("1,234,567", "1.234,5", "1_000", "1 000"):
        path.write_text(f"a;b;class\n{cell};2;x\n5;3;y\n5;4;y\n")
        with pytest.raises(InputError, match=r"line 2, column 'a': '.*' is not a number"):
            read_table(path, target="class")


def test_numbers_are_rounded_as_python_rounds_them(tmp_path):
    rng = np.random.default_rng(0)
    sizes = 10.0 ** rng.integers(-300, 70, size=3000)
    texts = [repr(v) for v in (rng.normal(size=3000) * sizes).tolist()]
    texts += [f"{v:.{k}f}" for v, k in zip(rng.normal(size=3000) * 1e3, np.arange(3000) % 22)]
    texts += ["1e-400", "4.9e-324", "2.2250738585072011e-308", "-0", "+1", ".5", "5.", "1E+05"]
    names = [f"g{j}" for j in range(len(texts))]
    path = tmp_path / "a.csv"
    rows = [",".join([*texts, "a"]), ",".join(["1.25"] * len(texts) + ["b"])]
    path.write_text("\n".join([",".join([*names, "class"]), *rows]) + "\n")
    found = read_table(path, target="class", features=names).X[0]
    assert found.tobytes() == np.array([float(text) for text in texts]).tobytes()


def test_labels_of_all_kinds():
    cells = [None, "", "  ", float("nan"), 1, 1.0, 0.5, True, " x ", np.float32(2)]
    labels = [None, None, None, None, "1", "1", "0.5", "True", "x", "2"]
    assert [as_label(c) for c in cells] == labels


def test_a_wide_table_costs_little_more_than_its_matrix(tmp_path):
    """250 x 15,000: resident memory grows by less than twice the matrix."""
    path = tmp_path / "wide.csv"
    rng = np.random.default_rng(0)
    row = ",".join(repr(v) for v in rng.normal(size=15_000).round(6).tolist())
    with open(path, "w") as handle:
        handle.write(",".join(f"g{j}" for j in range(15_000)) + ",class\n")
        for i in range(250):
            handle.write(f"{i}{row[row.index(',') :]},{'ab'[i % 2]}\n")
    code = (
        "import resource, sys, time\n"
        "from sparsegsvp.io import read_table\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "before, start = peak(), time.perf_counter()\n"
        f"table = read_table({str(path)!r}, target='class')\n"
        "print((peak() - before) * 1024 / table.X.nbytes, time.perf_counter() - start)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    ratio, seconds = map(float, done.stdout.split())
    assert ratio < 2.0
    assert seconds < 30  # about 2 s on an idle core; a loaded machine must not fail it
