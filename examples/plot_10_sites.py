"""
Three hospitals, one model, no rows exchanged
=============================================

Each site computes the moments of its own rows: counts, means and products of features, for each
class. Moments add, so their sum gives the model of the pooled table, and no row leaves its site.
What this does not protect is said at the end.
"""

import matplotlib.pyplot as plt
import numpy as np

from sparsegsvp import GSVPSVM, ClassMoments
from sparsegsvp.datasets import load_breast_cancer

X, y = load_breast_cancer(return_X_y=True)
site = np.random.default_rng(0).integers(0, 3, size=len(y))

# %%
# What each site sends: not 30 numbers for each patient, but some for each class.
sent = [ClassMoments.from_data(X[site == s], y[site == s]) for s in range(3)]
print("numbers sent per site:", sum(part.size for part in sent[0].to_dict().values()))

# %%
# The sum gives the same model as the pooled rows.
options = {"n_features": 6, "decision": "discriminant", "clip": None}  # moments cannot be clipped
shared = GSVPSVM(**options).fit_moments(sum(sent))
pooled = GSVPSVM(**options).fit(X, y)
print("same panel:", bool(np.array_equal(shared.support_, pooled.support_)))
print(f"largest difference of coefficients: {np.abs(shared.coef_ - pooled.coef_).max():.1e}")
fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.axline((0.0, 0.0), slope=1.0, color="0.8")
ax.plot(pooled.coef_[0, pooled.support_], shared.coef_[0, pooled.support_], "o")
ax.set_xlabel("coefficients from the pooled rows")
ax.set_ylabel("coefficients from sums of moments")

# %%
# What it does not protect: a class of one row at a site *is* that row, and two sums that
# differ by one row give it away. Send moments of many rows, and not at each new patient.
one = ClassMoments.from_data(X[:1], y[:1])
print("a single row read back:", bool(np.array_equal(one.means[0], X[0])))
