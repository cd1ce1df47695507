"""
How many features?
==================

Small panels are cheaper to measure and easier to explain; larger ones sometimes predict better.
Panels are nested, so one walk from one feature to many scores every size on samples that it has not
seen. The default takes the smallest panel that these samples can hardly tell from the best.
"""

import matplotlib.pyplot as plt

from sparsegsvp import GSVPSVM, GSVPSVMCV, nested_evaluate, plots
from sparsegsvp.datasets import load_breast_cancer

data = load_breast_cancer()
model = GSVPSVMCV().fit(data.X, data.y)
print("panel:", ", ".join(data.feature_names[model.feature_order_]))

# %%
# Balanced accuracy of held-out samples by size. The curve is flat for a long stretch, and the best
# point on a flat stretch is where chance puts it.
path = model.path_
fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.errorbar(
    path["n_features"], path["balanced_accuracy"], yerr=path["balanced_accuracy_se"], fmt="o-", ms=3
)
ax.axvline(model.n_features_, color="0.6")
ax.set_xlabel("features")
ax.set_ylabel("balanced accuracy, held out")

# %%
# The other rules on the same folds: "best" takes the best point, "1se" the smallest within one
# standard error of it.
for rule in ("paired", "best", "1se"):
    print(f"rule={rule!r}: {GSVPSVMCV(rule=rule).fit(data.X, data.y).n_features_} features")

# %%
# The curve above chose a size, so it flatters. The ladder scores every size on outer folds that
# chose nothing.
result = nested_evaluate(GSVPSVMCV(), data.X, data.y, n_repeats=1, n_permutations=0, n_pairs=5)
ax = plots.ladder(result)

# %%
# If the assay has room for exactly four, say so. On the command line: ``--n-features 4``.
four = GSVPSVM(n_features=4).fit(data.X, data.y)
print("four:", ", ".join(data.feature_names[four.feature_order_]))
