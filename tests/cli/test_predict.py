"""`sparsegsvp predict`: columns by name, and only those of the panel."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from sparsegsvp import GSVPSVM, load_model, save_model
from sparsegsvp.evaluation import compare_external
from sparsegsvp.workflow import Predictions, needed_features


def parse(text):
    return list(csv.DictReader(io.StringIO(text, newline="")))


@pytest.fixture
def model(finished):
    return finished.out / "model.skops"


def test_order_and_extra_columns_do_not_matter(finished, model, tmp_path, kit):
    import pandas as pd

    reference = kit.run("predict", model, finished.path, "--id", "sample")
    assert reference.exit_code == 0, reference.stderr
    rows = parse(reference.stdout)
    assert [row["sample"] for row in rows] == [f"s{i}" for i in range(36)]
    # every digit: pandas' faster parser is off by a bit for one of these numbers
    frame = pd.read_csv(finished.path, float_precision="round_trip")
    fitted = load_model(model)
    features = frame[list(fitted.feature_names_in_)]
    np.testing.assert_array_equal([r["prediction"] for r in rows], fitted.predict(features))
    got = [float(r["probability of ill"]) for r in rows]
    np.testing.assert_allclose(got, fitted.predict_proba(features)[:, 0], rtol=1e-12)

    # an assay of the panel alone, turned round, with columns of other things
    assay = frame[["class", *reversed(needed_features(fitted)), "sample"]].assign(site="A")
    assay.to_csv(tmp_path / "assay.tsv", sep="\t", index=False)
    result = kit.run("predict", model, tmp_path / "assay.tsv", "--id", "sample")
    assert result.stdout == reference.stdout


def test_the_memory_layout_does_not_matter_to_the_last_bit(finished, model):
    import pandas as pd

    fitted = load_model(model)
    X = pd.read_csv(finished.path)[needed_features(fitted)].to_numpy()
    expected = Predictions(fitted, np.ascontiguousarray(X))
    for same in (np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2], sparse.csr_array(X)):
        found = Predictions(fitted, same)
        assert found.distances.tobytes() == expected.distances.tobytes()
        assert found.proba.tobytes() == expected.proba.tobytes()


def test_missing_columns_are_listed(finished, model, tmp_path, kit):
    (tmp_path / "t.csv").write_text("sample,g1,g2\ns1,1,2\n")
    out = tmp_path / "out.csv"
    result = kit.run("predict", model, tmp_path / "t.csv", "--id", "sample", "--out", out)
    assert result.exit_code == 2
    assert kit.markup in result.stderr and kit.formula in result.stderr
    assert "missing" in result.stderr
    assert not out.exists()


def test_prevalence_multiplies_the_odds(finished, model, kit):
    base = parse(kit.run("predict", model, finished.path, "--id", "sample").stdout)
    words = ["--id", "sample", "--prevalence", "0.1", "--positive", "ill"]
    shifted = parse(kit.run("predict", model, finished.path, *words).stdout)
    for one, two in zip(base, shifted):
        p, q = float(one["probability of ill"]), float(two["probability of ill"])
        assert q / (1 - q) == pytest.approx(p / (1 - p) * 0.1 / 0.9, rel=1e-6)
        # the label is the more probable one at that prevalence
        assert two["prediction"] == ("ill" if q > 0.5 else "well")
    for value in ("0", "1", "1.5"):
        result = kit.run("predict", model, finished.path, "--id", "sample", "--prevalence", value)
        assert result.exit_code == 2 and "--prevalence" in result.stderr


def test_gaps_get_the_training_medians(finished, model, tmp_path, kit):
    fitted = load_model(model)
    names = needed_features(fitted)
    header = ",".join(f'"{name}"' for name in names)
    (tmp_path / "t.csv").write_text(f"{header},x\n{',' * len(names)}1\n")
    rows = parse(kit.run("predict", model, tmp_path / "t.csv").stdout)
    medians = fitted.named_steps["impute"].statistics_[None]
    expected = fitted.named_steps["model"].predict_proba(medians)[0, 0]
    assert float(rows[0]["probability of ill"]) == pytest.approx(expected)


def test_what_was_imputed_is_said(finished, model, tmp_path, kit):
    names = needed_features(load_model(model))
    header = ",".join(f'"{name}"' for name in names)
    values = ",".join(["1.0"] * len(names))
    gap = ",".join(["", *["1.0"] * (len(names) - 1)])
    (tmp_path / "t.csv").write_text(f"{header},x\n{values},1\n{gap},1\n{gap},1\n")
    result = kit.run("predict", model, tmp_path / "t.csv")
    said = " ".join(result.stderr.split())
    assert "2 missing values were replaced by medians of the training samples: 2 of " in said
    assert names[0] in said and len(parse(result.stdout)) == 3
    printed = json.loads(kit.run("predict", model, tmp_path / "t.csv", "--json").stdout)
    assert printed["imputed"] == {names[0]: 2}
    # nothing is said where nothing is missing
    assert "missing" not in kit.run("predict", model, finished.path, "--id", "sample").stderr
    printed = json.loads(kit.run("predict", model, finished.path, "--json").stdout)
    assert printed["imputed"] == {}
    # however the rows are held
    X = np.ones((5, len(names)))
    X[[1, 4], 1] = np.nan
    for rows in (X, sparse.csr_array(X)):
        assert Predictions(load_model(model), rows).imputed == {names[1]: 2}


def test_a_file_and_a_summary(finished, model, tmp_path, kit):
    out = tmp_path / "p.csv"
    result = kit.run("predict", model, finished.path, "--id", "sample", "--out", out)
    assert result.exit_code == 0
    assert f"Predictions: {out.resolve()}" in result.stdout
    assert len(parse(out.read_text())) == 36
    printed = json.loads(kit.run("predict", model, finished.path, "--json").stdout)
    assert printed["classes"] == ["ill", "well"]
    assert printed["predictions"] == [r["prediction"] for r in parse(out.read_text())]


def test_identifiers_are_harmless_in_the_file(finished, model, tmp_path, kit):
    text = finished.path.read_text().replace("\ns0,", "\n=1+1,")
    (tmp_path / "t.csv").write_text(text)
    rows = parse(kit.run("predict", model, tmp_path / "t.csv", "--id", "sample").stdout)
    assert rows[0]["sample"] == "'=1+1"


def test_what_is_no_model(finished, tmp_path, kit):
    (tmp_path / "m.skops").write_text("not a model")
    result = kit.run("predict", tmp_path / "m.skops", finished.path)
    assert result.exit_code == 2
    assert "this is not a model file" in result.stderr


def test_predictions_are_written_through_links_and_devices(finished, model, tmp_path, kit):
    link = tmp_path / "link.csv"
    link.symlink_to(tmp_path / "there.csv")
    for out in (link, "/dev/null"):
        result = kit.run("predict", model, finished.path, "-o", out)
        assert result.exit_code == 0, result.stderr
    assert link.is_symlink() and (tmp_path / "there.csv").read_text().startswith("sample,")
    assert not Path("/dev/null").is_file()


def test_labels_in_the_file_validate_the_model(model, tmp_path, kit):
    X, labels, features = kit.planted(seed=9)
    cohort = kit.write_table(tmp_path / "new.csv", X, labels, features)
    words = ["predict", model, cohort, "--id", "sample", "-t", "class", "--prevalence", "0.1"]
    out, beside = tmp_path / "p.csv", tmp_path / "validation.json"
    result = kit.run(*words, "--out", out, "--validation", beside)
    assert result.exit_code == 0, result.stderr
    assert "Area under the ROC curve: " in result.stdout and "Calibration: " in result.stdout
    found = json.loads(beside.read_text(encoding="utf-8"))
    assert found["n_samples"] == 36 and found["prevalence"] == 0.1
    # the labels that are validated are those of the model, whatever the prevalence
    plain = parse(kit.run("predict", model, cohort, "--id", "sample").stdout)
    said = [row["prediction"] == "ill" for row in plain[:18]]
    assert found["scores"]["sensitivity"]["value"] == np.mean(said)
    given = json.loads(kit.run(*words, "--json").stdout)
    assert given["validation"] == found and given["notices"] == []
    aside = kit.run(*words)  # the predictions alone go to stdout
    assert "Calibration" in aside.stderr and len(parse(aside.stdout)) == 36
    assert kit.run(*words, "--validation", beside).exit_code == 2  # it is there already
    result = kit.run("predict", model, cohort, "--validation", tmp_path / "v.json")
    assert result.exit_code == 2 and "--validation needs --target" in result.stderr
    kit.write_table(cohort, X, np.where(labels == "ill", "sick", "well"), features)
    result = kit.run(*words)
    assert result.exit_code == 2 and "label 'sick' does not occur in the model" in result.stderr


def test_labels_that_follow_a_prevalence_have_rates_of_their_own(model, tmp_path, kit):
    X, labels, features = kit.planted(n=80, seed=9, shift=0.6)
    cohort = kit.write_table(tmp_path / "new.csv", X, labels, features)
    words = ["predict", model, cohort, "--id", "sample", "-t", "class", "--prevalence", "0.05"]
    result = kit.run(*words)
    rows = parse(result.stdout)
    ill = [row["prediction"] == "ill" for row in rows if row["label"] == "ill"]
    own = [row["prediction"] == "ill" for row in parse(kit.run(*words[:-2]).stdout)]
    assert sum(ill) < sum(own[:40])  # fewer are called ill where it is rare
    assert f"moved to the prevalence have sensitivity {np.mean(ill):.3f}," in result.stderr
    assert f"Sensitivity: {np.mean(own[:40]):.3f} " in result.stderr
    assert "moved to the prevalence" not in kit.run(*words[:-2]).stderr


def test_a_cohort_of_one_class_shows_what_it_can(model, tmp_path, kit):
    X, labels, features = kit.planted(seed=9)
    cohort = kit.write_table(tmp_path / "new.csv", X[18:], labels[18:], features)
    result = kit.run("predict", model, cohort, "--id", "sample", "-t", "class")
    assert result.exit_code == 0, result.stderr
    assert "Specificity: " in result.stderr and "Sensitivity: " not in result.stderr
    assert "has no sample of ill" in result.stderr


def test_two_models_on_one_cohort(model, tmp_path, kit):
    X, labels, features = kit.planted()
    small = GSVPSVM(n_features=1).fit(pd.DataFrame(X, columns=features), labels)
    other = save_model(small, tmp_path / "other.skops")
    X, labels, features = kit.planted(n=80, seed=9, shift=1.0)
    cohort = kit.write_table(tmp_path / "new.csv", X, labels, features)
    words = ["predict", model, cohort, "--id", "sample", "-t", "class"]
    words += ["--against", other]
    beside = tmp_path / "v.json"
    result = kit.run(*words, "--out", tmp_path / "p.csv", "--validation", beside)
    assert result.exit_code == 0, result.stderr
    found = json.loads(beside.read_text(encoding="utf-8"))["against"]
    given = json.loads(kit.run(*words, "--json").stdout)
    assert given["against"] == found and found["remarks"] == []
    # the same numbers as in Python, on what each of the models takes
    frame = pd.DataFrame(X, columns=features)
    expected = compare_external(load_model(model), small, frame, labels, pos_label="ill").to_dict()
    assert {name: found[name] for name in expected} == expected
    assert found["areas"]["first"] > found["areas"]["second"]
    said = f"{found['areas']['first']:.3f} against {found['areas']['second']:.3f}, difference"
    assert said in result.stdout and "(DeLong)" in result.stdout and "(McNemar)" in result.stdout
    assert said in kit.run(*words).stderr  # aside, where the predictions go to stdout
    rare = tmp_path / "rare.skops"
    assert kit.run("recalibrate", model, "--prevalence", "0.1", "--out", rare).exit_code == 0
    result = kit.run(*words[:-1], rare)
    assert "prevalence of 0.5 and of 0.1" in result.stderr and "p = 1.00 (DeLong)" in result.stderr
    for more, said in {
        (): "--against needs --target",
        ("-t", "class"): "nothing.skops: there is no such file",
    }.items():
        result = kit.run("predict", model, cohort, *more, "--against", tmp_path / "nothing.skops")
        assert result.exit_code == 2 and said in result.stderr


def test_values_unlike_training_are_noticed(model, tmp_path, kit):
    X, labels, features = kit.planted(seed=9)
    X[:, 0] *= 1000
    cohort = kit.write_table(tmp_path / "new.csv", X, labels, features)
    result = kit.run("predict", model, cohort, "--id", "sample")
    assert result.exit_code == 0
    assert "Values differ from training" in result.stderr and features[0] in result.stderr
    assert len(parse(result.stdout)) == 36


def test_a_recalibrated_model_is_marked_wherever_it_is_used(model, tmp_path, kit):
    X, labels, features = kit.planted(seed=9, shift=0.8)
    cohort = kit.write_table(tmp_path / "new.csv", X, labels, features)
    again = tmp_path / "again.skops"
    words = ["recalibrate", model, cohort, "--id", "sample", "-t", "class", "--out", again]
    result = kit.run(*words, "--prevalence", "0.1", "--method", "slope")
    assert result.exit_code == 0, result.stderr
    assert "10% of 'ill', slope and intercept by 36 samples of new.csv" in result.stdout
    assert kit.run(*words).exit_code == 2  # it is there already
    result = kit.run("predict", again, cohort, "--id", "sample", "-t", "class")
    assert "probabilities are recalibrated" in result.stderr
    assert "recalibrated to these very samples" in result.stderr
    # what it was recalibrated to is where it is used, unless another prevalence is given
    assert "at a prevalence of 10%" in result.stderr and "as in the cohort" not in result.stderr
    given = json.loads(
        kit.run("predict", again, cohort, "--id", "sample", "-t", "class", "--json").stdout
    )
    assert given["validation"]["recalibration"]["source"] == "new.csv"
    assert given["validation"]["prevalence"] == 0.1
    assert "recalibrated probability of ill" in parse(result.stdout)[0]
    first = kit.run("predict", model, cohort, "--id", "sample", "--prevalence", "0.1")
    only = tmp_path / "rare.skops"
    assert kit.run("recalibrate", model, "--prevalence", "0.1", "--out", only).exit_code == 0
    second = kit.run("predict", only, cohort, "--id", "sample")
    p = [float(row["probability of ill"]) for row in parse(first.stdout)]
    q = [float(row["recalibrated probability of ill"]) for row in parse(second.stdout)]
    np.testing.assert_allclose(p, q, rtol=1e-9)
    # what it is for already counts
    back = kit.run("predict", only, cohort, "--id", "sample", "--prevalence", "0.5")
    plain = kit.run("predict", model, cohort, "--id", "sample")
    p = [float(row["probability of ill"]) for row in parse(plain.stdout)]
    q = [float(row["recalibrated probability of ill"]) for row in parse(back.stdout)]
    np.testing.assert_allclose(p, q, rtol=1e-9)
    for more, said in {
        (): "a prevalence, or a cohort",
        (cohort,): "both TABLE and --target",
        ("--prevalence", "2"): "lies between 0 and 1",
        ("--prevalence", "0.1", "--method", "slope"): "--method slope needs TABLE",
        ("--prevalence", "0.1", "--positive", "sick"): "there is no class 'sick'",
    }.items():
        result = kit.run("recalibrate", model, *more, "--out", tmp_path / "none.skops")
        assert result.exit_code == 2 and said in result.stderr, said
    assert not (tmp_path / "none.skops").exists()
