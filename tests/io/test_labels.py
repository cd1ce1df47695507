"""Labels from a second file, matched by identifier."""

from __future__ import annotations

import numpy as np
import pytest

from sparsegsvp.io import InputError, read_table

TABLE = "id,a,b\ns1,1,2\ns2,3,4\ns3,5,6\ns4,7,8\n"
LABELS = "sample;diagnosis;site\ns3;ill;A\ns1;well;B\ns2;ill;A\ns9;well;A\n"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "table.csv").write_text(TABLE)
    (tmp_path / "labels.csv").write_text(LABELS)
    return tmp_path / "table.csv", tmp_path / "labels.csv"


def test_matched_by_identifier_and_not_by_order(files):
    table, labels = files
    read = read_table(table, labels=labels, on="sample", id="id", target="diagnosis", group="site")
    assert list(read.sample_names) == ["s1", "s2", "s3"]
    assert list(read.y) == ["well", "ill", "ill"]
    assert list(read.groups) == ["B", "A", "A"]
    np.testing.assert_array_equal(read.X, [[1, 2], [3, 4], [5, 6]])
    assert "1 sample was left out, having no label (line 5)" in read.record
    assert "1 rows of labels.csv belong to no sample of the table" in read.record
    assert read.target == "diagnosis"


def test_the_column_of_the_labels_is_used_in_the_table_too(tmp_path, files):
    table, _ = files
    labels = tmp_path / "two.tsv"
    labels.write_text("id\tdiagnosis\ns1\tx\ns2\ty\ns3\tx\ns4\ty\n")
    read = read_table(table, labels=labels, on="id")
    assert list(read.y) == ["x", "y", "x", "y"]
    assert read.feature_names == ("a", "b")


def test_transposed_tables_match_by_header(tmp_path, files):
    _, labels = files
    genes = tmp_path / "genes.tsv"
    genes.write_text("gene\ts1\ts2\ts3\nA\t1\t3\t5\nB\t2\t4\t6\n")
    options = {"labels": labels, "on": "sample", "target": "diagnosis"}
    read = read_table(genes, transpose=True, **options)
    np.testing.assert_array_equal(read.X, [[1, 2], [3, 4], [5, 6]])
    assert list(read.y) == ["well", "ill", "ill"]
    with pytest.raises(InputError, match="use transpose=True"):
        read_table(genes, id="gene", transpose=False, **options)


def test_anndata_matches_by_obs_names(tmp_path, sheet, write_sheet):
    write_sheet(sheet, tmp_path / "a.h5ad")
    labels = tmp_path / "labels.csv"
    labels.write_text("cell,kind\n" + "".join(f"s{i},{'uv'[i % 2]}\n" for i in reversed(range(8))))
    read = read_table(tmp_path / "a.h5ad", labels=labels, on="cell", target="kind")
    assert list(read.y) == list("uvuvuvuv")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"on": "sampl"}, "labels.csv: there is no column 'sampl' (on); did you mean 'sample'?"),
        ({"target": "x"}, "labels.csv: there is no column 'x' (target)"),
        (
            {},
            "labels.csv: say which column holds the labels: target; there are 'diagnosis'",
        ),
        (
            {"target": "diagnosis", "id": None},
            "the table has none, the labels 's3' and 's1'; name the column of identifiers",
        ),
    ],
)
def test_refusals(files, options, expected):
    table, labels = files
    keywords = {"id": "id", **options}
    if keywords["id"] is None:
        keywords["drop"] = ["id"]
    with pytest.raises(InputError) as caught:
        read_table(table, labels=labels, **keywords)
    assert expected in str(caught.value)


def test_conflicts(tmp_path, files):
    table, labels = files
    labels.write_text("id,class\ns1,x\ns2,y\ns1,y\n")
    with pytest.raises(InputError, match="'s1' is labelled 'x' and 'y'"):
        read_table(table, labels=labels, on="id", target="class")
    labels.write_text("id,class\nq1,x\nq2,y\n")
    with pytest.raises(InputError, match="no sample has a label: the table has 's1' and 's2'"):
        read_table(table, labels=labels, on="id", target="class")
    labels.write_text("id,a\ns1,x\ns2,y\n")
    with pytest.raises(InputError, match=r"column 'a' is in the table and in labels.csv"):
        read_table(table, labels=labels, on="id", target="a")


def test_labels_without_a_row(tmp_path, files):
    table, _ = files
    labels = tmp_path / "none.csv"
    labels.write_text("sample,diagnosis")
    with pytest.raises(InputError, match=r"no sample has a label: .* the labels none"):
        read_table(table, labels=labels, on="sample", id="id", target="diagnosis")
