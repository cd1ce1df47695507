"""Roles: from name, type and values; what is left out is named, and the caller's word wins."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sparsegsvp.io import InputError, make_table, read_table
from sparsegsvp.io.roles import PEOPLE, SAMPLES, identifies, look_of
from sparsegsvp.report import role_lines

# Genes, proteins, metabolites, probes, spectra, species, pathways: whatever they hold inside.
MEASURED = """
MAGEA1 MAGEA3 AGER AGE1 age-1 sex-1 SEXT1 BMI1 BMI-1 RIN1 RIN2 RIN3 OS9 OS-9 EFS ID1 ID3 STAG1
STAG2 STAGE_ANTIGEN_X RUNX1 RUNX3 DATE_PALM_LECTIN LANCL1 SITE-1-protease PLATR GRADL SET KIT
REST IMPACT MAX CAT WAS TIMELESS TIMP1 PERIOD1 DOS1 LOT6 LOT5 HER2 ERBB2 PSA KLK3 T TBXT N M ER
CRP LDH NO PC CS AR GC TTR TTP CHIP28 STUB1 DEADC1 DDX5 DEATH_RECEPTOR_5 SURVIVIN BIRC5 SMN1
let-7a hsa-miR-21-5p hsa-let-7a-3p cg00000029 rs1234567 AFFX-BioB-5_at 1007_s_at 200000_s_at
X117_at ENSG00000141510 ENST00000269305.9 P04637 Q9Y6K9 HLA-DRB1 C1orf112 m/z_345.2 MZ9.60E-05
M345T12 345.21_12.3 PC(34:1) LysoPC_18:2 TG_52:2 glucose creatinine testosterone IL-6 IFN-g
TNF-alpha Streptococcus_mitis Bacteroides GOBP_FEMALE_SEX_DIFFERENTIATION GOBP_CELL_AGING
REACTOME_DEATH_RECEPTOR_SIGNALLING HALLMARK_TNFA_SIGNALING_VIA_NFKB
HP_AGE_RELATED_DECLINE_OF_SIGHT Sex_hormone_binding_globulin Age_related_macular_protein
mean_radius worst_area V1 X2000 g2E09 f0 feature_17 pixel_3_4 400.5 -7.86E-05
original_glcm_Contrast DNAmAge_clock_x WeightedUniFrac platelets Platelet_count Stageless dating
running updated message passage imaging sexual
"""

CLINICAL = {
    "covariate": """Age|age|AGE|Age at diagnosis|age_at_initial_pathologic_diagnosis|patient.age|
        ageAtSurgery|AgeAtDiagnosis|age_years|Age (y)|AGE_YRS|age.x|age_1|Age group|Sex|sex|SEX|
        Sex(M=1)|gender|Gender_code|sex_male|is_female|BMI|bmi|BMI (kg/m2)|weight_kg|Height (cm)|
        Stage|STAGE1|tumor_stage|T_stage|ajcc_pathologic_stage|Grade|tumor_grade|Gleason score|
        ECOG PS|ER_status|pr_status|smoking_status|pack_years|menopausal status|treatment|dose|
        ethnicity|race|birth_year|date_of_birth_dob|risk score|alter|Geschlecht|tumor_purity""",
    "batch": """batch|Batch|BATCH|Batch_No|batch2|batch.number|sequencing_batch|plate|PlateID|
        plate_number|Run no|run_order|RunDate|lane|Lane 4|flowcell|date|sample_date|
        Date of collection|year|site|site_id|Center|centre|hospital|cohort|study_id|operator|
        instrument|RIN|rin|injection order|well|country""",
    "ignored": """os_months|OS.time|OS|os|OSmonths|PFS_status|dfs|dfs.event|RFS (days)|EFS_time|
        Overall survival (months)|overall.survival|disease free survival|survival_time|status_os|
        days_to_death|days_to_last_followup|vital_status|event|dead|death|relapse|
        time_to_recurrence|follow up|months|days|time|diagnosis_code|class_label|censored""",
}


@pytest.mark.parametrize("name", MEASURED.split())
def test_what_is_measured_looks_like_nothing(name):
    look = look_of(name)
    # one unknown word is not enough: then the values must differ, too
    assert look is None or not look.plain
    assert not identifies(name)


@pytest.mark.parametrize(
    ("name", "role"),
    [(name.strip(), role) for role, names in CLINICAL.items() for name in names.split("|")],
)
def test_what_is_not_measured_is_recognised(name, role):
    look = look_of(name)
    assert look is not None and look.plain
    # which of two words counts is a matter of taste; that it is no measurement is not
    if name not in ("date_of_birth_dob", "status_os"):
        assert look.role == role


@pytest.mark.parametrize(
    "name",
    [
        "id",
        "ID",
        "ids",
        "Sample",
        "sample_id",
        "SampleID",
        "sample.name",
        "Sample No",
        "patient",
        "patient_id",
        "PatientID",
        "Subject Number",
        "case_id",
        "Unnamed: 0",
        "index",
        "rownames",
        "barcode",
        "ID_REF",
        "mouse id",
        "participant",
    ],
)
def test_names_of_identifiers(name):
    assert identifies(name, SAMPLES)


@pytest.mark.parametrize("name", ["patient", "PatientID", "subject_no", "donor", "Mouse", "family"])
def test_names_of_people(name):
    assert identifies(name, PEOPLE)
    assert not identifies("sample_id", PEOPLE)


# --- tables ------------------------------------------------------------------------------


def wide(n: int = 40, m: int = 60, *, counts: bool = False, **more) -> pd.DataFrame:
    """Return like columns, a text column of labels, and what else is asked for."""
    rng = np.random.default_rng(3)
    X = rng.poisson(40, size=(n, m)) if counts else rng.normal(8, 1, size=(n, m)).round(4)
    frame = pd.DataFrame(X, columns=[f"GENE{j}" for j in range(m)])
    return frame.assign(**more, type=np.repeat(["ill", "well"], n // 2))


def some(n: int = 40, seed: int = 5):
    return np.random.default_rng(seed).integers(30, 80, n)


def roles_of(table) -> dict[str, str]:
    return {c.column: c.role for c in table.roles}


@pytest.mark.parametrize("counts", [False, True])
def test_clinical_columns_of_a_wide_table_are_left_out(counts):
    sex, months = some() % 2, np.linspace(0.5, 90, 40)[::-1]
    more = {"age": some(), "sex": sex, "Batch_No": some(seed=8) % 3, "os_months": months}
    table = make_table(wide(counts=counts, **more), target="type")
    assert roles_of(table) == {
        "type": "target", "age": "covariate", "sex": "covariate", "Batch_No": "batch",
        "os_months": "ignored",
    }  # fmt: skip
    assert table.X.shape == (40, 60) and set(table.dropped) == more.keys()
    assert table.dropped["age"] == "covariate: looks clinical"
    assert any(text.startswith("4 columns were left out") for text in table.record)
    lines = role_lines(table)
    assert lines[-1] == {"role": "feature", "columns": [], "count": 60, "reason": "numbers"}
    assert sum(line["count"] for line in lines) == 65
    assert {"role": "covariate", "columns": ["age", "sex"], "count": 2,
            "reason": "looks clinical"} in lines  # fmt: skip


def test_order_of_columns_changes_no_role():
    frame = wide(age=some(), plate=some(seed=2) % 4)
    turned = frame[frame.columns[::-1]]
    first, second = (make_table(f, target="type") for f in (frame, turned))
    assert roles_of(first) == roles_of(second)
    assert set(first.feature_names) == set(second.feature_names)


def test_the_word_of_the_caller_wins(tmp_path):
    frame = wide(age=some(), plate=some(seed=2) % 4, sex=np.where(some() % 2, "F", "M"))
    frame.to_csv(tmp_path / "t.csv", index=False)
    for data in (frame, tmp_path / "t.csv"):
        kept = make_table(data, target="type", keep=["age, plate"])
        assert kept.feature_names[-2:] == ("age", "plate")
        assert roles_of(kept)["age"] == "feature"
        grouped = make_table(data, target="type", group="plate", keep=("age",))
        assert roles_of(grouped)["plate"] == "group" and "age" in grouped.feature_names
        asked = make_table(data, target="type", features=["age", "GENE3"])
        assert asked.feature_names == ("age", "GENE3")
        dropped = make_table(data, target="type", drop=["age"])
        assert dropped.dropped["age"] == "asked for"
    with pytest.raises(InputError, match=r"column 'sex' \(keep\) holds text; code it as numbers"):
        make_table(frame, target="type", keep=["sex"])
    with pytest.raises(InputError, match=r"column 'agee' \(keep\) is not there; did you mean"):
        make_table(frame, target="type", keep=["agee"])
    with pytest.raises(InputError, match="'age' is given as drop and as keep"):
        make_table(frame, target="type", drop=["age"], keep=["age"])


def test_in_a_small_table_of_unlike_columns_age_is_a_feature_and_listed():
    table = make_table(wide(m=8, age=some(), os_months=some(seed=1)), target="type")
    assert table.feature_names[-2:] == ("age", "os_months") and not table.dropped
    (notice,) = table.notices
    assert notice.code == "roles" and notice.severity == "caution"
    assert "'age' and 'os_months'" in notice.text and "drop" in notice.text


def test_a_registry_of_unlike_columns_is_not_wide():
    """Sixty columns, half whole numbers and half not: an age is one of them."""
    halves = {f"LAB{j}": some(seed=j) for j in range(30)}
    table = make_table(wide(m=30, age=some(seed=99), **halves), target="type")
    assert "age" in table.feature_names and not table.dropped


def test_an_unknown_word_needs_values_to_match():
    """Age (Jahre) in whole years among fractions is an age, a gene with fractions is not."""
    more = {"Age (Jahre)": some(), "sex lethal": np.linspace(7, 9, 40)}
    table = make_table(wide(**more), target="type")
    assert roles_of(table)["Age (Jahre)"] == "covariate"
    assert "sex lethal" in table.feature_names
    assert "Age (Jahre)" in make_table(wide(counts=True, **more), target="type").feature_names
    # a gene of flies, or the run of a machine
    assert "run" in make_table(wide(run=np.linspace(7, 9, 40)), target="type").feature_names
    assert roles_of(make_table(wide(run=some() % 4), target="type"))["run"] == "batch"


def test_numbers_that_name_the_samples():
    for m in (6, 60):
        frame = wide(m=m)
        frame.insert(0, "sample", range(100, 140))
        table = make_table(frame, target="type")
        assert roles_of(table)["sample"] == "id"
        assert list(table.sample_names[:2]) == ["100", "101"] and table.X.shape[1] == m
        frame["patient_id"] = range(40)
        assert roles_of(make_table(frame, target="type"))["patient_id"] == "ignored"
        kept = make_table(frame, target="type", keep=["sample"])
        assert "sample" in kept.feature_names


@pytest.mark.parametrize("text", [False, True])
def test_patients_that_repeat_suggest_groups(text):
    patients = np.repeat(np.arange(20), 2)
    frame = wide(patient=[f"P{p}" for p in patients] if text else patients)
    table = make_table(frame, target="type")
    assert roles_of(table)["patient"] == "ignored"
    (notice,) = table.notices
    assert notice.code == "patients" and notice.severity == "serious"
    assert "20 values in 40 samples" in notice.text
    grouped = make_table(frame, target="type", group="patient")
    assert not grouped.notices and len(set(grouped.groups)) == 20
    # in a small table text may be meant as a feature, and the error names the option
    if text:
        with pytest.raises(InputError, match="group='patient' keeps the samples of each together"):
            make_table(frame[["GENE0", "GENE1", "patient", "type"]], target="type")


def test_text_gets_a_role_by_its_values(tmp_path):
    frame = wide(
        sex=np.where(some() % 2, "F", "M"),
        site=[f"hospital {i % 3}" for i in range(40)],
        arm=[f"arm {i % 2}" for i in range(40)],
        note=[f"seen by {i}" for i in range(40)],
        batch=["a" if i < 20 else "b" for i in range(40)],
        city=[f"town {i % 19}" for i in range(40)],
        species=["human"] * 40,
    )
    frame.insert(0, "name", [f"s{i}" for i in range(40)])
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    expected = {
        "type": "target", "name": "id", "sex": "covariate", "site": "batch", "arm": "covariate",
        "note": "ignored", "batch": "batch", "city": "ignored", "species": "ignored",
    }  # fmt: skip
    for data in (frame, tmp_path / "t.csv", tmp_path / "t.parquet"):
        table = make_table(data, target="type")
        assert roles_of(table) == expected
        assert list(table.sample_names[:2]) == ["s0", "s1"]
        assert table.X.shape == (40, 60)
        np.testing.assert_array_equal(table.X, frame.filter(like="GENE").to_numpy())
        assert expected.keys() - {"type", "name"} == table.dropped.keys()
        batch, *_, leak = table.notices  # the batch is the class
        assert leak.code == "leak" and "'batch' occurs in one class only" in leak.text
        assert batch.code == "batch column" and batch.actions[0].value == "site"


def test_clinical_rows_above_the_genes(tmp_path):
    """A table with features in rows, with sex as text and age as numbers among them."""
    frame = wide(sex=np.where(some() % 2, "F", "M"), age=some())
    frame.index = [f"s{i}" for i in range(40)]
    frame.T.to_csv(tmp_path / "t.csv", index_label="gene")
    table = read_table(tmp_path / "t.csv", target="type", transpose=True)
    assert {"sex": "covariate", "age": "covariate"}.items() <= roles_of(table).items()
    assert table.X.shape == (40, 60)


def test_a_slip_is_refused_and_no_column_lost(tmp_path):
    frame = wide().astype(object)
    frame.loc[3, "GENE7"] = "8.1O"
    with pytest.raises(InputError, match=r"row 4, column 'GENE7': '8\.1O' is not a number"):
        make_table(frame, target="type")
    frame.loc[:14, "GENE7"] = "low"  # more than a slip, but numbers for the most part
    with pytest.raises(
        InputError, match=r"row 1, column 'GENE7': 'low' is not a number \(15 cells"
    ):
        make_table(frame, target="type")
    frame.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(
        InputError, match=r"line 2, column 'GENE7': 'low' is not a number \(15 cells"
    ):
        read_table(tmp_path / "t.csv", target="type")


def test_rows_without_a_label_leave_the_text_beside_too():
    frame = wide(batch=["a" if i < 20 else "b" for i in range(40)])
    frame.loc[0, "type"] = None
    table = make_table(frame, target="type")
    assert table.X.shape[0] == 39
    assert [n.code for n in table.notices] == ["missing labels", "batch column", "leak"]


def test_a_copy_of_the_label_is_noticed():
    code = np.repeat([3, 7], 20)
    table = make_table(wide(m=8, GENE99=code), target="type")
    assert any(n.code == "leak" and "'GENE99'" in n.text for n in table.notices)
    many = make_table(wide(diagnosis_code=np.where(code == 3, some() % 2, 5)), target="type")
    assert roles_of(many)["diagnosis_code"] == "ignored"
    small = wide(m=8, diagnosis_code=np.where(code == 3, some() % 2, 5))
    assert [n.code for n in make_table(small, target="type").notices] == ["roles", "leak"]
    small["diagnosis_code"] = some() % 3
    assert [n.code for n in make_table(small, target="type").notices] == ["roles"]


def test_sparse_tables(tmp_path):
    from scipy.sparse import csr_matrix

    frame = wide(counts=True, age=some(), rin=np.linspace(5, 9, 40))
    names = [n for n in frame if n != "type"]
    table = make_table(csr_matrix(frame[names].to_numpy()), frame["type"], feature_names=names)
    assert roles_of(table) == {"type": "target", "age": "covariate", "rin": "batch"}
    assert table.X.shape == (40, 60)


def test_identifiers_that_match_the_labels_of_a_second_file(tmp_path):
    frame = wide().drop(columns="type")
    frame.insert(0, "chip", [f"s{i}" for i in range(40)])
    frame["sex"] = np.where(some() % 2, "F", "M")
    frame.to_csv(tmp_path / "t.csv", index=False)
    labels = "".join(f"s{i},{'ill' if i < 20 else 'well'}\n" for i in range(40))
    (tmp_path / "y.csv").write_text("sample,state\n" + labels)
    table = read_table(tmp_path / "t.csv", labels=tmp_path / "y.csv")
    assert roles_of(table) == {"state": "target", "chip": "id", "sex": "covariate"}
    assert table.class_counts() == {"ill": 20, "well": 20} and table.sample_names[39] == "s39"
    (tmp_path / "y.csv").write_text("sample,state\n" + labels.replace("s", "t"))
    with pytest.raises(InputError, match=r"name the column .* id, or use transpose=True"):
        read_table(tmp_path / "t.csv", labels=tmp_path / "y.csv")


def test_no_feature_left():
    frame = pd.DataFrame({"sample": range(8), "type": list("abababab")})
    with pytest.raises(InputError) as caught:
        make_table(frame, target="type")
    assert "no column of numbers is left as a feature" in str(caught.value)


# --- where the rules begin and end ---------------------------------------------------------


def whys(table) -> dict[str, tuple[str, str]]:
    return {c.column: (c.role, c.reason) for c in table.roles}


def test_what_the_caller_says_is_written_down():
    frame = wide(age=some(), plate=some(seed=2) % 4, name=[f"s{i}" for i in range(40)])
    table = make_table(frame, target="type", id="name", batch="plate", group="age", drop=["GENE0"])
    assert whys(table) == {
        "type": ("target", "as asked"),
        "name": ("id", "as asked"),
        "plate": ("batch", "asked for"),
        "age": ("group", "as asked: never split"),
        "GENE0": ("ignored", "asked for"),
    }
    named = frame.drop(columns=["age", "plate", "name"]).set_axis([f"s{i}" for i in range(40)])
    assert whys(make_table(named, target="type"))[""] == ("id", "names of the samples")
    labelled = make_table(frame.filter(like="GENE"), frame["type"], ids=list(frame["name"]))
    assert whys(labelled)[""] == ("id", "names of the samples")
    found = make_table(frame, target="type", batch="plate", keep=["age"])
    assert [c.column for c in found.roles if c.role == "id"] == ["name"]


@pytest.mark.parametrize(("m", "out"), [(50, False), (51, True), (48, False)])
def test_a_table_is_wide_with_more_than_fifty_other_columns(m, out, tmp_path):
    """What looks clinical does not count among them."""
    frame = wide(m=m, age=some(), sex=some() % 2, plate=some(seed=2) % 4)
    for data in (frame, _csv(frame, tmp_path)):
        table = make_table(data, target="type")
        assert (table.X.shape[1] == m) is out
        assert ("age" in table.dropped) is out
    assert ("3 columns were left out" in " ".join(table.record)) is out


def _csv(frame, tmp_path):
    frame.to_csv(tmp_path / "t.csv", index=False)
    return tmp_path / "t.csv"


@pytest.mark.parametrize(("looks", "out"), [(15, True), (16, False)])
def test_a_table_is_wide_with_four_other_columns_for_each_that_looks_clinical(looks, out):
    words = [
        "age",
        "sex",
        "bmi",
        "weight_kg",
        "tumor_stage",
        "tumor_grade",
        "smoking_status",
        "pack_years",
        "ethnicity",
        "race",
        "treatment",
        "dose",
        "ER_status",
        "pr_status",
        "birth_year",
        "T_stage",
    ]
    more = {word: some(seed=j) for j, word in enumerate(words[:looks])}
    assert (make_table(wide(**more), target="type").X.shape[1] == 60) is out


@pytest.mark.parametrize(("whole", "out"), [(6, True), (7, False)])
def test_nine_in_ten_columns_of_a_wide_table_are_alike(whole, out):
    frame = wide(age=some())
    for j in range(whole):
        frame[f"GENE{j}"] = some(seed=j)
    assert ("age" in make_table(frame, target="type").dropped) is out


def test_one_column_is_one_column():
    table = make_table(wide(age=some()), target="type")
    assert any(text.startswith("1 column was left out") for text in table.record)


def test_half_numbers_are_text_and_more_are_slips():
    half = wide(marker=[str(i) if i % 2 else f"c{i % 5}" for i in range(40)])
    assert whys(make_table(half, target="type"))["marker"][0] == "ignored"
    mostly = wide(marker=[str(i) if i % 8 else "low" for i in range(40)])
    with pytest.raises(InputError, match=r"row 1.*'low' is not a number \(5 cells") as caught:
        make_table(mostly, target="type")
    assert "'low'" in str(caught.value).partition("cells like this")[2]  # a code, perhaps
    several = wide(marker=[str(i) if i % 8 else f"low{i}" for i in range(40)])
    with pytest.raises(InputError) as caught:
        make_table(several, target="type")
    assert "low0" not in str(caught.value).partition("cells like this")[2]


@pytest.mark.parametrize(("levels", "role"), [(12, "covariate"), (13, "ignored")])
def test_text_of_a_dozen_levels_sorts_samples(levels, role):
    table = make_table(wide(arm=[f"a{i % levels}" for i in range(40)]), target="type")
    assert whys(table)["arm"] == (role, f"text with {levels} levels")


def test_text_that_differs_in_every_row_names_the_samples_once():
    names = [f"n{i}" for i in range(40)]
    frame = wide(code=names, sample=names[::-1], case=names)
    found = whys(make_table(frame, target="type"))
    assert found["sample"][0] == "id" and found["case"][0] == found["code"][0] == "ignored"
    first = frame[["code", *[n for n in frame if n != "code"]]]
    assert whys(make_table(first, target="type"))["code"][0] == "id"
    with pytest.raises(InputError, match=r"column 'code' holds text \('n0' on row 1\).*transpose"):
        make_table(first.drop(columns=["type", "sample", "case"]))


@pytest.mark.parametrize(("levels", "out"), [(2, False), (3, True), (39, True)])
def test_people_are_more_than_two_and_repeat(levels, out):
    table = make_table(wide(patient=np.arange(40) % levels), target="type")
    assert ("patient" in table.dropped) is out
    assert (table.X.shape[1] == 60) is out
    assert ("patients" in [n.code for n in table.notices]) is out
    # other names of samples that repeat may be anything
    assert "sample" in make_table(wide(sample=np.arange(40) % 9), target="type").feature_names


def test_a_single_look_in_a_small_table():
    table = make_table(wide(m=8, age=some()), target="type")
    assert whys(table)["age"] == ("feature", "looks clinical")
    (notice,) = table.notices
    assert notice.severity == "note"
    assert notice.text.startswith("Looks clinical: 'age'. In a table of few or unlike columns such")
    both = make_table(wide(m=8, age=some(), plate=some(seed=3)), target="type").notices[0].text
    assert both.startswith("Looks clinical or technical: 'age' and 'plate'.")


def test_a_constant_that_may_be_an_age_is_left_to_the_others():
    table = make_table(wide(**{"Age (Jahre)": np.full(40, 7)}), target="type")
    assert "Age (Jahre)" not in table.dropped


def test_batches_of_one_class_are_noticed_and_covariates_of_one_class_are_not():
    classes = np.repeat([3, 7], 20)
    *_, notice = make_table(wide(plate=classes), target="type").notices
    assert notice.code == "leak" and "Each value of 'plate'" in notice.text
    for column in (classes, np.repeat(["M", "F"], 20)):
        assert not make_table(wide(sex=column), target="type").notices


def test_text_in_a_small_table_is_refused_with_what_it_may_be_for(tmp_path):
    frame = wide(m=5, arm=[f"a{i % 3}" for i in range(40)], city=[f"c{i % 4}" for i in range(40)])
    with pytest.raises(InputError) as caught:
        make_table(frame, target="type")
    assert str(caught.value).endswith(
        "columns 'arm' and 'city' hold text ('a0' on row 1); leave text out with drop=['arm', "
        "'city'], have it in every panel with adjust=['arm', 'city'], or code it as numbers"
    )
    with pytest.raises(InputError) as caught:
        make_table(frame.drop(columns="city"), target="type")
    assert "column 'arm' holds text ('a0' on row 1); leave text out with drop" in str(caught.value)
    for name in ("sample", "donor"):
        again = frame.drop(columns="city").rename(columns={"arm": name})
        with pytest.raises(InputError, match=f"group='{name}' keeps the samples of each together"):
            make_table(again, target="type")
    frame.index = [f"s{i}" for i in range(40)]
    frame.T.to_csv(tmp_path / "t.csv", index_label="gene")
    with pytest.raises(InputError, match="rows 'arm' and 'city' hold text"):
        read_table(tmp_path / "t.csv", target="type", transpose=True)


@pytest.mark.parametrize("name", ["family", "sample"])
def test_text_named_like_people_or_like_samples_may_repeat(name):
    table = make_table(wide(**{name: [f"F{i // 2}" for i in range(40)]}), target="type")
    assert whys(table)[name] == ("ignored", "repeats, as patients do")
    assert [n.code for n in table.notices] == ["patients"]


def test_a_slip_is_quoted_with_its_own_row():
    mostly = wide(marker=["low" if i % 8 == 3 else str(i) for i in range(40)])
    with pytest.raises(InputError, match=r"row 4.*'low' is not a number \(5 cells"):
        make_table(mostly, target="type")


def test_two_samples_are_too_few_to_tell_names_from_values(tmp_path):
    small = pd.DataFrame({"g": [1.5, 2.5, 0.5], "sample": [7, 8, 9], "y": list("aba")})
    assert make_table(small, target="y").sample_names.tolist() == ["7", "8", "9"]
    assert make_table(small[:2], target="y").feature_names == ("g", "sample")
    turned, path = ["gene,s1,s2,s3", "y,a,b,a", "note,x,z,w", "g,1.5,2.5,0.5"], tmp_path / "t.csv"
    path.write_text("\n".join(turned))
    assert "note" in read_table(path, target="y", transpose=True).dropped
    path.write_text("\n".join(line.rpartition(",")[0] for line in turned))
    with pytest.raises(InputError, match="row 'note' holds text"):
        read_table(path, target="y", transpose=True)
