"""Bets against the ends of an interval:
against brute force, how often they hold, and beside the profile.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

import ibukit as ik
from ibukit._ground.threads import one_thread
from ibukit.domain.linear_functionals import parse_functionals
from ibukit.intervals.betting import Bets, Betting, least_upper
from ibukit.intervals.request import IntervalRequest
from ibukit.intervals.resampling import seeded
from ibukit.intervals.splitting import guess, split, tally_of
from test_intervals import LEVEL, MERGED, holds

SMOOTH = np.exp(-0.5 * ((np.arange(20) - 8) / 4) ** 2)
SMOOTH /= SMOOTH.sum()


def interval_request(tally, of=None, level=LEVEL, target="distribution"):
    functionals = parse_functionals(of, tally.alphabet)
    return IntervalRequest(tally, ik.mle(tally).distribution, functionals, level, target)


def simplex(k, steps):
    """All distributions whose probabilities are multiples of 1 / steps."""
    if k == 2:
        return np.array([(a, steps - a) for a in range(steps + 1)]) / steps
    return (
        np.array([(a, b, steps - a - b) for a in range(steps + 1) for b in range(steps + 1 - a)])
        / steps
    )


def instance(seed, k, mechanisms=1, n=400):
    rng = np.random.default_rng(seed)
    theta = rng.dirichlet(np.ones(k))
    made = [ik.MatrixMechanism(rng.dirichlet(np.ones(4), k)) for _ in range(mechanisms)]
    return sum(
        mechanism.simulate(rng.multinomial(n, theta), rng) for mechanism in made
    ), rng.uniform(size=k)


# The ends against brute force


@pytest.mark.parametrize("seed", range(20))
def test_the_programme_is_solved(seed):
    rng = np.random.default_rng(seed)
    k, shares = 5, rng.dirichlet(np.ones(3))
    w, gains = rng.normal(size=k), rng.normal(size=(3, k)) - rng.uniform(-0.5, 1)
    solution = linprog(
        -np.concatenate([s * w for s in shares]),
        A_ub=-np.concatenate([s * g for s, g in zip(shares, gains, strict=True)])[None],
        b_ub=[0.0],
        A_eq=np.kron(np.eye(3), np.ones(k)),
        b_eq=np.ones(3),
    )
    found = least_upper(w, list(zip(shares, gains, strict=True)))
    if solution.status == 0:
        assert found == pytest.approx(-solution.fun, abs=1e-9)
    else:
        assert (shares @ gains.max(axis=1)) < 0


@pytest.mark.parametrize("mechanisms", [1, 2])
@pytest.mark.parametrize(("seed", "k"), [(0, 2), (1, 2), (2, 3), (3, 3), (4, 3)])
def test_the_end_is_that_of_the_bets(seed, k, mechanisms):
    """All distributions under which the bets have not won too much, one after the other."""
    tally, w = instance(seed, k, mechanisms)
    region = Betting(interval_request(tally, w), seed=seed, share=0.1)
    unit = (w - w.min()) / np.ptp(w)
    grid = simplex(k, 400)
    won = math.log((1 - LEVEL) / 2) * np.ones(len(grid))
    for bets in region._bets:
        bet = bets.against(unit)
        won += bet.gained
        won -= sum(
            bets.n * s * np.log(grid @ g) for s, g in zip(bets.shares, bet.gains, strict=True)
        )
    highest = (grid @ w)[won <= 0].max()
    upper = region.highest(w)
    assert highest <= upper + 1e-12
    assert upper <= highest + 0.02  # the grid, and Jensen's inequality


@pytest.mark.parametrize("seed", range(3))
def test_the_end_of_the_frequencies_is_that_of_the_bets(seed):
    tally, _ = instance(seed, 2)
    w = np.array([0.0, 1.0])
    region = Betting(interval_request(tally, w, target="frequencies"), seed=seed, share=0.3)
    pilot, main = np.meshgrid(np.linspace(0, 1, 401), np.linspace(0, 1, 401))
    won, answer = np.full(pilot.shape, math.log((1 - LEVEL) / 2)), np.zeros(pilot.shape)
    for bets, has in zip(region._bets, (pilot, main), strict=True):
        bet = bets.against(w)
        (gains,) = bet.gains
        won += bet.gained - bets.n * ((1 - has) * np.log(gains[0]) + has * np.log(gains[1]))
        answer += bets.n / tally.n * has
    highest = answer[won <= 0].max()
    assert highest - 1e-12 <= region.highest(w) <= highest + 0.01


@pytest.mark.parametrize("seed", range(5))
def test_what_bets_pay_is_what_they_are_expected_to(seed):
    """Against any distribution the mean of lam_z / g is 1:
    the reports one at a time have the payments.
    """
    rng = np.random.default_rng(seed)
    mechanism = ik.MatrixMechanism(rng.dirichlet(np.ones(4), 3))
    guessed, w = rng.dirichlet(np.ones(3)), np.array([0.0, 0.3, 1.0])
    placed = [Bets(mechanism.tally([z]), guessed, 1e-4).against(w) for z in range(4)]
    payments = np.exp([bet.gained for bet in placed])
    np.testing.assert_allclose(placed[0].gains[0], mechanism.matrix() @ payments, rtol=1e-10)
    assert np.ptp(payments) > 1e-3


# How often they hold


class Greedy(Betting):
    """The control: bets designed from the reports
    that they are laid on, at fifty times the risk.
    """

    def __init__(self, request, seed, share):
        bold = replace(request, level=max(0.0, 1 - 50 * (1 - request.level)))
        super().__init__(bold, seed, share)
        tally = request.checked_tally()
        _, main = (tally_of(tally, counts) for counts in split(tally, share, seeded(seed)))
        self._bets[1] = Bets(main, guess(main), self._price / tally.n)


def covers(make, theta, n, draws, level, target="distribution", kind=Betting):
    """Of each of the draws, whether the true answer about the first secret is in the interval.

    `make` makes a tally of the numbers of people with each secret.
    """
    rng, w = np.random.default_rng(8), np.eye(len(theta))[0]
    for draw in range(draws):
        people = (
            rng.multinomial(n, theta)
            if target == "distribution"
            else np.round(np.multiply(n, theta)).astype(int)
        )
        tally = make(people, rng)
        with one_thread():
            region = kind(interval_request(tally, w, level, target), draw, 0.1)
            held = -region.highest(-w) <= theta[0] <= region.highest(w)
        yield held


def by_three(people, rng):
    """Each person has one of three mechanisms."""
    made = [ik.RandomizedResponse(len(people), epsilon) for epsilon in (0.5, 1.0, 2.0)]
    drawn = rng.multivariate_hypergeometric(people, people.sum() // 3)
    second = rng.multivariate_hypergeometric(people - drawn, people.sum() // 3)
    return sum(
        mechanism.simulate(part, rng)
        for mechanism, part in zip(made, (drawn, second, people - drawn - second), strict=True)
    )


SETTINGS = {
    "vertex": (ik.RandomizedResponse(5, 1.0).simulate, [1.0, 0, 0, 0, 0], 300, 100),
    "few": (ik.RandomizedResponse(5, 1.0).simulate, [0.2, 0.4, 0.2, 0.1, 0.1], 20, 100),
    "singular": (MERGED.parts[0].mechanism.simulate, [0.6, 0.2, 0.2], 100, 100),
    "pooled": (by_three, [0.5, 0.3, 0.2], 600, 100),
    "line": (ik.TruncatedGeometric(20, 0.3).simulate, SMOOTH, 20_000, 40),
}


# of the people's own frequencies, where hardly anybody reports and on a line; `make slow` has the
# others
QUICK = {
    ("few", "frequencies"),
    ("line", "frequencies"),
    *((name, "distribution") for name in SETTINGS),
}
HELD = [
    pytest.param(name, target, marks=[] if (name, target) in QUICK else pytest.mark.slow)
    for name in SETTINGS
    for target in ("distribution", "frequencies")
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "target"), HELD)
def test_bets_hold(name, target):
    draws = SETTINGS[name][-1]
    assert holds(covers(*SETTINGS[name], LEVEL, target), LEVEL, draws)


def test_greedy_bets_are_seen_not_to_hold():
    inside = (ik.RandomizedResponse(5, 1.0).simulate, [0.2, 0.4, 0.2, 0.1, 0.1], 300, 150)
    assert not holds(covers(*inside, 0.99, kind=Greedy), 0.99, 150)
    assert holds(covers(*inside, 0.99), 0.99, 150)


def test_people_who_differ_between_mechanisms_are_counted_as_they_are():
    """Half the people are one and half the other, each with a mechanism of their own:
    no one distribution fits.
    """
    one, other = ik.RandomizedResponse(2, 3.0), ik.RandomizedResponse(2, 2.0)
    rng = np.random.default_rng(3)
    estimate = ik.mle(one.simulate([5000, 0], rng) + other.simulate([0, 5000], rng))
    for by in ("boxes", "betting"):
        lower, upper = estimate.interval(
            LEVEL, of=[1, 0], method="guaranteed", target="frequencies", by=by
        )
        assert lower < 0.5 < upper
        assert upper - lower < 0.2
    with pytest.raises(ValueError, match="does not fit"):
        estimate.interval(LEVEL, of=[1, 0], method="guaranteed")


# How wide they are


def test_bets_are_not_much_wider_than_the_profile():
    tally = ik.TruncatedGeometric(20, 0.3).simulate(
        np.random.default_rng(1).multinomial(20_000, SMOOTH), np.random.default_rng(2)
    )
    estimate = ik.mle(tally)
    width = {}
    for name, options in {
        "profile": {},
        "guaranteed": {"by": "betting"},
        "boxes": {"by": "boxes"},
    }.items():
        method = "guaranteed" if options else "profile"
        lower, upper = estimate.interval(0.95, method=method, **options)
        width[name] = (upper - lower).mean()
    assert width["profile"] < width["guaranteed"] < 1.7 * width["profile"]
    assert width["guaranteed"] < width["boxes"]


def test_many_mechanisms_are_where_boxes_are_wide():
    theta, rng = np.array([0.5, 0.3, 0.2]), np.random.default_rng(4)
    tally = sum(
        ik.RandomizedResponse(3, epsilon).simulate(rng.multinomial(300, theta), rng)
        for epsilon in np.linspace(0.5, 2, 26)
    )
    estimate = ik.mle(tally)
    ends = [
        estimate.interval(0.95, of=[1, 0, 0], **options)
        for options in (
            {"method": "profile"},
            {"method": "guaranteed", "by": "betting"},
            {"method": "guaranteed"},
        )
    ]
    profile, bets, boxes = (upper - lower for lower, upper in ends)
    assert profile < bets < 1.8 * profile < boxes


# What cannot be asked


def test_one_seed_has_one_answer():
    tally, w = instance(5, 3)
    estimate = ik.mle(tally)
    one, again, other = (
        estimate.interval(of=w, method="guaranteed", by="betting", seed=seed) for seed in (1, 1, 2)
    )
    assert one == again != other


def test_bad_ways_are_named():
    estimate = ik.mle(ik.RandomizedResponse(3, 1.0).tally_counts([5, 3, 2]))
    with pytest.raises(
        ValueError, match=r"by must be one of 'binomial', 'region', 'boxes', .*, got 'dice'"
    ):
        estimate.interval(method="guaranteed", by="dice")
    with pytest.raises(ValueError, match="share must be in"):
        estimate.interval(method="guaranteed", by="betting", share=1.0)
    with pytest.raises(ValueError, match="seed must be at least 0"):
        estimate.interval(method="guaranteed", by="betting", seed=-1)
    with pytest.raises(ValueError, match="at least 2 reports to be split in two, got 1"):
        ik.mle(ik.RandomizedResponse(3, 1.0).tally([1])).interval(method="guaranteed", by="betting")
    with pytest.raises(ValueError, match="reports that can be listed"):
        ik.mle(ik.PlanarGeometric(ik.Grid(2, 2), 1.0).tally([[0, 0], [-1, 3], [0, 1]])).interval(
            method="guaranteed", by="betting"
        )
    bits = ik.mle(ik.Rappor(40, 3.0).simulate([5] * 40, np.random.default_rng(1)))
    with pytest.raises(ik.errors.TooLarge, match="reports of 40 secrets"):
        bits.interval(method="guaranteed", by="betting")


def test_reports_that_no_distribution_makes_are_named():
    tally = ik.RandomizedResponse(2, 0.1).tally_counts([10_000, 0])
    for target in ("distribution", "frequencies"):
        with pytest.raises(ValueError, match="does not fit its mechanism"):
            ik.mle(tally).interval(method="guaranteed", by="betting", target=target)


def test_an_end_beyond_the_simplex_is_at_its_boundary():
    """Fewer reports than even the vertex makes: what is left over is the vertex, no error."""
    tally = ik.RandomizedResponse(5, 1.0).tally_counts([126, 30, 52, 46, 46])
    lower, upper = ik.mle(tally).interval(0.95, method="guaranteed", by="betting")
    assert (lower <= upper).all()
    assert lower.min() == 0
