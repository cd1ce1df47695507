"""
Another cohort, and whether acting on it would help
===================================================

Cross-validation asks how well the procedure does on such samples. A cohort from elsewhere asks
whether this one model holds. And a decision curve asks what either is good for: would patients be
better off if one acted on its answer?
"""

from sparsegsvp import GSVPSVMCV, plots
from sparsegsvp.datasets import make_planted
from sparsegsvp.evaluation import recalibrate, validate_external

# %%
# 80 samples to learn from; 200 of another hospital, whose machine reads one feature too high.
data = make_planted(280, 200, 4, effect=1.6, random_state=5)
X, y = data.X.copy(), data.labels
here, there = slice(0, 80), slice(80, 280)
X[there, data.support[0]] += 0.7
model = GSVPSVMCV(tau=1.0).fit(X[here], y[here])
print("panel:", ", ".join(data.feature_names[model.support_]))

# %%
# In the study half of the samples are cases. In the clinic, say, one patient in ten is: predictive
# values are for that share.
cohort = validate_external(model, X[there], y[there], pos_label="class 1", prevalence=0.1)
cohort

# %%
# The decision curve. "Net benefit" weighs patients rightly treated against those treated for
# nothing. Where the model's curve is above both lines, acting on it is better than acting on
# everyone and than acting on no one. The band shows how much 200 samples can say.
ax = plots.decision_curve(cohort)

# %%
# What the model was chosen from: the path of its search.
ax = plots.path(model, feature_names=data.feature_names)

# %%
# The new machine shifts all probabilities. The model can be fitted to the place without selecting
# anew: panel and ranking stay. Recalibrate on one half of the cohort, test on the other.
half, rest = slice(80, 180), slice(180, 280)
again = recalibrate(model, X[half], y[half], method="intercept")
for name, tried in (("before", model), ("after", again)):
    line = validate_external(tried, X[rest], y[rest], pos_label="class 1").line
    print(f"{name}: calibration intercept {line.intercept.value:+.2f}, where 0 is right")
