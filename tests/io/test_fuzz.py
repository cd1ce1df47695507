"""Thousands of damaged files: each is read or refused, and nothing else ever happens.

What damage, and what counts, is in ``fuzzer.py``; ``campaign/fuzz.py`` runs any number.
"""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from pathlib import Path

import pytest

for module in ("openpyxl", "pyarrow", "anndata", "dask.array", "zarr", "skops"):
    pytest.importorskip(module)
resource = pytest.importorskip("resource")

_spec = importlib.util.spec_from_file_location("fuzzer", Path(__file__).parent / "fuzzer.py")
fuzzer = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(fuzzer)

SEED = 20
# 60, or as many as fit into some seconds each
MUTANTS = dict.fromkeys(fuzzer.WRITERS, 60) | {
    "table.csv": 800, "table.tsv": 400, "wide.csv": 400, "table.csv.gz": 400, "table.arff": 600,
    "table.xlsx": 150, "table.parquet": 300, "lazy.parquet": 100, "table.npz": 400,
    "dense.h5ad": 80, "csr.h5ad": 80, "anndata.zarr": 30, "model.skops": 120,
    "results.json": 30,
}  # fmt: skip


def _peak() -> float:
    """The most memory this process has used, in MB."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def test_every_format_is_in_the_corpus():
    from sparsegsvp.io.formats import FORMATS

    suffixes = {suffix for name in fuzzer.WRITERS for suffix in Path(name).suffixes}
    assert all(suffixes & set(form.suffixes) for form in FORMATS)
    assert MUTANTS.keys() == fuzzer.WRITERS.keys()


@pytest.mark.parametrize("name", MUTANTS)
def test_damaged_files_are_read_or_refused(tmp_path, name):
    fuzzer.corpus(tmp_path, [name])
    before = _peak()
    outcomes = Counter(fuzzer.run(tmp_path, name, SEED, k) for k in range(MUTANTS[name]))
    assert outcomes.keys() <= {"read", "refused"}
    # the damage is real, though hardly any text is no list of names
    assert outcomes["refused"] > MUTANTS[name] / (20 if name == "names.txt" else 4)
    assert _peak() - before < 400
