"""The record every loader returns, the embedded breast cancer data, and the ovarian data."""

from __future__ import annotations

import os
import re
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer as _load_breast_cancer

from .._validate import check_choice

DATA_VARIABLE = "SPARSEGSVP_DATA"
_BREAST = """\
Breast Cancer Wisconsin (Diagnostic): 569 fine-needle aspirates, 30 measurements of the
cell nuclei in each image (ten properties; their mean, standard error and worst value).
The rows are in the order of scikit-learn's copy. The classes are coded as in the paper,
benign = 0 and malignant = 1, so that a positive is a cancer; scikit-learn codes them the
other way round.
"""
_FILE_NAMES = ("ovarian_253x15154.npz", "Ovarian.arff", "ovarian.arff")
_SHAPE = (253, 15154)
_CLASS_COUNTS = {"Normal": 91, "Cancer": 162}
_ATTRIBUTE = re.compile(
    r"""@attribute\s+(?:(['"])(?P<quoted>.*?)(?:\1|$)|(?P<bare>\S+))""", re.IGNORECASE
)
_FIRST, _LAST = "MZ-7.86E-05", "MZ19995"  # mass/charge values of the 8-7-02 series
_SOURCE = (
    "The right file is Ovarian.arff (253 samples x 15154 features named MZ..., classes Normal 91 "
    "and Cancer 162), from the microarray collection at "
    "https://csse.szu.edu.cn/staff/zhuzx/Datasets.html, or the same table as "
    "ovarian_253x15154.npz with arrays X, y, feature_names and class_names. Give its path, or "
    f"set {DATA_VARIABLE} to the folder that holds it."
)
_OVARIAN = """\
NCI/CCR ovarian cancer serum spectra (SELDI-TOF, series 8-7-02): 253 samples, intensities
in 15154 mass/charge bins, each scaled to [0, 1]. The features are peaks of a spectrum, not
genes. The series is reported to carry experimental bias and is easy to separate: a perfect
score on it proves little.
"""
# The authors' file is not public, and its order of rows decides their split, drawn by row number
# within each class. A file in the public history of their code holds the mean of their training
# rows; solved for the rows of the public table, it says which these are, to 1e-4. This is an order
# of the public table's rows, Normal first, that leads to exactly their parts.
_AUTHORS_ORDER = """\
0 66 65 64 63 62 61 60 59 58 57 56 55 54 53 52 51 50 49 48 67 47 68 70 90 89 88 87 86 84 83 82
81 80 79 78 77 76 75 74 73 72 71 69 46 85 44 19 18 17 16 15 14 13 12 11 10 9 8 7 6 5 3 2 1 45
20 21 4 23 22 42 41 39 38 37 36 35 34 40 32 24 33 25 26 27 43 28 29 30 31 208 193 194 195 196
197 198 199 201 209 202 203 205 206 207 192 200 204 182 190 173 210 174 175 176 177 178 179
180 181 183 184 185 186 187 188 189 191 211 233 213 236 237 238 239 240 241 242 235 243 245
246 247 248 249 250 172 244 234 232 231 214 215 216 217 218 219 220 221 222 223 224 225 226
227 228 229 230 212 171 126 169 112 113 114 115 116 117 118 111 119 121 122 123 124 125 251
127 120 110 109 108 91 92 93 94 95 96 97 98 99 100 101 102 103 104 105 106 107 128 170 129 131
153 154 155 156 157 158 159 152 160 162 163 164 165 166 167 168 161 151 150 149 132 133 134
135 136 137 138 139 140 141 142 143 144 145 146 147 148 130 252
"""
# Which rows the numbers above mean: the public table's rows by falling total intensity.
_KNOWN_ORDER = 704124980
Order = Literal["file", "authors"]

Parts = tuple[NDArray[Any], NDArray[np.str_], NDArray[np.str_]]  # values, labels, column names


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A table of samples and features with class labels.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        The measurements, float32 or float64.
    y : ndarray of shape (n_samples,), int64
        The class of each sample, an index into `class_names`.
    feature_names : ndarray of shape (n_features,), str
    class_names : ndarray of shape (n_classes,), str
    description : str
        What the data are, where they come from, and what is known to be wrong with them.
    support : ndarray of int or None
        The features that carry the signal, in ascending order, where that is known
        (simulated data), otherwise None.

    Examples
    --------
    >>> from sparsegsvp.datasets import load_breast_cancer
    >>> data = load_breast_cancer()
    >>> data
    Dataset(569 samples x 30 features; benign 357, malignant 212)
    >>> data.labels[:3]
    array(['malignant', 'malignant', 'malignant'], dtype='<U9')
    """

    X: NDArray[np.floating[Any]]
    y: NDArray[np.int64]
    feature_names: NDArray[np.str_]
    class_names: NDArray[np.str_]
    description: str
    support: NDArray[np.int64] | None = None

    @property
    def labels(self) -> NDArray[np.str_]:
        """The class of each sample by name."""
        return self.class_names[self.y]

    def __repr__(self) -> str:
        counts = ", ".join(f"{c} {np.sum(self.y == k)}" for k, c in enumerate(self.class_names))
        return f"Dataset({self.X.shape[0]} samples x {self.X.shape[1]} features; {counts})"


def load_breast_cancer(*, return_X_y: bool = False) -> Any:
    """Load the breast cancer data of scikit-learn with benign = 0 and malignant = 1.

    Parameters
    ----------
    return_X_y : bool, default=False
        Return only the pair ``(X, y)``.

    Returns
    -------
    Dataset or tuple of ndarray
        569 samples (357 benign, 212 malignant), 30 features. The rows are in scikit-learn's
        order, whose own ``load_breast_cancer`` has malignant = 0; the classes are the paper's.

    Examples
    --------
    >>> from sparsegsvp.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X.shape, int(y.sum())
    ((569, 30), 212)
    """
    bunch = _load_breast_cancer()
    y = (1 - bunch.target).astype(np.int64)
    if return_X_y:
        return bunch.data, y
    names = np.asarray(bunch.feature_names, dtype=np.str_)
    return Dataset(bunch.data, y, names, np.array(["benign", "malignant"]), _BREAST)


def load_ovarian(path: str | os.PathLike[str] | None = None, *, order: Order = "file") -> Dataset:
    """Load the ovarian cancer data (253 spectra, 15154 mass/charge bins) from a file.

    Parameters
    ----------
    path : path-like or None, default=None
        The file (``.npz`` or ``.arff``), or the folder that holds it. None takes the folder
        named by the environment variable ``SPARSEGSVP_DATA``.
    order : {"file", "authors"}, default="file"
        Order of the rows. "authors" is one that gives the training, validation and test parts
        of the paper when each class is split by row number, as its authors did.

    Returns
    -------
    Dataset
        ``X`` is float32, ``y`` has Normal = 0 and Cancer = 1.

    Raises
    ------
    FileNotFoundError
        No path is given or nothing is there.
    ValueError
        The file is not this data set: the message says why, and where the right file is. Or the
        authors' order is asked for, and the rows are not in that of the public table.

    Examples
    --------
    >>> from sparsegsvp.datasets import load_ovarian
    >>> load_ovarian("Ovarian.arff")  # doctest: +SKIP
    Dataset(253 samples x 15154 features; Normal 91, Cancer 162)
    """
    check_choice("order", order, get_args(Order))
    file = _locate(path)
    try:
        X, labels, names = (_read_arff if file.suffix.lower() == ".arff" else _read_npz)(file)
        _check(X, labels, names)
    except ValueError as error:
        raise ValueError(f"{file}: {error}. {_SOURCE}") from error
    y = (labels == "Cancer").astype(np.int64)
    if order == "authors":
        if _fingerprint(X) != _KNOWN_ORDER:
            raise ValueError(
                f"{file}: the rows are not in the order of the public table, so that of the "
                f"authors cannot be told. {_SOURCE}"
            )
        rows = np.array(_AUTHORS_ORDER.split(), dtype=np.intp)
        X, y = X[rows], y[rows]
    return Dataset(X, y, names, np.array(list(_CLASS_COUNTS)), _OVARIAN)


def _fingerprint(X: NDArray[Any]) -> int:
    """A number that says in which order the rows are: a checksum of their ranks by total."""
    ranks = np.argsort(-X.sum(axis=1, dtype=np.float64), kind="stable")
    return zlib.crc32(ranks.astype("<i8").tobytes())


def _locate(path: str | os.PathLike[str] | None) -> Path:
    path = path or os.environ.get(DATA_VARIABLE)
    if not path:
        raise FileNotFoundError(f"path is not given and {DATA_VARIABLE} is not set. {_SOURCE}")
    place = Path(path)
    for file in [place / name for name in _FILE_NAMES] if place.is_dir() else [place]:
        if file.is_file():
            return file
    problem = "No ovarian data in the folder" if place.is_dir() else "No such file:"
    raise FileNotFoundError(f"{problem} {place}. {_SOURCE}")


def _read_npz(file: Path) -> Parts:
    try:
        with np.load(file, allow_pickle=False) as arrays:
            X, y = arrays["X"], arrays["y"]
            names, classes = arrays["feature_names"], arrays["class_names"]
    except KeyError as error:
        raise ValueError(f"the file lacks an array: {error.args[0]}") from error
    except (OSError, ValueError, EOFError, TypeError, IndexError, zipfile.BadZipFile) as error:
        raise ValueError(f"it cannot be read as .npz ({error})") from error
    if y.ndim != 1 or y.dtype.kind not in "iu" or len(classes) != 2 or set(np.unique(y)) - {0, 1}:
        raise ValueError("y must hold 0 and 1 for two class names")
    return X, np.asarray(classes, dtype=np.str_)[y], np.asarray(names, dtype=np.str_)


def _read_arff(file: Path) -> Parts:
    """Read a dense ARFF file of numbers whose last attribute is the class.

    A parser for general ARFF spends minutes on 15155 attributes.
    """
    text = file.read_text(encoding="utf-8", errors="replace")
    lines = [line.strip() for line in text.splitlines() if line.strip() and line[0] != "%"]
    header = next((i for i, line in enumerate(lines) if line.lower() == "@data"), len(lines))
    attributes = [match for line in lines[:header] if (match := _ATTRIBUTE.match(line))]
    names = [(match["quoted"] or match["bare"] or "").strip() for match in attributes]
    rows = [line.rpartition(",") for line in lines[header + 1 :]]
    values = [np.array(row.split(","), dtype=np.float32) for row, _, _ in rows]
    if {len(row) for row in values} != {len(names) - 1}:
        raise ValueError(f"{len(rows)} rows do not fit {len(names)} attributes")
    labels = [label.strip(" '\"").capitalize() for _, _, label in rows]
    return np.vstack(values), np.array(labels), np.array(names[:-1])


def _check(X: NDArray[Any], labels: NDArray[np.str_], names: NDArray[np.str_]) -> None:
    """Raise ValueError unless the table is this data set: shape, classes, names, values."""
    if X.shape != _SHAPE or names.shape != (_SHAPE[1],) or labels.shape != (_SHAPE[0],):
        raise ValueError(
            f"a table of shape {X.shape} with {names.size} names and {labels.size} labels, "
            f"not {_SHAPE}"
        )
    classes, counts = np.unique(labels, return_counts=True)
    sizes = dict(zip(classes.tolist(), counts.tolist()))
    if sizes != _CLASS_COUNTS:
        raise ValueError(f"the classes are {sizes}, not {_CLASS_COUNTS}")
    if not (names[0] == _FIRST and names[-1].startswith(_LAST)):
        raise ValueError(f"the columns run from {names[0]} to {names[-1]}, not {_FIRST} to {_LAST}")
    if X.dtype.kind != "f" or not np.isfinite(X).all():
        raise ValueError("values are missing or not finite numbers")
