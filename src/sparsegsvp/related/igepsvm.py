"""Proximal planes from two ordinary eigenvalue problems: a difference in place of a quotient."""

from dataclasses import dataclass
from typing import ClassVar

from scipy import linalg

from .base import Array, PlaneFit, PlanePairClassifier, RowSpace, second_moment


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
    _bounds: ClassVar = {"nu": {"above": 0}}

    def _fit_plane(self, A: Array, B: Array) -> PlaneFit:
        # Outside the row space the form is zero, and so is every distance: should the least
        # eigenvalue inside be positive, the null vectors would be below it and say nothing.
        space = RowSpace.of([A, B])
        G, H = (second_moment(block) for block in space.blocks)
        value, u = linalg.eigh(G - self.nu * H, subset_by_index=[0, 0], check_finite=False)
        return PlaneFit(space.lift(u[:, 0]), [float(value[0])])
