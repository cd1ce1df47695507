"""What is seldom in a file: the branches that no ordinary table takes."""

from __future__ import annotations

import json
import zipfile
import zlib
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from sparsegsvp import GSVPSVM, io
from sparsegsvp.io import InputError, make_table, open_table, preview_table, read_table
from sparsegsvp.io.cells import as_label
from sparsegsvp.io.layout import ColumnRole, stored_matrix
from sparsegsvp.io.roles import role_lines
from sparsegsvp.io.sheets import csv_text
from sparsegsvp.io.structure import (
    _codec_names,
    check_anndata_matrix,
    check_codecs,
    check_hdf5,
    check_heaps,
)
from sparsegsvp.io.text import names_or_files, read_costs

# --- lists and costs -----------------------------------------------------------------------


def test_names_and_files_of_names(tmp_path):
    (tmp_path / "a.txt").write_text('TP53\n\n  "HLA A"  \n"a" and "b"\n')
    assert names_or_files("TP53") == ("TP53",)
    assert names_or_files(["x", f"@{tmp_path / 'a.txt'}", "y"]) == (
        "x", "TP53", "HLA A", '"a" and "b"', "y"
    )  # fmt: skip
    with pytest.raises(InputError, match=r"the list cannot be read .*check the path"):
        names_or_files(f"@{tmp_path / 'b.txt'}")


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_costs_with_and_without_a_header(tmp_path, separator):
    path = tmp_path / "costs.csv"
    lines = [
        ("gene", "cost"),
        ("TP53", "2.5"),
        ('"HLA-A"', "0"),
        ("b;c" * (separator == "\t"), "1"),
    ]
    for some in (lines, lines[1:]):
        path.write_text("\n".join(separator.join(line) for line in some))
        costs = read_costs(path)
        assert costs["TP53"] == 2.5 and costs["HLA-A"] == 0.0 and len(costs) == 3
    if separator != ",":
        path.write_text(f"TP53{separator}2,5")
        assert read_costs(path) == {"TP53": 2.5}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("gene,cost", "there is no cost in it"),
        ("TP53", "'TP53' is not a name and a number"),
        ("a,1\nTP53,dear", "line 2.*'TP53,dear' is not a name and a number"),
        ("a,-1", "the cost of 'a' is '-1'.*0 or more"),
        ("a,inf", "the cost of 'a' is 'inf'"),
        ("a,nan", "the cost of 'a' is 'nan'"),
    ],
)
def test_costs_that_are_none(tmp_path, text, message):
    (tmp_path / "costs.csv").write_text(text)
    with pytest.raises(InputError, match=message):
        read_costs(tmp_path / "costs.csv")


# --- a first look --------------------------------------------------------------------------


def test_a_preview_counts_what_may_be_classes(tmp_path):
    rows = [f"s{i},{i / 7},{'ab'[i % 2]},{i % 3},{'x' if i else ''}" for i in range(60)]
    (tmp_path / "t.csv").write_text("name,g1,state,arm,once\n" + "\n".join(rows) + "\n")
    found = preview_table(tmp_path / "t.csv")
    assert [one.name for one in found.candidates] == ["state", "arm"]
    assert found.candidates[0].counts == {"a": 30, "b": 30}
    assert found.n_rows == 60 and found.shown[0] == "state"


def test_a_preview_of_features_in_rows_looks_across(tmp_path):
    header = "gene," + ",".join(f"s{i}" for i in range(8))
    text = ["state," + ",".join("ab"[i % 2] for i in range(8))]
    text += [f"g{j}," + ",".join(str(i * j + 0.5) for i in range(8)) for j in range(5)]
    text += ["note," + ",".join(["x", *[""] * 7]), "two,a,a"]
    (tmp_path / "t.csv").write_text("\n".join([header, *text[:-1]]) + "\n")
    (found,) = preview_table(tmp_path / "t.csv").candidates
    assert (found.name, found.in_row, found.counts) == ("state", True, {"a": 4, "b": 4})


def test_previews_of_other_formats(tmp_path, sheet, write_sheet):
    for name in ("t.h5ad", "t.npz", "t.parquet"):
        write_sheet(sheet, tmp_path / name)
        found = preview_table(tmp_path / name)
        names = [one.name for one in found.candidates]
        assert names == ([] if name == "t.npz" else ["class", "patient"])
        assert found.n_rows == (0 if name == "t.npz" else 8)


# --- cells ---------------------------------------------------------------------------------


def test_cells_of_other_types():
    assert as_label(b" caf\xc3\xa9 ") == "café" and as_label(b"  ") is None
    assert as_label(np.float32(2.0)) == "2" and as_label(2.5) == "2.5" and as_label(np.nan) is None
    assert csv_text(["a"], [[np.float64(0.5)], [np.int64(3)], [True]]) == "a\n0.5\n3\nTrue\n"
    with pytest.raises(AttributeError, match="no attribute 'read_tabel'"):
        io.read_tabel


def test_numbers_with_a_point_where_commas_were_asked_for(tmp_path):
    (tmp_path / "t.csv").write_text("a;b;y\n1,5;2;x\n2.5;3;z\n1,5;2;x\n2,5;3;z\n")
    with pytest.raises(InputError, match=r"'2\.5' has a point"):
        read_table(tmp_path / "t.csv", target="y", decimal=",")


def test_codes_written_oddly_among_decimal_commas(tmp_path):
    lines = [f"{i},5;{'nA' if i == 3 else f'{i},25'};{'xz'[i % 2]}" for i in range(8)]
    (tmp_path / "t.csv").write_text("a;b;y\n" + "\n".join(lines))
    table = read_table(tmp_path / "t.csv", target="y")
    assert table.X[2].tolist() == [2.5, 2.25] and table.X[3, 0] == 3.5 and table.n_missing == 1
    with pytest.raises(InputError, match=r"columns 'a' and 'b' hold text \('0,5' on line 2\)"):
        read_table(tmp_path / "t.csv", target="y", decimal=".", features=["a", "b"])


def test_a_wide_table_of_text_is_not_read_to_its_end(tmp_path):
    """Thousands of cells that are no numbers tell what another thousand would."""
    header = ",".join(f"c{j}" for j in range(400))
    lines = [",".join([f"t{i}{j}" for j in range(400)] + ["xz"[i % 2]]) for i in range(16)]
    (tmp_path / "t.csv").write_text("\n".join([f"{header},y", *lines]))
    with pytest.raises(InputError, match="no column of numbers is left"):
        read_table(tmp_path / "t.csv", target="y")


# --- tables without what is needed -----------------------------------------------------------


def test_features_that_were_asked_for_must_be_numbers(tmp_path):
    lines = [f"{i}.5,{'uvw'[i % 3]},{'pq'[i % 2]},{'xz'[i % 2]}" for i in range(6)]
    (tmp_path / "t.csv").write_text("a,b,c,y\n" + "\n".join(lines))
    with pytest.raises(InputError, match=r"column 'b' holds text \('u' on line 2\); numbers are"):
        read_table(tmp_path / "t.csv", target="y", features=["a", "b"])
    with pytest.raises(InputError, match="columns 'b' and 'c' hold text"):
        read_table(tmp_path / "t.csv", target="y", features=["b", "c"])


def test_many_samples_with_numbers_for_names_are_no_features(tmp_path):
    X = np.random.default_rng(0).normal(size=(600, 3))
    for names, codes in ((range(9000, 9600), []), ([f"G{i}" for i in range(600)], ["orientation"])):
        frame = pd.DataFrame(X, index=list(names)).assign(y=["x", "z"] * 300)
        frame.columns = ["a", "b", "c", "y"]
        assert [n.code for n in make_table(frame, target="y").notices] == codes


def test_the_logarithm_is_advised_from_complete_features_alone():
    raw = np.exp(np.random.default_rng(0).normal(6, 2, size=(60, 60)))
    labels = ["x", "z"] * 30
    assert [n.code for n in make_table(raw, labels).notices] == ["raw"]
    raw[np.arange(60), np.arange(60)] = np.nan
    assert not make_table(raw, labels).notices


def test_files_with_nothing_but_separators_or_with_sparse_rows(tmp_path):
    (tmp_path / "t.csv").write_text(";;\n;;\n")
    with pytest.raises(InputError, match="the file is empty"):
        read_table(tmp_path / "t.csv", target="y", separator=";")
    (tmp_path / "t.arff").write_text("@relation r\n@attribute a numeric\n@data\n{0 1.5}\n")
    with pytest.raises(InputError, match=r"line 4: sparse ARFF rows are not read; save it as"):
        read_table(tmp_path / "t.arff", target="a")
    with pytest.raises(InputError, match="samples in rows by definition; leave transpose=True out"):
        read_table(tmp_path / "t.arff", target="a", transpose=True)


def test_a_path_into_a_folder_that_there_is_not(tmp_path):
    with pytest.raises(InputError, match="there is no such file; check the path"):
        read_table(tmp_path / "nowhere" / "t.csv", target="y")


def test_rows_of_a_second_file_without_an_identifier_are_passed_over(tmp_path):
    (tmp_path / "t.csv").write_text("id,a\n" + "".join(f"s{i},{i}.5\n" for i in range(6)))
    labels = "".join(f"s{i},{'xz'[i % 2]}\n" for i in range(6))
    (tmp_path / "y.csv").write_text(f"id,y\n,z\n,x\n{labels}")
    table = read_table(tmp_path / "t.csv", labels=tmp_path / "y.csv")
    assert table.class_counts() == {"x": 3, "z": 3}


def test_a_table_without_a_number():
    frame = pd.DataFrame({"a": [np.nan] * 4, "b": [np.nan] * 4, "y": list("xzxz")})
    with pytest.raises(InputError, match="not a single number"):
        make_table(frame, target="y")
    with pytest.raises(InputError, match=r"no column of numbers is left; check drop"):
        make_table(frame[["y"]].assign(z=["one"] * 4), target="y")


def test_formats_and_options_that_do_not_go_together(tmp_path, sheet, write_sheet):
    for name in ("t.csv", "t.npz"):
        write_sheet(sheet, tmp_path / name)
    with pytest.raises(InputError, match=r"layer is for AnnData \(\.h5ad\) files"):
        read_table(tmp_path / "t.csv", target="class", layer="raw")
    with pytest.raises(InputError, match="labels are read from CSV, TSV"):
        read_table(tmp_path / "t.csv", labels=tmp_path / "t.npz")


def test_sheets_that_are_empty_or_have_names_that_end_early(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.save(tmp_path / "t.xlsx")
    with pytest.raises(InputError, match="is empty"):
        read_table(tmp_path / "t.xlsx", target="y")
    page = book.active
    for row in (["a", "b", "y", None, " "], *([i, i / 3, "xz"[i % 2]] for i in range(6))):
        page.append(row)
    page.title = "first"
    book.create_sheet("second").append(["c"])
    book.save(tmp_path / "t.xlsx")
    table = read_table(tmp_path / "t.xlsx", target="y")
    assert table.feature_names == ("a", "b") and "the first of 2 sheets, 'first'" in table.record
    assert "sheets" not in " ".join(
        read_table(tmp_path / "t.xlsx", target="y", sheet="first").record
    )


def test_truth_values_of_parquet_are_numbers(tmp_path):
    frame = pd.DataFrame({"a": [True, False] * 3, "b": np.arange(6.0), "y": list("xxxzzz")})
    frame.to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet", target="y")
    assert table.X[:, 0].tolist() == [1.0, 0.0] * 3
    assert make_table(frame, target="y").X.tolist() == table.X.tolist()


def test_frames_whose_index_is_several_or_named_like_a_column():
    frame = pd.DataFrame({"a": np.arange(6.0), "b": np.arange(6) / 7, "y": list("xzxzxz")})
    several = frame.set_index(pd.MultiIndex.from_product([["p", "q"], [1, 2, 3]]))
    assert make_table(several, target="y").ids[4] == "q, 2"
    assert make_table(frame.rename_axis("a"), target="y").feature_names == ("a", "b")
    table = make_table(frame.drop(columns="y"))
    assert table.y is None and table.class_counts() == {}
    indexed = make_table(frame.set_index("b"), target="y", features=["b", "a"])
    assert indexed.X.tolist() == frame[["b", "a"]].to_numpy().tolist()


def test_annotated_data_with_nothing_but_a_layer():
    anndata = pytest.importorskip("anndata")
    obs = pd.DataFrame({"y": list("xzxz")}, index=list("abcd"))
    layers = {"raw": np.arange(12.0).reshape(4, 3) / 7}
    data = anndata.AnnData(obs=obs, var=pd.DataFrame(index=list("ghi")), layers=layers)
    assert make_table(data, target="y", layer="raw").X.tolist() == layers["raw"].tolist()
    with pytest.raises(InputError, match="X is empty; name a layer with layer: 'raw'"):
        make_table(data, target="y")


def test_rows_that_are_features_need_names_and_samples(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("gene,,\nstate,a,b\n")
    with pytest.raises(InputError, match="names no sample"):
        read_table(path, target="state", transpose=True)
    path.write_text("gene,s1,s2,s3,s4\nstate,a,b,a,b\n,1,2,3,4\n")
    with pytest.raises(InputError, match=r"line 3.*a row has no name"):
        read_table(path, target="state", transpose=True)
    path.write_text("gene,s1,s2,s3,s4\nstate,a,b,a,b\ng,1,2,3,4\n")
    with pytest.raises(InputError, match="there is no row 'stat'"):
        read_table(path, target="stat", transpose=True)
    table = read_table(path, target="state", id="gene", transpose=True)
    assert table.ids.tolist() == ["s1", "s2", "s3", "s4"]


def test_parts_of_a_parquet_folder_may_be_empty(tmp_path):
    pytest.importorskip("dask")
    frame = pd.DataFrame({"a": np.arange(6.0), "y": list("xzxzxz")})
    for part, rows in enumerate((slice(0, 4), slice(0, 0), slice(4, 6))):
        frame[rows].to_parquet(tmp_path / f"{part}.parquet", index=False)
    table = open_table(tmp_path, target="y")
    assert table.X.chunks == ((4, 2), (1,)) and table.X.compute().ravel().tolist() == [*range(6)]


def test_writing_from_another_thread(tmp_path):
    """Where Python sets no handlers of signals."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(io.write_atomic, tmp_path / "a.txt", "whole").result()
    assert (tmp_path / "a.txt").read_text() == "whole"


@pytest.mark.parametrize("kind", [OSError, InputError])
def test_errors_name_the_folder_that_the_files_are_for(tmp_path, kind):
    final = tmp_path / "out"
    with pytest.raises(kind, match=r"out/a\.txt") as caught, io.whole_folder(final) as folder:
        if kind is OSError:
            (folder / "a.txt" / "b").write_text("1")
        raise InputError("it is damaged", where=str(folder / "a.txt"))
    assert "partial" not in str(caught.value)
    for other in (OSError("full"), InputError("it is damaged", where="a.csv")):
        with pytest.raises(type(other)) as caught, io.whole_folder(final):
            raise other
        assert caught.value is other
    assert not final.exists()


# --- roles ---------------------------------------------------------------------------------


def _wide(**more):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 60)).round(4), columns=[f"G{j}" for j in range(60)])
    return frame.assign(**more, y=np.repeat(["ill", "well"], 20))


def test_roles_of_a_table_where_all_is_said():
    roles = [ColumnRole("y", "target", "as asked"), ColumnRole("a", "feature", "kept as asked")]
    lines = role_lines(roles, 1)
    assert [line["role"] for line in lines] == ["target", "feature"]
    assert role_lines(roles, 3)[-1] == {
        "role": "feature", "columns": [], "count": 2, "reason": "numbers"
    }  # fmt: skip


def test_names_of_identifiers_with_fractions_are_measurements():
    frame = _wide(sample=np.linspace(0.1, 0.9, 40), case_id=np.arange(40) % 2)
    table = make_table(frame, target="y")
    assert "sample" in table.feature_names and "case_id" in table.feature_names


def test_patients_beside_other_groups_are_left_out_without_a_word():
    patients, boxes = [f"P{i // 2}" for i in range(40)], np.arange(40) % 5
    table = make_table(_wide(patient=patients, box=boxes), target="y", group="box")
    assert table.dropped["patient"].startswith("ignored: repeats")
    assert not [n for n in table.notices if n.code == "patients"]


def test_a_code_that_is_kept_is_not_called_odd():
    flags = np.arange(40) % 2
    assert [n.code for n in make_table(_wide(flag=flags), target="y").notices] == ["roles"]
    assert not make_table(_wide(flag=flags), target="y", keep=["flag"]).notices


# --- HDF5 and Zarr -------------------------------------------------------------------------


def test_a_heap_that_goes_nowhere_is_refused(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"")
    check_heaps(path)
    heap = b"GCOL\x01\0\0\0" + (48).to_bytes(8, "little")
    sound = heap + b"\x01\0" + b"\0" * 6 + (16).to_bytes(8, "little") + b"x" * 16
    path.write_bytes(b"head" + sound)
    check_heaps(path)
    path.write_bytes(b"head" + sound + heap + b"\0" * 32)
    with pytest.raises(InputError, match="a heap of texts is damaged"):
        check_heaps(path)


def test_what_hdf5_keeps_elsewhere_or_declares_too_large_is_refused(tmp_path):
    h5py = pytest.importorskip("h5py")
    texts = np.array(["a", "bb", "ccc"] * 9, dtype=object)
    text = h5py.string_dtype()
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["X"] = np.ones(3)
        file.create_group("obs")["X"] = np.ones(3)
    path = tmp_path / "t.h5"
    layout = h5py.VirtualLayout((3,), float)
    layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "X", shape=(3,))
    with h5py.File(path, "w") as file:
        file["far"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "X")
        file["folder"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "obs")
        file.create_virtual_dataset("virtual", layout)
        file["twice"] = h5py.SoftLink("/here")
        file["here"] = np.arange(6.0)
        file["table"] = np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")])
        file["table"].attrs["odd"] = np.void(b"abc")
        file.create_dataset("packed", data=texts, dtype=text, chunks=(9,), compression="gzip")
        file.create_dataset(
            "shuffled", data=texts, dtype=text, chunks=(9,), compression="gzip", shuffle=True
        )
        file.create_dataset("other", data=texts, dtype=text, chunks=(9,), compression="lzf")
        file.create_dataset("plain", data=texts, dtype=text)
        file.create_dataset("none", shape=(0,), dtype=text)
        file.create_dataset("fixed", data=np.array([b"ab", b"cd"]))
        file.create_dataset("huge", shape=(1 << 40,), dtype="f8")
        file["soft"] = h5py.SoftLink("/folder/X")
        file["type"] = np.dtype("f8")
        file["rows"] = np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")])
        file.create_dataset("refs", data=[file["here"].ref], dtype=h5py.ref_dtype)
        file.create_group("nested")["far"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "X")
        # lengths of four billion, as HDF5 would shuffle them if it did so with texts
        lengths = np.frombuffer(b"\xff" * 16 * 9, "u1").reshape(-1, 16).T.tobytes()
        long = file.create_dataset(
            "long", shape=(9,), dtype=text, chunks=(9,), compression="gzip", shuffle=True
        )
        long.id.write_direct_chunk((0,), zlib.compress(lengths), 0)
        group = file.create_group("group")
        group["a"], group["b"] = file["here"], np.ones(2)
    size = path.stat().st_size
    with h5py.File(path, "r") as file:
        sound = ("here", "twice", "packed", "shuffled", "other", "plain", "none", "fixed", "group")
        check_hdf5(file, (*sound, "group/a", "type", "rows", "refs"), size)
        for name, message in (
            ("far", "kept in another file"),
            ("folder/X", "kept in another file"),
            ("virtual", "kept in another file"),
            ("table", "'odd' holds neither numbers nor text"),
            ("huge", "'huge' declares more than there is"),
            ("nested", "'far' is kept in another file"),
            ("soft", "'soft' is kept in another file"),
            ("long", "a text of 'long' is damaged"),
        ):
            with pytest.raises(InputError, match=message):
                check_hdf5(file, (name,), size)


def test_packers_are_named_however_metadata_spell_them():
    metadata = [
        {"codecs": [{"name": "bytes"}, "crc32c"], "attributes": {"filters": None}},
        {"compressor": {"id": "blosc"}, "filters": [{"id": "vlen-utf8"}, 3]},
    ]
    assert sorted(_codec_names(metadata)) == ["blosc", "bytes", "crc32c", "vlen-utf8"]


def test_texts_of_zarr_that_are_fewer_than_declared(tmp_path):
    packed = {"filters": [{"id": "vlen-utf8"}], "compressor": None}
    metadata = {"metadata": {"names/.zarray": packed, "../other/.zarray": packed}}
    (tmp_path / "a" / "names").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "a" / ".zmetadata").write_text(json.dumps(metadata))
    (tmp_path / "other" / "0").write_bytes(b"\xff" * 8)  # not in the store, not looked into
    chunk = tmp_path / "a" / "names" / "0"
    chunk.write_bytes((1).to_bytes(4, "little") + (2).to_bytes(4, "little") + b"ab")
    check_codecs(tmp_path / "a")
    chunk.write_bytes((1000).to_bytes(4, "little") + b"ab")
    with pytest.raises(InputError, match="texts of 'names' are damaged"):
        check_codecs(tmp_path / "a")


@pytest.mark.parametrize(("encoding", "shape"), [("coo_matrix", [4, 3]), ("csr_matrix", [4])])
def test_sparse_matrices_of_other_kinds(encoding, shape):
    stored = SimpleNamespace(attrs={"encoding-type": encoding, "shape": shape})
    with pytest.raises(InputError, match=f"X is stored as '{encoding}'; store it as an array, CSR"):
        check_anndata_matrix(stored, 4, 3)


def test_a_file_that_another_process_is_writing(tmp_path, sheet, write_sheet):
    fcntl = pytest.importorskip("fcntl")
    write_sheet(sheet, tmp_path / "t.h5ad")
    with open(tmp_path / "t.h5ad", "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(InputError, match=r"it cannot be read \(.*lock"):
            read_table(tmp_path / "t.h5ad", target="class")


def test_small_sizes_are_said_in_bytes():
    with pytest.raises(InputError, match=r"unpacks to 1 GB, .* times the 500 bytes it takes"):
        io.guards.check_unpacked(1 << 30, 500, "check it")


def test_zarr_stores_that_are_no_tables(tmp_path):
    zarr = pytest.importorskip("zarr")
    pytest.importorskip("dask")
    zarr.save(str(tmp_path / "one.zarr"), np.eye(3))
    with pytest.raises(InputError, match="a single array"):
        open_table(tmp_path / "one.zarr", target="y")
    zarr.save(str(tmp_path / "two.zarr"), Y=np.eye(3), y=np.arange(3))
    with pytest.raises(InputError, match=r"no array 'X' \(there are"):
        open_table(tmp_path / "two.zarr", target="y")
    with pytest.raises(InputError, match="layer is for AnnData"):
        open_table(tmp_path / "two.zarr", target="y", layer="raw")
    zarr.save(str(tmp_path / "flat.zarr"), X=np.arange(3.0), y=np.arange(3))
    with pytest.raises(InputError, match="X is 1-dimensional"):
        open_table(tmp_path / "flat.zarr", target="y")


# --- models ----------------------------------------------------------------------------------


def test_archives_that_no_model_has(tmp_path):
    pytest.importorskip("skops")
    X = np.random.default_rng(0).normal(size=(20, 3))
    model = GSVPSVM(n_features=2).fit(X, np.arange(20) % 2)
    path = tmp_path / "m.skops"
    io.save_model(model, path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    (seal,) = [name for name in members if name.endswith(".json") and name != "schema.json"]

    def rewritten(**changed):
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in (members | changed).items():
                archive.writestr(name, data)
        return path

    assert io.load_model(rewritten()) is not None
    for damaged in (b"[]", b"{}", json.dumps({"format": "1"}).encode()):
        with pytest.raises(InputError, match="its description is damaged"):
            io.load_model(rewritten(**{seal: damaged}))
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(rewritten(), "a") as archive:
        archive.writestr("schema.json", members["schema.json"])
    with pytest.raises(InputError, match="list of parts is not that of a model"):
        io.load_model(path)


def test_a_layer_is_asked_for_by_a_name_also_where_x_is_a_layer_without_one():
    root = {"X": "counts", "layers": {None: "counts", "doubled": "twice"}}  # as in anndata 0.13
    assert stored_matrix(root, None) == "counts"
    assert stored_matrix(root, "doubled") == "twice"
    with pytest.raises(InputError, match="did you mean 'doubled'"):
        stored_matrix(root, "double")
