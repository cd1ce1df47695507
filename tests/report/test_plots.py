"""Plots on matplotlib axes."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import report_fakes as fakes

from sparsegsvp import plots

pytest.importorskip("matplotlib").use("agg")


@pytest.fixture
def ax():
    from matplotlib.figure import Figure

    return Figure().subplots()


def test_the_ladder_is_drawn_on_the_axes_given(ax):
    evaluation = fakes.Evaluation(fakes.make_table(n=60))
    assert plots.ladder(evaluation, ax=ax) is ax
    line, steady = ax.lines[0], ax.lines[-1]
    assert line.get_xdata().tolist() == evaluation.ladder["size"].tolist()
    assert np.allclose(line.get_ydata(), evaluation.ladder["balanced_accuracy"])
    assert np.allclose(steady.get_ydata(), evaluation.ladder["stability"])
    assert [text.get_text() for text in ax.get_xticklabels()][:3] == ["1", "2", "3"]
    with pytest.raises(ValueError, match="no ladder"):
        plots.ladder(SimpleNamespace(ladder=None), ax=ax)


def test_weights_are_sorted_and_cut_at_the_elbow(ax):
    values = np.array([0.0, -0.9, 0.02, 0.8, 0.01, 0.0])
    plots.elbow(values, names=list("abcdef"), ax=ax)
    assert ax.lines[0].get_ydata().tolist() == [0.9, 0.8, 0.02, 0.01, 0.0]
    assert ax.get_title() == "elbow after 3"
    assert [text.get_text() for text in ax.texts] == [" b", " d", " c"]
    with pytest.raises(ValueError, match="one plane"):
        plots.elbow(values.reshape(2, 3), ax=ax)


def test_the_course_of_each_plane_is_drawn(ax):
    course = {"objective": [3.0, 2.0, 1.5], "relative_error": [0.3, 0.2]}
    model = SimpleNamespace(classes_=["ill", "well"], history_=[course, course])
    plots.history(model, ax=ax)
    assert [line.get_xdata().tolist() for line in ax.lines] == [[0, 1, 2]] * 2
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "plane of ill", "plane of well",
    ]  # fmt: skip
    plots.history(model, part="relative_error", ax=ax)
    assert ax.lines[-1].get_xdata().tolist() == [1, 2]
