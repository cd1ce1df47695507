"""
Would other samples give the same panel?
========================================

A panel that changes with every new patient is not a list of markers, however well it predicts.
So the selection is repeated on random halves of the samples, and counted.
"""

import numpy as np

from sparsegsvp import GSVPSVM, StabilitySelection, plots
from sparsegsvp.datasets import make_planted

# %%
# Five informative features. The first gets a twin: another gene that measures nearly the same.
data = make_planted(80, 300, 5, effect=1.4, random_state=1)
X, y, names = data.X.copy(), data.y, data.feature_names
first, twin = data.support[0], 0
X[:, twin] = X[:, first] + 0.35 * np.random.default_rng(0).normal(size=len(y))
print("informative:", ", ".join(names[data.support]), "and the twin", names[twin])

# %%
# Thirty halves, five features each. A feature is kept if more than 60% of the halves choose it.
stable = StabilitySelection(GSVPSVM(n_features=5), n_resamples=30).fit(X, y)
print("kept:", ", ".join(names[stable.get_support()]) or "none")
print(f"stability of the whole panel: {stable.stability_.value:.2f} of 1")

# %%
# The longest bars are the safest. A short bar does not mean that a feature is useless: where two
# measure the same thing, the halves take now one, now the other.
ax = plots.stability(stable, feature_names=names, most=15)

# %%
# Such stand-ins are found: features that are strongly correlated within the classes, and chosen
# where the first one is not.
for feature, others in sorted(stable.substitutes_.items()):
    if stable.selection_frequencies_[feature] > 0.1:
        shown = ", ".join(str(names[s.feature]) for s in others)
        print(f"{names[feature]} can be replaced by {shown}")

# %%
# How many of the kept features may be wrong? Where theory has an answer, it is given; where it has
# none, that is said.
print(stable.error_words_)
