"""Every format gives back the same matrix, names and labels."""

from __future__ import annotations

import hashlib

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from sparsegsvp.io import InputError, make_table, read_table

FILES = ["a.csv", "a.csv.gz", "a.tsv", "a.xlsx", "a.parquet", "dense.h5ad", "sparse.h5ad"]


@pytest.mark.parametrize("name", FILES)
def test_round_trip(sheet, write_sheet, tmp_path, name):
    path = tmp_path / name
    options = write_sheet(sheet, path)
    table = read_table(path, positive="C", **options)
    X = table.X.toarray() if sparse.issparse(table.X) else table.X
    # to the last bit: text is written with repr, and the others store float64
    np.testing.assert_array_equal(X, sheet.X)
    assert sparse.issparse(table.X) == name.startswith("sparse")
    assert list(table.feature_names) == sheet.names
    assert list(table.y) == sheet.labels
    assert list(table.sample_names) == sheet.ids
    assert list(table.groups) == sheet.groups
    assert table.digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert table.class_counts() == {"B": 3, "C": 2, "ill": 3}
    assert table.record[0].startswith(f"read 8 samples and 5 features from {name}")
    assert table.notices == ()


@pytest.mark.parametrize("name", FILES)
def test_only_the_features_asked_for(sheet, write_sheet, tmp_path, name):
    """What `predict` does: names decide, order does not, the rest is ignored."""
    path = tmp_path / name
    write_sheet(sheet, path)
    wanted = [sheet.names[3], sheet.names[0]]
    table = read_table(path, features=wanted)
    X = table.X.toarray() if sparse.issparse(table.X) else table.X
    np.testing.assert_array_equal(X, sheet.X[:, [3, 0]])
    assert list(table.feature_names) == wanted
    assert table.y is None
    with pytest.raises(InputError, match=r"2 of the 3 .* missing: 'x1' and 'x2'"):
        read_table(path, features=["x1", "TP53", "x2"])


@pytest.mark.parametrize("turn", [False, True])
def test_a_file_of_exactly_the_features_in_another_order(tmp_path, turn):
    """As a panel's measurements come: no column more, and not in the order of the model."""
    frame = pd.DataFrame([[1.0, 2, 3], [4, 5, 6]], columns=list("abc"), index=["s1", "s2"])
    for order in (["b", "c", "a"], ["c", "b", "a"], ["a", "c", "b"]):
        if turn:
            frame.T.to_csv(tmp_path / "a.csv", index_label="gene")
        else:
            frame.to_csv(tmp_path / "a.csv", index=False)
        frame.to_parquet(tmp_path / "a.parquet", index=False)
        paths = [tmp_path / "a.csv"] if turn else [tmp_path / "a.csv", tmp_path / "a.parquet"]
        for data in (*paths, frame):
            table = make_table(data, features=order)
            np.testing.assert_array_equal(table.X, frame[order])
            assert list(table.feature_names) == order


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.xlsx", "a.parquet"])
def test_transposed(sheet, write_sheet, tmp_path, name):
    path = tmp_path / name
    cells = [["gene", *sheet.ids]]
    cells += [[n, *map(float, column)] for n, column in zip(sheet.names, sheet.X.T)]
    labelled = [*cells, ["class", *sheet.labels], ["patient", *sheet.groups]]
    if name.endswith(".xlsx"):
        import openpyxl

        book = openpyxl.Workbook()
        for row in labelled:
            book.active.append(row)
        book.save(path)
    elif name.endswith(".parquet"):
        import pandas as pd

        frame = pd.DataFrame([[str(c) for c in row] for row in labelled[1:]], columns=cells[0])
        frame.to_parquet(path, index=False)
    else:
        separator = "," if name.endswith(".csv") else "\t"
        path.write_text("\n".join(separator.join(map(str, row)) for row in labelled))
    table = read_table(path, transpose=True, target="class", group="patient")
    np.testing.assert_array_equal(table.X, sheet.X)
    assert list(table.feature_names) == sheet.names
    assert list(table.y) == sheet.labels
    assert list(table.sample_names) == sheet.ids
    assert list(table.groups) == sheet.groups


def test_layers_of_anndata_by_name(sheet, write_sheet, tmp_path):
    path = tmp_path / "sparse.h5ad"
    write_sheet(sheet, path)
    doubled = read_table(path, target="class", layer="doubled")
    np.testing.assert_array_equal(doubled.X.toarray(), 2 * sheet.X)
    with pytest.raises(InputError, match=r"no layer 'double' \(layer\); did you mean 'doubled'"):
        read_table(path, target="class", layer="double")


def test_precision_of_the_file_is_kept(sheet, tmp_path):
    X = sheet.X.astype(np.float32)
    frame = sheet.frame().astype(dict.fromkeys(sheet.names, "float32"))
    frame.to_parquet(tmp_path / "a.parquet", index=False)
    table = read_table(tmp_path / "a.parquet", target="class", id="sample", drop=["patient"])
    assert table.X.dtype == np.float32
    np.testing.assert_array_equal(table.X, X)


def test_index_of_a_pandas_frame_names_the_samples(sheet, tmp_path):
    frame = sheet.frame().drop(columns="patient").set_index("sample")
    frame.to_parquet(tmp_path / "named.parquet")
    frame.rename_axis(None).to_parquet(tmp_path / "unnamed.parquet")
    frame.rename_axis(None).to_csv(tmp_path / "unnamed.csv")
    for name in ("named.parquet", "unnamed.parquet", "unnamed.csv"):
        table = read_table(tmp_path / name, target="class")
        assert list(table.sample_names) == sheet.ids
        assert list(table.feature_names) == sheet.names


def test_labels_that_are_numbers_agree_between_formats(tmp_path):
    """1, 1.0 and "1" are one class, however the format stores them."""
    import pandas as pd

    frame = pd.DataFrame({"a": [0.5, 1.5, 2.5], "class": [1.0, 0.0, 1.0]})
    frame.to_parquet(tmp_path / "a.parquet", index=False)
    frame.to_excel(tmp_path / "a.xlsx", index=False)
    (tmp_path / "a.csv").write_text("a,class\n0.5,1\n1.5,0\n2.5,1\n")
    for name in ("a.parquet", "a.xlsx", "a.csv"):
        assert list(read_table(tmp_path / name, target="class").y) == ["1", "0", "1"]


def test_numbers_stored_as_text_in_parquet_are_read_or_named(sheet, tmp_path):
    frame = sheet.frame()
    frame["TP53"] = [repr(float(v)) for v in sheet.X[:, 0]]
    frame.to_parquet(tmp_path / "a.parquet", index=False)
    options = {"target": "class", "id": "sample", "group": "patient"}
    table = read_table(tmp_path / "a.parquet", **options)
    np.testing.assert_array_equal(table.X, sheet.X)
    frame["TP53"] = list("abababab")
    frame.to_parquet(tmp_path / "a.parquet", index=False)
    with pytest.raises(InputError, match=r"column 'TP53' holds text .* drop=\['TP53'\]"):
        read_table(tmp_path / "a.parquet", **options)


def test_missing_values_of_every_format(sheet, write_sheet, tmp_path):
    X = sheet.X.copy()
    X[2, 1] = X[5, 4] = np.nan
    import dataclasses

    gappy = dataclasses.replace(sheet, X=X)
    for name in FILES:
        options = write_sheet(gappy, tmp_path / name)
        table = read_table(tmp_path / name, **options)
        got = table.X.toarray() if sparse.issparse(table.X) else table.X
        np.testing.assert_array_equal(got, X)
        assert table.n_missing == 2
        assert any("2 values are missing in 2 features: 'β-actin'" in s for s in table.record)


def test_a_format_is_one_entry_of_a_list(sheet, tmp_path, monkeypatch):
    """Extension, reading, labels, transposed tables and messages all follow from it."""
    import json

    from sparsegsvp.io import formats
    from sparsegsvp.io.text import Rows

    def read_json(path, options, verbatim):
        header, *rows = map(json.loads, path.read_text().splitlines())
        rows = Rows(header, enumerate(rows, start=2), "JSON lines")
        return formats.collect(rows, options, verbatim)

    entry = formats.Format("JSON lines", (".jsonl",), read_json)
    monkeypatch.setattr(formats, "FORMATS", (*formats.FORMATS, entry))

    def write(name, rows):
        path = tmp_path / name
        path.write_text("\n".join(json.dumps(row) for row in rows))
        return path

    names = ["sample", *sheet.names, "class"]
    rows = [[i, *map(float, x), y] for i, x, y in zip(sheet.ids, sheet.X, sheet.labels)]
    table = read_table(write("a.jsonl", [names, *rows]), target="class", id="sample")
    np.testing.assert_array_equal(table.X, sheet.X)
    assert list(table.y) == sheet.labels and "JSON lines" in table.record[0]
    labels = write(
        "labels.jsonl", [["sample", "kind"], *([i, "uv"[int(i[1]) % 2]] for i in sheet.ids)]
    )
    options = {"id": "sample", "drop": ["class"], "labels": labels, "target": "kind"}
    assert list(read_table(tmp_path / "a.jsonl", **options).y) == list("uvuvuvuv")
    turned = write(
        "t.jsonl",
        [["gene", *sheet.ids], *([n, *map(float, x)] for n, x in zip(sheet.names, sheet.X.T))],
    )
    np.testing.assert_array_equal(read_table(turned, transpose=True).X, sheet.X)
    (tmp_path / "a.doc").write_text("x")
    with pytest.raises(InputError, match=r"AnnData \(\.h5ad\), JSON lines are read"):
        read_table(tmp_path / "a.doc")


def test_parquet_with_a_text_index_and_other_text_is_read(tmp_path) -> None:
    pd = pytest.importorskip("pandas")
    values = np.random.default_rng(0).normal(size=(4, 60))  # few columns may not hold text
    frame = pd.DataFrame(values, columns=[f"g{j}" for j in range(60)], index=list("stuv"))
    frame = frame.assign(sex=["m", "f", "m", "f"], type=["a", "b", "a ", "b"])
    frame.to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet", target="type", keep="g1")
    assert table.sample_names.tolist() == list("stuv") and table.class_counts() == {"a": 2, "b": 2}
    spelled = [notice.text for notice in table.notices if notice.code == "spelling"]
    numbers = frame.drop(columns="sex")
    numbers.to_parquet(tmp_path / "numbers.parquet")
    again = read_table(tmp_path / "numbers.parquet", target="type")
    assert spelled and [n.text for n in again.notices if n.code == "spelling"] == spelled
