"""The data are what they claim to be, and anything else is refused."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer as sklearn_breast_cancer

from sparsegsvp.datasets import (
    Dataset,
    load_breast_cancer,
    load_ovarian,
    make_cells,
    make_planted,
)

needs_data = pytest.mark.skipif(
    not os.environ.get("SPARSEGSVP_DATA"), reason="SPARSEGSVP_DATA does not name a data folder"
)


def test_breast_cancer_is_scikit_learns_with_the_papers_coding() -> None:
    data = load_breast_cancer()
    reference = sklearn_breast_cancer()
    np.testing.assert_array_equal(data.X, reference.data)
    # benign = 0 and malignant = 1, by name and not by number
    np.testing.assert_array_equal(data.labels, reference.target_names[reference.target])
    assert np.bincount(data.y).tolist() == [357, 212]
    X, y = load_breast_cancer(return_X_y=True)
    np.testing.assert_array_equal(X, data.X)
    np.testing.assert_array_equal(y, data.y)


def test_a_dataset_cannot_be_reassigned() -> None:
    data = load_breast_cancer()
    with pytest.raises(AttributeError):
        data.X = data.X  # type: ignore[misc]


# --- ovarian -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lookalike() -> dict[str, np.ndarray]:
    """A table with the shape, classes and column names of the ovarian data."""
    masses = np.linspace(0.0, 19995.513, 15154)
    return {
        "X": np.zeros((253, 15154), dtype=np.float32),
        "y": np.repeat([0, 1], [91, 162]),
        "feature_names": np.array(["MZ-7.86E-05", *[f"MZ{mass:.3f}" for mass in masses[1:]]]),
        "class_names": np.array(["Normal", "Cancer"]),
    }


def _save(folder: Path, arrays: dict[str, np.ndarray]) -> Path:
    file = folder / "ovarian_253x15154.npz"
    np.savez_compressed(file, **arrays)
    return file


def _save_arff(file: Path, arrays: dict[str, np.ndarray]) -> Path:
    row = ",".join(["0.5"] * arrays["X"].shape[1])
    lines = ["% a comment", "@relation ovarian"]
    lines += [f"@attribute '{name}' numeric" for name in arrays["feature_names"]]
    lines += ["@ATTRIBUTE Class {Normal, Cancer}", "", "@DATA"]
    lines += [f"{row},{arrays['class_names'][label]}" for label in arrays["y"]]
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


@needs_data
def test_ovarian_from_the_environment() -> None:
    data = load_ovarian()
    assert repr(data) == "Dataset(253 samples x 15154 features; Normal 91, Cancer 162)"
    assert data.X.dtype == np.float32
    assert data.feature_names[0] == "MZ-7.86E-05"


def test_ovarian_from_arff(tmp_path: Path, lookalike: dict[str, np.ndarray]) -> None:
    shuffled = {**lookalike, "y": np.random.default_rng(0).permutation(lookalike["y"])}
    _save_arff(tmp_path / "Ovarian.arff", shuffled)
    data = load_ovarian(tmp_path)  # found in its folder
    np.testing.assert_array_equal(data.y, shuffled["y"])
    np.testing.assert_array_equal(data.feature_names, lookalike["feature_names"])
    assert np.all(data.X == 0.5)


def test_ovarian_npz_by_path_and_by_class_name(
    tmp_path: Path, lookalike: dict[str, np.ndarray]
) -> None:
    swapped = {**lookalike, "y": 1 - lookalike["y"], "class_names": np.array(["Cancer", "Normal"])}
    data = load_ovarian(_save(tmp_path, swapped))
    assert data.X.shape == (253, 15154)
    np.testing.assert_array_equal(data.y, lookalike["y"])


@needs_data
def test_the_authors_order_holds_every_row_once_normal_first() -> None:
    plain, theirs = load_ovarian(), load_ovarian(order="authors")
    assert theirs.y.tolist() == [0] * 91 + [1] * 162
    totals = plain.X.sum(axis=1), theirs.X.sum(axis=1)
    assert np.unique(totals[0]).size == 253
    np.testing.assert_array_equal(np.sort(totals[0]), np.sort(totals[1]))
    assert not np.array_equal(*totals)


def test_the_authors_order_of_other_rows_is_refused(tmp_path: Path, lookalike) -> None:
    file = _save(tmp_path, lookalike)
    with pytest.raises(ValueError, match="rows are not in the order of the public table"):
        load_ovarian(file, order="authors")
    with pytest.raises(ValueError, match="order must be"):
        load_ovarian(file, order="theirs")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: a | {"X": a["X"][:, :-1]}, r"shape \(253, 15153\)"),
        (lambda a: a | {"y": np.repeat([0, 1], [92, 161])}, r"'Normal': 92"),
        (lambda a: a | {"class_names": np.array(["healthy", "ill"])}, "healthy"),
        (
            lambda a: a | {"feature_names": np.array([f"g{i}" for i in range(15154)])},
            "from g0 to g15153",
        ),
        (lambda a: a | {"feature_names": np.array([f"MZ{i}" for i in range(15154)])}, "MZ15153"),
        (lambda a: a | {"X": np.full_like(a["X"], np.nan)}, "not finite"),
        (lambda a: {k: v for k, v in a.items() if k != "y"}, "lacks an array"),
        (lambda a: a | {"y": a["y"] * 2}, "must hold 0 and 1"),
    ],
)
def test_another_table_is_refused_with_directions(
    tmp_path: Path, lookalike: dict[str, np.ndarray], change, message: str
) -> None:
    file = _save(tmp_path, change(dict(lookalike)))
    with pytest.raises(ValueError, match=message) as caught:
        load_ovarian(file)
    assert "csse.szu.edu.cn" in str(caught.value)


def test_other_files_are_refused_with_directions(tmp_path: Path, monkeypatch) -> None:
    damaged = tmp_path / "damaged.npz"
    damaged.write_bytes(b"PK\x03\x04 nothing")
    ragged = tmp_path / "ragged.arff"
    ragged.write_text("@relation r\n@attribute a numeric\n@attribute class {x}\n@data\n1,2,x\n")
    words = tmp_path / "words.arff"
    words.write_text("@relation r\n@attribute a numeric\n@attribute class {x}\n@data\n?,x\n")
    empty = tmp_path / "empty.arff"
    empty.write_text("")
    for file in (damaged, ragged, words, empty):
        with pytest.raises(ValueError, match=r"csse\.szu\.edu\.cn"):
            load_ovarian(file)
    for path in (tmp_path / "absent.npz", tmp_path):
        with pytest.raises(FileNotFoundError, match=r"Ovarian\.arff"):
            load_ovarian(path)


def test_the_data_folder_is_the_one_named_and_an_empty_name_is_none(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("SPARSEGSVP_DATA", str(tmp_path))
    with pytest.raises(
        FileNotFoundError, match=f"No ovarian data in the folder {re.escape(str(tmp_path))}"
    ):
        load_ovarian()
    for unset in (
        lambda: monkeypatch.setenv("SPARSEGSVP_DATA", ""),
        lambda: monkeypatch.delenv("SPARSEGSVP_DATA"),
    ):
        unset()
        with pytest.raises(FileNotFoundError, match="SPARSEGSVP_DATA is not set"):
            load_ovarian()


# --- simulated ---------------------------------------------------------------------------


def _shifts(data: Dataset, n_classes: int) -> np.ndarray:
    """Mean of each class minus the mean of the others, per feature."""
    return np.array(
        [
            data.X[data.y == k].mean(0)
            - np.mean([data.X[data.y == j].mean(0) for j in range(n_classes) if j != k], axis=0)
            for k in range(n_classes)
        ]
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_planted_features_and_only_they_differ(n_classes: int) -> None:
    data = make_planted(20_000, 40, n_informative=6, effect=1.5, n_classes=n_classes)
    shifts = np.abs(_shifts(data, n_classes))
    noise = np.setdiff1d(np.arange(40), data.support)
    # standard error of a difference of means here is below 0.02
    assert shifts[:, noise].max() < 0.08
    own = np.arange(6) % n_classes
    np.testing.assert_allclose(shifts[own, data.support], 1.5, atol=0.08)


def test_planted_correlation_decays_like_a_spectrum() -> None:
    data = make_planted(20_000, 30, n_informative=0, correlation=0.9)
    assert data.support is not None and data.support.size == 0
    correlation = np.corrcoef(data.X, rowvar=False)
    lags = np.abs(np.subtract.outer(np.arange(30), np.arange(30)))
    np.testing.assert_allclose(correlation, 0.9**lags, atol=0.05)
    np.testing.assert_allclose(data.X.std(0), 1.0, atol=0.03)


def test_planted_class_sizes_and_seed() -> None:
    assert np.bincount(make_planted(77, 5, weights=(58, 19)).y).tolist() == [58, 19]
    assert make_planted(10, 5, weights=(1, 1, 1), n_classes=3).y.size == 10
    first, again, other = (make_planted(20, 50, random_state=seed) for seed in (1, 1, 2))
    assert first.X.tobytes() == again.X.tobytes()
    assert not np.array_equal(first.X, other.X)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_informative": 2000}, "n_informative"),
        ({"correlation": 1.0}, "correlation"),
        ({"effect": np.inf}, "effect"),
        ({"n_classes": 1}, "n_classes"),
        ({"weights": (1, -1)}, "weights"),
        ({"weights": (1, 2, 3)}, "weights"),
        ({"n_samples": 5, "weights": (100, 1)}, "without samples"),
    ],
)
def test_planted_refuses_nonsense(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_planted(**arguments)


# --- cells -------------------------------------------------------------------------------


def test_cells_have_types_donors_and_the_markers_that_they_name() -> None:
    pytest.importorskip("anndata")
    cells = make_cells(6000, 300, 4, weights=(4, 3, 2, 1), n_donors=3, random_state=1)
    assert cells.obs["cell_type"].value_counts().tolist() == [2400, 1800, 1200, 600]
    assert cells.obs.groupby("donor", observed=True)["batch"].nunique().tolist() == [1, 1, 1]
    assert pd.crosstab(cells.obs["cell_type"], cells.obs["donor"]).to_numpy().min() > 0
    # a marker is higher in its own type, or in all three types of its lineage
    counts, types = cells.layers["counts"].toarray(), cells.obs["cell_type"].cat.codes.to_numpy()
    mean = np.array([counts[types == k].mean(axis=0) for k in range(4)])
    for kind, inside in (("type_1", [1]), ("lineage_0", [0, 1, 2]), ("lineage_1", [3])):
        marked = (cells.var["marker_of"] == kind).to_numpy()
        assert marked.sum() == 8
        outside = np.setdiff1d(np.arange(4), inside)
        ratio = np.log(mean[inside][:, marked].mean() / mean[outside][:, marked].mean())
        assert 1.2 < ratio < 3.5  # the mean fold change is exp(2), of single genes more or less
    # the values are log-normalised counts, stored where these are
    total = counts.sum(axis=1)
    expected = np.log1p(counts * (np.median(total) / total)[:, None])
    np.testing.assert_allclose(cells.X.toarray(), expected, rtol=1e-5)
    assert cells.X.dtype == np.float32 and 0.05 < (counts > 0).mean() < 0.1


def test_counts_are_negative_binomial_with_correlated_programmes() -> None:
    """Variance is mean + mean^2 / 2 and more by depth; genes of a programme move together."""
    pytest.importorskip("anndata")
    options = {"n_types": 2, "n_donors": 1, "n_batches": 1, "n_markers": 0, "density": 0.4}
    plain = make_cells(20_000, 60, n_programmes=0, **options).layers["counts"].toarray()
    mean, variance = plain.mean(axis=0), plain.var(axis=0)
    # a depth of log-normal spread 0.4 adds (exp(0.16) - 1) mean^2, and its share of the rest
    extra = np.exp(0.16) - 1
    np.testing.assert_allclose(variance, mean + mean**2 * (0.5 + 1.5 * extra), rtol=0.15)
    # a programme of about ten genes: these and only these correlate, all of them positively
    programme = make_cells(20_000, 200, n_programmes=1, **options).X.toarray()
    correlation = np.corrcoef(programme, rowvar=False) - np.eye(200)
    together = np.flatnonzero((correlation > 0.1).sum(axis=0) >= 3)
    assert 4 <= len(together) <= 20
    others = np.delete(np.delete(correlation, together, axis=0), together, axis=1)
    assert np.abs(others).max() < 0.1


def test_cells_are_the_same_for_a_seed_and_nonsense_is_refused() -> None:
    (X, obs), (again, _), (other, _) = (
        make_cells(700, 100, 3, as_anndata=False, random_state=seed) for seed in (1, 1, 2)
    )
    assert X.data.tobytes() == again.data.tobytes() and X.nnz != other.nnz
    assert list(obs) == ["cell_type", "donor", "batch"]
    for options in ({"n_genes": 20}, {"density": 1.5}, {"n_donors": 0}, {"n_types": 1}):
        with pytest.raises(ValueError, match=next(iter(options)).replace("types", "classes")):
            make_cells(**options)
