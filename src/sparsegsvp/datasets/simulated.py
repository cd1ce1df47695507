"""Simulated data: Gaussian classes with planted features, and single cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.signal import lfilter
from sklearn.utils import check_random_state

from .._validate import check_integer, check_real
from .loaders import Dataset

# Cells drawn at a time, from a stream of their own; shape of the negative binomial counts.
_BLOCK, _SHAPE = 512, 2.0
# Standard deviations of log means over donors, batches and cells; types of a lineage.
_DONOR, _BATCH, _DEPTH, _LINEAGE = 0.2, 0.3, 0.4, 3


def make_planted(
    n_samples: int = 200,
    n_features: int = 1000,
    n_informative: int = 5,
    *,
    effect: float = 1.5,
    correlation: float = 0.0,
    n_classes: int = 2,
    weights: Sequence[float] | None = None,
    random_state: int | np.random.RandomState | None = 0,
    return_X_y: bool = False,
) -> Any:
    """Simulate Gaussian classes that differ in a few features only.

    Within a class every feature has variance 1, and features f and g have correlation
    ``correlation ** abs(f - g)``, as neighbouring bins of a spectrum have. The informative
    features lie at random positions. The j-th of them sets class ``j % n_classes`` apart:
    its mean there is ``effect`` within-class standard deviations away from its mean in the
    other classes, upward or downward at random.

    Parameters
    ----------
    n_samples, n_features : int, default=200, 1000
    n_informative : int, default=5
        The number of features that carry signal; 0 gives pure noise.
    effect : float, default=1.5
        The shift of an informative feature, in within-class standard deviations.
    correlation : float in [0, 1), default=0.0
        Correlation of neighbouring features within a class.
    n_classes : int, default=2
    weights : sequence of float, optional
        Relative class sizes, one per class; even classes by default. Counts that sum to
        `n_samples` are met exactly.
    random_state : int, RandomState or None, default=0
    return_X_y : bool, default=False
        Return only the pair ``(X, y)``.

    Returns
    -------
    Dataset or tuple of ndarray
        The rows are shuffled; ``support`` holds the informative features.

    Examples
    --------
    >>> from sparsegsvp.datasets import make_planted
    >>> data = make_planted(n_samples=60, n_features=500, n_informative=3, weights=(2, 1))
    >>> data
    Dataset(60 samples x 500 features; class 0 40, class 1 20)
    >>> data.support
    array([172, 310, 348])
    """
    sizes = _class_sizes(n_samples, n_classes, weights)
    check_integer("n_features", n_features, least=1)
    check_integer("n_informative", n_informative, least=0, most=n_features)
    check_real("correlation", correlation, least=0, below=1)
    check_real("effect", effect)

    rng = check_random_state(random_state)
    y = rng.permutation(np.repeat(np.arange(n_classes, dtype=np.int64), sizes))
    support = np.sort(rng.permutation(n_features)[:n_informative]).astype(np.int64)
    signs = rng.choice([-1.0, 1.0], size=n_informative)
    X = rng.standard_normal((n_samples, n_features))
    if correlation > 0.0:
        # x_f = c x_{f-1} + sqrt(1 - c^2) e_f keeps variance 1 when it starts at x_0 = e_0.
        X[:, 1:] *= np.sqrt(1.0 - correlation**2)
        X = lfilter([1.0], [1.0, -correlation], X, axis=1)
    for j, feature in enumerate(support):
        X[y == j % n_classes, feature] += effect * signs[j]
    if return_X_y:
        return X, y
    names = np.array([f"f{index}" for index in range(n_features)])
    class_names = np.array([f"class {index}" for index in range(n_classes)])
    text = f"Simulated: {n_informative} informative features, {effect=}, {correlation=}."
    return Dataset(X, y, names, class_names, text, support)


def make_cells(
    n_cells: int = 2000,
    n_genes: int = 1000,
    n_types: int = 6,
    *,
    weights: Sequence[float] | None = None,
    n_donors: int = 6,
    n_batches: int = 2,
    n_markers: int = 8,
    n_programmes: int = 5,
    effect: float = 2.0,
    density: float = 0.07,
    as_anndata: bool = True,
    random_state: int = 0,
) -> Any:
    """Simulate single cells of unequal types from several donors and batches.

    Counts are negative binomial with variance ``mean + mean**2 / 2``. Three types at a time make
    a lineage with markers of its own, so that neighbouring types are hard to tell apart. A
    programme, such as the cell cycle, raises a twentieth of the genes together, in every cell to
    another degree. Donors and batches shift all genes a little.

    Parameters
    ----------
    n_cells, n_genes, n_types : int, default=2000, 1000, 6
        Size of the table.
    weights : sequence of float, optional
        Relative sizes of the types; by default they fall geometrically to a fiftieth.
    n_donors, n_batches : int, default=6, 2
        Donor d belongs to batch ``d % n_batches``.
    n_markers : int, default=8
        Genes that set a type apart; as many set a lineage apart.
    n_programmes : int, default=5
        Programmes that are active to a different degree in every cell.
    effect : float, default=2.0
        Mean log fold change of a marker.
    density : float, default=0.07
        Share of the counts that are not zero, about.
    as_anndata : bool, default=True
        Return an AnnData object rather than the values and ``obs``.
    random_state : int, default=0
        Seed.

    Returns
    -------
    AnnData or tuple of (csr_matrix, DataFrame)
        Logarithms of the counts, which are scaled to the same total in all cells, plus one:
        float32 in CSR; ``obs`` has the columns ``cell_type``, ``donor`` and ``batch``. Of an
        AnnData object, ``layers["counts"]`` are the counts and ``var["marker_of"]`` says which
        type or lineage a gene marks, if any.

    Examples
    --------
    >>> from sparsegsvp.datasets import make_cells
    >>> X, obs = make_cells(500, 200, n_types=4, as_anndata=False)
    >>> X.shape, obs["cell_type"].value_counts().tolist()
    ((500, 200), [366, 100, 27, 7])
    """
    import pandas as pd

    falling = 50.0 ** -np.linspace(0.0, 1.0, n_types)
    sizes = _class_sizes(n_cells, n_types, falling.tolist() if weights is None else weights)
    lineage = np.arange(n_types) // _LINEAGE  # of each type
    kinds = np.concatenate([np.eye(n_types), np.eye(lineage[-1] + 1)[:, lineage]])
    check_integer("n_donors", n_donors, least=1)
    check_integer("n_batches", n_batches, least=1)
    check_integer("n_genes", n_genes, least=1 + len(kinds) * n_markers)
    check_real("density", density, above=0.0, below=1.0)
    seeds = np.random.SeedSequence(random_state).spawn(1 + -(-n_cells // _BLOCK))
    rng = np.random.default_rng(seeds[0])

    types = rng.permutation(np.repeat(np.arange(n_types), sizes))
    mixtures = rng.dirichlet(np.full(n_donors, 5.0), size=n_types).cumsum(axis=1)
    donors = (rng.random(n_cells)[:, None] > mixtures[types, :-1]).sum(axis=1)
    base = rng.normal(0.0, 1.5, n_genes)
    base += brentq(lambda shift: np.mean(_zero(np.exp(base + shift))) - 1 + density, -30, 30)
    marked = rng.permutation(n_genes)[: len(kinds) * n_markers].reshape(len(kinds), n_markers)
    by_type = np.tile(base, (n_types, 1))
    by_type[:, marked] += kinds.T[:, :, None] * effect * rng.gamma(4.0, 0.25, marked.shape)
    by_donor = rng.normal(0.0, _DONOR, (n_donors, n_genes))
    by_donor += rng.normal(0.0, _BATCH, (n_batches, n_genes))[np.arange(n_donors) % n_batches]
    activity = rng.normal(0.0, 0.5, (n_types, n_programmes))
    loadings = rng.gamma(4.0, 0.15, (n_programmes, n_genes))
    loadings *= rng.random(loadings.shape) < 0.05
    parts = []
    for i, seed in enumerate(seeds[1:]):
        rows, stream = slice(i * _BLOCK, (i + 1) * _BLOCK), np.random.default_rng(seed)
        active = activity[types[rows]] + stream.standard_normal((len(types[rows]), n_programmes))
        log_mean = (active @ loadings).astype(np.float32)
        log_mean += by_type[types[rows]]
        log_mean += by_donor[donors[rows]]
        log_mean += _DEPTH * stream.standard_normal((len(active), 1), dtype=np.float32)
        parts.append(_draw(np.exp(log_mean), stream))
    counts = sp.vstack(parts, format="csr")
    total = np.maximum(np.asarray(counts.sum(axis=1)).ravel(), 1.0)
    factor = (np.median(total) / total).astype(np.float32)
    values = np.log1p(counts.data * np.repeat(factor, np.diff(counts.indptr)))
    X = sp.csr_matrix((values, counts.indices, counts.indptr), shape=counts.shape)
    obs = pd.DataFrame(index=_names("cell", n_cells))
    for name, code, number in (
        ("cell_type", types, n_types),
        ("donor", donors, n_donors),
        ("batch", donors % n_batches, n_batches),
    ):
        obs[name] = pd.Categorical.from_codes(code, _names(name.removeprefix("cell_"), number))
    if not as_anndata:
        return X, obs
    import anndata

    marker_of = np.full(n_genes, "", dtype=object)
    labels = [*_names("type", n_types), *_names("lineage", lineage[-1] + 1)]
    marker_of[marked] = np.array(labels, dtype=object)[:, None]
    var = pd.DataFrame({"marker_of": marker_of}, index=_names("gene", n_genes))
    return anndata.AnnData(X, obs=obs, var=var, layers={"counts": counts})


def _zero(mean: Any) -> Any:
    """Probability of a count of zero."""
    return (1.0 + mean / _SHAPE) ** -_SHAPE


def _draw(mean: NDArray[np.float32], rng: np.random.Generator) -> sp.csr_matrix:
    """Negative binomial counts: one uniform number each, and a search where it is not zero."""
    u = rng.random(mean.shape, dtype=np.float32)
    row, col = np.nonzero(u >= _zero(mean))
    u, mu = u[row, col].astype(np.float64), mean[row, col].astype(np.float64)
    odds, density = mu / (mu + _SHAPE), _zero(mu)
    below, counts = density.copy(), np.zeros(len(u), dtype=np.float32)
    left = np.arange(len(u))
    while len(left):  # values whose count is not reached yet
        counts[left] += 1.0
        density[left] *= odds[left] * (1.0 + (_SHAPE - 1.0) / counts[left])
        below[left] += density[left]
        left = left[u[left] >= below[left]]
    return sp.csr_matrix((counts, (row, col)), shape=mean.shape)


def _names(kind: str, number: int) -> list[str]:
    width = len(str(number - 1))
    return [f"{kind}_{i:0{width}d}" for i in range(number)]


def _class_sizes(
    n_samples: int, n_classes: int, weights: Sequence[float] | None
) -> NDArray[np.int64]:
    """Split `n_samples` in proportion to `weights` by the largest remainders."""
    check_integer("n_classes", n_classes, least=2)
    share = np.ones(n_classes) if weights is None else np.asarray(weights, dtype=np.float64)
    if share.shape != (n_classes,) or not np.all(np.isfinite(share)) or np.any(share <= 0):
        raise ValueError(f"weights must be {n_classes} positive numbers, one per class.")
    exact = n_samples * share / share.sum()
    # 1e-9 guards counts such as 58/77 * 77, which floor would lower by one.
    sizes = np.floor(exact + 1e-9).astype(np.int64)
    order = np.argsort(sizes - exact, kind="stable")
    sizes[order[: n_samples - sizes.sum()]] += 1
    if sizes.min() < 1:
        raise ValueError(
            f"n_samples={n_samples} leaves a class without samples: {sizes.tolist()}. "
            "Ask for more samples or for less uneven weights."
        )
    return sizes
