"""Models come back as they were, and nothing else comes back at all."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from sparsegsvp import related
from sparsegsvp.estimators.pipeline import Log2
from sparsegsvp.io import InputError, load_model, save_model
from sparsegsvp.related import GEPSVM


@pytest.fixture
def data():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 6))
    X[:20, 0] += 2
    return X, np.repeat(["ill", "well"], 20)


@pytest.fixture
def saved(data, tmp_path):
    return save_model(GEPSVM().fit(*data), tmp_path / "model.skops")


def changed(path: Path, change) -> Path:
    """Apply a change to the schema of a model file, as a forger would."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(members["schema.json"])
    members["schema.json"] = json.dumps(change(schema) or schema).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def refusal(path) -> str:
    with pytest.raises(InputError) as caught:
        load_model(path)
    return str(caught.value)


def test_predicts_identically(data, tmp_path):
    import pandas as pd

    X, y = data
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d", "e", "=f"])
    frame.iloc[3, 1] = np.nan
    model = make_pipeline(SimpleImputer(strategy="median"), Log2(floor=0.5), GEPSVM())
    model.fit(frame, y)
    again = load_model(save_model(model, tmp_path / "m.skops"))
    np.testing.assert_array_equal(again.decision_function(frame), model.decision_function(frame))
    assert list(again.feature_names_in_) == list(model.feature_names_in_)


def test_every_related_method_comes_back_and_equal_models_are_equal_bytes(data, tmp_path):
    X, y = data
    for name in sorted(set(related.__all__) & {"GEPSVM", "ReGEC", "NPSVM", "GSVDSelector"}):
        model = getattr(related, name)().fit(X, y)
        first = save_model(model, tmp_path / "1.skops").read_bytes()
        again = load_model(tmp_path / "1.skops")
        method = "predict" if hasattr(model, "predict") else "transform"
        np.testing.assert_array_equal(getattr(again, method)(X), getattr(model, method)(X))
        assert save_model(again, tmp_path / "2.skops").read_bytes() == first, name


def test_only_models_of_this_package_are_saved(data, tmp_path):
    for model in (LogisticRegression().fit(*data), make_pipeline(LogisticRegression()), 7):
        with pytest.raises(InputError, match="is not a model of sparsegsvp"):
            save_model(model, tmp_path / "m.skops")
    with pytest.raises(InputError, match=r"not part of a model|cannot be saved|can be saved"):
        save_model(GEPSVM(delta=np.mean), tmp_path / "m.skops")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("module", "name", "loader"),
    [
        ("os", "system", "TypeNode"),
        ("builtins", "eval", "FunctionNode"),
        ("sklearn.linear_model._logistic", "LogisticRegression", "ObjectNode"),
        ("sparsegsvp.related.base", "BaseEstimator", "ObjectNode"),  # imported there, not ours
        ("sparsegsvp.io.models", "save_model", "ObjectNode"),
        ("sparsegsvp.nowhere", "Model", "ObjectNode"),
        ("numpy", "load", "ObjectNode"),
        ("functools", "partial", "PartialNode"),
    ],
)
def test_foreign_types_are_refused_before_anything_is_built(saved, module, name, loader):
    def change(schema):
        schema["content"]["extra"] = {
            "__class__": name, "__module__": module, "__loader__": loader, "__id__": 999,
        }  # fmt: skip

    assert f"types that are not part of a model: '{module}.{name}'" in refusal(
        changed(saved, change)
    )


def test_what_is_no_model_is_refused(data, saved, tmp_path):
    whole = saved.read_bytes()
    path = tmp_path / "x.skops"
    for share in (0.1, 0.5, 0.99):
        path.write_bytes(whole[: int(share * len(whole))])
        assert "model" in refusal(path)
    path.write_bytes(pickle.dumps(GEPSVM()))
    assert "not a model" in refusal(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", "x")
    assert "not a model" in refusal(path)
    assert "there is no such file" in refusal(tmp_path / "none.skops")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("schema.json", bytes(1 << 27))
    assert "it unpacks to 128 MB" in refusal(path)
    buffer = io.BytesIO()
    np.save(buffer, np.array([print], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(saved) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, buffer.getvalue() if name.endswith(".npy") else content)
    assert "allow_pickle" in refusal(path) or "damaged" in refusal(path)


def test_a_model_of_another_version_is_refused(saved):
    def change(schema):
        del schema["content"]["content"][GEPSVM._get_param_names()[0]]

    assert "model of another version of sparsegsvp; fit it again" in refusal(changed(saved, change))


def test_every_damaged_byte_is_noticed_or_harmless(data, saved):
    """Arrays have checksums; whatever is loaded at all predicts as before."""
    X, _ = data
    whole, expected = saved.read_bytes(), load_model(saved).predict(X)
    rng = np.random.default_rng(0)
    for at in rng.integers(len(whole), size=120):
        broken = bytearray(whole)
        broken[at] ^= int(rng.integers(1, 256))
        saved.write_bytes(broken)
        try:
            model = load_model(saved)
        except InputError:
            continue
        np.testing.assert_array_equal(model.predict(X), expected)
