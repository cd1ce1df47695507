"""
A gene that must be in, and one that must not
=============================================

Often you know something: one marker is already on the chip, another cannot be measured in blood,
a third costs ten times as much. Say so before the selection, not after it, so that the estimate
of accuracy counts it.
"""

from sklearn.pipeline import make_pipeline

from sparsegsvp import GSVPSVM, GSVPSVMCV, Panel, nested_evaluate, plots
from sparsegsvp.datasets import load_breast_cancer
from sparsegsvp.evaluation import paired_difference

data = load_breast_cancer()
X, y, names = data.X, data.y, list(data.feature_names)


def panel(model):
    return ", ".join(names[j] for j in model.get_support(indices=True))


free = GSVPSVMCV(tau=1.0).fit(X, y)
print("free choice:", panel(free))

# %%
# A factor of 0 puts a feature into every panel, infinity into none, and 3 makes it three times as
# expensive as the others. On the command line: ``--must``, ``--ban`` and ``--costs``.
steered = GSVPSVMCV(
    tau=1.0,
    penalty_factor={
        names.index("mean smoothness"): 0.0,
        names.index("worst radius"): float("inf"),
        names.index("worst area"): 3.0,
    },
).fit(X, y)
print("steered:", panel(steered))

# %%
# The feature that must be in is there from the first step of the path.
ax = plots.path(steered, feature_names=names, label=6)

# %%
# What does a panel from elsewhere score here, say from a paper? Fit it in the same folds as your
# own selection, and compare the two on the same samples.
published = make_pipeline(Panel([0, 1, 2, 3]), GSVPSVM(n_features=4))
options = {"n_repeats": 1, "n_permutations": 0}
theirs = nested_evaluate(published, X, y, **options)
ours = nested_evaluate(GSVPSVM(n_features=4), X, y, **options)
gain = paired_difference(ours, theirs)
print(f"ours minus theirs: {gain.value:+.3f} ({gain.low:+.3f} to {gain.high:+.3f})")
