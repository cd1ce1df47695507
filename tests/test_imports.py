"""Imports point one way, and the core needs nothing optional."""

import ast
import importlib
import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

import sparsegsvp

ROOT = Path(sparsegsvp.__file__).parent

# A part may import parts of a lower rank, and itself; a new part needs a place here.
RANK = {
    "linalg": 0,
    "solvers": 1,
    "estimators": 2,
    "related": 3,
    "evaluation": 4,
    "report": 5,
    "plots": 6,
    "scverse": 6,
    "workflow": 6,
    "reproduce": 7,
    "cli": 8,
}
# Beside the order: what each of them may import, and who may import them.
BESIDE = {"metrics": {"datasets"}, "datasets": {"metrics"}, "io": {"estimators"}}
ONLY_FOR = {"io": {"cli", "report", "reproduce", "workflow", "__init__"}}
EVERYWHERE = {
    "_notices",
    "_threads",
    "_typing",
    "_validate",
    "__version__",
}

OPTIONAL = {
    "typer": "cli",
    "rich": "cli",
    "pandas": "cli",
    "pyarrow": "cli",
    "openpyxl": "cli",
    "jinja2": "report",
    "matplotlib": "report",
    "skops": "persist",
    "anndata": "omics",
    "dask": "dask",
    "distributed": "dask",
    "zarr": "dask",
    "polars": None,
}


def _modules():
    return sorted(ROOT.rglob("*.py"))


def _part(path):
    """The folder or single module of the package that a file belongs to."""
    return path.relative_to(ROOT).with_suffix("").parts[0]


def _imports(path):
    """Absolute dotted names of everything a file imports, wherever in it."""
    package = ["sparsegsvp", *path.relative_to(ROOT).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base = base + (node.module.split(".") if node.module else [])
            yield from (".".join([*base, alias.name]) for alias in node.names)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "import_module":
            yield from (str(arg.value) for arg in node.args[:1] if isinstance(arg, ast.Constant))


def _allowed(part, other):
    if other in EVERYWHERE or other == part:
        return True
    if other in ONLY_FOR and part not in ONLY_FOR[other]:
        return False
    if part == "__init__":
        return True
    if part in BESIDE:
        return other in BESIDE[part]
    return other in BESIDE or RANK[other] < RANK[part]


def test_every_part_has_a_place():
    parts = {_part(path) for path in _modules()} - EVERYWHERE - {"__init__"}
    assert parts <= RANK.keys() | BESIDE.keys()


@pytest.mark.parametrize("part", sorted(RANK.keys() | BESIDE.keys() | {"__init__"}))
def test_imports_point_one_way(part):
    wrong = []
    for path in _modules():
        if _part(path) != part:
            continue
        for name in _imports(path):
            pieces = name.split(".")
            if pieces[0] == "sparsegsvp" and len(pieces) > 1 and not _allowed(part, pieces[1]):
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
    assert wrong == []


def test_no_package_reaches_into_private_modules_of_another():
    wrong = []
    for path in _modules():
        for name in _imports(path):
            pieces = name.split(".")
            if pieces[0] != "sparsegsvp" or len(pieces) < 3 or pieces[1] == _part(path):
                continue
            if pieces[1] not in EVERYWHERE and any(p.startswith("_") for p in pieces[2:]):
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
    assert wrong == []


def test_a_public_name_has_one_meaning():
    """Commands are named after what they call, and plots after what they draw."""
    places = defaultdict(set)
    rooms = {_part(path) for path in _modules()} - {"cli", "plots", "__init__"} - EVERYWHERE
    public = {
        name
        for room in rooms
        for name in getattr(importlib.import_module(f"sparsegsvp.{room}"), "__all__", ())
    }
    for path in _modules():
        if _part(path) in ("cli", "plots"):
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            names = [getattr(node, "name", None)]
            if isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                names = [target.id for target in targets if isinstance(target, ast.Name)]
            for name in names:
                if name in public:
                    places[name].add(str(path.relative_to(ROOT)))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_the_test_sees_what_it_should(tmp_path, monkeypatch):
    """Every way to write an import, from a file that has no business to."""
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    path = tmp_path / "linalg" / "_x.py"
    path.parent.mkdir()
    path.write_text(
        "from ..solvers import path\nfrom .. import cli\nimport sparsegsvp.io\n"
        "def f():\n    from sparsegsvp.report import page\n    from . import _matrix\n"
    )
    found = {name.split(".")[1] for name in _imports(path)}
    assert found == {"solvers", "cli", "io", "report", "linalg"}
    assert [part for part in sorted(found) if not _allowed("linalg", part)] == [
        "cli",
        "io",
        "report",
        "solvers",
    ]


def test_optional_dependencies_are_imported_inside_functions():
    """At the top of a module they would be needed by whoever imports it."""
    wrong = []
    for path in _modules():
        if _part(path) == "cli" and path.name != "__init__.py":
            continue  # loaded by cli/__init__.py, which catches what is missing
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module]
            wrong += [
                f"{path.relative_to(ROOT)} imports {name}"
                for name in names
                if name.split(".")[0] in OPTIONAL
            ]
    assert wrong == []


BLOCK = """
import importlib.abc, json, sys

class Blocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in BLOCKED:
            raise ImportError(f"{name} is blocked")

BLOCKED = set(json.loads(sys.argv[1]))
sys.meta_path.insert(0, Blocked())
"""

TOUCH = """
import sparsegsvp
report = {}
for name in sparsegsvp.__all__:
    try:
        getattr(sparsegsvp, name)
        report[name] = "works"
    except ImportError as error:
        report[name] = f"{type(error).__name__}: {error}"
loaded = sorted(BLOCKED & {module.split(".")[0] for module in sys.modules})
print(json.dumps({"report": report, "loaded": loaded}))
"""

USE = """
import numpy as np
from sparsegsvp import (
    GSVPSVM, GSVPSVMCV, PGDGSVPSVM, ClassMoments, StabilitySelection, compare, gsvd, hogsvd,
    load_model, nested_evaluate, plots, save_model, sparse_gsvp, sparse_gsvp_path,
)
from sparsegsvp.datasets import load_breast_cancer, make_planted
from sparsegsvp.metrics import average_jaccard, nogueira_stability
from sparsegsvp import related

X, y = make_planted(60, 30, 3, random_state=0, return_X_y=True)
A, B = X[y == 0], X[y == 1]
sparse_gsvp(A, B, 0.1)
sparse_gsvp_path(A, B, n_deltas=3)
gsvd(A, B)
hogsvd([A, B])
model = GSVPSVM(n_features=3).fit(X, y)
model.predict_proba(X)
GSVPSVM(decision="scaled").fit_moments(ClassMoments.from_data(X, y))
average_jaccard([[0, 1], [1, 2]])
load_breast_cancer()
for name in related.__all__:
    getattr(related, name)

messages = {}
def missing(key, call):
    try:
        call()
        messages[key] = "works"
    except Exception as error:
        messages[key] = f"{type(error).__name__}: {error}"

missing("persist", lambda: save_model(model, sys.argv[2] + "/model.skops"))
missing("report", lambda: plots.elbow([1.0, 0.5]))
print(json.dumps(messages))
"""


def _run(script, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", BLOCK + script, json.dumps(sorted(OPTIONAL)), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def touched():
    return _run(TOUCH)


@pytest.mark.parametrize("name", sparsegsvp.__all__)
def test_every_public_name_loads_without_extras(touched, name):
    assert touched["report"][name] == "works"


def test_nothing_optional_was_loaded(touched):
    assert touched["loaded"] == []


@pytest.fixture(scope="module")
def used(tmp_path_factory):
    return _run(USE, tmp_path_factory.mktemp("models"))


@pytest.mark.parametrize("extra", ["persist", "report"])
def test_the_core_works_without_extras_and_the_rest_names_them(used, extra):
    assert used[extra].startswith("ImportError: ")
    assert f'pip install "sparsegsvp[{extra}]"' in used[extra]


def test_importing_the_package_loads_next_to_nothing():
    """Names are loaded when first used."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, sparsegsvp; sparsegsvp.__version__; dir(sparsegsvp); "
            "print([m for m in ('numpy', 'scipy', 'sklearn') if m in sys.modules])",
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.strip() == "[]"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'GSVPSWM'"):
        sparsegsvp.GSVPSWM
