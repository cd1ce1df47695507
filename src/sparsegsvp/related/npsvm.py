"""Proximal planes in the l1 norm."""

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np
from scipy import linalg, sparse

from .base import Array, PlaneFit, PlanePairClassifier, lowest, row_space, with_bias
from .gepsvm import ridge_plane

# Smoothing of absolute values, relative to the other class's mean distance and the first weights.
EPS = 1e-4


def starts(A: Array, B: Array) -> list[Array]:
    """Return the planes of GEPSVM, which sees spread, and across the class means: position."""
    # Next to no ridge where the samples of A determine a plane.
    dense = ridge_plane(A, B, 1e-3 if len(A) > A.shape[1] else 1.0).z
    across = B.mean(axis=0) - A.mean(axis=0)
    middle = np.append(across, -(A.mean(axis=0) @ across))
    return [dense, middle] if across.any() else [dense]


def l1_ratio(A: Array, B: Array, z: Array) -> float:
    """``mean |A z| / mean |B z|``."""
    return float(np.abs(A @ z).mean() / np.abs(B @ z).mean())


def weighted_solve(A: Array, row: Array, diagonal: Array, g: Array) -> Array:
    """Solve ``(A' diag(row) A + diag(diagonal)) z = g`` on the smaller side of A."""
    if A.shape[1] <= A.shape[0]:
        S = (A * row[:, None]).T @ A + np.diag(diagonal)
        try:
            return linalg.cho_solve(linalg.cho_factor(S, check_finite=False), g)
        except linalg.LinAlgError:
            # collinear columns and a vanishing penalty: the shortest of the solutions
            return linalg.pinvh(S, check_finite=False) @ g
    scaled = A / diagonal
    core = A @ scaled.T + np.diag(1.0 / row)
    inner = linalg.solve(core, scaled @ g, assume_a="pos", check_finite=False)
    return g / diagonal - scaled.T @ inner


@dataclass(eq=False, repr=False)
class NPSVM(PlanePairClassifier):
    r"""Non-parallel proximal support vector machine in the l1 norm.

    Sums of distances in place of GEPSVM's sums of squares, so that a few odd samples do not
    turn a plane. With :math:`z = [w; b]` the first plane is, without a penalty and with one,

    .. math:: \min_z \frac{\|A w + e b\|_1 / n_A}{\|B w + e b\|_1 / n_B} , \qquad
              \min_z \ \|A w + e b\|_1 / n_A + \delta \|z\|_p^p
              \ \text{ on } \ \|B w + e b\|_1 / n_B = 1 .

    For the second the classes change roles. Of two starts, the plane of GEPSVM and the one across
    the class means, the lower end is kept. *Without penalty* this is the published ascent, its step
    chosen so that the ratio never rises, and reweighted least squares after it where the samples
    determine a plane. With more features than samples any labels allow a ratio of zero.

    *The penalised forms are reconstructions*, as their texts were not at hand: known is a penalty
    in the numerator, without a minimum for :math:`p \ne 1`; here the denominator sets the scale.

    Parameters
    ----------
    penalty : {None, "l2", "lp"}, default=None
        "l2" is "lp" with p = 2.
    delta, p : float, default=0.1 and 1.0
        Weight of the penalty, > 0, and its exponent, in (0, 2]; up to 1 the planes are sparse.
    %(steps)s
    %(planes)s

    References
    ----------
    C.-N. Li, Y.-H. Shao and N.-Y. Deng, "Robust L1-norm non-parallel proximal support vector
    machine", Optimization (2015); H. Yan et al., "L1-norm GEPSVM classifier based on an effective
    iterative algorithm", Neural Processing Letters (2018); X.-Q. Sun et al., "Robust nonparallel
    proximal support vector machine with Lp-norm regularization", IEEE Access 6 (2018).

    Examples
    --------
    >>> import numpy as np
    >>> from sparsegsvp.related import NPSVM
    >>> t = np.linspace(-3, 3, 40)  # two crossing lines, and two samples far off
    >>> X = np.c_[np.r_[t, t], np.r_[t, -t] + np.repeat([9, 0], [2, 78])]
    >>> NPSVM().fit(X, np.repeat([0, 1], 40)).predict([[2.0, 2.1], [2.0, -2.1]])
    array([0, 1])
    """

    penalty: str | None = None
    _: KW_ONLY
    delta: float = 0.1
    p: float = 1.0
    tol: float = 1e-6
    max_iter: int = 5000
    _rules: ClassVar = {"penalty": (None, "l2", "lp"), "p": {"above": 0, "most": 2}}

    def _fit_plane(self, A: Array, B: Array) -> PlaneFit:
        p = float(self.p) if self.penalty == "lp" else 2.0
        (Ae, Be), basis = [with_bias(A), with_bias(B)], sparse.eye_array(A.shape[1] + 1)
        if p == 2.0:
            (Ae, Be), basis = row_space([A, B])
        ends = []
        for z in starts(A, B):
            if self.penalty is None:
                u, history, converged = self._ascend(Ae, Be, basis.T @ z)
            else:
                u, history, converged = self._reweight(Ae, Be, basis.T @ z, self.delta, p)
            n_iter = max(len(history) - 1, 1)
            ends.append(PlaneFit(basis @ u, history, n_iter=n_iter, converged=converged))
        return lowest(ends, margin=10.0 * self.tol)

    def _ascend(self, A: Array, B: Array, z: Array) -> tuple[Array, list[float], bool]:
        """Climb the logarithm of the inverse ratio on the sphere, from z, up to a kink.

        Where the samples determine a plane, reweighting is tried from there.
        """
        z = z / np.linalg.norm(z)
        history = [l1_ratio(A, B, z)]
        eta = 1.0
        # at 0 all of A lies on the plane
        while len(history) <= self.max_iter and history[-1] > 0.0 and eta >= 1e-12:
            pa, pb = A @ z, B @ z
            uphill = np.sign(pb) @ B / np.abs(pb).sum() - np.sign(pa) @ A / np.abs(pa).sum()
            ratio, eta = np.inf, 8.0 * eta
            while ratio >= (1.0 - self.tol) * history[-1] and eta >= 1e-12:
                eta *= 0.5
                trial = z + eta * uphill
                trial /= np.linalg.norm(trial)
                ratio = l1_ratio(A, B, trial)
            if ratio < (1.0 - self.tol) * history[-1]:
                z = trial
                history.append(ratio)
        converged = len(history) <= self.max_iter
        if A.shape[1] <= len(A):
            polished, _, converged = self._reweight(A, B, z, 1e-12, 2.0)
            if l1_ratio(A, B, polished) < history[-1]:
                z = polished
                history.append(l1_ratio(A, B, polished))
        return z, history, converged

    def _reweight(
        self, A: Array, B: Array, z: Array, delta: float, p: float
    ) -> tuple[Array, list[float], bool]:
        """Minimise ``mean sqrt((A z)^2 + eps^2) + delta ||z||_p^p`` on ``mean |B z| = 1`` from z.

        Tangents of both sums in the squares are quadratic majorants; the minimiser on the tangent
        ``g'z = 1`` of the denominator has ``mean |B z| >= 1``: scaling it back lowers both. For p
        at most 1 the columns of weights below the floor are left out when they are most.
        """
        columns, size = np.arange(len(z)), len(z)
        z = z / np.abs(B @ z).mean()
        floor = EPS * float(np.abs(z).max())

        def value(A: Array, z: Array) -> float:
            fit = float(np.sqrt(np.square(A @ z) + EPS**2).mean())
            return fit + delta * float((np.abs(z) ** p).sum())

        history, converged = [value(A, z)], False
        while not converged and len(history) <= self.max_iter:
            row = 1.0 / (len(A) * np.sqrt(np.square(A @ z) + EPS**2))
            column = delta * p * (np.square(z) + floor**2) ** (p / 2 - 1)
            trial = weighted_solve(A, row, column, np.sign(B @ z) @ B / len(B))
            trial /= np.abs(B @ trial).mean()
            level = value(A, trial)
            converged = history[-1] - level <= self.tol * history[-1]
            if level <= history[-1]:
                z = trial
                history.append(level)
            kept = np.append(np.abs(z[:-1]) > floor, True)
            if p <= 1 and kept.mean() < 0.5:
                cut = z[kept] / np.abs(B[:, kept] @ z[kept]).mean()
                level = value(A[:, kept], cut)
                if level <= history[-1]:
                    A, B, z, columns, converged = A[:, kept], B[:, kept], cut, columns[kept], False
                    history.append(level)
        if p <= 1:
            # A weight that the majorant holds at zero ends at some fraction of the floor.
            z = np.where(np.append(np.abs(z[:-1]) > 10.0 * floor, True), z, 0.0)
        whole = np.zeros(size)
        whole[columns] = z
        return whole, history, converged
