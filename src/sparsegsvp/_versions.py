"""The versions that results depend on."""

from __future__ import annotations

import platform

import numpy as np
import scipy
import sklearn

from . import __version__


def versions() -> dict[str, str]:
    """Return them by name, as every document of the package holds them."""
    return {
        "sparsegsvp": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }
