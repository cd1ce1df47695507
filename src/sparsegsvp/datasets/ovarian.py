"""The ovarian cancer data of the paper, read from a file that is not shipped."""

from __future__ import annotations

import os
import re
import zipfile
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from .base import DATA_VARIABLE, Arrays, Dataset, data_folder

_FILE_NAMES = ("ovarian_253x15154.npz", "Ovarian.arff", "ovarian.arff")
_SHAPE = (253, 15154)
_CLASS_COUNTS = {"Normal": 91, "Cancer": 162}
_MZ_NAME = re.compile(r"MZ-?\d+(?:\.\d*)?(?:E[+-]?\d+)?", re.IGNORECASE)
_ATTRIBUTE = re.compile(
    r"""@attribute\s+(?:(['"])(?P<quoted>.*?)(?:\1|$)|(?P<bare>\S+))""", re.IGNORECASE
)
# First and last mass/charge value of the 8-7-02 series.
_MZ_RANGE = (-7.86e-05, 19995.513)
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

Parts = tuple[NDArray[Any], NDArray[np.str_], NDArray[np.str_]]  # values, labels, column names


@overload
def load_ovarian(
    path: str | os.PathLike[str] | None = None, *, return_X_y: Literal[False] = False
) -> Dataset: ...
@overload
def load_ovarian(
    path: str | os.PathLike[str] | None = None, *, return_X_y: Literal[True]
) -> Arrays: ...
def load_ovarian(
    path: str | os.PathLike[str] | None = None, *, return_X_y: bool = False
) -> Dataset | Arrays:
    """Load the ovarian cancer data (253 spectra, 15154 mass/charge bins) from a file.

    Parameters
    ----------
    path : path-like or None, default=None
        The file (``.npz`` or ``.arff``), or the folder that holds it. None takes the folder
        named by the environment variable ``SPARSEGSVP_DATA``.
    return_X_y : bool, default=False
        Return only the pair ``(X, y)``.

    Returns
    -------
    Dataset or tuple of ndarray
        ``X`` is float32, ``y`` has Normal = 0 and Cancer = 1; rows in the order of the file.

    Raises
    ------
    FileNotFoundError
        No path is given or nothing is there.
    ValueError
        The file is not this data set. The message says what is wrong with its shape, classes,
        names or values, and where the right file comes from.

    Examples
    --------
    >>> from sparsegsvp.datasets import load_ovarian
    >>> load_ovarian("Ovarian.arff")  # doctest: +SKIP
    Dataset(253 samples x 15154 features; Normal 91, Cancer 162)
    """
    file = _locate(path)
    try:
        X, labels, names = (_read_arff if file.suffix.lower() == ".arff" else _read_npz)(file)
        _check(X, labels, names)
    except ValueError as error:
        raise ValueError(f"{file}: {error}. {_SOURCE}") from error
    y = (labels == "Cancer").astype(np.int64)
    if return_X_y:
        return X, y
    return Dataset(X, y, names, np.array(list(_CLASS_COUNTS)), _OVARIAN)


def _locate(path: str | os.PathLike[str] | None) -> Path:
    path = data_folder() if path is None else path
    if path is None:
        raise FileNotFoundError(f"path is not given and {DATA_VARIABLE} is not set. {_SOURCE}")
    found = Path(path)
    if found.is_dir():
        candidates = [found / name for name in _FILE_NAMES if (found / name).is_file()]
        if not candidates:
            raise FileNotFoundError(f"No ovarian data in the folder {found}. {_SOURCE}")
        return candidates[0]
    if not found.is_file():
        raise FileNotFoundError(f"No such file: {found}. {_SOURCE}")
    return found


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
    """Read a dense ARFF file whose last attribute is the class.

    A parser for general ARFF spends minutes on 15155 attributes; the file needed here has
    numbers and one nominal column only, and anything else is refused.
    """
    names: list[str] = []
    rows: list[NDArray[np.float32]] = []
    labels: list[str] = []
    in_data = False
    with file.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, start=1):
            text = line.strip()
            if not text or text.startswith("%"):
                continue
            if not in_data:
                attribute = _ATTRIBUTE.match(text)
                if attribute:
                    names.append((attribute["quoted"] or attribute["bare"] or "").strip())
                in_data = text.split(maxsplit=1)[0].lower() == "@data"
                continue
            values, _, label = text.rpartition(",")
            try:
                rows.append(np.array(values.split(","), dtype=np.float32))
            except ValueError as error:
                raise ValueError(f"line {number}: {error}") from error
            labels.append(label.strip().strip("'\"").capitalize())
    lengths = {len(row) for row in rows}
    if not rows or lengths != {len(names) - 1}:
        raise ValueError(
            f"{len(rows)} rows of {sorted(lengths)} values do not fit {len(names)} attributes"
        )
    return np.vstack(rows), np.array(labels), np.array(names[:-1])


def _check(X: NDArray[Any], labels: NDArray[np.str_], names: NDArray[np.str_]) -> None:
    """Raise ValueError unless the table is this data set: shape, classes, names, values."""
    if X.shape != _SHAPE or names.shape != (_SHAPE[1],) or labels.shape != (_SHAPE[0],):
        raise ValueError(
            f"a table of shape {X.shape} with {names.size} names and {labels.size} labels, "
            f"not {_SHAPE}"
        )
    classes, counts = np.unique(labels, return_counts=True)
    found = dict(zip(classes.tolist(), counts.tolist()))
    if found != _CLASS_COUNTS:
        raise ValueError(f"the classes are {found}, not {_CLASS_COUNTS}")
    wrong = [str(name) for name in names if not _MZ_NAME.fullmatch(name)]
    if wrong:
        raise ValueError(
            f"{len(wrong)} columns are not named like MZ244.95, the first is {wrong[0]!r}"
        )
    ends = [float(name[2:]) for name in (names[0], names[-1])]
    if not np.allclose(ends, _MZ_RANGE, rtol=1e-2, atol=1e-6):
        raise ValueError(
            f"the columns run from {names[0]} to {names[-1]}, not from MZ{_MZ_RANGE[0]:.3g} to "
            f"MZ{_MZ_RANGE[1]}"
        )
    if X.dtype.kind != "f" or not np.isfinite(X).all():
        raise ValueError("values are missing or not finite numbers")
