"""`Table`: samples with names, labels and a record; `read_table` and `make_table` make one.

Both make a `Frame` of their input, and `_table_of` makes a table of any frame: it turns it, joins
labels, gives columns their roles and makes numbers of cells.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._notices import Notice
from .._validate import check_choice, first_few
from ..estimators.log2 import log2_floor
from .cells import (
    Codes,
    Column,
    as_label,
    below_detection,
    codes_of,
    describe_codes,
    find_decimal,
    look_at,
    mark_missing,
    may_be_thousands,
    not_a_number,
    to_numbers,
)
from .checks import check, note_values, spelling_key
from .errors import (
    InputError,
    counted,
    did_you_mean,
    listed,
    locating,
    no_such,
    one_line,
    option,
    quote,
    role_option,
    suggestion,
)
from .formats import digest_of, existing_file, read_frame, shown_name, stored_matrix
from .frame import Frame, from_anndata, from_matrix, from_pandas, from_polars, refuse_unnamed
from .geo import refuse_without_numbers
from .roles import (
    IS,
    VERSUS,
    Candidate,
    ColumnRole,
    Draft,
    Roles,
    candidates,
    columns_behind,
    guess_positive,
    look_of,
    made_of,
    names_samples,
    role_lines,
)
from .text import ReadOptions, looks_numeric, names_in

_READ_BACK = "Unnamed: 0"  # what pandas makes of an index when it reads a file and writes it again
_COLLAPSE = {
    "mean": "the mean of each",
    "max": "of each the one with the largest mean",
    "first": "the first of each",
}


@dataclass(frozen=True)
class Table:
    """Samples, features and labels, and a record of where they come from.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features) or CSR matrix
        The numbers; NaN where a value is missing. float32 stays float32.
    feature_names : tuple of str
        One name for each column of X. Columns that are adjusted for come last.
    y : ndarray of shape (n_samples,) of str, or None
        Labels, as text.
    sample_names : ndarray of shape (n_samples,) of str, or None
        Sample identifiers.
    groups : ndarray of shape (n_samples,) of str, or None
        Groups (patients) that must not be split between training and test.
    target, positive : str or None
        The column the labels came from, and the class of interest.
    source, digest : str
        The file's name and the SHA-256 of its bytes; for data in memory a word such as
        "data frame" and the SHA-256 of values, names and labels.
    record : tuple of str
        What was read and done, in sentences.
    notices : tuple of Notice
        What looks odd, with what would see to it.
    dropped : dict of str to str
        Columns left out, with the reason.
    n_missing : int
        Number of missing values in X.
    roles : tuple of ColumnRole
        What each column is for, and why; columns that are not listed are features.
    batches : dict of str to ndarray of shape (n_samples,) of str
        Where or when samples were measured, by the name of each column asked for.
    covariates : dict of str to tuple of str
        The features that columns to adjust for became, by the name of the column.

    See Also
    --------
    read_table : Makes one from a file.
    make_table : Makes one from a data frame, an array or AnnData.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sparsegsvp.io import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "a.csv"
    ...     _ = path.write_text("gene1,gene2,class\\n1,0.5,ill\\n2,NA,well\\n3,1.5,ill\\n")
    ...     table = read_table(path, target="class")
    >>> table.X.shape, table.class_counts(), table.n_missing
    ((3, 2), {'ill': 2, 'well': 1}, 1)
    >>> table.classes, table.positive_class
    (('ill', 'well'), 'ill')
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
        names = {name for made in self.covariates.values() for name in made}
        return [j for j, name in enumerate(self.feature_names) if name in names]

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
            raise InputError(
                "there are no labels", where=self.source, remedy=f"name them: {option('target')}"
            )
        return np.array([str(label) for label in self.y])

    @property
    def positive_class(self) -> str | None:
        """The class of interest: the one named, or the one that `guess_positive` takes.

        None if there are more than two classes.
        """
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

    def role_lines(self) -> list[dict[str, Any]]:
        """Return role, columns, count and reason, for each role and reason that there is."""
        return role_lines(self.roles, int(self.X.shape[1]))

    def describe(self) -> dict[str, Any]:
        """Return all but the numbers, labels and names, as JSON can hold it."""
        counts = self.class_counts()
        return {
            "source": self.source,
            "digest": self.digest,
            "target": self.target,
            "positive": self.positive_class,
            "positive_guessed": self.positive_guessed,
            "n_samples": int(self.X.shape[0]),
            "n_features": int(self.X.shape[1]),
            "n_missing": self.n_missing,
            "classes": list(counts),
            "class_counts": list(counts.values()),
            "record": list(self.record),
            "notices": [notice.to_dict() for notice in self.notices],
            "dropped": dict(self.dropped),
            "roles": self.role_lines(),
        }


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
    log2: bool = False,
    separator: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    encoding: str | None = None,
) -> Table:
    """Read a table of samples and features, or refuse it in one clear line.

    CSV and TSV (also gzipped; separator and encoding are found out), series matrix files of
    GEO, Excel, Parquet and AnnData, by the file's extension. Samples are rows, unless
    `transpose` is given or the names given here show that they are columns.

    Parameters
    ----------
    path : path-like
        The file.
    target : str or None, default=None
        The column of labels (in ``obs`` for AnnData). Rows with an empty cell, NA, NaN or null
        there are left out and counted.
    positive : str or None, default=None
        The class of interest; it must occur.
    id, group : str or None, default=None
        Columns of sample identifiers and of groups. A first column without a name, the
        index of a pandas frame and the ``obs_names`` of AnnData are identifiers by
        themselves.
    batch : str or sequence of str, default=()
        Columns that say where or when samples were measured. They are no features, and are
        audited when a panel is evaluated.
    adjust : str or sequence of str, default=()
        Columns to adjust for, such as age and sex: features that are in every panel, and follow
        all others. Numbers stay as they are; of text, all levels but the first become features of
        0 and 1, such as "sex=M vs F".
    drop : str or sequence of str, default=()
        Columns to leave out. "a,b,c" stands for three, unless a column is called so.
    keep : str or sequence of str, default=()
        Columns that are features although they look clinical or technical: in a wide table of
        like columns an age, a batch or a survival time is left out otherwise. "a,b" is two.
    features : sequence of str or None, default=None
        Read only these columns, in this order; all others are ignored. Missing ones are
        an error that lists them.
    labels : path-like or None, default=None
        A second file with the labels (and groups), matched by identifier.
    on : str or None, default=None
        The column of identifiers in `labels`; in the table too, unless `id` says otherwise.
    transpose : bool or None, default=None
        Whether features are in rows: the first column names them and the header the samples.
        `target`, `group` and `drop` are then names of rows; `id` too, or the name of the
        first column. None finds out: they are if `target` or most of `features` are names of
        rows and not of columns, or if the identifiers of `labels` are names of columns and
        not of samples in rows. They always are in a series matrix of GEO, where `target`,
        `id` and `group` name what the file says of its samples, such as "title" or the key
        of a characteristic.
    na : str, sequence of str or None, default=None
        More codes for missing values, such as "n.m." or -999; a text with commas has several.
        In columns of numbers the usual ones, in capitals or not, are known: NA, N/A, n.a., NaN,
        null, none, missing, ?, ., -, and those for values below detection: ND, n.d., LOD, <LOD.
    collapse : {"mean", "max", "first"} or None, default=None
        Make one feature of those that share a name: the mean of their values, the one with
        the largest mean over the samples of this file, or the first. Without it they are
        refused.
    layer : str or None, default=None
        A layer of an AnnData file instead of its X.
    sheet : str or None, default=None
        A sheet of a workbook instead of the first that is not hidden.
    log2 : bool, default=False
        Take ``log2(max(x, 1))`` of every value but those adjusted for.
    separator, decimal, thousands, encoding : str or None, default=None
        For text, what would otherwise be found out: the mark between cells, the decimal mark
        ("." or ","), that between thousands (".", ",", "'" or " "; none by default), the encoding.

    Returns
    -------
    Table
        Matrix, names, labels, and a record in sentences of what was read and left out.

    Raises
    ------
    InputError
        A ValueError whose one line says what is wrong, where, and what to do.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sparsegsvp.io import InputError, read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "a.csv"
    ...     _ = path.write_text("id;g1;g2;class\\ns1;1,5;2;A\\ns2;0,5;4;B\\n")
    ...     table = read_table(path, target="class", id="id")
    ...     try:
    ...         read_table(path, target="Class")
    ...     except InputError as error:
    ...         print(error)
    a.csv: there is no column 'Class' (target); did you mean 'class'?
    >>> table.X
    array([[1.5, 2. ],
           [0.5, 4. ]])
    """
    file = existing_file(path)
    roles = _roles(target, id, group, batch, adjust, drop, keep, features, collapse)
    options = ReadOptions(
        separator, decimal, thousands, encoding, sheet, layer, transpose, codes_of(na)
    )
    if labels is None and on is not None:
        raise InputError(
            f"{option('on')} names a column of the file given with {option('labels')}",
            where=file.name,
        )
    joined = None if labels is None else _read_labels(existing_file(labels), on, target, options)
    with locating(shown_name(file)):
        frame = read_frame(file, options, _asked(roles, on))
    return _table_of(
        frame, roles, options, joined, shown_name(file), positive, log2, digest=digest_of(file)
    )


def make_table(
    data: Any,
    y: Any = None,
    *,
    target: str | None = None,
    positive: Any = None,
    id: str | None = None,
    ids: Any = None,
    group: str | None = None,
    groups: Any = None,
    batch: Any = (),
    adjust: str | Sequence[str] = (),
    drop: str | Sequence[str] = (),
    keep: str | Sequence[str] = (),
    features: Sequence[str] | None = None,
    feature_names: Sequence[str] | None = None,
    na: str | Sequence[str] | None = None,
    collapse: str | None = None,
    layer: str | None = None,
    log2: bool = False,
    decimal: str | None = None,
    thousands: str | None = None,
    source: str = "",
    **reading: Any,
) -> Table:
    """Make a checked table of whatever holds the data.

    Data in memory are treated as a file with the same content would be: columns without
    another role are features, text in them is refused, samples without a label and features
    without a value are left out, and the record says so.

    Parameters
    ----------
    data : path-like, data frame, array-like, sparse matrix, AnnData or Table
        A file is read by `read_table`; a pandas or polars data frame, a matrix or AnnData is
        taken as it is in memory; a `Table` is returned.
    y : array-like of shape (n_samples,) or None, default=None
        Labels, unless `target` names them. A matrix needs them. An empty or missing one
        leaves the sample out.
    target, positive, id, group : str or None, default=None
        As in `read_table`. The index of a pandas frame, unless it counts 0, 1, ..., and the
        ``obs_names`` of AnnData are identifiers by themselves.
    ids, groups : array-like of shape (n_samples,) or None, default=None
        Identifiers and groups that are not in `data`.
    batch : str, sequence of str, or mapping from name to array-like, default=()
        Columns that say where or when samples were measured, or such values under their names
        if they are not in `data`; see `read_table`.
    adjust, drop, keep, features, na, collapse, layer, log2, decimal, thousands
        Which columns are features, and how they are read, as in `read_table`.
    feature_names : sequence of str or None, default=None
        Names of the columns of a matrix; f0, f1, ... by default.
    source : str, default=""
        What to call data in memory; "data frame" and the like by default.
    **reading
        More of `read_table`'s parameters, for a file.

    Returns
    -------
    Table
        The same as if the data had been written to a file and read, but for `source`,
        `digest` and the wording of `record`.

    Raises
    ------
    InputError
        A ValueError whose one line says what is wrong, and what to do.

    Examples
    --------
    >>> import pandas as pd
    >>> from sparsegsvp.io import make_table
    >>> frame = pd.DataFrame({"g1": [1.0, 2.0, 4.0], "g2": [0, 1, None], "class": list("abb")})
    >>> table = make_table(frame, target="class")
    >>> table.feature_names, table.class_counts(), table.n_missing
    (('g1', 'g2'), {'a': 1, 'b': 2}, 1)
    >>> make_table(frame[["g1", "g2"]].to_numpy(), frame["class"]).feature_names
    ('f0', 'f1')
    """
    apart = dict(batch) if isinstance(batch, Mapping) else {}
    arrays = {"target": ("y", y), "id": ("ids", ids), "group": ("groups", groups)}
    arrays |= {f"batch:{name}": ("batch", values) for name, values in apart.items()}
    arrays = {role: pair for role, pair in arrays.items() if pair[1] is not None}
    named: dict[str, Any] = {
        "target": target, "id": id, "group": group, "batch": () if apart else batch,
        "adjust": adjust, "drop": drop, "keep": keep, "features": features, "collapse": collapse,
    }  # fmt: skip
    others = {"na": na, "layer": layer, "decimal": decimal, "thousands": thousands}
    of_memory = [pair[0] for pair in arrays.values()]
    of_memory += ["feature_names"] * (feature_names is not None) + ["source"] * bool(source)
    if isinstance(data, Table):
        given = [k for k, v in {**named, **others, "positive": positive, **reading}.items() if v]
        _refuse([*of_memory, *given], "a Table is taken as it is")
        return data
    if isinstance(data, str | PathLike):
        with locating(str(data)):
            _refuse(of_memory, "a file holds its own labels and names")
        return read_table(data, positive=positive, log2=log2, **named, **others, **reading)
    frame_of, kind = _reader_of(data)
    with locating(source or kind):
        _refuse(reading, "the data are in memory")
        for role, (name, _) in arrays.items():
            if named.get(role) is not None and role in ("target", "id", "group"):
                both = f"{option(role)} and {option(name)} are both given"
                raise InputError(both, remedy="leave one of them out")
        if layer is not None and kind != "AnnData":
            raise InputError(f"{option('layer')} is for AnnData")
        if feature_names is not None and frame_of is not from_matrix:
            _refuse(["feature_names"], "the columns have names")
        roles = _roles(**named)
        options = ReadOptions(decimal=decimal, thousands=thousands, layer=layer, na=codes_of(na))
        if frame_of is from_matrix:
            for role, name in roles.named().items():
                raise InputError(
                    f"a matrix has no column {quote(name)} ({role_option(role)})",
                    remedy="give a data frame, or an array for it",
                )
            if y is None:
                raise InputError("there are no labels", remedy=f"give them as {option('y')}")
            frame = from_matrix(data, feature_names)
        else:
            frame = _annotated(data, layer) if kind == "AnnData" else frame_of(data)
        codes = Codes(options.na)
        text = {role: _given(*pair, role, codes, len(frame)) for role, pair in arrays.items()}
    if y is not None:
        named["target"] = str(getattr(y, "name", None) or "y")
    return _table_of(
        frame, roles, options, None, source or kind, None if positive is None else as_label(positive),
        log2, text=text, target=named["target"],
    )  # fmt: skip


def _refuse(names: Collection[str], why: str) -> None:
    """Refuse parameters that data of this kind cannot have."""
    if names:
        raise InputError(why, remedy=f"leave {', '.join(map(option, names))} out")


def _reader_of(data: Any) -> tuple[Any, str]:
    """Return what makes a frame of data in memory, and what messages call them."""
    if hasattr(data, "__dask_graph__") or type(data).__name__ == "LazyFrame":
        raise InputError("the data are not in memory yet", remedy="compute or collect them")
    # by name: whoever has such data has imported the package, others need not have it
    packages = {cls.__module__.partition(".")[0] for cls in type(data).__mro__}
    if "anndata" in packages and hasattr(data, "obs"):
        return None, "AnnData"
    for package, reader in (("pandas", from_pandas), ("polars", from_polars)):
        if package in packages and hasattr(data, "columns"):
            return reader, "data frame"
    return from_matrix, "sparse matrix" if sparse.issparse(data) else "array"


def _annotated(adata: Any, layer: str | None) -> Frame:
    matrices = {"layers": adata.layers} | ({} if adata.X is None else {"X": adata.X})
    X = stored_matrix(matrices, layer)
    _reader_of(X)  # refuses what is lazy
    X = X[:] if adata.isbacked else X
    kind = "in memory" if layer is None else f"layer {layer}"
    return from_anndata(X, adata.obs, list(adata.var_names), kind)


def _given(name: str, values: Any, role: str, codes: Codes, n: int) -> list[str | None]:
    """Return labels, identifiers, groups or batches that the parameter `name` gave, as text."""
    cells = values.to_list() if hasattr(values, "to_list") else np.asarray(values).tolist()
    if not isinstance(cells, list) or any(isinstance(cell, list) for cell in cells):
        raise InputError(f"{option(name)} must be one-dimensional")
    if len(cells) != n:
        raise InputError(
            f"{option(name)} has {len(cells)} values for {n} samples",
            remedy="give one for each row",
        )
    return _as_text(role, cells, codes)


def _roles(
    target: str | None,
    id: str | None,
    group: str | None,
    batch: Any,
    adjust: Any,
    drop: Any,
    keep: Any,
    features: Sequence[str] | None,
    collapse: str | None,
) -> Roles:
    """Return the roles that a caller gave; several columns are a name, or several."""
    try:
        if collapse is not None:
            check_choice(option("collapse"), collapse, tuple(_COLLAPSE))
    except ValueError as error:
        raise InputError(str(error)) from None
    several = []
    for name, given in (("batch", batch), ("adjust", adjust), ("drop", drop), ("keep", keep)):
        names = (given,) if isinstance(given, str) else given
        if not isinstance(names, list | tuple) or not all(isinstance(n, str) for n in names):
            raise InputError(
                f"{option(name)} is a {type(given).__name__}",
                remedy="name columns"
                + (", or give values under a name, as {'plate': values}" * (name == "batch")),
            )
        several.append(tuple(names))
    wanted = None if features is None else tuple(features)
    return Roles(target, id, group, *several, wanted, collapse)


def _asked(roles: Roles, on: str | None) -> set[str]:
    """Return the names of all columns whose cells have to stay as they are written."""
    behind = {name.partition(IS)[0] for name in roles.features or () if VERSUS in name}
    return {*roles.named().values(), *behind} | ({on} if on else set())


# --- from a frame to a table ---------------------------------------------------------------


def _table_of(
    frame: Frame,
    roles: Roles,
    options: ReadOptions,
    joined: Labels | None,
    source: str,
    positive: str | None,
    log2: bool,
    *,
    digest: str = "",
    text: dict[str, list[str | None]] | None = None,
    target: str | None = None,
) -> Table:
    """Make a table of any frame: turn it, join labels, give roles, make numbers, check."""
    with locating(source):
        frame, roles, turned = _stand_up(frame, roles, options, joined)
        draft, roles = _draft(frame, roles, options, joined)
        draft.notes[:0] = turned
        draft.text |= text or {}
        if roles.group in roles.batch:
            draft.text[f"batch:{roles.group}"] = draft.text["group"]
    target = target or roles.target
    if joined is not None:
        target = joined.target
        with locating(joined.source):
            _join(draft, joined, roles, options)
    with locating(source):
        digest = digest or _digest_of(draft)
        codes = Codes(options.na)
        draft.X, met = mark_missing(draft.X, codes.numbers, in_place=bool(frame.lines))
        if met:
            draft.notes.append(describe_codes(met))
        _collapse(draft, roles.collapse)
        positive = check(draft, roles, target, positive)
        _append_covariates(draft, roles, codes)
        note_values(draft)
        opening = f"read {draft.X.shape[0]} samples and {draft.X.shape[1]} features from {source}"
        table = _finished(draft, f"{opening} ({draft.kind})", source, digest, target, positive)
    if log2:
        record = (*table.record, "values are log2(max(x, 1))")
        X = log2_floor(table.X, skip=table.covariate_columns)
        table = replace(table, X=X, record=record).without_notice("raw")
    return table


def _finished(
    draft: Draft, opening: str, source: str, digest: str, target: str | None, positive: str | None
) -> Table:
    record = [opening]
    labels = draft.text.get("target")
    if labels is not None:
        counts = dict(sorted(Counter(map(str, labels)).items()))
        listing = ", ".join(f"{quote(label)} {n}" for label, n in counts.items())
        if len(counts) == 2:
            of_interest = positive or guess_positive(list(counts))
            listing += f"; the class of interest is {quote(of_interest)}"
            listing += "" if positive else ", taken by its name or place"
        record.append(f"classes in {quote(target)}: {listing}")
    asked = [name for name, why in draft.dropped.items() if why == "asked for"]
    if asked:
        record.append(f"left out as asked: {listed(asked)}")
    X = draft.X if sparse.issparse(draft.X) else np.ascontiguousarray(draft.X)
    return Table(
        X=X,
        feature_names=tuple(draft.names),
        y=_texts(labels),
        sample_names=_texts(draft.text.get("id")),
        groups=_texts(draft.text.get("group")),
        target=target,
        positive=positive,
        source=source,
        digest=digest,
        record=(*record, *draft.notes),
        notices=tuple(draft.notices),
        dropped=dict(draft.dropped),
        n_missing=draft.n_missing,
        roles=tuple(draft.roles),
        batches={name: np.array(cells, dtype=object) for name, cells in draft.batches().items()},
        covariates=dict(draft.covariates),
    )


def _texts(values: list[str | None] | None) -> NDArray[np.object_] | None:
    if values is None:
        return None
    array = np.empty(len(values), dtype=object)
    array[:] = ["" if value is None else value for value in values]
    return array


def _as_text(role: str, cells: Sequence[Any], codes: Codes) -> list[str | None]:
    """Return the cells of a column with a role; blanks around labels stay until they are counted."""
    if role == "id":
        return [as_label(cell) for cell in cells]
    return [codes.label(cell, strip=role != "target") for cell in cells]


def _digest_of(draft: Draft) -> str:
    """SHA-256 of the values, the names and the labels."""
    X = draft.X
    digest = hashlib.sha256(f"{X.shape} {X.dtype}".encode())
    parts = [X]
    if sparse.issparse(X):
        parts = [X.indptr.astype(np.int64), X.indices.astype(np.int64), X.data]
    for part in parts:
        digest.update(np.ascontiguousarray(part).data)
    digest.update(json.dumps([draft.names, draft.text.get("target")]).encode())
    return digest.hexdigest()


# --- which way a table lies ----------------------------------------------------------------


def _stand_up(
    frame: Frame, roles: Roles, options: ReadOptions, joined: Labels | None
) -> tuple[Frame, Roles, list[str]]:
    """Return the frame with samples in rows, the roles, and what to put on record.

    Samples are in rows unless the names a caller gave are found in the first column and not in
    the header (a target, features of a model), or the other way round (identifiers).
    """
    notes: list[str] = []
    by_nature = frame.meta is not None and frame.turns
    if by_nature and len(frame) == 0:
        raise refuse_without_numbers()
    turn = by_nature or options.transpose
    if turn is None and frame.turns and len(frame.names) > 1:
        if why := _why_turned(frame, roles, joined):
            turn = True
            notes.append(f"features are in rows, samples in columns: {why}")
    if not turn:
        return frame, roles, notes
    if frame.ids is not None and frame.names:  # an index names the features
        frame = _index_first(frame)
    rows = {as_label(cell) for cell in frame.column(0)}
    roles = replace(roles, drop=names_in(roles.drop, {*frame.names, *map(str, rows)}))
    if roles.id is not None and roles.id not in rows and frame.meta is None:
        if roles.id != frame.names[0] and options.transpose is None:
            notes.append(f"the header names the samples; there is no row {quote(roles.id)}")
        if roles.id == frame.names[0] or options.transpose is None:
            roles = replace(roles, id=None)
    if by_nature and roles.id == frame.names[0]:
        roles = replace(roles, id=None)
    elsewhere = () if joined is None else joined.columns
    for role, name in roles.named().items() if frame.meta is None else ():
        if name in frame.names[1:] and name not in rows and name not in elsewhere:
            raise InputError(
                f"{quote(name)} names a column, not a row ({role_option(role)})",
                remedy=f"the table has samples in rows: leave {option('transpose', True)} out",
            )
    _refuse_duplicates(frame.names, "column", roles.drop)
    skip = {name for name in roles.drop if name in frame.names[1:]}
    dropped = dict.fromkeys(skip, "asked for")
    if joined is not None:
        named = [name for name in frame.names[1:] if name]
        known = {*joined.rows}
        if frame.titles:
            known |= {n for n, t in zip(frame.names[1:], frame.titles) if t in joined.rows}
        strange = [name for name in named if name not in known and name not in skip]
        if strange and len(strange) + len(skip) < len(named):
            notes.append(f"left out, being columns of no labelled sample: {listed(strange)}")
            dropped |= dict.fromkeys(strange, "no label")
            skip |= set(strange)
    kept = [j for j, name in enumerate(frame.names[1:]) if name and name not in skip]
    meta = frame.meta and {n: [cells[j] for j in kept] for n, cells in frame.meta.items()}
    titles = frame.titles and [frame.titles[j] for j in kept]
    made = replace(frame.turned(options, skip), meta=meta, titles=titles)
    made.dropped = dropped
    return made, replace(roles, drop=tuple(n for n in roles.drop if n not in skip)), notes


def _index_first(frame: Frame) -> Frame:
    """Return a frame whose index is its first column."""
    texts = {p + 1: cells for p, cells in frame.texts.items()} | {0: list(frame.ids or ())}
    names = [frame.id_name, *frame.names]
    return replace(frame, names=names, texts=texts, at=frame.at + 1, ids=None)


def _why_turned(frame: Frame, roles: Roles, joined: Labels | None) -> str:
    """Return why the features must be in rows; empty where they need not be."""
    header = frame.names
    first = frame.ids if frame.ids is not None else frame.column(0)
    down_names = [as_label(cell) for cell in first]
    if roles.features is not None:
        across = len(set(header).intersection(roles.features))
        if across == len(set(roles.features)):
            return ""
        down = len(set(down_names).intersection(roles.features))
        return "the rows have the names of the features" if down > across else ""
    if joined is not None:
        keys = joined.rows
        across = len(set(header[0 if frame.ids is not None else 1 :]).intersection(keys))
        if not across:
            return ""
        name = next((n for n in (roles.id, joined.on) if n in header), None)
        cells = down_names if name is None else frame.column(header.index(name))
        down = len({as_label(cell) for cell in cells}.intersection(keys))
        if down and across >= down:
            raise InputError(
                f"the identifiers of the labels name columns ({listed(list(keys)[:2])}) as well as "
                "rows",
                remedy=f"say {option('transpose', True)} if the samples are in columns, "
                f"{option('transpose', False)} if they are in rows",
            )
        return "" if down else "the columns have the names of labelled samples"
    if roles.target is None or roles.target in header or roles.target not in down_names:
        return ""
    i = down_names.index(roles.target)
    row = [frame.column(p)[i] for p in range(1, len(header))]
    numbers = [float(t) for t in map(as_label, row) if t and looks_numeric(t)]
    if any(np.isfinite(v) and not v.is_integer() for v in numbers):
        return ""  # measurements, those of a sample or of a feature, are no labels
    return f"{quote(roles.target)} names a row"


# --- roles, and numbers of cells -----------------------------------------------------------


def _draft(
    frame: Frame, roles: Roles, options: ReadOptions, joined: Labels | None
) -> tuple[Draft, Roles]:
    """Give the columns that a caller named their roles, and make numbers of the others."""
    codes, header = Codes(options.na), frame.names
    line = "row" if frame.place == "column" else "column"
    there: Collection[str] = header if frame.meta is None else frame.meta
    elsewhere: Collection[str] = () if joined is None else joined.columns
    known = {*header, *there, *elsewhere}
    roles = replace(roles, drop=names_in(roles.drop, known))
    if roles.features is not None:
        behind = columns_behind(roles.features, {*there, *elsewhere})
        roles = replace(roles, adjust=tuple(dict.fromkeys((*roles.adjust, *behind))))
    if joined is not None:
        if frame.meta is None and joined.target in header and joined.target not in roles.drop:
            raise InputError(
                f"column {quote(joined.target)} is in the table and in {one_line(joined.source)}",
                remedy=f"leave {option('labels')} out, or drop the table's with "
                f"{option('drop', [joined.target])}",
            )
        if roles.id is None and joined.on in header and frame.ids is None:
            roles = replace(roles, id=joined.on)
    roles.check()
    _refuse_shared(frame, roles, line)
    named = {r: n for r, n in roles.named().items() if r == "id" or n not in elsewhere}
    if joined is not None:
        named.pop("target", None)
    position = {name: i for i, name in reversed(list(enumerate(header)))}
    draft = Draft(None, [], frame.kind, place=frame.place, lines=frame.lines)
    draft.titles, draft.dropped = frame.titles, dict(frame.dropped)
    draft.notes, draft.notices = [*frame.notes], [*frame.notices]
    taken: set[int] = set()
    columns: dict[str, Column] = {}
    for role, name in named.items():
        if frame.meta is not None:
            cells = frame.meta[_in_meta(frame, name, role)]
        elif name in position:
            taken.add(position[name])
            cells = frame.column(position[name])
        elif frame.ids is not None and name == frame.id_name:
            cells = frame.ids
        else:
            raise _no_such_line(frame, name, role, line)
        if role.startswith("adjust:"):
            columns[role] = look_at(cells, codes)
        else:
            draft.text[role] = _as_text(role, cells, codes)
    for name in roles.drop:
        if name in position:
            taken.update(i for i, n in enumerate(header) if n == name)
            draft.dropped[name] = "asked for"
        elif name not in (frame.meta or ()):
            raise _no_such_line(frame, name, "drop", line)
    _name_samples(frame, draft, roles, taken)
    wanted = roles.features
    if wanted is not None:
        wanted = tuple(n for n in wanted if not any(made_of(n, c) for c in roles.adjust))
        places = _positions_of(wanted, header, line)
    else:
        for p in range(len(header)):
            if p not in taken:
                refuse_unnamed(frame, p)
        places = [p for p, name in enumerate(header) if name and p not in taken]
    fixed = wanted is not None or frame.meta is not None  # all else in it are features
    _fill(frame.upright(options), draft, places, columns, options, codes, fixed=fixed)
    return draft, roles


def _in_meta(frame: Frame, name: str, role: str) -> str:
    """Return the key of what is said of the samples, with or without GEO's ``!Sample_``."""
    meta = frame.meta or {}
    for known in (name, re.sub(r"^!?Sample_", "", name)):
        if known in meta:
            return known
    if frame.place != "column":
        raise no_such("column", name, role, list(meta), " in obs")
    parts = []
    for key, column in meta.items():
        values = list(dict.fromkeys(value for value in column if value is not None))
        if 1 < len(values) < len(column):
            parts.append(f"{quote(key)} ({listed(values, shown=3, limit=24)})")
    usable = f"usable are {first_few(parts, most=8, between='; ')}"
    if not parts:
        usable = "nothing in it tells groups of samples apart"
    close = did_you_mean(name, list(meta))
    raise InputError(
        f"there is no {quote(name)} among what the file says of its samples ({role_option(role)})",
        remedy=f"{close} {usable}".lstrip(),
    )


def _no_such_line(frame: Frame, name: str, role: str, line: str) -> InputError:
    """Return the error for a column or row that there is not, with the remedy for tables."""
    header = [n for n in frame.names if n]
    first = [as_label(c) for c in frame.column(0)] if frame.names and line == "column" else []
    if role == "target" and name in first:
        return InputError(
            f"{quote(name)} names a row, not a column",
            remedy=f"the table has features in rows: use {option('transpose', True)}",
        )
    remedy = suggestion(name, header)
    if header and all(map(looks_numeric, header)):
        remedy = "the first line holds only numbers: add a line with the column names"
    elif line == "row":
        remedy += f"; labels may also come from a second file ({option('labels')})"
    elif role == "target" and len(first) > 1 and not did_you_mean(name, header):
        if all(cell is not None and not looks_numeric(cell) for cell in first):
            remedy += f"; if the features are in rows, use {option('transpose', True)} and give "
            remedy += f"the labels in a second file ({option('labels')})"
    return InputError(f"there is no {line} {quote(name)} ({role_option(role)})", remedy=remedy)


def _name_samples(frame: Frame, draft: Draft, roles: Roles, taken: set[int]) -> None:
    """Take an index, or a first column without a name, for identifiers."""
    header = frame.names
    named = "id" in draft.text
    if frame.ids is not None:
        used = frame.id_name in roles.named().values()
        if not named and not used and frame.id_name not in header:
            draft.text["id"] = [as_label(cell) for cell in frame.ids]
            if frame.meta is None and frame.place == "row":
                draft.notes.append("the index was taken for sample identifiers")
        return
    if header and header[0] in ("", _READ_BACK) and 0 not in taken and frame.meta is None:
        taken.add(0)
        if named:
            draft.notes.append("the first column has no name and was left out, as names of rows")
        else:
            draft.text["id"] = [as_label(cell) for cell in frame.column(0)]
            draft.notes.append("the first column has no name and was taken for sample identifiers")
    elif frame.place != "column" and header:
        draft.first_column = header[0]


def _refuse_shared(frame: Frame, roles: Roles, line: str) -> None:
    """Refuse names that occur twice, saying where, unless features are made one."""
    what = "feature" if frame.meta is not None and frame.place == "row" else line
    lines = frame.name_lines if line == "row" else None
    if roles.collapse is None:
        ways = f"or make them one with {option('collapse', 'mean')}, 'max' or 'first'"
        _refuse_duplicates(frame.names, what, roles.drop, lines, ways)
    else:
        others = set(frame.names).difference(roles.named().values())
        _refuse_duplicates(frame.names, what, others, lines)


def _refuse_duplicates(
    names: Sequence[str],
    what: str,
    ignore: Collection[str] = (),
    lines: Sequence[int] | None = None,
    remedy: str = "since a panel is a list of names",
) -> None:
    if len(set(names)) == len(names):
        return
    counts = Counter(names)
    twice = [n for n in counts if counts[n] > 1 and n and n not in ignore]
    if twice:
        places = lines or range(1, len(names) + 1)
        at = [str(place) for place, name in zip(places, names) if name == twice[0]]
        others = f", and {len(twice) - 1} other names repeat" if len(twice) > 1 else ""
        raise InputError(
            f"{what} name {quote(twice[0])} appears {len(at)} times "
            f"({'lines' if lines else what + 's'} {', '.join(at[:4])}){others}",
            remedy=f"rename or remove the repeats, {remedy}",
        )


def _positions_of(wanted: Sequence[str], names: Sequence[str], line: str) -> list[int]:
    """Return all places of the wanted names among the names, or list those that are missing."""
    places: dict[str, list[int]] = {name: [] for name in wanted}
    for i, name in enumerate(names):
        if name in places:
            places[name].append(i)
    absent = [name for name, at in places.items() if not at]
    if absent:
        raise InputError(
            f"{len(absent)} of the {len(wanted)} {line}s needed are missing: {listed(absent)}",
            remedy="add them; names must match exactly, their order does not matter",
        )
    return [i for name in wanted for i in places[name]]


def _fill(
    frame: Frame,
    draft: Draft,
    places: list[int],
    columns: dict[str, Column],
    options: ReadOptions,
    codes: Codes,
    *,
    fixed: bool,
) -> None:
    """Make numbers of the columns at some places, and of those to adjust for (`columns`).

    Columns of text stay beside. All cells are read by one parser, with one decimal mark.
    """
    texts: dict[int, Column] = {}
    for p in places:
        if p in frame.texts:
            column, name = look_at(frame.texts[p], codes), frame.names[p]
            if fixed or not _is_text(column, name):
                texts[p] = column
            else:
                draft.beside[name] = [codes.label(cell) for cell in column.cells]
    adjusted = {role: column for role, column in columns.items() if not column.holds_text}
    numeric = {frame.names[p]: column for p, column in texts.items()}
    numeric |= {role.partition(":")[2]: column for role, column in adjusted.items()}
    decimal = find_decimal(numeric, options, frame, frame.fraction())
    if decimal == "," and (frame.decimal == "," or any(c.marked[","] for c in numeric.values())):
        draft.notes.append("numbers are written with decimal commas")
    in_doubt = frame.in_doubt or frame.fraction() is None
    if in_doubt and options.decimal is None and options.thousands is None:
        draft.notices += may_be_thousands(numeric, decimal)
    met, parsed = frame.codes.copy(), dict[int, NDArray[np.float64]]()
    for p, column in texts.items():
        parsed[p], more, bad = to_numbers(column, decimal, options.thousands, codes)
        met += more
        if bad:
            raise not_a_number(column, bad, frame.names[p], frame)
        if names_samples(frame.names[p]):
            draft.written[frame.names[p]] = [as_label(cell) for cell in column.cells]
            _note_rounded(draft, frame.names[p], column.cells)
    for role, column in columns.items():
        name = role.partition(":")[2]
        if role in adjusted:
            values, more, bad = to_numbers(column, decimal, options.thousands, codes)
            if bad:
                raise not_a_number(column, bad, name, frame)
            draft.adjust[name] = values
            met += more
        else:
            draft.adjust[name] = [codes.label(cell) for cell in column.cells]
    if met:
        draft.notes.append(describe_codes(met))
        draft.notices += below_detection(met)
    left = [p for p in places if p in parsed or p not in frame.texts]
    draft.names = [frame.names[p] for p in left]
    at = {int(p): j for j, p in enumerate(frame.at)}
    if not parsed:
        picked = [at[p] for p in left]
        whole = picked == list(range(frame.numbers.shape[1]))
        draft.X = frame.numbers if whole else frame.numbers[:, picked]
        return
    X = np.empty((len(frame), len(left)), np.float64)
    stored = [j for j, p in enumerate(left) if p not in parsed]
    if stored:
        X[:, stored] = frame.numbers[:, [at[left[j]] for j in stored]]
    for j, p in enumerate(left):
        if p in parsed:
            X[:, j] = parsed[p]
    draft.X = X


def _is_text(column: Column, name: str) -> bool:
    """Whether a column holds text: most cells, or some of one that is clinical or of names."""
    if not column.bad or 2 * len(column.bad) >= column.n_filled:
        return bool(column.bad)
    return look_of(name) is not None or names_samples(name)


def _note_rounded(draft: Draft, name: str, cells: Sequence[Any]) -> None:
    """Warn of identifiers that were stored as numbers of too many digits."""
    if any(isinstance(cell, float) and abs(cell) >= 2**53 for cell in cells):
        draft.notices.append(
            Notice(
                "identifiers",
                "serious",
                f"The identifiers in {quote(name)} are stored as numbers of more than 15 digits, "
                "of which the last were lost: store them as text.",
            )
        )


# --- features that share a name, and what is adjusted for ----------------------------------


def _collapse(draft: Draft, how: str | None) -> None:
    """Make one feature of those that share a name, in the place of the first.

    "mean" is the mean of the values that are there, "max" the feature with the largest mean
    over the samples (the habit for probes of one gene), "first" the first. No label is looked
    at. Names that occur twice were refused already where no way was given.
    """
    places: dict[str, list[int]] = {}
    for j, name in enumerate(draft.names):
        places.setdefault(name, []).append(j)
    if how is None or len(places) == len(draft.names):
        return
    shared = {name: at for name, at in places.items() if len(at) > 1}
    kept = [at[0] for at in places.values()]
    merged: list[Any] = []
    for k, at in enumerate(places.values()):
        if len(at) == 1 or how == "first":
            continue
        columns = draft.X[:, at]
        columns = columns.toarray() if sparse.issparse(columns) else columns
        if how == "max":
            means = _mean(columns, axis=0)
            kept[k] = at[0] if np.isnan(means).all() else at[int(np.nanargmax(means))]
        else:
            merged.append((k, _mean(columns, axis=1)))
    X = draft.X[:, kept]
    if merged and sparse.issparse(X):
        X = X.tolil()
    for k, column in merged:
        X[:, [k]] = column[:, None]
    draft.X = X.tocsr() if sparse.issparse(X) else X
    draft.names = list(places)
    n = sum(map(len, shared.values()))
    names = counted(len(shared), "name")
    draft.notes.append(
        f"{names} shared by {n} features, {_COLLAPSE[how]} was kept: {listed(shared)}"
    )


def _mean(columns: Any, axis: int) -> Any:
    """Average the values that are there; NaN where there is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.nanmean(columns, axis=axis)


def _append_covariates(draft: Draft, roles: Roles, codes: Codes) -> None:
    """Make features of the columns to adjust for, after all other columns.

    Numbers stay as they are; of a column of text there is a feature of 0 and 1 for each level but
    the first. Its name says both levels, "sex=M vs F", so that a model which knows its features by
    name can tell a level it never met.
    """
    made: dict[str, NDArray[np.float64]] = {}
    for column, cells in draft.adjust.items():
        what = f"column {quote(column)} ({option('adjust')})"
        known = [name for name in roles.features or () if made_of(name, column)]
        if isinstance(cells, np.ndarray) and (column in known or not known):
            cells[np.isin(cells, codes.numbers)] = np.nan
            if np.isinf(cells).any():
                raise InputError("'inf' is not a number", where=what, remedy="leave the cell empty")
            if roles.features is None:
                _refuse_one_value(what, [None if np.isnan(v) else v for v in cells])
            features = {column: cells}
        elif column in known:
            raise InputError(
                f"{quote(next(c for c in cells if c is not None))} is not a number",
                where=what,
                remedy="correct it, or leave the cell empty",
            )
        else:
            features = _levels(column, what, [as_label(cell) for cell in cells], known)
        taken = [name for name in features if name in draft.names]
        if taken:
            raise InputError(
                f"the table has a feature {quote(taken[0])} besides the column of "
                f"{option('adjust')}",
                remedy="rename one of the two",
            )
        made |= features
        draft.covariates[column] = tuple(features)
        reason = "adjusted for: in every panel"
        draft.roles += [ColumnRole(name, "feature", reason) for name in features]
    if not made:
        return
    block = np.column_stack(list(made.values())).astype(draft.X.dtype)
    if sparse.issparse(draft.X):
        draft.X = sparse.hstack([draft.X, block], format="csr")
    else:
        draft.X = np.hstack([draft.X, block])
    draft.names = [*draft.names, *made]
    if roles.features is not None:
        place = {name: i for i, name in enumerate(draft.names)}
        draft.X = draft.X[:, [place[name] for name in roles.features]]
        draft.names = list(roles.features)


def _refuse_one_value(what: str, cells: Sequence[Any]) -> None:
    if len(set(cells)) == 1:
        value = "no value" if cells[0] is None else f"only the value {quote(as_label(cells[0]))}"
        raise InputError(f"{what} has {value}", remedy="leave it out")


def _levels(
    column: str, what: str, cells: list[str | None], known: list[str]
) -> dict[str, NDArray[np.float64]]:
    """Return a column of 0 and 1 for each level but the first, or for those that are known."""
    if None in cells:
        raise InputError(
            f"{what} has no value in row {cells.index(None) + 1}",
            remedy="fill the cell, with a word such as unknown if need be",
        )
    counts = Counter(str(cell) for cell in cells)
    if known:
        pairs = [name.removeprefix(f"{column}{IS}").rpartition(VERSUS) for name in known]
        levels = [pairs[0][2], *(level for level, _, _ in pairs)]
        strange = [level for level in counts if level not in levels]
        if strange:
            raise InputError(
                f"column {quote(column)} has the value {listed(strange)}, which training has not",
                remedy=f"write it as one of {listed(levels)}, or leave these samples out",
            )
    else:
        levels = sorted(counts)
        _refuse_one_value(what, levels)
        rare = min(levels, key=lambda level: counts[level])
        if counts[rare] == 1:
            raise InputError(
                f"{what} has the value {quote(rare)} in one sample only",
                remedy="merge it with another value",
            )
    first, *others = levels
    return {
        f"{column}{IS}{level}{VERSUS}{first}": np.array([float(c == level) for c in cells])
        for level in others
    }


# --- labels of a second file, and of another cohort ----------------------------------------


@dataclass(frozen=True)
class Labels:
    """Labels in a second file: its columns, and the row of each identifier."""

    columns: dict[str, list[Any]]
    rows: dict[str, int]
    on: str
    target: str
    source: str


def _read_labels(file: Path, on: str | None, target: str | None, options: ReadOptions) -> Labels:
    """Read the file; its first column identifies the samples unless `on` is another."""
    source, codes = shown_name(file), Codes(options.na)
    with locating(source):
        frame = read_frame(file, ReadOptions(encoding=options.encoding, na=options.na), None)
        columns = _columns_of(frame)
        if frame.meta is None:
            _refuse_duplicates(frame.names, "column")
        names = list(columns)
        on = names[0] if on is None else on
        for name, role in ((on, "on"), (target, "target")):
            if name is not None and name not in columns:
                raise no_such("column", name, role, names)
        if target is None:
            others = [name for name in names if name != on]
            if len(others) != 1:
                raise InputError(
                    f"it has the columns {listed(others)} besides {quote(on)}",
                    remedy=f"say which holds the labels with {option('target')}",
                )
            target = others[0]
        labels = [codes.label(cell) for cell in columns[target]]
        rows: dict[str, int] = {}
        for row, key in enumerate(map(as_label, columns[on])):
            if key is None:
                continue
            label, other = labels[row], labels[rows.setdefault(key, row)]
            if spelling_key(label or "") != spelling_key(other or ""):
                raise InputError(
                    f"{quote(key)} is labelled {quote(other)} and {quote(label)}",
                    remedy="keep one label for each sample",
                )
    return Labels(columns, rows, on, target, source)


def _columns_of(frame: Frame) -> dict[str, list[Any]]:
    """Return all columns of a frame that may hold labels, by name."""
    ids = {} if frame.ids is None else {frame.id_name or "index": frame.ids}
    if frame.meta is not None:
        return (ids if not frame.turns else {}) | frame.meta
    return ids | {name: frame.column(p) for p, name in enumerate(frame.names)}


def _join(draft: Draft, joined: Labels, roles: Roles, options: ReadOptions) -> None:
    """Put the labels (and groups, batches, what is adjusted for) beside the samples of a table."""
    codes = Codes(options.na)
    for name, cells in draft.beside.items():
        if (
            "id" not in draft.text
            and len(set(cells)) == len(cells)
            and joined.rows.keys() & set(cells)
        ):
            draft.text["id"] = cells
            draft.roles.append(ColumnRole(name, "id", "has the names that the labels have"))
    draft.beside = {n: c for n, c in draft.beside.items() if c != draft.text.get("id")}
    if "id" not in draft.text:
        raise InputError(
            "the samples have no identifiers to match the labels by",
            remedy=f"name the column that holds them with {option('id')}, or use "
            f"{option('transpose', True)} if the features are in rows",
        )
    ids = draft.text["id"]
    for names in (ids, draft.titles or ()):
        rows = [None if key is None else joined.rows.get(key) for key in names]
        if any(row is not None for row in rows):
            break
    else:
        here = [key for key in ids if key is not None]
        raise InputError(
            f"no sample has a label: the table has {listed(here[:2])}, the labels "
            f"{listed(list(joined.rows)[:2])}",
            remedy="identifiers must match exactly; if they are column names of the table, "
            f"use {option('transpose', True)}",
        )
    unused = len(joined.rows) - len({row for row in rows if row is not None})
    if unused:
        draft.notes.append(f"{unused} rows of {joined.source} belong to no sample of the table")
    draft.notes.append(f"labels come from {joined.source}, matched by {quote(joined.on)}")
    beside = {"target": joined.target} | {r: n for r, n in roles.named().items() if r != "target"}
    columns: dict[str, Column] = {}
    for role, name in beside.items():
        if name not in joined.columns or role == "id":
            continue
        cells = [None if row is None else joined.columns[name][row] for row in rows]
        if role.startswith("adjust:"):
            columns[name] = look_at(cells, codes)
        else:
            draft.text[role] = _as_text(role, cells, codes)
    numeric = {name: column for name, column in columns.items() if not column.holds_text}
    decimal = find_decimal(numeric, options, draft, None)
    for name, column in columns.items():
        draft.adjust[name] = [codes.label(cell) for cell in column.cells]
        if name in numeric:
            draft.adjust[name], _, bad = to_numbers(column, decimal, options.thousands, codes)
            if bad:
                raise not_a_number(column, bad, name, draft)


def check_cohort(cohort: Table, table: Table) -> Table:
    """Refuse a cohort that is the training table, or has labels which that table lacks.

    Labels that differ from those of the table in capitals, blanks or as 1 and 1.0 are the
    same classes.

    Parameters
    ----------
    cohort : Table
        Samples to test a model on.
    table : Table
        The samples it was trained on.

    Returns
    -------
    Table
        The cohort, its labels spelled as the table spells them.

    Raises
    ------
    InputError
        If they are the same file, or the cohort has other classes.

    Examples
    --------
    >>> from sparsegsvp.io import check_cohort, make_table
    >>> table = make_table([[1.0], [2.0], [3.0]], ["ill", "well", "ill"])
    >>> cohort = make_table([[4.0], [5.0], [6.0]], ["ILL", "Well", "Well"])
    >>> check_cohort(cohort, table).class_counts()
    {'ill': 1, 'well': 2}
    """
    if cohort.digest == table.digest:
        raise InputError(
            f"the cohort ({option('test')}) is the training table itself",
            where=cohort.source,
            remedy="give samples that took no part in training",
        )
    return known_labels(cohort, list(table.class_counts()), table.source)


def known_labels(cohort: Table, known: Sequence[str], source: str) -> Table:
    """Return a table with its labels spelled as those that are known; refuse others.

    Parameters
    ----------
    cohort : Table
        Samples with labels.
    known : sequence of str
        The classes.
    source : str
        Where they come from, for messages.

    Returns
    -------
    Table
    """
    # a class that is spelled in two ways there cannot be told from the other by its key
    often = Counter(map(spelling_key, known))
    spelling = {spelling_key(label): label for label in known if often[spelling_key(label)] == 1}
    here = cohort.class_counts()
    same = {label: spelling.get(spelling_key(label), label) for label in here if label not in known}
    changed = {label: name for label, name in same.items() if label != name}
    strange = [label for label in same if label not in changed]
    if strange:
        raise InputError(
            f"label {listed(strange)} does not occur in {one_line(source)}",
            where=cohort.source,
            remedy=f"rename it, or leave these samples out; the classes are {listed(known)}",
        )
    if not changed or cohort.y is None:
        return cohort
    pairs = ", ".join(f"{quote(old)} is taken for {quote(new)}" for old, new in changed.items())
    said = f"labels are spelled otherwise than in {one_line(source)}: {pairs}"
    notice = Notice("spelling", "note", f"In {one_line(cohort.source)}, {said}.")
    y = np.array([changed.get(str(label), label) for label in cohort.y], dtype=object)
    record, notices = (*cohort.record, said), (*cohort.notices, notice)
    return replace(cohort, y=y, record=record, notices=notices)


# --- what may be the target; a preview -----------------------------------------------------

_READING = ("separator", "decimal", "thousands", "encoding", "sheet", "layer", "transpose")
_SHOWN = 8  # rows, and columns of each, that are shown
_CANDIDATES = 30


def find_targets(path: str | PathLike[str], **options: Any) -> list[Candidate]:
    """List the columns of a file that may hold the classes, with their values.

    Parameters
    ----------
    path : path-like
        A file that `read_table` reads.
    **options
        Those of `read_table` that say how a file is read; others are ignored.

    Returns
    -------
    list of Candidate
        The likeliest first. At most one is `proposed`: never a sex, an age, a batch or names.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sparsegsvp.io import find_targets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "a.csv"
    ...     _ = path.write_text("g1,g2,state\\n1.5,2,ill\\n2.5,3,well\\n1,2,ill\\n2,4,well\\n")
    ...     [(c.name, c.counts, c.proposed) for c in find_targets(path)]
    [('state', {'ill': 2, 'well': 2}, True)]
    """
    file = existing_file(path)
    if options.get("labels") is not None:
        file, options = existing_file(options["labels"]), {"na": options.get("na")}
    with locating(shown_name(file)):
        return _candidates(read_frame(file, _reading(options)), _reading(options))


def _reading(options: Mapping[str, Any]) -> ReadOptions:
    given = {name: options[name] for name in _READING if options.get(name) is not None}
    return ReadOptions(**given, na=codes_of(options.get("na")))


def _candidates(frame: Frame, options: ReadOptions) -> list[Candidate]:
    codes = Codes(options.na)
    if frame.meta is not None:
        columns = {name: [codes.label(c) for c in cells] for name, cells in frame.meta.items()}
        return candidates(columns)[:_CANDIDATES]
    columns = {
        frame.names[p]: [codes.label(cell) for cell in cells] for p, cells in frame.texts.items()
    }
    for j, p in enumerate(frame.at):
        values = frame.numbers[: _SHOWN * 4, j] if len(frame) else ()
        if len(np.unique(values)) <= 12 and (np.mod(values, 1) == 0).all():
            columns[frame.names[p]] = [codes.label(cell) for cell in frame.column(int(p))]
    listed_columns = candidates(columns)
    rows = {
        str(cells[0]): [codes.label(c) for c in cells[1:]] for cells in frame.text_rows.values()
    }
    across = candidates(rows, rows=True)
    if across and not any(c.proposed for c in listed_columns):
        listed_columns = across + listed_columns
    return listed_columns[:_CANDIDATES]


def preview_table(
    path: str | PathLike[str], *, seconds: float = 60.0, memory: int | None = None, **options: Any
) -> dict[str, Any]:
    """Read a table in a process with limits, and say what is in it, for a program to show.

    Parameters
    ----------
    path : path-like
        A file that `read_table` reads.
    seconds : float, default=60.0
        How long it may take.
    memory : int or None, default=None
        How many bytes it may take; by default three quarters of what the machine has.
    **options
        Those of `read_table`. Without a target the one that `find_targets` proposes is taken.

    Returns
    -------
    dict
        What JSON can hold: ``table`` as `Table.describe` gives it, or None and an ``error``;
        ``target`` and whether it is ``proposed``; ``candidates`` for it; ``columns`` with role and
        reason; ``shown`` and ``rows``, the first cells; ``notices`` with what would see to each.

    Raises
    ------
    InputError
        If the file cannot be read, or not within the limits.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from sparsegsvp.io import preview_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "a.csv"
    ...     _ = path.write_text("g1,g2,state\\n1.5,2,ill\\n2.5,3,well\\n1,2,ill\\n2,4,well\\n")
    ...     preview = preview_table(path)
    >>> preview["target"], preview["proposed"], preview["table"]["n_samples"]
    ('state', True, 4)
    """
    source = shown_name(existing_file(path))
    request = {"path": os.fspath(path), "options": options, "memory": memory}
    code = "from sparsegsvp.io.table import _answer; _answer()"
    try:
        done = subprocess.run(
            [sys.executable, "-c", code], input=json.dumps(request), capture_output=True,
            text=True, encoding="utf-8", timeout=seconds, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise InputError(
            f"reading it takes more than {seconds:g} seconds",
            where=source,
            remedy="check the file; it may be damaged",
        ) from None
    answer = json.loads(done.stdout.strip().rpartition("\n")[2] or "null")
    if answer is None:
        raise InputError(
            "reading it ended the process that read it, or took more memory than there is",
            where=source,
            remedy="check the file; it may be damaged",
        )
    if "refused" in answer:
        raise InputError(
            answer["refused"][0], where=answer["refused"][1], remedy=answer["refused"][2]
        )
    return dict(answer)


def _answer() -> None:
    """Answer a request of `preview_table` on the standard streams."""
    request = json.load(sys.stdin)
    with suppress(ImportError, ValueError, OSError):
        import resource

        physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        most = request["memory"] or physical * 3 // 4
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    try:
        answer = _preview(existing_file(request["path"]), request["options"])
    except InputError as error:
        answer = {"refused": [error.what, error.where, error.remedy]}
    print("\n" + json.dumps(answer), flush=True)


def _preview(file: Path, options: dict[str, Any]) -> dict[str, Any]:
    reading = _reading(options)
    with locating(shown_name(file)):
        frame = read_frame(file, reading)
        listing = _candidates(frame, reading)
        if options.get("labels") is not None:
            listing = find_targets(file, **options)
    target = options.get("target")
    proposed = next((c.name for c in listing if c.proposed), None) if target is None else None
    answer: dict[str, Any] = {
        "target": target or proposed,
        "proposed": proposed is not None,
        "candidates": [asdict(candidate) for candidate in listing],
        "n_columns": len(frame.names),
        "table": None,
        "columns": [],
        "notices": [],
    }
    first = [p for p in frame.texts][: _SHOWN // 2]
    shown = sorted(dict.fromkeys([*first, *range(len(frame.names))]), key=lambda p: p not in first)
    shown = shown[:_SHOWN]
    answer["shown"] = [frame.names[p] for p in shown]
    cells = [frame.column(p)[:_SHOWN] for p in shown]
    answer["rows"] = [[as_label(cell) or "" for cell in row] for row in zip(*cells)]
    try:
        table = read_table(file, **{**options, "target": answer["target"]})
    except InputError as error:
        answer["error"] = [error.what, error.where, error.remedy]
        return answer
    answer["table"] = table.describe()
    answer["notices"] = answer["table"]["notices"]
    roles = [{"name": c.column, "role": c.role, "reason": c.reason} for c in table.roles]
    if proposed is not None:
        for role in roles:
            role["reason"] = "a guess" if role["role"] == "target" else role["reason"]
    said = {role["name"] for role in roles}
    rest = [name for name in table.feature_names if name not in said][:200]
    answer["columns"] = roles + [{"name": n, "role": "feature", "reason": "numbers"} for n in rest]
    return answer
