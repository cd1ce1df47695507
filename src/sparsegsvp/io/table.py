"""`Table`: samples with names, labels and a record; `read_table` makes one from a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._notices import Notice
from .cells import codes_of, describe_codes, mark_missing, numbers_of
from .checks import check
from .derived import check_collapse, collapse_features, mark_covariates
from .errors import InputError, listed, locating, option, quote
from .guards import existing_file, shown_name
from .labels import guess_positive, read_labelled, read_labels
from .layout import ColumnRole, RawTable, Roles, batch_role, batches_of
from .models import log2_floor
from .roles import role_lines
from .text import ReadOptions


@dataclass(frozen=True)
class Table:
    """Samples, features and labels, and a record of where they come from.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features) or CSR matrix
        The numbers; NaN where a value is missing. float32 stays float32.
    feature_names : tuple of str
        One name for each column of X.
    y : ndarray of shape (n_samples,) of str, or None
        Labels, as text.
    ids : ndarray of shape (n_samples,) of str, or None
        Sample identifiers.
    groups : ndarray of shape (n_samples,) of str, or None
        Groups (patients, batches) that must not be split between training and test.
    target, positive : str or None
        The column the labels came from, and the class of interest.
    source, digest : str
        The file's name and the SHA-256 of its bytes; for data in memory a word such as
        "data frame" and the SHA-256 of values, names and labels.
    record : tuple of str
        What was read and done, in sentences.
    notices : tuple of Notice
        What looks odd: samples that occur twice ("repeats"), features that seem to be in
        rows ("orientation"), labels in several spellings ("spelling"), values marked as
        below detection ("detection"), raw intensities ("raw"), and anything else ("table").
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
    categories : dict of str to tuple of str
        The features that other columns of categories became, likewise.

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
    >>> table.labels, table.positive_class
    (array(['ill', 'well', 'ill'], dtype='<U4'), 'ill')
    """

    X: Any
    feature_names: tuple[str, ...]
    y: NDArray[np.object_] | None
    ids: NDArray[np.object_] | None
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
    categories: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def covariate_columns(self) -> list[int]:
        """The numbers of the features that are adjusted for."""
        return self._places(self.covariates)

    @property
    def clinical_columns(self) -> list[int]:
        """The numbers of the features that a logarithm and centring leave alone.

        They are what is adjusted for, and the levels of categories.
        """
        return self._places(self.covariates | self.categories)

    def _places(self, columns: dict[str, tuple[str, ...]]) -> list[int]:
        names = {name for made in columns.values() for name in made}
        return [j for j, name in enumerate(self.feature_names) if name in names]

    @property
    def feature_groups(self) -> NDArray[np.intp] | None:
        """A number for each feature, the same for the levels of a column; None if all differ."""
        codes, place = np.arange(len(self.feature_names)), None
        for made in (self.covariates | self.categories).values():
            if len(made) > 1:
                place = place or {name: j for j, name in enumerate(self.feature_names)}
                members = [place[name] for name in made]
                codes[members] = min(members)
        return None if place is None else codes

    def class_counts(self) -> dict[str, int]:
        """Count the samples of each class, classes in the order scikit-learn gives them."""
        if self.y is None:
            return {}
        return dict(sorted(Counter(str(label) for label in self.y).items()))

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
        classes = list(self.class_counts())
        if len(classes) != 2:
            return None
        return guess_positive(classes) if self.positive is None else self.positive

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
    categorical: str | Sequence[str] = (),
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
    encoding: str | None = None,
) -> Table:
    """Read a table of samples and features, or refuse it in one clear line.

    CSV and TSV (also gzipped; separator and encoding are found out), series matrix files of
    GEO, Excel, Parquet, ARFF, NPZ and AnnData, by the file's extension. Samples are rows,
    unless `transpose` is given or the names given here show that they are columns.

    Parameters
    ----------
    path : path-like
        The file.
    target : str or None, default=None
        The column of labels (in ``obs`` for AnnData, an array for NPZ). Every text is a
        label there, "NA" and "None" too; rows with an empty cell are left out and counted.
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
    categorical : str or sequence of str, default=()
        Columns of categories, text or numbers that are codes. Those of `adjust` are in every
        panel; the others may be chosen among the features, all levels of a column in or out
        together.
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
        More codes for missing values in columns of numbers, such as "n.m." or -999; a text
        with commas has several. The usual ones, in capitals or not, are known: NA, N/A, n.a.,
        NaN, null, none, missing, ?, ., -, and those for values below detection: ND, n.d.,
        LOD, <LOD, BDL.
    collapse : {"mean", "max", "first"} or None, default=None
        Make one feature of those that share a name: the mean of their values, the one with
        the largest mean over the samples of this file, or the first. Without it they are
        refused.
    layer : str or None, default=None
        A layer of an AnnData file instead of its X.
    sheet : str or None, default=None
        A sheet of a workbook instead of its first.
    log2 : bool, default=False
        Take ``log2(max(x, 1))`` of every value.
    separator, decimal, encoding : str or None, default=None
        For text files, what would otherwise be found out.

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
    ...     _ = path.write_text("id;g1;g2;class\\ns1;1,5;2;NA\\ns2;0,5;4;B\\n")
    ...     table = read_table(path, target="class", id="id")
    ...     try:
    ...         read_table(path, target="Class")
    ...     except InputError as error:
    ...         print(error)
    a.csv: there is no column 'Class' (target); did you mean 'class'?
    >>> table.X
    array([[1.5, 2. ],
           [0.5, 4. ]])
    >>> list(table.y)
    ['NA', 'B']
    """
    file = existing_file(path)
    roles = column_roles(
        target, id, group, features=features, collapse=collapse, keep=keep, drop=drop,
        batch=batch, adjust=adjust, categorical=categorical,
    )  # fmt: skip
    codes = codes_of(na)
    options = ReadOptions(separator, decimal, encoding, sheet, layer, transpose, codes)
    if labels is None and on is not None:
        raise InputError(
            f"{option('on')} names a column of the file given with {option('labels')}",
            where=file.name,
        )
    found = None if labels is None else read_labels(existing_file(labels), on, target, encoding)
    target = target if found is None else found.target
    raw, roles = read_labelled(file, roles, options, found)
    with locating(file.name):
        table = checked_table(raw, shown_name(file), roles, codes, target, positive, in_place=True)
    if log2:
        record = (*table.record, "values are log2(max(x, 1))")
        table = replace(table, X=log2_floor(table.X), record=record).without_notice("raw")
    return table


def as_names(given: str | Sequence[str]) -> tuple[str, ...]:
    """Return names that were given one by one, or one alone."""
    return (given,) if isinstance(given, str) else tuple(given)


def column_roles(
    target: str | None,
    id: str | None,
    group: str | None,
    *,
    features: Sequence[str] | None,
    collapse: str | None,
    **columns: str | Sequence[str],
) -> Roles:
    """Return the roles that a caller gave; of `columns` each is a name, or several."""
    check_collapse(collapse)
    named = {role: as_names(names) for role, names in columns.items()}
    wanted = None if features is None else tuple(features)
    return Roles(target, id, group, features=wanted, collapse=collapse, **named)


def checked_table(
    raw: RawTable,
    source: str,
    roles: Roles,
    na: Sequence[str],
    target: str | None,
    positive: str | None,
    *,
    in_place: bool,
) -> Table:
    """Make a table of what a reader returned: mark what is missing, collapse features, check."""
    raw.X, met = mark_missing(raw.X, numbers_of(na), in_place=in_place)
    mark_covariates(raw.text, na)
    if met:
        raw.notes.append(describe_codes(met))
    collapse_features(raw, roles.collapse)
    if roles.group in roles.batch:
        raw.text[batch_role(str(roles.group))] = raw.text["group"]
    positive = check(raw, roles, target, positive)
    n, m = raw.X.shape
    opening = f"read {n} samples and {m} features from {source} ({raw.kind})"
    return table_of(raw, opening, source, target, positive)


def table_of(
    raw: RawTable,
    opening: str,
    source: str,
    target: str | None,
    positive: str | None,
    about_digest: str = "",
) -> Table:
    """Make a table of what was read and checked; `opening` is the record's first sentence."""
    record = [opening]
    labels = raw.text.get("target")
    if labels is not None:
        counts = dict(sorted(Counter(map(str, labels)).items()))
        listing = ", ".join(f"{quote(label)} {n}" for label, n in counts.items())
        if len(counts) == 2:
            of_interest = positive or guess_positive(list(counts))
            listing += f"; the class of interest is {quote(of_interest)}"
            listing += "" if positive else ", taken by its name or place"
        record.append(f"classes in {quote(target)}: {listing}")
    if about_digest:
        record.append(about_digest)
    asked = [name for name, why in raw.dropped.items() if why == "asked for"]
    if asked:
        record.append(f"left out as asked: {listed(asked)}")
    return Table(
        X=raw.X,
        feature_names=tuple(raw.names),
        y=_texts(labels),
        ids=_texts(raw.text.get("id")),
        groups=_texts(raw.text.get("group")),
        target=target,
        positive=positive,
        source=source,
        digest=raw.digest,
        record=(*record, *raw.notes),
        notices=raw.notices,
        dropped=dict(raw.dropped),
        n_missing=raw.n_missing,
        roles=tuple(raw.roles),
        batches={
            name: np.array(cells, dtype=object) for name, cells in batches_of(raw.text).items()
        },
        covariates=dict(raw.covariates),
        categories=dict(raw.categories),
    )


def _texts(values: list[str | None] | None) -> NDArray[np.object_] | None:
    if values is None:
        return None
    array = np.empty(len(values), dtype=object)
    array[:] = ["" if value is None else value for value in values]
    return array
