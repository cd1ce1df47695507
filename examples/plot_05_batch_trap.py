"""
The batch trap, and the way out
===============================

If the ill were measured on Monday and the healthy on Tuesday, a panel that tells Monday from
Tuesday looks perfect in every cross-validation, and fails on Wednesday. A permutation test does
not see it. Naming the batches does.
"""

import matplotlib.pyplot as plt
import numpy as np

from sparsegsvp import GSVPSVM, nested_evaluate, plots

rng = np.random.default_rng(0)


def measure(plate, y):
    """200 features: two know the class, fifty know the plate, the rest know nothing."""
    X = rng.normal(size=(len(y), 200))
    X[:, :2] += 1.2 * y[:, None]
    shift = rng.normal(size=(4, 50))
    X[:, 50:100] += 2.0 * shift[plate]
    return X


options = {"n_repeats": 1, "n_permutations": 0, "n_pairs": 0}
model = GSVPSVM(n_features=4)

# %%
# The trap: of the ill, 19 in 20 are on the plates 0 and 1, of the healthy as many on 2 and 3. The
# score is splendid.
y = np.repeat([1, 0], 60)
plate = np.where(rng.random(120) < 0.95, 1 - y, y) * 2 + rng.integers(0, 2, 120)
X = measure(plate, y)
trap = nested_evaluate(model, X, y, batch={"plate": plate}, **options)
print(f"balanced accuracy {trap.scores['balanced_accuracy'].value:.2f}")
print("panel:", trap.panel, "(0 and 1 know the class, 50 to 99 the plate)")

# %%
# The audit asks two questions. Can the class be told from the plate alone? How well are plates
# predicted that were left out? On the command line: ``--batch plate``.
audit = trap.batches[0]
print(f"the class from the plate alone: {audit.accuracy:.2f} (shuffled {audit.shuffled:.2f})")
print(f"on a plate that was left out: {audit.unseen.score.value:.2f}" if audit.unseen else "")

# %%
# The way out is not a formula but a plan: measure both classes on every plate. The same number of
# samples, dealt out evenly, gives a lower score that is true.
plate = np.tile([0, 1, 2, 3], 30)
X = measure(plate, y)
even = nested_evaluate(model, X, y, batch={"plate": plate}, **options)
print(f"balanced accuracy {even.scores['balanced_accuracy'].value:.2f}")
print("panel:", even.panel)
print(f"the class from the plate alone: {even.batches[0].accuracy:.2f}")

# %%
# Its ladder: two features are enough.
fig, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax = plots.ladder(even, ax=ax)
