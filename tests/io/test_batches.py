"""Columns of batches: kept beside the samples, never features, from any kind of table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sparsegsvp.io import InputError, make_table, read_table

PLATES = ["p1", "p1", "p2", "p2", "p1", "p2"]
DAYS = [1, 2, 1, 2, 1, 2]
ROWS = list(zip("abcdef", [1.5, 2.5, 3.5, 4.5, 5.5, 6.5], PLATES, DAYS, "xyxyxy"))


@pytest.fixture
def frame():
    return pd.DataFrame(ROWS, columns=["id", "g", "plate", "day", "class"])


def batches_of(table):
    assert table.feature_names == ("g",)
    assert [c.column for c in table.roles if c.role == "batch"] == list(table.batches)
    return {name: list(values) for name, values in table.batches.items()}


@pytest.mark.parametrize("ending", ["csv", "parquet", "xlsx"])
def test_files_and_frames_agree(frame, tmp_path, ending):
    path = tmp_path / f"a.{ending}"
    write = {"csv": frame.to_csv, "parquet": frame.to_parquet, "xlsx": frame.to_excel}
    write[ending](path, index=False)
    asked = {"target": "class", "id": "id", "batch": ["plate", "day"]}
    expected = {"plate": PLATES, "day": [str(day) for day in DAYS]}
    assert batches_of(read_table(path, **asked)) == expected
    assert batches_of(make_table(frame, **asked)) == expected
    assert batches_of(make_table(path, **{**asked, "drop": ["day"], "batch": "plate"})) == {
        "plate": PLATES
    }


def test_features_in_rows(frame, tmp_path):
    path = tmp_path / "t.csv"
    frame.set_index("id").T.to_csv(path)
    read = read_table(path, target="class", batch="plate", drop=["day"], transpose=True)
    assert batches_of(read) == {"plate": PLATES}


def test_batches_from_the_file_of_labels(frame, tmp_path):
    frame[["id", "g", "day"]].to_csv(tmp_path / "table.csv", index=False)
    frame[["id", "class", "plate"]].iloc[::-1].to_csv(tmp_path / "labels.csv", index=False)
    read = read_table(
        tmp_path / "table.csv",
        labels=tmp_path / "labels.csv",
        target="class",
        batch=["plate", "day"],
    )
    assert batches_of(read) == {"day": [str(day) for day in DAYS], "plate": PLATES}


@pytest.mark.parametrize("transposed", [False, True])
def test_groups_may_be_batches_too(frame, tmp_path, transposed):
    path = tmp_path / "t.csv"
    (frame.set_index("id").T if transposed else frame.set_index("id")).to_csv(path)
    asked = {"target": "class", "batch": ["plate", "day"], "group": "plate"}
    read = read_table(path, transpose=transposed, id=None if transposed else "id", **asked)
    assert set(batches_of(read)) == {"plate", "day"}
    assert list(read.groups) == list(read.batches["plate"]) == PLATES


def test_values_beside_a_matrix_lose_the_samples_without_a_label():
    X = np.arange(6.0)[:, None]
    table = make_table(X, ["x", "y", None, "y", "x", "y"], batch={"plate": PLATES})
    assert list(table.batches["plate"]) == ["p1", "p1", "p2", "p1", "p2"]
    assert make_table(X, list("xyxyxy")).batches == {}


def test_columns_of_obs(frame):
    anndata = pytest.importorskip("anndata")
    adata = anndata.AnnData(frame[["g"]].to_numpy(), obs=frame.set_index("id"))
    adata.var_names = ["g"]
    assert batches_of(make_table(adata, target="class", batch="plate")) == {"plate": PLATES}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"batch": "plat"}, "there is no column 'plat' (batch); did you mean 'plate'?"),
        ({"batch": "plate", "drop": ["plate"]}, "column 'plate' is given as batch and as drop"),
        ({"batch": "class"}, "column 'class' is given as target and as batch"),
        ({"batch": "id2"}, "column 'id2' (batch) has a different value in every row"),
        ({"batch": "one"}, "column 'one' (batch) has only the value 'o'"),
        ({"batch": "gap"}, "sample 'b': there is no value in column 'gap' (batch)"),
        ({"batch": np.array(PLATES)}, "batch is a ndarray; name columns, or give values under"),
        ({"batch": {"plate": PLATES[:4]}}, "batch has 4 values for 6 samples"),
    ],
)
def test_what_cannot_be_a_batch_is_refused_in_one_line(frame, options, said):
    frame = frame.assign(id2=list("uvwxyz"), one="o", gap=["a", None, "a", "b", "b", "b"])
    others = {"id2", "one", "gap", "plate", "day"} - {str(options["batch"])}
    drop = sorted({*options.get("drop", []), *others})
    with pytest.raises(InputError) as caught:
        make_table(frame, **{"target": "class", "id": "id", **options, "drop": drop})
    assert said in str(caught.value)


def test_a_file_takes_no_values(tmp_path, frame):
    frame.to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(InputError, match="a file has no use for batch; leave that out"):
        make_table(tmp_path / "a.csv", target="class", batch={"plate": PLATES})


def test_a_comma_parts_names_unless_a_column_is_called_so(frame, tmp_path):
    asked = {"target": "class", "id": "id"}
    both = {"plate": PLATES, "day": [str(day) for day in DAYS]}
    assert batches_of(make_table(frame, batch="plate, day", **asked)) == both
    named = frame.rename(columns={"plate": "plate,day"})
    named.to_csv(tmp_path / "a.csv", index=False)
    read = read_table(tmp_path / "a.csv", batch="plate,day", drop="day", **asked)
    assert batches_of(read) == {"plate,day": PLATES}
