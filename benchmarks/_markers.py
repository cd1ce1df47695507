"""Selectors of marker genes: X is log-normalised in CSR, y holds types as codes from 0."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from scipy.stats import rankdata
from sklearn.tree import DecisionTreeClassifier

from sparsegsvp import subset_gsvp

# method(X, y, most, seed) -> genes in the order of choice, at least `most` of them
Method = Callable[[sp.csr_matrix, np.ndarray, int, int], np.ndarray]


def sums_by_type(X: sp.csr_matrix, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cells of each type, and sums and sums of squares of each gene in it."""
    member = sp.csr_matrix((np.ones(len(y)), (y, np.arange(len(y)))))
    return np.bincount(y), (member @ X).toarray(), (member @ X.multiply(X)).toarray()


def in_turn(scores: np.ndarray) -> np.ndarray:
    """The best gene of every type, then the second best of every type, and so on."""
    ranked = np.argsort(-scores, axis=1, kind="stable")
    return np.array(list(dict.fromkeys(ranked.T.ravel().tolist())))


def ours(X: sp.csr_matrix, y: np.ndarray, most: int, seed: int) -> np.ndarray:
    """The engine of `select_markers`, without an AnnData around the cells."""
    return subset_gsvp(X, y, most, sample_weight=1 / np.bincount(y)[y]).order


def t_test(X: sp.csr_matrix, y: np.ndarray, most: int, seed: int) -> np.ndarray:
    """Welch's t of each type against the other cells: scanpy's ``t-test``."""
    size, total, square = sums_by_type(X, y)
    size, rest = size[:, None], len(y) - size[:, None]
    mean, other = total / size, (total.sum(axis=0) - total) / rest
    variance = (square - size * mean**2) / (size - 1)
    spread = (square.sum(axis=0) - square - rest * other**2) / (rest - 1)
    error = np.sqrt(np.maximum(variance / size + spread / rest, 0.0))
    return in_turn(np.divide(mean - other, error, out=np.zeros_like(error), where=error > 0))


def wilcoxon(X: sp.csr_matrix, y: np.ndarray, most: int, seed: int) -> np.ndarray:
    """Rank sums of each type against the other cells: scanpy's ``wilcoxon``."""
    n, size, columns = len(y), np.bincount(y), X.tocsc()
    sums = np.empty((len(size), X.shape[1]))
    for gene in range(X.shape[1]):
        stored = slice(columns.indptr[gene], columns.indptr[gene + 1])
        cells = columns.indices[stored]
        zeros = n - len(cells)
        # zeros share their mean rank; all other values are above them
        above = zeros + rankdata(columns.data[stored]) - (zeros + 1) / 2
        sums[:, gene] = np.bincount(y[cells], above, minlength=len(size))
    sums += (size * (n - np.diff(columns.indptr)[:, None] + 1) / 2).T
    expected = size * (n + 1) / 2
    deviation = np.sqrt(size * (n - size) * (n + 1) / 12)
    return in_turn((sums - expected[:, None]) / deviation[:, None])


def highly_variable(X: sp.csr_matrix, y: np.ndarray, most: int, seed: int) -> np.ndarray:
    """Dispersion among genes of like mean, on the scale of counts: Seurat's first way."""
    import pandas as pd

    counts = X.expm1()
    mean = np.asarray(counts.mean(axis=0)).ravel()
    square = np.asarray(counts.multiply(counts).mean(axis=0)).ravel()
    ratio = (square - mean**2) * len(y) / (len(y) - 1) / np.maximum(mean, 1e-12)
    dispersion = pd.Series(np.log(np.where(ratio > 0, ratio, np.nan)))
    by_bin = dispersion.groupby(pd.cut(np.log1p(mean), 20), observed=True)
    score = (dispersion - by_bin.transform("mean")) / by_bin.transform("std")
    return np.argsort(-score.fillna(-np.inf).to_numpy(), kind="stable")


def trees(X: sp.csr_matrix, y: np.ndarray, most: int, seed: int) -> np.ndarray:
    """Importance in shallow trees of each type against the others, after spapros.

    Ten trees of depth three a type, each on at most 1,000 cells of the type and as many others,
    of every other type the same number.
    """
    rng, scores = np.random.default_rng(seed), np.zeros((y.max() + 1, X.shape[1]))
    for kind in range(len(scores)):
        for _ in range(10):
            inside = np.flatnonzero(y == kind)
            inside = rng.choice(inside, min(1000, len(inside)), replace=False)
            share = -(-len(inside) // (len(scores) - 1))
            others = [np.flatnonzero(y == k) for k in range(len(scores)) if k != kind]
            rest = [rng.choice(o, min(share, len(o)), replace=False) for o in others]
            cells = np.concatenate([inside, *rest])
            tree = DecisionTreeClassifier(max_depth=3, class_weight="balanced", random_state=seed)
            scores[kind] += tree.fit(X[cells], y[cells] == kind).feature_importances_
    return in_turn(scores)


def at_random(X: sp.csr_matrix, y: np.ndarray, most: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).permutation(X.shape[1])


METHODS: dict[str, Method] = {
    "select_markers": ours,
    "t-test": t_test,
    "Wilcoxon": wilcoxon,
    "trees": trees,
    "highly variable": highly_variable,
    "random": at_random,
}
