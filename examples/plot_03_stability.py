"""
Would other samples give the same panel?
========================================

A panel that changes with every new patient is not a list of markers, however well it predicts.
So the selection is repeated on random halves of the samples, and counted.
"""

import matplotlib.pyplot as plt
import numpy as np

from sparsegsvp import GSVPSVM, StabilitySelection
from sparsegsvp.datasets import make_planted

# %%
# Five informative features. The first gets a twin: another gene that measures nearly the same.
data = make_planted(80, 300, 5, effect=1.4, random_state=1)
X, y, names = data.X.copy(), data.y, data.feature_names
first, twin = data.support[0], 0
X[:, twin] = X[:, first] + 0.35 * np.random.default_rng(0).normal(size=len(y))
print("informative:", ", ".join(names[data.support]), "and the twin", names[twin])

# %%
# Fifteen pairs of halves, five features each. A feature is kept if 60% of the halves choose it.
stable = StabilitySelection(GSVPSVM(n_features=5), n_pairs=15).fit(X, y)
print("kept:", ", ".join(names[stable.get_support()]) or "none")
print(f"stability of the whole panel: {stable.stability_:.2f} of 1")

# %%
# A low frequency does not mean that a feature is useless: where two measure the same thing, the
# halves take now one, now the other. Counted together with its stand-ins it is chosen more often.
often = np.argsort(-stable.selection_frequencies_)[:8]
fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.barh(names[often], stable.group_frequencies_[often], color="0.8", label="with stand-ins")
ax.barh(names[often], stable.selection_frequencies_[often], height=0.4, label="alone")
ax.invert_yaxis()
ax.set_xlabel("share of the halves that choose it")
ax.legend()

# %%
# The model itself knows who may stand for whom, and what the exchange costs.
model = GSVPSVM(n_features=5).fit(X, y)
for feature, others in zip(model.feature_order_, model.stand_ins_):
    for other, correlation, loss in others:
        print(f"{names[other]} for {names[feature]}: r = {correlation:.2f}, loss {loss:.4f}")
