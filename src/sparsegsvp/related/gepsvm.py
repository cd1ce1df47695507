"""Proximal planes from two generalised eigenvalue problems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._typing import Float64Array as Array
from .._typing import IntArray
from .base import PlaneFit, PlanePairClassifier, RowSpace, eigenpair, second_moment


def ridge_plane(A: Array, B: Array, delta: float, features: IntArray | None = None) -> PlaneFit:
    """Minimise ``z'(G + delta I)z / z'Hz`` exactly, over all features or some.

    In the row space of the blocks H is singular as soon as there are more features than samples of
    B, so the inverted pair is solved, for its largest eigenvalue. The plane has
    ``z'(G + delta I)z = 1``.
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

    Each class gets the plane that is nearest to its own samples and farthest from the other
    class's. With :math:`z = [w; b]`, :math:`G = [A\ e]^T [A\ e] / n_A` and
    :math:`H = [B\ e]^T [B\ e] / n_B`, the first plane is

    .. math:: \min_{z \ne 0} \frac{z^T (G + \delta I) z}{z^T H z} ,

    the eigenvector of the smallest eigenvalue; for the second, A and B change roles. A sample
    belongs to the class whose plane is nearer. With more features than samples the problem is
    solved exactly in the row space of the data: the ridge keeps the optimum there.

    Parameters
    ----------
    delta : float, default=1.0
        Ridge, > 0, per mean squared distance; the original's, which adds it to sums of squares,
        is ``n_A * delta``.
    %(panel_size)s
    %(standardize)s

    Attributes
    ----------
    %(planes)s
    objective_ : ndarray of shape (2,)
        The two quotients, on all features.
    %(panel)s

    References
    ----------
    O. L. Mangasarian and E. W. Wild, "Multisurface proximal support vector machine
    classification via generalized eigenvalues", IEEE TPAMI 28 (2006) 69-74.

    Examples
    --------
    Two crossing lines, which no single plane separates:

    >>> import numpy as np
    >>> from sparsegsvp.related import GEPSVM
    >>> t = np.linspace(-3, 3, 20)
    >>> noise = 0.05 * np.cos(7 * t)
    >>> X = np.vstack([np.column_stack([t, t + noise]), np.column_stack([t, noise - t])])
    >>> y = np.repeat(["rising", "falling"], 20)
    >>> GEPSVM(delta=0.01).fit(X, y).predict([[2.0, 2.1], [2.0, -2.1]])
    array(['rising', 'falling'], dtype='<U7')
    """

    delta: float = 1.0
    _bounds: ClassVar = {"delta": {"above": 0}}

    def _fit_planes(self, A: Array, B: Array) -> tuple[PlaneFit, PlaneFit]:
        return ridge_planes(A, B, self.delta)
