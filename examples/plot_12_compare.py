"""
Comparing methods fairly
========================

Method A with 50 features against method B with 5 is no comparison. Here every method gives exactly
k features, selected inside the training part of each fold, and one and the same classifier judges
them on the rest. A panel drawn at random shows what k features are worth by themselves.
"""

import matplotlib.pyplot as plt
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sparsegsvp import GSVPSVM, compare
from sparsegsvp.datasets import make_planted
from sparsegsvp.evaluation import default_methods

X, y = make_planted(90, 300, 8, effect=1.0, random_state=2, return_X_y=True)

# %%
# Any selector of scikit-learn can take part. ``default_methods()`` has some twenty.
print(", ".join(default_methods()))
l1 = LogisticRegression(penalty="l1", solver="liblinear", C=0.5, class_weight="balanced")
methods = {
    "GSVPSVM": GSVPSVM(),
    "F test": SelectKBest(f_classif),
    "l1 logistic": make_pipeline(StandardScaler(), l1),
}

# %%
# Three sizes, five folds. With 90 samples, differences of a few hundredths are noise, and the table
# below says so.
result = compare(methods, X, y, sizes=(2, 4, 8), n_repeats=1)
fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
for name, rows in result.table.groupby("method"):
    ax.plot(rows["size"], rows["balanced_accuracy"], "o-", label=name)
ax.set_xlabel("features")
ax.set_ylabel("balanced accuracy")
ax.legend()

# %%
# Differences to the first method, with p-values that count how many there are.
result.table[["method", "size", "balanced_accuracy", "difference", "p_adjusted"]].round(3)
