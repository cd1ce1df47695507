"""
Another cohort, and whether acting on it would help
===================================================

Cross-validation asks how well the procedure does on such samples. A cohort from elsewhere asks
whether this one model holds. And a decision curve asks what either is good for: would patients be
better off if one acted on its answer?
"""

import matplotlib.pyplot as plt

from sparsegsvp import GSVPSVM
from sparsegsvp.datasets import make_planted
from sparsegsvp.evaluation import validate_external

# %%
# 80 samples to learn from; 200 of another hospital, whose machine reads one feature too high.
data = make_planted(280, 200, 4, effect=1.6, random_state=5)
X, y = data.X.copy(), data.labels
here, there = slice(0, 80), slice(80, 280)
X[there, data.support[0]] += 0.7
model = GSVPSVM(n_features=4).fit(X[here], y[here])
print("panel:", ", ".join(data.feature_names[model.feature_order_]))

# %%
# In the study half of the samples are cases. In the clinic, say, one patient in ten is: predictive
# values are for that share.
cohort = validate_external(model, X[there], y[there], pos_label="class 1", prevalence=0.1)
cohort.to_frame()

# %%
# The decision curve. "Net benefit" weighs patients rightly treated against those treated for
# nothing. Where the model's curve is above both lines, acting on it is better than acting on
# everyone and than acting on no one.
curve = cohort.decision_curve()
fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.plot(curve["threshold"], curve["net_benefit"], label="by the model")
ax.plot(curve["threshold"], curve["treat_all"], label="treat everyone")
ax.axhline(0.0, color="0.6", label="treat no one")
ax.set_ylim(-0.02, 0.11)  # the best there is: the share of cases
ax.set_xlabel("probability from which one acts")
ax.set_ylabel("net benefit")
ax.legend()
