"""Files that lie about themselves: refused with a name and a remedy, before any harm."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import time
import warnings
import zipfile
import zlib

import numpy as np
import pytest

from sparsegsvp.io import InputError, guards, open_table, read_table
from sparsegsvp.io.guards import guarded

CSV = "id,a,b,class\n" + "".join(f"s{i},{i},{i * i},{'xy'[i % 2]}\n" for i in range(12))


def refusal(read, *args, **options) -> str:
    with pytest.raises(InputError) as caught:
        read(*args, **options)
    message = str(caught.value)
    assert "\n" not in message and ";" in message, "one line, with a remedy"
    return message


# --- sparse AnnData ------------------------------------------------------------------------


def _anndata(path, X):
    anndata = pytest.importorskip("anndata")
    pd = pytest.importorskip("pandas")
    obs = pd.DataFrame({"class": ["x", "y"] * 6}, index=[f"s{i}" for i in range(12)])
    data = anndata.AnnData(X, obs=obs, var=pd.DataFrame(index=list("abcd")))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data.write_zarr(path) if path.suffix == ".zarr" else data.write_h5ad(path)
    return path


def _reopened(path):
    if path.suffix == ".zarr":
        return pytest.importorskip("zarr").open(str(path), mode="r+")
    return pytest.importorskip("h5py").File(path, "r+")


def _matrix(kind):
    from scipy import sparse

    dense = np.random.default_rng(0).normal(size=(12, 4)) * (np.arange(4) != 1)
    return {"csr": sparse.csr_matrix, "csc": sparse.csc_matrix}[kind](dense)


DAMAGE = {
    # what is changed: the part, where in it, to what, and what is said of it
    "index too large": ("indices", 7, 12_000, "indices must be <"),
    "index below zero": ("indices", 7, -3, "indices must be >= 0"),
    "pointer falls": ("indptr", 2, 1, "index pointer"),
    "pointer leaps": ("indptr", 2, 1_000_000, "index pointer"),
    "pointer does not begin at 0": ("indptr", 0, 1, "index pointer"),
    "pointer ends early": ("indptr", -1, 5, "index pointer"),
}


@pytest.mark.parametrize("container", ["h5ad", "zarr"])
@pytest.mark.parametrize("kind", ["csr", "csc"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_every_index_of_a_sparse_matrix_is_checked(tmp_path, container, kind, damage):
    part, at, value, said = DAMAGE[damage]
    path = _anndata(tmp_path / f"a.{container}", _matrix(kind))
    root = _reopened(path)
    stored = root["X"][part]
    values = stored[:]
    values[at] = value
    stored[:] = values
    if container == "h5ad":
        root.close()
        assert said in refusal(read_table, path, target="class")
    pytest.importorskip("dask.array")
    message = refusal(lambda: open_table(path, target="class").X.compute())
    assert said in message and message.startswith(f"a.{container}")


@pytest.mark.parametrize("lazily", [False, True])
@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_the_shape_of_a_sparse_matrix_is_that_of_obs_and_var(tmp_path, kind, lazily):
    path = _anndata(tmp_path / "a.h5ad", _matrix(kind))
    if lazily:
        pytest.importorskip("dask.array")
    with _reopened(path) as file:
        file["X"].attrs["shape"] = np.array([12, 5])
    read = open_table if lazily else read_table
    assert "X is 12 x 5, but obs names 12 samples and var 4" in refusal(read, path, target="class")
    with _reopened(path) as file:
        file["X"].attrs["shape"] = np.array([12, 4])
        indices = file["X/indices"][:-2]
        del file["X/indices"]
        file["X/indices"] = indices
    assert "differ in size" in refusal(read, path, target="class")


def test_repeated_entries_of_a_sparse_matrix_are_summed(tmp_path):
    from scipy import sparse

    X = sparse.csr_matrix(
        (np.ones(24), np.repeat(np.arange(12) % 4, 2), np.arange(0, 25, 2)), shape=(12, 4)
    )
    table = read_table(_anndata(tmp_path / "a.h5ad", X), target="class")
    assert table.X.has_canonical_format and table.X.nnz == 12 and table.X.max() == 2


@pytest.mark.parametrize("how", ["link", "storage", "virtual", "obs"])
def test_content_of_other_files_is_not_read(tmp_path, how):
    h5py = pytest.importorskip("h5py")
    secret = tmp_path / "secret"
    secret.write_bytes(np.arange(48.0).tobytes())
    path = _anndata(tmp_path / "a.h5ad", np.ones((12, 4)))
    other = _anndata(tmp_path / "other.h5ad", np.ones((12, 4)))
    with h5py.File(path, "r+") as file:
        attributes = dict(file["X"].attrs)
        del file["X"]
        if how == "link":
            file["X"] = h5py.ExternalLink("other.h5ad", "/X")
        elif how == "storage":
            pieces = [(str(secret), 0, 384)]
            file.create_dataset("X", (12, 4), "f8", external=pieces).attrs.update(attributes)
        elif how == "virtual":
            layout = h5py.VirtualLayout((12, 4), "f8")
            layout[:] = h5py.VirtualSource(str(other), "X", (12, 4))
            file.create_virtual_dataset("X", layout).attrs.update(attributes)
        else:
            file["X"] = np.ones((12, 4))
            del file["obs"]
            file["obs"] = h5py.ExternalLink("other.h5ad", "/obs")
    assert "is kept in another file" in refusal(read_table, path, target="class")
    pytest.importorskip("dask.array")
    assert "is kept in another file" in refusal(open_table, path, target="class")


def test_heaps_on_which_hdf5_hangs_are_refused(tmp_path):
    path = _anndata(tmp_path / "a.h5ad", np.ones((12, 4)))
    content = bytearray(path.read_bytes())
    heap = content.index(b"GCOL\x01")
    content[heap + 16 : heap + 32] = bytes(16)  # an object of no length
    path.write_bytes(content)
    assert "a heap of texts is damaged" in refusal(read_table, path, target="class")


def test_attributes_longer_than_their_file_are_refused(tmp_path):
    """HDF5 would make room for 4 GB before it finds that there is no such text."""
    path = _anndata(tmp_path / "a.h5ad", np.ones((12, 4)))
    content = bytearray(path.read_bytes())
    heap = content.index(b"GCOL\x01").to_bytes(8, "little")
    at = content.index(heap, content.index(b"encoding-type\0"))
    content[at - 4 : at] = b"\xff" * 4
    path.write_bytes(content)
    assert "a text of an attribute is damaged" in refusal(read_table, path, target="class")


@pytest.mark.parametrize("packed", [False, True])
def test_texts_longer_than_their_file_are_refused(tmp_path, packed):
    h5py = pytest.importorskip("h5py")
    path = _anndata(tmp_path / "a.h5ad", np.ones((12, 4)))
    with h5py.File(path, "r+") as file:
        names, attributes = file["obs/_index"][()], dict(file["obs/_index"].attrs)
        del file["obs/_index"]
        more = {"compression": "gzip", "shuffle": True} if packed else {}
        made = file.create_dataset("obs/_index", data=names, **more)
        made.attrs.update(attributes)
        where = made.id.get_chunk_info(0) if packed else None
        offset = where.byte_offset if packed else made.id.get_offset()
    content = bytearray(path.read_bytes())
    if packed:
        raw = np.frombuffer(zlib.decompress(content[offset : offset + where.size]), "u1")
        raw = raw.reshape(16, -1).T.copy()
        raw[3, :4] = 255
        again = zlib.compress(raw.T.tobytes(), 9)
        content[offset : offset + len(again)] = again
    else:
        content[offset + 48 : offset + 52] = b"\xff" * 4
    assert read_table(path, target="class").ids[2] == "s2"
    path.write_bytes(content)
    assert "a text of '_index' is damaged" in refusal(read_table, path, target="class")


@pytest.mark.parametrize("part", ["X", "obs/_index"])
@pytest.mark.parametrize("kept", [0.3, 0.9])
def test_chunks_that_are_cut_short_are_refused(tmp_path, part, kept):
    """Blosc would read what happens to be behind them in memory."""
    path = _anndata(tmp_path / "a.zarr", np.random.default_rng(0).normal(size=(12, 4)))
    pytest.importorskip("dask.array")
    for chunk in (path / part).rglob("[0-9]*"):
        content = chunk.read_bytes()
        chunk.write_bytes(content[: int(kept * len(content))])
    assert "is cut short" in refusal(open_table, path, target="class")


@pytest.mark.parametrize("described", ["in its folder", "above it"])
def test_more_texts_than_bytes_are_refused(tmp_path, described):
    path = _anndata(tmp_path / "a.zarr", np.ones((12, 4)))
    if described == "above it":
        assert (path / ".zmetadata").exists() or (path / "zarr.json").exists()
        for name in (".zarray", "zarr.json"):
            (path / "obs" / "_index" / name).unlink(missing_ok=True)
    pytest.importorskip("dask.array")
    numcodecs = pytest.importorskip("numcodecs")
    (chunk,) = [p for p in (path / "obs" / "_index").rglob("0") if p.is_file()]
    packed = numcodecs.Blosc()
    raw = bytearray(packed.decode(chunk.read_bytes()))
    raw[:4] = (1 << 30).to_bytes(4, "little")
    chunk.write_bytes(packed.encode(bytes(raw)))
    assert "texts of '_index' are damaged" in refusal(open_table, path, target="class")


def test_arrays_in_more_chunks_than_bytes_are_refused(tmp_path):
    zarr = pytest.importorskip("zarr")
    pytest.importorskip("dask.array")
    store = zarr.open_group(str(tmp_path / "a.zarr"), mode="w", zarr_format=2)
    store.create_array("X", shape=(12, 4), chunks=(12, 4), dtype="f8")
    store.create_array("y", shape=(10**6,), chunks=(1,), dtype="i1")
    message = refusal(open_table, tmp_path / "a.zarr", target="y")
    assert "it declares 1000000 chunks" in message
    store.create_array("Z", shape=(12, 4), chunks=(12, 4), dtype="f8")
    del store["X"]
    store.create_array("X", shape=(10**6, 10**6), chunks=(1, 1), dtype="f8")
    assert "chunks, more than" in refusal(open_table, tmp_path / "a.zarr", id="Z")


def test_types_that_are_neither_numbers_nor_text_are_refused(tmp_path):
    h5py = pytest.importorskip("h5py")
    path = _anndata(tmp_path / "a.h5ad", np.ones((12, 4)))
    with h5py.File(path, "r+") as file:
        file["obs"].create_dataset("odd", (12,), dtype=h5py.vlen_dtype("i4"))
    assert "'odd' holds neither numbers nor text" in refusal(read_table, path, target="class")


@pytest.mark.parametrize("name", ["X", "obs/class/codes"])
def test_declared_sizes_of_hdf5_are_held_against_the_file(tmp_path, name):
    path = _anndata(tmp_path / "a.h5ad", np.ones((12, 4)))
    with _reopened(path) as file:
        attributes = dict(file[name].attrs)
        shape = (1 << 40,) * file[name].ndim if name != "X" else (12, 1 << 40)
        del file[name]
        made = file.create_dataset(name, shape, "i8", chunks=(2,) * len(shape))
        made.attrs.update(attributes)
    assert "it unpacks to" in refusal(read_table, path, target="class")


def test_zarr_runs_no_code(tmp_path):
    pytest.importorskip("zarr")
    pytest.importorskip("dask.array")
    store = tmp_path / "a.zarr"
    for name, shape in (("X", [4, 3]), ("y", [4])):
        (store / name).mkdir(parents=True)
        described = {
            "zarr_format": 2, "shape": shape, "chunks": shape, "dtype": "<f8", "order": "C",
            "compressor": None, "fill_value": 0, "filters": [{"id": "pickle"}],
        }  # fmt: skip
        (store / name / ".zarray").write_text(json.dumps(described))
    (store / ".zgroup").write_text('{"zarr_format": 2}')
    (store / "y" / "0").write_bytes(pickle.dumps(np.zeros(4)))
    assert "packed with 'pickle', which is not opened" in refusal(open_table, store, target="y")


# --- Excel -------------------------------------------------------------------------------


def _workbook(path, change=lambda xml: xml, member="xl/worksheets/sheet1.xml", **more):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for line in CSV.splitlines():
        book.active.append([float(c) if re.fullmatch(r"\d+", c) else c for c in line.split(",")])
    buffer = io.BytesIO()
    book.save(buffer)
    with zipfile.ZipFile(buffer) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            content = old.read(name)
            new.writestr(name, change(content.decode()) if name == member else content)
        for name, content in more.items():
            new.writestr(name, content)
    return path


def test_rows_beyond_the_stored_dimension_are_read(tmp_path):
    changed = lambda xml: re.sub('<dimension ref="[^"]*"', '<dimension ref="A1:C7"', xml)
    path = _workbook(tmp_path / "a.xlsx", changed)
    table = read_table(path, target="class", id="id")
    assert table.X.shape == (12, 2) and table.X[-1].tolist() == [11, 121]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('<row r="13"', '<row r="900000000"', "row '900000000' follows row 12"),
        ('<row r="13"', '<row r="12"', "row '12' follows row 12"),
        ('<row r="5"', '<row r="3"', "row '3' follows row 4"),
        ('<c r="B5"', '<c r="D5"', "is out of order"),
        ('<c r="D5"', '<c r="XFE5"', "is out of order"),
        ('<c r="D5"', '<c r="D6"', "is in row 5"),
    ],
)
def test_rows_and_cells_out_of_order_are_no_silent_loss(tmp_path, old, new, said):
    def change(xml):
        assert old in xml
        return xml.replace(old, new)

    start = time.perf_counter()
    path = _workbook(tmp_path / "a.xlsx", change)
    assert said in refusal(read_table, path, target="class", id="id")
    assert time.perf_counter() - start < 5


# --- unpacking ---------------------------------------------------------------------------


def test_gzipped_text_is_unpacked_up_to_a_bound(tmp_path, monkeypatch):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + b"0,0\n" * 1_000_000))
    monkeypatch.setattr(guards, "ALWAYS_BYTES", 1 << 20)
    message = refusal(read_table, path)
    assert "over 1 MB and over 100 times the" in message
    assert message.endswith("unpack it yourself if you trust it, and give that file")
    path.write_bytes(gzip.compress(CSV.encode()))
    assert read_table(path, target="class", id="id").X.shape == (12, 2)


def test_parts_of_a_workbook_unpack_up_to_a_bound(tmp_path):
    bomb = {"xl/bomb.xml": b"<si/>" * 2_000_000}
    message = refusal(read_table, _workbook(tmp_path / "a.xlsx", **bomb), target="class")
    assert "it unpacks to 9.5" in message and "save the sheet as CSV" in message


def test_arrays_without_a_role_are_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(guards, "ALWAYS_BYTES", 1 << 20)
    X, y = np.random.default_rng(0).normal(size=(12, 3)), np.array(["x", "y"] * 6)
    np.savez_compressed(tmp_path / "a.npz", X=X, y=y, bomb=np.zeros(2_000_000))
    assert read_table(tmp_path / "a.npz", target="y").X.shape == (12, 3)
    np.savez_compressed(tmp_path / "b.npz", X=np.zeros((2000, 1000)), y=y)
    assert "it unpacks to 15.26 MB" in refusal(read_table, tmp_path / "b.npz", target="y")


def _npz(path, **members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            if not isinstance(content, bytes):
                buffer = io.BytesIO()
                np.lib.format.write_array(buffer, np.asarray(content))
                content = buffer.getvalue()
            archive.writestr(f"{name}.npy", content)
    return path


def _header(shape, descr="<f8", data=b""):
    buffer = io.BytesIO()
    header = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, header)
    return buffer.getvalue() + data


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"X": _header((10**6, 10**6), data=bytes(64))}, "does not hold what it declares"),
        ({"X": _header((2, 2), "|O", bytes(32))}, "holds Python objects"),
        ({"X": b"\x93NUMPY\x09\x00" + bytes(64)}, "array 'X' is damaged"),
        ({"X": b""}, "array 'X' is damaged"),
        ({"X": np.ones(4)}, "X is 1-dimensional"),
        ({"X": np.ones((4, 2)), "feature_names": [["a", "b"]]}, "not one-dimensional"),
        ({"X": np.ones((4, 2)), "y": ["a", "b"]}, "array 'y' has shape (2,)"),
        ({"X": np.ones((4, 2)), "y": _header((4,), "<U1", b"\xff" * 16)}, "holds damaged text"),
        ({"X": np.ones((4, 2)), "y": [0, 1, 2, 9], "class_names": ["a", "b"]}, "class_names"),
        ({"x": np.ones((4, 2))}, "there is no array 'X'"),
    ],
)
def test_arrays_that_are_not_what_they_say(tmp_path, members, said):
    path = _npz(tmp_path / "a.npz", **members)
    with pytest.raises(InputError, match=re.escape(said)) as caught:
        read_table(path, target="y" if "y" in members else None)
    assert str(caught.value).startswith("a.npz: ")


# --- Parquet -----------------------------------------------------------------------------


@pytest.mark.parametrize("lazily", [False, True])
def test_every_promised_row_of_parquet_is_there(tmp_path, lazily):
    """Change each 12 of the footer into 20: what is read has 12 rows, or is refused."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    if lazily:
        pytest.importorskip("dask.array")
    path = tmp_path / "a.parquet"
    frame = {"a": np.arange(12.0), "b": np.arange(12.0) ** 2, "class": ["x", "y"] * 6}
    pq.write_table(pa.table(frame), path, use_dictionary=False)
    good = path.read_bytes()
    footer = len(good) - 8 - int.from_bytes(good[-8:-4], "little")
    refused = 0
    for at in range(footer, len(good) - 8):
        if good[at] != 24:  # 12, as thrift writes it
            continue
        path.write_bytes(good[:at] + bytes([40]) + good[at + 1 :])
        try:
            table = (open_table if lazily else read_table)(path, target="class")
            X = table.X.compute() if lazily else table.X
        except InputError as error:
            refused += "rows are promised" in str(error)
        else:
            assert X.tolist() == np.column_stack([frame["a"], frame["b"]]).tolist()
    assert refused >= 1


def test_decimals_of_parquet_are_numbers(tmp_path):
    from decimal import Decimal

    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    cells = [Decimal("1.25"), None, Decimal("-3.50")]
    frame = pa.table({"a": cells, "b": [1.0, 2.0, 3.0], "class": ["x", "y", "x"]})
    pq.write_table(frame, tmp_path / "a.parquet")
    table = read_table(tmp_path / "a.parquet", target="class")
    np.testing.assert_array_equal(table.X[:, 0], [1.25, np.nan, -3.5])
    if pytest.importorskip("dask.array"):
        lazy = open_table(tmp_path / "a.parquet", target="class")
        np.testing.assert_array_equal(lazy.X.compute(), table.X)


# --- text --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (CSV.encode("utf-16")[:-1], "it begins as utf-16 but does not go on so"),
        (b"\xef\xbb\xbf" + CSV.encode() + b"\xff\xfe,1,2,x\n", "it begins as utf-8-sig but does"),
        (gzip.compress(CSV.encode(), mtime=0)[:-20], "gzip data are damaged or cut short"),
    ],
    ids=["utf-16", "utf-8 with a mark", "gzip"],
)
def test_text_that_breaks_off(tmp_path, content, said):
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    assert said in refusal(read_table, path, target="class", id="id")


@pytest.mark.parametrize("given", ["\\t", "tab", "\t"])
def test_a_tab_may_be_written_in_any_way(tmp_path, given):
    path = tmp_path / "a.tsv"
    path.write_text(CSV.replace(",", "\t"))
    assert read_table(path, target="class", id="id", separator=given).X.shape == (12, 2)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"separator": "ab"}, "separator is 'ab'; give one character"),
        ({"separator": ""}, "separator is ''; give one character"),
        ({"separator": '"'}, "give one character"),
        ({"separator": "\n"}, "give one character"),
        ({"decimal": "x"}, "decimal is 'x'; give a point or a comma"),
        ({"encoding": "hex"}, "there is no encoding called 'hex'"),
        ({"encoding": "\0"}, "not"),
        ({"encoding": "ascii\n"}, "is not"),
    ],
)
def test_options_that_cannot_be(tmp_path, options, said):
    path = tmp_path / "a.csv"
    path.write_text(CSV + "é,1,2,x\n")
    with pytest.raises(InputError, match=re.escape(said)):
        read_table(path, target="class", id="id", **options)


def test_a_broken_line_of_arff_is_named(tmp_path):
    path = tmp_path / "a.arff"
    path.write_text("@relation r\n@attribute a numeric\n@data\n1\n'" + "x" * 200_000 + "'\n")
    assert "line 5" in refusal(read_table, path)


# --- names and numbers -------------------------------------------------------------------


def test_a_name_that_is_no_text_can_be_written_everywhere(tmp_path):
    path = os.path.join(os.fsencode(tmp_path), b"caf\xe9.csv")
    try:
        with open(path, "w") as handle:
            handle.write(CSV)
    except OSError:
        pytest.skip("this file system wants text for names")
    table = read_table(os.fsdecode(path), target="class", id="id")
    assert table.source == "caf\ufffd.csv"
    "".join(table.record).encode()


@pytest.mark.parametrize("read", [read_table, open_table])
def test_a_name_of_300_characters(tmp_path, read):
    if read is open_table:
        pytest.importorskip("dask.array")
    with pytest.raises(InputError, match=r"too long|no such file"):
        read(tmp_path / ("x" * 300 + ".csv"))


@pytest.mark.parametrize(("dtype", "value"), [("f8", 1e80), ("f4", 1e20)])
def test_what_no_fit_would_take_is_refused_with_its_column(tmp_path, dtype, value):
    from sparsegsvp import GSVPSVM

    X = np.random.default_rng(0).normal(size=(12, 3)).astype(dtype)
    X[4, 1] = value
    y = np.array(["x", "y"] * 6)
    with pytest.raises(ValueError, match="overflow"):
        GSVPSVM().fit(X, y)
    np.savez(tmp_path / "a.npz", X=X, y=y, feature_names=["a", "b", "c"])
    assert "row 5, column 'b'" in refusal(read_table, tmp_path / "a.npz", target="y")
    X[4, 1] = 0.9 * {"f8": 1e75, "f4": 1e18}[dtype]
    np.savez(tmp_path / "a.npz", X=X, y=y, feature_names=["a", "b", "c"])
    GSVPSVM().fit(read_table(tmp_path / "a.npz", target="y").X, y)


def test_a_matrix_larger_than_the_memory_is_refused(monkeypatch):
    monkeypatch.setattr(guards, "machine_memory", lambda: 1 << 20)
    guards.check_memory(1000, 100)
    with pytest.raises(InputError, match=r"take 7\.629 MB, more than the memory of this machine"):
        guards.check_memory(1000, 1000)


# --- one kind of error, and the way out ---------------------------------------------------


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (KeyError("x\x1b[31m"), "it is damaged, or not CSV (KeyError: 'x\\x1b[31m')"),
        (SystemError(), "it is damaged, or not CSV (SystemError)"),
        (OSError("odd"), "it is damaged, or not CSV (OSError: odd)"),
        (PermissionError(13, "Permission denied"), "it cannot be read (Permission denied)"),
        (MemoryError(), "more memory than there is"),
        (ValueError("y" * 500), "y…)"),
    ],
)
def test_whatever_a_library_raises_is_one_kind_of_error(error, said):
    with pytest.raises(InputError, match=re.escape(said)) as caught, guarded("CSV"):
        raise error
    assert caught.value.__cause__ is error


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, InputError("mine"), ImportError])
def test_what_is_not_about_the_file_passes(error):
    with pytest.raises(error if isinstance(error, type) else InputError) as caught, guarded("CSV"):
        raise error
    assert caught.value.__cause__ is None


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="signals of another kind")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_hang_that_holds_pythons_lock_ends_at_once(number):
    code = (
        "import collections, itertools\n"
        "from sparsegsvp.io.guards import end_at_once, interruptible\n"
        "end_at_once()\n"
        "with interruptible():\n"
        "    print('ready', flush=True)\n"
        "    collections.deque(itertools.repeat(0), maxlen=0)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"ready\n"
    child.send_signal(number)
    assert child.wait(timeout=10) == -number


def test_interrupts_are_as_before_afterwards(monkeypatch):
    monkeypatch.setattr(guards, "_ends_at_once", True)
    before = signal.getsignal(signal.SIGINT)
    with guards.interruptible():
        assert signal.getsignal(signal.SIGINT) == signal.SIG_DFL
    assert signal.getsignal(signal.SIGINT) == before
    monkeypatch.setattr(guards, "_ends_at_once", False)
    with guards.interruptible():
        assert signal.getsignal(signal.SIGINT) == before
