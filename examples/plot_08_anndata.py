"""
Marker genes of cell types, in an AnnData object
================================================

Single-cell data live in AnnData objects. ``select_features`` takes one, chooses a small panel of
genes that tells the groups of cells apart, and writes the answer back into it, in the manner of
scanpy's functions. Sparse matrices stay sparse.
"""

import anndata
import numpy as np
import scipy.sparse as sp

from sparsegsvp import GSVPSVMCV, plots
from sparsegsvp.scverse import select_features

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
# At most six genes for three types. The result is in ``adata.var`` and ``adata.uns``.
select_features(adata, groupby="cell_type", n_features=6)
print(adata.var_names[adata.var["gsvp_selected"]].tolist())

# %%
# Weights: which gene speaks for which type.
columns = [name for name in adata.var if name.startswith("gsvp_weight")]
adata.var.loc[adata.var["gsvp_selected"], columns].round(2)

# %%
# A picture of the search itself comes from the estimator underneath.
model = GSVPSVMCV(tau=1.0, n_deltas=15).fit(adata.X, types)
ax = plots.path(model, feature_names=adata.var_names, label=6)
