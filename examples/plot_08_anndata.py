"""
Marker genes of cell types, in an AnnData object
================================================

Single-cell data live in AnnData objects. ``select_markers`` takes one, chooses exactly as many
genes as asked for that tell the types of cells apart, and writes the answer back into it, in the
manner of scanpy's functions. Sparse matrices stay sparse.
"""

import anndata
import numpy as np
import scipy.sparse as sp

from sparsegsvp import GSVPSVM, plots
from sparsegsvp.scverse import dot_plot_frames, select_markers

# %%
# 240 simulated cells of three types, with two marker genes each, mostly zeros, log-normalised.
rng = np.random.default_rng(0)
types = np.repeat(["B cell", "NK cell", "T cell"], 80)
counts = rng.poisson(0.3, size=(240, 400)).astype(np.float32)
for k, name in enumerate(("B cell", "NK cell", "T cell")):
    counts[types == name, 2 * k : 2 * k + 2] += rng.poisson(2.5, size=(80, 2))
adata = anndata.AnnData(
    sp.csr_matrix(np.log1p(counts)),
    obs={"cell_type": types},
    var={"symbol": [f"gene{j}" for j in range(400)]},
)
adata.var_names = adata.var["symbol"].to_numpy()
print(adata)

# %%
# Exactly six genes for three types, with the pairs of types that each of them separates.
markers = select_markers(adata, groupby="cell_type", n_genes=6)
markers[["gene", "separates", "gain"]]

# %%
# Mean value and part of the cells that express a gene: what scanpy's ``DotPlot`` takes.
color, size = dot_plot_frames(markers)
size.round(2)

# %%
# What each feature took from the criterion when it was chosen.
model = GSVPSVM(n_features=6).fit(adata.X, types)
ax = plots.elbow(model.feature_importances_, names=adata.var_names)
