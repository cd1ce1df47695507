r"""The permutation test of whether there is any signal, and the verdict it gives.

.. math:: p = \frac{1 + \#\{\text{permuted} \ge \text{observed}\}}{B + 1}

The statistic is a cross-validated balanced accuracy, fixed before the labels are seen and
the same for true and permuted ones, which is all that validity asks for. Drawing stops at
the 10th exceedance: then p = 10 / draws (Besag and Clifford, 1991). Where a first batch of 99
draws leaves p between 0.01 and 0.1, drawing goes on to 999. The chance of p <= 0.05 without
signal stays 0.05; that of p <= 0.01 becomes 0.0135, since 99 draws without an exceedance are
not gone on with.

It detects neither leakage nor batch effects that happened before the table was made: what
is built into the rows survives a permutation of the labels only if it depends on them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.utils import column_or_1d

from .._notices import Notice
from .._parallel import Task, run_tasks
from .._typing import Progress
from .._validate import check_integer, check_seed
from ..metrics import Interval
from ..metrics.scores import sequential_p_value
from .folds import check_labels, check_samples, derive_seed, make_folds
from .panels import Procedure
from .scores import mean_class_recall

PERMUTATIONS = "permutation test"
Verdict = Literal["signal", "inconclusive", "none", "not tested"]

#: Draws below which no p-value reaches 0.05.
FEWEST_DRAWS = 19
#: Draws of a first batch after which drawing may go on, and the p-values for which it does.
FIRST_BATCH = 99
UNDECIDED = (0.01, 0.1)
_STREAM = 7  # keeps these seeds apart from those of the outer folds


@dataclass(frozen=True)
class PermutationResult:
    """Outcome of a permutation test.

    Attributes
    ----------
    observed : float
        Statistic of the true labels.
    distribution : tuple of float
        Statistics of the permuted labels, in the order drawn.
    p_value : float
        The p-value.
    stopped_early : bool
        Whether drawing stopped at the 10th exceedance.
    statistic : {"fixed", "full"}
        The cheap statistic, or the whole procedure with its tuning.
    scheme : {"free", "between groups", "within groups"}
        How labels were permuted.
    """

    observed: float
    distribution: tuple[float, ...]
    p_value: float
    stopped_early: bool
    statistic: str
    scheme: str

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary."""
        drawn = list(self.distribution)
        return {**asdict(self), "distribution": drawn, "n_permutations": len(drawn)}


def fixed_statistic(X: Any) -> Any:
    """Return the estimator whose cross-validated accuracy is the default statistic.

    Every parameter that matters is given here, so that it stays what it is when defaults change.
    """
    from ..estimators import GSVPSVM

    model = GSVPSVM(tau=1.0, pool=0.5, n_features=min(10, X.shape[1]), decision="scaled")
    if sparse.issparse(X) or not np.isnan(X).any():
        return model
    return make_pipeline(SimpleImputer(strategy="median", keep_empty_features=True), model)


def permutation_scheme(y: NDArray[Any], groups: NDArray[Any] | None) -> str:
    """Return how labels may be exchanged under the null hypothesis."""
    if groups is None:
        return "free"
    for group in np.unique(groups):
        if np.unique(y[groups == group]).size > 1:
            return "within groups"
    return "between groups"


def permute_labels(
    y: NDArray[Any], groups: NDArray[Any] | None, rng: np.random.Generator
) -> NDArray[Any]:
    """Permute labels: freely, between groups of one label each, or within groups."""
    scheme = permutation_scheme(y, groups)
    if scheme == "free" or groups is None:
        return rng.permutation(y)
    unique, first, member = np.unique(groups, return_index=True, return_inverse=True)
    if scheme == "between groups":
        return rng.permutation(y[first])[member]
    drawn = y.copy()
    for g in range(unique.size):
        rows = np.flatnonzero(member == g)
        drawn[rows] = rng.permutation(y[rows])
    return drawn


def _statistic(procedure: Procedure, n_splits: int, seed: int, draw: int) -> float:
    """Return the cross-validated balanced accuracy of draw number ``draw`` (0: true labels)."""
    y, groups = procedure.y, procedure.groups
    if draw:
        y = permute_labels(y, groups, np.random.default_rng(derive_seed(seed, _STREAM, draw)))
        procedure = replace(procedure, y=y)
    try:
        folds = make_folds(
            y, groups=groups, n_splits=n_splits, random_state=derive_seed(seed, _STREAM, draw, 1)
        )
    except ValueError:
        if draw == 0:
            raise
        return 1.0  # labels fell so that no fold is possible: count it against the signal
    scores = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for fold in folds:
            fit_seed = derive_seed(seed, _STREAM, draw, 2 + fold.index)
            predicted = procedure.predict(procedure.fit(fold.train, fit_seed), fold.test)
            scores.append(mean_class_recall(y[fold.test], predicted))
    return float(np.mean(scores))


def draws_wanted(exceeds: Sequence[bool], n_permutations: int, max_permutations: int) -> int:
    """Return how many draws there are to be, given the first ones; not more if it is decided.

    A first batch of fewer than 99 draws is never gone on with: who asks for so few wants it fast.
    """
    p, draws, stopped = sequential_p_value(exceeds)
    if stopped:
        return draws
    if draws < n_permutations or n_permutations < FIRST_BATCH:
        return n_permutations
    p, _, _ = sequential_p_value(exceeds[:n_permutations])
    undecided = UNDECIDED[0] < p <= UNDECIDED[1]
    return max(n_permutations, max_permutations) if undecided else n_permutations


@dataclass
class _Drawing:
    """Statistics by draw (0: true labels), how more are computed, and who is told of them."""

    procedure: Procedure
    n_splits: int
    seed: int
    n_jobs: int | None
    done: dict[int, float]
    total: int  # draws that there are to be, as far as is known
    report: Callable[[int, float], None] | None
    progress: Progress | None

    def exceedances(self, n_permutations: int, max_permutations: int) -> list[bool]:
        """Draw until it is decided; return which draws reach the statistic of the true labels."""
        workers = effective_n_jobs(self.n_jobs)
        self._tell()
        self._compute([0])
        exceeds: list[bool] = []
        while len(exceeds) < self.total:
            first, last = len(exceeds) + 1, min(len(exceeds) + workers, self.total)
            self._compute(list(range(first, last + 1)))
            while len(exceeds) < self.total and len(exceeds) + 1 in self.done:
                # equal counts give equal scores only up to rounding
                exceeds.append(self.done[len(exceeds) + 1] >= self.done[0] - 1e-12)
                self.total = draws_wanted(exceeds, n_permutations, max_permutations)
        return exceeds

    def _compute(self, draws: list[int]) -> None:
        """Compute the statistics of those draws that are not done yet."""
        missing = [draw for draw in draws if draw not in self.done]
        tasks = [Task((draw,), _statistic, (self.n_splits, self.seed, draw)) for draw in missing]
        with closing(run_tasks(tasks, self.procedure, n_jobs=self.n_jobs)) as outcomes:
            for outcome in outcomes:
                (draw,) = outcome.task.key
                self.done[draw] = outcome.value
                if self.report is not None:
                    self.report(draw, outcome.value)
                if draw:
                    self._tell()

    def _tell(self) -> None:
        if self.progress is not None:
            drawn = len(self.done.keys() - {0})
            self.progress(PERMUTATIONS, min(drawn, self.total), self.total)


def permutation_test(
    X: Any,
    y: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    estimator: Any = None,
    n_permutations: int = 99,
    max_permutations: int = 999,
    n_splits: int = 5,
    random_state: int = 0,
    n_jobs: int | None = None,
    known: dict[int, float] | None = None,
    report: Callable[[int, float], None] | None = None,
    progress: Progress | None = None,
    batch: ArrayLike | None = None,
) -> PermutationResult:
    """Test whether labels can be predicted better than permuted ones.

    Parameters
    ----------
    X, y, random_state, n_jobs
        As in :func:`~sparsegsvp.nested_evaluate`.
    groups : array-like of shape (n_samples,), optional
        Kept whole in the folds. Labels that are constant within groups are permuted
        between them, others within them.
    estimator : classifier, optional
        The full version: this procedure, with all its tuning, is the statistic. By default
        ``GSVPSVM(tau=1, pool=0.5, n_features=10, decision="scaled")``, which is cheap.
    n_permutations : int, default=99
        Draws of the first batch; fewer are made when the 10th exceedance comes before.
    max_permutations : int, default=999
        Where a first batch of at least 99 leaves p between 0.01 and 0.1, drawing goes on up to
        this number; 0, or as many as ``n_permutations``, never goes on.
    n_splits : int, default=5
        Folds of the one repeat; drawn anew, stratified by the permuted labels.
    known : dict, optional
        Statistics already computed, by draw (0 for the true labels).
    report : callable, optional
        Called with the number and the statistic of each new draw.
    progress : callable, optional
        Called as ``progress(stage, done, total)`` at the beginning and after each draw; the
        stage is "permutation test", and the total grows when drawing goes on.
    batch : array-like of shape (n_samples,), optional
        Batches, for a step of ``estimator`` that centres them.

    Returns
    -------
    PermutationResult

    References
    ----------
    Besag, Clifford (1991), Sequential Monte Carlo p-values, Biometrika 78(2), 301-304.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sparsegsvp.datasets import make_planted
    >>> from sparsegsvp.evaluation import permutation_test
    >>> X, y = make_planted(30, 4, 4, effect=2.0, return_X_y=True)
    >>> permutation_test(X, y, estimator=GaussianNB(), n_permutations=19).p_value
    0.05
    """
    seed = check_seed(random_state)
    check_integer("n_permutations", n_permutations, least=1)
    check_integer("max_permutations", max_permutations, least=0)
    if estimator is None:
        X, labels, _, ids = check_samples(X, y, groups)
        model = fixed_statistic(X)
    else:
        labels, _, ids = check_labels(y, groups)
        model = estimator
    lots = None if batch is None else column_or_1d(batch)
    procedure = Procedure(model, X, labels, ids, lots)
    done = dict(known or {})
    drawing = _Drawing(procedure, n_splits, seed, n_jobs, done, n_permutations, report, progress)
    exceeds = drawing.exceedances(n_permutations, max_permutations)
    p_value, draws, stopped = sequential_p_value(exceeds)
    return PermutationResult(
        done[0],
        tuple(done[d] for d in range(1, draws + 1)),
        p_value,
        stopped,
        "fixed" if estimator is None else "full",
        permutation_scheme(labels, ids),
    )


def verdict(test: PermutationResult | None, score: Interval, n_classes: int) -> Verdict:
    """Say whether the labels can be predicted better than by chance.

    The permutation test decides if it stopped early or made at least 19 draws; with fewer no
    p-value reaches 0.05.

    Parameters
    ----------
    test : PermutationResult or None
        The permutation test.
    score : Interval
        The estimated balanced accuracy.
    n_classes : int
        Number of classes; chance is one over it.

    Returns
    -------
    {"signal", "inconclusive", "none", "not tested"}
        "signal": p is at most 0.05 and the estimate above chance. "inconclusive": p is larger
        although the whole interval lies above chance; more draws are advised. "not tested":
        there is no test, or none that can decide, whatever the score. "none" otherwise.

    Examples
    --------
    >>> from sparsegsvp.evaluation import verdict
    >>> from sparsegsvp.metrics import Interval
    >>> verdict(None, Interval(0.9, 0.8, 0.95, 0.95), 2)
    'not tested'
    """
    if test is None or not (test.stopped_early or len(test.distribution) >= FEWEST_DRAWS):
        return "not tested"
    chance = 1 / n_classes
    if test.p_value <= 0.05:
        return "signal" if score.value > chance else "none"
    return "inconclusive" if score.low > chance else "none"


def signal_notices(
    test: PermutationResult | None,
    score: Interval,
    n_classes: int,
    control: dict[str, Interval] | None,
) -> list[Notice]:
    """Return the notice of the verdict, and one if random panels do as well."""
    found = []
    decided = verdict(test, score, n_classes)
    if decided == "none":
        assert test is not None
        reason = (
            f"Permuted labels score as well in a share of p = {test.p_value:.2g} of the draws."
            if test.p_value > 0.05
            else f"The balanced accuracy, {score.value:.2f}, is not above chance."
        )
        text = f"{reason} The panel should not be read as a set of markers."
        found.append(Notice("none", "serious", text))
    elif decided == "inconclusive":
        assert test is not None
        text = (
            f"The interval of the balanced accuracy, {score.low:.2f} to {score.high:.2f}, lies "
            f"above chance, but permuted labels score as well in a share of p = "
            f"{test.p_value:.2g} of {len(test.distribution)} draws. More draws may decide."
        )
        found.append(Notice("inconclusive", "caution", text))
    elif decided == "not tested":
        text = (
            "There was no permutation test"
            if test is None
            else f"{len(test.distribution)} permutations cannot decide; it takes {FEWEST_DRAWS}"
        )
        text += ", so it is open whether the score, however high, is more than chance."
        found.append(Notice("not tested", "caution", text))
    looks_good = decided == "signal" or score.low > 1 / n_classes
    if looks_good and control is not None and control["difference"].low <= 0:
        gap = control["difference"]
        text = (
            f"Random panels of the same size reach {control['random'].value:.2f} against "
            f"{control['selected'].value:.2f}, and on these samples the difference (between "
            f"{gap.low:.2f} and {gap.high:.2f}) cannot be told from none: many features may carry "
            "the signal, and these need not be special."
        )
        found.append(Notice("random", "caution", text))
    return found
