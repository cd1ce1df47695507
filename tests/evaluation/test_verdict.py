"""One verdict: every case of the rule, and the notice that goes with it."""

import pytest

from sparsegsvp.evaluation import PermutationResult, verdict
from sparsegsvp.evaluation.permutation import signal_notices
from sparsegsvp.metrics import Interval

ABOVE, ACROSS, BELOW = (0.8, 0.6, 0.95), (0.6, 0.4, 0.8), (0.4, 0.2, 0.6)


def _test(p, draws, stopped):
    return PermutationResult(0.7, (0.5,) * draws, p, stopped, "fixed", "free")


@pytest.mark.parametrize(
    ("p", "draws", "stopped", "score", "n_classes", "expected"),
    [
        (0.01, 99, False, ABOVE, 2, "signal"),
        (0.05, 19, False, ABOVE, 2, "signal"),
        (0.05, 19, False, ACROSS, 2, "signal"),  # the interval does not decide, the test does
        (0.01, 99, False, BELOW, 2, "none"),  # better than permuted, worse than chance
        (0.01, 99, False, (0.5, 0.4, 0.6), 2, "none"),  # not above chance
        (0.06, 99, False, ABOVE, 2, "inconclusive"),
        (0.06, 99, False, ACROSS, 2, "none"),
        (0.06, 99, False, (0.8, 0.5, 0.95), 2, "none"),  # down to chance itself
        (0.06, 99, False, BELOW, 2, "none"),
        (0.9, 11, True, ACROSS, 2, "none"),  # stopped early: it has decided
        (0.9, 11, True, ABOVE, 2, "inconclusive"),
        (1 / 19, 18, False, ABOVE, 2, "not tested"),  # cannot reach 0.05
        (0.5, 9, False, BELOW, 2, "not tested"),
        (None, 0, False, ABOVE, 2, "not tested"),
        (None, 0, False, BELOW, 2, "not tested"),
        (0.01, 99, False, (0.4, 0.35, 0.5), 3, "signal"),  # chance is 1/3
        (0.2, 99, False, (0.4, 0.35, 0.5), 3, "inconclusive"),
        (0.01, 99, False, (0.3, 0.2, 0.4), 3, "none"),
    ],
)
def test_every_case(p, draws, stopped, score, n_classes, expected):
    test = None if p is None else _test(p, draws, stopped)
    interval = Interval(*score, 0.95)
    assert verdict(test, interval, n_classes) == expected
    codes = [notice.code for notice in signal_notices(test, interval, n_classes, None)]
    assert codes == ([] if expected == "signal" else [expected])


def test_random_panels_that_do_as_well_are_noticed_where_there_seems_to_be_signal():
    control = {
        "selected": Interval(0.8, 0.7, 0.9, 0.95),
        "random": Interval(0.75, 0.6, 0.9, 0.95),
        "difference": Interval(0.05, -0.01, 0.11, 0.95),
    }
    for test, score, noticed in (
        (_test(0.01, 99, False), ACROSS, True),
        (None, ABOVE, True),
        (_test(0.5, 99, False), ACROSS, False),
    ):
        codes = [n.code for n in signal_notices(test, Interval(*score, 0.95), 2, control)]
        assert ("random" in codes) is noticed
    # apart, the two overlap; fold by fold the selected panels are better
    control["difference"] = Interval(0.05, 0.01, 0.09, 0.95)
    assert signal_notices(_test(0.01, 99, False), Interval(*ACROSS, 0.95), 2, control) == []
