"""A small stand-in for an evaluation: real folds of a simple procedure, frames as the real ones.

The procedure takes the k features with the largest F statistic of the training part and a
balanced logistic regression on them, so that every number on the page is plausible. Only what
`sparsegsvp.report` reads is there.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.feature_selection import f_classif
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix, roc_auc_score, roc_curve
from sklearn.model_selection import StratifiedKFold

from sparsegsvp.io.roles import ColumnRole

SIZES = (1, 2, 3, 5, 8, 13, 21, 30)
#: Kinds of runs that conftest makes a document of.
CASES = ("signal", "weak", "none", "three", "twelve", "batches", "hostile")
HOSTILE = ("<script>alert(1)</script>", "=cmd|'/c calc'!A1", '"><img src=x onerror=alert(1)>')


class Record(SimpleNamespace):
    """Fields with ``to_dict``, as the evaluation's records have."""

    def to_dict(self) -> dict[str, Any]:
        return {k: v.to_dict() if isinstance(v, Record) else v for k, v in vars(self).items()}


def interval(value: float, reach: float) -> Record:
    return Record(
        value=float(value), low=max(0.0, value - reach), high=min(1.0, value + reach), level=0.95
    )


def make_table(n=120, m=60, effect=1.2, classes=("ill", "well"), seed=0, **more: Any) -> Any:
    """A table with informative first features; ``more`` replaces fields."""
    rng = np.random.default_rng(seed)
    codes = np.sort(rng.permutation(np.arange(n) % len(classes)))
    X = rng.normal(size=(n, m))
    for j in range(min(3 * len(classes), m)):
        X[:, j] += effect * (codes == j % len(classes)) * (1.0 - 0.06 * j)
    X[:, m - 1] = X[:, 0] + 0.4 * rng.normal(size=n)  # goes along with the first
    names = tuple(f"GENE{j + 1}" for j in range(m))
    table = SimpleNamespace(
        X=X,
        y=np.array(classes, dtype=object)[codes],
        classes=tuple(sorted(classes)),
        feature_names=names,
        sample_names=np.array([f"P{i:03d}" for i in range(n)], dtype=object),
        groups=None,
        batches={},
        covariates={},
        target="state",
        positive_class="ill" if len(classes) == 2 else None,
        positive_guessed=len(classes) == 2,
        source="planted.csv",
        digest="0" * 64,
        record=(f"read {n} samples and {m} features from planted.csv",),
        notices=(),
        dropped={"note": "text"},
        n_missing=0,
        roles=(ColumnRole("state", "target", "asked for"),),
    )
    for name, value in more.items():
        setattr(table, name, value)
    return table


class Judged:
    """What an evaluation and a cohort share: curves of the positive class of two."""

    classes: tuple[str, ...]
    positive: str | None
    prevalence: float | None
    truth: np.ndarray
    probability: np.ndarray

    def _rates(self, cut: float) -> tuple[float, float]:
        yes, called = self.truth, self.probability >= cut
        return float(called[yes].mean()), float((~called[~yes]).mean())

    def thresholds(self, prevalence=None):
        if self.positive is None:
            return None
        rows = []
        for cut in sorted({0.1, 0.25, 0.5, 0.75, 0.9, self.prevalence}):
            sensitivity, specificity = self._rates(cut)
            row = {"threshold": cut, "own": cut == self.prevalence, "net_benefit": 0.1}
            for name, value in (
                ("sensitivity", sensitivity), ("specificity", specificity), ("ppv", 0.8),
                ("npv", np.nan if cut == 0.1 else 0.9),
            ):  # fmt: skip
                row |= {name: value, f"{name}_low": value - 0.1, f"{name}_high": value + 0.05}
            rows.append(row)
        return pd.DataFrame(rows)

    def slider(self):
        if self.positive is None:
            return None
        cuts = np.linspace(0.005, 0.995, 100)
        odds = self.prevalence / (1 - self.prevalence)
        rates = [self._rates(cut * odds / (cut * odds + 1 - cut)) for cut in cuts]
        yes, no = float(self.truth.sum()), float((~self.truth).sum())
        return pd.DataFrame(
            {
                "threshold": cuts,
                "tp": [yes * s for s, _ in rates],
                "fp": [no * (1 - t) for _, t in rates],
                "tn": [no * t for _, t in rates],
                "fn": [yes * (1 - s) for s, _ in rates],
            }
        )

    def decision_curve(self, prevalence=None):
        if self.positive is None:
            return None
        share = self.prevalence if prevalence is None else prevalence
        rows = []
        for cut in np.linspace(0.01, 0.99, 50):
            s, t = self._rates(cut)
            odds = cut / (1 - cut)
            value = share * s - (1 - share) * (1 - t) * odds
            everyone = share - (1 - share) * odds
            rows.append((cut, value, value - 0.04, value + 0.04, everyone))
        names = ["threshold", "net_benefit", "low", "high", "treat_all"]
        return pd.DataFrame(rows, columns=names)

    def calibration_curve(self):
        if self.positive is None:
            return None
        order = np.argsort(self.probability)
        parts = np.array_split(order, 5)
        rows = [(self.probability[p].mean(), self.truth[p].mean(), p.size) for p in parts]
        return pd.DataFrame(rows, columns=["predicted", "observed", "count"])

    def roc_curve(self):
        if self.positive is None:
            return None
        fpr, tpr, _ = roc_curve(self.truth, self.probability)
        grid = np.linspace(0, 1, 101)
        return pd.DataFrame({"fpr": grid, "tpr": np.interp(grid, fpr, tpr)})

    def predictive_values(self, prevalence=None):
        return {"ppv": interval(prevalence or 0.8, 0.1), "npv": interval(0.9, 0.05)}

    def _line(self):
        if self.positive is None:
            return None
        slope = Record(value=0.9, low=0.6, high=1.3, level=0.95)
        return Record(
            intercept=Record(value=-0.05, low=-0.4, high=0.3, level=0.95),
            slope=slope,
        )


def _order(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.argsort(-np.nan_to_num(f_classif(X, y)[0]), kind="stable")


class Evaluation(Judged):
    """An evaluation of the simple procedure, with a panel of ``size`` features."""

    def __init__(self, table: Any, answer: str = "signal", size: int = 4, **more: Any) -> None:
        X, y = np.nan_to_num(table.X), np.asarray(table.y, dtype=str)
        self.classes = tuple(sorted(set(y)))
        binary = len(self.classes) == 2
        self.positive = table.positive_class if binary else None
        self.class_counts = tuple(int((y == c).sum()) for c in self.classes)
        self.n_samples, self.n_features = X.shape
        self.n_groups, self.feature_names = None, table.feature_names
        self.prior = "equal"
        self.prevalence = float((y == self.positive).mean()) if binary else None
        self.sizes = [s for s in SIZES if s <= X.shape[1]]
        order = _order(X, y)
        self.panel = tuple(int(f) for f in order[:size])
        self._order, self._size = order, size
        frames, folds, by_size = [], [], {s: [] for s in self.sizes}
        for repeat in range(2):
            splitter = StratifiedKFold(4, shuffle=True, random_state=repeat)
            for fold, (train, test) in enumerate(splitter.split(X, y)):
                best = _order(X[train], y[train])
                for s in self.sizes:
                    fit = self._fit(X[train][:, best[:s]], y[train])
                    hits = fit.predict(X[test][:, best[:s]]) == y[test]
                    by_size[s].append([hits[y[test] == c].mean() for c in self.classes])
                fit = self._fit(X[train][:, best[:size]], y[train])
                proba = fit.predict_proba(X[test][:, best[:size]])
                columns = {"sample": test, "repeat": repeat, "fold": fold, "truth": y[test]}
                columns["prediction"] = np.array(self.classes)[proba.argmax(axis=1)]
                for k, label in enumerate(self.classes):
                    columns[f"probability_{label}"] = columns[f"decision_{label}"] = proba[:, k]
                frames.append(pd.DataFrame(columns))
                folds.append((repeat, fold, train.size, test.size, 0.9, 0.9, size))
        self.predictions = pd.concat(frames, ignore_index=True)
        names = ["repeat", "fold", "n_train", "n_test", "balanced_accuracy", "roc_auc", "size"]
        self.folds = pd.DataFrame(folds, columns=names)
        truth, called = self.predictions["truth"], self.predictions["prediction"]
        self.confusion = confusion_matrix(truth, called, labels=self.classes) / 2
        rates = np.diag(self.confusion) / self.confusion.sum(axis=1)
        value = float(rates.mean())
        reach = {"weak": value - 1 / len(rates) + 0.02}.get(answer, 0.07)
        self.scores = {"balanced_accuracy": interval(value, reach)}
        if binary:
            at = self.classes.index(self.positive)
            self.truth = np.asarray(truth == self.positive)
            self.probability = np.asarray(self.predictions[f"probability_{self.positive}"])
            area = roc_auc_score(self.truth, self.probability)
            found = {"roc_auc": area, "sensitivity": rates[at], "specificity": rates[1 - at]}
            found |= {"ppv": 0.8, "npv": 0.9, "accuracy": value, "brier": 0.1}
        else:
            found = {"accuracy": value, "brier": 0.2}
            found |= {f"recall {c}": rate for c, rate in zip(self.classes, rates)}
        self.scores |= {name: interval(v, 0.06) for name, v in found.items()}
        self.calibration = self._line()
        self.size_range = (float(size), max(1, size - 2), size + 3)
        self.model = self._final(size)
        self.models = {s: self._final(s) for s in self.sizes}
        self.verdict = self._verdict(answer, value)
        means = {s: float(np.mean(v)) for s, v in by_size.items()}
        recalls = {s: np.mean(v, axis=0) for s, v in by_size.items()}
        self.sized = {s: Sized(v) for s, v in recalls.items()}
        self.stability = Stability(self, means)
        self.ladder = pd.DataFrame(
            [
                {
                    "size": s, "balanced_accuracy": means[s], "low": means[s] - 0.06,
                    "high": min(means[s] + 0.05, 1.0), "roc_auc": means[s] if binary else np.nan,
                    "roc_auc_low": means[s] - 0.05, "roc_auc_high": means[s],
                    "stability": 0.8 / s**0.3, "stability_noise": 0.02,
                    "chosen_again": 0.9 / s**0.2,
                    "chosen_again_noise": 0.05, "features": tuple(int(f) for f in order[:s]),
                    "names": tuple(self.feature_names[f] for f in order[:s]),
                }
                for s in self.sizes
            ]
        )  # fmt: skip
        self.batches, self.adjusted, self.flags = (), None, ()
        for name, part in more.items():
            setattr(self, name, part)

    @staticmethod
    def _fit(X: np.ndarray, y: np.ndarray) -> LogisticRegression:
        return LogisticRegression(class_weight="balanced").fit(X, y)

    def _final(self, size: int) -> Any:
        planes = np.zeros((len(self.classes), self.n_features))
        planes[:, self._order[:size]] = np.linspace(-1, 1, len(self.classes))[:, None]
        planes[:, self._order[0]] += 0.5
        return Record(
            classes_=np.array(self.classes), planes_=planes,
            plane_intercepts_=np.linspace(-0.5, 0.5, len(self.classes)), tau_=0.7,
            decision_="logistic", quotients_=np.linspace(0.5, 0.2, size),
            panel_coef_=np.ones((1, size)), panel_intercept_=np.zeros(1),
            get_params=lambda deep=False: {"cv": 5, "rule": "paired", "n_jobs": None},
        )  # fmt: skip

    def _verdict(self, answer: str, value: float) -> Record:
        chance = 1 / len(self.classes)
        draws = np.random.default_rng(1).normal(chance, 0.05, 99).clip(0, 1)
        p = {"signal": 0.01, "weak": 0.03, "inconclusive": 0.08, "none": 0.42}.get(answer)
        return Record(
            answer=answer, p_value=p, n_draws=0 if p is None else 99, at_most=p == 0.01,
            stopped_early=answer == "none", statistic="sizes", statistic_sizes=(1, 3, 10),
            scheme="free", observed=None if p is None else value,
            draws=() if p is None else tuple(draws), chance=chance,
            reason="no test" if p is None else None,
        )  # fmt: skip


class Sized:
    """Predictions of exactly so many features."""

    def __init__(self, recalls: np.ndarray) -> None:
        self._recalls = recalls

    def recalls(self, n_classes: int) -> np.ndarray:
        return self._recalls


class Stability:
    """How often half samples choose the features, decaying along the order."""

    def __init__(self, evaluation: Evaluation, means: dict[int, float]) -> None:
        self.n_pairs, self.index, self.index_noise = 25, 0.62, 0.03
        self.size_median, self.error_bound, self.n_stable, self.threshold = 4.0, 0.4, 3, 0.6
        self._evaluation, self.share = evaluation, 1.0

    def chosen_again(self, size=None):
        names, order = self._evaluation.feature_names, self._evaluation._order
        rows = []
        for i, f in enumerate(order[: size or self._evaluation._size]):
            other = len(names) - 1 if f == 0 else 0
            stand_ins = ()
            if i == 0:
                stand_ins = (
                    {"feature": other, "name": names[other], "correlation": 0.87, "loss": 0.01},
                )
            rows.append(
                {
                    "feature": int(f), "name": names[f], "noise": 0.04, "stand_ins": stand_ins,
                    "frequency": self.share * (0.95 - 0.9 * i / 40),
                    "with_stand_ins": self.share * (0.98 - 0.9 * i / 45),
                }
            )  # fmt: skip
        return pd.DataFrame(rows)


class Cohort(Judged):
    """Another cohort like the table, whose probabilities are a little off."""

    def __init__(self, table: Any, evaluation: Evaluation, seed: int = 5) -> None:
        rng = np.random.default_rng(seed)
        y = np.asarray(table.y, dtype=str)[::2]
        self.classes, self.positive = evaluation.classes, evaluation.positive
        self.class_counts = tuple(int((y == c).sum()) for c in self.classes)
        self.n_samples = int(y.size)
        self.truth = y == self.positive
        self.prevalence, self.observed_prevalence = float(self.truth.mean()), True
        self.probability = (0.5 + 0.35 * (self.truth - 0.5) + rng.normal(0, 0.15, y.size)).clip(
            0.01, 0.99
        )
        called = np.where(self.probability > 0.5, self.positive, "well")
        self.confusion = confusion_matrix(y, called, labels=self.classes)
        value = float((np.diag(self.confusion) / self.confusion.sum(axis=1)).mean())
        area = roc_auc_score(self.truth, self.probability)
        found = {"balanced_accuracy": value, "roc_auc": area, "ppv": 0.7, "npv": 0.8, "brier": 0.2}
        self.scores = {name: interval(v, 0.08) for name, v in found.items()}
        self.calibration = self._line()
        self.flags = (Record(code="few", numbers={"class": "ill", "count": 8}),)
        self.shift = (
            Record(feature="GENE1", shift=1.4, factor=2.2, shifted=True, scaled=True),
            Record(feature="GENE2", shift=-0.1, factor=None, shifted=False, scaled=False),
        )


def audit(table: Any) -> Record:
    """A batch variable that hangs together with the classes."""
    names = ("plate 1", "plate 2", "plate 3")
    counts = ((30, 10), (20, 20), (10, 30))
    unseen = Record(
        score=interval(0.71, 0.1), ordinary=0.86, loss=interval(0.15, 0.1),
        recalls=((0.7, 0.8), (0.6, None), (0.9, 0.5)), not_left_out=(), together=False, n_train=80,
    )  # fmt: skip
    return Record(
        name="plate", batches=names, classes=tuple(sorted(set(table.y))), counts=counts,
        accuracy=0.68, shuffled=0.52, p_value=0.01, strength=0.4, confounded=True, complete=False,
        lost=True, unseen=unseen,
    )  # fmt: skip


def comparison() -> Any:
    """Three methods and the random panel at three sizes; one method fails at one."""
    rows = []
    for k, method in enumerate(("GSVPSVM", "lasso", "<b>forest</b>", "random panel")):
        for size in (2, 4, 8):
            value = 0.9 - 0.08 * k + 0.002 * size
            failed = method == "lasso" and size == 2
            rows.append(
                {
                    "method": method, "size": size, "status": "failed" if failed else "ok",
                    "error": "no convergence" if failed else None,
                    "balanced_accuracy": np.nan if failed else value,
                    "low": np.nan if failed else value - 0.05,
                    "high": np.nan if failed else value + 0.05,
                    "native": np.nan, "stability": 0.5, "difference": -0.08 * k,
                    "p_adjusted": 0.01 if k else np.nan, "on_front": k == 0,
                }
            )  # fmt: skip
    return Record(
        methods=("GSVPSVM", "lasso", "<b>forest</b>", "random panel"), sizes=(2, 4, 8),
        reference="GSVPSVM", n_samples=120, n_features=60, n_folds=25, table=pd.DataFrame(rows),
    )  # fmt: skip
