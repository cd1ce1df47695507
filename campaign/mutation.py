"""Changed code that the tests notice: mutation testing of the functions that decide results.

    python campaign/mutation.py                        # all targets, about half an hour
    python campaign/mutation.py --only quotient verdict

Each mutant is one small change of one function: an operator, a comparison, a constant, a
condition, an end of a slice, ``min`` for ``max``, a statement or a return value left out. It is
*killed* if a test of its target fails. At least 85% of each target's must be; the others are
listed, with the reason where there is one (`REASONS`).

Why not a library: mutmut copies the project, times all tests once and picks them by itself, and
knows mutants by a number that the next edit changes; cosmic-ray rewrites files and starts an
interpreter for every mutant, whose imports take longer than the tests. Here the tests are
collected once, each mutant is a fork of that process in which the function's code object is
replaced, and only those tests run that reach the function, those first that kill most mutants
for their time. A mutant takes a fraction of a second, and a test that it sends astray is ended
soon: progress goes to stderr.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import os
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
LEAST = 0.85
MEMORY = 8 << 30


@dataclass(frozen=True)
class Target:
    """Functions of one module, and the tests that should notice a change of them."""

    module: str
    functions: tuple[str, ...]
    tests: tuple[str, ...]


def target(module: str, functions: str, *tests: str) -> Target:
    return Target(f"sparsegsvp.{module}", tuple(functions.split()), tests)


# When a function moves, its line here moves with it.
TARGETS: dict[str, Target] = {
    "quotient": target(
        "solvers.quotient",
        "OneVsRest.of_class best_bias single_feature_ratios GramQuotient.__init__ "
        "GramQuotient.pair_products GramQuotient.gathered GramQuotient.curvature "
        "FactorQuotient.__init__ FactorQuotient.products FactorQuotient.curvature "
        "evaluate hessian check_definite",
        "tests/solvers/test_quotient.py",
    ),
    "gradients": target(
        "solvers.gradients",
        "References.add References.gradient GradientRequest.spread GradientRequest.mean "
        "full_gradients _estimate _remembered cached_gradient run_to_end together",
        *(
            f"tests/solvers/test_gradients.py::test_{name}"
            for name in (
                "the_full_gradient_from_a_few_features",
                "the_gradient_of_columns_in_memory_is_that_of_a_pass",
                "what_is_not_read_is_below_the_threshold",
                "what_is_read_is_what_the_bound_leaves_open",
                "certificates_are_true_and_take_fewer_passes[L1()-3-float64]",
                "single_solutions_come_with_their_gradient[L1()]",
                "solvers_of_different_lengths_end_together",
                "each_solver_is_sent_what_it_has_asked_for",
            )
        ),
    ),
    "sphere": target(
        "solvers.sphere",
        "rounding soft_threshold prox_on_sphere kkt_residual minimize_on_sphere _State.__init__ "
        "_State.admits _Memory.length _admitting _gradient_step _newton_step "
        "_newton_direction",
        "tests/solvers/test_sphere.py",
    ),
    "lean step": target(
        "solvers.newton",
        "minimize_with_newton _Newton.__init__ _Newton._evaluated _Newton._measured _Newton.step "
        "_Newton._entering _Newton._search _Newton._direction _Newton.system _Newton._gather "
        "_turned _core _without",
        "tests/solvers/test_newton.py",
    ),
    "exact": target(
        "solvers.exact",
        "solve_unpenalized _in_row_space _solution _bordered _smallest_eigenvector "
        "_smallest_generalized_vector _factor",
        "tests/solvers/test_exact.py",
    ),
    "decision": target(
        "estimators.decision",
        "log_distances Calibrator.log_odds Calibrator.probabilities fit_calibrator "
        "fit_calibrators _fit_binary balanced_sample scores margin predicted_codes probabilities "
        "FoldModel.decision_function FoldModel.predicted_codes FoldModel.predict "
        "FoldModel.predict_proba",
        "tests/estimators/test_decision.py",
        "tests/estimators/test_scoring.py::"
        "test_calibrators_of_many_models_are_logistic_regressions",
    ),
    "intervals": target(
        "evaluation.intervals",
        "corrected_error corrected_interval score_interval rate_interval auc_interval "
        "counting_deviation holm paired_differences",
        "tests/evaluation/test_intervals.py",
    ),
    "permutation": target(
        "evaluation.permutation",
        "fixed_statistic permutation_scheme permute_labels _statistic draws_wanted "
        "permutation_test",
        "tests/evaluation/test_permutation.py",
    ),
    "p-value": target(
        "metrics.scores", "sequential_p_value", "tests/evaluation/test_permutation.py"
    ),
    "verdict": target("evaluation.permutation", "verdict", "tests/evaluation/test_verdict.py"),
    "stability": target(
        "metrics.stability",
        "_indicator average_jaccard nogueira_stability",
        "tests/test_metrics.py",
    ),
    "roles": target(
        "io.roles",
        "role_lines asked_names asked_roles match_names assign_roles assign_roles_by_name "
        "_enough_others _record_role _keep_columns _Columns.__init__ _Columns._share_of_whole "
        "_Columns.text _Columns._refuse_numbers _Columns._people _Columns.identifiers "
        "_Columns.clinical _Columns._odd _Columns._constant _giveaways _first_text _holds_text",
        "tests/io/test_roles.py",
        "tests/io/test_edges.py",
    ),
}  # fmt: skip

# Survivors that no test can or need kill: the reason, then what `Mutant.name` says of them.
_LIVING: dict[str, tuple[str, ...]] = {
    "a number that all panels share drops out of terms - terms.mean()": (
        "nogueira_stability: add -> sub in `terms = (Z @ p / d - sizes * k / d ** 2 + value / 2 * (2 * sizes * k / d ** 2 - sizes / d ` (2)",
        "nogueira_stability: 1 -> 2 in `terms = (Z @ p / d - sizes * k / d ** 2 + value / 2 * (2 * sizes * k / d ** 2 - sizes / d `",
        "nogueira_stability: 1 -> 0 in `terms = (Z @ p / d - sizes * k / d ** 2 + value / 2 * (2 * sizes * k / d ** 2 - sizes / d `",
        "nogueira_stability: sub -> add in `terms = (Z @ p / d - sizes * k / d ** 2 + value / 2 * (2 * sizes * k / d ** 2 - sizes / d ` (2)",
        "nogueira_stability: div -> mult in `terms = (Z @ p / d - sizes * k / d ** 2 + value / 2 * (2 * sizes * k / d ** 2 - sizes / d ` (7)",
    ),
    "both quantiles change their sign, and their ratio is squared": (
        "score_interval: sub -> add in `tail = (1 - level) / 2`",
    ),
    "differs at one value of p alone": (
        "paired_differences: lte -> lt in `rejecting = p_values[i] <= alpha / divisor`",
    ),
    "the same plane by the other way, row space or blocks": (
        "solve_unpenalized: gt -> gte in `if tau > 0.0 and len(features) > cov.n_samples:`",
        "solve_unpenalized: 0.0 -> -1.0 in `if tau > 0.0 and len(features) > cov.n_samples:`",
        "solve_unpenalized: gt -> gte in `if tau > 0.0 and len(features) > cov.n_samples:` (2)",
    ),
    "the factors serve singular forms, which are refused before; else both agree": (
        "solve_unpenalized: gt -> gte in `if tau > 0.0:`",
        "solve_unpenalized: 0.0 -> -1.0 in `if tau > 0.0:`",
    ),
    "differs at one value alone": (
        "solve_unpenalized: lte -> lt in `if norm <= 1e-08 * abs(float(z[-1])):`",
        "best_bias: lte -> lt in `if root <= _FLAT * (a + c):`",
        "best_bias: gt -> gte in `if u > 0.0:`",
        "best_bias: gt -> gte in `clipped = bool(abs(t) > far)`",
        "check_definite: lte -> lt in `singular = bool(values[0] <= 1e-13 * values[-1])`",
        "References.gradient: gte -> gt in `near = np.abs(out) >= threshold - apart * self.cov.column_norms`",
        "minimize_on_sphere: lt -> lte in `if newton and polish and (SURE * tol < residual <= tol) and (0 < n_iter < max_iter):`",
        "minimize_on_sphere: lte -> lt in `if polished is not None and polished.residual() <= residual:`",
        "_gradient_step: lte -> lt in `if new.objective <= state.objective - ARMIJO * moved / (2.0 * length):`",
        "_newton_step: lte -> lt in `if new.objective <= state.objective + ARMIJO * length * slope + rounding(state.objective):`",
        "minimize_with_newton: lt -> lte in `if polish and SURE * tol < current.residual <= tol and (1 < len(history) <= max_iter):`",
        "minimize_with_newton: lte -> lt in `if found is not None and found.residual <= current.residual:`",
        "_Newton.step: gt -> gte in `if it.worst > self.tol:`",
        "_Newton.step: gte -> gt in `if slope >= 0.0:`",
        "_Newton._search: lte -> lt in `if new.objective <= it.objective + ARMIJO * length * slope + slack:`",
    ),
    "an array of one dimension has one index array": (
        "kkt_residual: 0 -> -1 in `at = w.nonzero()[0]`",
        "_newton_step: 0 -> -1 in `at = point.w.nonzero()[0]`",
        "_Newton._entering: 0 -> -1 in `new = (it.excess > self.tol).nonzero()[0]`",
        "_turned: 0 -> -1 in `pairs = (~single).nonzero()[0][::2]`",
        "References.gradient: 0 -> -1 in `index = near.nonzero()[0]`",
    ),
    "signs are 1 or -1": (
        "kkt_residual: mult -> div in `total = gradient[at] + slopes[at] * np.sign(w[at])`",
        "_newton_direction: mult -> div in `total = point.gradient[at] + state.slopes[at] * np.sign(v)`",
        "_Newton._evaluated: mult -> div in `size = v * signs`",
        "_Newton._measured: mult -> div in `it.total += it.slopes[it.support] * it.signs`",
        "_Newton.step: mult -> div in `total = np.concatenate((total, pull + it.slopes[new] * signs[-len(new):]))`",
        "_Newton._search: mult -> div in `crossed = values * signs <= 0.0`",
    ),
    "a single feature has no tangent: its slope is zero, which is refused later": (
        "_newton_step: 2 -> 1 in `if not 2 <= len(at) <= MAX_NEWTON:`",
        "_Newton.step: 2 -> 1 in `if not 2 <= len(at) <= MAX_NEWTON:`",
    ),
    "of right side and solution one is projected already: the other is for rounding": (
        "_newton_direction: total -= multiplier * v -> pass",
        "_newton_direction: sub -> add in `total -= multiplier * v`",
        "_newton_direction: direction -= float(v @ direction) * v -> pass",
        "_newton_direction: sub -> add in `direction -= float(v @ direction) * v`",
        "_newton_direction: mult -> div in `direction -= float(v @ direction) * v`",
        "_Newton.step: direction -= float(v @ direction) * v -> pass",
        "_Newton.step: sub -> add in `direction -= float(v @ direction) * v`",
    ),
    "for data without any spread": (
        "_newton_direction: 1e-300 -> -1.0 in `gamma = max(float(np.abs(H.flat[::len(at) + 1]).mean()), 1e-300)`",
        "_Newton.system: 1e-300 -> -1.0 in `scale = max(abs(s * (own - ratio * spread) + shift), 0.01 * s * (own + tau), 1e-300)`",
    ),
    "the matrix is symmetric: either triangle will do": (
        "_newton_direction: 1 -> 0 in `values, vectors, info = dsyevd(H, lower=1)`",
        "_Newton._direction: 1 -> 0 in `_, direction, info = dposv(H.T, total, lower=1)`",
    ),
    "the same features in another order": (
        "_Newton._entering: gt -> gte in `if len(new) > most:`",
        "_turned: -H.diagonal() -> H.diagonal() in `order = np.argsort(-H.diagonal())`",
    ),
    "a spread is below zero by rounding alone": (
        "evaluate: 0.0 -> -1.0 in `bias = best_bias(max(float(w @ own), 0.0) + tau, max(float(w @ other), 0.0) + tau, float(w`",
        "evaluate: 0.0 -> -1.0 in `bias = best_bias(max(float(w @ own), 0.0) + tau, max(float(w @ other), 0.0) + tau, float(w` (2)",
        "_Newton._evaluated: 0.0 -> -1.0 in `it.bias = best_bias(max(own, 0.0) + tau, max(other, 0.0) + tau, other_mean - own_mean)`",
        "_Newton._evaluated: 0.0 -> -1.0 in `it.bias = best_bias(max(own, 0.0) + tau, max(other, 0.0) + tau, other_mean - own_mean)` (2)",
    ),
    "LAPACK counts pivots from one": (
        "_turned: gt -> gte in `single = pivots > 0`",
        "_turned: 0 -> -1 in `single = pivots > 0`",
    ),
    "next to nothing either way: it only must not be zero": (
        "_turned: gt -> gte in `factor[k + 1, k] = beside if abs(beside) > 1e-100 * trace else 1e-100 * trace`",
        "_turned: mult -> div in `factor[k + 1, k] = beside if abs(beside) > 1e-100 * trace else 1e-100 * trace`",
        "_turned: mult -> div in `factor[k + 1, k] = beside if abs(beside) > 1e-100 * trace else 1e-100 * trace` (2)",
    ),
    "what lies along w goes by the projection": (
        "_core: mult -> div in `slope = (0.0, -s, 0.0, -s * other, -s * tau)` (2)",
        "_core: -s -> s in `slope = (0.0, -s, 0.0, -s * other, -s * tau)` (3)",
    ),
    "a single mean has no spread: the contrast is zero": (
        "OneVsRest.of_class: gt -> gte in `if k > 2:`",
        "OneVsRest.of_class: 2 -> 1 in `if k > 2:`",
    ),
    "two forms of one root; the quotient is flat there, so the digits they differ in do not show": (
        "single_feature_ratios: gt -> gte in `t = np.where(u > 0.0, 2.0 * a * d / (u + root), (root - u) / (2.0 * d))`",
        "single_feature_ratios: 0.0 -> 1.0 in `t = np.where(u > 0.0, 2.0 * a * d / (u + root), (root - u) / (2.0 * d))`",
    ),
    "the spreads are the same and so are the means: the quotient is one at any t": (
        "single_feature_ratios: 0.0 -> 1.0 in `t = np.clip(np.where(np.isnan(t), 0.0, t), -far, far)`",
        "single_feature_ratios: 0.0 -> -1.0 in `t = np.clip(np.where(np.isnan(t), 0.0, t), -far, far)`",
    ),
    "the same products by the other way, which is chosen for speed": (
        "GramQuotient.pair_products: lt -> lte in `if 2 * len(at) < len(w):`",
        "GramQuotient.pair_products: lt -> gte in `if 2 * len(at) < len(w):`",
        "GramQuotient.pair_products: mult -> div in `if 2 * len(at) < len(w):`",
        "GramQuotient.pair_products: 2 -> 3 in `if 2 * len(at) < len(w):`",
        "GramQuotient.pair_products: 2 -> 1 in `if 2 * len(at) < len(w):`",
    ),
    "NumPy infers any negative length": (
        "GramQuotient.gathered: 1 -> 2 in `return self._pair.reshape(2, -1).take(flat, axis=1)`",
    ),
    "as many features as rows have an eigenvalue of zero, which is found next": (
        "check_definite: gte -> gt in `singular = len(features) >= cov.n_samples`",
    ),
    "there is one block": (
        "check_definite: 0 -> -1 in `total = cov.blocks(features, (plane.own + plane.other)[None])[0]`",
    ),
    "requests of one pass share their covariances": (
        "full_gradients: 0 -> -1 in `cov = requests[0].cov`",
    ),
    "one fold has no deviation: NaN, in whose place the bounds stand": (
        "corrected_interval: 2 -> 1 in `if s.size < 2:`",
    ),
    "z is of unit length in the sum of the forms, so its last entry is about one or less": (
        "solve_unpenalized: mult -> div in `if norm <= 1e-08 * abs(float(z[-1])):`",
    ),
    "the lift keeps lengths: this is for rounding": (
        "_in_row_space: w /= np.linalg.norm(w) -> pass",
        "_in_row_space: div -> mult in `w /= np.linalg.norm(w)`",
    ),
    "every entry is overwritten, but for weights of exactly zero": (
        "_in_row_space: zeros -> ones in `dense = np.zeros(reduced.means.shape[1])`",
    ),
    "the same entries: the last row is of the border, which is written later": (
        "_bordered: k -> nothing in `out[:k, :k].flat[::k + 1] += tau`",
    ),
    "a second vector that nobody reads": (
        "_smallest_eigenvector: 0 -> 1 in `_, vectors = eigh(A, A + B, subset_by_index=[0, 0])` (2)",
    ),
    "there is one column": (
        "_smallest_eigenvector: 0 -> -1 in `return vectors[:, 0]`",
        "fit_calibrator: 0 -> -1 in `return Calibrator(coef[0].copy(), np.array(intercept[0]))`",
        "fit_calibrator: 0 -> -1 in `return Calibrator(coef[0].copy(), np.array(intercept[0]))` (2)",
        "_fit_binary: 0 -> -1 in `loss = np.matmul(np.logaddexp(0.0, -signs * z)[:, None, :], weight)[:, 0]`",
        "_fit_binary: 0 -> -1 in `gradient = np.matmul(design, (weight * (p - codes))[:, :, None])[:, :, 0] + ridge * theta`",
        "_fit_binary: 0 -> -1 in `step = np.linalg.solve(curvature, gradient[:, :, None])[:, :, 0]`",
        "_fit_binary: 0 -> -1 in `trial_z = np.matmul(trial[:, None, :], design)[:, 0]`",
    ),
    "the rows of a class without weight weigh nothing, whatever that is divided by": (
        "fit_calibrators: 1.0 -> 2.0 in `safe = np.where(totals > 0.0, totals, 1.0)`",
    ),
    "a cap that is far above what is needed": (
        "fit_calibrators: 200 -> 201 in `models = [LogisticRegression(C=1.0, solver=solver, tol=1e-08, max_iter=200).fit(features[:`",
        "fit_calibrators: 200 -> 199 in `models = [LogisticRegression(C=1.0, solver=solver, tol=1e-08, max_iter=200).fit(features[:`",
    ),
    "any small number keeps the matrix from being singular": (
        "_fit_binary: add -> sub in `curvature[:, diagonal, diagonal] += ridge + 1e-12 * (1.0 + trace)[:, None]` (2)",
        "_fit_binary: add -> sub in `curvature[:, diagonal, diagonal] += ridge + 1e-12 * (1.0 + trace)[:, None]` (3)",
        "_fit_binary: 1.0 -> 2.0 in `curvature[:, diagonal, diagonal] += ridge + 1e-12 * (1.0 + trace)[:, None]`",
        "_fit_binary: 1.0 -> 0.0 in `curvature[:, diagonal, diagonal] += ridge + 1e-12 * (1.0 + trace)[:, None]`",
    ),
    "a few more steps at the minimum, which change the last digits": (
        "_fit_binary: lte -> lt in `last = decrement <= 1e-12 * (1.0 + np.abs(value))`",
        "_fit_binary: mult -> div in `last = decrement <= 1e-12 * (1.0 + np.abs(value))`",
        "_fit_binary: 1e-12 -> -0.999999999999 in `last = decrement <= 1e-12 * (1.0 + np.abs(value))`",
        "_fit_binary: add -> sub in `last = decrement <= 1e-12 * (1.0 + np.abs(value))`",
        "_fit_binary: 1.0 -> 2.0 in `last = decrement <= 1e-12 * (1.0 + np.abs(value))`",
        "_fit_binary: 1.0 -> 0.0 in `last = decrement <= 1e-12 * (1.0 + np.abs(value))`",
    ),
    "steps between no descent and one ten-thousandth of the promised one do not occur": (
        "_fit_binary: gt -> gte in `short = ~last & (trial_value > value - 0.0001 * length * decrement)`",
        "_fit_binary: sub -> add in `short = ~last & (trial_value > value - 0.0001 * length * decrement)`",
    ),
    "without it the step is halved until it is zero, and tried again: the same end, later": (
        "_fit_binary: lte -> lt in `stuck = short & (length <= 1e-10)`",
        "_fit_binary: 1e-10 -> -0.9999999999 in `stuck = short & (length <= 1e-10)`",
        "_fit_binary: True -> False in `length[stuck], last[stuck] = (0.0, True)`",
        "_fit_binary: break -> pass (2)",
    ),
    "a sample of as many rows as there are is all of them": (
        "balanced_sample: lte -> lt in `if len(codes) <= size:`",
    ),
    "X is square where the forms are definite": (
        "_smallest_generalized_vector: 1 -> 0 in `z, *_ = lstsq(found.X.T, np.eye(found.X.shape[1])[smallest])`",
    ),
    "without groups the scheme is free: both say the same": (
        "permute_labels: or -> and in `if scheme == 'free' or groups is None:`",
    ),
    "what a fit on permuted labels warns of is not shown, and no result": (
        "_statistic: warnings.simplefilter('ignore') -> pass",
    ),
    "as many draws are done either way": (
        "permutation_test: 0 -> 1 in `progress(PERMUTATIONS, min(len(done.keys() - {0}), total), total)`",
        "permutation_test: 1 -> 0 in `compute(list(range(len(exceeds) + 1, min(len(exceeds) + workers, total) + 1)))`",
    ),
    "the bound is far below the steps of the statistic": (
        "permutation_test: gte -> gt in `exceeds.append(done[len(exceeds) + 1] >= done[0] - 1e-12)`",
    ),
    "a copy of the same table": ("_keep_columns: lt -> lte in `if len(left) < len(raw.names):`",),
    "nobody asks for whole numbers where the table is not wide": (
        "_Columns.__init__: 0 -> 1 in `self.whole = whole_columns(raw.X) if self.wide else np.zeros(0, dtype=bool)`",
        "_Columns.__init__: zeros -> ones in `self.whole = whole_columns(raw.X) if self.wide else np.zeros(0, dtype=bool)`",
    ),
    "all of them are the same text": (
        "_Columns._refuse_numbers: 0 -> 1 in `code = if_a_code(others[0]) if len(set(others)) == 1 else ''`",
        "_Columns._refuse_numbers: 0 -> -1 in `code = if_a_code(others[0]) if len(set(others)) == 1 else ''`",
    ),
    "in a wide table the share is below a tenth or above nine": (
        "_Columns.clinical: lte -> lt in `fractions = self._share_of_whole() <= 0.5`",
    ),
}
REASONS = {name: reason for reason, names in _LIVING.items() for name in names}

# --------------------------------------------------------------------------- mutants

_BINARY = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
# the boundary, and the other side
_COMPARED = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt), ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
}  # fmt: skip
_PAIRS = ("min max", "minimum maximum", "argmin argmax", "any all", "zeros ones", "nanmin nanmax")
_CALLED = {a: b for pair in _PAIRS for a, b in (pair.split(), pair.split()[::-1])}
_NO_CODE = ("annotation", "returns", "decorator_list")
_DECIDED = (ast.Compare, ast.BoolOp)  # conditions that have mutants of their own


@dataclass
class Mutant:
    """One change: ``new`` instead of what is at ``field`` (and ``index``) of ``node``."""

    function: str
    statement: str
    node: ast.AST
    field: str
    index: int | None
    new: Any
    line: int
    number: int = 1
    """Of several that read the same in one function."""

    @property
    def old(self) -> Any:
        value = getattr(self.node, self.field)
        return value if self.index is None else value[self.index]

    @property
    def name(self) -> str:
        """What is changed, in words that stay when lines move."""
        more = f" ({self.number})" if self.number > 1 else ""
        change = f"{_text(self.old)} -> {_text(self.new)}"
        where = "" if isinstance(self.old, ast.stmt) else f" in `{self.statement}`"
        return f"{self.function}: {change}{where}{more}"

    def apply(self) -> None:
        if self.index is None:
            setattr(self.node, self.field, self.new)
        else:
            getattr(self.node, self.field)[self.index] = self.new


def _text(node: Any) -> str:
    if not isinstance(node, ast.AST):
        return str(node or "nothing")
    if isinstance(node, ast.operator | ast.cmpop | ast.boolop):
        return type(node).__name__.lower()
    return ast.unparse(node).splitlines()[0][:90]


def _changes(node: ast.AST) -> Iterator[tuple[str, int | None, Any]]:
    """Yield what may stand instead at some field of a node."""
    match node:
        case ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op) in _BINARY:
            if not _is_text(node):
                yield "op", None, _BINARY[type(op)]()
        case ast.Compare(ops=ops):
            for i, op in enumerate(ops):
                yield from (("ops", i, new()) for new in _COMPARED[type(op)])
        case ast.BoolOp(op=op):
            yield "op", None, ast.Or() if isinstance(op, ast.And) else ast.And()
        case ast.Return(value=value) if value is not None and not _is_none(value):
            yield "value", None, ast.Constant(None)
        case ast.Slice():
            for end in ("lower", "upper", "step"):
                if getattr(node, end) is not None:
                    yield end, None, None
        case ast.Attribute(attr=name) if name in _CALLED:
            yield "attr", None, _CALLED[name]
    for name, value in ast.iter_fields(node):
        if name in _NO_CODE:
            continue
        entries = enumerate(value) if isinstance(value, list) else [(None, value)]
        for i, entry in entries:
            if isinstance(entry, ast.AST):
                yield from ((name, i, new) for new in _instead(entry, name))


def _instead(node: ast.AST, name: str) -> Iterator[ast.AST]:
    """Yield what may stand for a node as a whole."""
    match node:
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield ast.Constant(value + 1)
            yield ast.Constant(value - 1)
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert(), operand=operand):
            yield operand
        case ast.Name(id=called) if called in _CALLED and name == "func":
            yield ast.Name(_CALLED[called], ast.Load())
        case ast.Expr(value=ast.Call()) | ast.Raise() | ast.Break() | ast.Continue():
            yield ast.Pass()
        case ast.AugAssign() | ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield ast.Pass()
    if name == "test" and not isinstance(node, (*_DECIDED, ast.UnaryOp)):
        yield ast.UnaryOp(ast.Not(), node)


def _is_text(node: ast.AST) -> bool:
    return any(
        isinstance(n, ast.JoinedStr) or (isinstance(n, ast.Constant) and isinstance(n.value, str))
        for n in ast.iter_child_nodes(node)
    )


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def mutants_of(function: str, body: ast.FunctionDef) -> Iterator[Mutant]:
    """Yield the mutants of a function: its statements, not its signature nor its words."""
    seen: Counter[str] = Counter()

    def walk(node: ast.AST, statement: str, line: int) -> Iterator[Mutant]:
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert):
            return  # what an error says is no result
        if isinstance(node, ast.stmt):
            statement, line = _text(node), node.lineno
        defined = isinstance(node, ast.FunctionDef | ast.Lambda)
        for part, index, new in _changes(node):
            if not defined or part == "body":
                yield Mutant(function, statement, node, part, index, new, line)
        for part, value in ast.iter_fields(node):
            if part in _NO_CODE or (defined and part != "body"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from walk(child, statement, line)

    for mutant in walk(body, "", body.lineno):
        seen[mutant.name] += 1
        mutant.number = seen[mutant.name]
        yield mutant


class Module:
    """The source of a target's module as a tree, and its functions as they are loaded."""

    def __init__(self, name: str) -> None:
        self.loaded = importlib.import_module(name)
        path = self.loaded.__file__
        assert path is not None
        self.path, self.tree = path, ast.parse(Path(path).read_text(encoding="utf-8"))

    def node(self, function: str) -> ast.FunctionDef:
        node: Any = self.tree
        for part in function.split("."):
            named = [n for n in node.body if getattr(n, "name", None) == part]
            if not named:
                raise LookupError(f"{self.loaded.__name__} has no {function}: mend TARGETS")
            (node,) = named
        return node

    def function(self, function: str) -> Any:
        owner: Any = self.loaded
        *owners, last = function.split(".")
        for part in owners:
            owner = getattr(owner, part)
        found = vars(owner).get(last)
        return getattr(found, "fget", None) or getattr(found, "__func__", None) or found

    def home(self, function: str) -> Module:
        """Return the module that defines a function of this one: itself, if it does not import it."""
        home = getattr(self.function(function), "__module__", self.loaded.__name__)
        return self if home == self.loaded.__name__ else Module(home)

    def replace(self, function: str) -> None:
        """Give the loaded function the code of the tree as it is now."""
        code = compile(ast.fix_missing_locations(self.tree), self.path, "exec", dont_inherit=True)
        for part in function.split("."):
            (code,) = (c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == part)
        self.function(function).__code__ = code


# --------------------------------------------------------------------------- the tests


@dataclass
class Trial:
    """A pytest plugin that runs the collected tests once for every mutant, each in a fork."""

    target: Target
    workers: int
    survivors: list[Mutant] = field(default_factory=list)
    total: int = 0
    broken: str = ""

    def pytest_configure(self, config: pytest.Config) -> None:
        config.option.tbstyle = "no"  # nobody reads why a test has failed

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        module, self.failed = Module(self.target.module), ""
        self.homes = {function: module.home(function) for function in self.target.functions}
        try:
            bodies = {function: home.node(function) for function, home in self.homes.items()}
        except LookupError as error:
            self.broken = str(error)
            return True
        clean = self._result(*self._fork(None, session.items))
        if clean["failed"]:
            self.broken = f"{clean['failed']} fails without any change"
            return True
        self.seconds: dict[str, float] = clean["seconds"]
        reaching = {
            function: [item for item in session.items if item.nodeid in nodes]
            for function, nodes in clean["reached"].items()
        }
        self.kills: Counter[str] = Counter()
        running: dict[int, tuple[Mutant, Any]] = {}
        start = time.monotonic()
        for function, body in bodies.items():
            for mutant in mutants_of(function, body):
                self.total += 1
                items = reaching.get(function, [])
                if not items:
                    self.survivors.append(mutant)
                    continue
                if len(running) >= self.workers:
                    self._wait(running)
                items.sort(key=self._promise, reverse=True)
                pid, pipe = self._fork(mutant, items)
                running[pid] = mutant, pipe
            print(
                f"{function}: {self.total} mutants, {len(self.survivors)} alive, "
                f"{time.monotonic() - start:.0f} s",
                file=sys.stderr,
                flush=True,
            )
        while running:
            self._wait(running)
        self.survivors.sort(key=lambda mutant: mutant.line)
        return True

    def _promise(self, item: pytest.Item) -> float:
        """How many mutants a test may be expected to kill in a second."""
        return (self.kills[item.nodeid] + 1) / (self.seconds[item.nodeid] + 0.05)

    def _wait(self, running: dict[int, tuple[Mutant, Any]]) -> None:
        """Wait for the end of one of the forks."""
        pid = 0
        while pid not in running:
            pid, _ = os.wait()
        mutant, pipe = running.pop(pid)
        result = self._read(pipe)
        if result is None or result["failed"]:  # None: it hung, or took the process with it
            self.kills[result["failed"] if result else ""] += 1
        else:
            self.survivors.append(mutant)

    def _result(self, pid: int, pipe: Any) -> dict[str, Any]:
        # read first: a fork that writes more than a pipe holds waits for its reader
        result = self._read(pipe)
        os.waitpid(pid, 0)
        return result or {"failed": "a test process that ended"}

    def _read(self, pipe: Any) -> dict[str, Any] | None:
        with pipe:
            text = pipe.read()
        return json.loads(text) if text else None

    def _fork(self, mutant: Mutant | None, items: list[pytest.Item]) -> tuple[int, Any]:
        """Run tests in a fork, with the mutant in place or with a record of what they reach."""
        read, write = os.pipe()
        pid = os.fork()
        if pid:
            os.close(write)
            return pid, os.fdopen(read)
        try:
            result = self._clean(items) if mutant is None else self._mutated(mutant, items)
            with os.fdopen(write, "w") as pipe:
                json.dump(result, pipe)
        finally:
            os._exit(0)

    def _clean(self, items: list[pytest.Item]) -> dict[str, Any]:
        codes = {home.function(f).__code__: f for f, home in self.homes.items()}
        reached: dict[str, list[str]] = {f: [] for f in self.target.functions}
        seconds: dict[str, float] = {}
        for item, after in zip(items, [*items[1:], None]):
            seen = set()
            start = time.process_time()
            sys.setprofile(lambda frame, *_: seen.add(frame.f_code))  # noqa: B023
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            sys.setprofile(None)
            seconds[item.nodeid] = time.process_time() - start
            for code in seen & codes.keys():
                reached[codes[code]].append(item.nodeid)
            if self.failed:
                break
        return {"failed": self.failed, "reached": reached, "seconds": seconds}

    def _mutated(self, mutant: Mutant, items: list[pytest.Item]) -> dict[str, Any]:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        mutant.apply()
        self.homes[mutant.function].replace(mutant.function)
        for item, after in zip(items, [*items[1:], None]):
            # twice what it took with a record of all calls, which is several times the usual
            limit = int(time.process_time() + 2.0 * self.seconds[item.nodeid]) + 2
            resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            if self.failed:
                break
        return {"failed": self.failed}

    def pytest_internalerror(self, excrepr: Any) -> None:
        self.broken = str(excrepr)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid


def run(name: str, workers: int) -> Trial:
    """Try all mutants of a target."""
    from hypothesis import Phase, settings

    # the failing example is not looked at: no database, no shrinking
    settings.register_profile("mutation", database=None, phases=[Phase.explicit, Phase.generate])
    settings.load_profile("mutation")
    trial = Trial(TARGETS[name], workers)
    quiet = [f"no:{plugin}" for plugin in ("terminal", "faulthandler", "cacheprovider", "xdist")]
    plugins = [word for name in (*quiet, "no:timeout") for word in ("-p", name)]
    # what is set in pyproject.toml is for people who read the output
    options = ["-o", "addopts=", "--import-mode=importlib", "--strict-markers"]
    code = pytest.main([*plugins, *options, *trial.target.tests], plugins=[trial])
    if code != 0 or not trial.total:
        trial.broken = trial.broken or f"the trial ended with exit code {int(code)}"
    return trial


def main() -> int:
    """Try the mutants of all targets; 1 if too few are killed anywhere."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=TARGETS, metavar="TARGET")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", type=Path, help="write what was counted and found to this file")
    given = parser.parse_args()
    os.chdir(ROOT)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    numbers: dict[str, float] = {"mutants": 0, "killed": 0}
    findings, notes = [], []
    for name in given.only or TARGETS:
        start = time.monotonic()
        trial = run(name, given.workers)
        if trial.broken:
            findings.append(f"{name}: {trial.broken}")
            continue
        killed = trial.total - len(trial.survivors)
        share = killed / trial.total
        numbers["mutants"] += trial.total
        numbers["killed"] += killed
        numbers[f"{name}, killed %"] = round(100 * share, 1)
        print(f"\n{name}: {killed} of {trial.total} killed ({share:.1%}), "
              f"{time.monotonic() - start:.0f} s")  # fmt: skip
        if share < LEAST:
            findings.append(f"{name}: {share:.1%} of the mutants killed, {LEAST:.0%} promised")
        for mutant in trial.survivors:
            reason = REASONS.get(mutant.name)
            print(f"  line {mutant.line}: {mutant.name}" + (f"\n      {reason}" if reason else ""))
            notes.append(f"survived: {mutant.name}; {reason or 'no test notices'}")
    print("\n" + "\n".join(findings or ["Every target has the mutants killed that are promised."]))
    if given.json:
        found = {"numbers": numbers, "findings": findings, "notes": notes}
        given.json.write_text(json.dumps(found, indent=1) + "\n")
    return 1 if findings else 0


if __name__ == "__main__":
    raise SystemExit(main())
