"""The journal: other files are never touched, damage is named, parts share one file."""

import json
import os
import stat

import numpy as np
import pytest
from sklearn.feature_selection import SelectKBest

from sparsegsvp.evaluation import StabilitySelection, compare, journal, nested_evaluate, values
from sparsegsvp.evaluation.journal import Journal

HEADER = {"kind": "test", "data": "abc"}
QUICK = {"n_repeats": 1, "cv": 3, "n_permutations": 4, "permutation": "full"}
SMALL = {"sizes": (2, 5), "n_splits": 3, "n_repeats": 1}


def _make(path):
    with Journal(path, HEADER) as made:
        made.plan([("fold", 0), ("fold", 1)])
        made.add(("fold", 1), {"score": 0.25}, 1.5)
        made.add(("fold", 0), {"score": float("nan")}, 0.5)
        made.add(("other",), 1)
        made.finish()
    return path.read_bytes()


def _state(folder):
    return {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in folder.iterdir()}


def test_a_finished_log_is_canonical_and_can_be_read_again(tmp_path):
    content = _make(tmp_path / "a.jsonl")
    lines = [json.loads(line) for line in content.splitlines()]
    assert lines == [
        {"header": HEADER},
        {"key": ["fold", 0], "value": {"score": None}},
        {"key": ["fold", 1], "value": {"score": 0.25}},
    ]
    assert {p.name for p in tmp_path.iterdir()} == {"a.jsonl", "a.timings.jsonl"}
    with Journal(tmp_path / "a.jsonl", HEADER, resume=True) as again:
        assert again.records[("fold", 1)] == {"score": 0.25} and ("fold", 0) in again
        assert again.timings == {("fold", 1): 1.5, ("fold", 0): 0.5}
        again.add(("more",), 2)
        again.plan([("fold", 0)])
        again.finish(keep_others=True)
    keys = [json.loads(line).get("key") for line in (tmp_path / "a.jsonl").open()]
    assert keys == [None, ["fold", 0], ["fold", 1], ["more"]]


FOREIGN = [
    b"my notes, without an end",
    b"my notes\n",
    b'{"a": 1}\n{"b": 2}\n',
    b'{"a": 1}',
    b"[1, 2]\n",
    b"\x00\xff\xfe",
    b'{"header": 3}\n',
    b'{"header": {"kind": "test", "' + b"A" * 3000 + b'": 1}}\n',
    b'{"header": {"kind": "test", "data": "xyz"}}\n{"key": ["a"], "val',
]


@pytest.mark.parametrize("content", FOREIGN)
def test_a_file_that_is_not_ours_is_left_as_it_is(tmp_path, content):
    (tmp_path / "a.jsonl").write_bytes(content)
    before = _state(tmp_path)
    for resume in (True, False):
        with pytest.raises(ValueError, match=r"a\.jsonl") as refused:
            Journal(tmp_path / "a.jsonl", HEADER, resume=resume)
        assert len(str(refused.value)) < 1000
    assert _state(tmp_path) == before  # neither changed nor joined by another
    assert Journal(tmp_path / "b.jsonl", HEADER).close() is None


@pytest.mark.parametrize("content", [b"my measurements", b'{"key": [1], "seconds": 2}\n'])
@pytest.mark.parametrize("resume", [False, True])
def test_files_beside_the_log_are_left_as_they_are(tmp_path, content, resume):
    (tmp_path / "a.timings.jsonl").write_bytes(content)
    before = _state(tmp_path)
    with pytest.raises(ValueError, match=r"a\.timings\.jsonl is not a log"):
        Journal(tmp_path / "a.jsonl", HEADER, resume=resume)
    assert _state(tmp_path) == before
    (tmp_path / "c.jsonl.tmp").write_bytes(content)
    _make(tmp_path / "c.jsonl")
    assert (tmp_path / "c.jsonl.tmp").read_bytes() == content


def test_times_left_from_a_log_that_was_removed_are_dropped(tmp_path):
    content = _make(tmp_path / "a.jsonl")
    (tmp_path / "a.jsonl").unlink()
    with Journal(tmp_path / "a.jsonl", {"kind": "another"}) as fresh:
        assert fresh.timings == {} and fresh.records == {}
    (tmp_path / "a.jsonl").write_bytes(content)
    (tmp_path / "a.timings.jsonl").unlink()
    with Journal(tmp_path / "a.jsonl", HEADER, resume=True) as again:
        assert len(again.records) == 2 and again.timings == {}


@pytest.mark.parametrize(
    ("line", "number"),
    [
        (b"not json", 2),
        (b'{"key":["fold",0]}', 2),
        (b'{"key":"fold","value":1}', 2),
        (b'{"key":[["fold"],0],"value":1}', 2),
        (b"3", 2),
    ],
)
def test_damage_is_named_with_its_line_and_a_remedy(tmp_path, line, number):
    path = tmp_path / "a.jsonl"
    lines = _make(path).splitlines()
    lines[number - 1] = line
    path.write_bytes(b"\n".join(lines) + b"\n")
    before = _state(tmp_path)
    with pytest.raises(ValueError, match=rf"line {number} of .*a\.jsonl is damaged; remove"):
        Journal(path, HEADER, resume=True)
    assert _state(tmp_path) == before


@pytest.mark.parametrize("value", [{}, 3, {"scores": None, "control": None}, "x"])
def test_a_record_that_makes_no_sense_is_named(planted_small, procedure, tmp_path, value):
    X, y = planted_small
    path = tmp_path / "a.jsonl"
    nested_evaluate(procedure, X, y, log=path, **QUICK)
    lines = path.read_bytes().splitlines()
    for key in (["fold", 0, 1], ["final"]):
        number = next(i for i, line in enumerate(lines) if json.loads(line).get("key") == key)
        changed = list(lines)
        changed[number] = json.dumps({"key": key, "value": value}).encode()
        path.write_bytes(b"\n".join(changed) + b"\n")
        with pytest.raises(ValueError, match=rf"line {number + 1} of .*a\.jsonl is damaged"):
            nested_evaluate(procedure, X, y, log=path, resume=True, **QUICK)
    compare({"F": SelectKBest()}, X, y, log=tmp_path / "b.jsonl", **SMALL)
    lines = (tmp_path / "b.jsonl").read_bytes().splitlines()
    lines[3] = json.dumps({"key": ["F", 0, 2], "value": value}).encode()
    (tmp_path / "b.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    with pytest.raises(ValueError, match=r"line 4 of .*b\.jsonl is damaged"):
        compare({"F": SelectKBest()}, X, y, log=tmp_path / "b.jsonl", resume=True, **SMALL)


def test_two_writers_devices_folders_and_links(tmp_path):
    path = tmp_path / "a.jsonl"
    with Journal(path, HEADER), pytest.raises(ValueError, match="by another process"):
        Journal(path, HEADER, resume=True)
    with pytest.raises(ValueError, match="not a regular file"):
        Journal(tmp_path, HEADER, resume=True)
    with pytest.raises(ValueError, match="not a regular file"):
        Journal(os.devnull, HEADER, resume=True)
    assert not stat.S_ISREG(os.stat(os.devnull).st_mode)
    (tmp_path / "real").mkdir()
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "real" / "log.jsonl")
    _make(tmp_path / "link.jsonl")
    assert (tmp_path / "link.jsonl").is_symlink()
    assert (tmp_path / "real" / "log.jsonl").read_bytes().count(b"\n") == 3


def test_a_full_disk_is_said_and_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    path = tmp_path / "a.jsonl"
    with Journal(path, HEADER) as made:
        made.add(("a",), 1)
        monkeypatch.setattr(os, "replace", full)
        with pytest.raises(OSError, match=r"cannot be written \(No space left.*resume"):
            made.finish()
    assert {p.name for p in tmp_path.iterdir()} == {"a.jsonl", "a.timings.jsonl"}
    with Journal(path, HEADER, resume=True) as again:
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match=r"cannot be written .*a\.jsonl"):
            again.add(("b",), 1)
    monkeypatch.undo()
    assert ("a",) in Journal(path, HEADER, resume=True)


# --- with and without -----------------------------------------------------------------------


@pytest.fixture
def nothing_is_logged(monkeypatch):
    """Make hashing and JSON fail."""

    def refuse(*_):
        raise AssertionError("nothing is logged")

    for name in ("digest", "dumps", "plain"):
        monkeypatch.setattr(values, name, refuse)
    monkeypatch.setattr(journal, "dumps", refuse)
    yield
    monkeypatch.undo()


class _Infinite(SelectKBest):
    """Has infinite distances, which JSON cannot hold."""

    def predict(self, X):
        return np.where(X[:, 0] > 0.9, "case", "control")

    def distances(self, X):
        return np.column_stack([np.where(X[:, 0] > 0.9, np.inf, 1.0), np.ones(len(X))])


def test_without_a_log_nothing_is_hashed_and_the_results_are_the_same(
    planted_small, procedure, tmp_path, request
):
    X, y = planted_small
    methods = {"F": SelectKBest(), "own": procedure}
    stable = StabilitySelection(SelectKBest(k=3), n_resamples=4)
    works = {
        "nested": lambda **log: nested_evaluate(procedure, X, y, **QUICK, **log),
        "infinite": lambda **log: nested_evaluate(
            _Infinite(k=2), X, y, n_repeats=1, n_permutations=0, **log
        ),
        "compare": lambda **log: compare(methods, X, y, **SMALL, **log),
        "stability": lambda **log: stable.fit(X, y, **log).selections_.copy(),
    }
    logged = {name: work(log=tmp_path / f"{name}.jsonl") for name, work in works.items()}
    request.getfixturevalue("nothing_is_logged")
    bare = {name: work() for name, work in works.items()}
    request.getfixturevalue("monkeypatch").undo()
    np.testing.assert_array_equal(bare.pop("stability"), logged.pop("stability"))
    for name in bare:
        assert json.dumps(bare[name].to_dict()) == json.dumps(logged[name].to_dict())
    assert isinstance(bare["nested"].final_panel[0], int)


# --- one file for several parts -------------------------------------------------------------


def test_one_journal_holds_a_whole_run(planted_small, procedure, tmp_path):
    X, y = planted_small
    stable = StabilitySelection(SelectKBest(k=3), n_resamples=4)

    def run(path, **options):
        seen = []
        with Journal(path, HEADER, **options) as log:
            found = nested_evaluate(
                procedure, X, y, log=log, progress=lambda *a: seen.append(a), **QUICK
            )
            stable.fit(X, y, log=log, progress=lambda *a: seen.append(a))
            log.finish()
        return found.to_dict(), stable.selections_.copy(), seen

    whole = run(tmp_path / "whole.jsonl")
    content = (tmp_path / "whole.jsonl").read_bytes()
    keys = [json.loads(line)["key"] for line in content.splitlines()[1:]]
    assert [key[0] for key in keys] == ["fold"] * 3 + ["final"] + ["permutation"] * 5 + ["half"] * 4
    for cut in (0, len(content) // 3, len(content) - 1, len(content)):
        path = tmp_path / f"{cut}.jsonl"
        path.write_bytes(content[:cut])
        again = run(path, resume=True)
        assert path.read_bytes() == content
        assert again[0] == whole[0] and (again[1] == whole[1]).all()
    assert {done == total for _, done, total in again[2]} == {True}  # nothing was left to do
    assert again[0] == nested_evaluate(procedure, X, y, **QUICK).to_dict()


def test_a_log_of_stability_selection_resumes_and_may_grow(planted_small, tmp_path):
    X, y = planted_small
    path = tmp_path / "a.jsonl"
    few = StabilitySelection(SelectKBest(k=3), n_resamples=4).fit(X, y, log=path)
    seen = []
    more = StabilitySelection(SelectKBest(k=3), n_resamples=6, threshold=0.9)
    more.fit(X, y, log=path, resume=True, progress=lambda *a: seen.append(a[1:]))
    assert seen == [(4, 6), (5, 6), (6, 6)]
    np.testing.assert_array_equal(more.selections_[:4], few.selections_)
    with pytest.raises(ValueError, match="estimator differ"):
        StabilitySelection(SelectKBest(k=4), n_resamples=4).fit(X, y, log=path, resume=True)
    lines = path.read_bytes().splitlines()
    lines[2] = b'{"key":["half",1],"value":[70]}'
    path.write_bytes(b"\n".join(lines) + b"\n")
    with pytest.raises(ValueError, match=r"line 3 .* is damaged"):
        more.fit(X, y, log=path, resume=True)


def test_parts_of_a_journal_keep_the_same_keys_apart(tmp_path):
    path = tmp_path / "log.jsonl"
    with Journal(path, {"kind": "example"}) as journal:
        one, two = journal.part("one"), journal.part("two")
        for part, value in ((journal, 0), (one, 1), (two, 2)):
            part.plan([("fold", 0)])
            part.add(("fold", 0), value, seconds=0.5)
        assert [p.read(("fold", 0), int) for p in (journal, one, two)] == [0, 1, 2]
        with one:  # closing a part leaves the files open
            one.finish()
        two.add(("fold", 1), 3)
        two.forget([("fold", 1)])
        assert ("two", "fold", 1) not in journal and ("fold", 1) not in two
    with Journal(path, {"kind": "example"}, resume=True) as journal:
        assert journal.part("two").records == {("fold", 0): 2, ("fold", 1): 3}
        assert journal.part("one").timings == {("fold", 0): 0.5}
        assert journal.part("none").records == {}
