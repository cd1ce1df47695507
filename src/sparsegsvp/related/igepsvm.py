"""Proximal planes from two ordinary eigenvalue problems: a difference in place of a quotient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from scipy import linalg

from .._typing import Float64Array as Array
from .base import PlaneFit, PlanePairClassifier, RowSpace, second_moment


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
    %(panel_size)s
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
    _bounds: ClassVar = {"nu": {"above": 0}}

    def _fit_plane(self, A: Array, B: Array) -> PlaneFit:
        # Outside the row space the form is zero, and so is every distance: should the least
        # eigenvalue inside be positive, the null vectors would be below it and say nothing.
        space = RowSpace.of([A, B])
        G, H = (second_moment(block) for block in space.blocks)
        value, u = linalg.eigh(G - self.nu * H, subset_by_index=[0, 0], check_finite=False)
        return PlaneFit(space.lift(u[:, 0]), [float(value[0])])
