"""The race of intervals at tiny size: peers, enumeration, widths. Nothing here times anything."""

import sys

import numpy as np
import pytest

import ibukit as ik
from benchmarks import intervals
from benchmarks.peers import feldman_cousins, slsqp

TEST = ik.MatrixMechanism([[0.85, 0.15], [0.01, 0.99]])
SHARES = np.linspace(0, 1, 201)


@pytest.fixture
def case(monkeypatch):
    """Two secrets and ten people, beside a peer that needs no installation and one that fails."""
    monkeypatch.setattr(intervals, "TIMED", 1)
    monkeypatch.setattr(intervals, "ROUNDS", 1)

    def fails(matrix, counts, level):
        if counts[0] == 0:
            raise RuntimeError("no minimum")
        return 0.0, 1.0

    truths = np.c_[SHARES, 1 - SHARES]
    found = (feldman_cousins.share,)
    return intervals.enumerated("test", TEST, 10, truths, Feldman_Cousins=found, fails=(fails,))


def test_all_tallies_of_ten_people_are_there(case):
    assert case.tallies.tolist() == [[x, 10 - x] for x in range(11)]
    assert case.chances.sum(axis=1) == pytest.approx(1)
    assert len(intervals.enumerated("three", ik.RandomizedResponse(3, 2.0), 4, np.eye(3)).ours) == 3


def test_the_belt_is_the_exact_interval_within_its_grid(case):
    """Feldman and Cousins' table and our roots are two routes to one construction."""
    belt, exact = (
        intervals.ends(f, case.tallies)
        for f in (case.peers["Feldman-Cousins"], case.ours["calibrated"])
    )
    assert belt == pytest.approx(exact, abs=1.01 * np.diff(feldman_cousins.SHARES)[0])


def test_rows_compare_widths_and_count_who_fails(case):
    rows = {(row["ours"], row["peer"]): row for row in intervals.measured(case)}
    assert len(rows) == len(intervals.METHODS) * 2
    assert rows["calibrated", "Feldman-Cousins"]["width"] == pytest.approx(1, abs=2e-3)
    assert rows["calibrated", "Feldman-Cousins"]["their_least"] >= 0.95
    assert rows["profile", "Feldman-Cousins"]["our_least"] < 0.9
    broken = rows["calibrated", "fails"]
    assert broken["failed"] == 1
    # The interval of all shares holds wherever there is one, so nobody is missed but who fails.
    assert broken["their_least"] == pytest.approx(1 - 0.99**10)
    assert broken["width"] < 1


def test_programmes_of_scipy_find_the_profile():
    counts = np.array([12, 5, 3])
    mechanism = ik.RandomizedResponse(3, 2.0)
    expected = intervals.our_share(mechanism, "profile", counts)
    assert slsqp.share(mechanism.matrix(), counts, intervals.LEVEL) == pytest.approx(
        expected, abs=1e-5
    )
    drawn = intervals.drawn(300, 1)
    expected = drawn.ours["profile"](drawn.tallies[0])
    assert drawn.peers["SLSQP"](drawn.tallies[0]) == pytest.approx(expected, rel=1e-4, abs=1e-4)


def test_a_peer_that_is_not_installed_is_left_out(monkeypatch, capsys):
    for module in ("iminuit", "benchmarks.peers.minos"):
        monkeypatch.setitem(sys.modules, module, None)
    assert intervals.installed("minos", "share") is None
    assert capsys.readouterr().out.startswith("left out: minos: ")
    assert intervals.peers((np.eye(2),), MINOS=(None,)) == {}
