"""`read_table`: any of the usual files to a matrix with names, labels and a record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._assemble import Parts
from ._errors import InputError, listed, quote
from ._judge import judge
from ._labels import LabelSheet, with_identifiers
from ._layout import Request
from ._source import TextOptions, existing_file, kind_of, read_parts
from ._transform import log2_floor


@dataclass(frozen=True)
class Table:
    """Samples, features and labels read from a file, and a record of how.

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
        The file's name and the SHA-256 of its bytes.
    record : tuple of str
        What was read and done, in sentences.
    hints : tuple of str
        What looks odd and may be meant otherwise.
    dropped : dict of str to str
        Columns left out, with the reason.
    n_missing : int
        Number of missing values in X.

    See Also
    --------
    read_table : Makes one from a file.

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
    hints: tuple[str, ...]
    dropped: dict[str, str]
    n_missing: int

    def class_counts(self) -> dict[str, int]:
        """Count the samples of each class, classes in the order scikit-learn gives them."""
        if self.y is None:
            return {}
        return dict(sorted(Counter(str(label) for label in self.y).items()))


def read_table(
    path: str | PathLike[str],
    *,
    target: str | None = None,
    positive: str | None = None,
    id: str | None = None,
    group: str | None = None,
    drop: Sequence[str] = (),
    features: Sequence[str] | None = None,
    labels: str | PathLike[str] | None = None,
    on: str | None = None,
    transpose: bool = False,
    layer: str | None = None,
    sheet: str | None = None,
    log2: bool = False,
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
) -> Table:
    """Read a table of samples and features, or refuse it in one clear line.

    CSV and TSV (also gzipped; separator and encoding are found out), Excel, Parquet, ARFF,
    NPZ and AnnData, by the file's extension. Samples are rows unless `transpose` is given.

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
    drop : sequence of str, default=()
        Columns to leave out.
    features : sequence of str or None, default=None
        Read only these columns, in this order; all others are ignored. Missing ones are
        an error that lists them.
    labels : path-like or None, default=None
        A second file with the labels (and groups), matched by identifier.
    on : str or None, default=None
        The column of identifiers in `labels`; in the table too, unless `id` says otherwise.
    transpose : bool, default=False
        Features are in rows: the first column names them and the header the samples.
        `target`, `id`, `group` and `drop` are then names of rows.
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
    a.csv: there is no column 'Class' (--target); did you mean 'class'?
    >>> table.X
    array([[1.5, 2. ],
           [0.5, 4. ]])
    >>> list(table.y)
    ['NA', 'B']
    """
    file = existing_file(path)
    kind = kind_of(file)
    if layer is not None and kind != "h5ad":
        raise InputError("--layer is for AnnData (.h5ad) files", where=file.name)
    if labels is None and on is not None:
        raise InputError("--on names a column of the file given with --labels", where=file.name)
    wanted = None if features is None else tuple(features)
    request = Request(target=target, id=id, group=group, drop=tuple(drop), features=wanted)
    options = TextOptions(separator, decimal, encoding, sheet)
    label_sheet = None
    if labels is not None:
        label_sheet = LabelSheet.read(existing_file(labels), on, target, encoding)
        target = label_sheet.target
        elsewhere = group in label_sheet.columns
        request = replace(request, target=None, group=None if elsewhere else group)
        if not transpose and kind not in ("h5ad", "npz"):
            request = with_identifiers(request, label_sheet, file, kind, options)
    parts, digest = read_parts(file, kind, request, transpose, layer, options)
    if label_sheet is not None:
        label_sheet.join(parts, group, file.name)
    verdict = judge(parts, file.name, target=target, positive=positive, fixed=features is not None)
    if log2:
        parts.X = log2_floor(parts.X)
        verdict.notes.append("values are log2(max(x, 1))")
    return Table(
        X=parts.X,
        feature_names=tuple(parts.names),
        y=_texts(parts, "target"),
        ids=_texts(parts, "id"),
        groups=_texts(parts, "group"),
        target=target,
        positive=positive,
        source=file.name,
        digest=digest,
        record=(*_opening(parts, file.name, target), *verdict.notes),
        hints=tuple(verdict.hints),
        dropped=dict(parts.dropped),
        n_missing=verdict.n_missing,
    )


def _texts(parts: Parts, role: str) -> NDArray[np.object_] | None:
    values = parts.text.get(role)
    if values is None:
        return None
    array = np.empty(len(values), dtype=object)
    array[:] = ["" if value is None else value for value in values]
    return array


def _opening(parts: Parts, where: str, target: str | None) -> list[str]:
    n, m = parts.X.shape
    sentences = [f"read {n} samples and {m} features from {where} ({parts.kind})"]
    labels = parts.text.get("target")
    if labels is not None:
        counts = sorted(Counter(labels).items(), key=lambda item: str(item[0]))
        sentences.append(
            f"classes in {quote(target)}: {', '.join(f'{quote(k)} {v}' for k, v in counts)}"
        )
    asked = [name for name, why in parts.dropped.items() if why == "asked for"]
    if asked:
        sentences.append(f"left out as asked: {listed(asked)}")
    return sentences
