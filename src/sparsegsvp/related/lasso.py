"""The convex step of the sparse related methods: a lasso on a quadratic form, solved exactly.

    min over z = [w; b]    z'Qz - 2 c'z + l1 ||w||_1 ,    Q = F'F + ridge I ,  ridge > 0 ,

optionally on the hyperplane g'z = 1. The bias b, the last entry, is free of the l1 term. By the
feature-sign search of H. Lee, A. Battle, R. Raina and A. Y. Ng, "Efficient sparse coding
algorithms" (2007), inside a working set, it ends on the exact solution of its sign pattern.
"""

import numpy as np
from scipy import linalg

from .base import Array

_TOL = 1e-9  # violations below this part of the l1 weight are rounding


def lasso(
    F: Array, ridge: float, c: Array, l1: float, start: Array, *, equality: Array | None = None
) -> tuple[Array, Array, bool]:
    """Return the solution, the gradient ``2(Qz - c - multiplier g)``, and whether it converged.

    The start may be any point, with ``equality`` (the vector g) one that satisfies it.
    """
    z, gradient = start, np.zeros(len(start))
    g = np.zeros(len(z)) if equality is None else equality
    work = np.union1d(np.flatnonzero(z), [len(z) - 1])
    lowest = np.inf
    for _ in range(500):
        Q = F[:, work].T @ F[:, work] + ridge * np.eye(len(work))
        inner, multiplier, converged = _sign_search(Q, c[work], g[work], l1, z[work])
        z = np.zeros(len(start))
        z[work] = inner
        image = F[:, work] @ inner
        gradient = 2.0 * (F.T @ image + ridge * z - c - multiplier * g)
        excess = np.abs(gradient) - (1.0 + _TOL) * l1
        excess[work] = -np.inf
        violators = np.flatnonzero(excess > 0)
        if not len(violators) or not converged:
            return z, gradient, converged
        # As many again as are in use: few passes over F, and a small Gram matrix.
        most = max(10, int(np.count_nonzero(z)))
        violators = violators[np.argsort(-excess[violators], kind="stable")[:most]]
        # What is zero leaves the set only while the objective falls, so that no set comes again.
        value = float(image @ image + ridge * (z @ z) - 2.0 * (c @ z) + l1 * np.abs(z[:-1]).sum())
        keep = np.union1d(np.flatnonzero(z), [len(z) - 1]) if value < lowest else work
        lowest = min(lowest, value)
        work = np.union1d(keep, violators)
    return z, gradient, False


def _sign_search(Q: Array, c: Array, g: Array, l1: float, z: Array) -> tuple[Array, float, bool]:
    """Return the minimiser on a Gram matrix small enough to factor, and the multiplier.

    With signs fixed the problem is smooth: its stationary point or, on the way, the best point
    where a weight reaches zero. Then the worst violator gets a sign, and all is repeated.
    """

    def objective(points: Array) -> Array:
        smooth = np.einsum("ij,ij->i", points @ Q - 2.0 * c, points)
        return smooth + l1 * np.abs(points[:, :-1]).sum(axis=1)

    z, signs, last = z.copy(), np.append(np.sign(z[:-1]), 0.0), len(z) - 1
    barred = np.zeros(len(z), dtype=bool)
    barred[last] = True  # the bias is always in
    best, lowest, multiplier, entering = (z, signs, 0.0), np.inf, 0.0, last
    for _ in range(20 * len(z) + 100):
        a = np.append(np.flatnonzero(signs), last)
        factor = linalg.cho_factor(Q[np.ix_(a, a)], check_finite=False)
        target = linalg.cho_solve(factor, c[a] - 0.5 * l1 * signs[a], check_finite=False)
        if g.any():
            along = linalg.cho_solve(factor, g[a], check_finite=False)
            multiplier = float((1.0 - g[a] @ target) / (g[a] @ along))
            target += multiplier * along
        wrong = target * signs[a] < 0
        if wrong.any():
            # The objective falls at least up to the first change of sign; where rounding hides
            # the fall, that weight is dropped, so that the walk ends.
            step = target - z[a]
            times = np.append(-z[a][wrong] / step[wrong], 1.0)
            points = np.zeros((len(times), len(z)))
            points[:, a] = z[a] + times[:, None] * step
            points[np.arange(len(times) - 1), a[wrong]] = 0.0
            values = objective(points)
            falls = values.min() < objective(z[None])[0]
            z = points[values.argmin() if falls else times[:-1].argmin()]
            signs = np.append(np.where(signs[:-1] != 0, np.sign(z[:-1]), 0.0), 0.0)
            continue
        z[a] = target
        value = float(objective(z[None])[0])
        if value < lowest:
            best, lowest = (z.copy(), signs.copy(), multiplier), value
        else:
            # A violation too small to act on in this arithmetic; trying again would cycle.
            barred[entering] = True
            z, signs, multiplier = best[0].copy(), best[1].copy(), best[2]
        gradient = 2.0 * (Q @ z - c - multiplier * g)
        excess = np.abs(gradient) - (1.0 + _TOL) * l1
        excess[(signs != 0) | barred] = -np.inf
        entering = int(excess.argmax())
        if not excess[entering] > 0:
            return z, multiplier, True
        signs[entering] = -np.sign(gradient[entering])
    return best[0], best[2], False
