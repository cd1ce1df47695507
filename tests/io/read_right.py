"""Tables with known values, written as other programs do and damaged: are they read right?

    python tests/io/read_right.py --cases 50000 --seed 1

A case is a table (types, names, codes, labels), a dialect (Excel, R, pandas, GEO, SPSS, Numbers,
AnnData, ...) and sometimes damage; all follow from the seed and the number. The law: the values
that come back are the values that went in, or the file is refused, or the loss is named in the
record or a notice. ``--only K`` repeats one case and keeps its file.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sparsegsvp.io import InputError, make_table

Random = np.random.Generator

GENES = ["TP53", "BRCA1", "MYC", "KRAS", "HLA-A", "β-actin", "IL6", "EGFR", "1007_s_at", "CD8A"]
ODD_NAMES = ["m/z 345.2", "a, b", 'say "x"', "x;y", "Gen é", "12.5", "tab name", "%area", "SEPT2"]
LABELS = [
    ("ill", "well"), ("tumor", "normal"), ("ER+", "ER-"), ("+", "-"), ("1", "0"), ("A", "B"),
    ("Größe I", "Größe II"), ("yes", "no"), ("type, one", "type, two"), ("01", "02"),
    ("low", "None"),
]  # fmt: skip
CODES = ["NA", "N/A", "", "null", "n.d.", "-", "nan", "#N/A", "."]


@dataclass
class Truth:
    """What a table holds: numbers (NaN where missing), and how they are written."""

    X: np.ndarray
    names: list[str]
    ids: list[str]
    labels: list[str | None]
    decimals: list[int]  # per feature; -1 for whole numbers, -2 for shortest
    id_name: str = "sample"
    code: str = "NA"
    options: dict[str, Any] = field(default_factory=dict)
    unchecked: set[int] = field(default_factory=set)  # rows that damage made unknowable
    any_result: bool = False  # only a clean end is asked for


def draw(rng: Random) -> Truth:
    n, m = int(rng.integers(6, 30)), int(rng.choice([1, 3, 6, 10, 60], p=[0.1, 0.3, 0.3, 0.2, 0.1]))
    columns, decimals = [], []
    kind = rng.choice(["normal", "counts", "three", "mixed", "tiny"])
    for _ in range(m):
        this = (
            rng.choice(["normal", "counts", "three", "tiny", "percent"])
            if kind == "mixed"
            else kind
        )
        if this == "normal":
            columns.append(rng.normal(0, 3, n).round(4))
            decimals.append(4)
        elif this == "counts":
            columns.append(rng.poisson(np.exp(rng.normal(6, 1.5)), n).astype(float))
            decimals.append(-1)
        elif this == "three":
            columns.append((rng.uniform(1, 9, n) * rng.choice([1, 10, 100])).round(3))
            decimals.append(3)
        elif this == "tiny":
            columns.append(np.array([float(f"{v:.6g}") for v in 10 ** rng.uniform(-9, 5, n)]))
            decimals.append(-2)
        else:
            columns.append(rng.uniform(0, 100, n).round(1))
            decimals.append(1)
    X = np.column_stack(columns)
    if rng.random() < 0.4:
        X[rng.random(X.shape) < 0.08] = np.nan
    pool = [*GENES, *(ODD_NAMES if rng.random() < 0.4 else [])]
    names = [str(name) for name in rng.permutation(pool)[:m]]
    names += [f"g{j}" for j in range(m - len(names))]
    style = rng.choice(["s", "zeros", "long", "words", "numbers"])
    ids = {
        "s": [f"s{i}" for i in range(n)],
        "zeros": [f"{i:03d}" for i in range(n)],
        "long": [f"{123456789012345000 + i}" for i in range(n)],
        "words": [f"Pat. {i}, Köln" for i in range(n)],
        "numbers": [str(1000 + i) for i in range(n)],
    }[style]
    pair = LABELS[int(rng.integers(len(LABELS)))]
    labels: list[str | None] = [pair[i % 2] for i in range(n)]
    if rng.random() < 0.2:
        labels[int(rng.integers(n))] = None
    truth = Truth(X, names, ids, labels, decimals, str(rng.choice(["sample", "id", "Patient ID"])))
    truth.code = str(rng.choice(CODES))
    truth.options = {"target": "class", "id": truth.id_name}
    if m > 1 and rng.random() < 0.25:
        truth.names[-1], truth.options["adjust"] = "age", ["age"]
    return truth


# --- cells and text ------------------------------------------------------------------------


def number(value: float, places: int, truth: Truth, decimal: str = ".", group: str = "") -> str:
    """Write a number as a program of some country does."""
    if np.isnan(value):
        return truth.code
    if places == -1:
        text = f"{int(value):,}".replace(",", group)
    else:
        text = repr(float(value)) if places == -2 else f"{value:.{places}f}"
        if group and "e" not in text:
            whole, dot, part = text.partition(".")
            sign = "-" if whole.startswith("-") else ""
            text = sign + f"{abs(int(whole)):,}".replace(",", group) + dot + part
    if decimal == ",":
        head, dot, part = text.rpartition(".") if places != -1 else (text, "", "")
        text = f"{head},{part}" if dot and places != -1 else text
    return text


def cells_of(
    truth: Truth, decimal: str = ".", group: str = "", missing: str = ""
) -> list[list[str]]:
    rows = [[truth.id_name, *truth.names, "class"]]
    for i, name in enumerate(truth.ids):
        values = [number(v, p, truth, decimal, group) for v, p in zip(truth.X[i], truth.decimals)]
        label = truth.labels[i]
        rows.append([name, *values, missing if label is None else label])
    return rows


def quoted(cell: str, separator: str, always: bool = False) -> str:
    if always or any(c in cell for c in (separator, '"', "\n", "\r")):
        return '"' + cell.replace('"', '""') + '"'
    return cell


def is_plain(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return cell == "NA"
    return True


def text_of(
    rows: list[list[str]], separator: str, ending: str = "\n", strings: bool = False
) -> str:
    lines = [
        separator.join(quoted(cell, separator, strings and not is_plain(cell)) for cell in row)
        for row in rows
    ]
    return ending.join(lines) + ending


def turned(rows: list[list[str]]) -> list[list[str]]:
    return [list(column) for column in zip(*rows)]


# --- dialects: each writes a file and returns its path --------------------------------------


def pandas_csv(truth: Truth, folder: Path, rng: Random) -> Path:
    path = folder / "t.csv"
    frame(truth).to_csv(path, index=False, na_rep="" if rng.random() < 0.5 else "NaN")
    return path


def pandas_indexed(truth: Truth, folder: Path, rng: Random) -> Path:
    path = folder / "t.tsv"
    frame(truth).set_index(truth.id_name).rename_axis(None).to_csv(path, sep="\t")
    truth.options.pop("id")
    return path


def r_csv(truth: Truth, folder: Path, rng: Random) -> Path:
    truth.code = "NA"
    rows = cells_of(truth, missing="NA")
    rows[0][0] = ""
    rows = [[quoted(row[0], ",", True), *row[1:]] for row in rows]
    lines = [row[0] + "," + text_of([row[1:]], ",", "", True) for row in rows]
    truth.options.pop("id")
    return put(folder / "t.csv", "\n".join(lines) + "\n")


def r_table(truth: Truth, folder: Path, rng: Random) -> Path:
    truth.code = "NA"
    separator = str(rng.choice([" ", "\t"]))
    rows = cells_of(truth, missing="NA")
    lines = [separator.join(quoted(c, separator, True) for c in rows[0][1:])]
    for row in rows[1:]:
        cells = [quoted(row[0], separator, True)]
        cells += [c if is_plain(c) else quoted(c, separator, True) for c in row[1:-1]]
        lines.append(separator.join([*cells, quoted(row[-1], separator, row[-1] != "NA")]))
    truth.options.pop("id")
    return put(folder / "t.txt", "\n".join(lines) + "\n")


def excel_us(truth: Truth, folder: Path, rng: Random) -> Path:
    group = str(rng.choice(["", ","], p=[0.8, 0.2]))
    if group and rng.random() < 0.5:
        truth.options["thousands"] = group
    return put(folder / "t.csv", text_of(cells_of(truth, ".", group), ",", "\r\n"))


def excel_de(truth: Truth, folder: Path, rng: Random) -> Path:
    group = str(rng.choice(["", "."], p=[0.6, 0.4]))
    if group and rng.random() < 0.5:
        truth.options["thousands"] = group
    if rng.random() < 0.3:
        truth.options["decimal"] = ","
    encoding = str(rng.choice(["cp1252", "utf-8-sig"]))
    truth.names = [name.replace("β", "b") for name in truth.names]
    return put(folder / "t.csv", text_of(cells_of(truth, ",", group), ";", "\r\n"), encoding)


def excel_unicode(truth: Truth, folder: Path, rng: Random) -> Path:
    return put(folder / "t.txt", text_of(cells_of(truth), "\t", "\r\n"), "utf-16")


def excel_mac(truth: Truth, folder: Path, rng: Random) -> Path:
    truth.names = [name.replace("β", "b") for name in truth.names]
    return put(folder / "t.csv", text_of(cells_of(truth), ",", "\r"), "mac-roman")


def numbers_app(truth: Truth, folder: Path, rng: Random) -> Path:
    title = "Tabelle 1\n" if rng.random() < 0.5 else ""
    truth.code = ""
    comma = rng.random() < 0.5
    text = text_of(cells_of(truth, "," if comma else "."), ";" if comma else ",")
    return put(folder / "t.csv", title + text)


def spss(truth: Truth, folder: Path, rng: Random) -> Path:
    truth.code = " "
    return put(
        folder / "t.csv", text_of(cells_of(truth, ",", missing=" "), ";", "\r\n"), "utf-8-sig"
    )


def swiss(truth: Truth, folder: Path, rng: Random) -> Path:
    if rng.random() < 0.5:
        truth.options["thousands"] = "'"
    return put(folder / "t.csv", text_of(cells_of(truth, ".", "'"), ";", "\r\n"))


def gzipped(truth: Truth, folder: Path, rng: Random) -> Path:
    path = folder / "t.tsv.gz"
    path.write_bytes(gzip.compress(text_of(cells_of(truth), "\t").encode(), 1))
    return path


def rows_of_genes(truth: Truth, folder: Path, rng: Random) -> Path:
    """Features in rows, with the labels in a row or in a second file."""
    decimal = str(rng.choice([".", ","]))
    rows = turned(cells_of(truth, decimal))
    separator = ";" if decimal == "," else ","
    truth.options.pop("id")
    if len(rows[0]) > 2 and rng.random() < 0.5:
        labels = [[r[0], r[-1]] for r in cells_of(truth)]
        put(folder / "labels.csv", text_of(labels, ","))
        truth.options["labels"] = folder / "labels.csv"
        rows = rows[:-1]
    elif None in truth.labels:
        truth.options["transpose"] = True
    rows[0][0] = "gene"
    return put(folder / "t.csv", text_of(rows, separator))


def geo(truth: Truth, folder: Path, rng: Random) -> Path:
    truth.options.pop("adjust", None)
    truth.code = str(rng.choice(["", "null"]))
    names = "\t".join(f'"{name}"' for name in truth.ids)
    told = "\t".join('""' if y is None else f'"class: {y}"' for y in truth.labels)
    lines = ['!Series_geo_accession\t"GSE1"', f"!Sample_geo_accession\t{names}"]
    lines += [f"!Sample_characteristics_ch1\t{told}", "!series_matrix_table_begin"]
    lines.append(f'"ID_REF"\t{names}')
    for name, row in zip(truth.names, turned(cells_of(truth))[1:-1]):
        lines.append("\t".join([quoted(name, "\t", True), *row[1:]]))
    truth.options.pop("id")
    return put(folder / "t_series_matrix.txt", "\n".join([*lines, "!series_matrix_table_end", ""]))


def xlsx(truth: Truth, folder: Path, rng: Random) -> Path:
    """A workbook with numbers, or with text that looks like numbers."""
    import openpyxl

    book = openpyxl.Workbook()
    page = book.active
    if rng.random() < 0.3:
        page.sheet_state = "hidden"
        page.append(["list", "of", "things"])
        page = book.create_sheet("data")
    if rng.random() < 0.3:
        page.append(["Table S1. Measurements"])
        page.append([])
    as_text = rng.random() < 0.3
    decimal = str(rng.choice([".", ","])) if as_text else "."
    group = ("." if decimal == "," else ",") if as_text and rng.random() < 0.3 else ""
    rows = cells_of(truth, decimal, group)
    page.append(rows[0])
    for i, row in enumerate(rows[1:]):
        values = [None if np.isnan(v) else float(v) for v in truth.X[i]]
        cells = row[1:-1] if as_text else values
        page.append([row[0], *cells, truth.labels[i]])
    path = folder / "t.xlsx"
    book.save(path)
    return path


def parquet(truth: Truth, folder: Path, rng: Random) -> Path:
    path = folder / "t.parquet"
    frame(truth).to_parquet(path, index=False)
    return path


def h5ad(truth: Truth, folder: Path, rng: Random) -> Path:
    import anndata
    import pandas as pd
    from scipy import sparse

    obs = pd.DataFrame({"class": pd.Categorical(truth.labels)}, index=truth.ids)
    X = sparse.csr_matrix(truth.X) if rng.random() < 0.5 else truth.X
    path = folder / "t.h5ad"
    truth.options.pop("adjust", None)
    anndata.AnnData(X, obs=obs, var=pd.DataFrame(index=truth.names)).write_h5ad(path)
    truth.options.pop("id")
    return path


def in_memory(truth: Truth, folder: Path, rng: Random) -> Any:
    table = frame(truth)
    return table.astype(dict.fromkeys(truth.names, object)) if rng.random() < 0.3 else table


def frame(truth: Truth) -> Any:
    import pandas as pd

    made = pd.DataFrame(truth.X, columns=truth.names)
    made.insert(0, truth.id_name, truth.ids)
    made["class"] = truth.labels
    return made


def put(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding, "replace"))
    return path


DIALECTS = {
    pandas_csv: 8, pandas_indexed: 6, r_csv: 10, r_table: 10, excel_us: 10, excel_de: 14,
    excel_unicode: 5, excel_mac: 4, numbers_app: 6, spss: 8, swiss: 4, gzipped: 3,
    rows_of_genes: 8, geo: 6, xlsx: 6, parquet: 3, h5ad: 1, in_memory: 3,
}  # fmt: skip
TEXT = {
    pandas_csv, pandas_indexed, r_csv, r_table, excel_us, excel_de, numbers_app, spss, swiss,
    rows_of_genes, geo,
}  # fmt: skip

PACKED = {gzipped, xlsx, parquet}


# --- damage ----------------------------------------------------------------------------------


def damaged(path: Path, truth: Truth, rng: Random) -> str:
    """Damage a text file in place; return what was done."""
    raw = path.read_bytes()
    encoding = "utf-8-sig" if raw.startswith(b"\xef\xbb\xbf") else "utf-8"
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError:
        text, encoding = raw.decode("cp1252"), "cp1252"
    ending = "\r\n" if "\r\n" in text else "\n"
    lines = text.split(ending)
    body = [i for i, line in enumerate(lines) if i and line]
    i = int(rng.choice(body[1:] or body))
    start = next(k for k, line in enumerate(lines) if "class" in line or "gene" in line or k > 4)
    separator = max(";\t,", key=lines[start].count)
    kind = str(
        rng.choice(
            ["open quote", "stray quote", "two quotes", "short row", "long row", "blank line",
             "other mark", "slip", "trailing separators", "units", "cut", "bytes", "unquoted",
             "sentinel", "empty rows"]
        )
    )  # fmt: skip
    cells = lines[i].split(separator)
    j = int(rng.integers(len(cells)))
    plain = '"' not in lines[i]
    inner = plain and 0 < j < len(cells) - 1 and cells[0] != "class"
    if kind == "open quote" and plain:
        cells[j] = '"' + cells[j]
    elif kind == "stray quote" and plain and j:
        cells[j] = cells[j][: len(cells[j]) // 2] + '"' + cells[j][len(cells[j]) // 2 :]
        if j == len(cells) - 1 and cells[0] in truth.ids:
            row = truth.ids.index(cells[0])
            if truth.labels[row] is None:
                truth.labels[row] = cells[j]  # N"aN is no code for a missing label
    elif kind == "two quotes" and plain and len(body) > 3:
        other = int(rng.choice([k for k in body if k > i] or [i]))
        more = lines[other].split(separator)
        if other > i and len(more) == len(cells) and '"' not in lines[other]:
            cells[j] = '"' + cells[j]
            more[j] += '"'
            lines[other] = separator.join(more)
    elif kind == "short row" and plain:
        del cells[j]
    elif kind == "long row" and plain:
        cells.insert(j, cells[j])
    elif kind == "other mark" and plain and "thousands" not in truth.options:
        swap = {".": ",", ",": "."}
        if separator != ",":
            cells[j] = (
                "".join(swap.get(c, c) for c in cells[j])
                if is_plain(cells[j].replace(",", "."))
                else cells[j]
            )
    elif kind == "slip" and inner and is_plain(cells[j].replace(",", ".")):
        cells[j] = cells[j].replace("0", "O") if "0" in cells[j] else cells[j] + "x"
    elif kind == "sentinel" and inner and "transpose" not in truth.options:
        cells[j] = str(rng.choice(["-9999", "999999"]))
    lines[i] = separator.join(cells)
    if kind == "trailing separators":
        lines = [line + separator if k in body else line for k, line in enumerate(lines)]
    elif kind == "blank line":
        lines.insert(i, "")
    elif kind == "empty rows":
        lines += [separator * (len(cells) - 1)] * 3
    elif kind == "units":
        lines.insert(1, separator.join(["", *["ng/ml"] * (len(cells) - 2), ""]))
    elif kind == "unquoted":
        lines[i] = lines[i].replace('"', "")
    result = ending.join(lines).encode(encoding)
    if kind == "cut":
        result = result[: int(rng.integers(len(result) // 2, len(result)))]
        truth.any_result = True
    elif kind == "bytes":
        result = other_bytes(result, truth, rng)
    path.write_bytes(result)
    return kind


def other_bytes(content: bytes, truth: Truth, rng: Random) -> bytes:
    """Change some bytes: what comes of it is a clean end, no more can be asked for."""
    changed, truth.any_result = bytearray(content), True
    for _ in range(int(rng.integers(1, 6))):
        changed[int(rng.integers(len(changed)))] = int(rng.integers(256))
    return bytes(changed)


# --- the law -----------------------------------------------------------------------------------


def judge(truth: Truth, data: Any) -> str:
    """Return "read", "noticed", "refused: ..." or, beginning with WRONG, what is not right."""
    try:
        table = make_table(data, **truth.options)
    except InputError as error:
        return f"refused: {error}"
    except Exception as error:
        return f"WRONG {type(error).__name__}: {error} {traceback.format_exc(limit=-2)}"
    if truth.any_result:
        return "read"
    said = " ".join([*table.record, *(n.text for n in table.notices)])
    codes = {notice.code for notice in table.notices}
    loose = "encoding" in codes  # letters may be others, by a notice
    kept = [i for i, y in enumerate(truth.labels) if y is not None]
    if len(kept) != table.X.shape[0]:
        return f"WRONG {table.X.shape[0]} samples of {len(kept)}"
    if len(kept) < len(truth.labels) and "no label" not in said:
        return "WRONG samples left out without a word"
    labels = [str(truth.labels[i]) for i in kept]
    if not _same_texts(labels, list(table.y), loose):
        return f"WRONG labels {list(table.y)[:4]} for {labels[:4]}"
    if table.sample_names is not None:
        ids = [truth.ids[i] for i in kept]
        if not _same_texts(ids, list(table.sample_names), loose):
            return f"WRONG names of samples {list(table.sample_names)[:4]} for {ids[:4]}"
    X = table.X.toarray() if hasattr(table.X, "toarray") else table.X
    place = {name.replace('"', ""): j for j, name in enumerate(table.feature_names)}
    if loose:
        place = {in_ascii(name): j for name, j in place.items()}
    for j, name in enumerate(truth.names):
        key = (in_ascii(name) if loose else name).replace('"', "")
        values = truth.X[kept, j]
        if key not in place:
            if name in table.dropped or loose:
                continue
            return f"WRONG feature {name!r} is not there: {list(place)[:5]}"
        got = X[:, place[key]]
        same = (got == values) | (np.isnan(got) & np.isnan(values))
        if "thousands" in codes:  # which says what else it may be
            same |= np.rint(got * 1e3) == values
        if not same.all():
            bad = [k for k in np.flatnonzero(~same) if not np.isin(got[k], [-9999, 999999])]
            if bad:
                return f"WRONG {name!r} has {got[bad[0]]!r} for {values[bad[0]]!r}"
            if "codes" not in codes and len(values) > 8:
                far = np.nanmax(np.abs(values)) * 10 < 9999
                if far and np.nanmax(np.abs(values)) > 0:
                    return f"WRONG a code in {name!r} without a word"
    extra = set(place).difference(name.replace('"', "") for name in truth.names)
    if extra and not loose:
        return f"WRONG features {sorted(extra)[:3]} that are none"
    return "noticed" if table.notices else "read"


def in_ascii(name: str) -> str:
    return "".join(c if c.isascii() else "?" for c in name)


def _same_texts(expected: list[str], got: list[Any], loose: bool) -> bool:
    if len(expected) != len(got):
        return False
    tidy, there = ([str(t).replace('"', "").strip() for t in texts] for texts in (expected, got))
    return len(set(tidy)) == len(set(there)) if loose else tidy == there


def case(seed: int, k: int, folder: Path) -> tuple[str, str, str]:
    """Return dialect, damage and outcome of a case; its file is in the folder."""
    rng = np.random.default_rng([seed, k])
    truth = draw(rng)
    weights = np.array(list(DIALECTS.values()), float)
    dialect = list(DIALECTS)[int(rng.choice(len(DIALECTS), p=weights / weights.sum()))]
    data = dialect(truth, folder, rng)
    damage = "none"
    if dialect in TEXT and rng.random() < 0.4:
        damage = damaged(data, truth, rng)
    elif dialect in PACKED and rng.random() < 0.3:
        damage = "bytes"
        data.write_bytes(other_bytes(data.read_bytes(), truth, rng))
    return dialect.__name__, damage, judge(truth, data)


def main() -> int:
    """Run the cases and print what came of them; 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", type=int, default=None)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="read-right-"))
    if given.only is not None:
        print(*case(given.seed, given.only, folder), folder, sep="\n")
        return 0
    counts: Counter[tuple[str, str, str]] = Counter()
    wrong = []
    started = time.monotonic()
    for k in range(given.first, given.first + given.cases):
        dialect, damage, outcome = case(given.seed, k, folder)
        counts[dialect, "none" if damage == "none" else "damaged", outcome.split(":")[0][:7]] += 1
        if outcome.startswith("WRONG"):
            wrong.append((k, dialect, damage, outcome))
            print(k, dialect, damage, outcome, flush=True)
        if time.monotonic() - started > 60 * given.minutes:
            break
    print(json.dumps({" ".join(key): n for key, n in sorted(counts.items())}, indent=1))
    print(f"{sum(counts.values())} cases, {len(wrong)} wrong, {time.monotonic() - started:.0f} s")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
