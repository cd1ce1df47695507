"""The package with the versions that it promises to work with: ``nox``, or one of ``nox --list``.

Each session has an environment of its own. Their tests are those that meet other packages:
benchmarks and the browser depend on no version, and are left to ``make test``.
"""

from __future__ import annotations

import os
import re
import shutil
import tomllib
from pathlib import Path

import nox

nox.needs_version = ">=2024.4.15"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.error_on_missing_interpreters = False
nox.options.stop_on_first_error = False

ROOT = Path(__file__).parent
OLDEST_PYTHON, NEWEST_PYTHON = "3.11", "3.13"
TOOLS = ("pytest>=8", "pytest-xdist>=3.5", "pytest-timeout>=2.3", "hypothesis>=6.100")
# What meets the packages below: arrays of numpy and scipy, scikit-learn's checks, frames, files,
# models on disk, processes, pages, commands.
FILES = ("tests/io", "tests/workflow", "tests/estimators/test_ecosystem.py")
CORE = ("tests/test_imports.py", "tests/linalg", "tests/solvers", "tests/estimators/test_checks.py")
TESTS = (
    *CORE, *FILES, "tests/test_metrics.py", "tests/test_scverse.py",
    "tests/estimators/test_dask.py", "tests/report/test_page.py",
    "tests/evaluation/test_nested.py", "tests/cli/test_select.py",
)  # fmt: skip


def project() -> dict:
    """Return the ``project`` table of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def oldest() -> list[str]:
    """Return the smallest version that pyproject.toml allows of each package users may need."""
    extras = project()["optional-dependencies"]
    wanted = list(project()["dependencies"])
    for text in extras["all"]:
        for extra in re.search(r"\[(.*)\]", text)[1].split(","):
            wanted += extras[extra]
    wanted += [text for text in extras["test"] if text.startswith("polars")]
    found = re.findall(r"^([\w-]+)(?:\[[\w,]+\])?>=([\w.]+)$", "\n".join(wanted), re.MULTILINE)
    return sorted(f"{name}=={version}" for name, version in found)


def run_tests(session: nox.Session, *tests: str) -> None:
    """Run tests in the session, with what was installed written down first."""
    session.run("python", "-c", """
import sys
from importlib.metadata import PackageNotFoundError, version
print("Python", sys.version.split()[0], end="")
for name in "numpy scipy scikit-learn joblib pandas pyarrow dask anndata skops zarr".split():
    try:
        print(",", name, version(name), end="")
    except PackageNotFoundError:
        pass
print()""", log=False)  # fmt: skip
    session.run(
        "python", "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", "-p", "no:cacheprovider",
        *(session.posargs or tests), env={"OMP_NUM_THREADS": "1", "SPARSEGSVP_DATA": ""},
    )  # fmt: skip


@nox.session(python=OLDEST_PYTHON)
def oldest_dependencies(session: nox.Session) -> None:
    """Every dependency at the smallest version that pyproject.toml allows."""
    limits = Path(session.create_tmp()) / "oldest.txt"
    limits.write_text("\n".join(oldest()) + "\n")
    session.install("-e", ".[all]", *TOOLS, "polars", "kneefinder", "-c", str(limits.resolve()))
    run_tests(session, *TESTS)


@nox.session(python=NEWEST_PYTHON)
def newest_dependencies(session: nox.Session) -> None:
    """Every dependency, and Python, as new as there is."""
    session.install("-U", "-e", ".[all]", *TOOLS, "polars", "kneefinder")
    run_tests(session, *TESTS)


@nox.session(python=OLDEST_PYTHON)
def no_extras(session: nox.Session) -> None:
    """The core alone: it imports, works, and its tests pass or say what they need."""
    session.install("-e", ".", *TOOLS)
    run_tests(session, *CORE)


@nox.session(python=OLDEST_PYTHON)
@nox.parametrize("pandas", ["2", "3"])
def frames(session: nox.Session, pandas: str) -> None:
    """Data frames of either generation of pandas."""
    # the anndata of the oldest Python asks for pandas 2; with pandas 3 it is in the newest session
    extras = "all" if pandas == "2" else "cli,report,persist,dask"
    session.install("-e", f".[{extras}]", *TOOLS, "polars", f"pandas>={pandas},<{int(pandas) + 1}")
    run_tests(session, *FILES)


@nox.session(python=[OLDEST_PYTHON, "3.12", NEWEST_PYTHON])
def wheel(session: nox.Session) -> None:
    """The wheel in an environment with nothing else, away from the source: the demo runs."""
    folder = Path(session.create_tmp()).resolve()
    session.install("build")
    session.run("python", "-m", "build", "--wheel", "--outdir", str(folder), str(ROOT), silent=True)
    (built,) = sorted(folder.glob("sparsegsvp-*.whl"), key=os.path.getmtime)[-1:]
    python = str(folder / "empty" / "bin" / "python")
    if session.venv_backend == "uv":
        version = str(session.python)
        session.run("uv", "venv", "-q", "--clear", "-p", version, str(folder / "empty"))
        session.run("uv", "pip", "install", "-q", "-p", python, f"{built}[demo]")
    else:
        session.run("python", "-m", "venv", "--clear", str(folder / "empty"))
        session.run(python, "-m", "pip", "install", "-q", f"{built}[demo]", external=True)
    session.chdir(folder)
    session.run(python, "-c", """
import sparsegsvp, sys
from importlib.resources import files
here = files("sparsegsvp")
assert str(here).startswith(sys.prefix), here
assert (here / "py.typed").is_file()
sparsegsvp.datasets.load_breast_cancer()""", external=True)  # fmt: skip
    session.run(
        str(folder / "empty" / "bin" / "sparsegsvp"), "demo", "--fast", "--out", "demo",
        external=True, env={"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    page = folder / "demo" / "index.html"
    if not (page.is_file() and "<svg" in page.read_text(encoding="utf-8")):
        session.error("the demo left no page with figures")


@nox.session(python=OLDEST_PYTHON)
def docs(session: nox.Session) -> None:
    """The site, gallery included; a warning is an error."""
    session.install("-e", ".[docs]")
    shutil.rmtree(ROOT / "docs" / "generated", ignore_errors=True)  # of names that are gone
    session.run(
        "python", "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "docs",
        str(Path(session.create_tmp()).resolve() / "html"),
        env={"OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"},
    )  # fmt: skip
