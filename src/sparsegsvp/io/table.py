"""`Table`: samples with names, labels and a record; `read_table` and `make_table` make one.

Both make a `Frame` of their input, and `_table_of` makes a table of any frame: it turns it, joins
labels, gives columns their roles and makes numbers of cells.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
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
from .._validate import check_choice
from .cells import Codes, as_label, codes_of, describe_codes, mark_missing
from .checks import check, note_values, spelling_key
from .draft import COLLAPSE, Labels, append_covariates, as_text, collapse, draft_of, read_labels
from .errors import InputError, listed, locating, one_line, option, quote, role_option
from .formats import digest_of, existing_file, read_frame, shown_name, stored_matrix
from .frame import Frame, from_anndata, from_matrix, from_pandas
from .roles import (
    IS,
    VERSUS,
    Candidate,
    ColumnRole,
    Draft,
    Roles,
    candidates,
    guess_positive,
    role_lines,
)  # fmt: skip
from .text import ReadOptions


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
    joined = None if labels is None else read_labels(existing_file(labels), on, target, options)
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
    others: dict[str, Any] = {
        "na": na, "layer": layer, "decimal": decimal, "thousands": thousands,
    }  # fmt: skip
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
        frame, roles, options, None, source or kind, as_label(positive), log2, text=text,
        target=named["target"],
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
    if packages & {"pandas", "polars"} and hasattr(data, "columns"):
        convert = getattr(data, "to_pandas", None)  # of polars
        return (lambda frame: from_pandas(convert() if convert else frame)), "data frame"
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
    return as_text(role, cells, codes)


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
            check_choice(option("collapse"), collapse, tuple(COLLAPSE))
    except ValueError as error:
        raise InputError(str(error)) from None
    several: dict[str, tuple[str, ...]] = {}
    for name, given in {"batch": batch, "adjust": adjust, "drop": drop, "keep": keep}.items():
        names = (given,) if isinstance(given, str) else given
        if not isinstance(names, list | tuple) or not all(isinstance(n, str) for n in names):
            more = ", or give values under a name, as {'plate': values}" if name == "batch" else ""
            raise InputError(
                f"{option(name)} is a {type(given).__name__}", remedy=f"name columns{more}"
            )
        several[name] = tuple(names)
    wanted = None if features is None else tuple(features)
    return Roles(target, id, group, **several, features=wanted, collapse=collapse)


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
    draft, roles = draft_of(frame, roles, options, joined, source)
    draft.text |= text or {}
    if roles.group in roles.batch:
        draft.text[f"batch:{roles.group}"] = draft.text["group"]
    target = target or (roles.target if joined is None else joined.target)
    with locating(source):
        digest = digest or _digest_of(draft)
        codes = Codes(options.na)
        draft.X, met = mark_missing(draft.X, codes.numbers, in_place=frame.lines is not None)
        if met:
            draft.notes.append(describe_codes(met))
        collapse(draft, roles.collapse)
        positive = check(draft, roles, target, positive)
        append_covariates(draft, roles, codes)
        note_values(draft)
        opening = f"read {draft.X.shape[0]} samples and {draft.X.shape[1]} features from {source}"
        table = _finished(draft, f"{opening} ({draft.kind})", source, digest, target, positive)
    if log2:
        from ..estimators.pipeline import log2_floor  # scikit-learn takes a second to load

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


# --- another cohort ----------------------------------------------------------------------


def check_cohort(cohort: Table, table: Table) -> Table:
    """Refuse a cohort that is the training table, or has labels which that table lacks.

    Labels that differ in capitals, blanks or as 1 and 1.0 are the same classes; they are returned
    as the table spells them.
    """
    if cohort.digest == table.digest:
        raise InputError(
            f"the cohort ({option('test')}) is the training table itself",
            where=cohort.source,
            remedy="give samples that took no part in training",
        )
    return known_labels(cohort, list(table.class_counts()), table.source)


def known_labels(cohort: Table, known: Sequence[str], source: str) -> Table:
    """Return a table with its labels spelled as those of a source that are known; refuse others."""
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
        "notices": [notice.to_dict() for notice in frame.notices],
    }
    first = list(frame.texts)[: _SHOWN // 2]
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
