"""Trajectories of the posterior's chains:
arcs and reflections, the law they keep, and when chains take them.

The seeds are fixed; FALSE_ALARM is the rate at which a comparison would fail a correct program if
they were not.
"""

import numpy as np
import pytest
from scipy import optimize, stats

import ibukit as ik
from ibukit.bayes import _chains, _gibbs, _hamiltonian
from ibukit.bayes._chains import N_CHAINS, Chains
from ibukit.bayes._gibbs_kernels import travel
from ibukit.bayes._hamiltonian import MIN_CURVATURE, Trajectories
from ibukit.bayes._surrogate_metropolis import SurrogateMoves
from test_gibbs import FALSE_ALARM, TALLIES, assert_law
from tests.oracles import posterior as oracle


def height(t, centre, off, speed):
    return centre + off * np.cos(t) + speed * np.sin(t)


def by_small_steps(off, velocity, centre, covariance, time):
    """The same motion, every wall looked for in small steps:
    off, velocity and the walls met, in their order.
    """
    walls = []
    while True:
        grid = np.linspace(0, time, 4001)[:, None]
        inside = height(grid, centre, off, velocity)[1:] > 0
        if inside.all():
            turn = time
        else:
            step = int(np.argmin(inside.all(axis=1)))
            hit = np.flatnonzero(~inside[step])[0]
            first = grid[step, 0] if step else grid[1, 0] / 1e6  # not at the wall that was met last
            own = centre[hit], off[hit], velocity[hit]
            turn = optimize.brentq(height, first, grid[step + 1, 0], own, xtol=1e-15)
        off, velocity = (
            off * np.cos(turn) + velocity * np.sin(turn),
            velocity * np.cos(turn) - off * np.sin(turn),
        )
        if inside.all():
            return off, velocity, walls
        walls.append(hit)
        velocity = velocity - 2 * velocity[hit] / covariance[hit, hit] * covariance[:, hit]
        time -= turn


def motion(rng, k=4, wide=0.4):
    """Off, velocity, centre and covariance of a motion that begins inside the simplex."""
    root = rng.normal(size=(k, k - 1)) * wide
    root -= root.mean(axis=0)
    start = rng.dirichlet(np.ones(k))
    centre = start + 0.3 * wide * (root @ rng.normal(size=k - 1))
    return start - centre, root @ rng.normal(size=k - 1), centre, root @ root.T


def test_arcs_and_reflections_are_those_of_small_steps():
    met = []
    for seed in range(12):
        off, velocity, centre, covariance = motion(np.random.default_rng(seed))
        expected_off, expected_velocity, walls = by_small_steps(
            off, velocity, centre, covariance, 1.8
        )
        assert travel(off, velocity, centre, covariance, 1.8, 1000) == len(walls)
        np.testing.assert_allclose(off, expected_off, atol=1e-9)
        np.testing.assert_allclose(velocity, expected_velocity, atol=1e-9)
        met.append(len(walls))
    assert min(met) == 0
    assert max(met) >= 5


def test_a_trajectory_keeps_sum_and_energy_and_runs_backwards(rng):
    for _ in range(20):
        off, velocity, centre, covariance = motion(rng, k=6)
        precision = np.linalg.pinv(covariance)
        start, energy = off.copy(), off @ precision @ off + velocity @ precision @ velocity
        met = travel(off, velocity, centre, covariance, 1.8, 1000)
        assert (centre + off).sum() == pytest.approx(1, abs=1e-12)
        assert (centre + off).min() > -1e-12
        assert off @ precision @ off + velocity @ precision @ velocity == pytest.approx(
            energy, rel=1e-9
        )
        velocity *= -1
        assert travel(off, velocity, centre, covariance, 1.8, 1000) == met
        np.testing.assert_allclose(off, start, atol=1e-8)


def test_it_stops_after_too_many_walls():
    cases = [motion(np.random.default_rng(seed)) for seed in range(12)]
    counts = [travel(*(each.copy() for each in case), 1.8, 1000) for case in cases]
    most = max(counts)
    case = cases[counts.index(most)]
    assert travel(*(each.copy() for each in case), 1.8, most) == most
    assert travel(*(each.copy() for each in case), 1.8, most - 1) == most
    assert travel(*(each.copy() for each in case), 1.8, 1) == 2


def parabola(rng, alpha=1.0):
    """A walk's parabola on three secrets whose peak is outside the simplex."""
    tally = ik.RandomizedResponse(3, 1.0).tally_counts([20, 9, 1])
    root = rng.normal(size=(3, 3))
    return SurrogateMoves(
        tally,
        np.full(3, alpha),
        np.array([0.3, 0.3, 0.4]),
        np.array([5.0, -90.0, 4.0]),
        20 * root @ root.T,
    )


def assert_law_of_the_parabola(moves, draws):
    nodes, weights = oracle.simplex_rule(np.ones(3), 60)
    off = nodes - moves.centre
    curved = moves.hessian + MIN_CURVATURE * np.eye(3)
    weights = weights * np.exp(off @ moves.slope - (off @ curved * off).sum(axis=1) / 2)
    weights /= weights.sum()
    misses = np.concatenate([draws**power - weights @ nodes**power for power in (1, 2)], axis=2)
    z = np.abs(misses.mean(axis=(0, 1))) / _gibbs._arviz().mcse(misses, chain_axis=0, draw_axis=1)
    assert z.max() <= stats.norm.isf(FALSE_ALARM / 2 / len(z)), f"{z.max():.1f} standard errors off"


def ends(trajectories, rng, n=4000):
    draws = np.empty((4, n, 3))
    for chain in draws:
        p = rng.dirichlet(np.ones(3))
        for i in range(n):
            end, _ = trajectories.end(p, rng)
            chain[i] = p = p if end is None else end  # some meet too many walls
    return draws


def test_ends_have_the_law_of_the_parabola_on_the_simplex(monkeypatch, rng):
    moves = parabola(rng)
    trajectories = Trajectories.of(moves)
    assert (trajectories.centre < 0).any()
    assert_law_of_the_parabola(moves, ends(trajectories, rng))
    assert_law_of_the_parabola(moves, ends(trajectories.shorter(), rng))

    # walls that turn the velocity too little or forget which was met
    monkeypatch.setattr(
        _hamiltonian,
        "travel",
        lambda *args: travel(*args[:3], args[3] + 0.3 * np.eye(3), *args[4:]),
    )
    with pytest.raises(AssertionError, match="standard errors off"):
        assert_law_of_the_parabola(moves, ends(trajectories, rng))


def test_a_slope_in_balance_is_the_mean_slope_of_the_likelihood(rng):
    mechanism = ik.TruncatedGeometric(5, 1.0)
    tally = mechanism.simulate([4000, 3000, 2000, 3000, 2000], rng)
    moves = SurrogateMoves.of(tally, np.ones(5))
    trajectories = Trajectories.of(moves)
    draws = moves.centre + rng.normal(size=(20_000, 4)) @ trajectories.root.T
    balanced = trajectories.balanced(draws[:500])
    matrix = tally.matrix()
    slopes = (matrix @ (tally.counts / (draws @ matrix)).T).mean(axis=1)
    curved = moves.hessian @ (draws - moves.centre).mean(axis=0)

    def miss(slope):
        off = slopes - (slope - curved)
        return np.abs(off - off.mean()).max()

    assert miss(balanced.slope) < 0.25 * miss(trajectories.slope)
    # the law moves with the slope
    np.testing.assert_allclose(
        balanced.centre - trajectories.centre,
        balanced.covariance @ (balanced.slope - trajectories.slope),
        rtol=1e-9,
    )


# The chains


def flat(name):
    return {"k-RR, many": 3.0}.get(name, 1.0)


LAWS = ["k-RR, many", "OUE, many", "geometric on all integers", "a pool"]


@pytest.mark.parametrize(
    ("name", "of"),
    [(name, "distribution") for name in LAWS]
    + [pytest.param(name, "frequencies", marks=pytest.mark.slow) for name in LAWS],
)
def test_chains_by_trajectories_have_the_law_of_the_recursion(name, of, rng):
    tally = TALLIES[name](rng)
    alpha = np.full(tally.k, flat(name))
    chains = Chains(tally, alpha, rng)
    chains.warm_up(100, lambda: None)
    assert not chains.needs_secrets  # so the next sweep is by a trajectory
    assert_law(tally, alpha, of, _gibbs.sample(tally, alpha, of, rng, 50_000))


@pytest.mark.parametrize("what", ["nothing is judged", "the prior is forgotten"])
def test_trajectories_that_are_judged_wrongly_are_seen(what, monkeypatch, rng):
    tally, alpha = TALLIES["k-RR, many"](rng), np.full(3, 3.0)
    if what == "nothing is judged":
        monkeypatch.setattr(Trajectories, "weight", lambda self, p: 0.0)
    else:
        of = Trajectories.of.__func__
        monkeypatch.setattr(
            Trajectories,
            "of",
            classmethod(
                lambda cls, moves: _hamiltonian.replace(of(cls, moves), prior_exponents=None)
            ),
        )
    monkeypatch.setattr(_chains, "TRAJECTORIES_IN_A_ROW", 10**6)
    with pytest.raises(AssertionError, match="standard errors off"):
        assert_law(
            tally, alpha, "distribution", _gibbs.sample(tally, alpha, "distribution", rng, 50_000)
        )


def warmed(tally, alpha, rng):
    chains = Chains(tally, np.full(tally.k, alpha), rng)
    advanced = []
    chains.warm_up(60, lambda: advanced.append(1))
    assert len(advanced) == 60
    assert chains.p.shape == (N_CHAINS, tally.k)
    return chains


def test_a_prior_with_peaks_at_the_walls_that_are_met_is_left_to_augmentation(rng):
    near = TALLIES["k-RR"](rng)
    assert warmed(near, 0.5, rng)._trajectories is None
    far = ik.RandomizedResponse(3, 2.0).simulate([4000, 3000, 3000], rng)
    assert warmed(far, 0.5, rng)._trajectories.time == _hamiltonian.TIME_WITHOUT_WALLS


def test_trajectories_that_are_mostly_refused_are_not_taken(monkeypatch, rng):
    tally = TALLIES["OUE, many"](rng)
    assert warmed(tally, 1.0, rng)._trajectories is not None
    monkeypatch.setattr(_chains, "MIN_ACCEPTANCE_RATE", 1.01)
    assert warmed(tally, 1.0, rng)._trajectories is None


def test_trajectories_are_shortened_until_they_meet_few_walls(monkeypatch, rng):
    tally = ik.TruncatedGeometric(12, 0.2).simulate(np.full(12, 20), rng)
    assert warmed(tally, 1.0, rng)._trajectories.time >= _hamiltonian.MAX_TIME
    monkeypatch.setattr(_hamiltonian, "MAX_REFLECTIONS_PER_SECRET", 4)
    assert warmed(tally, 1.0, rng)._trajectories.time < _hamiltonian.MAX_TIME
    monkeypatch.setattr(_hamiltonian, "MAX_REFLECTIONS_PER_SECRET", 0)
    assert warmed(tally, 1.0, rng)._trajectories is None


def test_wide_starts_come_near_where_augmentation_hardly_moves(rng):
    # a report tells so little that a sweep by augmentation goes a thousandth of the way
    tally = ik.TruncatedGeometric(20, 0.05).simulate(rng.multinomial(10**6, np.full(20, 0.05)), rng)
    assert warmed(tally, 1.0, rng)._trajectories is not None


def test_half_as_long_twice(rng):
    trajectories = Trajectories.of(parabola(rng))
    half = trajectories.shorter()
    quarter = half.shorter()
    assert [trajectories.time / each.time for each in (half, quarter)] == [2, 4]
    assert quarter.shorter() is None


def test_one_sweep_in_fifty_is_by_augmentation(rng):
    chains = warmed(TALLIES["OUE, many"](rng), 1.0, rng)
    kinds = []
    for _ in range(150):
        kinds.append(chains.needs_secrets)
        chains.sweep()
    assert sum(kinds) == 3
    assert np.diff(np.flatnonzero(kinds)).tolist() == [50, 50]


def test_a_parabola_without_curvature_gives_no_trajectories(rng):
    moves = parabola(rng)
    bent = SurrogateMoves(moves.tally, moves.alpha, moves.centre, moves.slope, -1e3 * np.eye(3))
    assert Trajectories.of(bent) is None
