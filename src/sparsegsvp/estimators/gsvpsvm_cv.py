"""`GSVPSVMCV`: the penalty, the floor and the decision chosen by cross-validation."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from sklearn.metrics import get_scorer
from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping

from .._parallel import one_thread
from .._validate import check_choice, check_integer, check_real
from ..linalg import Covariances
from ..linalg.matrix import in_memory
from ..metrics.batches import check_batches
from ..solvers.penalties import Penalty, exponent, make_penalties
from ..solvers.working_set import Solution
from .base import (
    PlaneClassifier,
    given_penalty,
    make_settings,
    validate_rows,
)
from .decision import DECISIONS, fit_calibrator
from .folds import given_splitter, route, run_folds, split_rows
from .groups import Steering
from .planes import POOL_FOR_SIZE, PlaneProblems, tau_for_size
from .search import (
    RULES,
    FoldScores,
    HeldOutLosses,
    LabelledRows,
    Scorer,
    Search,
    at_point,
    choose_point,
    effective_rows,
    path_table,
    points_of,
    results_table,
    sizes_up_to,
)

_DEFAULT_SCORING = "balanced_log_loss"
# What tau and pool are chosen from by default.
_GRID = {"tau": (0.3, 1.0, 3.0, 10.0), "pool": (0.5,)}


class GSVPSVMCV(PlaneClassifier):
    """`GSVPSVM` with its parameters chosen by cross-validation along paths.

    Every path is solved once per fold and setting, each point warm started from the last; all
    points are then scored on the held-out rows. The planes have penalties
    ``delta_k = rho * delta_max_k`` with a common ratio rho that falls in geometric steps.

    Parameters
    ----------
    q, tau, pool : float or sequence of float
        Values to choose from, of what they are in `GSVPSVM`. By default q is 1, tau one of 0.3, 1,
        3 and 10, and pool 0.5, unless `n_features` is given.
    n_deltas : int, default=30
        Points on each path.
    ratio : float, default=1e-2
        The last rho.
    decision : str or sequence of str, default=("calibrated",)
        Decisions to choose from. Those other than "calibrated" have no probabilities, and need a
        `scoring` that does not use them.
    cv : int, splitter or iterable, default=5
        Folds; an integer gives shuffled stratified ones, which keep groups whole if `fit` is given
        any. Where a class has fewer samples than that, or there are fewer groups, a warning says
        that there are as many folds as samples of the class, or as groups.
    scoring : str or callable, default="balanced_log_loss"
        "balanced_log_loss" is the class-balanced log loss of the calibrated decision, which,
        unlike accuracy, still tells points apart when all of them separate the classes. Otherwise
        any scikit-learn scorer.
    rule : {"paired", "best", "1se"}, default="paired"
        "paired" takes the sparsest point that the held-out rows cannot tell from the best: its
        losses on the same rows exceed those of the best by at most half a standard error of the
        difference, or by at most 2% of what the best gains over guessing. (With another `scoring`
        the scores of the same folds are compared.) "best" takes the best point, "1se" the sparsest
        within one standard error of its mean.
    combine : bool, default=False
        Whether to score all combinations of the planes' penalties instead of a common ratio:
        ``n_deltas ** n_classes`` scores, and no more solves.
    n_features : int, default=None
        Select exactly this many, on all data and in every fold, as in `GSVPSVM`. There is nothing
        left to choose then, unless `q`, `tau`, `pool` or `decision` have several values; the folds
        calibrate, and `path_` has smaller panels too. `n_deltas`, `ratio`, `combine`, `selection`
        and `max_features` are not used.
    selection, refit, standardize, eps, tol, max_iter
        As in `GSVPSVM`.
    random_state : int, RandomState or None, default=0
        Shuffles the folds when `cv` is an integer.
    n_jobs : int, default=None
        Folds solved at the same time, where they take long enough to be worth processes. The
        result does not depend on it.
    verbose : int, default=0
        With 1, a line per fold.
    penalty : "l1", L1, Lq or an object like them, default="l1"
        As in `GSVPSVM`; an object takes the place of a choice of `q`.
    max_features : int, default=None
        A path ends before the first point at which its planes together have more features than
        this; by default, more than 30 and than there are rows it is fitted on, or than their total
        weight if that is larger. Only points that the paths of all folds and that on all rows
        reached can be chosen.
    penalty_factor, feature_groups : array of shape (n_features_in_,) or mapping, default=None
        As in `GSVPSVM`, for the panels of all folds too.

    Attributes
    ----------
    delta_ : ndarray of shape (n_classes,)
        Penalty chosen for each plane.
    q_, tau_, pool_ : float
        Values chosen; `q_` is NaN for a `penalty` that has no exponent.
    decision_ : str
        Decision chosen.
    best_params_ : dict
        What was chosen, as `GSVPSVM` takes it: ``q`` (or ``penalty``), ``delta`` (or
        ``n_features``), ``tau``, ``pool`` and ``decision``, and ``penalty_factor`` and
        ``feature_groups`` if given.
    best_score_ : float
        Mean score of the choice over the folds. It is the best of many, so it flatters; see
        `nested_evaluate`.
    best_index_ : int
        The chosen row of `cv_results_`.
    cv_results_ : dict of ndarray
        One row per setting, point and decision that could be chosen: ``param_q``, ``param_tau``,
        ``param_pool``, ``param_decision``, ``rho_0``, ``rho_1``, ... of the planes, panel sizes
        and scores of each fold with their mean, spread, standard error and rank, and
        ``mean_balanced_accuracy``. ``pandas.DataFrame`` reads it.
    path_ : dict
        The path of the chosen setting on all data, as far as the folds reached: ``rho``,
        ``delta``, ``panel`` (indices at each point), ``weights``, ``n_features``, ``score``,
        ``score_error``, ``accuracy``, ``accuracy_error``, ``objective``, ``quotient``,
        ``kkt_residual`` and ``gap``, and the index ``chosen``. ``accuracy`` is the balanced
        accuracy of the held-out rows, whatever `scoring` is; it and ``score`` are means over the
        folds, with their standard errors.
    n_splits_ : int
        Number of folds.

    See Also
    --------
    GSVPSVM : At a given penalty; its attributes, but `moments_`, are there too.

    Notes
    -----
    The calibrator is fitted on out-of-fold distances of the chosen point.

    Examples
    --------
    >>> from sparsegsvp import GSVPSVMCV
    >>> from sparsegsvp.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = GSVPSVMCV(tau=1.0, rule="1se").fit(X, y)
    >>> int(model.support_.sum()) < 20
    True
    """

    max_features: int | None = None  # for models that were saved before they had it
    __metadata_request__fit = {"groups": True, "batch": True}  # noqa: RUF012

    def __init__(
        self,
        q: float | Sequence[float] = (1.0,),
        tau: float | Sequence[float] | None = None,
        pool: float | Sequence[float] | None = None,
        n_deltas: int = 30,
        ratio: float = 1e-2,
        decision: str | Sequence[str] = ("calibrated",),
        cv: Any = 5,
        scoring: Any = _DEFAULT_SCORING,
        rule: str = "paired",
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
        penalty: str | Penalty = "l1",
        max_features: int | None = None,
        penalty_factor: Any = None,
        feature_groups: Any = None,
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
        self.penalty = penalty
        self.max_features = max_features
        self.penalty_factor = penalty_factor
        self.feature_groups = feature_groups

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        groups: Any = None,
        batch: Any = None,
        **params: Any,
    ) -> GSVPSVMCV:
        """Choose the parameters by cross-validation and fit on all rows.

        Parameters
        ----------
        X, y
            As in `GSVPSVM.fit`. With a Dask array or data frame the folds are solved in turn, and
            the chunks of each pass at once.
        sample_weight : array of shape (n_samples,), default=None
            Non-negative weights, used in fitting and in the default score.
        groups : array of shape (n_samples,), default=None
            Groups, such as patients, that no fold then splits. Requested by default under
            scikit-learn's metadata routing.
        batch : array-like, data frame or mapping from name to array-like, default=None
            As in `GSVPSVM.fit`. The folds do not depend on it either: `groups` keeps batches whole.
        **params : dict
            With metadata routing enabled, whatever else a splitter given as `cv` requests.

        Returns
        -------
        self : GSVPSVMCV
            The fitted estimator.
        """
        search = self._check_parameters()
        rows = LabelledRows(*validate_rows(self, X, y, sample_weight), self.classes_)
        names = getattr(self, "feature_names_in_", None)
        search = search.steered(Steering.of(self, rows.X.shape[1], names))
        n_points = len(search.rhos if search.sizes is None else search.sizes)
        combine = bool(self.combine) and search.sizes is None
        search = replace(search, points=points_of(n_points, len(self.classes_), combine))
        batches = check_batches(in_memory(batch), len(rows.codes))
        splits = split_rows(self, rows, route(self, groups, params))
        with one_thread():
            folds, cov = run_folds(rows, search, splits, self.n_jobs, bool(self.verbose))
            self._choose(rows, search, folds, cov)
            self._audit(batches, rows.X, rows.codes, in_memory(groups))
        self.n_splits_ = len(splits)
        return self

    def get_metadata_routing(self) -> MetadataRouter:
        """Say which metadata `fit` takes, and which of it goes to a splitter given as `cv`."""
        router = MetadataRouter(owner=self).add_self_request(self)
        if given_splitter(self):
            router.add(
                splitter=check_cv(self.cv, classifier=True),
                method_mapping=MethodMapping().add(caller="fit", callee="split"),
            )
        return router

    def _check_parameters(self) -> Search:
        """The search, but for its points, which depend on the number of classes."""
        if self.n_features is not None:
            check_integer("n_features", self.n_features, least=1)
        q, taus, pools = (self._values(name) for name in ("q", "tau", "pool"))
        decisions = [self.decision] if isinstance(self.decision, str) else list(self.decision)
        if not decisions:
            raise ValueError("decision must hold at least one value")
        for decision in decisions:
            check_choice("decision", decision, DECISIONS)
        check_choice("rule", self.rule, RULES)
        check_integer("n_deltas", self.n_deltas, least=1)
        check_real("ratio", self.ratio, above=0, below=1)
        if self.max_features is not None:
            check_integer("max_features", self.max_features, least=1)
        scorer: Scorer | None = None
        if self.scoring != _DEFAULT_SCORING:
            scorer = get_scorer(self.scoring) if isinstance(self.scoring, str) else self.scoring
        elif decisions != ["calibrated"]:
            raise ValueError(
                f"scoring={_DEFAULT_SCORING!r} needs probabilities, which only "
                'decision="calibrated" has: pass for instance scoring="balanced_accuracy"'
            )
        return Search(
            settings=[
                make_settings(self, *chosen)
                for chosen in itertools.product(
                    make_penalties(q, self.eps, given_penalty(self)), taus, pools
                )
            ],
            rhos=np.geomspace(1.0, self.ratio, int(self.n_deltas)),
            points=[],
            decisions=decisions,
            scorer=scorer,
            standardize=bool(self.standardize),
            sizes=None if self.n_features is None else sizes_up_to(int(self.n_features)),
            max_features=self.max_features,
        )

    def _values(self, name: str) -> list[float]:
        """The values of q, tau or pool to choose from."""
        given = getattr(self, name)
        if given is None:
            given = _GRID[name]
            if self.n_features is not None:
                given = tau_for_size(int(self.n_features)) if name == "tau" else POOL_FOR_SIZE
        values = [float(v) for v in np.atleast_1d(np.asarray(given, dtype=np.float64))]
        if not values:
            raise ValueError(f"{name} must hold at least one value")
        return values

    def _choose(
        self, rows: LabelledRows, search: Search, folds: list[FoldScores], cov: Covariances
    ) -> None:
        """Pick a point, fit it on all rows and calibrate on the folds' held-out distances."""
        table = np.stack([fold.scores for fold in folds])  # fold, setting, point, decision
        accuracies = np.stack([fold.accuracies for fold in folds])
        sizes = np.stack([fold.sizes for fold in folds])
        n_rows = len(rows.codes)
        if rows.weight is not None:
            n_rows = effective_rows(np.count_nonzero(rows.weight), rows.weight.sum())
        # a path need go no further than to the last point that all folds reached
        ends = np.array([1 + max(point) for point in search.points])
        lengths = np.where((sizes > 0).all(axis=0), ends, 1).max(axis=1)

        @cache
        def solved(s: int) -> tuple[PlaneProblems, list[list[Solution]]]:
            problems = PlaneProblems(cov, search.settings[s])
            shortened = replace(search, rhos=search.rhos[: lengths[s]])
            return problems, shortened.paths([problems], n_rows)[0]

        losses = HeldOutLosses.of_folds(folds, rows) if search.scorer is None else None
        choice, reached, allowed = choose_point(table, sizes, search, solved, self.rule, losses)
        s, p, d = choice
        problems, paths = solved(s)
        chosen = search.settings[s]
        self.q_, self.tau_, self.pool_ = exponent(chosen.penalty), chosen.tau, chosen.pool
        self.decision_ = search.decisions[d]
        self.cv_results_ = results_table(table, accuracies, sizes, search, allowed)
        before = int(np.ravel_multi_index((s, p, d), allowed.shape))
        self.best_index_ = int(np.count_nonzero(allowed.ravel()[:before]))
        self.path_ = path_table(
            problems, paths, search, table[:, s, :, d], accuracies[:, s, :, d], reached[s], p
        )
        solutions = problems.with_gradients(at_point(paths, search.points[p]))
        panel = search.panel(problems, solutions, p)
        self._store(problems, solutions, problems.planes(solutions, panel))
        self.best_params_ = self._chosen_params()
        self.best_score_ = float(self.cv_results_["mean_test_score"][self.best_index_])
        self.calibrator_ = None
        if self.decision_ == "calibrated":
            index = np.concatenate([fold.rows for fold in folds])
            features = np.concatenate([fold.features[s, p] for fold in folds])
            found = fit_calibrator(
                features, rows.codes[index], len(rows.classes), rows.weight_of(index)
            )
            self.calibrator_ = (found.coef, found.intercept)

    def _chosen_params(self) -> dict[str, Any]:
        """What was chosen, and what was given with it, as parameters of `GSVPSVM`."""
        given, k = given_penalty(self), self.n_features
        return {
            **({"q": self.q_} if given is None else {"penalty": given}),
            **({"delta": self.delta_.tolist()} if k is None else {"n_features": k}),
            # by default they differ between the path to a panel of a given size and its planes
            "tau": None if k is not None and self.tau is None else self.tau_,
            "pool": None if k is not None and self.pool is None else self.pool_,
            "decision": self.decision_,
            **{
                name: getattr(self, name)
                for name in ("penalty_factor", "feature_groups")
                if getattr(self, name) is not None
            },
        }
