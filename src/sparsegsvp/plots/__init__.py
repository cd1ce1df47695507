"""Plots of fitted models and evaluations: axes in, axes out.

==================  ======================================================
`roc`               ROC curve of an evaluation, a cohort, or a model and data
`calibration`       observed against predicted shares, of the same
`decision_curve`    net benefit by threshold, of the same
`permutation`       the score of the true labels among shuffled ones
`heatmap`           the panel over the samples, clustered
`volcano`           difference against q-value, the panel named
`boxes`             values of one feature by class
`correlations`      correlations of the panel and its substitutes
`path`              weights along the path of a `GSVPSVMCV`
`weights`           sorted weights of one plane, with the elbow
`planes`            out-of-fold samples in the plane of two distances
`stability`         how often each feature is selected
`accuracy`          accuracy against panel size of several methods
`learning_curve`    accuracy and stability against the number of samples
==================  ======================================================

Every function takes ``ax`` and returns what it drew on: matplotlib axes to draw on, None (the
default) for those of a new pyplot figure, or False for the `sparsegsvp.report.charts.Chart`
itself, which shows itself in a notebook, writes itself to a file (``save("x.svg")``, ``"x.png"``,
``"x.pdf"``) and gives its numbers (``csv()``). matplotlib (``pip install "sparsegsvp[report]"``)
is needed for axes and for formats other than SVG. ``feature_names`` are by default those of the
data frame or seen in fit, or column numbers.

scikit-learn's displays take these estimators too: ``RocCurveDisplay.from_estimator(model, X, y)``,
``CalibrationDisplay``, ``ConfusionMatrixDisplay`` and ``DecisionBoundaryDisplay``.

To add a plot: a function in `sparsegsvp.report.figures` or `features` that computes what it shows
as plain numbers, one in `drawings` or `panel_charts` that makes a `Chart` of them, and one here.
"""

from .estimates import accuracy, calibration, decision_curve, learning_curve, permutation, roc
from .fits import (
    boxes,
    correlations,
    heatmap,
    path,
    planes,
    stability,
    volcano,
    weights,
)

__all__ = [
    "accuracy",
    "boxes",
    "calibration",
    "correlations",
    "decision_curve",
    "heatmap",
    "learning_curve",
    "path",
    "permutation",
    "planes",
    "roc",
    "stability",
    "volcano",
    "weights",
]
