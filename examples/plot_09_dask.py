"""
A table that does not fit into memory
=====================================

The estimators take Dask arrays as they take NumPy arrays. The table is read chunk by chunk, never
gathered, and the result is that of the same rows in memory.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np

from sparsegsvp import GSVPSVM
from sparsegsvp.datasets import make_planted

# %%
# A small table plays the large one: 20,000 samples in chunks of 2,500. With a real one, ``X`` comes
# from ``da.from_zarr`` or a Dask data frame of Parquet files.
data = make_planted(20_000, 40, 4, effect=0.8, random_state=0)
X = da.from_array(data.X, chunks=(2_500, 40))
print(X.npartitions, "chunks of", X.chunksize)

# %%
# A pass over the chunks for the limits of outliers, one for all covariances, and a look at the
# panel's columns.
model = GSVPSVM(n_features=4).fit(X, data.y)
print("panel:", data.feature_names[model.support_], "planted:", data.feature_names[data.support])

# %%
# The same as in memory:
whole = GSVPSVM(n_features=4).fit(data.X, data.y)
print("same panel:", bool(np.array_equal(model.support_, whole.support_)))
print(f"largest difference of weights: {np.abs(model.panel_coef_ - whole.panel_coef_).max():.0e}")

# %%
# What each feature took from the criterion when it was chosen.
order = model.feature_order_
fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.bar(data.feature_names[order], model.feature_importances_[order])
ax.set_ylabel("taken from the criterion")
