"""scikit-learn's own checks, on every method of the package, and how a method joins it."""

import subprocess
import sys

from sklearn.utils.estimator_checks import parametrize_with_checks

from sparsegsvp import related


@parametrize_with_checks([getattr(related, name)() for name in related.__all__])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


METHODS = [
    "GEPSVM",
    "IGEPSVM",
    "IRQM",
    "NPSVM",
    "GSVDSelector",
    "GeneShaving",
    "HOGSVDSelector",
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
