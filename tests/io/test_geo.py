"""Series matrix files of GEO: numbers, and what is said of the samples."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from sparsegsvp.io import InputError, read_table

GSM = [f"GSM{i}" for i in range(1, 7)]
TISSUE = ["tumor", "normal", "tumor", "normal", "tumor", "normal"]
NUMBERS = {"1007_s_at": [7.1, 8, 9, 7, 8, 9.5], "1053_at": [1, 2, 3, 4, 5, 6]}


def quoted(cells) -> str:
    return "\t".join(f'"{cell}"' for cell in cells)


def series(numbers=NUMBERS, platforms=("GPL96",) * 6, end=True, extra=(), header=GSM) -> str:
    lines = [
        '!Series_title\t"Colon: a study"',
        '!Series_geo_accession\t"GSE1"',
        "",
        f"!Sample_title\t{quoted(f'biopsy {i}' for i in range(6))}",
        f"!Sample_geo_accession\t{quoted(GSM)}",
        f"!Sample_source_name_ch1\t{quoted(f'colon, {t}' for t in TISSUE)}",
        f"!Sample_platform_id\t{quoted(platforms)}",
        # GEO packs the pairs of each sample to the left, so one key is on several lines
        "!Sample_characteristics_ch1\t"
        + quoted(["Tissue: tumor", "Tissue: normal", "sex: F", "sex: M", "Tissue: tumor", ""]),
        "!Sample_characteristics_ch1\t"
        + quoted(["sex: M", "sex: F", "Tissue: tumor", "Tissue: normal", "", "Tissue: normal"]),
        f"!Sample_characteristics_ch1\t{quoted(f'patient: p{i // 2}' for i in range(6))}",
        *extra,
        "!series_matrix_table_begin",
        f'"ID_REF"\t{quoted(header)}',
        *("\t".join([f'"{name}"', *map(str, row)]) for name, row in numbers.items()),
    ]
    return "\n".join([*lines, *(["!series_matrix_table_end"] if end else [])]) + "\n"


def write(path, text):
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.mark.parametrize("name", ["GSE1_series_matrix.txt", "GSE1_series_matrix.txt.gz", "x.tsv"])
def test_samples_are_rows_and_characteristics_columns(tmp_path, name):
    """Recognised by what is in it, whatever it is called."""
    table = read_table(write(tmp_path / name, series()), target="Tissue", group="patient")
    np.testing.assert_array_equal(table.X.T, list(NUMBERS.values()))
    assert table.feature_names == tuple(NUMBERS)
    assert list(table.sample_names) == GSM and list(table.y) == TISSUE
    assert list(table.groups) == ["p0", "p0", "p1", "p1", "p2", "p2"]
    assert "a GEO series matrix of GSE1: features are in rows, samples in columns" in table.record


def test_what_is_said_of_the_samples_may_be_target_and_names(tmp_path):
    path = write(tmp_path / "a.txt", series())
    table = read_table(path, target="source_name_ch1", id="title", transpose=True)
    assert list(table.y) == [f"colon, {tissue}" for tissue in TISSUE]
    assert list(table.sample_names) == [f"biopsy {i}" for i in range(6)]
    # a sample of which nothing is said has no label
    table = read_table(path, target="sex")
    assert list(table.sample_names) == GSM[:4] and list(table.y) == ["M", "F", "F", "M"]
    assert "2 samples were left out, having no label" in " ".join(table.record)


def test_features_and_samples_can_be_left_out(tmp_path):
    path = write(tmp_path / "a.txt", series())
    table = read_table(path, target="Tissue", drop="GSM2,1053_at")
    assert table.feature_names == ("1007_s_at",) and list(table.sample_names) == [GSM[0], *GSM[2:]]
    assert list(table.y) == [TISSUE[0], *TISSUE[2:]]
    assert read_table(path, features=["1053_at"]).X.ravel().tolist() == [1, 2, 3, 4, 5, 6]


def test_labels_of_a_second_file_go_by_accession(tmp_path):
    path = write(tmp_path / "a.txt", series())
    rows = [f"GSM{i + 1},{'xy'[i % 2]}" for i in reversed(range(6))]
    (tmp_path / "labels.csv").write_text("\n".join(["sample,kind", *rows]))
    assert list(read_table(path, labels=tmp_path / "labels.csv").y) == list("xyxyxy")


def test_it_can_itself_give_the_labels(tmp_path):
    """As is usual for sequencing: numbers in a table of their own, samples described here."""
    path = write(tmp_path / "a.txt", series(numbers={}))
    with pytest.raises(InputError, match=r"holds no numbers.*give this file beside it as labels"):
        read_table(path, target="Tissue")
    (tmp_path / "counts.csv").write_text(
        "gene," + ",".join(f"biopsy {i}" for i in range(6)) + "\nTP53,1,2,3,4,5,6\n"
    )
    options = {"labels": path, "on": "title", "target": "Tissue"}
    table = read_table(tmp_path / "counts.csv", **options)
    assert list(table.y) == TISSUE and table.X.ravel().tolist() == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("content", "target", "expected"),
    [
        (
            {},
            "diagnosis",
            "nothing called 'diagnosis' (target) is said of samples; usable are "
            "'Tissue' ('tumor' and 'normal'); 'sex' ('M' and 'F'); 'patient' ('p0', 'p1' and 'p2')",
        ),
        ({}, "tissue", "did you mean 'Tissue'?"),
        ({"platforms": ("GPL96", "GPL97") * 3}, "Tissue", "of 2 platforms ('GPL96' and 'GPL97')"),
        ({"end": False}, "Tissue", "no end; it is cut short"),
        ({"numbers": {"a": [1, 2]}}, "Tissue", "line 13: 3 cells where the header has 7"),
        ({"extra": ['!Sample_status\t"x"']}, "Tissue", "'!Sample_status' has 1 values for 6"),
        ({"header": [*GSM[:5], "GSM9"]}, "Tissue", "nothing of the samples 'GSM9' of its table"),
        (
            {"numbers": {"a": ["x", *"12345"], "b": range(6)}},
            "Tissue",
            "a.txt, column 'GSM1', row 'a': 'x' is not",
        ),
    ],
)
def test_refusals(tmp_path, content, target, expected):
    path = write(tmp_path / "a.txt", series(**content))
    with pytest.raises(InputError) as caught:
        read_table(path, target=target)
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    "text", ['!Series_title\t"x"\n', "!Sample_title\n", '!Series_\t"' + "x" * 200_000]
)
def test_torn_files_are_refused(tmp_path, text):
    with pytest.raises(InputError, match=r"download it again|line 1, cell 2: .*field larger"):
        read_table(write(tmp_path / "a.txt", text), target="x")


def test_lines_of_one_name_and_the_column_of_features(tmp_path):
    extra = [f"!Sample_note\t{quoted(f'{word}{i % 2}' for i in range(6))}" for word in "ab"]
    path = write(tmp_path / "a.txt", series(extra=extra))
    table = read_table(path, target="note.1", group="note", id="ID_REF")
    assert list(table.y[:2]) == ["b0", "b1"] and list(table.groups[:2]) == ["a0", "a1"]
    assert list(table.sample_names) == GSM


def test_a_pair_said_twice_of_one_sample_gets_a_number(tmp_path):
    pairs = ["stage: I", "stage: II", "", "stage: I", "stage: II", ""]
    extra = ["!Series_geo_accession", f"!Sample_characteristics_ch2\t{quoted(pairs)}"]
    again = ["", "stage: III", "stage: I", "", "stage: IV", "stage: II"]
    extra.append(f"!Sample_characteristics_ch2\t{quoted(again)}")
    path = write(tmp_path / "a.txt", series(extra=extra))
    table = read_table(path, target="stage")
    assert list(table.y) == ["I", "II", "I", "I", "II", "II"]  # gaps of one line are filled
    assert list(read_table(path, target="stage.1").y) == ["III", "IV"]


def test_gaps_of_geo(tmp_path):
    numbers = {"a": ["null", 2, "", 4, 5, 6], "b": range(6)}
    table = read_table(write(tmp_path / "a.txt", series(numbers)), target="Tissue")
    np.testing.assert_array_equal(table.X[:, 0], [np.nan, 2, np.nan, 4, 5, 6])
    assert "taken as missing: 'null' 1" in table.record
