"""What README and docs say can be done: every command and snippet, every link, every name.

A page's commands (lines after ``$`` in ``console`` blocks) and its ``python`` blocks run one after
the other in a folder with the files that the pages speak of, on few folds and draws. Commands in
other blocks are read by the command line's parser, so that no option in them is made up.
"""

from __future__ import annotations

import functools
import gzip
import importlib
import os
import re
import shlex
import shutil
import sys
import tomllib
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from typer.main import get_command
from typer.testing import CliRunner

import sparsegsvp
from sparsegsvp.cli.app import app
from sparsegsvp.cli.screen import Screen

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
pytestmark = pytest.mark.skipif(not DOCS.exists(), reason="the documentation is not in this copy")

# Pages whose snippets have a test of their own: below, and in tests/reproduce.
NOT_RUN = {"scale.md", "paper.md", "choosing.md"}
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    return [b for name, b in BLOCK.findall(page.read_text(encoding="utf-8")) if name == language]


def commands(page: Path) -> list[str]:
    text = "\n".join(blocks(page, "console")).replace("\\\n", " ")
    return [line[2:].split("  #")[0] for line in text.splitlines() if line.startswith("$ ")]


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


# ------------------------------------------------------------------------ the files they speak of


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    """A folder with the tables of the tutorials, in all the shapes of the recipes."""
    pd = pytest.importorskip("pandas")
    anndata = pytest.importorskip("anndata")
    folder = tmp_path_factory.mktemp("files")
    for name in ("tumors.csv", "cohort.csv"):
        shutil.copy(DOCS / "data" / name, folder)
    (folder / "docs").mkdir()
    shutil.copytree(DOCS / "data", folder / "docs" / "data")
    table = pd.read_csv(folder / "tumors.csv")
    genes = table.filter(like="GENE")
    expression = genes.set_axis(table["sample"]).T.rename_axis("gene")
    expression.to_csv(folder / "expression.tsv", sep="\t")
    table[["sample", "diagnosis"]].to_csv(folder / "samples.csv", index=False)
    with gzip.open(folder / "GSE0000_series_matrix.txt.gz", "wt") as file:
        samples = "\t".join(f'"{name}"' for name in table["sample"])
        states = "\t".join(f'"disease state: {label}"' for label in table["diagnosis"])
        file.write(f'!Series_title\t"A study"\n!Sample_geo_accession\t{samples}\n')
        file.write(f"!Sample_characteristics_ch1\t{states}\n!series_matrix_table_begin\n")
        file.write(f'"ID_REF"\t{samples}\n')
        for gene, row in expression.iterrows():
            file.write("\t".join([f'"{gene}"', *map(str, row)]) + "\n")
        file.write("!series_matrix_table_end\n")
    with pd.ExcelWriter(folder / "study.xlsx") as book:
        pd.DataFrame({"about": ["a study"]}).to_excel(book, sheet_name="notes", index=False)
        table.to_excel(book, sheet_name="expression", index=False, startrow=2)
    table.to_csv(folder / "european.csv", sep=";", decimal=",", index=False)
    probes = [name if j % 2 else "GENE050" for j, name in enumerate(genes)]
    table[["diagnosis"]].join(genes.set_axis(probes, axis=1)).to_csv(
        folder / "probes.csv", index=False
    )
    table[["diagnosis"]].join((2**genes).round()).to_csv(folder / "raw.csv", index=False)
    patients = np.char.add("patient", (np.arange(len(table)) % 30).astype(str))
    table.assign(patient=patients).to_csv(folder / "visits.csv", index=False)
    subtype = np.array(["basal", "luminal", "normal"])[np.arange(len(table)) % 3]
    shifted = genes + 2.0 * (subtype[:, None] == "basal") * (np.arange(genes.shape[1]) < 2)
    shifted.assign(subtype=subtype).to_csv(folder / "subtypes.csv", index=False)
    obs = {"cell_type": list(table["diagnosis"]), "donor": patients}
    cells = anndata.AnnData(genes.to_numpy(), obs=obs)
    cells.layers["lognorm"] = cells.X
    cells.write_h5ad(folder / "cells.h5ad")
    (folder / "cohort.parquet").mkdir()
    table.drop(columns=["sample", "age", "plate"]).to_parquet(
        folder / "cohort.parquet" / "part-0.parquet"
    )
    days = np.array(["monday", "tuesday"])[np.arange(len(table)) % 2]
    renamed = table.rename(columns={"diagnosis": "class"}).assign(day=days)
    renamed.to_csv(folder / "table.csv", index=False)
    return folder


# ------------------------------------------------------------------------------------- they run


def cheap(words: list[str], page: Path) -> list[str]:
    """The command with few folds and draws; of the recipes for files, as far as reading."""
    if words[0] not in ("select", "demo") or "--help" in words:
        return words
    if page.name == "files.md":
        words = [*words, "--dry-run"]
    if words[0] == "select":
        words = [*words, "--set", "folds=3"]
    return [*words, *(["--fast"] if "--fast" not in words else []), "--jobs", "1"]


def test_the_demo_installs_the_app_that_the_readme_starts_next():
    assert "demo: $(VENV)/.installed-demo" in (ROOT / "Makefile").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    assert extras["demo"] == ["sparsegsvp[app]"]
    assert any(needed.startswith("starlette") for needed in extras["app"])


def run(command: str, page: Path) -> None:
    words = shlex.split(command)
    program = Path(words[0]).name
    if program == "sparsegsvp":
        result = CliRunner().invoke(app, cheap(words[1:], page))
        assert result.exit_code == 0, f"{command}\n{result.stderr}"
    elif program == "make":
        assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    elif program == "pip":
        extras = re.findall(r"\[([\w,]+)\]", command)
        known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        assert {e for group in extras for e in group.split(",")} <= set(
            known["optional-dependencies"]
        )
        assert sparsegsvp.__version__ in command or ".whl" not in command
    else:
        assert command in ("python -m venv my-env", "source my-env/bin/activate"), command


@pytest.mark.parametrize(
    "page", [p for p in PAGES if commands(p) and p.name not in NOT_RUN], ids=named
)
def test_the_commands_run(page: Path, files: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for path in files.iterdir():
        os.symlink(path, tmp_path / path.name)
    for command in commands(page):
        run(command, page)


def with_defaults(function: Any, **options: Any) -> Any:
    """The function with other defaults, which what a snippet says overrides."""

    @functools.wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        return function(*args, **{**options, **given})

    return call


@pytest.mark.parametrize(
    "page", [p for p in PAGES if blocks(p, "python") and p.name not in NOT_RUN], ids=named
)
def test_the_snippets_run(page: Path, files: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for path in files.iterdir():
        os.symlink(path, tmp_path / path.name)
    options = {"folds": 3, "fast": True}
    monkeypatch.setattr(
        sparsegsvp, "select_panel", with_defaults(sparsegsvp.select_panel, **options)
    )
    names: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for block in blocks(page, "python"):
            exec(compile(block, named(page), "exec"), names)


COMMAND = re.compile(r"(?:^|`|^\$ )(sparsegsvp [a-z]+ [^`\n]*)", flags=re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_commands_in_passing_have_options_that_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    known = get_command(app).commands
    for found in COMMAND.findall(re.sub(r"^ {4}", "", text, flags=re.MULTILINE)):
        words = found.split("  #")[0].replace("...", "").split()
        if words[1] not in known:
            assert not any(w.startswith("--") for w in words), found  # a sentence, no command
            continue
        flags = {flag for p in known[words[1]].params for flag in (*p.opts, *p.secondary_opts)}
        given = [w for w in words[2:] if w.startswith("-")]
        assert set(given) <= flags, found


def test_scripts_that_pages_name_exist_with_their_options() -> None:
    common = (ROOT / "benchmarks" / "_common.py").read_text(encoding="utf-8")
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        text = page.read_text(encoding="utf-8")
        for script, rest in re.findall(r"python ([\w/]+\.py)([^`\n]*)", text):
            source = common + (ROOT / script).read_text(encoding="utf-8")
            for option in re.findall(r"--[\w-]+", rest):
                assert f'"{option}"' in source, f"{named(page)}: {script} {option}"


# --------------------------------------------------------------------------------- they are whole


def anchors(page: Path) -> set[str]:
    """The anchors that headings of a page have, here and on GitHub."""
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    titles = re.findall(r"^#{1,6} (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_internal_links_lead_somewhere() -> None:
    missing = []
    for page in [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]:
        text = BLOCK.sub("", page.read_text(encoding="utf-8"))
        links = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r"`[^`<]+ <([^>]+)>`", text)
        for link in links:
            if "://" in link or link.startswith("mailto:"):
                continue
            path, _, anchor = link.partition("#")
            target = page.parent / path if path else page
            if "gallery/plot_" in path:  # made by the build, from an example
                target = ROOT / "examples" / (target.stem + ".py")
            elif path.endswith("gallery/index.rst"):
                target = ROOT / "examples"
            if not target.exists() or (anchor and anchor not in anchors(target)):
                missing.append(f"{named(page)}: {link}")
    assert not missing


def test_every_page_is_in_the_contents() -> None:
    listed = set()
    for page in PAGES[1:]:
        for toctree in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(), flags=re.DOTALL):
            for line in toctree.splitlines():
                entry = re.sub(r".*<(.+)>", r"\1", line.strip())
                if entry and not entry.startswith(":"):
                    listed.add((page.parent / f"{entry}.md").resolve())
    pages = {page.resolve() for page in PAGES[1:]} - {DOCS / "index.md"}
    assert pages <= listed | {(DOCS / "index.md").resolve()}


def public_modules() -> list[ModuleType]:
    names = [
        path.parent.name if path.name == "__init__.py" else path.stem
        for path in [*ROOT.glob("src/sparsegsvp/*/__init__.py"), *ROOT.glob("src/sparsegsvp/*.py")]
    ]
    names = [n for n in names if not n.startswith("_") and n not in ("sparsegsvp", "cli")]
    return [sparsegsvp, *(importlib.import_module(f"sparsegsvp.{name}") for name in sorted(names))]


def test_the_reference_has_every_public_name() -> None:
    """A new public name gets its line in docs/api.md, under what one does with it."""
    module, objects, unknown = sparsegsvp, [], []
    for line in (DOCS / "api.md").read_text().splitlines():
        if found := re.match(r".. currentmodule:: (.+)", line):
            module = importlib.import_module(found[1])
        elif found := re.match(r"(?:   |.. py:data:: )([A-Za-z][\w.]*)$", line):
            try:
                objects.append(functools.reduce(getattr, found[1].split("."), module))
            except AttributeError:
                unknown.append(found[1])
    assert not unknown
    listed = {id(item) for item in objects}
    missing = [
        f"{module.__name__}.{name}"
        for module in public_modules()
        for name in module.__all__
        if name != "__version__"
        and not isinstance(getattr(module, name), ModuleType)
        and id(getattr(module, name)) not in listed
    ]
    assert not missing, "add to docs/api.md: " + ", ".join(missing)


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 110


def test_the_tutorial_shows_the_table_that_it_gives() -> None:
    table = (DOCS / "data" / "tumors.csv").read_text()
    shown = re.findall(r"^(.+,)\.\.\.$", (DOCS / "biologist.md").read_text(), flags=re.MULTILINE)
    assert len(shown) == 3 and table.startswith(shown[0])
    assert all(f"\n{line}" in table for line in shown[1:])


def test_one_version() -> None:
    assert "version" not in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    version = sparsegsvp.__version__
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.parametrize("path", sorted(ROOT.glob("examples/*.py")), ids=lambda p: p.stem)
def test_examples_tell_a_story(path: Path) -> None:
    """Each compiles, opens with a title, and draws at least one figure."""
    source = path.read_text()
    compile(source, str(path), "exec")
    title, line = source.splitlines()[1:3]
    assert set(line) == {"="} and len(line) == len(title)
    assert re.search(r"plots\.|ax\.|plt\.", source) and source.count("# %%") >= 2


def test_every_command_shows_an_example_that_parses() -> None:
    for name, command in get_command(app).commands.items():
        words = shlex.split(command.epilog)
        assert words[:3] == ["Example:", "sparsegsvp", name]
        command.make_context(name, words[3:])


def test_the_command_after_a_run_works_as_printed(tmp_path, monkeypatch) -> None:
    """`make demo` runs a program that no shell finds by its name alone."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    program = tmp_path / ".venv" / "bin" / "sparsegsvp"
    monkeypatch.setattr(sys, "argv", [str(program)])
    said = Screen.as_called("sparsegsvp demo --out demo-report")
    assert said == f"{Path('.venv', 'bin', 'sparsegsvp')} demo --out demo-report"
    (tmp_path / "sparsegsvp").touch(mode=0o755)  # now it is on the path
    assert Screen.as_called("sparsegsvp demo") == "sparsegsvp demo"


def test_the_snippets_on_scale_run_on_a_small_store_and_a_local_cluster(tmp_path, monkeypatch):
    da = pytest.importorskip("dask.array", reason="needs the extra dask")
    distributed = pytest.importorskip("distributed", reason="needs the extra dask")
    pytest.importorskip("zarr", reason="needs the extra dask")
    from sparsegsvp.datasets import make_planted

    monkeypatch.chdir(tmp_path)
    data = make_planted(40, 12, 2, effect=2.5)
    da.from_array(data.X, chunks=(20, 12)).to_zarr("cohort.zarr", component="X")
    on_disk, on_a_cluster = blocks(DOCS / "scale.md", "python")
    names = {"y": data.y}
    exec(on_disk, names)
    assert names["model"].predict(names["X"]).shape == (40,)
    cluster = distributed.LocalCluster(
        n_workers=1, processes=False, dashboard_address=None, silence_logs=False
    )
    with cluster:
        assert "tcp://10.0.0.1:8786" in on_a_cluster
        names = {"X": data.X, "y": data.y, "GSVPSVMCV": names["GSVPSVMCV"]}
        exec(on_a_cluster.replace("tcp://10.0.0.1:8786", cluster.scheduler_address), names)
        names["client"].close()
