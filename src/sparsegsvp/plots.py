"""Figures of fitted models and evaluations with matplotlib: axes in, axes out.

===========  ===========================================================
`path`       weights along the path of a `GSVPSVMCV`
`weights`    sorted weights of one plane, with the elbow
`planes`     out-of-fold samples in the plane of two distances
`stability`  how often each feature is selected
`accuracy`   accuracy against panel size of several methods
===========  ===========================================================

Needs ``pip install "sparsegsvp[report]"``.
"""

from .report.mpl import accuracy, path, planes, stability, weights

__all__ = ["accuracy", "path", "planes", "stability", "weights"]
