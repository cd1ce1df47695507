"""`Table`: samples with names, labels and a record; `read_table` and `make_table` make one."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._notices import Notice
from .._validate import listed, quote, shown_name
from .cells import Codes, append_covariates, as_label, collapse_names, mark_missing
from .checks import check, note_values
from .errors import InputError, guarded, locating, option
from .formats import read_frame, read_labels, stored_matrix
from .frame import Frame, Labels, from_anndata, from_matrix, from_pandas, pick_columns, stand_up
from .roles import IS, LISTS, VERSUS, ColumnRole, Roles, guess_positive
from .text import ReadOptions, existing_file, names_in


@dataclass(frozen=True)
class Table:
    """Samples, features and labels, and a record of where they come from.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features) or CSR matrix
        The numbers; NaN where a value is missing. float32 stays float32.
    feature_names : tuple of str
        Names of its columns; those that are adjusted for come last.
    y, sample_names, groups : ndarray of shape (n_samples,) of str, or None
        Labels, identifiers, and groups (patients) that are never split.
    target, positive : str or None
        The column of the labels, and the class of interest.
    source, digest : str
        The file's name or what data in memory are called, and the SHA-256 of file or values.
    record, notices : tuple of str, tuple of Notice
        What was read and done, in sentences; what looks odd, with what would see to it.
    dropped : dict of str to str
        Columns left out, with the reason.
    n_missing : int
        Number of missing values in X.
    roles : tuple of ColumnRole
        What each column is for, and why; columns that are not listed are features.
    batches : dict of str to ndarray of shape (n_samples,) of str
        Where or when samples were measured, by the column asked for.
    covariates : dict of str to tuple of str
        The features that columns to adjust for became, by the name of the column.

    Examples
    --------
    >>> import pandas as pd
    >>> from sparsegsvp.io import make_table
    >>> frame = pd.DataFrame({"a": [1, 2, 3], "b": [0.5, None, 1.5], "class": ["ill", "no", "ill"]})
    >>> table = make_table(frame, target="class")
    >>> table.X.shape, table.class_counts(), table.n_missing, table.positive_class
    ((3, 2), {'ill': 2, 'no': 1}, 1, 'ill')
    """

    X: Any
    feature_names: tuple[str, ...]
    y: NDArray[np.object_] | None
    sample_names: NDArray[np.object_] | None
    groups: NDArray[np.object_] | None
    target: str | None
    positive: str | None
    source: str
    digest: str
    record: tuple[str, ...]
    notices: tuple[Notice, ...]
    dropped: dict[str, str]
    n_missing: int
    roles: tuple[ColumnRole, ...] = ()
    batches: dict[str, NDArray[np.object_]] = field(default_factory=dict)
    covariates: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def covariate_columns(self) -> list[int]:
        """The numbers of the features that are adjusted for."""
        return [self.feature_names.index(n) for made in self.covariates.values() for n in made]

    def class_counts(self) -> dict[str, int]:
        """Count the samples of each class, classes in the order scikit-learn gives them."""
        return {} if self.y is None else dict(sorted(Counter(map(str, self.y)).items()))

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes, in the order scikit-learn gives them."""
        return tuple(self.class_counts())

    @property
    def labels(self) -> NDArray[np.str_]:
        """The labels as a NumPy array of text; `InputError` if there are none."""
        if self.y is None:
            raise InputError("there are no labels", self.source, f"name them: {option('target')}")
        return np.array([str(label) for label in self.y])

    @property
    def positive_class(self) -> str | None:
        """The class of interest, named or guessed; None if there are more than two classes."""
        if len(self.classes) != 2:
            return None
        return guess_positive(self.classes) if self.positive is None else self.positive

    @property
    def positive_guessed(self) -> bool:
        """Whether the class of interest is a guess from the names of the classes."""
        return self.positive is None and self.positive_class is not None

    def without_notice(self, code: str) -> Table:
        """Return the table without the notices of a kind: those that were seen to."""
        return replace(self, notices=tuple(n for n in self.notices if n.code != code))


def read_table(
    path: str | PathLike[str],
    *,
    target: str | None = None,
    positive: str | None = None,
    id: str | None = None,
    group: str | None = None,
    batch: str | Sequence[str] = (),
    adjust: str | Sequence[str] = (),
    drop: str | Sequence[str] = (),
    keep: str | Sequence[str] = (),
    features: Sequence[str] | None = None,
    labels: str | PathLike[str] | None = None,
    on: str | None = None,
    transpose: bool | None = None,
    na: str | Sequence[str] | None = None,
    collapse: str | None = None,
    layer: str | None = None,
    sheet: str | None = None,
    separator: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    encoding: str | None = None,
) -> Table:
    """Read a table of samples and features, or refuse it in one clear line.

    CSV and TSV (also gzipped), series matrix files of GEO, Excel, Parquet and AnnData, by the
    file's extension.

    Parameters
    ----------
    path : path-like
        The file.
    target, positive : str or None, default=None
        The column of labels (in ``obs`` for AnnData), and the class of interest. Samples without
        a label are left out and counted.
    id, group : str or None, default=None
        Columns of sample identifiers, which names of rows are by themselves, and of groups.
    batch, adjust, drop, keep : str or sequence of str, default=()
        Columns that say where or when samples were measured, which are audited; to adjust for,
        which are features in every panel, text by its levels ("sex=M vs F"); to leave out; and to
        keep although they look clinical or technical. "a,b" is two, unless a column is called so.
    features : sequence of str or None, default=None
        Read exactly these columns, in this order; missing ones are an error that lists them.
    labels, on : path-like and str, or None, default=None
        A second file with labels and more of the samples, and its column of identifiers.
    transpose : bool or None, default=None
        Whether features are in rows, which `target`, `group` and `drop` then name. None finds
        out, by the names given here and those in `labels`.
    na : str, sequence of str or None, default=None
        Codes for missing values besides the usual (NA, n.a., null, ?, ND, <LOD and the like),
        such as "n.m." or -999; a text with commas has several.
    collapse : {"mean", "max"} or None, default=None
        Make one feature of those that share a name: their mean, or the one with the largest mean
        in this file. None refuses them.
    layer, sheet : str or None, default=None
        A layer of an AnnData file instead of its X; a sheet instead of the first not hidden.
    separator, decimal, thousands, encoding : str or None, default=None
        Of text: the marks between cells, before decimals and between thousands, and the encoding.
        They are found out, but that there is no mark between thousands unless one is given.

    Returns
    -------
    Table
        Matrix, names, labels, and a record; or an `InputError`: what is wrong, where, the remedy.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sparsegsvp.io import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "a.csv"
    ...     _ = path.write_text("id;g1;g2;class\\ns1;1,5;2;A\\ns2;0,5;4;B\\n")
    ...     read_table(path, target="class", id="id").X.tolist()
    [[1.5, 2.0], [0.5, 4.0]]
    """
    roles, options = requested(locals())
    file = existing_file(path)
    joined, source = Labels(), shown_name(file)
    if labels is not None:
        joined = read_labels(existing_file(labels), on, target, options)
    elif on is not None:
        raise InputError(f"{option('on')} is for the file of {option('labels')}", where=source)
    behind = [name.partition(IS)[0] for name in roles.features or () if VERSUS in name]
    named = [*roles.named().values(), *behind, on or ""]
    with locating(source), guarded("a file"):
        frame = read_frame(file, options, {*named, *names_in(named, ())})
        frame.labels = joined
        with open(file, "rb") as handle:
            digest = hashlib.file_digest(handle, "sha256").hexdigest()
    return _table_of(frame, roles, options, source, positive, digest=digest)


def make_table(
    data: Any,
    y: Any = None,
    *,
    ids: Any = None,
    groups: Any = None,
    batch: Any = (),
    feature_names: Sequence[str] | None = None,
    source: str = "",
    **options: Any,
) -> Table:
    """Make a checked table of whatever holds the data, as `read_table` does of a file.

    Parameters
    ----------
    data : path-like, data frame, array-like, sparse matrix, AnnData or Table
        What holds the data; frames are of pandas or polars, and a `Table` is returned.
    y, ids, groups : array-like of shape (n_samples,) or None, default=None
        Labels, identifiers and groups that are not in `data`. A matrix needs `y`.
    batch : str, sequence of str, or mapping from name to array-like, default=()
        As for `read_table`, or the values under their names if they are not in `data`.
    feature_names : sequence of str or None, default=None
        Names of the columns of a matrix; f0, f1, ... by default.
    source : str, default=""
        What to call data in memory; "data frame" and the like by default.
    **options
        Those of `read_table`.

    Returns
    -------
    Table
        That which a file of the data gives.

    Examples
    --------
    >>> import pandas as pd
    >>> from sparsegsvp.io import make_table
    >>> frame = pd.DataFrame({"g1": [1.0, 2.0, 4.0], "g2": [0, 1, None], "class": list("abb")})
    >>> table = make_table(frame, target="class")
    >>> table.feature_names, table.class_counts(), table.n_missing
    (('g1', 'g2'), {'a': 1, 'b': 2}, 1)
    """
    if unknown := options.keys() - inspect.signature(read_table).parameters:
        raise TypeError(f"make_table has no parameter {', '.join(sorted(unknown))}")
    options = {n: v for n, v in options.items() if v is not None and v != ()}
    apart = batch if isinstance(batch, Mapping) else {}
    options |= {"batch": batch} if len(batch) and not apart else {}
    beside = {"target": ("y", y), "id": ("ids", ids), "group": ("groups", groups)}
    beside |= {f"batch:{name}": ("batch", values) for name, values in apart.items()}
    beside = {role: pair for role, pair in beside.items() if pair[1] is not None}
    words = {"source": source or None, "feature_names": feature_names, **dict(beside.values())}
    of_memory = {name for name, value in words.items() if value is not None}
    kind, given = _kind_of(data), of_memory | options.keys()
    source = str(data) if kind == "file" else source or kind
    with locating(source):
        unfit = _OF_FILES | {"layer" if kind == "matrix" else "feature_names"}
        unfit |= {"layer"} if kind == "data frame" else set()
        if wrong := sorted({"Table": given, "file": of_memory}.get(kind, unfit & given)):
            what = f"a {kind} has no use for {', '.join(map(option, wrong))}"
            raise InputError(what, remedy="leave that out")
    if kind in ("Table", "file"):
        return read_table(data, **options) if kind == "file" else data
    with locating(source):
        roles, reading = requested(options)
        if kind == "AnnData":
            matrices = {"layers": data.layers} | ({} if data.X is None else {"X": data.X})
            X = stored_matrix(matrices, reading.layer)
            _kind_of(X)  # refuses what is lazy
            X = X[:] if data.isbacked else X
            frame = from_anndata(X, data.obs, list(data.var_names), reading.layer)
        elif kind == "data frame":
            frame = from_pandas(data.to_pandas() if hasattr(data, "to_pandas") else data)
        else:
            for role, name in roles.named().items():
                what = f"a matrix has no column {quote(name)} ({option(role.partition(':')[0])})"
                raise InputError(what, remedy="give a data frame, or an array for it")
            if y is None:
                raise InputError("there are no labels", remedy=f"give them as {option('y')}")
            frame = from_matrix(data, feature_names)
        for role, (name, values) in beside.items():
            cells = values.to_list() if hasattr(values, "to_list") else np.asarray(values).tolist()
            what = f"{option(role)} and {option(name)} are both given" if role in options else ""
            if np.ndim(values) != 1:
                what = f"{option(name)} must be one-dimensional"
            elif len(cells) != len(frame):
                what = f"{option(name)} has {len(cells)} values for {len(frame)} samples"
            if what:
                raise InputError(what, remedy="give one value for each row")
            frame.text[role] = reading.codes.column(role, cells)
    target = str(getattr(y, "name", None) or "y") if y is not None else roles.target
    return _table_of(frame, roles, reading, source, as_label(options.get("positive")), target)


_OF_FILES = {"labels", "on", "transpose", "sheet", "separator", "encoding"}


def _kind_of(data: Any) -> str:
    """Return what messages call what holds data; refuse what is not there yet."""
    if hasattr(data, "__dask_graph__") or type(data).__name__ == "LazyFrame":
        raise InputError("the data are not in memory yet", remedy="compute or collect them")
    if isinstance(data, Table | str | PathLike):
        return "Table" if isinstance(data, Table) else "file"
    # by what they have: whoever has such data has imported the package, others need not
    if hasattr(data, "var_names"):
        return "AnnData"
    return "data frame" if hasattr(data, "columns") else "matrix"


def requested(given: Mapping[str, Any]) -> tuple[Roles, ReadOptions]:
    """Return the roles and how to read, of all parameters; several columns may be one name."""
    given = {name: value for name, value in given.items() if value is not None}
    roles = {f.name: given[f.name] for f in fields(Roles) if f.name in given}
    for name in LISTS:
        names = roles.get(name, ())
        names = (names,) if isinstance(names, str) else names
        if not isinstance(names, list | tuple) or not all(isinstance(n, str) for n in names):
            more = ", or give values under a name, as {'plate': values}" if name == "batch" else ""
            what = f"{option(name)} is a {type(names).__name__}"
            raise InputError(what, remedy=f"name columns{more}")
        roles[name] = tuple(dict.fromkeys(names))
    roles |= {"features": tuple(roles["features"])} if "features" in roles else {}
    reading = {f.name: given[f.name] for f in fields(ReadOptions) if f.name in given}
    return Roles(**roles), ReadOptions(codes=Codes(given.get("na")), **reading)


def _table_of(
    frame: Frame, roles: Roles, options: ReadOptions, source: str, positive: str | None,
    target: str | None = None, digest: str = "",
) -> Table:  # fmt: skip
    """Make a table of any frame: turn it, join labels, give roles, make numbers, check."""
    codes = options.codes.numbers
    with locating(source):
        known = {*frame.names, *frame.beside, *frame.labels.columns, *map(str, frame.row_names())}
        parts: Any = {name: names_in(getattr(roles, name), known) for name in LISTS}
        roles = replace(roles, target=frame.labels.target or roles.target, **parts)
        frame, roles = stand_up(frame, roles, options)
        first = frame.names[0] if frame.names and frame.column == "column" else ""
        pick_columns(frame, roles, options)
        digest = digest or _digest_of(frame)
        mark_missing(frame, codes)
        collapse_names(frame, roles.collapse)
        target = target or roles.target
        positive = check(frame, roles, target, positive, first)
        append_covariates(frame, roles, codes)
        n_missing = note_values(frame)
    X = frame.X if sparse.issparse(frame.X) else np.ascontiguousarray(frame.X)
    given = {
        role: np.array([cell or "" for cell in cells], dtype=object)
        for role, cells in frame.text.items()
    }
    batches = {role[6:]: cells for role, cells in given.items() if role.startswith("batch:")}
    table = Table(
        X, tuple(frame.names), given.get("target"), given.get("id"), given.get("group"), target,
        positive, source, digest, (), tuple(frame.notices), frame.dropped, n_missing,
        tuple(frame.roles), batches, frame.covariates,
    )  # fmt: skip
    record = [f"read {X.shape[0]} samples and {X.shape[1]} features from {source} ({frame.kind})"]
    if counts := table.class_counts():
        listing = ", ".join(f"{quote(label)} {k}" for label, k in counts.items())
        if len(counts) == 2:
            listing += f"; the class of interest is {quote(table.positive_class)}"
            listing += ", taken by its name or place" if table.positive_guessed else ""
        record.append(f"classes in {quote(target)}: {listing}")
    if left := [name for name, why in frame.dropped.items() if why == "asked for"]:
        record.append(f"left out as asked: {listed(left)}")
    return replace(table, record=(*record, *frame.notes))


def _digest_of(frame: Frame) -> str:
    """SHA-256 of the values, the names and the labels."""
    X, labels = frame.X, frame.text.get("target")
    digest = hashlib.sha256(json.dumps([X.shape, str(X.dtype), frame.names, labels]).encode())
    parts = (X.indptr, X.indices) if sparse.issparse(X) else ()
    for part in (*(i.astype(np.int64) for i in parts), X.data if parts else X):
        digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()
