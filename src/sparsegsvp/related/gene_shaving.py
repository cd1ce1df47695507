"""Nested panels: project the features on the extreme generalized singular vector, shave, repeat."""

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np
from scipy import linalg
from sklearn.utils import check_random_state

from .._typing import BoolArray, IntArray
from .base import Array, ClassBlocks, PanelMethod, eigenpair, moment_factor, order_features


def extreme_direction(rows: Array, second: BoolArray, floor: float) -> tuple[float, Array]:
    """Return the extreme quotient, at least one, and a vector that projects the features."""
    r = rows.shape[1]
    floors = floor * np.diag(np.append(np.ones(r), 0.0))  # the bias has none
    factors = (moment_factor(rows[members]) for members in (~second, second))
    G, H = (F.T @ F + floors for F in factors)
    smallest, largest = eigenpair(G, H, 0), eigenpair(G, H, -1)
    ratio, z = largest if largest[0] * smallest[0] >= 1.0 else (1.0 / smallest[0], smallest[1])
    # The vector's column of X is proportional to G z and to H z. Their difference is free of the
    # floor, and so of w: it needs the samples' distances alone.
    share = second / second.sum() - ~second / (~second).sum()
    return ratio, share * (rows @ z[:-1] + z[-1])


def shave(X: Array, second: BoolArray, tau: float) -> tuple[IntArray, IntArray, Array, Array]:
    """Shave a table of standardised samples, `second` class or not, down to one feature.

    Return all features, the longest kept first, and for each set, which are the first of them, its
    size, its extreme quotient, and the share of its signed mean's variance between the classes.
    """
    n, m = X.shape
    features, left = np.ascontiguousarray(X.T), np.arange(m)
    sizes, ratios, explained, dropped = [], [], [], []
    while k := len(left):
        rows = features.T
        if k > n:  # the triangular factor of X' has the same inner products
            rows = linalg.qr(features, mode="r", check_finite=False)[0][:n].T
        moments = [np.square(rows[members]).sum() / members.sum() for members in (~second, second)]
        floor = tau * float(np.mean(moments)) / min(k, n)
        ratio, direction = extreme_direction(rows, second, floor)
        projection = features @ direction
        sizes.append(k)
        ratios.append(ratio)
        mean = np.sign(projection) @ features / k
        varies = np.ptp(mean) > 1e-14 * np.abs(mean).max()  # by more than rounding
        explained.append(np.corrcoef(mean, second)[0, 1] ** 2 if varies else 0.0)
        order = order_features(projection)
        keep = k - max(1, k // 10)
        dropped.append(left[order[keep:]])
        kept = np.sort(order[:keep])
        features, left = features[kept], left[kept]
    order = np.concatenate(dropped[::-1])
    return order, np.array(sizes), np.array(ratios), np.array(explained)


@dataclass(eq=False, repr=False)
class GeneShaving(PanelMethod):
    r"""Shave off the features with the smallest projections, again and again. A reconstruction.

    Of the largest and the smallest value over planes :math:`z = [w; b]` of

    .. math:: \rho(z) = \frac{\|A w + e b\|^2 / n_A + \phi \|w\|^2}
                             {\|B w + e b\|^2 / n_B + \phi \|w\|^2}

    the one farther from 1 is taken, the extreme generalized singular value, squared. Features are
    projected on its vector, the tenth with the smallest projections is dropped, and all is repeated
    until one is left. Of these nested sets the panel is the one whose mean feature, signed by the
    projections, has the largest share of its variance between the classes, less the mean of that
    share over tables with permuted labels (the gap statistic).

    The text of [1]_ was not at hand: projection and removal are as described elsewhere; the tenth,
    nested sets, signed mean and gap are from [2]_; ones, floor and permutation are chosen here.

    Parameters
    ----------
    tau : float, default=1.0
        The floor :math:`\phi`, at least 1e-8, in units of the classes' mean second moment over as
        many directions as there are samples, or features left if these are fewer.
    n_permutations, random_state : int, default=10, and seed, default=0
        Permuted tables for the gap statistic. Not used when `n_features` is given.
    %(selector)s
    sizes_, ratios_, explained_, gaps_ : ndarray of shape (n_steps,)
        Of each set ``feature_order_[:size]``: size, extreme quotient (or its inverse, above 1),
        share of the variance, and gap (None when `n_features` is given).

    References
    ----------
    .. [1] J. A. Berger et al., "Jointly analyzing gene expression and copy number data in breast
       cancer using data reduction models", IEEE/ACM TCBB 3 (2006) 2-16.
    .. [2] T. Hastie et al., "'Gene shaving' as a method for identifying distinct sets of genes
       with similar expression patterns", Genome Biology 1(2) (2000) research0003.

    Examples
    --------
    >>> from sparsegsvp.datasets import make_planted
    >>> from sparsegsvp.related import GeneShaving
    >>> data = make_planted(40, 200, 10, effect=3.0)
    >>> bool(GeneShaving(n_features=10).fit(data.X, data.y).support_[data.support].all())
    True
    """

    _: KW_ONLY
    tau: float = 1.0
    n_permutations: int = 10
    random_state: int | np.random.RandomState | None = 0
    _rules: ClassVar = {"tau": {"least": 1e-8}}

    def _fit(self, problem: ClassBlocks, size: int | None) -> None:
        table = np.concatenate(problem.blocks)
        second = np.repeat([False, True], [len(block) for block in problem.blocks])
        order, self.sizes_, self.ratios_, self.explained_ = shave(table, second, self.tau)
        self.gaps_ = None
        if size is None:
            rng = check_random_state(self.random_state)
            permuted = (rng.permutation(second) for _ in range(self.n_permutations))
            chance = [shave(table, labels, self.tau)[-1] for labels in permuted]
            self.gaps_ = self.explained_ - np.mean(chance, axis=0)
            size = int(self.sizes_[np.flatnonzero(self.gaps_ >= self.gaps_.max() - 1e-10)[-1]])
        self._set_panel(problem, order, order[:size])
