"""scikit-learn's own checks, on every method of the package, and how a method joins it."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from sparsegsvp import load_model, related

SAVED = Path(__file__).parent / "saved_by_0.1"


@parametrize_with_checks([getattr(related, name)() for name in related.__all__])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


METHODS = [
    "GEPSVM",
    "IGEPSVM",
    "NPSVM",
    "GSVDSelector",
    "GeneShaving",
    "L1ReGEC",
    "ReGEC",
    "SparsePSVM",
    "TruncatedRayleighFlow",
]


def test_the_methods_of_the_paper_are_there():
    assert related.__all__ == METHODS


def test_docstrings_are_whole():
    for name in related.__all__:
        text = getattr(related, name).__doc__
        assert "%(" not in text
        for entry in ("standardize : bool", "support_ : ndarray", "classes_ : ndarray"):
            assert f"\n{entry}" in text, (name, entry)


@pytest.mark.parametrize("file", sorted(SAVED.glob("*.skops")), ids=lambda file: file.stem)
def test_models_saved_by_the_first_version_load(file):
    """They name modules such as ``sparsegsvp.related._gepsvm``, which are gone."""
    model = load_model(file)
    kind = getattr(related, file.stem)
    assert type(model) is kind
    assert model.get_params().keys() == kind().get_params().keys()
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 12)), np.repeat([0, 1], 20)
    X[20:, :3] += 1.5
    again = kind().fit(X, y)
    assert vars(model).keys() == vars(again).keys()
    if kind is related.SparsePSVM:  # its ridge is in another unit since; what it saved still works
        assert (
            model.predict(X) == model.classes_[(model.decision_function(X) > 0).astype(int)]
        ).all()
        return
    np.testing.assert_array_equal(model.support_, again.support_)
    np.testing.assert_array_equal(model.transform(X), X[:, model.support_])
    if hasattr(model, "predict"):
        np.testing.assert_allclose(model.coef_, again.coef_, atol=1e-6)
        np.testing.assert_array_equal(model.predict(X), again.predict(X))


def test_every_method_of_the_first_version_has_a_saved_model():
    assert {file.stem for file in SAVED.glob("*.skops")} >= set(METHODS) - {"IGEPSVM"}


NEW_METHOD = """
from sparsegsvp.related.gepsvm import GEPSVM

class MadeUp(GEPSVM):
    '''A method of one file.'''
"""


def test_a_file_is_all_that_a_new_method_takes(tmp_path):
    """A module beside the others is found by the package and by the comparison."""
    (tmp_path / "made_up.py").write_text(NEW_METHOD)
    script = f"""
import importlib.machinery, sys

class Also(importlib.machinery.PathFinder):
    '''Lets the package look for its modules in one more folder.'''
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        spec = super().find_spec(name, path, target)
        if name == "sparsegsvp.related":
            spec.submodule_search_locations.append({str(tmp_path)!r})
        return spec

sys.meta_path.insert(0, Also)
from sparsegsvp.evaluation import default_methods
from sparsegsvp.related import MadeUp
assert type(default_methods()["MadeUp"]) is MadeUp
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=100)
