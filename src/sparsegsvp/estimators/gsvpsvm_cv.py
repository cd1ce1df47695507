"""`GSVPSVMCV`: the penalty, the floor and the decision chosen by cross-validation."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.metrics import get_scorer
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.utils import Bunch, check_random_state
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    get_routing_for_object,
    process_routing,
)
from sklearn.utils.validation import _num_samples

from .._typing import Float64Array, IntArray
from ..linalg import Covariances, as_matrix
from ..solvers._api import choose_method, make_covariances
from ..solvers._threads import one_blas_thread
from ..solvers.quotient import full_gradient
from ..solvers.working_set import Solution
from ._decision import DECISIONS, fit_calibrator
from ._planes import PlaneProblems, Settings
from ._search import (
    FoldScores,
    Scorer,
    at_point,
    points_of,
    score_fold,
    solve_points,
)
from ._tall import (
    SAMPLE,
    fold_moments,
    score_by_blocks,
    stratified_sample,
    training_covariances,
)
from .gsvpsvm import PlaneClassifier, check_panel_size, validate_rows

_DEFAULT_SCORING = "balanced_log_loss"


class GSVPSVMCV(PlaneClassifier):
    """`GSVPSVM` with its parameters chosen by cross-validation along paths.

    Every path is solved once per fold and setting, each point warm started from the last;
    all points are then scored on the held-out rows. The planes have penalties
    ``delta_k = rho * delta_max_k`` with a common ratio rho that falls in geometric steps.

    Parameters
    ----------
    q, tau, pool : float or sequence of float
        Values to choose from; see `GSVPSVM`. By default ``q=(1.0,)``,
        ``tau=(0.3, 1, 3, 10)`` and ``pool=(0.5,)``.
    n_deltas : int, default=30
        Points on each path.
    ratio : float, default=1e-2
        The last rho.
    decision : str or sequence of str, default=("calibrated",)
        Decision rules to choose from. Rules other than "calibrated" have no
        probabilities, so they need a `scoring` that does not use them.
    cv : int, splitter or iterable, default=5
        Folds; an integer gives shuffled stratified ones.
    scoring : str or callable, default="balanced_log_loss"
        "balanced_log_loss" is the class-balanced log loss of the calibrated decision,
        which, unlike accuracy, still tells points apart when all of them separate the
        classes. Otherwise any scikit-learn scorer.
    rule : {"best", "1se"}, default="best"
        Take the best point, or the sparsest within one standard error of it.
    combine : bool, default=False
        Score all combinations of the planes' penalties instead of a common ratio. This
        costs ``n_deltas ** n_classes`` scores and no more solves.
    n_features : int, optional
        Only points whose panel, on all data, has at most this many features.
    selection, refit, standardize, eps, tol, max_iter
        See `GSVPSVM`.
    random_state : int, RandomState or None, default=0
        Shuffles the folds when `cv` is an integer.
    n_jobs : int, optional
        Folds solved at the same time. The result does not depend on it.
    verbose : int, default=0
        With 1, a line per fold.

    Attributes
    ----------
    delta_ : ndarray of shape (n_classes,)
        Penalty chosen for each plane.
    q_, tau_, pool_ : float
        Values chosen.
    decision_ : str
        Decision rule chosen.
    cv_results_ : dict of ndarray
        One row per setting, point and decision: ``param_q``, ``param_tau``,
        ``param_pool``, ``param_decision``, ``rho`` (one column per class), panel sizes and
        scores per fold, mean, standard error and rank. ``pandas.DataFrame`` reads it.
    path_ : dict
        The path of the chosen setting on all data: ``rho``, ``delta``, ``panel`` (indices
        at each point), ``weights``, ``n_features``, ``score``, ``score_error``,
        ``objective``, ``quotient``, ``kkt_residual`` and ``gap``.
    best_index_ : int
        The chosen row of `cv_results_`.
    n_splits_ : int
        Number of folds.

    The attributes of `GSVPSVM` are there too. The calibrator is fitted on out-of-fold
    distances of the chosen point.

    Examples
    --------
    >>> from sparsegsvp import GSVPSVMCV
    >>> from sparsegsvp.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = GSVPSVMCV(tau=1.0, rule="1se").fit(X, y)
    >>> int(model.support_.sum()) < 20
    True
    """

    def __init__(
        self,
        q: float | Sequence[float] = (1.0,),
        tau: float | Sequence[float] = (0.3, 1, 3, 10),
        pool: float | Sequence[float] = (0.5,),
        n_deltas: int = 30,
        ratio: float = 1e-2,
        decision: str | Sequence[str] = ("calibrated",),
        cv: Any = 5,
        scoring: Any = _DEFAULT_SCORING,
        rule: str = "best",
        combine: bool = False,
        n_features: int | None = None,
        selection: str = "nonzero",
        refit: bool = True,
        standardize: bool = True,
        eps: float = 1e-3,
        tol: float = 1e-6,
        max_iter: int = 1000,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.q = q
        self.tau = tau
        self.pool = pool
        self.n_deltas = n_deltas
        self.ratio = ratio
        self.decision = decision
        self.cv = cv
        self.scoring = scoring
        self.rule = rule
        self.combine = combine
        self.n_features = n_features
        self.selection = selection
        self.refit = refit
        self.standardize = standardize
        self.eps = eps
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> GSVPSVMCV:
        """Choose the parameters by cross-validation and fit on all rows.

        Parameters
        ----------
        X : array or CSR/CSC matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Class labels, two or more.
        sample_weight : array of shape (n_samples,), optional
            Non-negative weights, used in fitting and in the default score.
        **params : dict
            ``groups`` for a group splitter; with scikit-learn's metadata routing enabled,
            whatever the splitter requests.

        Returns
        -------
        GSVPSVMCV
            The fitted estimator.
        """
        grid, decisions, rhos, scorer = self._check_parameters()
        X, codes, weight = validate_rows(self, X, y, sample_weight)
        check_panel_size(self.n_features, X.shape[1])
        y = self.classes_[codes]
        splits = self._split(X, y, codes, params)
        points = points_of(len(rhos), len(self.classes_), bool(self.combine))
        with one_blas_thread():
            folds = self._folds(X, y, codes, weight, splits, grid, rhos, points, decisions, scorer)
            self._choose(X, codes, weight, splits, folds, grid, rhos, points, decisions)
        self.n_splits_ = len(splits)
        return self

    def get_metadata_routing(self) -> MetadataRouter:
        """Route metadata such as groups to the splitter.

        Returns
        -------
        MetadataRouter
        """
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(
                splitter=check_cv(self.cv, classifier=True),
                method_mapping=MethodMapping().add(caller="fit", callee="split"),
            )
        )

    def _check_parameters(
        self,
    ) -> tuple[list[Settings], list[str], Float64Array, Scorer | None]:
        values = {name: _listed(name, getattr(self, name)) for name in ("q", "tau", "pool")}
        decisions = [self.decision] if isinstance(self.decision, str) else list(self.decision)
        if not decisions or any(decision not in DECISIONS for decision in decisions):
            raise ValueError(f"decision must be among {DECISIONS}, got {self.decision!r}")
        if self.rule not in ("best", "1se"):
            raise ValueError(f'rule must be "best" or "1se", got {self.rule!r}')
        if not isinstance(self.n_deltas, int | np.integer) or self.n_deltas < 1:
            raise ValueError(f"n_deltas must be a positive integer, got {self.n_deltas!r}")
        if not 0.0 < self.ratio < 1.0:
            raise ValueError(f"ratio must be between 0 and 1, got {self.ratio!r}")
        for name, low, high in (("q", 0.0, 1.0), ("tau", 0.0, np.inf), ("pool", 0.0, 1.0)):
            for value in values[name]:
                if not (np.isfinite(value) and low <= value <= high) or (name == "q" and not value):
                    raise ValueError(f"{name} must be in [{low:g}, {high:g}], got {value!r}")
        if self.selection not in ("nonzero", "elbow"):
            raise ValueError(f'selection must be "nonzero" or "elbow", got {self.selection!r}')
        scorer: Scorer | None = None
        if self.scoring != _DEFAULT_SCORING:
            scorer = get_scorer(self.scoring) if isinstance(self.scoring, str) else self.scoring
        elif decisions != ["calibrated"]:
            raise ValueError(
                f"scoring={_DEFAULT_SCORING!r} needs probabilities, which only "
                'decision="calibrated" has: pass for instance scoring="balanced_accuracy"'
            )
        base = Settings(
            q=1.0,
            tau=1.0,
            pool=0.5,
            eps=float(self.eps),
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            selection=self.selection,  # type: ignore[arg-type]
            refit=bool(self.refit),
        )
        grid = [
            replace(base, q=q, tau=tau, pool=pool)
            for q, tau, pool in itertools.product(values["q"], values["tau"], values["pool"])
        ]
        return grid, decisions, np.geomspace(1.0, self.ratio, int(self.n_deltas)), scorer

    def _split(
        self, X: Any, y: np.ndarray, codes: IntArray, params: dict[str, Any]
    ) -> list[tuple[IntArray, IntArray]]:
        if isinstance(self.cv, int | np.integer):
            smallest = int(np.bincount(codes).min())
            if smallest < self.cv:
                raise ValueError(
                    f"cv={self.cv} folds need at least {self.cv} samples in each class, and "
                    f"class {self.classes_[np.bincount(codes).argmin()]!r} has {smallest}: "
                    "use fewer folds"
                )
            seed = check_random_state(self.random_state)
            splitter: Any = StratifiedKFold(int(self.cv), shuffle=True, random_state=seed)
        else:
            splitter = check_cv(self.cv, y, classifier=True)
        routed = _route(self, params)
        empty = np.zeros(_num_samples(X))
        splits = [
            (np.asarray(train), np.asarray(test)) for train, test in splitter.split(empty, y, **routed)
        ]
        for train, _ in splits:
            counts = np.bincount(codes[train], minlength=len(self.classes_))
            if counts.min() < 2:
                raise ValueError(
                    f"a training fold has {counts.min()} samples of class "
                    f"{self.classes_[counts.argmin()]!r}: use fewer folds or other groups"
                )
        return splits

    def _folds(
        self,
        X: Any,
        y: np.ndarray,
        codes: IntArray,
        weight: Float64Array | None,
        splits: list[tuple[IntArray, IntArray]],
        grid: list[Settings],
        rhos: Float64Array,
        points: list[tuple[int, ...]],
        decisions: list[str],
        scorer: Scorer | None,
    ) -> list[FoldScores]:
        folds = _fold_of_rows(splits, len(codes))
        moments = choose_method(*X.shape) == "moments"
        if folds is not None and moments and scorer is None and len(codes) > SAMPLE:
            return self._folds_by_blocks(X, codes, weight, folds, splits, grid, rhos, points)
        started = time.perf_counter()
        results: list[FoldScores] = []
        jobs = (
            delayed(_run_fold)(
                X,
                y,
                codes,
                weight,
                train,
                test,
                grid,
                rhos,
                points,
                decisions,
                self.classes_,
                scorer,
                bool(self.standardize),
            )
            for train, test in splits
        )
        for result in Parallel(n_jobs=self.n_jobs, return_as="generator")(jobs):
            results.append(result)
            if self.verbose:
                print(
                    f"[GSVPSVMCV] fold {len(results)}/{len(splits)} done, "
                    f"{time.perf_counter() - started:.1f} s",
                    flush=True,
                )
        return results

    def _folds_by_blocks(
        self,
        X: Any,
        codes: IntArray,
        weight: Float64Array | None,
        folds: IntArray,
        splits: list[tuple[IntArray, IntArray]],
        grid: list[Settings],
        rhos: Float64Array,
        points: list[tuple[int, ...]],
    ) -> list[FoldScores]:
        matrix, k = as_matrix(X), len(self.classes_)
        parts = fold_moments(matrix, codes, weight, folds, k, len(splits))
        planes = []
        for f in range(len(splits)):
            cov = training_covariances(parts, f, bool(self.standardize))
            planes.append([solve_points(cov, settings, rhos, points) for settings in grid])
            if self.verbose:
                print(f"[GSVPSVMCV] fold {f + 1}/{len(splits)} solved", flush=True)
        sample = stratified_sample(codes, SAMPLE, seed=0)
        rows = X[sample]
        rows = rows.toarray() if hasattr(rows, "toarray") else rows
        results = score_by_blocks(
            planes, matrix, codes, weight, folds, sample, rows.astype(np.float64), k
        )
        self._sample = sample
        return results

    def _choose(
        self,
        X: Any,
        codes: IntArray,
        weight: Float64Array | None,
        splits: list[tuple[IntArray, IntArray]],
        folds: list[FoldScores],
        grid: list[Settings],
        rhos: Float64Array,
        points: list[tuple[int, ...]],
        decisions: list[str],
    ) -> None:
        """Pick a point, fit it on all rows and calibrate on the folds' held-out distances."""
        cov = make_covariances(
            as_matrix(X), codes, weight, len(self.classes_), standardize=bool(self.standardize)
        )
        table = np.stack([fold.scores for fold in folds])  # fold, setting, point, decision
        sizes = np.stack([fold.sizes for fold in folds])
        allowed = np.ones(table.shape[1:], dtype=bool)
        if self.n_features is not None:
            for s, settings in enumerate(grid):
                problems = PlaneProblems(cov, settings)
                paths = problems.paths(rhos)
                counts = [len(problems.select(at_point(paths, point))) for point in points]
                allowed[s] &= (np.array(counts) <= self.n_features)[:, None]
        s, p, d = pick(table, sizes, allowed, self.rule)
        self.cv_results_ = _results(table, sizes, grid, rhos, points, decisions)
        self.best_index_ = int(np.ravel_multi_index((s, p, d), table.shape[1:]))
        chosen = grid[s]
        self.q_, self.tau_, self.pool_ = chosen.q, chosen.tau, chosen.pool
        self.decision_ = decisions[d]
        problems = PlaneProblems(cov, chosen)
        paths = problems.paths(rhos)
        solutions = [
            _with_gradient(problems, i, solution)
            for i, solution in enumerate(at_point(paths, points[p]))
        ]
        panel = problems.select(solutions)
        if self.n_features is not None and len(panel) > self.n_features:
            panel = problems.heaviest(solutions, panel, int(self.n_features))
        planes = problems.planes(solutions, panel)
        self._store(problems, solutions, planes, getattr(self, "feature_names_in_", None))
        self.path_ = _path(problems, paths, rhos, table[:, s, :, d], points)
        self.calibrator_ = None
        if self.decision_ == "calibrated":
            sample = getattr(self, "_sample", None)
            rows = [test for _, test in splits]
            if sample is not None:
                rows = [np.intersect1d(test, sample) for test in rows]
                del self._sample
            index = np.concatenate(rows)
            features = np.concatenate([fold.features[s, p] for fold in folds])
            found = fit_calibrator(
                features,
                codes[index],
                len(self.classes_),
                None if weight is None else weight[index],
            )
            self.calibrator_ = (found.coef, found.intercept)


def _run_fold(
    X: Any,
    y: np.ndarray,
    codes: IntArray,
    weight: Float64Array | None,
    train: IntArray,
    test: IntArray,
    grid: list[Settings],
    rhos: Float64Array,
    points: list[tuple[int, ...]],
    decisions: list[str],
    classes: np.ndarray,
    scorer: Scorer | None,
    standardize: bool,
) -> FoldScores:
    """Solve and score one fold; the settings share the cached products."""
    mask = np.zeros(len(codes))
    np.add.at(mask, train, 1.0)
    if weight is not None:
        mask *= weight
    with one_blas_thread():
        cov: Covariances = make_covariances(
            as_matrix(X), codes, mask, len(classes), standardize=standardize
        )
        planes = [solve_points(cov, settings, rhos, points) for settings in grid]
        return score_fold(
            planes, X, y, codes, weight, train, test, decisions, classes, scorer
        )


def pick(
    table: Float64Array, sizes: IntArray, allowed: np.ndarray, rule: str
) -> tuple[int, int, int]:
    """The point to take: setting, point and decision.

    Parameters
    ----------
    table : array of shape (n_folds, n_settings, n_points, n_decisions)
        Scores, larger is better.
    sizes : array of shape (n_folds, n_settings, n_points)
        Panel sizes.
    allowed : array of bool of shape (n_settings, n_points, n_decisions)
    rule : {"best", "1se"}
    """
    mean = np.where(allowed, table.mean(axis=0), -np.inf)
    size = np.broadcast_to(sizes.mean(axis=0)[:, :, None], mean.shape)
    # ties go to the smaller panel, then to the earlier row
    order = np.lexsort((np.arange(mean.size), size.ravel(), -mean.ravel()))
    best = np.unravel_index(order[0], mean.shape)
    if not np.isfinite(mean[best]):
        raise ValueError("the score is not finite anywhere: check scoring and the folds")
    if rule == "best" or len(table) < 2:
        return int(best[0]), int(best[1]), int(best[2])
    error = table[(slice(None), *best)].std(ddof=1) / np.sqrt(len(table))
    near = mean >= mean[best] - error
    order = np.lexsort(
        (np.arange(mean.size), -mean.ravel(), np.where(near, size, np.inf).ravel())
    )
    found = np.unravel_index(order[0], mean.shape)
    return int(found[0]), int(found[1]), int(found[2])


def _with_gradient(problems: PlaneProblems, i: int, solution: Solution) -> Solution:
    problem = problems.solvers[i].problem
    problem.cov.extend(solution.features)
    gradient = full_gradient(
        problem.cov, problem.plane, problem.tau, solution.features, solution.w, solution.bias
    )
    return replace(solution, gradient=gradient)


def _path(
    problems: PlaneProblems,
    paths: list[list[Solution]],
    rhos: Float64Array,
    table: Float64Array,
    points: list[tuple[int, ...]],
) -> dict[str, Any]:
    """The diagonal of the chosen setting, where all planes have the same rho."""
    diagonal = [points.index((i,) * len(paths)) for i in range(len(rhos))]
    scores = table[:, diagonal]
    steps = [at_point(paths, (i,) * len(paths)) for i in range(len(rhos))]
    panels = [problems.select(step) for step in steps]
    weights = []
    for step, panel in zip(steps, panels):
        dense = np.zeros((len(step), len(panel)))
        for i, solution in enumerate(step):
            _, at, source = np.intersect1d(panel, solution.features, return_indices=True)
            sign = -1.0 if solution.bias.other < 0.0 else 1.0
            dense[i, at] = sign * solution.w[source]
        weights.append(dense)
    folds = len(scores)
    error = scores.std(axis=0, ddof=1) / np.sqrt(folds) if folds > 1 else np.zeros(len(rhos))
    return {
        "rho": rhos.copy(),
        "delta": np.array([[s.delta for s in step] for step in steps]),
        "panel": panels,
        "weights": weights,
        "n_features": np.array([len(panel) for panel in panels]),
        "score": scores.mean(axis=0),
        "score_error": error,
        "objective": np.array([[s.objective for s in step] for step in steps]),
        "quotient": np.array([[s.quotient for s in step] for step in steps]),
        "kkt_residual": np.array([[s.kkt_residual for s in step] for step in steps]),
        "gap": np.array([[s.gap for s in step] for step in steps]),
    }


def _results(
    table: Float64Array,
    sizes: IntArray,
    grid: list[Settings],
    rhos: Float64Array,
    points: list[tuple[int, ...]],
    decisions: list[str],
) -> dict[str, np.ndarray]:
    n_folds = len(table)
    rows = list(itertools.product(grid, points, decisions))
    out: dict[str, np.ndarray] = {
        "param_q": np.array([settings.q for settings, _, _ in rows]),
        "param_tau": np.array([settings.tau for settings, _, _ in rows]),
        "param_pool": np.array([settings.pool for settings, _, _ in rows]),
        "param_decision": np.array([decision for _, _, decision in rows]),
    }
    for k in range(len(points[0])):
        out[f"rho_{k}"] = np.array([rhos[point[k]] for _, point, _ in rows])
    flat = table.reshape(n_folds, -1)
    size = np.repeat(sizes.reshape(n_folds, -1), len(decisions), axis=1)
    for f in range(n_folds):
        out[f"split{f}_test_score"] = flat[f]
    for f in range(n_folds):
        out[f"split{f}_n_features"] = size[f]
    out["mean_n_features"] = size.mean(axis=0)
    out["mean_test_score"] = flat.mean(axis=0)
    out["std_test_score"] = flat.std(axis=0)
    spread = flat.std(axis=0, ddof=1) if n_folds > 1 else np.zeros(flat.shape[1])
    out["se_test_score"] = spread / np.sqrt(n_folds)
    rank = np.empty(flat.shape[1], dtype=np.intp)
    rank[np.argsort(-out["mean_test_score"], kind="stable")] = np.arange(1, flat.shape[1] + 1)
    out["rank_test_score"] = rank
    return out


def _fold_of_rows(splits: list[tuple[IntArray, IntArray]], n: int) -> IntArray | None:
    """The fold each row is held out from; None unless the folds partition the rows."""
    folds = np.full(n, -1, dtype=np.intp)
    for f, (train, test) in enumerate(splits):
        if (folds[test] >= 0).any() or len(train) + len(test) != n:
            return None
        folds[test] = f
    return folds if (folds >= 0).all() else None


def _listed(name: str, value: Any) -> list[float]:
    values = [float(v) for v in np.atleast_1d(np.asarray(value, dtype=np.float64))]
    if not values:
        raise ValueError(f"{name} must hold at least one value")
    return values


def _route(estimator: Any, params: dict[str, Any]) -> dict[str, Any]:
    from sklearn import get_config

    if get_config().get("enable_metadata_routing"):
        if not params and get_routing_for_object(estimator) is None:
            return {}
        routed: Bunch = process_routing(estimator, "fit", **params)
        return dict(routed.splitter.split)
    unknown = set(params) - {"groups"}
    if unknown:
        raise TypeError(f"fit got unexpected arguments {sorted(unknown)}: only groups is known")
    return {key: value for key, value in params.items() if value is not None}


