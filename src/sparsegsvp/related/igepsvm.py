"""Proximal planes from two ordinary eigenvalue problems: a difference in place of a quotient."""

from __future__ import annotations

from dataclasses import dataclass

from scipy import linalg

from .._typing import Float64Array as Array
from .._validate import check_real
from .base import PlaneFit, PlanePairClassifier, RowSpace, second_moment


def difference_plane(A: Array, B: Array, nu: float) -> PlaneFit:
    """Minimise ``z'(G - nu H)z`` over unit vectors in the row space of the two blocks.

    Outside of it the form is zero, and ``x'w + b`` with it, for every sample: should the least
    eigenvalue in the row space be positive, the null vectors would be below it and say nothing.
    """
    space = RowSpace.of([A, B])
    G, H = (second_moment(block) for block in space.blocks)
    form = G - nu * H
    values, vectors = linalg.eigh(form, subset_by_index=[0, 0], check_finite=False)
    return PlaneFit(space.lift(vectors[:, 0]), [float(values[0])])


@dataclass(eq=False, repr=False)
class IGEPSVM(PlanePairClassifier):
    r"""Improved proximal support vector machine by eigenvalues.

    Where `GEPSVM` divides, this one subtracts. With G and H as there, the first plane is

    .. math:: \min_{\|z\| = 1} z^T (G - \nu H) z ,

    an ordinary eigenvector, so nothing has to be inverted; for the second plane, A and B change
    roles. The original adds :math:`\delta \|z\|^2`, on unit vectors a constant, which changes no
    plane: there is no such parameter here.

    Parameters
    ----------
    nu : float, default=1.0
        Weight of the distance to the other class, > 0. No value serves all data.
    %(dense_panel)s
    %(standardize)s

    Attributes
    ----------
    %(planes)s
    objective_ : ndarray of shape (2,)
        The two eigenvalues, on all features.
    %(panel)s

    References
    ----------
    Y.-H. Shao, N.-Y. Deng, W.-J. Chen and Z. Wang, "Improved generalized eigenvalue proximal
    support vector machine", IEEE Signal Processing Letters 20 (2013) 213-216.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsegsvp.related import IGEPSVM
    >>> t = np.linspace(-3, 3, 20)
    >>> X = np.vstack([np.column_stack([t, t]), np.column_stack([t, -t])])
    >>> y = np.repeat(["rising", "falling"], 20)
    >>> IGEPSVM().fit(X, y).predict([[2.0, 2.1], [2.0, -2.1]])
    array(['rising', 'falling'], dtype='<U7')
    """

    nu: float = 1.0

    def _check_parameters(self) -> None:
        check_real("nu", self.nu, above=0)

    def _fit_plane(self, A: Array, B: Array) -> PlaneFit:
        return difference_plane(A, B, self.nu)
