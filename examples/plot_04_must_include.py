"""
A gene that must be in, and one that must not
=============================================

Often you know something: one marker is already on the chip, another cannot be measured in blood,
a third costs ten times as much. Say so before the selection, not after it, so that the estimate
of accuracy counts it.
"""

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.pipeline import make_pipeline

from sparsegsvp import GSVPSVM, Panel, nested_evaluate
from sparsegsvp.datasets import load_breast_cancer
from sparsegsvp.evaluation import paired_difference

data = load_breast_cancer()
X, y = pd.DataFrame(data.X, columns=data.feature_names), data.y

free = GSVPSVM(n_features=5).fit(X, y)
print("free choice:", ", ".join(free.get_feature_names_out()))

# %%
# A factor of 0 puts a feature into every panel, infinity into none, and 3 divides what it gains by
# three. On the command line: ``--must`` and ``--ban``.
steered = GSVPSVM(
    n_features=5,
    penalty_factor={
        "mean smoothness": 0.0,
        "worst radius": float("inf"),
        "worst area": 3.0,
    },
).fit(X, y)
print("steered:", ", ".join(steered.get_feature_names_out()))

# %%
# What each feature took from the criterion when it was chosen.
order = steered.feature_order_[::-1]
fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.barh(X.columns[order], steered.feature_importances_[order])
ax.set_xlabel("taken from the criterion")

# %%
# What does a panel from elsewhere score here, say from a paper? Fit it in the same folds as your
# own selection, and compare the two on the same samples.
known = ["mean radius", "mean texture", "mean perimeter", "mean area"]
published = make_pipeline(Panel(known), GSVPSVM(n_features=4))
options = {"n_repeats": 1, "n_permutations": 0, "n_pairs": 0}
theirs = nested_evaluate(published, X, y, **options)
ours = nested_evaluate(GSVPSVM(n_features=4), X, y, **options)
gain = paired_difference(ours, theirs)
print(f"ours minus theirs: {gain.value:+.3f} ({gain.low:+.3f} to {gain.high:+.3f})")
