"""
Three classes
=============

Nothing changes with three classes or more. The criterion is a sum over all pairs of classes, in
which every pair counts the same. Each class also gets a plane of its own, close to its samples and
far from the others, so that one can say which features speak for which class.
"""

import numpy as np
from sklearn.datasets import load_wine

from sparsegsvp import GSVPSVM, GSVPSVMCV, nested_evaluate, plots

wine = load_wine()
names = np.array(wine.feature_names)
y = np.array(["Barolo", "Grignolino", "Barbera"])[wine.target]
model = GSVPSVM(n_features=4).fit(wine.data, y)
print("panel:", ", ".join(names[model.feature_order_]))

# %%
# What the plane of each class listens to: the size of its weights, per standard deviation of the
# feature.
size = np.abs(model.planes_) * wine.data.std(axis=0)
for label, row in zip(model.classes_, size):
    heaviest = np.argsort(-row)[:3]
    print(f"{label}: " + ", ".join(f"{names[j]} {row[j]:.2f}" for j in heaviest))

# %%
# What each feature took from the criterion when it was chosen.
ax = plots.elbow(model.feature_importances_, names=names)

# %%
# An honest estimate: selection and tuning happen anew in each training part. Every class counts
# the same, however many samples it has.
result = nested_evaluate(GSVPSVMCV(), wine.data, y, n_repeats=1, n_permutations=0, n_pairs=5)
score = result.scores["balanced_accuracy"]
print(f"balanced accuracy {score.value:.2f} ({score.low:.2f} to {score.high:.2f})")
ax = plots.ladder(result)
