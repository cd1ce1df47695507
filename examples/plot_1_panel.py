"""
1. A panel of features, and how it was chosen
=============================================

A table of 569 biopsies with 30 measurements each. We let cross-validation choose the
penalty, look at the path it walked, and at where the samples lie between the two planes.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from sparsegsvp import GSVPSVM, GSVPSVMCV, nested_evaluate, plots
from sparsegsvp.datasets import load_breast_cancer

data = load_breast_cancer()
X_train, X_test, y_train, y_test = train_test_split(
    data.X, data.y, test_size=0.3, stratify=data.y, random_state=0
)

# %%
# The sparsest point within one standard error of the best score.
model = GSVPSVMCV(rule="1se").fit(X_train, y_train)
print("panel:", ", ".join(np.asarray(data.feature_names)[model.support_]))
print(f"held-out accuracy: {model.score(X_test, y_test):.3f}")

# %%
# The path: how many features there are at each penalty, and how well they do.
ax = plots.path(model, feature_names=data.feature_names)
ax.figure.savefig("panel_path.png", dpi=120)

# %%
# Out-of-fold samples by their distances to the two planes. Training samples would look
# separated even if there were nothing to find.
found = nested_evaluate(GSVPSVM(n_features=5), data.X, data.y, n_repeats=1, n_permutations=0)
ax = plots.planes(found)
ax.figure.savefig("panel_planes.png", dpi=120)
plt.close("all")
