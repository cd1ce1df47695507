"""Models come back as they were, and nothing else comes back at all."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np
import pytest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from sparsegsvp import load_model, save_model
from sparsegsvp.io import InputError, Log2
from sparsegsvp.io.archive import ARCHIVE_FORMAT, SEAL, archive_digest, zipped
from sparsegsvp.related import GEPSVM


@pytest.fixture
def data():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 6))
    y = np.repeat(["ill", "well"], 20)
    X[:20, 0] += 2
    return X, y


@pytest.fixture
def saved(data, tmp_path):
    return save_model(GEPSVM().fit(*data), tmp_path / "model.skops")


def members_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewritten(path, change, *, reseal=True):
    """Apply a change to the members of an archive, as a forger would (with a new digest)."""
    members = members_of(path)
    change(members)
    if reseal:
        seal = json.loads(members[SEAL])
        seal["digest"] = archive_digest(members)
        members[SEAL] = json.dumps(seal).encode()
    path.write_bytes(zipped(members))
    return path


def test_predicts_identically(data, tmp_path):
    import pandas as pd

    X, y = data
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d", "e", "=f"])
    frame.iloc[3, 1] = np.nan
    model = make_pipeline(SimpleImputer(strategy="median"), Log2(floor=0.5), GEPSVM())
    model.fit(frame, y)
    again = load_model(save_model(model, tmp_path / "m.skops"))
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    np.testing.assert_array_equal(again.decision_function(frame), model.decision_function(frame))
    assert list(again.feature_names_in_) == list(model.feature_names_in_)
    assert again.get_params(deep=False).keys() == model.get_params(deep=False).keys()
    np.testing.assert_array_equal(again[-1].planes_, model[-1].planes_)


def test_equal_models_are_equal_bytes(data, tmp_path):
    first = save_model(GEPSVM().fit(*data), tmp_path / "1.skops").read_bytes()
    second = save_model(GEPSVM().fit(*data), tmp_path / "2.skops").read_bytes()
    assert first == second
    again = save_model(load_model(tmp_path / "1.skops"), tmp_path / "3.skops").read_bytes()
    assert again == first


def test_written_whole_or_not_at_all(data, saved, monkeypatch):
    before = saved.read_bytes()
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
    with pytest.raises(InputError, match="cannot be written"):
        save_model(GEPSVM(delta=2.0).fit(*data), saved)
    assert saved.read_bytes() == before
    assert len(list(saved.parent.iterdir())) == 1


def test_only_models_of_this_package_are_saved(data, tmp_path):
    for model in (
        LogisticRegression().fit(*data),
        {"a": 1},
        make_pipeline(Log2(), LogisticRegression()),
    ):
        with pytest.raises(InputError, match="is not a model of sparsegsvp"):
            save_model(model, tmp_path / "m.skops")
    model = GEPSVM().fit(*data)
    model.hook_ = print
    with pytest.raises(InputError, match="names instead of functions"):
        save_model(model, tmp_path / "m.skops")
    model.hook_ = LogisticRegression
    with pytest.raises(InputError, match=r"_logistic\.LogisticRegression', which loading would"):
        save_model(model, tmp_path / "m.skops")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_cut_short(saved, share):
    content = saved.read_bytes()
    saved.write_bytes(content[: int(share * len(content))])
    with pytest.raises(InputError, match=r"not a model file|damaged"):
        load_model(saved)


def test_every_damaged_byte_is_noticed_or_harmless(data, saved):
    """Flip bytes all over the file: an error that says so, or the same model."""
    content = saved.read_bytes()
    expected = load_model(saved).predict(data[0])
    rng = np.random.default_rng(0)
    refused = 0
    for position in rng.choice(len(content), size=60, replace=False):
        flipped = bytearray(content)
        flipped[position] ^= 0x40
        saved.write_bytes(flipped)
        try:
            again = load_model(saved)
        except InputError:
            refused += 1
        else:
            np.testing.assert_array_equal(again.predict(data[0]), expected)
    assert refused > 30


def test_a_changed_number_is_revealed(saved):
    def change(members):
        name = next(n for n in members if n.endswith(".npy"))
        members[name] = members[name][:-1] + bytes([members[name][-1] ^ 1])

    with pytest.raises(InputError, match="changed after it was saved"):
        load_model(rewritten(saved, change, reseal=False))


def test_a_description_without_a_type_is_refused(saved):
    def change(members):
        members["schema.json"] = b"[]"

    with pytest.raises(InputError, match="not part of a model: 'something without a type'"):
        load_model(rewritten(saved, change))


def forge(members, module, name, loader="ObjectNode"):
    """Put a foreign object among the attributes of the model."""
    schema = json.loads(members["schema.json"])
    schema["content"]["content"]["evil_"] = {
        "__class__": name,
        "__module__": module,
        "__loader__": loader,
        "__id__": 10**6,
    }
    members["schema.json"] = json.dumps(schema).encode()


@pytest.mark.parametrize(
    ("module", "name", "loader"),
    [
        ("os", "system", "FunctionNode"),
        ("os", "system", "TypeNode"),
        ("builtins", "eval", "TypeNode"),
        ("subprocess", "Popen", "ObjectNode"),
        ("numpy", "load", "FunctionNode"),
        ("sklearn.svm._classes", "SVC", "ObjectNode"),
        ("functools", "partial", "PartialNode"),
        ("sparsegsvp.io", "write_atomic", "FunctionNode"),
        ("sparsegsvp.io", "write_atomic", "ObjectNode"),
        ("sparsegsvp.io.models", "os.system", "ObjectNode"),
        ("sparsegsvp.cli.__main__", "main", "ObjectNode"),
        ("builtins", "str", "NoSuchNode"),
        # what our modules import from elsewhere is not ours
        ("sparsegsvp.io.models", "Pipeline", "ObjectNode"),
        ("sparsegsvp.io.models", "BaseEstimator", "ObjectNode"),
        ("sparsegsvp.estimators.pgd", "StandardScaler", "ObjectNode"),
    ],
)
def test_foreign_types_are_refused_before_anything_is_built(saved, module, name, loader):
    forged = rewritten(saved, lambda members: forge(members, module, name, loader))
    with pytest.raises(InputError, match="types that are not part of a model") as caught:
        load_model(forged)
    assert name in str(caught.value)


def test_classes_that_moved_within_their_package_are_found(data, tmp_path):
    """Files of version 0.1 name modules that have other names today."""
    X, y = np.abs(data[0]), data[1]
    old = {GEPSVM: "sparsegsvp.related._gone", Log2: "sparsegsvp.io._transform"}

    def rename(members):
        for kind, module in old.items():
            for name in ("schema.json", SEAL):
                today = kind.__module__.encode()
                for a, b in (
                    (b'"' + today + b'"', b'"' + module.encode() + b'"'),
                    (today + b"." + kind.__name__.encode(), f"{module}.{kind.__name__}".encode()),
                ):
                    members[name] = members[name].replace(a, b)

    for model in (make_pipeline(Log2(), GEPSVM()).fit(X, y), GEPSVM().fit(X, y)):
        path = save_model(model, tmp_path / "m.skops")
        before = path.read_bytes()
        rewritten(path, rename)
        assert b"_gone" in members_of(path)["schema.json"]
        again = load_model(path)
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        assert save_model(again, path).read_bytes() == before

    def to_nowhere(members):
        name = GEPSVM.__module__.encode()
        forged = members["schema.json"].replace(b'"GEPSVM"', b'"Gone"')
        members["schema.json"] = forged.replace(name, b"sparsegsvp.related._gone")

    with pytest.raises(InputError, match=r"not part of a model: 'sparsegsvp.*\._gone\.Gone'"):
        load_model(rewritten(path, to_nowhere))


def test_the_top_type_is_checked(saved):
    def a_list(members):
        schema = json.loads(members["schema.json"])
        wrapped = {
            "__class__": "list",
            "__module__": "builtins",
            "__loader__": "ListNode",
            "content": [schema],
            "__id__": 10**6,
            "protocol": schema["protocol"],
        }
        members["schema.json"] = json.dumps(wrapped).encode()

    def another_name(members):
        seal = json.loads(members[SEAL])
        seal["type"] = "sparsegsvp.estimators.Other"
        members[SEAL] = json.dumps(seal).encode()

    content = saved.read_bytes()
    with pytest.raises(InputError, match="is not a model of sparsegsvp"):
        load_model(rewritten(saved, a_list))
    saved.write_bytes(content)
    with pytest.raises(InputError, match=r"but says 'sparsegsvp\.estimators\.Other"):
        load_model(rewritten(saved, another_name))


def test_archives_that_unpack_too_large(saved):
    with pytest.raises(InputError, match="more than the limit of 0 MB"):
        load_model(saved, max_bytes=1000)

    def bomb(members):
        members["zeros.npy"] = bytes(50 << 20)

    rewritten(saved, bomb)
    assert saved.stat().st_size < 1 << 20
    with pytest.raises(InputError, match="would unpack to 50 MB"):
        load_model(saved, max_bytes=32 << 20)


def test_arrays_that_declare_more_than_they_hold(saved):
    def change(members):
        name = next(n for n in members if n.endswith(".npy"))
        buffer = io.BytesIO()
        header = {"descr": "<f8", "fortran_order": False, "shape": (10**12,)}
        np.lib.format.write_array_header_1_0(buffer, header)
        members[name] = buffer.getvalue() + bytes(64)

    with pytest.raises(InputError, match="does not hold what it declares"):
        load_model(rewritten(saved, change))


def _resized(name, change):
    """Give an array of the model another content, as somebody who can seal it would."""

    def apply(members):
        schema = json.loads(members["schema.json"])
        node = schema["content"]["content"][name]
        if "file" in node:
            array = np.load(io.BytesIO(members[node["file"]]))
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, change(array))
            members[node["file"]] = buffer.getvalue()
        else:
            node["content"] = json.dumps(change(json.loads(node["content"])))
            members["schema.json"] = json.dumps(schema).encode()

    return apply


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("planes_", lambda a: a[:, :-1]),
        ("planes_", lambda a: a.ravel()[:1]),
        ("plane_intercepts_", lambda a: np.append(a, a)[:3]),
        ("support_", lambda a: np.append(a, a)),
        ("support_", lambda a: a[:2]),
        ("support_", lambda a: np.zeros_like(a)),
        ("classes_", lambda a: a[:1]),
        ("n_features_in_", lambda n: n + 1),
        ("n_features_in_", lambda n: 10**12),
        ("n_features_in_", lambda n: -1),
        ("n_features_in_", lambda n: "six"),
    ],
)
def test_parts_that_do_not_fit_together_are_refused(data, saved, name, change):
    with pytest.raises(InputError, match=r"do not fit together \(.*; do not use it unless"):
        load_model(rewritten(saved, _resized(name, change)))


def test_names_that_are_not_of_the_features_are_refused(data, tmp_path):
    import pandas as pd

    frame = pd.DataFrame(data[0], columns=list("abcdef"))
    path = save_model(GEPSVM().fit(frame, data[1]), tmp_path / "m.skops")

    def shorten(members):
        schema = json.loads(members["schema.json"])
        names = schema["content"]["content"]["feature_names_in_"]
        names["content"].pop()
        names["shape"]["content"][0].update(content="5", __id__=10**6)
        members["schema.json"] = json.dumps(schema).encode()

    with pytest.raises(InputError, match="the names are not those of the features"):
        load_model(rewritten(path, shorten))


def test_other_archives(data, saved, tmp_path):
    import skops.io

    plain = tmp_path / "plain.skops"
    skops.io.dump(GEPSVM().fit(*data), plain)
    with pytest.raises(InputError, match="was not written by save_model"):
        load_model(plain)

    def newer(members):
        seal = json.loads(members[SEAL])
        seal["format"] = ARCHIVE_FORMAT + 1
        members[SEAL] = json.dumps(seal).encode()

    content = saved.read_bytes()
    with pytest.raises(InputError, match=r"newer version .* upgrade sparsegsvp"):
        load_model(rewritten(saved, newer))
    with pytest.raises(InputError, match="no such file"):
        load_model(tmp_path / "nowhere.skops")

    saved.write_bytes(content)

    def nested(members):
        members["schema.json"] = b"[" * 100_000 + b"]" * 100_000

    with pytest.raises(InputError, match="description is damaged"):
        load_model(rewritten(saved, nested))


@pytest.mark.parametrize("name", ["GSVPSVM", "GSVPSVMCV", "PGDGSVPSVM"])
def test_the_estimators_of_the_package(data, tmp_path, name):
    import sparsegsvp

    settings = {
        "GSVPSVM": {"delta": [0.05, 0.1], "q": 0.5},
        "GSVPSVMCV": {"tau": (1.0,), "n_deltas": 5, "cv": 3},
        "PGDGSVPSVM": {"q": 0.5, "delta": (0.01, 0.01), "max_iter": 200, "tol": 1.0},
    }
    X, y = data
    model = getattr(sparsegsvp, name)(**settings[name]).fit(X, y)
    again = load_model(save_model(model, tmp_path / "m.skops"))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    if hasattr(model, "predict_proba"):
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert vars(again).keys() == vars(model).keys()
    assert again.get_params() == model.get_params()


@pytest.mark.parametrize("name", ["Log2", "MedianImputer"])
def test_a_transformer_by_itself(data, tmp_path, name):
    from sparsegsvp.estimators import MedianImputer

    X = np.abs(data[0]) + 1
    model = {"Log2": Log2, "MedianImputer": MedianImputer}[name]().fit(X)
    again = load_model(save_model(model, tmp_path / "m.skops"))
    np.testing.assert_array_equal(again.transform(X), model.transform(X))


def test_every_related_method(data, tmp_path):
    """What joins the package joins the files: no list to extend."""
    from sparsegsvp import related

    X, y = data
    for name in related.__all__:
        kind = getattr(related, name)
        if not hasattr(kind, "fit"):
            continue
        model = kind().fit(X, y)
        again = load_model(save_model(model, tmp_path / f"{name}.skops"))
        assert type(again) is type(model)
        if hasattr(model, "predict"):
            np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_models_saved_before_parameters_had_names_still_load(data, tmp_path):
    """Version 0.1 wrote plain pipelines with ``penalty=None`` and no ``decision_``."""
    from sparsegsvp import GSVPSVM

    X, y = data
    model = make_pipeline(SimpleImputer(strategy="median"), GSVPSVM(penalty=None)).fit(X, y)
    expected = model.predict_proba(X)
    del model[-1].decision_
    again = load_model(save_model(model, tmp_path / "m.skops"))
    assert type(again) is type(model)
    np.testing.assert_array_equal(again.predict_proba(X), expected)
    again.fit(X, y)
    np.testing.assert_array_equal(again.predict_proba(X), expected)
