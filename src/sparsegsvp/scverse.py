"""Feature selection on AnnData, in the manner of the scverse packages."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from .estimators import GSVPSVMCV

__all__ = ["select_features"]


def select_features(
    adata: Any,
    groupby: str,
    *,
    layer: str | None = None,
    n_features: int | None = None,
    estimator: Any = None,
    sample_weight: str | None = None,
    key_added: str = "gsvp",
    copy: bool = False,
) -> Any:
    """Select a panel of variables that tells the groups of observations apart.

    One plane per group, close to its observations and far from the others; the panel is
    the union of the variables with weight in any of them. Sparse data stays sparse, and a
    backed or Dask ``X`` is read in blocks and never loaded.

    Parameters
    ----------
    adata : AnnData
        Observations in rows. Use log-normalised values rather than counts.
    groupby : str
        Column of ``obs`` with two groups or more. Observations without a group are left out.
    layer : str or None, default=None
        A layer instead of ``X``.
    n_features : int or None, default=None
        At most this many variables.
    estimator : GSVPSVM, GSVPSVMCV or None, default=None
        What selects; not changed, but cloned. None is ``GSVPSVMCV()``, which chooses the
        penalty by cross-validation.
    sample_weight : str or None, default=None
        Column of ``obs`` with weights of the observations.
    key_added : str, default="gsvp"
        Name under which results are stored.
    copy : bool, default=False
        Return a copy with the results instead of changing `adata`.

    Returns
    -------
    AnnData or None
        With `copy`, the copy. The results are

        ``var["gsvp_selected"]``
            Whether the variable is in the panel.
        ``var["gsvp_weight_<group>"]``
            Its weight in the plane of each group, in the units of the data.
        ``uns["gsvp"]``
            The names of the panel and of the groups, the planes' intercepts, the penalties
            and the other parameters; all of it can be written to ``.h5ad``.

    Raises
    ------
    ImportError
        If anndata, or for lazy data Dask, is not installed; it names the extra.

    References
    ----------
    See `sparsegsvp.GSVPSVM` for the problem that is solved.

    Examples
    --------
    >>> import numpy as np
    >>> import pytest
    >>> anndata = pytest.importorskip("anndata")
    >>> from sparsegsvp import GSVPSVM
    >>> from sparsegsvp.scverse import select_features
    >>> rng = np.random.default_rng(0)
    >>> cells = np.repeat(["B", "NK", "T"], 30)
    >>> X = rng.poisson(1.0, size=(90, 50)).astype(np.float32)
    >>> X[:, 0] += 5 * (cells == "B")
    >>> X[:, 1] += 5 * (cells == "T")
    >>> adata = anndata.AnnData(np.log1p(X), obs={"type": cells})
    >>> select_features(adata, groupby="type", estimator=GSVPSVM(n_features=2))
    >>> adata.var_names[adata.var["gsvp_selected"]].tolist()
    ['0', '1']
    >>> sorted(column for column in adata.var if column.startswith("gsvp_weight"))
    ['gsvp_weight_B', 'gsvp_weight_NK', 'gsvp_weight_T']
    """
    try:
        import anndata
    except ImportError as error:
        raise ImportError(
            'select_features needs anndata: pip install "sparsegsvp[omics]"'
        ) from error
    if not isinstance(adata, anndata.AnnData):
        raise ValueError(f"adata must be an AnnData, got {type(adata).__name__}")
    labels = _column(adata, groupby, "groupby")
    weight = None if sample_weight is None else _column(adata, sample_weight, "sample_weight")
    X = _values(adata, layer)
    keep = ~labels.isna().to_numpy()
    if not keep.all():
        X = X[np.flatnonzero(keep)]
    model = clone(GSVPSVMCV() if estimator is None else estimator)
    if n_features is not None:
        model.set_params(n_features=n_features)
    options = {}
    if weight is not None:
        if not has_fit_parameter(model, "sample_weight"):
            raise ValueError(f"{type(model).__name__} takes no sample_weight: leave it out")
        options["sample_weight"] = weight.to_numpy(dtype=np.float64)[keep]
    model.fit(X, labels[keep].astype(str).to_numpy(), **options)
    target = adata.copy() if copy else adata
    _store(target, model, key_added, groupby, layer)
    return target if copy else None


def _column(adata: Any, name: str, argument: str) -> Any:
    if name not in adata.obs:
        raise ValueError(
            f"{argument}={name!r} is not a column of obs: there are {list(adata.obs)[:10]}"
        )
    return adata.obs[name]


def _values(adata: Any, layer: str | None) -> Any:
    """X or a layer: in memory as it is, on disk as a Dask array of blocks."""
    if layer is not None and layer not in adata.layers:
        there = [name for name in adata.layers if name is not None]
        raise ValueError(f"layer={layer!r} does not exist: there are {there}")
    if layer is not None:
        return adata.layers[layer]
    if adata.X is None:
        raise ValueError("adata.X is empty: name a layer")
    if not adata.isbacked:
        return adata.X
    try:
        import dask.array  # noqa: F401
    except ImportError as error:
        raise ImportError(
            'a backed AnnData is read through Dask: pip install "sparsegsvp[dask]"'
        ) from error
    from anndata.experimental import read_elem_lazy

    return read_elem_lazy(adata.file["X"])


def _store(adata: Any, model: Any, key: str, groupby: str, layer: str | None) -> None:
    groups = [str(label) for label in model.classes_]
    adata.var[f"{key}_selected"] = model.support_
    for group, weights in zip(groups, model.coef_):
        adata.var[f"{key}_weight_{group}"] = weights
    parameters: dict[str, Any] = {
        "groupby": groupby,
        "estimator": type(model).__name__,
        "layer": "X" if layer is None else layer,
    }
    for name in ("q", "tau", "pool", "decision"):
        parameters[name] = getattr(model, f"{name}_", getattr(model, name, None))
    adata.uns[key] = {
        "groups": np.array(groups, dtype=object),
        "panel": np.array(adata.var_names[model.support_], dtype=object),
        "intercept": model.intercept_,
        "scale": model.scale_,
        "delta": model.delta_,
        "params": {name: value for name, value in parameters.items() if value is not None},
    }
