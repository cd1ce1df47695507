"""Every estimator of the package, found by itself, in a form that is fitted in a blink.

A new estimator joins the laws and the extreme values by being there. One that cannot be made
without arguments, or takes long by default, has a line in `MADE`.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

PACKAGES = ("estimators", "related", "evaluation", "io")
SIZE = 3  # of the panels, and the number of features that `planted` has


def estimators() -> dict[str, type]:
    """Return the estimators of the package by name; modules called base hold their parts."""
    found: dict[str, type] = {}
    for package in PACKAGES:
        root = importlib.import_module(f"sparsegsvp.{package}")
        for entry in pkgutil.iter_modules(root.__path__):
            if entry.name != "base":
                module = importlib.import_module(f"{root.__name__}.{entry.name}")
                found |= {
                    name: kind for name, kind in vars(module).items() if _is_one(kind, module)
                }
    return found


def _is_one(kind: Any, module: Any) -> bool:
    """Whether something that a module holds is an estimator, defined there and complete."""
    return (
        isinstance(kind, type)
        and issubclass(kind, BaseEstimator)
        and kind.__module__ == module.__name__
        and not kind.__name__.startswith("_")
        and hasattr(kind, "fit")
    )


@dataclass(frozen=True)
class Case:
    """An estimator in one setting."""

    name: str
    make: Callable[[], Any]

    def tags(self) -> Any:
        return get_tags(self.make())

    @property
    def is_binary(self) -> bool:
        tags = self.tags().classifier_tags
        return tags is not None and not tags.multi_class

    @property
    def takes_sparse(self) -> bool:
        return bool(self.tags().input_tags.sparse)

    @property
    def takes_gaps(self) -> bool:
        model = self.make()
        first = model.steps[0][1] if hasattr(model, "steps") else model
        return bool(get_tags(first).input_tags.allow_nan)

    @property
    def treats_values(self) -> bool:
        """Whether it gives back every column, treated, rather than a panel or classes."""
        return isinstance(self.make(), OneToOneFeatureMixin)

    @property
    def selects(self) -> bool:
        return hasattr(last(self.make()), "get_support")

    @property
    def has_size(self) -> bool:
        """Whether the size of its panel is given."""
        return getattr(last(self.make()), "n_features", None) == SIZE

    @property
    def is_search(self) -> bool:
        return hasattr(last(self.make()), "cv")

    @property
    def takes_weights(self) -> bool:
        return "sample_weight" in inspect.signature(last(self.make()).fit).parameters

    def bare(self) -> Case:
        """Return the case without a scaler of scikit-learn's before it, which has its own ways."""
        model = self.make()
        own = type(model).__module__.startswith("sparsegsvp")
        return self if own else Case(self.name, partial(clone, last(model)))

    def fit(self, X: Any, y: Any, *, weight: Any = None, cv: Any = None, batch: Any = None) -> Any:
        """Fit a new one; ``cv`` are the folds of a search, ``batch`` those of a centring step."""
        model = self.make()
        if cv is not None and self.is_search:
            last(model).set_params(cv=cv)
        more = {}
        if weight is not None:
            name = "sample_weight"
            if hasattr(model, "steps"):
                name = f"{model.steps[-1][0]}__{name}"
            more[name] = weight
        if self.treats_values and "batch" in inspect.signature(model.fit).parameters:
            more["batch"] = np.arange(np.shape(X)[0]) % 2 if batch is None else batch
        return model.fit(X, y, **more)


def last(model: Any) -> Any:
    """Return the last step of a pipeline, or the model itself."""
    return model.steps[-1][1] if hasattr(model, "steps") else model


def _scaled(model: Any) -> Any:
    return make_pipeline(StandardScaler(), model)


def _piped(kinds: dict[str, type]) -> Any:
    steps = [("impute", kinds["MedianImputer"]()), ("model", kinds["GSVPSVM"](n_features=SIZE))]
    return kinds["PanelPipeline"](steps)


# What is made otherwise than by ``kind(n_features=SIZE)`` or, without that parameter, ``kind()``:
# one setting, or several by name.
MADE: dict[str, Callable[[dict[str, type]], Any]] = {
    "GSVPSVM": lambda kinds: {
        "": kinds["GSVPSVM"](n_features=SIZE),
        "at delta": kinds["GSVPSVM"](delta=0.3),
        "lq, elbow, scaled": kinds["GSVPSVM"](
            q=0.5, delta=0.2, selection="elbow", decision="scaled", pool=0.2
        ),
        "cut, distance": kinds["GSVPSVM"](
            delta=0.3, tau=3.0, refit=False, decision="distance", tol=1e-9
        ),
    },
    "GSVPSVMCV": lambda kinds: {
        "": kinds["GSVPSVMCV"](n_deltas=4, cv=3, tau=1.0),
        "to a size": kinds["GSVPSVMCV"](n_features=SIZE, cv=3, decision="calibrated"),
    },
    "PGDGSVPSVM": lambda kinds: {
        "": kinds["PGDGSVPSVM"](max_iter=150),
        "lq": kinds["PGDGSVPSVM"](q=0.5, max_iter=150),
    },
    "Panel": lambda kinds: kinds["Panel"](list(range(SIZE))),
    "PanelPipeline": _piped,
    "StabilitySelection": lambda kinds: kinds["StabilitySelection"](
        kinds["GSVPSVM"](n_features=SIZE), n_resamples=4
    ),
    "RandomPanel": lambda kinds: kinds["RandomPanel"](SIZE, random_state=0),
    "TreeImportance": lambda kinds: {
        "": kinds["TreeImportance"](SIZE, n_trees=10, random_state=0),
        "boosted": kinds["TreeImportance"](SIZE, boosted=True, n_trees=10, random_state=0),
    },
    # as `default_methods` has them
    "ElasticNetSelector": lambda kinds: _scaled(kinds["ElasticNetSelector"](SIZE)),
    "L1Logistic": lambda kinds: _scaled(kinds["L1Logistic"](SIZE)),
    "RecursiveElimination": lambda kinds: _scaled(kinds["RecursiveElimination"](SIZE)),
}


def cases() -> list[Case]:
    """Return every estimator in every setting that is tried."""
    kinds = estimators()
    assert MADE.keys() <= kinds.keys(), f"gone: {sorted(MADE.keys() - kinds.keys())}"
    found = []
    for name, kind in kinds.items():
        if name in MADE:
            made = MADE[name](kinds)
            settings = made if isinstance(made, dict) else {"": made}
        else:
            sized = "n_features" in inspect.signature(kind).parameters
            settings = {"": kind(n_features=SIZE) if sized else kind()}
        for setting, model in settings.items():
            said = f"{name} {setting}".strip()
            found.append(Case(said, partial(clone, model)))
    return found


ANSWERS = ("distances", "decision_function", "predict_proba", "predict", "transform")


def answers(
    model: Any, X: Any, batch: Any = None, methods: Sequence[str] = ANSWERS
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield what a fitted model says of rows, method by method."""
    for method in methods:
        if method == "transform" and not isinstance(model, OneToOneFeatureMixin):
            continue  # the columns of a panel, as they are
        if hasattr(model, method):
            ask = getattr(model, method)
            more = {}
            if "batch" in inspect.signature(ask).parameters:
                more["batch"] = np.zeros(np.shape(X)[0], int) if batch is None else batch
            found = ask(X, **more)
            yield method, found.toarray() if hasattr(found, "toarray") else np.asarray(found)


def panel(model: Any) -> list[int] | None:
    """Return the columns that a fitted model selects; None if it selects none."""
    chooser = model if hasattr(model, "get_support") else last(model)
    return chooser.get_support(indices=True).tolist() if hasattr(chooser, "get_support") else None


def planted(
    rng: np.random.Generator, n: int, m: int, n_classes: int = 2, effect: float = 2.5
) -> tuple[np.ndarray, np.ndarray]:
    """Return a table whose first `SIZE` columns tell the classes apart, and the labels."""
    y = np.sort(np.arange(n) % n_classes)
    X = rng.normal(size=(n, m))
    X[:, :SIZE] += effect * (y[:, None] - (n_classes - 1) / 2) * rng.choice([-1, 1], SIZE)
    return X, y
