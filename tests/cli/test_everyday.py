"""The first file a biologist tries: each kind at the command line, and what it says."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

# Enough to read a table and go through a run.
QUICK = ["--tau", "1", "--deltas", "4", "--folds", "2", "--repeats", "1", "--jobs", "1"]
QUICK += ["--permutations", "0"]


def lines_of(m=6, n=16):
    """A header, then samples with an identifier, numbers and a diagnosis."""
    rng = np.random.default_rng(0)
    labels = ["tumor", "normal"] * (n // 2)
    X = rng.normal(size=(n, m)).round(3) + np.where(np.array(labels) == "tumor", 3, 0)[:, None]
    header = ["sample", *(f"g{j}" for j in range(m)), "diagnosis"]
    rows = ([f"s{i}", *map(repr, x.tolist()), y] for i, (x, y) in enumerate(zip(X, labels)))
    return [header, *rows]


def save(path, lines, separator=","):
    path.write_text("\n".join(separator.join(line) for line in lines) + "\n")
    return path


def turned(lines):
    return [list(row) for row in zip(*lines)]


def column(lines, name, values):
    """Put a column before the last."""
    cells = [name, *values]
    return [[*line[:-1], cell, line[-1]] for line, cell in zip(lines, cells)]


def changed(lines, row, position, cell):
    lines = [list(line) for line in lines]
    lines[row][position] = cell
    return lines


def genes_in_rows(folder):
    return save(folder / "a.csv", turned(lines_of())), []


def genes_in_rows_by_hand(folder):
    lines = turned(lines_of())
    lines[0][0] = "ID_REF"
    return save(folder / "a.csv", lines), ["--transpose", "--id", "ID_REF"]


def genes_in_rows_and_labels(folder):
    lines = turned(lines_of())
    save(folder / "labels.csv", turned([lines[0], lines[-1]]))
    return save(folder / "a.tsv", lines[:-1], "\t"), ["--labels", folder / "labels.csv"]


def geo(folder):
    lines = turned(lines_of())
    head = ["!Series_title\tA study", "\t".join(["!Sample_geo_accession", *lines[0][1:]])]
    said = (f"diagnosis: {label}" for label in lines[-1][1:])
    head += ["\t".join(["!Sample_characteristics_ch1", *said]), "!series_matrix_table_begin"]
    body = ["\t".join(line) for line in lines[:-1]]
    path = folder / "GSE1_series_matrix.txt"
    path.write_text("\n".join([*head, *body, "!series_matrix_table_end"]))
    return path, []


def excel_with_a_title(folder):
    import openpyxl

    book = openpyxl.Workbook()
    header, *rows = lines_of()
    for line in [["Table S1"], [], header, *([s, *map(float, x), y] for s, *x, y in rows)]:
        book.active.append(line)
    book.save(folder / "a.xlsx")
    return folder / "a.xlsx", ["--id", "sample"]


def unnamed_first_column(folder):
    lines = [[str(i - 1), *line] for i, line in enumerate(lines_of())]
    return save(folder / "a.csv", changed(lines, 0, 0, "")), ["--id", "sample"]


def codes(folder):
    lines = changed(changed(lines_of(), 1, 1, "n.d."), 2, 3, "<LOD")
    return save(folder / "a.csv", changed(lines, 5, 2, "failed")), ["--na", "failed,-999"]


def several_to_drop(folder):
    lines = column(column(lines_of(), "note", ["x"] * 16), "site", ["A", "B"] * 8)
    return save(folder / "a.csv", lines), ["--drop", "sample,note,site"]


def capitals(folder):
    return save(folder / "a.csv", changed(lines_of(), 1, -1, "Tumor")), ["--drop", "sample"]


def shared_names(folder):
    return save(folder / "a.csv", changed(lines_of(), 0, 2, "g0")), ["--collapse", "max"]


def raw_intensities(folder):
    header, *rows = lines_of(m=60)
    rng = np.random.default_rng(0)
    X = np.exp2(rng.normal(8, 2, 60) + rng.normal(size=(16, 60)))
    rows = ([r[0], *map(repr, x.tolist()), r[-1]] for r, x in zip(rows, X))
    return save(folder / "a.csv", [header, *rows]), []


FILES = [
    (genes_in_rows, "features are in rows, samples in columns: 'diagnosis' names a row"),
    (genes_in_rows_by_hand, "classes in 'diagnosis': 'normal' 8, 'tumor' 8"),
    (genes_in_rows_and_labels, "the columns have the names of labelled samples"),
    (geo, "a GEO series matrix: features are in rows, samples in columns"),
    (excel_with_a_title, "the header is on line 3; passed over above it: line 1"),
    (unnamed_first_column, "the first column has no name and was left out, as names of rows"),
    (codes, "taken as missing: 'n.d.' 1, '<LOD' 1, 'failed' 1"),
    (codes, "note: Values below detection: "),
    (several_to_drop, "left out as asked: 'sample', 'note' and 'site'"),
    (capitals, "note: Labels in several spellings: "),
    (shared_names, "1 name is shared by 2 features, of each the one with the largest mean"),
    (raw_intensities, "note: The values look raw: "),
]


@pytest.mark.parametrize(("make", "said"), FILES, ids=[f"{f.__name__}-{s[:9]}" for f, s in FILES])
def test_it_is_read_and_said(tmp_path, kit, make, said):
    path, options = make(tmp_path)
    if not {"--id", "--drop"}.intersection(options) and make not in (genes_in_rows, geo):
        options = [*options, "--id", "sample"]
    result = kit.run("evaluate", path, "-t", "diagnosis", *options, *QUICK)
    assert result.exit_code == 0, result.stderr
    assert said in result.stdout


@pytest.mark.parametrize(
    ("make", "options", "said"),
    [
        (lambda lines: turned(lines)[:-1], [], "use --transpose and give the labels in a second"),
        (turned, ["--no-transpose"], "'diagnosis' names a row, not a column"),
        (
            lambda lines: changed(lines, 0, 2, "g0"),
            ["--id", "sample"],
            "make them one with --collapse mean",
        ),
        (lambda lines: changed(lines, 3, 2, "q.n."), ["--id", "sample"], "use --na q.n."),
        (lambda lines: lines, ["--id", "sample", "--collapse", "sum"], "--collapse must be 'mean'"),
    ],
)
def test_what_is_in_doubt_names_the_option(tmp_path, kit, make, options, said):
    path = save(tmp_path / "a.csv", make(lines_of()))
    result = kit.run("evaluate", path, "-t", "diagnosis", *options, *QUICK)
    assert result.exit_code == 2
    assert said in result.stderr and result.stderr.count("\n") == 2  # and that it is being read


def test_logarithms_that_are_taken_are_not_advised(tmp_path, kit):
    path, _ = raw_intensities(tmp_path)
    words = ["evaluate", path, "-t", "diagnosis", "--id", "sample", *QUICK]
    assert "look raw" in kit.run(*words, "--json").stdout
    assert "look raw" not in kit.run(*words, "--json", "--log2").stdout
    assert "look raw" not in kit.run(*words, "--log2").stdout


@pytest.mark.parametrize(
    "words",
    [
        ["select", "a.csv", "-t", "y", "--group", "patient", "--group", "batch"],
        ["select", "a.csv", "-t", "y", "--target", "z"],
        ["select", "a.csv", "-t", "y", "--folds=3", "--folds", "4"],
        ["select", "a.csv", "-t", "y", "--transpose", "--no-transpose"],
        ["select", "a.csv", "-t", "y", "-o", "here", "--out", "there"],
        ["evaluate", "a.csv", "-t", "y", "--method", "lasso", "--method", "regec"],
        ["compare", "a.csv", "-t", "y", "--sizes", "2", "--sizes", "4"],
        ["predict", "model.skops", "a.csv", "--positive", "a", "--positive", "b"],
        ["demo", "--seed", "1", "--seed", "2"],
    ],
)
def test_one_value_is_given_once(kit, words):
    """Of every option that takes one; nothing is read first."""
    result = kit.run(*words)
    assert result.exit_code == 2
    assert "2 times" in result.stderr and "reading" not in result.stderr
    name = next(w for w in ("--group", "--target", "--folds", "--transpose", "--out", "--method",
                            "--sizes", "--positive", "--seed") if w in words)  # fmt: skip
    assert name in result.stderr


def test_lists_may_be_given_in_parts(tmp_path, kit):
    path, _ = several_to_drop(tmp_path)
    words = ["evaluate", path, "-t", "diagnosis", "--drop", "sample,note", "--drop", "site"]
    result = kit.run(*words, *QUICK, "--tau", "2")
    assert result.exit_code == 0, result.stderr
    assert "--drop sample,note --drop site" in result.stdout and "--tau 1 --tau 2" in result.stdout


def test_the_command_that_repeats_a_run_says_how_it_was_read(tmp_path, kit):
    lines = lines_of()
    path = save(tmp_path / "a.csv", lines)
    options = ["--id", "sample", "--no-transpose", "--na", "-999,x", "--collapse", "first"]
    options += ["--tau", "1.2345678901"]
    result = kit.run("evaluate", path, "-t", "diagnosis", *options, *QUICK)
    assert result.exit_code == 0, result.stderr
    repeat = result.stdout.partition("Repeat: ")[2]
    assert "--no-transpose --na -999,x --collapse first" in repeat
    assert "--tau 1.2345678901" in repeat
    again = kit.run(*repeat.split()[1:], "--jobs", "1")
    assert again.exit_code == 0 and again.stdout == result.stdout


def test_a_table_whose_name_begins_with_a_dash_can_be_repeated(tmp_path, kit, monkeypatch):
    save(tmp_path / "-a.csv", lines_of())
    monkeypatch.chdir(tmp_path)
    result = kit.run("evaluate", "./-a.csv", "-t", "diagnosis", "--out", "found", *QUICK)
    assert result.exit_code == 0, result.stderr
    repeat = result.stdout.partition("Repeat: ")[2].split()
    assert repeat[-2:] == ["--out", "found"]
    again = kit.run(*repeat[1:], "--jobs", "1", "--force")
    assert again.exit_code == 0, again.stderr


def predictions(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_a_model_finds_its_features_in_rows(finished, tmp_path, kit):
    with open(finished.path) as handle:
        lines = list(csv.reader(handle))
    path = tmp_path / "turned.csv"
    with open(path, "w", newline="") as handle:
        csv.writer(handle).writerows(turned(lines)[:-1])
    model = finished.out / "model.skops"
    straight = kit.run("predict", model, finished.path, "--id", "sample")
    found = kit.run("predict", model, path, "--id", "sample")
    assert found.exit_code == 0, found.stderr
    assert predictions(found.stdout) == predictions(straight.stdout)
    assert "features are in rows, samples in columns" in found.stderr
    # nor is it in doubt with one feature gone
    names = [
        row["feature"] for row in json.loads((finished.out / "results.json").read_text())["panel"]
    ]
    with open(path, "w", newline="") as handle:
        csv.writer(handle).writerows(row for row in turned(lines)[:-1] if row[0] != names[0])
    gone = kit.run("predict", model, path)
    assert gone.exit_code == 2 and f"1 of the {len(names)} rows needed are missing" in gone.stderr


def test_a_cohort_in_rows_with_other_capitals(table, tmp_path, kit):
    X, labels, names = kit.planted(n=12, seed=5)
    ids = [f"q{i}" for i in range(12)]
    straight = kit.write_table(tmp_path / "straight.csv", X, labels, names, ids)
    capital = kit.write_table(tmp_path / "b.csv", X, [y.upper() for y in labels], names, ids)
    with open(capital) as handle:
        lines = turned(csv.reader(handle))
    with open(tmp_path / "turned.csv", "w", newline="") as handle:
        csv.writer(handle).writerows(lines)
    words = ["select", table, "-t", "class", "--id", "sample", *kit.fast]
    scores = []
    for name in (straight, tmp_path / "turned.csv"):
        result = kit.run(*words, "--test", name, "--out", tmp_path / name.stem)
        assert result.exit_code == 0, result.stderr
        document = json.loads((tmp_path / name.stem / "results.json").read_text())
        scores.append(document["test"]["scores"])
    assert scores[0] == scores[1]
    assert "cohort: labels are spelled otherwise than in table.csv: 'ILL'" in result.stdout
    assert [n["code"] for n in document["notices"]].count("spelling") == 1
