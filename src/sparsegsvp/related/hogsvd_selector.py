"""Features ranked by their loadings in the higher-order generalized SVD of the classes."""

import math
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from .._typing import BoolArray
from .._validate import check_choice
from ..linalg import hogsvd
from .base import Array
from .gsvd_selector import Decomposition, GSVDSelector


@dataclass(eq=False, repr=False)
class HOGSVDSelector(GSVDSelector):
    r"""Select features by their loadings in the higher-order GSVD of all classes.

    A reconstruction: `GSVDSelector` for N classes, with which it agrees for two and ``tau > 0``.
    One right factor serves all blocks,

    .. math:: [C_i\ e]/\sqrt{n_i} = U_i \,\mathrm{diag}(s_i)\, V^T, \qquad i = 1, \dots, N .

    The columns of V are eigenvectors of the mean of all quotients of two classes' second moments.
    Their eigenvalues :math:`\lambda_k \ge 1` are 1 where all classes share a direction evenly. A
    direction in which one class alone stands out by an angular distance :math:`\theta` has

    .. math:: \lambda(\theta) = (x + 1/x + N - 2) / N , \qquad x = \tan^2(\pi/4 + \theta) .

    Components with :math:`\lambda_k \ge \lambda(\mathrm{threshold})` count as exclusive, the
    others as shared; at least one is kept. No gene selector of the authors of the decomposition
    was at hand. Chosen here: the classes as the matrices, the column of ones, the floor, the
    threshold and the score.

    Parameters
    ----------
    kind : {"exclusive", "shared"}, default="exclusive"
        The components that features are ranked by.
    threshold, tau : float, default=pi/8 and 1.0
        :math:`\theta` above, and the floor, as in `GSVDSelector`.
    %(selector)s
    eigenvalues_ : ndarray of shape (r,)
        :math:`\lambda`, in ascending order.
    significance_, entropy_, kept_, scores_ : ndarray
        As in `GSVDSelector`, of N classes.

    References
    ----------
    S. P. Ponnapalli, M. A. Saunders, C. F. Van Loan and O. Alter, "A higher-order generalized
    singular value decomposition for comparison of global mRNA expression from multiple
    organisms", PLoS ONE 6(12): e28072, 2011.

    Examples
    --------
    >>> from sparsegsvp.datasets import make_planted
    >>> from sparsegsvp.related import HOGSVDSelector
    >>> data = make_planted(60, 100, 12, effect=3.0, n_classes=3)
    >>> bool(HOGSVDSelector(n_features=12).fit(data.X, data.y).support_[data.support].all())
    True
    """

    _: KW_ONLY
    kind: str = "exclusive"
    _multiclass: ClassVar[bool] = True

    def _check_parameters(self) -> None:
        check_choice("kind", self.kind, ("exclusive", "shared"))

    def _decompose(self, blocks: list[Array]) -> Decomposition:
        return hogsvd(blocks)

    def _keep(self, values: Array) -> BoolArray:
        self.eigenvalues_ = values
        n = len(self.classes_)
        x = math.tan(math.pi / 4 + self.threshold) ** 2
        bound = (x + 1.0 / x + n - 2) / n
        if self.kind == "exclusive":
            return values >= min(bound, values.max())
        return values <= max(bound, values.min())
