"""Estimates: one frozen type for all estimators, which prints on a line,
travels, and knows its reports.
"""

import pickle

import numpy as np
import pytest

import ibukit as ik

MECHANISM = ik.RandomizedResponse(ik.Line(17, 20, unit="year"), 1.0)
TALLY = MECHANISM.tally_counts([40, 30, 20, 10])
# 97 of 100 report one thing, which the mechanism does for no secret: no distribution fits
BAD_FIT = MECHANISM.tally_counts([97, 1, 1, 1])
ALL = {
    "ibu": ik.ibu(TALLY),
    "ibu, unfinished": ik.ibu(TALLY, stop=ik.Gap(1e-12), max_iter=3),
    "ibu, stopped": ik.ibu(TALLY, stop=ik.Steps(5)),
    "ibu, hopeless": ik.ibu(BAD_FIT, stop=ik.Discrepancy()),
    "mle": ik.mle(TALLY),
    "inv": ik.inv(TALLY),
    "raw inv": ik.inv(BAD_FIT, post="none"),
}
STATUS = {
    "ibu": ik.Status.CONVERGED,
    "ibu, unfinished": ik.Status.MAX_ITER,
    "ibu, stopped": ik.Status.STOPPED,
    "ibu, hopeless": ik.Status.OUT_OF_REACH,
    "mle": ik.Status.CLOSED_FORM,
    "inv": ik.Status.CLOSED_FORM,
    "raw inv": ik.Status.OFF_SIMPLEX,
}
kinds = pytest.mark.parametrize("name", ALL)


@kinds
def test_status(name):
    assert ALL[name].status is STATUS[name]


def test_every_status_says_in_words_what_it_means():
    assert set(ik.Status) == set(STATUS.values())
    assert len({status.value for status in ik.Status}) == len(STATUS) - 1  # two of them converged
    assert all(len(status.value.split()) >= 5 for status in ik.Status)


@kinds
def test_it_prints_on_one_line_what_must_be_recorded_with_every_number(name):
    estimate = ALL[name]
    shown = repr(estimate)
    assert "\n" not in shown
    for word in (
        "k=4",
        f"n_iter={estimate.n_iter}",
        "nats/report",
        estimate.status.name,
        estimate.method,
    ):
        assert word in shown


@kinds
def test_it_is_frozen(name):
    estimate = ALL[name]
    with pytest.raises(AttributeError):
        estimate.n_iter = 0
    with pytest.raises(ValueError, match="read-only"):
        estimate.distribution[:] = 0.25


@kinds
def test_it_travels(name):
    estimate = ALL[name]
    again = pickle.loads(pickle.dumps(estimate))
    assert np.array_equal(again.distribution, estimate.distribution)
    for field in ("log_likelihood", "gap", "status", "n_iter", "method", "alphabet"):
        assert getattr(again, field) == getattr(estimate, field)
    assert np.array_equal(again.tally.counts, estimate.tally.counts)


@kinds
def test_it_keeps_the_alphabet_and_the_reports(name):
    assert ALL[name].alphabet == MECHANISM.alphabet
    assert ALL[name].alphabet.unit == "year"
    assert ALL[name].tally.n == 100


@kinds
def test_steps_are_counted_where_there_are_any(name):
    # the hopeless one is seen to be so at its start
    stepped = (ik.Status.CONVERGED, ik.Status.STOPPED, ik.Status.MAX_ITER)
    assert (ALL[name].n_iter > 0) is (STATUS[name] in stepped)


def test_the_method_says_how_it_stopped():
    assert ik.ibu(TALLY, stop=ik.Steps(5)).method == "ibu, Steps(n=5)"
    assert (
        ik.ibu(TALLY, stop=ik.Change(1e-3, of="distribution")).method
        == "ibu, Change(tol=0.001, of='distribution')"
    )
    assert ik.mle(TALLY).method.startswith("mle, ")
    assert ik.inv(TALLY).method == "INV-P"


def test_the_likelihood_is_minus_infinity_where_a_report_is_impossible():
    # v = (2.52, -1.53, 0.01): its projection is a point mass, under which the third report cannot
    # happen
    mechanism = ik.MatrixMechanism([[0.6, 0.4, 0.0], [0.4, 0.6, 0.0], [0.0, 0.0, 1.0]])
    estimate = ik.inv(mechanism.tally_counts([90, 9, 1]))
    assert estimate.distribution.tolist() == [1.0, 0.0, 0.0]
    assert (estimate.log_likelihood, estimate.gap) == (-np.inf, np.inf)
