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
import matplotlib.pyplot as plt
import pandas as pd

from sparsegsvp import plots, select_panel
from sparsegsvp.datasets import make_planted

data = make_planted(70, 300, 5, effect=1.8, random_state=3)
table = pd.DataFrame(data.X, columns=data.feature_names)
table["diagnosis"] = ["tumor" if label else "normal" for label in data.y]
print("informative:", ", ".join(data.feature_names[data.support]))

# %%
# One call does all of it. ``fast`` takes fewer repeats, permutations and half samples, so that this
# page is built quickly; leave it out for your own table.
result = select_panel(table, target="diagnosis", fast=True)
print(result.verdict, result.panel.shape)

# %%
# The panel: one row per feature, in the order of choice.
result.panel

# %%
# The ladder: what panels of one, two, three and more features are worth on samples that took no
# part, and how alike the panels of other samples are.
fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax = plots.ladder(result, ax=ax)

# %%
# The same as a page, which ``result.save("report")`` writes to a folder together with the model.
# In a notebook the result shows it by itself.
result
