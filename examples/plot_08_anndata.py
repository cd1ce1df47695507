"""
A marker panel of cell types
============================

A spatial assay has room for a few genes: which ones tell all types of cells apart, also in people
that nobody has measured yet? ``select_markers`` takes an AnnData object, chooses exactly as many
genes as asked for, no two of them copies of each other, and writes the answer back into it, in the
manner of scanpy's tools. Sparse matrices stay sparse.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sparsegsvp import GSVPSVM, nested_evaluate, plots
from sparsegsvp.datasets import make_cells
from sparsegsvp.scverse import dot_plot_frames, select_markers

# %%
# 3,000 simulated cells of six types and eight donors. The commonest type has fifty times the cells
# of the rarest, types come in two lineages whose members are alike, and programmes such as the cell
# cycle move many genes together. Genes that fewer than ten cells express are left out, as usual.
adata = make_cells(3000, 800, n_types=6, n_donors=8, random_state=0)
adata = adata[:, adata.X.getnnz(axis=0) >= 10].copy()
print(adata)
adata.obs["cell_type"].value_counts()

# %%
# Fifteen genes, and the pairs of types that gain most by each. Every pair counts the same, whatever
# its number of cells, and one that is apart already stops counting: so the genes are spread over
# the types. ``batch_key`` lets every donor of a type count the same.
markers = select_markers(adata, groupby="cell_type", n_genes=15, batch_key="donor")
markers["truth"] = adata.var.loc[markers["gene"], "marker_of"].to_numpy()
markers[["gene", "separates", "gain", "truth"]]

# %%
# The dot plot: color is the mean value, size the part of the cells that express a gene.
# ``scanpy.pl.DotPlot(adata, list(markers["gene"]), "cell_type", dot_color_df=color,
# dot_size_df=size)`` draws the same.
color, size = dot_plot_frames(markers)
x, y = np.meshgrid(range(size.shape[1]), range(size.shape[0]))
fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
dots = ax.scatter(x, y, s=100 * size.to_numpy(), c=color.to_numpy(), cmap="Reds", ec="0.6", lw=0.5)
ax.set_xticks(range(size.shape[1]), size.columns, rotation=90)
ax.set_yticks(range(size.shape[0]), size.index)
_ = fig.colorbar(dots, label="mean value")

# %%
# That was the choice. The estimate comes from donors that took no part in it: in each of four folds
# two donors are held out, and genes are chosen anew from the others, by ``GSVPSVM``, the engine of
# ``select_markers``. ``select_panel(adata, target="cell_type", groups="donor")`` does the same and
# writes a page.
types, donors = (adata.obs[name].to_numpy() for name in ("cell_type", "donor"))
result = nested_evaluate(
    GSVPSVM(n_features=15), adata.X, types, groups=donors, sizes=(2, 4, 8, 15),
    n_splits=4, n_repeats=1, n_permutations=0, n_pairs=0,
)  # fmt: skip
score = result.scores["balanced_accuracy"]
print(f"balanced accuracy {score.value:.2f} ({score.low:.2f} to {score.high:.2f})")
ax = plots.ladder(result)

# %%
# The recall of each type at every size: rare types need their own genes.
rates = {k: counts / counts.sum(axis=1, keepdims=True) for k, counts in result.confusions.items()}
pd.DataFrame({k: rate.diagonal() for k, rate in rates.items()}, index=result.classes).round(2)

# %%
# Which types are mistaken for which: mostly for one of the same lineage.
pd.DataFrame(rates[15], index=result.classes, columns=result.classes).round(2)
