"""
How many features?
==================

Small panels are cheaper to measure and easier to explain; larger ones sometimes predict better.
The search walks from one feature to many and scores every step on samples it has not seen. Then it
takes the smallest panel that these samples cannot tell from the best.
"""

import matplotlib.pyplot as plt

from sparsegsvp import GSVPSVM, GSVPSVMCV, plots
from sparsegsvp.datasets import load_breast_cancer

data = load_breast_cancer()
model = GSVPSVMCV(tau=1.0).fit(data.X, data.y)
print("panel:", ", ".join(data.feature_names[model.support_]))

# %%
# The path from the largest penalty, which leaves one feature, to small ones. The line marks the
# step that was taken.
ax = plots.path(model, feature_names=data.feature_names, label=5)

# %%
# Balanced accuracy of held-out samples at every step. The curve is flat for a long stretch, and
# the best point on a flat stretch is where chance puts it. That is why the default rule, "paired",
# does not take it.
# sphinx_gallery_thumbnail_number = 2
steps = model.path_
fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.errorbar(steps["n_features"], steps["accuracy"], yerr=steps["accuracy_error"], fmt="o-", ms=3)
ax.axvline(model.support_.sum(), color="0.6")
ax.set_xlabel("features")
ax.set_ylabel("balanced accuracy, held out")
ax.set_title("what each step of the path is worth")

# %%
# The other rules on the same folds: "best" takes the best point, "1se" the smallest within one
# standard error of it.
for rule in ("paired", "best", "1se"):
    size = GSVPSVMCV(tau=1.0, rule=rule).fit(data.X, data.y).support_.sum()
    print(f"rule={rule!r}: {size} features")

# %%
# If the assay has room for exactly four, say so. On the command line: ``--n-features 4``.
four = GSVPSVM(n_features=4).fit(data.X, data.y)
print("four:", ", ".join(data.feature_names[four.support_]))
