"""The incremental loop against its definition:
the cycle, what the paper leaves open, and what is refused.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ibukit as ik
import ibukit_claims as claims

GRID = ik.Grid(3, 4)
COUNTS = np.array([400, 0, 30, 10, 5, 0, 200, 80, 0, 0, 15, 60])
TRUTH = COUNTS / COUNTS.sum()
START = ik.normalize(np.arange(1, 13))
OTHER = ik.normalize(np.arange(12, 0, -1))


def oracle(tallies, beta, ba_steps, ibu_steps, start, ba_start, restart, average):
    """Algorithm 1 line by line, on the reports that were drawn:
    the distributions and the mechanisms.

    A mechanism is made for the distribution in whole multiples of 2^-20, which the paper does not
    say.
    """
    kernel = np.exp(-beta * GRID.distances())
    theta, seen, thetas, channels = start, 0, [start], []
    for counts in tallies:
        c, steps = ba_start, np.round(theta * 2**20)
        for _ in range(ba_steps):
            channel = c * kernel / (kernel @ c)[:, None]
            c = steps / steps.sum() @ channel
        mu, q = (start if restart else theta), counts / counts.sum()
        for _ in range(ibu_steps):
            mu = mu * (channel @ (q / (mu @ channel)))
        theta = (counts.sum() * mu + seen * theta) / (counts.sum() + seen) if average else mu
        seen += counts.sum()
        thetas.append(theta)
        channels.append(channel)
    return thetas, channels


@pytest.mark.parametrize(("beta", "stays"), [(np.log(2), True), (2.0, False)])
def test_it_finds_the_truth_only_where_the_kernel_is_invertible(beta, stays):
    # the graph metric of K_3,3: exp(-beta d) is singular at log 2, and the loop cannot tell the
    # truth from its start
    side = np.repeat([0, 1], 3)
    d = np.where(side[:, None] == side, 2.0, 1.0) - 2 * np.eye(6)
    truth = np.array([9, 9, 9, 1, 1, 1]) / 30
    loop = ik.Privic(ik.Alphabet(range(6), d), beta)
    for _ in range(60):  # reports exactly as expected
        M = loop.mechanism()
        loop.collect(M.tally_counts(np.rint(3e6 * (truth @ M.matrix())).astype(int)))
    assert bool(np.linalg.matrix_rank(np.exp(-beta * d)) < 6) is stays
    np.testing.assert_allclose(
        loop.distribution, ik.uniform(6) if stays else truth, atol=1e-9 if stays else 0.01
    )


@pytest.mark.ledger("E-A1")
@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("combine", ["last", "average"])
@pytest.mark.parametrize("starts", [{}, {"start": START, "ba_start": OTHER}])
def test_the_loop_is_the_papers(restart, combine, starts, rng):
    loop = ik.Privic(GRID, 0.7, 3, 4, restart=restart, combine=combine, **starts)
    counts, channels = [], []
    for cycle in range(5):
        channels.append(loop.mechanism().matrix())
        users = COUNTS if cycle != 2 else 3 * COUNTS  # cycles of different size, for the weights
        tally = loop.mechanism().simulate(users, rng)
        counts.append(np.bincount(tally.parts[0].reports, tally.counts, 12).astype(int))
        loop.collect(tally)
    uniform = ik.uniform(12)
    thetas, expected = oracle(
        counts,
        0.7,
        3,
        4,
        starts.get("start", uniform),
        starts.get("ba_start", uniform),
        restart,
        combine == "average",
    )
    np.testing.assert_allclose(channels, expected, atol=1e-13)
    np.testing.assert_allclose(loop.distributions, thetas, atol=1e-13)
    assert loop.cycle == 5


def test_choices_that_differ_end_elsewhere(rng):
    """The oracle's test would pass if nothing depended on the choices: it does."""
    ends = [
        ik.Privic(GRID, 0.7, 3, 4, **choice).run(COUNTS, 4, seed=1).distribution
        for choice in (
            {},
            {"restart": True},
            {"combine": "average"},
            {"start": START},
            {"ba_start": OTHER},
        )
    ]
    assert min(np.abs(a - b).max() for i, a in enumerate(ends) for b in ends[:i]) > 1e-4


def test_without_steps_both_optima_are_certified(rng):
    loop = ik.Privic(GRID, 1.5, ba_steps=None, ibu_steps=None, tol=1e-11)
    for _ in range(3):
        theta, tally = loop.distribution, loop.mechanism().simulate(COUNTS, rng)
        optimum = ik.blahut_arimoto(ik.quantize(theta), GRID, 1.5, steps=None, tol=1e-11)
        assert loop.mechanism() == optimum
        estimate = loop.collect(tally)
        assert estimate.gap <= 1e-11
        np.testing.assert_allclose(estimate.log_likelihood, ik.mle(tally).log_likelihood, rtol=1e-9)
        assert estimate.status is ik.Status.CONVERGED


def test_the_estimate_carries_its_proof(rng):
    loop = ik.Privic(GRID, 0.7, 3, 4, combine="average")
    tallies = []
    for cycle in (1, 2, 3):
        tallies.append(loop.mechanism().simulate(COUNTS, rng))
        returned, estimate = loop.collect(tallies[-1]), loop.estimate()
        np.testing.assert_array_equal(estimate.distribution, loop.distribution)
        for each in (returned, estimate):
            assert (
                each.gap == ik.gap(tallies[-1], loop.distribution) == loop.history()["gap"][cycle]
            )
            assert (each.n_iter, each.status) == (4, ik.Status.STOPPED)
            assert each.tally.n == COUNTS.sum()
        assert f"cycle {cycle}" in estimate.method
        assert estimate.gap > 1e-6
        assert not estimate.distribution.flags.writeable
    pooled = loop.estimate(pooled=True)
    best = ik.mle(sum(tallies))
    assert max(pooled.gap, best.gap) <= 1e-9
    assert pooled.log_likelihood == pytest.approx(best.log_likelihood, abs=2e-9 * pooled.tally.n)
    assert pooled.tally.n == 3 * COUNTS.sum()
    assert [ours.n for ours in loop.tallies()] == [theirs.n for theirs in tallies]
    for ours, theirs in zip(loop.tallies(), tallies, strict=True):
        assert ours.parts[0].mechanism == theirs.parts[0].mechanism
        np.testing.assert_array_equal(ours.counts, theirs.counts)
    np.testing.assert_array_equal(
        loop.estimate().distribution, loop.distribution
    )  # pooling leaves the loop alone


def test_history_has_a_row_for_each_cycle():
    empty = ik.Privic(GRID).history()
    table = ik.Privic(GRID, ba_steps=2, ibu_steps=7).run(COUNTS, 3, seed=1).history()
    assert list(empty.columns) == list(table.columns) == ["n", "gap", "steps", "status", "method"]
    assert (empty.index.name, table.index.name, table.index.tolist()) == (
        "cycle",
        "cycle",
        [1, 2, 3],
    )
    assert table["n"].tolist() == [COUNTS.sum()] * 3
    assert table["steps"].tolist() == [7] * 3
    assert (table["gap"] > 0).all()


def test_a_provider_hands_in_an_estimate(rng):
    loop = ik.Privic(GRID, 0.7, 3, 4)
    tally = loop.mechanism().simulate(COUNTS, rng)
    theirs = 0.9 * ik.inv(tally).distribution + 0.1 / 12
    estimate = loop.collect(tally, theirs)
    np.testing.assert_array_equal(loop.distribution, theirs)
    assert estimate.gap == ik.gap(tally, theirs)
    assert loop.mechanism() == ik.blahut_arimoto(ik.quantize(theirs), GRID, 0.7, 3)
    tally = loop.mechanism().simulate(COUNTS, rng)
    smooth = ik.smooth(tally)
    estimate = loop.collect(tally, smooth)
    np.testing.assert_array_equal(loop.distribution, smooth.distribution)
    assert (estimate.n_iter, estimate.status) == (smooth.n_iter, smooth.status)
    theirs[:] = 0  # the loop keeps its own copy
    assert loop.distributions[1].sum() == pytest.approx(1)


def test_zeros_are_taken_where_no_update_starts_from_them(rng):
    zeros = np.array([0.5, 0.5, *np.zeros(10)])
    for choice in ({"restart": True}, {"ibu_steps": None}):
        loop = ik.Privic(GRID, **choice)
        loop.collect(loop.mechanism().simulate(COUNTS, rng), zeros)
        np.testing.assert_array_equal(loop.distribution, zeros)
        loop.collect(loop.mechanism().simulate(COUNTS, rng))
        assert (loop.distribution > 0).sum() > 2


def test_what_vanishes_in_a_long_run_does_not_end_it():
    """The middle of three is empty:
    each step takes a share of its probability, until a double holds no less.
    """
    loop = ik.Privic(3, beta=2.0, ba_steps=1, ibu_steps=300, start=[0.5, 1e-300, 0.5])
    loop.run(lambda mechanism, rng: mechanism.tally_counts([500, 1, 500]), 20, seed=1)
    assert loop.distributions[:, 1].min() == loop.distribution[1] == np.finfo(float).tiny
    assert loop.distribution.sum() == pytest.approx(1, abs=1e-12)


@settings(max_examples=30)
@given(st.integers(2, 6), st.integers(0, 2**32), st.floats(0.05, 4), st.sampled_from([1, 8, None]))
def test_every_mechanism_keeps_the_promised_level(k, seed, beta, steps):
    rng = np.random.default_rng(seed)
    loop = ik.Privic(
        k, beta, ba_steps=steps, ibu_steps=5, start=0.99 * rng.dirichlet(np.ones(k)) + 0.01 / k
    )
    for _ in range(3):
        assert ik.privacy.epsilon_metric(loop.mechanism()) <= 2 * beta * (1 + 1e-9)
        loop.collect(loop.mechanism().simulate(rng.integers(1, 50, size=k), rng))


def test_a_run_does_not_depend_on_where_it_was_cut():
    whole = ik.Privic(GRID).run(COUNTS, 6, seed=3)
    parts = ik.Privic(GRID)
    for cycles in (1, 4, 4, 6, 2):
        assert parts.run(COUNTS, cycles, seed=3) is parts
    np.testing.assert_array_equal(parts.distributions, whole.distributions)
    assert parts.cycle == 6
    other = ik.Privic(GRID).run(COUNTS, 6, seed=4)
    assert (other.distributions[1:] != whole.distributions[1:]).any(axis=1).all()


def test_every_cycle_draws_its_own_numbers():
    drawn = []

    def draw(mechanism, rng):
        drawn.append(rng.integers(2**62))
        return mechanism.simulate(COUNTS, rng)

    ik.Privic(GRID).run(draw, 5, seed=3)
    assert len(set(drawn)) == 5


def test_a_population_may_be_a_data_set_its_counts_or_a_function():
    paris = ik.datasets.load_gowalla("privic_paris")
    populations = (
        paris,
        paris.counts,
        lambda mechanism, rng: mechanism.simulate(paris.counts, rng),
    )
    ends = [
        ik.Privic(paris.alphabet).run(population, 2, seed=1).distribution
        for population in populations
    ]
    np.testing.assert_array_equal(ends[0], ends[1])
    np.testing.assert_array_equal(ends[0], ends[2])


def test_callbacks_see_every_cycle_and_nothing_is_printed(capsys):
    seen, also = [], []
    loop = ik.Privic(GRID).run(
        COUNTS, 3, seed=1, callbacks=[lambda P: seen.append(P.cycle), also.append]
    )
    assert seen == [1, 2, 3]
    assert all(each is loop for each in also)
    assert capsys.readouterr() == ("", "")


def test_a_callback_that_fails_leaves_the_cycle_finished():
    def fail(loop):
        raise RuntimeError("enough")

    loop = ik.Privic(GRID)
    with pytest.raises(RuntimeError, match="enough"):
        loop.run(COUNTS, 3, seed=1, callbacks=[fail])
    np.testing.assert_array_equal(
        loop.run(COUNTS, 3, seed=1).distributions, ik.Privic(GRID).run(COUNTS, 3, 1).distributions
    )


def published(table, place, row):
    """The mean of the five rounds that the paper prints in a row of Table III or IV."""
    rows = claims.load_published("privic")
    found = rows[(rows["claim"] == table) & rows["setting"].str.startswith(f"{place}, N = {row}, ")]
    assert len(found) == 5
    return found["value"].mean()


def ends(city, beta, steps, cycles, **choices):
    data = ik.datasets.load_gowalla(city)
    loops = [
        ik.Privic(data.alphabet, beta, *steps, **choices).run(data, cycles, seed)
        for seed in range(5)
    ]
    return np.mean([ik.emd(loop.distribution, data.distribution, data.alphabet) for loop in loops])


@pytest.mark.parametrize("beta", [1.0, 0.5])
@pytest.mark.parametrize("row", [2, 6, 15])
def test_table_iii_follows(beta, row):
    """Row N is N - 1 cycles after the start; a round's scatter is 3 to 6 %."""
    printed = published("E-TIII", f"Paris, beta = {beta:g}", row)
    assert ends("privic_paris", beta, (8, 10), row - 1) == pytest.approx(printed, rel=0.06)


@pytest.mark.parametrize("beta", [1.0, 0.5])
def test_table_iv_follows(beta):
    printed = published("E-TIV", f"San Francisco, beta = {beta:g}", 8)
    assert ends("privic_san_francisco", beta, (5, 5), 7) == pytest.approx(printed, rel=0.015)


@pytest.mark.parametrize("choice", [{"combine": "average"}, {"restart": True}])
def test_table_iii_does_not_follow_from_the_other_choices(choice):
    """Neither from the average of Algorithm 1 nor from the published program's new starts."""
    assert ends("privic_paris", 1.0, (8, 10), 14, **choice) > 1.25 * published(
        "E-TIII", "Paris, beta = 1", 15
    )


def test_reports_of_another_mechanism_are_refused(rng):
    loop = ik.Privic(GRID, 0.7)
    first = loop.mechanism().simulate(COUNTS, rng)
    loop.collect(first)
    second = loop.mechanism().simulate(COUNTS, rng)
    with pytest.raises(
        ik.errors.MechanismMismatch, match="of cycle 2, but they came through that of cycle 1"
    ):
        loop.collect(first)
    with pytest.raises(ik.errors.MechanismMismatch, match="another than any of this loop's"):
        loop.collect(ik.PlanarLaplace(GRID, 1.0).simulate(COUNTS, rng))
    with pytest.raises(ik.errors.MechanismMismatch, match="pools 2"):
        loop.collect(first + second)
    assert loop.cycle == 1
    loop.collect(second)
    assert loop.cycle == 2


def test_an_equal_mechanism_is_as_good(rng):
    loop, twin = ik.Privic(GRID), ik.Privic(GRID)
    assert twin.mechanism() is not loop.mechanism()
    loop.collect(twin.mechanism().simulate(COUNTS, rng))
    assert loop.cycle == 1


TALLY = ik.Privic(GRID).mechanism().simulate(COUNTS, np.random.default_rng(1))


@pytest.mark.parametrize(
    ("tally", "estimate", "error", "message"),
    [
        (COUNTS, None, TypeError, "tally must be a Tally"),
        (
            ik.Privic(12).mechanism().tally([3]),
            None,
            ik.errors.AlphabetMismatch,
            r"Grid\(3, 4.*Line\(0, 11\)",
        ),
        (
            TALLY,
            ik.uniform(11),
            ik.errors.AlphabetMismatch,
            "estimate must have one probability for each of the 12",
        ),
        (TALLY, COUNTS, ik.errors.InvalidDistribution, "estimate must sum to 1"),
        (
            TALLY,
            TRUTH,
            ik.errors.InvalidDistribution,
            "estimate must not have zeros, but entry 1 is 0",
        ),
        (
            TALLY,
            ik.ibu(ik.RandomizedResponse(12, 1.0).tally([1])),
            ik.errors.AlphabetMismatch,
            "estimate must be of Grid",
        ),
        (TALLY, ik.inv(TALLY, post="none"), ik.errors.InvalidDistribution, "estimate"),
    ],
)
def test_what_cannot_be_collected_changes_nothing(tally, estimate, error, message):
    loop = ik.Privic(GRID)
    with pytest.raises(error, match=message):
        loop.collect(tally, estimate)
    assert loop.cycle == 0
    loop.collect(TALLY)
    assert loop.cycle == 1


def test_no_estimate_without_reports():
    for pooled in (False, True):
        with pytest.raises(ValueError, match="no reports yet"):
            ik.Privic(GRID).estimate(pooled)
    assert ik.Privic(GRID).tallies() == ()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"beta": 0}, ValueError, "beta must be a finite number above 0, got 0"),
        ({"beta": -1.0}, ValueError, "beta must be a finite number above 0, got -1.0"),
        ({"beta": float("nan")}, ValueError, "beta must be a finite number above 0, got nan"),
        ({"alphabet": 0}, ValueError, "alphabet must be at least 1"),
        ({"ba_steps": 0}, ValueError, "ba_steps must be at least 1"),
        ({"ibu_steps": 2.5}, ValueError, "ibu_steps must be a whole number"),
        (
            {"start": TRUTH},
            ik.errors.InvalidDistribution,
            "start must not have zeros, but entry 1 is 0 and neither BA nor IBU",
        ),
        ({"ba_start": TRUTH}, ik.errors.InvalidDistribution, "ba_start must not have zeros"),
        ({"start": COUNTS}, ik.errors.InvalidDistribution, "start must sum to 1"),
        (
            {"start": ik.uniform(5)},
            ik.errors.AlphabetMismatch,
            "start must have one probability for each of the 12",
        ),
        (
            {"ba_start": START, "ba_steps": None},
            ValueError,
            "ba_start must be left out with ba_steps=None",
        ),
        ({"restart": "yes"}, TypeError, "restart must be True or False, got 'yes'"),
        ({"combine": "sum"}, ValueError, 'combine must be "last" or "average", got \'sum\''),
        ({"tol": 0.0}, ValueError, "tol must be a finite number above 0"),
    ],
)
def test_bad_arguments_are_named(change, error, message):
    with pytest.raises(error, match=message):
        ik.Privic(**{"alphabet": GRID} | change)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"cycles": -1}, ValueError, "cycles must be at least 0"),
        ({"seed": -1}, ValueError, "seed must be at least 0"),
        ({"seed": None}, ValueError, "seed must be a whole number"),
        (
            {"population": COUNTS[1:]},
            ik.errors.AlphabetMismatch,
            "population must have one count for each of the 12",
        ),
        ({"population": -COUNTS}, ValueError, "population must not be negative"),
        (
            {"population": ik.datasets.load_gowalla("privic_paris")},
            ik.errors.AlphabetMismatch,
            "population must be over",
        ),
        ({"population": lambda mechanism, rng: COUNTS}, TypeError, "tally must be a Tally"),
    ],
)
def test_bad_runs_are_named(change, error, message):
    with pytest.raises(error, match=message):
        ik.Privic(GRID).run(**{"population": COUNTS, "cycles": 2, "seed": 1} | change)
