"""Proximal planes from two eigenvalue problems, of a quotient or of a difference."""

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from .._typing import IntArray
from .base import Array, PlaneFit, PlanePairClassifier, eigenpair, row_space, second_moment


def ridge_plane(A: Array, B: Array, delta: float, features: IntArray | None = None) -> PlaneFit:
    """Minimise ``z'(G + delta I)z / z'Hz``, over all features or some, in the row space.

    H may be singular: the inverted pair is solved, for its largest eigenvalue.
    """
    used = np.arange(A.shape[1]) if features is None else features
    blocks, basis = row_space([A, B] if features is None else [A[:, used], B[:, used]])
    G, H = map(second_moment, blocks)
    G.flat[:: len(G) + 1] += delta
    inverse, u = eigenpair(H, G, -1)
    z = np.zeros(A.shape[1] + 1)
    z[np.append(used, -1)] = basis @ u
    return PlaneFit(z, [1.0 / inverse])


def ridge_slope(A: Array, B: Array, delta: float, z: Array, ratio: float) -> Array:
    """``(ratio H - G - delta I) z``, along which the ratio of z falls; zero at the optimum."""
    a, b = (A @ z[:-1] + z[-1]) / len(A), ratio * (B @ z[:-1] + z[-1]) / len(B)
    return np.append(b @ B - a @ A, b.sum() - a.sum()) - delta * z


@dataclass(eq=False, repr=False)
class GEPSVM(PlanePairClassifier):
    r"""Proximal support vector machine by generalised eigenvalues.

    With :math:`z = [w; b]`, :math:`G = [A\ e]^T [A\ e] / n_A` and
    :math:`H = [B\ e]^T [B\ e] / n_B`, the plane near class A and far from class B is

    .. math:: \min_{z \ne 0} \frac{z^T (G + \delta I) z}{z^T H z} ;

    for the second, A and B change roles.

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

    def _fit_plane(self, A: Array, B: Array) -> PlaneFit:
        return ridge_plane(A, B, self.delta)


@dataclass(eq=False, repr=False)
class IGEPSVM(PlanePairClassifier):
    r"""Improved proximal support vector machine by eigenvalues.

    Where `GEPSVM` divides, this one subtracts. With G and H as there, the first plane is

    .. math:: \min_{\|z\| = 1} z^T (G - \nu H) z ,

    an ordinary eigenvector; for the second, A and B change roles. The original adds
    :math:`\delta \|z\|^2`, on unit vectors a constant: there is no such parameter here.

    Parameters
    ----------
    nu : float, default=1.0
        Weight of the distance to the other class, > 0. No value serves all data.
    %(planes)s

    References
    ----------
    Y.-H. Shao, N.-Y. Deng, W.-J. Chen and Z. Wang, "Improved generalized eigenvalue proximal
    support vector machine", IEEE Signal Processing Letters 20 (2013) 213-216.

    Examples
    --------
    >>> from sparsegsvp.related import IGEPSVM
    >>> X = [[-2, -2], [0, 0], [2, 2], [-2, 2], [0, 0], [2, -2]]  # two crossing lines
    >>> IGEPSVM().fit(X, [0, 0, 0, 1, 1, 1]).predict([[3, 3], [3, -3]])
    array([0, 1])
    """

    nu: float = 1.0

    def _fit_plane(self, A: Array, B: Array) -> PlaneFit:
        # Outside the row space the form is zero, and so is every distance: should the least
        # eigenvalue inside be positive, the null vectors would be below it and say nothing.
        blocks, basis = row_space([A, B])
        G, H = map(second_moment, blocks)
        value, u = linalg.eigh(G - self.nu * H, subset_by_index=[0, 0], check_finite=False)
        return PlaneFit(basis @ u[:, 0], [float(value[0])])
