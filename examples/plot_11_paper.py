"""
The paper's iteration, and its well-posed relative
==================================================

The method comes from a paper by Ugwu and Kirby (2024). Its idea is kept here; its problem is
changed a little, for a reason that can be seen in a minute: as published, the answer depends on
where the iteration starts.
"""

import warnings

import numpy as np

from sparsegsvp import GSVPSVM, PGDGSVPSVM, LqGSVPSVM, plots
from sparsegsvp.datasets import load_breast_cancer

X, y = load_breast_cancer(return_X_y=True)
names = load_breast_cancer().feature_names

# %%
# The published iteration, exactly, from ten random starts.
settings = {"q": 0.1, "delta": 0.02, "step_size": 0.025, "conventions": "code"}
panels = set()
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    for seed in range(10):
        paper = PGDGSVPSVM(random_state=seed, **settings).fit(X, y)
        panels.add(tuple(paper.get_support(indices=True)))
print(f"{len(panels)} different panels from 10 starts")

# %%
# Why: the objective is a quotient plus a penalty. The quotient does not change when the weights are
# all halved, the penalty does. So there is always something smaller, and no minimum to arrive at.
z = np.random.default_rng(0).normal(size=30)
A, B = X[y == 0] - X.mean(axis=0), X[y == 1] - X.mean(axis=0)
for scale in (1.0, 0.1, 0.01):
    w = scale * z
    quotient = (A @ w) @ (A @ w) / ((B @ w) @ (B @ w))
    print(f"weights x {scale:<5} quotient {quotient:.3f}, penalty {np.abs(w).sum():.2f}")

# %%
# Its own curve of the objective shows no arrival either.
ax = plots.history(paper)

# %%
# In the limit where the penalty counts features there is something to arrive at, in closed
# form: ``GSVPSVM`` draws nothing at random. ``LqGSVPSVM`` solves the penalised problem on weights
# of length one, and says how far it is from a stationary point.
exact = GSVPSVM(n_features=5).fit(X, y)
print("the panel:", ", ".join(names[exact.feature_order_]))
penalised = LqGSVPSVM(q=0.5, delta=0.05).fit(X, y)
print(f"{penalised.support_.sum()} features, residual {np.max(penalised.kkt_residual_):.0e}")
