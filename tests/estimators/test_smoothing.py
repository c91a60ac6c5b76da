"""The penalised maximum is what the oracle's step ends in, is certified,
and moves with the problem as it should.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ibukit as ik
from ibukit.estimators import choose_penalty
from ibukit.estimators._roughness import Attempt, roughness_on
from instances import INSTANCES, tallies
from oracles import naive, roughness

OF_PLACES = [
    instance for instance in INSTANCES if isinstance(instance.tally.alphabet, (ik.Line, ik.Grid))
]
PENALTIES = [1.0, 30.0, 1000.0]


def pairs_of(alphabet):
    if isinstance(alphabet, ik.Grid):
        return roughness.neighbours(alphabet.n_rows, alphabet.n_cols, *alphabet.cell_shape)
    return roughness.neighbours(1, len(alphabet))


def problem(instance, penalty):
    return instance.matrix, instance.counts, penalty, pairs_of(instance.tally.alphabet)


def at(function, instance, theta, penalty):
    matrix, counts, penalty, pairs = problem(instance, penalty)
    return function(matrix, counts, theta, penalty, pairs)


@pytest.fixture(scope="module")
def ages():
    return ik.datasets.load_adult_ages()


@pytest.fixture(scope="module")
def tally(ages):
    return ik.TruncatedGeometric(ages.alphabet, 0.05).simulate(
        ages.counts, np.random.default_rng(5)
    )


def test_there_are_lines_grids_and_pools_among_the_instances():
    kinds = {type(instance.tally.alphabet) for instance in OF_PLACES}
    assert kinds == {ik.Line, ik.Grid}
    assert len(OF_PLACES) > 8
    assert any(len(instance.tally.parts) == 4 for instance in OF_PLACES)


@pytest.mark.parametrize("instance", OF_PLACES, ids=lambda instance: instance.name)
@pytest.mark.parametrize("penalty", PENALTIES)
def test_the_estimate_is_where_the_oracles_step_ends(instance, penalty):
    found = ik.smooth(instance.tally, penalty, tol=1e-12).distribution
    assert at(roughness.step, instance, found, penalty) == pytest.approx(found, abs=1e-9)
    theta = ik.uniform(len(found))
    before = at(roughness.value, instance, theta, penalty)
    for _ in range(300):
        theta = at(roughness.step, instance, theta, penalty)
    after = at(roughness.value, instance, theta, penalty)
    best = at(roughness.value, instance, found, penalty)
    assert before < after <= best + 1e-8
    assert after > best - 1e-2 * (best - before)
    # a neighbouring penalty has another fixed point
    assert np.abs(at(roughness.step, instance, found, 2 * penalty) - found).max() > 1e-6


@pytest.mark.parametrize("instance", OF_PLACES, ids=lambda instance: instance.name)
@pytest.mark.parametrize("penalty", PENALTIES)
def test_it_is_the_optimum_and_certified(instance, penalty, rng):
    estimate = ik.smooth(instance.tally, penalty)
    assert estimate.status is ik.Status.CONVERGED
    n, theta = instance.tally.n, estimate.distribution
    assert at(roughness.excess, instance, theta, penalty) <= n * 1e-9 * (1 + 1e-6)
    best = at(roughness.value, instance, theta, penalty)
    rivals = [
        ik.mle(instance.tally).distribution,
        ik.ibu(instance.tally).distribution,
        ik.uniform(len(theta)),
    ]
    rivals += [
        ik.normalize(theta * np.exp(s * rng.standard_normal(len(theta))))
        for s in np.repeat([0.01, 0.3], 30)
    ]
    for rival in rivals:
        assert at(roughness.value, instance, rival, penalty) <= best + n * 1e-9
    # the same bound at a rival says how far that one is, and is no smaller than the truth
    worse = rivals[-1]
    assert at(roughness.excess, instance, worse, penalty) >= best - at(
        roughness.value, instance, worse, penalty
    )


@given(tallies(), st.sampled_from([1e-2, 1.0, 100.0, 1e6]))
@settings(max_examples=50)
def test_any_tally_gives_a_distribution(tally, penalty):
    estimate = ik.smooth(tally, penalty)
    assert ik.check_distribution(estimate.distribution).min() >= 0
    assert math.isfinite(estimate.log_likelihood)
    assert 0 <= estimate.gap < math.inf
    assert estimate.gap == ik.gap(tally, estimate.distribution)


@given(tallies())
@settings(max_examples=12)
def test_any_tally_chooses_a_penalty(tally):
    penalty = choose_penalty(tally)
    assert 0 < penalty < math.inf
    assert np.array_equal(ik.smooth(tally).distribution, ik.smooth(tally, penalty).distribution)


def test_the_more_penalty_the_less_rough_and_the_less_likely(tally, ages):
    rough = roughness_on(ages.alphabet)
    estimates = [ik.smooth(tally, penalty) for penalty in (1.0, 100.0, 1e4, 1e6, 1e12)]
    likelihoods = [estimate.log_likelihood for estimate in estimates]
    roughnesses = [rough(np.log(estimate.distribution)) for estimate in estimates]
    assert (np.diff(likelihoods) < 0).all()
    assert (np.diff(roughnesses) < 0).all()
    assert all(estimate.gap > 1e-6 for estimate in estimates)
    best = ik.mle(tally)
    assert best.log_likelihood > likelihoods[0]
    assert estimates[-1].distribution == pytest.approx(ik.uniform(tally.k), rel=1e-4)


@pytest.mark.parametrize("instance", OF_PLACES, ids=lambda instance: instance.name)
def test_without_penalty_it_is_the_maximum_likelihood(instance):
    penalty = 1e-4
    estimate, best = ik.smooth(instance.tally, penalty), ik.mle(instance.tally)
    # at its maximum L - penalty R is at least what it is at the MLE, where R is at most twice the
    # largest degree
    most = 2 * roughness_on(instance.tally.alphabet).degrees.max()
    assert best.log_likelihood - estimate.log_likelihood <= penalty * most + instance.tally.n * 2e-9
    assert best.log_likelihood - ik.smooth(instance.tally, 1e3).log_likelihood > penalty * most


def test_where_the_reports_do_not_tell_it_takes_the_smooth_way():
    # the two middle secrets look alike: every split is an MLE, one is smoothest
    merged = ik.MatrixMechanism(
        [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]
    )
    split = merged.tally_counts([500, 300, 500])
    estimate = ik.smooth(split, 1.0)
    assert estimate.distribution[1] == pytest.approx(estimate.distribution[2], rel=1e-6)
    assert not estimate.identified[1]


def test_reflecting_a_line_reflects_the_estimate(rng):
    mechanism = ik.TruncatedGeometric(12, 0.4)
    counts = rng.integers(0, 200, 12)
    there, back = mechanism.tally_counts(counts), mechanism.tally_counts(counts[::-1])
    assert choose_penalty(back) == pytest.approx(choose_penalty(there), rel=1e-6)
    one, other = (ik.smooth(t, 20.0, tol=1e-12).distribution for t in (there, back))
    assert other[::-1] == pytest.approx(one, abs=1e-9)
    assert np.abs(other - one).max() > 0.01


def test_turning_a_grid_turns_the_estimate(rng):
    counts = rng.integers(0, 200, (3, 4))
    upright = ik.TruncatedPlanarGeometric(ik.Grid(3, 4, (1.0, 2.0)), 0.7).tally_counts(
        counts.ravel()
    )
    lying = ik.TruncatedPlanarGeometric(ik.Grid(4, 3, (2.0, 1.0)), 0.7).tally_counts(
        counts.T.ravel()
    )
    one, other = (ik.smooth(t, 20.0, tol=1e-12).distribution for t in (upright, lying))
    assert other.reshape(4, 3).T.ravel() == pytest.approx(one, abs=1e-9)
    wrong = ik.MatrixMechanism(upright.parts[0].mechanism.matrix(), ik.Grid(3, 4, (2.0, 1.0)))
    assert (
        np.abs(ik.smooth(wrong.tally_counts(counts.ravel()), 20.0).distribution - one).max() > 1e-3
    )


def test_a_change_of_unit_changes_nothing_but_the_penalty(rng):
    counts = rng.integers(0, 200, 12)
    km = ik.TruncatedPlanarGeometric(ik.Grid(3, 4, 0.5), 2.0).tally_counts(counts)
    m = ik.TruncatedPlanarGeometric(ik.Grid(3, 4, 500.0, unit="m"), 0.002).tally_counts(counts)
    assert choose_penalty(m) == pytest.approx(1e6 * choose_penalty(km), rel=1e-5)
    assert ik.smooth(m, 7e6).distribution == pytest.approx(
        ik.smooth(km, 7.0).distribution, abs=1e-7
    )


def test_twice_the_reports_and_twice_the_penalty(rng):
    mechanism, counts = ik.TruncatedGeometric(12, 0.4), rng.integers(0, 200, 12)
    once, twice = mechanism.tally_counts(counts), mechanism.tally_counts(2 * counts)
    expected = ik.smooth(once, 20.0, tol=1e-12).distribution
    assert ik.smooth(twice, 40.0, tol=1e-12).distribution == pytest.approx(expected, abs=1e-9)
    assert np.abs(ik.smooth(twice, 20.0).distribution - expected).max() > 1e-4


def test_the_same_channel_by_another_operator_gives_the_same(rng):
    mechanism, counts = ik.TruncatedGeometric(12, 0.4), rng.integers(1, 200, 12)
    dense = ik.MatrixMechanism(naive.truncated_geometric(12, 0.4))
    sweeps, matrix = (ik.smooth(each.tally_counts(counts)) for each in (mechanism, dense))
    assert matrix.distribution == pytest.approx(sweeps.distribution, abs=1e-7)
    halves = mechanism.tally_counts(counts // 2) + mechanism.tally_counts(counts - counts // 2)
    assert np.array_equal(ik.smooth(halves).distribution, sweeps.distribution)


def test_twice_the_same(tally):
    one, other = ik.smooth(tally), ik.smooth(tally)
    assert np.array_equal(one.distribution, other.distribution)
    assert (one.method, one.n_iter, one.gap) == (other.method, other.n_iter, other.gap)


@pytest.mark.parametrize("penalty", [5.0, 50.0, 500.0])
def test_the_evidence_is_laplaces(penalty):
    instance = next(instance for instance in OF_PLACES if instance.name == "truncated geometric")
    assert evidence(instance.tally, penalty) - evidence(instance.tally, 20.0) == pytest.approx(
        laplace(instance, penalty) - laplace(instance, 20.0), abs=2e-4
    )


def evidence(tally, penalty):
    from ibukit.estimators import smoothing

    rough = roughness_on(tally.alphabet)
    start = np.zeros(tally.k)
    return smoothing._evidence(
        tally, rough, penalty, smoothing.fit(tally, rough, penalty / tally.n, start, 1e-12)
    )


def laplace(instance, penalty):
    return at(
        roughness.laplace_evidence,
        instance,
        ik.smooth(instance.tally, penalty, tol=1e-13).distribution,
        penalty,
    )


def test_laplaces_approximation_is_near_the_integral():
    matrix, counts = naive.k_rr(2, 1.5), np.array([1300, 700])
    tally = ik.RandomizedResponse(2, 1.5).tally_counts(counts)
    differences = {
        penalty: evidence(tally, penalty)
        - roughness.exact_log_evidence_of_two(matrix, counts, penalty)
        for penalty in (30.0, 100.0, 300.0, 1000.0)
    }
    spread = max(differences.values()) - min(differences.values())
    assert spread < 0.02
    exact = [
        roughness.exact_log_evidence_of_two(matrix, counts, penalty) for penalty in differences
    ]
    assert max(exact) - min(exact) > 1  # what is approximated does vary


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_the_chosen_penalty_has_the_most_evidence(epsilon, rng):
    theta = np.exp(-(((np.arange(15) - 5) / 3) ** 2))
    tally = ik.TruncatedGeometric(15, epsilon).simulate(
        rng.multinomial(3000, theta / theta.sum()), rng
    )
    chosen = choose_penalty(tally)
    ladder = chosen * np.geomspace(1e-2, 1e3, 51)
    values = [evidence(tally, penalty) for penalty in ladder]
    assert evidence(tally, chosen) >= max(values) - 1e-3
    assert min(values) < max(values) - 5


def test_the_penalty_of_the_ages_hardly_depends_on_n_or_epsilon(ages):
    # read as a prior it belongs to the ages, not to the experiment
    rng = np.random.default_rng(8)
    for n in (2000, 48842, 10**6):
        for epsilon in (0.05, 0.3):
            counts = rng.multinomial(n, ages.distribution)
            penalty = choose_penalty(
                ik.TruncatedGeometric(ages.alphabet, epsilon).simulate(counts, rng)
            )
            assert 300 < penalty < 12_000


def test_reports_of_the_uniform_distribution_give_it_back(rng):
    mechanism = ik.RandomizedResponse(8, 1.0)
    estimate = ik.smooth(mechanism.tally_counts(np.full(8, 100)))
    assert estimate.distribution == pytest.approx(ik.uniform(8), abs=1e-12)


@pytest.mark.parametrize("alphabet", [ik.Line(3, 3), ik.Grid(1, 1)], ids=["line", "grid"])
def test_a_single_secret(alphabet):
    estimate = ik.smooth(ik.MatrixMechanism([[0.5, 0.5]], alphabet).tally_counts([3, 1]))
    assert estimate.distribution == pytest.approx([1.0], rel=1e-14)
    assert estimate.gap <= 1e-14
    assert estimate.status is ik.Status.CONVERGED


def test_a_grid_of_one_row_is_a_line(rng):
    counts = rng.integers(1, 200, 7)
    matrix = naive.truncated_geometric(7, 0.4)
    row, column, line = (
        ik.smooth(ik.MatrixMechanism(matrix, alphabet).tally_counts(counts)).distribution
        for alphabet in (ik.Grid(1, 7), ik.Grid(7, 1), ik.Line(0, 6))
    )
    assert row == pytest.approx(line, abs=1e-12)
    assert column == pytest.approx(line, abs=1e-12)


def test_a_long_empty_stretch_does_not_underflow():
    # far from all reports the estimate decays by a constant factor, and its neighbours' ratios stay
    # right
    mechanism = ik.TruncatedGeometric(70, 2.0)
    counts = np.zeros(70, int)
    counts[:3] = [4000, 5000, 1000]
    estimate = ik.smooth(mechanism.tally_counts(counts), 500.0)
    assert estimate.status is ik.Status.CONVERGED
    theta = ik.check_distribution(estimate.distribution)
    assert 0 < theta[-1] < 1e-100
    steps = np.diff(np.log(theta[20:60]))
    assert steps.max() < -1
    assert steps == pytest.approx(np.full(39, steps[0]), rel=1e-3)


@pytest.mark.parametrize("function", [ik.smooth, choose_penalty], ids=["smooth", "choose_penalty"])
def test_labels_without_neighbours_are_refused(function):
    tally = ik.RandomizedResponse(ik.Alphabet(["a", "b", "c"]), 1.0).tally_counts([3, 2, 1])
    with pytest.raises(
        ik.errors.AlphabetMismatch,
        match=r"tally must be over a Line or a Grid.*got Alphabet.*use mle",
    ):
        function(tally)
    with pytest.raises(TypeError, match="tally must be a Tally"):
        function([3, 2, 1])


@pytest.mark.parametrize("name", ["penalty", "tol"])
@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, "auto", True])
def test_bad_numbers(tally, name, value):
    with pytest.raises(ValueError, match=rf"{name} must be a (finite )?number.*got {value!r}"):
        ik.smooth(tally, **{name: value})


def test_what_cannot_be_certified_is_not_called_converged(tally, monkeypatch):
    near = ik.smooth(tally, 100.0)
    for name, is_careful in (("QUICK", False), ("CAREFUL", True)):
        attempt = Attempt(1, is_careful)
        monkeypatch.setattr(f"ibukit.estimators._roughness.{name}", attempt)
    monkeypatch.setattr("ibukit.estimators._roughness.DAMPED", Attempt(0, is_careful=True))
    with pytest.raises(
        ik.ConvergenceError, match=r"tol=1e-09 was not certified.*at penalty=100; take a larger"
    ) as e:
        ik.smooth(tally, 100.0)
    assert (e.value.estimate.status, e.value.estimate.n_iter) == (
        ik.Status.MAX_ITER,
        1,
    )
    assert e.value.estimate.distribution == pytest.approx(near.distribution, abs=1e-3)


CASES = {
    "ages": (ik.TruncatedGeometric, 0.05, ik.datasets.load_adult_ages),
    "Manhattan": (ik.TruncatedPlanarGeometric, 1.0, lambda: ik.datasets.load_gowalla("manhattan")),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_it_is_nearer_to_the_truth_than_the_stop_and_the_maximum(case, rng):
    mechanism, epsilon, load = CASES[case]
    data = load()
    channel, errors = mechanism(data.alphabet, epsilon), {}
    rivals = {
        "smooth": ik.smooth,
        "stop": lambda t: ik.ibu(t, stop=ik.Discrepancy()),
        "MLE": ik.mle,
        "too smooth": lambda t: ik.smooth(t, 100 * choose_penalty(t)),
    }
    for _ in range(60):
        tally = channel.simulate(data.counts, rng)
        for name, estimator in rivals.items():
            found = ik.emd(estimator(tally).distribution, data.distribution, data.alphabet)
            errors.setdefault(name, []).append(found)
    for rival in ("stop", "MLE", "too smooth"):
        gains = np.subtract(errors[rival], errors["smooth"])  # tally by tally
        assert gains.mean() > 4 * gains.std(ddof=1) / math.sqrt(len(gains)), rival
