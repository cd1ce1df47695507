"""Proximal planes from two generalised eigenvalue problems."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._typing import IntArray
from .base import Array, PlaneFit, PlanePairClassifier, RowSpace, eigenpair, second_moment


def ridge_plane(A: Array, B: Array, delta: float, features: IntArray | None = None) -> PlaneFit:
    """Minimise ``z'(G + delta I)z / z'Hz`` exactly, over all features or some.

    In the row space of the blocks H is singular as soon as there are more features than samples of
    B, so the inverted pair is solved, for its largest eigenvalue: ``z'(G + delta I)z = 1``.
    """
    used = np.arange(A.shape[1]) if features is None else features
    space = RowSpace.of([A, B] if features is None else [A[:, used], B[:, used]])
    G, H = (second_moment(block) for block in space.blocks)
    G.flat[:: len(G) + 1] += delta
    inverse, u = eigenpair(H, G, -1)
    z = np.zeros(A.shape[1] + 1)
    z[np.append(used, -1)] = space.lift(u)
    return PlaneFit(z, [1.0 / inverse])


def ridge_slope(A: Array, B: Array, delta: float, z: Array, ratio: float) -> Array:
    """``(ratio H - G - delta I) z``, along which the ratio of z falls; zero at the optimum."""
    a, b = (A @ z[:-1] + z[-1]) / len(A), ratio * (B @ z[:-1] + z[-1]) / len(B)
    return np.append(b @ B - a @ A, b.sum() - a.sum()) - delta * z


def ridge_planes(A: Array, B: Array, delta: float) -> tuple[PlaneFit, PlaneFit]:
    """The planes of GEPSVM, to which sparse methods return on a panel."""
    return ridge_plane(A, B, delta), ridge_plane(B, A, delta)


@dataclass(eq=False, repr=False)
class GEPSVM(PlanePairClassifier):
    r"""Proximal support vector machine by generalised eigenvalues.

    With :math:`z = [w; b]`, :math:`G = [A\ e]^T [A\ e] / n_A` and
    :math:`H = [B\ e]^T [B\ e] / n_B`, the plane near class A and far from class B is

    .. math:: \min_{z \ne 0} \frac{z^T (G + \delta I) z}{z^T H z} ;

    for the second, A and B change roles. With more features than samples it is solved exactly in
    the row space of the data: the ridge keeps the optimum there.

    Parameters
    ----------
    delta : float, default=1.0
        Ridge, > 0; the original's, which adds it to sums of squares, is ``n_A * delta``.
    %(planes)s

    References
    ----------
    O. L. Mangasarian and E. W. Wild, "Multisurface proximal support vector machine
    classification via generalized eigenvalues", IEEE TPAMI 28 (2006) 69-74.

    Examples
    --------
    >>> from sparsegsvp.related import GEPSVM
    >>> X = [[-2, -2.1], [0, 0.1], [2, 1.9], [-2, 2.1], [0, -0.1], [2, -1.9]]  # two crossing lines
    >>> GEPSVM(delta=0.01).fit(X, [0, 0, 0, 1, 1, 1]).predict([[3, 3], [3, -3]])
    array([0, 1])
    """

    delta: float = 1.0
    _bounds: ClassVar = {"delta": {"above": 0}}

    def _fit_planes(self, A: Array, B: Array) -> tuple[PlaneFit, PlaneFit]:
        return ridge_planes(A, B, self.delta)
