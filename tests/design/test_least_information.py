"""The channel of least mutual information at a given loss:
against proofs of optimality and a long iteration.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ibukit as ik
from ibukit.design import least_information
from oracles import shokri as oracle


def beta_of(prior, matrix, loss):
    """The beta of A_xy ~ q_y exp(-beta loss),
    from the two most different possible losses of one row.
    """
    q = prior @ matrix
    made = np.flatnonzero(q > 1e-9)
    x = int(np.flatnonzero(prior > 0)[0])
    low, high = made[loss[x, made].argmin()], made[loss[x, made].argmax()]
    if loss[x, low] == loss[x, high]:
        return 0.0  # one report: no information, and any beta will do
    logs = np.log(matrix[x, [low, high]] / q[[low, high]])
    return (logs[0] - logs[1]) / (loss[x, high] - loss[x, low])


def assert_least_information(prior, matrix, loss, bound, tolerance=1e-9):
    """The channel attains a lower bound on the information of all channels with such a loss."""
    least = oracle.least_information(
        prior, loss, beta_of(prior, matrix, loss), prior @ matrix, bound
    )
    assert oracle.mutual_information(prior, matrix) == pytest.approx(least, abs=tolerance)


@settings(max_examples=60)
@given(st.integers(2, 8), st.integers(0, 2**32), st.sampled_from([1e-3, 0.1, 0.4, 0.8, 0.99]))
def test_no_channel_with_this_loss_has_less_information(k, seed, share):
    rng = np.random.default_rng(seed)
    loss, prior = rng.random((k, k)), rng.dirichlet(np.ones(k))
    least, most = float(prior @ loss.min(axis=1)), float((prior @ loss).min())
    bound = least + share * (most - least)
    matrix = ik.shokri(prior, ik.Alphabet(range(k)), bound, loss).matrix()
    assert_least_information(prior, matrix, loss, bound)


@pytest.mark.parametrize("bound", [1, 13, 24.5])
def test_no_channel_on_the_line_has_less_information(bound):
    line = ik.Line(0, 99)
    matrix = ik.shokri(ik.uniform(100), line, bound).matrix()
    assert_least_information(ik.uniform(100), matrix, line.distances(), bound)


@pytest.mark.parametrize("bound", [0.3, 3.0])
def test_no_channel_on_the_map_has_less_information(bound):
    grid = ik.datasets.load_gowalla("san_francisco").alphabet
    matrix = ik.shokri(ik.uniform(384), grid, bound).matrix()
    assert_least_information(ik.uniform(384), matrix, grid.distances(), bound)


@pytest.mark.parametrize("beta", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("seed", range(4))
def test_a_long_iteration_agrees(seed, beta):
    """Blahut and Arimoto's steps shed a probability
    that vanishes only slowly, hence so many of them.
    """
    line, prior = ik.Line(0, 5), np.random.default_rng(seed).dirichlet(np.ones(6))
    other = oracle.blahut_arimoto(prior, line.distances(), beta, steps=20_000)
    bound = float(prior @ (other * line.distances()).sum(axis=1))
    assert bound < float((prior @ line.distances()).min())
    np.testing.assert_allclose(ik.shokri(prior, line, bound).matrix(), other, atol=1e-10)


@settings(max_examples=40)
@given(st.integers(2, 7), st.integers(0, 2**32), st.sampled_from([0.05, 0.3, 0.7]))
def test_less_information_than_other_optima(k, seed, share):
    rng = np.random.default_rng(seed)
    line, prior = ik.Line(0, k - 1), rng.dirichlet(np.ones(k))
    most = float((prior @ line.distances()).min())
    least, vertex = (
        oracle.mutual_information(
            prior, ik.shokri(prior, line, share * most, choice=choice).matrix()
        )
        for choice in ("least-information", "vertex")
    )
    _, other = oracle.linear_programme(prior, line.distances(), line.distances(), share * most)
    constant = np.eye(k)[(prior @ line.distances()).argmin()]
    coin = oracle.mutual_information(prior, (1 - share) * np.eye(k) + share * constant)
    assert least <= vertex + 1e-9
    assert least <= oracle.mutual_information(prior, other) + 1e-6
    assert least <= coin + 1e-9


def test_two_values_in_closed_form():
    """A fair bit with Hamming loss Q: the binary symmetric channel, information log 2 - h(Q)."""
    for bound in (1e-300, 1e-12, 0.01, 0.11, 0.3, 0.499):
        matrix = ik.shokri([0.5, 0.5], 2, bound).matrix()
        np.testing.assert_allclose(matrix, [[1 - bound, bound], [bound, 1 - bound]], rtol=1e-9)


def test_many_values_in_closed_form():
    """Right or wrong among k equals: k-RR with the truth at 1 - Q."""
    mechanism = ik.shokri(ik.uniform(7), ik.Alphabet(range(7)), 0.4)
    same = ik.RandomizedResponse(ik.Alphabet(range(7)), np.log(0.6 / (0.4 / 6)))
    np.testing.assert_allclose(mechanism.matrix(), same.matrix(), atol=1e-12)


@pytest.mark.parametrize("bound", [0.2, 1.0, 1.9])
def test_a_symmetric_problem_has_a_symmetric_answer(bound):
    line = ik.shokri(ik.uniform(9), 9, bound).matrix()
    np.testing.assert_allclose(line, line[::-1, ::-1], atol=1e-10)
    grid = ik.Grid(4, 6)
    map_ = ik.shokri(ik.uniform(24), grid, bound).matrix().reshape(4, 6, 4, 6)
    np.testing.assert_allclose(map_, map_[::-1, :, ::-1], atol=1e-10)
    np.testing.assert_allclose(map_, map_[:, ::-1, :, ::-1], atol=1e-10)


@pytest.mark.parametrize("share", [0.25, 0.5, 0.75])
def test_where_the_loss_jumps_two_channels_are_mixed(share):
    """A bit that may also be left out, at a price of 0.1:
    the curve of least information has a straight stretch.
    """
    price = 0.1
    loss = np.array([[0, 1, price], [1, 0, price], [5, 5, 5.0]])
    prior = np.array([0.5, 0.5, 0.0])
    # the stretch begins where exp(-beta price) / (1 + exp(-beta)) * 2 = 1
    source = least_information.RateDistortionProblem(prior, loss)
    beta = np.log(1 / _root(lambda e: 2 * e**price - 1 - e))
    wrong = np.exp(-beta) / (1 + np.exp(-beta))
    bound = share * wrong + (1 - share) * price
    matrix = least_information.solve_at_distortion(source, bound).channel
    expected = share * np.array([[1 - wrong, wrong, 0], [wrong, 1 - wrong, 0]]) + (
        1 - share
    ) * np.array([0, 0, 1])
    np.testing.assert_allclose(matrix[:2], expected, atol=1e-9)
    assert source.expected_excess(matrix) == pytest.approx(bound, rel=1e-12)
    assert oracle.mutual_information(prior[:2], matrix[:2]) == pytest.approx(
        oracle.least_information(
            prior[:2], loss[:2], beta, np.array([share / 2, share / 2, 1 - share]), bound
        ),
        abs=1e-9,
    )


def _root(f):
    low, high = 1e-12, 0.5
    for _ in range(200):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if f(middle) < 0 else (low, middle)
    return low


def test_without_information_the_best_constants_share_the_reports():
    for alphabet, prior, best in (
        (ik.Line(0, 3), ik.uniform(4), [1, 2]),
        (ik.Line(0, 3), [0.1, 0.5, 0.3, 0.1], [1]),
        (ik.Grid(2, 2), ik.uniform(4), [0, 1, 2, 3]),
    ):
        matrix = ik.shokri(prior, alphabet, 100).matrix()
        assert np.array_equal(matrix, np.tile(np.isin(range(4), best) / len(best), (4, 1)))


def test_beta_and_loss_lead_to_each_other():
    """The channel at a beta has a loss, at which the search finds the same channel."""
    source = least_information.RateDistortionProblem(
        ik.normalize(np.arange(1, 31)), ik.Line(0, 29).distances()
    )
    for beta in (0.06, 0.2, 1.0, 5.0, 30.0):
        channel = least_information.solve_at_beta(source, beta)
        again = least_information.solve_at_distortion(
            source, source.expected_excess(channel)
        ).channel
        np.testing.assert_allclose(again, channel, atol=1e-7)
    at_the_end = least_information.solve_at_beta(source, np.inf)
    assert np.array_equal(at_the_end, np.eye(30))
