"""
Three hospitals, one model, no rows exchanged
=============================================

Each site computes the moments of its own rows: counts, means and products of features, for each
class. Moments add, so their sum gives the model of the pooled table, and no row leaves its site.
What this does not protect is said at the end.
"""

import numpy as np

from sparsegsvp import GSVPSVM, ClassMoments, plots
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

# %%
# What each feature took from the criterion when it was chosen.
ax = plots.elbow(shared.feature_importances_)

# %%
# What it does not protect: a class of one row at a site *is* that row, and two sums that
# differ by one row give it away. Send moments of many rows, and not at each new patient.
one = ClassMoments.from_data(X[:1], y[:1])
print("a single row read back:", bool(np.array_equal(one.means[0], X[0])))
