"""A small table and a writer for every format that is read."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest


@dataclass(frozen=True)
class Sheet:
    X: np.ndarray
    names: list[str]
    labels: list[str]
    ids: list[str]
    groups: list[str]

    def lines(self, separator: str = ",") -> list[str]:
        header = separator.join(["sample", *self.names, "class", "patient"])
        rows = [
            separator.join([i, *(repr(float(v)) for v in row), y, g])
            for i, row, y, g in zip(self.ids, self.X, self.labels, self.groups)
        ]
        return [header, *rows]

    def text(self, separator: str = ",") -> str:
        return "\n".join(self.lines(separator)) + "\n"

    def frame(self):
        import pandas as pd

        frame = pd.DataFrame(self.X, columns=self.names)
        frame.insert(0, "sample", self.ids)
        frame["class"] = self.labels
        frame["patient"] = self.groups
        return frame


@pytest.fixture
def sheet() -> Sheet:
    rng = np.random.default_rng(7)
    X = rng.normal(size=(8, 5)) * [1, 1e-9, 1e9, 1, 3]
    X = np.vectorize(lambda v: float(f"{v:.12g}"))(X)  # Excel keeps 15 digits
    names = ["TP53", "β-actin", "HLA-A", "mz 12.5", "<script>"]
    labels = ["B", "C", "ill", "B", "C", "ill", "ill", "B"]
    ids = [f"s{i}" for i in range(8)]
    return Sheet(X, names, labels, ids, [f"p{i // 2}" for i in range(8)])


def _write_h5ad(sheet: Sheet, path: Path, *, sparse: bool) -> None:
    import anndata
    import pandas as pd
    from scipy.sparse import csr_matrix

    obs = pd.DataFrame({"class": pd.Categorical(sheet.labels), "patient": sheet.groups})
    obs.index = sheet.ids
    X = csr_matrix(sheet.X) if sparse else sheet.X
    data = anndata.AnnData(X, obs=obs, var=pd.DataFrame(index=sheet.names))
    data.layers["doubled"] = 2 * X
    data.write_h5ad(path)


def write(sheet: Sheet, path: Path) -> dict[str, object]:
    """Write the sheet in the format of the name; return the options that read it back."""
    options: dict[str, object] = {"target": "class", "id": "sample", "group": "patient"}
    name = path.name
    if name.endswith(".csv.gz"):
        path.write_bytes(gzip.compress(sheet.text().encode()))
    elif name.endswith(".csv"):
        path.write_text(sheet.text(), encoding="utf-8")
    elif name.endswith(".tsv"):
        path.write_text(sheet.text("\t"), encoding="utf-8")
    elif name.endswith(".xlsx"):
        sheet.frame().to_excel(path, index=False)
    elif name.endswith(".parquet"):
        sheet.frame().to_parquet(path, index=False)
    elif name.endswith(".h5ad"):
        pytest.importorskip("anndata")
        _write_h5ad(sheet, path, sparse="sparse" in name)
        options["id"] = None
    else:
        raise AssertionError(name)
    return options


@pytest.fixture
def write_sheet():
    return write
