"""
Three classes
=============

Nothing changes with three classes or more. Each class gets a plane of its own, close to its
samples and far from the others, and the panel is what the planes use together. So one can also say
which features speak for which class.
"""

import numpy as np
from sklearn.datasets import load_wine

from sparsegsvp import GSVPSVMCV, nested_evaluate, plots

wine = load_wine()
names = np.array(wine.feature_names)
y = np.array(["Barolo", "Grignolino", "Barbera"])[wine.target]
model = GSVPSVMCV(tau=1.0).fit(wine.data, y)
print("panel:", ", ".join(names[model.support_]))

# %%
# What the plane of each class listens to: the size of its weights, per standard deviation of the
# feature.
size = np.abs(model.coef_) * wine.data.std(axis=0)
for label, row in zip(model.classes_, size):
    heaviest = np.argsort(-row)[:3]
    print(f"{label}: " + ", ".join(f"{names[j]} {row[j]:.2f}" for j in heaviest))

# %%
# The sorted weights of one plane, and the elbow behind which they fall off.
ax = plots.weights(model, plane=1, feature_names=names)

# %%
# An honest estimate: selection and tuning happen anew in each training part. Every class counts
# the same, however many samples it has.
found = nested_evaluate(GSVPSVMCV(tau=1.0), wine.data, y, n_repeats=1, n_permutations=0)
score = found.scores["balanced_accuracy"]
print(f"balanced accuracy {score.value:.2f} ({score.low:.2f} to {score.high:.2f})")

# %%
# Two planes at a time can be looked at.
ax = plots.planes(found, pair=(0, 2))
