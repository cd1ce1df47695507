"""Write the simulated tables that the tutorials use: tumors.csv and cohort.csv, beside this file.

python docs/data/make.py
"""

from pathlib import Path

import numpy as np

N_GENES = 200
SHIFTS = {12: 1.6, 47: -1.4, 88: 1.2, 133: -1.1, 171: 1.0}  # in standard deviations
TWINS = {13: 12, 134: 133}  # genes that follow another one


def simulate(n_tumor: int, n_normal: int, prefix: str, rng: np.random.Generator) -> list[str]:
    """Draw samples in the order in which they were taken, and give the lines of a CSV file."""
    tumor = rng.permutation(np.repeat([True, False], [n_tumor, n_normal]))
    n = len(tumor)
    Z = rng.standard_normal((n, N_GENES))
    for gene, shift in SHIFTS.items():
        Z[:, gene - 1] += shift * tumor
    for gene, other in TWINS.items():
        Z[:, gene - 1] = 0.9 * Z[:, other - 1] + np.sqrt(1 - 0.81) * Z[:, gene - 1]
    center, scale = np.random.default_rng(7).uniform([[4], [0.5]], [[11], [1.2]], (2, N_GENES))
    values = center + scale * Z
    plates = rng.permutation(np.arange(n) % 3)
    ages = np.clip(rng.normal(62, 9, n).round(), 35, 88).astype(int)
    names = [f"GENE{j + 1:03d}" for j in range(N_GENES)]
    lines = [",".join(["sample", "diagnosis", "age", "plate", *names])]
    for i in range(n):
        cells = [f"{prefix}{i + 1:02d}", "tumor" if tumor[i] else "normal", str(ages[i])]
        cells += [f"plate{plates[i] + 1}", *(f"{value:.2f}" for value in values[i])]
        lines.append(",".join(cells))
    return lines


if __name__ == "__main__":
    rng = np.random.default_rng(2026)
    here = Path(__file__).parent
    (here / "tumors.csv").write_text("\n".join(simulate(30, 34, "P", rng)) + "\n")
    (here / "cohort.csv").write_text("\n".join(simulate(16, 24, "Q", rng)) + "\n")
