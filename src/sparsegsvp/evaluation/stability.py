"""Which features a procedure chooses again on half of the samples.

Halves come in complementary pairs of exactly half of the samples, classes even and groups whole.
Beside every frequency stands what it is for shuffled labels. Neighbouring peaks split the vote, so
a feature's stand-ins, which correlate with it by at least 0.8 within the classes, are counted too.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, get_tags
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _routing_enabled,
    process_routing,
)
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from .._typing import BoolArray, IntArray, Progress
from .._validate import (
    check_integer,
    check_real,
    check_seed,
    derive_seed,
    forget_fit,
    refuse_dask,
)
from ..linalg.rows import as_rows
from ..metrics.stability import error_bound, nogueira_stability
from .cache import run_pieces
from .permutation import can_permute, shuffled_codes
from .procedure import Procedure, fit_parameters, last_step, make_imputer, selected_features
from .result import COLUMNS, frame
from .splits import Samples, complementary_pair, read_samples

HALVES = "half samples"
THRESHOLD = 0.6
MIN_CORRELATION = 0.8
PAIRS = 20
_PAIRS, _SHUFFLES = 2, 3  # pairs of each of some shufflings of the labels
STREAM = 11  # keeps these seeds apart


def within_class_correlations(
    X: Any, codes: IntArray, features: Sequence[int]
) -> dict[int, tuple[tuple[int, float], ...]]:
    """Find the features whose pooled within-class correlation with some features is large.

    The total correlation would link any two features that tell the classes apart.
    """
    table = X.to_numpy() if hasattr(X, "to_numpy") else X
    if not sparse.issparse(table):
        table = np.asarray(table)
        if table.dtype.kind not in "biuf":  # of cells that are no numbers nothing is said
            return {}
        if np.isnan(table.min(initial=0)):
            table = make_imputer().fit_transform(table)
    rows, counts = as_rows(table), np.bincount(codes)
    chosen = np.array(list(features), dtype=np.intp)
    means, variances = rows.class_statistics(codes, np.ones(codes.size), counts.size)
    lengths = np.sqrt(counts @ variances)
    # a column that is constant within each class keeps only rounding errors
    lengths = np.where(lengths > 1e-9, lengths, np.inf)
    C = (rows.columns(chosen) - means[codes][:, chosen]) / lengths[chosen]
    correlations = rows.tdot(C.T, exact=True) / lengths
    result = {}
    for row, feature in zip(correlations, chosen.tolist()):
        partners = np.flatnonzero(np.abs(row) >= MIN_CORRELATION)
        partners = partners[partners != feature]
        order = partners[np.argsort(-np.abs(row[partners]), kind="stable")]
        result[feature] = tuple((int(j), float(np.clip(row[j], -1, 1))) for j in order)
    return result


@dataclass(frozen=True)
class Choice:
    """What a procedure chooses on some rows: its panel, and the features along its path."""

    panel: IntArray
    path: IntArray | None

    def at(self, size: int | None) -> IntArray:
        """Return the panel of a size; the procedure's with None."""
        return self.panel if size is None or self.path is None else self.path[:size]


def choose(
    procedure: Procedure,
    rows: IntArray,
    seed: int,
    longest: int = 0,
    codes: IntArray | None = None,
    *,
    path_only: bool = False,
) -> Choice:
    """Fit on some rows and return what is chosen, with a path of ``longest`` features if not 0."""
    m, sizes = procedure.samples.X.shape[1], [longest] if longest else []
    fits = procedure.fit_sizes(rows, sizes, seed, codes, sizes_only=path_only)
    path = selected_features(fits.model(longest), m) if longest else None
    if path is not None and path_only:
        return Choice(path, path)
    panel = selected_features(fits.own, m)
    if panel is None:
        raise ValueError(
            f"{type(last_step(procedure.estimator)).__name__} does not say which features it uses; "
            "give an estimator with get_support, or a linear model with coef_."
        )
    return Choice(panel, path)


def draw_halves(samples: Samples, n_pairs: int, seed: int) -> list[IntArray]:
    """Return the rows of complementary halves, those of a pair one after the other."""
    pairs = (complementary_pair(samples, derive_seed(seed, 0, i)) for i in range(n_pairs))
    halves = [half for pair in pairs for half in pair]
    if any(np.unique(samples.codes[rows]).size < samples.n_classes for rows in halves):
        raise ValueError(
            "a half of the samples lacks a class: there are too few samples (or groups) of it; "
            "leave this class out, or collect more."
        )
    return halves


def choose_shuffled(
    procedure: Procedure, pairs: int, seed: int, longest: int
) -> tuple[Choice, list[Choice], dict[int, set[int]]]:
    """Return choices with shuffled labels: on all samples, on halves, and the first's stand-ins."""
    samples = procedure.samples
    codes = shuffled_codes(samples, seed)
    whole = choose(procedure, samples.order, seed, longest, codes, path_only=True)
    halves = [
        choose(procedure, rows, seed, longest, codes, path_only=True)
        for i in range(pairs)
        for rows in complementary_pair(samples, derive_seed(seed, i), codes)
        if np.unique(codes[rows]).size == samples.n_classes
    ]
    near = within_class_correlations(samples.X, codes, whole.panel.tolist())
    return whole, halves, {f: {j for j, _ in partners} for f, partners in near.items()}


def chosen_shares(
    panel: Sequence[int], halves: Sequence[Choice], size: int | None, near: dict[int, set[int]]
) -> tuple[list[float], list[float]]:
    """Return how often each feature of a panel is chosen, and how often it or a stand-in is."""
    sets = [set(half.at(size).tolist()) for half in halves]
    alone = [float(np.mean([f in s for s in sets])) for f in panel]
    joined = [float(np.mean([bool(s & ({f} | near.get(f, set()))) for s in sets])) for f in panel]
    return alone, joined


@dataclass(frozen=True, repr=False)
class PanelStability:
    """Panels of complementary half samples, with shuffled labels beside them.

    `index` is Nogueira's, of the procedure's own panels; `at` has that of each size.
    """

    n_pairs: int
    sizes: tuple[int, ...]
    n_features: int
    panel: tuple[int, ...]
    path: tuple[int, ...]
    halves: tuple[Choice, ...]  # 2i and 2i + 1 are a pair
    # for each shuffling: what all samples choose, what halves choose, and stand-ins
    shuffled: tuple[tuple[Choice, list[Choice], dict[int, set[int]]], ...]
    stand_ins: dict[int, tuple[dict[str, Any], ...]]
    feature_names: tuple[str, ...] | None = None
    threshold: float = THRESHOLD

    def __repr__(self) -> str:
        noise = f"{self.index_noise:.2f} with shuffled labels"
        return f"PanelStability: {self.index:.2f} over {self.n_pairs} pairs of halves, {noise}"

    @cached_property
    def index(self) -> float:
        """Nogueira's index of the procedure's panels."""
        return self._index(self.halves, None)

    @cached_property
    def index_noise(self) -> float:
        """The same with shuffled labels, at the size of the procedure's panel."""
        return self._noise_index(len(self.panel))

    @property
    def size_median(self) -> float:
        """Median size of the procedure's panels on halves."""
        return float(np.median([half.panel.size for half in self.halves]))

    @property
    def n_stable(self) -> int:
        """Features that at least `threshold` of the halves choose."""
        chosen = np.concatenate([half.panel for half in self.halves])
        shares = np.bincount(chosen, minlength=self.n_features) / len(self.halves)
        return int(np.sum(shares >= self.threshold - 1e-12))

    @property
    def error_bound(self) -> float | None:
        """Bound on the expected number of rarely chosen ones among them; None if not below it."""
        size = float(np.mean([half.panel.size for half in self.halves]))
        return error_bound(size, self.n_features, self.threshold, self.n_stable)

    def _index(self, choices: Sequence[Choice], size: int | None) -> float:
        panels = [choice.at(size).tolist() for choice in choices]
        if len(panels) < 2:
            return float("nan")
        return nogueira_stability(panels, self.n_features)

    def _noise_index(self, size: int) -> float:
        # halves of different shufflings have nothing in common: compare within each
        values = [self._index(halves, size) for _, halves, _ in self.shuffled]
        return float(np.nanmean(values)) if np.isfinite(values).any() else float("nan")

    def _noise_share(self, size: int) -> float:
        shares = [
            np.mean(chosen_shares(whole.at(size).tolist(), halves, size, near)[1])
            for whole, halves, near in self.shuffled
            if halves
        ]
        return float(np.mean(shares)) if shares else float("nan")

    def at(self, size: int) -> dict[str, float]:
        """Return the stability of panels of a size, and how often features are chosen again."""
        again = float(np.mean(self._shares(size)[1]))
        index, noise = self._index(self.halves, size), self._noise_index(size)
        return dict(zip(COLUMNS, (index, noise, again, self._noise_share(size))))

    def _shares(self, size: int | None) -> tuple[list[float], list[float]]:
        panel = self.panel if size is None else self.path[:size]
        near = {f: {s["feature"] for s in self.stand_ins.get(f, ())} for f in panel}
        return chosen_shares(panel, self.halves, size, near)

    def chosen_again(self, size: int | None = None) -> Any:
        """Return how often features of the procedure's panel, or one of `sizes`, are chosen again.

        A data frame: feature, name, frequency, with_stand_ins, noise (what with_stand_ins is on
        average for a panel of this size with shuffled labels), stand_ins (a tuple of dicts).
        """
        if size is not None and size not in self.sizes:
            raise ValueError(f"size={size} must be one of {self.sizes}.")
        panel = self.panel if size is None else self.path[:size]
        alone, joined = self._shares(size)
        names = self.feature_names or tuple(map(str, range(self.n_features)))
        near = [
            tuple({**s, "name": names[s["feature"]]} for s in self.stand_ins.get(f, ()))
            for f in panel
        ]
        columns = {"feature": list(panel), "name": [names[f] for f in panel], "frequency": alone}
        noise = self._noise_share(len(panel))
        return frame({**columns, "with_stand_ins": joined, "noise": noise, "stand_ins": near})


def half_samples(
    procedure: Procedure,
    model: Any,
    models: dict[int, Any],
    halves: list[IntArray],
    feature_names: tuple[str, ...] | None,
    *,
    seed: int,
    n_jobs: int | None,
    progress: Progress | None,
) -> PanelStability | None:
    """Run a procedure on halves; None where its fit on all samples does not say what it uses."""
    samples = procedure.samples
    m = samples.X.shape[1]
    panel = selected_features(model, m)
    if panel is None:
        return None
    longest = max(models, default=0)
    path = selected_features(models[longest], m) if longest else None
    path = panel if path is None else path
    n_pairs = len(halves) // 2
    shuffles = min(_SHUFFLES, n_pairs) if can_permute(samples) else 0
    pieces: list[tuple[Any, ...]] = [
        (choose, procedure, rows, derive_seed(seed, 1, i), longest) for i, rows in enumerate(halves)
    ]
    pieces += [
        (choose_shuffled, procedure, _PAIRS, derive_seed(seed, 2, i), longest)
        for i in range(shuffles)
    ]
    made = list(run_pieces(operator.call, pieces, n_jobs=n_jobs, progress=progress, stage=HALVES))
    # what exchanging loses, where the models know it: the procedure's own comes last and counts
    losses: dict[tuple[int, int], float] = {}
    for last in map(last_step, [*(models[k] for k in sorted(models, reverse=True)), model]):
        if getattr(last, "n_features_in_", None) == m:
            known = zip(getattr(last, "feature_order_", ()), getattr(last, "stand_ins_", ()))
            losses |= {(int(f), int(j)): float(loss) for f, own in known for j, _, loss in own}
    features = list(dict.fromkeys([*panel.tolist(), *path.tolist()]))
    near = within_class_correlations(samples.X, samples.codes, features)
    stand_ins = {
        f: tuple({"feature": j, "correlation": r, "loss": losses.get((f, j))} for j, r in own)
        for f, own in near.items()
    }
    chosen = tuple(made[: len(halves)]), tuple(made[len(halves) :])
    panels = tuple(panel.tolist()), tuple(path.tolist())
    sizes = tuple(sorted(models))
    return PanelStability(n_pairs, sizes, m, *panels, *chosen, stand_ins, feature_names)


class StabilitySelection(SelectorMixin, MetaEstimatorMixin, BaseEstimator):
    r"""Select the features that a selector keeps choosing on halves of the samples.

    The whole estimator, with its scaling and tuning, is run on complementary pairs of half
    samples; a feature is kept when the share of runs that select it,

    .. math:: \hat\Pi_f = \frac1N \sum_{r=1}^N [f \in \hat S(\text{half } r)] ,

    reaches ``threshold``.

    Parameters
    ----------
    estimator : estimator
        A selector with ``get_support``, a sparse linear model, a search or pipeline of one.
    n_pairs : int, default=50
        Pairs of halves; the estimator is fitted on both.
    threshold : float, default=0.6
        Smallest selection frequency of a kept feature, in (0, 1].
    n_jobs : int, optional
        Fits at a time. The result does not depend on it.
    random_state : int, default=0
        Seed; also given to every ``random_state`` of the estimator that is None.

    Attributes
    ----------
    selection_frequencies_ : ndarray of shape (n_features,)
        :math:`\hat\Pi_f`.
    selections_ : boolean ndarray of shape (2 * n_pairs, n_features)
        Which features each run selected; rows 2i and 2i+1 are a pair.
    mean_panel_size_, stability_ : float
        Mean size of the runs' panels, and Nogueira's index of them.
    error_bound_ : float or None
        Bound on the expected number of rarely chosen features among those kept
        (Shah and Samworth's); None unless it is below their number.
    stand_ins_ : dict
        From each kept feature to those that correlate with it by at least 0.8 within the classes.
    group_frequencies_ : ndarray of shape (n_features,)
        How often the feature or, for kept ones, any of its stand-ins is selected.

    References
    ----------
    Shah, Samworth (2013), Variable selection with error control: another look at stability
    selection, JRSS B 75(1), 55-80.

    Examples
    --------
    >>> from sklearn.feature_selection import SelectKBest
    >>> from sparsegsvp import StabilitySelection
    >>> from sparsegsvp.datasets import make_planted
    >>> data = make_planted(60, 50, 2, effect=1.5)
    >>> stable = StabilitySelection(SelectKBest(k=3), n_pairs=20).fit(data.X, data.y)
    >>> stable.get_support(indices=True), data.support
    (array([23, 26]), array([23, 26]))
    >>> round(stable.error_bound_, 3)
    0.9
    """

    __metadata_request__fit = {"groups": True}  # noqa: RUF012

    def __init__(
        self,
        estimator: Any,
        n_pairs: int = 50,
        threshold: float = THRESHOLD,
        n_jobs: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.estimator = estimator
        self.n_pairs = n_pairs
        self.threshold = threshold
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        groups: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        **params: Any,
    ) -> StabilitySelection:
        """Run the estimator on the halves and count.

        Parameters
        ----------
        X, y
            The table and its labels: frames reach the estimator as frames.
        groups, sample_weight : array-like of shape (n_samples,), optional
            Groups, which are halved whole, and weights for the estimator.
        **params : dict
            For the estimator, by metadata routing; each half gets its rows of arrays.
        """
        check_integer("n_pairs", self.n_pairs, least=1)
        check_real("threshold", self.threshold, above=0, most=1)
        seed = check_seed(self.random_state)
        refuse_dask(X)
        forget_fit(self)
        given = X
        finite = "allow-nan" if _takes_missing_values(self.estimator) else True
        X, y = validate_data(
            self, X, y, accept_sparse="csr", ensure_min_samples=4, ensure_all_finite=finite
        )
        if hasattr(self, "feature_names_in_"):
            X = given  # it may look for names
        samples = read_samples(X, y, groups)
        procedure = Procedure(
            self.estimator, samples, self._fit_params(samples, sample_weight, params)
        )
        halves = draw_halves(samples, self.n_pairs, seed)
        pieces = [(procedure, rows, derive_seed(seed, 1, i)) for i, rows in enumerate(halves)]
        Z = np.zeros((len(halves), X.shape[1]), dtype=bool)
        for row, choice in zip(Z, run_pieces(choose, pieces, n_jobs=self.n_jobs)):
            row[choice.panel] = True
        self.selections_ = Z
        self.selection_frequencies_ = Z.mean(axis=0)
        self.mean_panel_size_ = float(Z.sum(axis=1).mean())
        self.stability_ = nogueira_stability(Z)
        kept = np.flatnonzero(self._reached())
        self.error_bound_ = error_bound(
            self.mean_panel_size_, Z.shape[1], self.threshold, kept.size
        )
        self.stand_ins_ = within_class_correlations(samples.X, samples.codes, kept.tolist())
        self.group_frequencies_ = self.selection_frequencies_.copy()
        for feature, partners in self.stand_ins_.items():
            columns = [feature, *(j for j, _ in partners)]
            self.group_frequencies_[feature] = Z[:, columns].any(axis=1).mean()
        return self

    def _fit_params(
        self, samples: Samples, sample_weight: Any, params: dict[str, Any]
    ) -> dict[str, Any]:
        """Return what the estimator's fit is given beside X, y and groups, of all samples."""
        weight = {}
        if sample_weight is not None:
            checked = _check_sample_weight(sample_weight, samples.codes, dtype=np.float64)
            weight = {"sample_weight": checked}
        if _routing_enabled():
            return dict(process_routing(self, "fit", **weight, **params).estimator.fit)
        if params:
            raise ValueError(
                f"fit takes {sorted(params)} with scikit-learn's metadata routing alone: "
                "sklearn.set_config(enable_metadata_routing=True)."
            )
        own = fit_parameters(self.estimator, **weight)
        if weight and not own:
            raise ValueError(
                f"{type(last_step(self.estimator)).__name__} takes no sample_weight; give an "
                "estimator that does, or leave it out."
            )
        return own

    def _reached(self) -> BoolArray:
        # frequencies are counts over N: allow for the rounding of the division
        return self.selection_frequencies_ >= self.threshold - 1e-12

    def get_metadata_routing(self) -> MetadataRouter:
        """Return how parameters of fit reach the estimator."""
        mapping = MethodMapping().add(caller="fit", callee="fit")
        router = MetadataRouter(owner=self).add_self_request(self)
        return router.add(estimator=self.estimator, method_mapping=mapping)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "group_frequencies_")

    def _get_support_mask(self) -> BoolArray:
        check_is_fitted(self)
        return self._reached()

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        tags.input_tags.allow_nan = _takes_missing_values(self.estimator)
        tags.target_tags.required = True
        return tags


def _takes_missing_values(estimator: Any) -> bool:
    """Return whether missing values may reach an estimator; a pipeline's first step decides."""
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[0][1]
    return bool(get_tags(estimator).input_tags.allow_nan)
