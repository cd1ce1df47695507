"""
Three classes
=============

Nothing changes with three classes or more. The criterion is a sum over all pairs of classes, in
which every pair counts the same. Each class also gets a plane of its own, close to its samples and
far from the others, so that one can say which features speak for which class.
"""

import matplotlib.pyplot as plt
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
# The first two features of the panel part the classes already.
first, second = model.feature_order_[:2]
fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
for label in model.classes_:
    ax.plot(*wine.data[y == label][:, [first, second]].T, "o", alpha=0.6, label=label)
ax.set_xlabel(names[first])
ax.set_ylabel(names[second])
ax.legend()

# %%
# An honest estimate: selection and tuning happen anew in each training part. Every class counts
# the same, however many samples it has.
result = nested_evaluate(GSVPSVMCV(), wine.data, y, n_repeats=1, n_permutations=0, n_pairs=5)
score = result.scores["balanced_accuracy"]
print(f"balanced accuracy {score.value:.2f} ({score.low:.2f} to {score.high:.2f})")
ax = plots.ladder(result)
