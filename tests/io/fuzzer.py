"""Damaged and forged files by the thousand, each known by a format, a seed and a number.

`corpus` writes one good file of every format, `mutant` damages a copy of it, `judge` reads that
and says what came of it. The tests run some thousand; ``campaign/fuzz.py`` any number.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import shutil
import time
import warnings
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from sparsegsvp import GSVPSVM, load_model, save_model
from sparsegsvp.evaluation.journal import Journal
from sparsegsvp.io import InputError, open_table, preview_table, read_table
from sparsegsvp.io.archive import SEAL, archive_digest, zipped
from sparsegsvp.io.text import names_or_files, read_costs

Random = np.random.Generator

NAMES = ["TP53", "β-actin", "HLA-A", "g4"]
ALL = {"target": "class", "id": "sample", "group": "patient"}


# --- one good file of each format --------------------------------------------------------


def _sheet() -> dict[str, Any]:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(12, 4)).round(6)
    X[:6, 0] += 3
    return {
        "X": X,
        "class": np.repeat(["ill", "well"], 6),
        "sample": np.array([f"s{i}" for i in range(12)]),
        "patient": np.array([f"p{i // 2}" for i in range(12)]),
    }


def _text(separator: str) -> bytes:
    sheet = _sheet()
    lines = [["sample", *NAMES, "class", "patient"]]
    for i, row in enumerate(sheet["X"]):
        lines.append([sheet["sample"][i], *map(repr, row.tolist())])
        lines[-1] += [sheet["class"][i], sheet["patient"][i]]
    return "".join(separator.join(line) + "\n" for line in lines).encode()


def _arff() -> bytes:
    head = ["@relation r", "@attribute sample string"]
    head += [f"@attribute '{name}' numeric" for name in NAMES]
    head += ["@attribute class {ill,well}", "@attribute patient string", "@data"]
    return "\n".join(head).encode() + b"\n" + _text(",").split(b"\n", 1)[1]


def _frame() -> Any:
    import pandas as pd

    sheet = _sheet()
    frame = pd.DataFrame(sheet["X"], columns=NAMES)
    frame.insert(0, "sample", sheet["sample"])
    return frame.assign(**{"class": sheet["class"], "patient": sheet["patient"]})


def _anndata(kind: str) -> Any:
    import anndata
    import pandas as pd
    from scipy import sparse

    sheet = _sheet()
    wrap: Any = {"dense": np.asarray, "csr": sparse.csr_matrix, "csc": sparse.csc_matrix}[kind]
    obs = pd.DataFrame({"class": pd.Categorical(sheet["class"]), "patient": sheet["patient"]})
    obs.index = sheet["sample"]
    return anndata.AnnData(wrap(sheet["X"]), obs=obs, var=pd.DataFrame(index=NAMES))


def _write_zarr(path: Path) -> None:
    import zarr

    sheet = _sheet()
    store = zarr.open_group(str(path), mode="w", zarr_format=2)
    store.create_array("X", data=sheet["X"], chunks=(5, 2))
    store.create_array("y", data=np.repeat([0, 1], 6))


def _series_matrix() -> bytes:
    sheet = _sheet()
    names = [f'"GSM{i}"' for i in range(12)]
    lines = [["!Series_geo_accession", '"GSE1"'], ["!Sample_geo_accession", *names]]
    lines.append(["!Sample_title", *(f'"{name}"' for name in sheet["sample"])])
    told = ("class", "patient")
    lines += [
        ["!Sample_characteristics_ch1", *(f'"{what}: {v}"' for v in sheet[what])] for what in told
    ]
    lines += [["!Sample_platform_id", *['"GPL1"'] * 12], ["!series_matrix_table_begin"]]
    lines.append(['"ID_REF"', *names])
    lines += [[f'"{name}"', *map(repr, sheet["X"][:, j].tolist())] for j, name in enumerate(NAMES)]
    lines.append(["!series_matrix_table_end"])
    return "".join("\t".join(line) + "\n" for line in lines).encode()


def _labels() -> bytes:
    sheet = _sheet()
    rows = zip(sheet["sample"], sheet["class"], sheet["patient"])
    return "\n".join(["sample,diagnosis,site", *map(",".join, rows)]).encode() + b"\n"


def _write_sheets(path: Path) -> None:
    import pandas as pd

    with pd.ExcelWriter(path) as book:
        pd.DataFrame({"note": ["read the other sheet"]}).to_excel(book, sheet_name="about")
        _frame().to_excel(book, sheet_name="data", index=False)


HEADER = {"kind": "fuzz", "seed": 1}


def _write_log(path: Path) -> None:
    with Journal(path, HEADER) as journal:
        for fold in range(6):
            journal.add(("fold", fold), {"score": fold / 7, "panel": [1, fold]}, seconds=0.5)


def _results() -> bytes:
    from sparsegsvp.workflow import select_panel

    frame = _frame().drop(columns="patient")
    cheap = {"tau": 1, "n_deltas": 3, "folds": 2, "fast": True, "n_jobs": 1}
    found = select_panel(frame, target="class", id="sample", **cheap)
    return json.dumps(found.document).encode()


def _model() -> Any:
    frame = _frame()
    return GSVPSVM(delta=0.05).fit(frame[NAMES], frame["class"])


WRITERS: dict[str, Callable[[Path], Any]] = {
    "table.csv": lambda path: path.write_bytes(_text(",")),
    "table.tsv": lambda path: path.write_bytes(b"\xef\xbb\xbf" + _text("\t")),
    "wide.csv": lambda path: path.write_bytes(_text(";").decode().encode("utf-16")),
    "table.csv.gz": lambda path: path.write_bytes(gzip.compress(_text(","), mtime=0)),
    "table.arff": lambda path: path.write_bytes(_arff()),
    "table.xlsx": lambda path: _frame().to_excel(path, index=False),
    "table.parquet": lambda path: _frame().to_parquet(path),
    "lazy.parquet": lambda path: _frame().drop(columns="sample").to_parquet(path),
    "table.npz": lambda path: np.savez_compressed(path, **_sheet(), feature_names=NAMES),
    "dense.h5ad": lambda path: _anndata("dense").write_h5ad(path, compression="gzip"),
    "csr.h5ad": lambda path: _anndata("csr").write_h5ad(path),
    "csc.h5ad": lambda path: _anndata("csc").write_h5ad(path),
    "lazy.h5ad": lambda path: _anndata("csr").write_h5ad(path),
    "arrays.zarr": _write_zarr,
    "anndata.zarr": lambda path: _anndata("csr").write_zarr(path),
    "model.skops": lambda path: save_model(_model(), path),
    "series_matrix.txt": lambda path: path.write_bytes(_series_matrix()),
    "labels.csv": lambda path: path.write_bytes(_labels()),
    "sheets.xlsx": _write_sheets,
    "look.csv": lambda path: path.write_bytes(_text(",")),
    "look.xlsx": lambda path: _frame().to_excel(path, index=False),
    "names.txt": lambda path: path.write_text("\n".join(["# kept", *NAMES]), encoding="utf-8"),
    "costs.txt": lambda path: path.write_text("name,cost\nTP53,2\nHLA-A,0.5\ng4,0\n"),
    "log.jsonl": _write_log,
    "results.json": lambda path: path.write_bytes(_results()),
}


def corpus(folder: Path, names: Any = tuple(WRITERS)) -> None:
    """Write the good files, and make sure that each is read."""
    folder.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            WRITERS[name](folder / name)
            outcome = judge(folder / name)
            assert outcome == "read", f"{name}: {outcome}"


# --- damage ------------------------------------------------------------------------------

_INTEGERS = [0, 1, 2, 127, 128, 255, 256, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 40]
_INTEGERS += [(1 << 63) - 1, (1 << 64) - 1]
_WORDS = [b"", b"0", b"-1", b"1e400", b"nan", b"99999999999999999999", b"\x00", b"\xff\xfe", b'"']
_WORDS += [b"'", b"<", b"&", b"{", b"[" * 50, b"../../etc/passwd", b"\x1b[31m", b"A" * 3000, b"\r"]


def damaged(data: bytes, rng: Random) -> bytes:
    """Damage some bytes in one to four ways."""
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 5))):
        if not out:
            break
        at = int(rng.integers(len(out)))
        span = int(rng.integers(1, max(2, min(64, len(out)))))
        kind = int(rng.integers(9))
        if kind == 0:
            out[at] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            out[at : at + span] = rng.bytes(span)
        elif kind == 2:
            del out[at : at + span]
        elif kind == 3:
            out[at:at] = out[max(0, at - span) : at]
        elif kind == 4:
            width = int(rng.choice([1, 2, 4, 8]))
            number = _INTEGERS[int(rng.integers(len(_INTEGERS)))] % (1 << (8 * width))
            order = "little" if rng.random() < 0.7 else "big"
            out[at : at + width] = number.to_bytes(width, order)  # type: ignore[arg-type]
        elif kind == 5 and rng.random() < 0.3:
            del out[at:]
        elif kind == 6:
            other = int(rng.integers(len(out)))
            out[at : at + span] = out[other : other + span]
        else:
            places = [m.span() for m in re.finditer(rb"[0-9A-Za-z.+-]+", bytes(out))]
            if places:
                start, stop = places[int(rng.integers(len(places)))]
                out[start:stop] = _WORDS[int(rng.integers(len(_WORDS)))]
    return bytes(out)


def _damaged_zip(data: bytes, rng: Random, reseal: bool) -> bytes:
    """Damage one member and write the archive anew, so that what is behind the checksums is met."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    names = sorted(members)
    # the text of a workbook or a schema is where the structure is
    texts = [name for name in names if name.endswith((".xml", ".json", ".rels"))] or names
    for _ in range(int(rng.integers(1, 3))):
        pool = texts if rng.random() < 0.6 else names
        name = pool[int(rng.integers(len(pool)))]
        if rng.random() < 0.1:
            members.pop(name, None)
        else:
            members[name] = damaged(members.get(name, b""), rng)
    if reseal:
        try:
            seal = json.loads(members[SEAL])
            seal["digest"] = archive_digest(members)
            members[SEAL] = json.dumps(seal).encode()
        except (KeyError, ValueError, TypeError):
            pass
    return zipped(members)


def _damage_hdf5(path: Path, rng: Random) -> None:
    """Change values, attributes and shapes as somebody with the library would."""
    import h5py

    with h5py.File(path, "r+") as file:
        items: list[str] = []
        file.visit(items.append)
        for _ in range(int(rng.integers(1, 4))):
            name = items[int(rng.integers(len(items)))]
            if name not in file:
                continue
            item, kind = file[name], int(rng.integers(5))
            number = int(rng.choice([-1, 0, 1, 3, 4, 5, 12, 13, 2**31 - 1, 2**62]))
            if kind == 0:
                del file[name]
            elif kind == 1 and len(item.attrs):
                key = sorted(item.attrs)[int(rng.integers(len(item.attrs)))]
                values = [number, "x", np.array([number, 4]), np.array([12, number]), "csr_matrix"]
                item.attrs[key] = values[int(rng.integers(len(values)))]
            elif isinstance(item, h5py.Dataset) and item.size and item.dtype.kind in "iuf":
                if kind == 2:
                    data = item[()]
                    info = np.iinfo(data.dtype) if data.dtype.kind in "iu" else np.finfo(data.dtype)
                    low, high = (int(max(info.min, -(2**63))), int(min(info.max, 2**63 - 1)))
                    np.put(data, rng.integers(data.size), min(max(number, low), high))
                    item[()] = data
                else:
                    data = np.resize(item[()], max(0, item.size + int(rng.integers(-3, 4))))
                    dtype = [data.dtype, "i8", "f4", "u1"][int(rng.integers(4))]
                    del file[name]
                    with np.errstate(invalid="ignore"):
                        file[name] = data.astype(dtype)


_VALUES = [None, True, -1, 0, 2, 10**30, 1e308, "", "x", "<b>", "A" * 3000, [], [1], {}, {"a": 1}]


def _changed(value: Any, rng: Random, depth: int = 0) -> Any:
    """Change one thing somewhere in what JSON holds."""
    inner = isinstance(value, dict | list) and len(value) > 0
    if not inner or (depth > 1 and rng.random() < 0.15):
        return _VALUES[int(rng.integers(len(_VALUES)))]
    keys = sorted(value) if isinstance(value, dict) else list(range(len(value)))
    key, copy = keys[int(rng.integers(len(keys)))], value.copy()
    if rng.random() < 0.1:
        del copy[key]
    elif isinstance(value, list) and rng.random() < 0.1:
        copy.append(value[key])
    else:
        copy[key] = _changed(value[key], rng, depth + 1)
    return copy


def mutant(good: Path, bad: Path, rng: Random) -> None:
    """Write a damaged copy of a good file or folder."""
    if bad.is_dir():
        shutil.rmtree(bad)
    if good.is_dir():
        shutil.copytree(good, bad)
        files = sorted(p for p in bad.rglob("*") if p.is_file())
        for _ in range(int(rng.integers(1, 3))):
            file = files[int(rng.integers(len(files)))]
            if file.exists() and rng.random() < 0.1:
                file.unlink()
            else:
                file.write_bytes(damaged(file.read_bytes() if file.exists() else b"", rng))
        return
    data, suffix = good.read_bytes(), good.suffix
    if suffix == ".gz" and rng.random() < 0.5:
        bad.write_bytes(gzip.compress(damaged(gzip.decompress(data), rng), 1, mtime=0))
    elif suffix in (".xlsx", ".npz", ".skops") and rng.random() < 0.7:
        bad.write_bytes(_damaged_zip(data, rng, reseal=suffix == ".skops"))
    elif suffix == ".json":
        bad.write_text(json.dumps(_changed(json.loads(data), rng)))
    elif suffix == ".jsonl" and rng.random() < 0.5:
        lines = data.splitlines()
        at = int(rng.integers(len(lines)))
        lines[at] = json.dumps(_changed(json.loads(lines[at]), rng)).encode()
        bad.write_bytes(b"\n".join(lines) + b"\n")
    elif suffix == ".h5ad" and rng.random() < 0.5:
        bad.write_bytes(data)
        _damage_hdf5(bad, rng)
    else:
        bad.write_bytes(damaged(data, rng))


# --- the verdict -------------------------------------------------------------------------


def _use_labels(path: Path) -> None:
    table = path.with_name("beside-labels.csv")  # a message may name either file
    table.write_bytes(_text(","))
    roles = {"target": "diagnosis", "id": "sample", "drop": ("class", "patient")}
    found = read_table(table, labels=path, **roles)
    assert found.X.shape[0] == len(found.y)


def _use_log(path: Path) -> None:
    """Continue a log; one that is refused stays as it is."""
    before = path.read_bytes()
    times = path.with_name("log.timings.jsonl")
    times.unlink(missing_ok=True)
    try:
        with Journal(path, HEADER, resume=True) as journal:
            journal.add(("fold", 9), 1.0)
    except ValueError as error:
        assert path.read_bytes() == before and not times.exists(), "a log refused was changed"
        raise InputError(str(error)) from error


def _use_results(path: Path) -> None:
    from sparsegsvp.report import build_report, checklist_markdown

    document = json.loads(path.read_bytes())
    try:
        build_report(document)
        checklist_markdown(document)
    except ValueError as error:
        if "results" not in str(error):
            raise
        raise InputError(str(error)) from error


# Files that are no tables, and tables that are read in other ways.
_OTHERS: dict[str, Callable[[Path], Any]] = {
    "labels": _use_labels,
    "look": preview_table,
    "names": lambda path: names_or_files(f"@{path}"),
    "costs": read_costs,
    "log": _use_log,
    "results": _use_results,
}
_ROLES: dict[str, dict[str, Any]] = {
    "series_matrix": {"target": "class", "group": "patient"},
    "sheets": {**ALL, "sheet": "data"},
}


def _use(path: Path) -> None:
    """Read a file as its name says, and look at all of it."""
    if path.suffix == ".skops":
        model = load_model(path)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            assert model.predict(np.ones((2, model.n_features_in_))).shape == (2,)
        return
    kind = path.name.partition(".")[0]
    if kind in _OTHERS:
        _OTHERS[kind](path)
        return
    if path.suffix == ".zarr" or kind == "lazy":
        roles: dict[str, Any] = {"target": "y" if kind == "arrays" else "class"}
        if kind == "lazy" and path.suffix == ".parquet":
            roles["group"] = "patient"
        table = open_table(path, **roles)
        X = table.X.compute() if table.X.size < 1_000_000 else table.X[:10, :10].compute()
        if table.X.size >= 1_000_000:
            return
    else:
        roles = {**ALL, "id": None} if path.suffix == ".h5ad" else ALL
        roles = _ROLES.get(kind, roles)
        table = read_table(path, **roles)
        X = table.X
    X = X.toarray() if hasattr(X, "toarray") else X
    n, m = X.shape
    assert m == len(table.feature_names) and n == len(table.y), "names and labels do not fit"
    kinds = "biuf" if path.suffix == ".zarr" or kind == "lazy" else "f"  # left as they are on disk
    assert X.dtype.kind in kinds and all(isinstance(label, str) for label in table.y)
    float(np.nansum(X[np.isfinite(X)]))


def judge(path: Path, slow: float = 10.0) -> str:
    """Say what came of a file: ``read``, ``refused``, or what must never happen."""
    start = time.process_time()  # of this process alone: machines may be busy
    with warnings.catch_warnings(record=True) as leaked:
        warnings.simplefilter("always")
        try:
            _use(path)
            outcome = "read"
        except InputError as error:
            text = str(error)
            good = text.isprintable() and len(text) < 2000 and path.stem.split(".")[0] in text
            outcome = "refused" if good else f"a poor message: {text!r}"
        except Exception as error:
            outcome = f"{type(error).__name__}: {error}"
    if leaked:
        outcome = f"{leaked[0].category.__name__} leaked: {leaked[0].message}"
    if time.process_time() - start > slow:
        outcome = f"took {time.process_time() - start:.0f} s"
    return outcome


def run(folder: Path, name: str, seed: int, number: int) -> str:
    """Make and judge one mutant; it stays in the folder until the next."""
    rng = np.random.default_rng([seed, zlib.crc32(name.encode()), number])
    bad = folder / "mutant" / name
    bad.parent.mkdir(exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mutant(folder / name, bad, rng)
    return judge(bad)
