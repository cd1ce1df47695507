"""
A first panel
=============

A wide table, one call, and everything a reader will ask about it: which features, how well they
predict samples that were kept out, whether that is more than chance, and whether other samples
would have given the same features.
"""

# %%
# 70 samples with 300 measurements each, of which five differ between the classes. We know which,
# because the table is simulated; nothing below does.
import pandas as pd

from sparsegsvp import plots, select_panel
from sparsegsvp.datasets import make_planted

data = make_planted(70, 300, 5, effect=1.8, random_state=3)
table = pd.DataFrame(data.X, columns=data.feature_names)
table["diagnosis"] = ["tumor" if label else "normal" for label in data.y]
print("informative:", ", ".join(data.feature_names[data.support]))

# %%
# One call does all of it. The numbers of repeats, permutations and half samples are smaller than
# the defaults here, so that this page is built quickly; leave them out for your own table.
found = select_panel(table, target="diagnosis", repeats=1, permutations=19, resamples=6)
print(found)

# %%
# The panel: one row per feature, the heaviest first. ``frequency`` says how often the feature was
# chosen again in half samples.
found.panel[["higher_in", "weight_tumor", "auc", "frequency"]].round(2)

# %%
# Where the samples lie: each point was predicted by a model that had not seen it. Each class has a
# plane of its own. Samples at the left are close to that of "normal", samples at the bottom to that
# of "tumor"; between them, along the diagonal, lie those that could be either.
ax = plots.planes(found.evaluation)

# %%
# The same as a page, which ``found.save("report")`` writes to a folder together with the model.
# In a notebook the result shows it by itself.
found
