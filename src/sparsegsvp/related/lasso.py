"""The convex step of the sparse related methods: a lasso on a quadratic form, solved exactly.

    min over z = [w; b]    z'Qz - 2 c'z + l1 ||w||_1 ,    Q = F'F + ridge I ,  ridge > 0 ,

optionally on the hyperplane g'z = 1. The bias b, the last entry, is free of the l1 term. The
method is the feature-sign search of H. Lee, A. Battle, R. Raina and A. Y. Ng, "Efficient sparse
coding algorithms" (2007), inside a working set of features, with the equality carried along by
its multiplier. It ends on the exact solution of the sign pattern it has found, so a caller can
iterate on it and see a monotone objective to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from .._typing import Float64Array as Array
from .._typing import IntArray


def lasso(
    F: Array,
    ridge: float,
    c: Array,
    l1: float,
    start: Array,
    *,
    equality: Array | None = None,
    tol: float = 1e-9,
) -> tuple[Array, Array]:
    """Return the solution z of this module's lasso and the gradient of its smooth part.

    The gradient is ``2(Qz - c - multiplier g)``, at most ``(1 + tol) l1`` in size for every
    weight that is zero. The start may be any point, with ``equality`` (the vector g) one that
    satisfies it; one near the solution is cheap.
    """
    z = start.copy()
    last = len(z) - 1
    work = np.union1d(np.flatnonzero(z), [last])
    lowest = np.inf
    while True:
        inner = _SignSearch(
            F[:, work].T @ F[:, work] + ridge * np.eye(len(work)),
            c[work],
            None if equality is None else equality[work],
            l1,
            tol,
        )
        z = np.zeros(len(start))
        z[work], multiplier = inner.solve(start[work])
        image = F[:, work] @ z[work]
        gradient = 2.0 * (F.T @ image - c)
        gradient[work] += 2.0 * ridge * z[work]
        if equality is not None:
            gradient -= 2.0 * multiplier * equality
        excess = np.abs(gradient) - (1.0 + tol) * l1
        excess[work] = -np.inf
        violators = np.flatnonzero(excess > 0)
        if len(violators) == 0:
            return z, gradient
        # As many again as are in use: few passes over F, and a small Gram matrix.
        most = max(10, int(np.count_nonzero(z)))
        if len(violators) > most:
            violators = violators[np.argsort(-excess[violators], kind="stable")[:most]]
        # What is zero leaves the set only while the objective falls, so that no set comes again;
        # where rounding hides the fall the set grows. Either can happen finitely often.
        value = float(image @ image + ridge * (z @ z) - 2.0 * (c @ z))
        value += l1 * float(np.abs(z[:-1]).sum())
        keep = np.union1d(np.flatnonzero(z), [last]) if value < lowest else work
        lowest = min(lowest, value)
        work = np.union1d(keep, violators)
        start = z


@dataclass(frozen=True)
class _SignSearch:
    """Feature-sign search on a Gram matrix small enough to factor; the last entry is the bias."""

    Q: Array
    c: Array
    g: Array | None
    l1: float
    tol: float

    def solve(self, z: Array) -> tuple[Array, float]:
        """Return the minimiser and the multiplier, from a (feasible) start."""
        signs = np.append(np.sign(z[:-1]), 0.0)
        z, signs, multiplier = self._minimize_with_signs(z, signs)
        barred = np.zeros(len(z), dtype=bool)
        barred[-1] = True  # the bias is always in
        while True:
            gradient = 2.0 * (self.Q @ z - self.c)
            if self.g is not None:
                gradient -= 2.0 * multiplier * self.g
            excess = np.abs(gradient) - (1.0 + self.tol) * self.l1
            excess[(signs != 0) | barred] = -np.inf
            entering = int(excess.argmax())
            if not excess[entering] > 0:
                return z, multiplier
            trial = signs.copy()
            trial[entering] = -np.sign(gradient[entering])
            found = self._minimize_with_signs(z, trial)
            if self._objective(found[0][None])[0] < self._objective(z[None])[0]:
                z, signs, multiplier = found
            else:
                # A violation too small to act on in this arithmetic; trying again would cycle.
                barred[entering] = True

    def _minimize_with_signs(self, z: Array, signs: Array) -> tuple[Array, Array, float]:
        """Minimise over the entries that have a sign, and the bias; drop what reaches zero."""
        z, signs = z.copy(), signs.copy()
        while True:
            a = np.append(np.flatnonzero(signs), len(z) - 1)
            target, multiplier = self._stationary(a, signs[a])
            wrong = target * signs[a] < 0
            if not wrong.any():
                z[a] = target
                return z, signs, multiplier
            # Go to the best of the points where an entry changes sign. The objective falls at
            # least up to the first of them; an entry that is still zero is at its point now.
            # Where rounding hides the fall an entry is dropped, so that the loop ends.
            step = target - z[a]
            times = np.append(-z[a][wrong] / step[wrong], 1.0)
            points = np.zeros((len(times), len(z)))
            points[:, a] = z[a] + times[:, None] * step
            points[np.arange(len(times) - 1), a[wrong]] = 0.0
            values = self._objective(points)
            falls = values.min() < self._objective(z[None])[0]
            z = points[values.argmin() if falls else times[:-1].argmin()]
            signs = np.append(np.where(signs[:-1] != 0, np.sign(z[:-1]), 0.0), 0.0)

    def _stationary(self, a: IntArray, signs: Array) -> tuple[Array, float]:
        """Stationary point of the smooth problem that fixed signs leave, and its multiplier."""
        factor = linalg.cho_factor(self.Q[np.ix_(a, a)], check_finite=False)
        point = linalg.cho_solve(factor, self.c[a] - 0.5 * self.l1 * signs, check_finite=False)
        if self.g is None:
            return point, 0.0
        g = self.g[a]
        along = linalg.cho_solve(factor, g, check_finite=False)
        multiplier = float((1.0 - g @ point) / (g @ along))
        return point + multiplier * along, multiplier

    def _objective(self, points: Array) -> Array:
        smooth = np.einsum("ij,ij->i", points @ self.Q - 2.0 * self.c, points)
        return smooth + self.l1 * np.abs(points[:, :-1]).sum(axis=1)
