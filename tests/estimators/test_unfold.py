"""Reports that get lost, and unfolding with a background:
against iterations and optimisers of others.
"""

from dataclasses import fields

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

import ibukit as ik
from ibukit.estimators.unfolding import poisson as _poisson
from ibukit.estimators.unfolding import unfold as unfolding

RESPONSE = np.array([[0.6, 0.2, 0.1], [0.1, 0.3, 0.1], [0.1, 0.1, 0.5]])
EFFICIENCY = [0.9, 0.5, 0.7]
TRUTH = np.array([0.1, 0.3, 0.6])
EXACT = (1e6 * TRUTH @ RESPONSE).round().astype(int)
AMONG_SEEN = TRUTH * EFFICIENCY / (TRUTH @ EFFICIENCY)


def instance(rng, k=4, m=6, most=1000):
    """A response matrix that loses reports, a background, and Poisson counts of both."""
    response = rng.dirichlet(np.ones(m), k) * rng.uniform(0.2, 1, k)[:, None]
    background = rng.uniform(0, most / 10, m)
    return response, background, rng.poisson(rng.uniform(0.3, 1, k) * most @ response + background)


def conditional(theta, response, counts):
    """The log-likelihood of the reports seen."""
    seen = theta @ response
    return counts @ np.log(seen / seen.sum())


def poisson(numbers, response, counts, background=0.0):
    nu = numbers @ response + background
    return counts @ np.log(nu) - nu.sum()


def iterated(response, counts, background, steps):
    """Richardson and Lucy's iteration with efficiencies
    and a background, as physicists write it.
    """
    numbers, efficiency = np.ones(len(response)), response.sum(axis=1)
    for _ in range(steps):
        numbers = numbers * (response @ (counts / (numbers @ response + background))) / efficiency
    return numbers


def hessian(function, at, step):
    k = len(at)
    moves = np.eye(k) * step
    return np.array(
        [
            [
                sum(
                    (s * t) * function(at + s * moves[i] + t * moves[j]) / (4 * step[i] * step[j])
                    for s in (-1, 1)
                    for t in (-1, 1)
                )
                for j in range(k)
            ]
            for i in range(k)
        ]
    )


@pytest.mark.parametrize(
    ("matrix", "efficiency"),
    [
        (RESPONSE, True),
        (RESPONSE, EFFICIENCY),
        (RESPONSE, pd.Series({2: 0.7, 0: 0.9, 1: 0.5})),
        (RESPONSE / RESPONSE.sum(axis=1, keepdims=True), EFFICIENCY),
    ],
    ids=["sums", "given", "series", "among seen"],
)
def test_exact_counts_give_back_the_distribution_of_all_secrets(matrix, efficiency):
    tally = ik.MatrixMechanism(matrix, efficiency=efficiency).tally_counts(EXACT)
    estimate = ik.mle(tally)
    np.testing.assert_allclose(estimate.distribution, TRUTH, rtol=1e-9)
    assert estimate.gap <= 1e-9
    assert ik.gap(tally, TRUTH) <= 1e-12
    # the distribution among those seen is another one, and a tally says so
    np.testing.assert_allclose(ik.mle(tally.among_seen).distribution, AMONG_SEEN, rtol=1e-9)
    assert ik.gap(tally, AMONG_SEEN) > 1e-3


def test_the_estimate_maximises_the_likelihood_of_the_reports_seen_and_that_over_all_totals():
    rng = np.random.default_rng(1)
    response, _, counts = instance(rng)
    estimate = ik.mle(ik.MatrixMechanism(response, efficiency=True).tally_counts(counts))

    def over_totals(logs):
        return -poisson(np.exp(logs), response, counts)

    def seen(logs):
        return -conditional(np.exp(logs) / np.exp(logs).sum(), response, counts)

    start = np.full(4, np.log(500.0))
    for function in (over_totals, seen):
        best = np.exp(minimize(function, start, tol=1e-12, options={"gtol": 1e-7}).x)
        np.testing.assert_allclose(estimate.distribution, best / best.sum(), rtol=1e-3)
        total = best.sum() if function is over_totals else 1.0
        assert function(np.log(estimate.distribution * total)) <= function(np.log(best)) + 1e-6
    assert estimate.log_likelihood == pytest.approx(
        conditional(estimate.distribution, response, counts), rel=1e-12
    )


def test_steps_are_those_of_the_iteration_with_efficiencies():
    response, _, counts = instance(np.random.default_rng(2))
    tally = ik.MatrixMechanism(response, efficiency=True).tally_counts(counts)
    numbers = iterated(response, counts, 0.0, 20)
    np.testing.assert_allclose(
        ik.ibu(tally, stop=ik.Steps(20)).distribution, numbers / numbers.sum(), rtol=1e-10
    )
    start = [0.1, 0.2, 0.3, 0.4]
    np.testing.assert_allclose(
        ik.ibu(tally, start, stop=ik.Steps(0)).distribution, start, rtol=1e-14
    )


def test_the_gap_bounds_what_is_left_to_gain():
    rng = np.random.default_rng(3)
    response, _, counts = instance(rng)
    tally = ik.MatrixMechanism(response, efficiency=True).tally_counts(counts)
    best = ik.mle(tally, tol=1e-13).distribution
    for theta in rng.dirichlet(np.ones(4), 50):
        lacking = (
            conditional(best, response, counts) - conditional(theta, response, counts)
        ) / counts.sum()
        assert 0 <= lacking <= ik.gap(tally, theta) + 1e-12


@pytest.mark.parametrize("share", [0.0, 1.0], ids=["alone", "with background"])
def test_standard_errors_are_those_of_the_curvature(share):
    response, background, counts = instance(np.random.default_rng(4), most=1e5)
    background = share * background
    found = ik.unfold(counts, response, background=background)
    numbers = found.counts
    assert numbers.min() > 1000, "an instance in the interior"
    covariance = np.linalg.inv(
        -hessian(lambda at: poisson(at, response, counts, background), numbers, np.full(4, 100.0))
    )
    slopes = (np.eye(4) - found.distribution[:, None]) / found.total
    np.testing.assert_allclose(found.count_errors(), np.sqrt(np.diag(covariance)), rtol=1e-2)
    np.testing.assert_allclose(
        found.standard_errors(), np.sqrt(np.diag(slopes @ covariance @ slopes.T)), rtol=1e-2
    )
    lower, upper = found.interval(0.95, method="wald")
    np.testing.assert_allclose((upper - lower) / 2, 1.959964 * found.standard_errors(), rtol=1e-5)


@pytest.mark.parametrize("background", [None, [1.0, 1.0, 1.0]])
def test_what_the_counts_determine_of_all_secrets(background):
    # the first two secrets are seen as the same reports: with one efficiency their sum is known,
    # and with it the third
    alike = np.array([[0.5, 0.3, 0.0], [0.5, 0.3, 0.0], [0.1, 0.1, 0.5]])
    counts = 1000 * TRUTH @ alike
    known = ik.unfold(counts, alike, background=background)
    assert known.identified.tolist() == [False, False, True]
    assert np.isinf(known.standard_errors()).tolist() == [True, True, False]
    # with different ones their number is not, and the third's share of all is not either
    unequal = alike * [[1.0], [0.5], [1.0]]
    unknown = ik.unfold(1000 * TRUTH @ unequal, unequal, background=background)
    assert not unknown.identified.any()
    assert np.isinf(unknown.standard_errors()).all()
    assert np.isinf(unknown.count_errors()).tolist() == [True, True, False]
    assert ik.unfold(EXACT, RESPONSE, background=background).identified.all()


def test_tallies_add_where_reports_get_lost_alike():
    one = ik.MatrixMechanism(RESPONSE, efficiency=True)
    other = ik.MatrixMechanism(RESPONSE[:, ::-1], efficiency=True)
    both = one.tally_counts(EXACT) + other.tally_counts(EXACT[::-1])
    np.testing.assert_allclose(ik.mle(both).distribution, TRUTH, rtol=1e-9)
    for wrong in (
        ik.RandomizedResponse(3, 1.0),
        ik.MatrixMechanism(RESPONSE * 0.9, efficiency=True),
    ):
        with pytest.raises(
            ik.errors.MechanismMismatch, match="tallies can be added only if both mechanisms lose"
        ):
            both + wrong.tally_counts([1, 1, 1])


def test_what_knows_of_no_efficiency_refuses_it():
    mechanism = ik.MatrixMechanism(RESPONSE, efficiency=True)
    tally = mechanism.tally_counts([50, 40, 60])
    for function in (
        ik.inv,
        ik.combine_mechanisms,
    ):
        with pytest.raises(ValueError, match="tally must be of reports that do not get lost"):
            function(tally)
        function(tally.among_seen)
    for options in ({}, {"method": "enumerate"}, {"method": "gibbs", "of": "frequencies"}):
        with pytest.raises(ValueError, match="method 'gibbs' where reports may be lost"):
            ik.posterior(tally, 1.0, **options)
    for known in (
        ik.theory.asymptotic_mse,
        ik.theory.inv_squared_error,
        ik.theory.identifiable,
    ):
        arguments = (TRUTH,) if known is not ik.theory.identifiable else ()
        with pytest.raises(ValueError, match="mechanism must not lose reports"):
            known(mechanism, *arguments)
        known(mechanism.among_seen, *arguments)


def test_forward_is_the_probability_of_being_seen_and_silence_tells_too():
    mechanism = ik.MatrixMechanism(RESPONSE, efficiency=True)
    tally = mechanism.tally_counts([5, 0, 6])
    np.testing.assert_allclose(mechanism.forward(TRUTH), TRUTH @ RESPONSE, rtol=1e-14)
    np.testing.assert_allclose(tally.forward(TRUTH), (TRUTH @ RESPONSE)[[0, 2]], rtol=1e-14)
    np.testing.assert_allclose(tally.matrix(), RESPONSE[:, [0, 2]], rtol=1e-14)
    np.testing.assert_allclose(mechanism.adjoint([1.0, 2.0, 3.0]), RESPONSE @ [1, 2, 3], rtol=1e-14)
    np.testing.assert_allclose(tally.adjoint([1.0, 3.0]), RESPONSE @ [1, 0, 3], rtol=1e-14)
    # a detector of one report tells by its silence alone: five times as often under the second
    # secret
    assert mechanism.epsilon == pytest.approx(np.log(0.6 / 0.1))
    lone = ik.MatrixMechanism([[0.9], [0.5]], efficiency=True)
    assert lone.epsilon == pytest.approx(np.log(5))
    told = ik.MatrixMechanism([[0.9, 0.1], [0.5, 0.5]])
    told = ik.privacy.mutual_information(told, [0.5, 0.5])
    assert ik.privacy.mutual_information(lone, [0.5, 0.5]) == pytest.approx(told)
    assert told > 0.05
    with pytest.raises(
        ik.errors.AlphabetMismatch,
        match=r"loss must have one row for each of the 2 secrets, shape \(2, 2",
    ):
        ik.privacy.quality_loss(lone, [0.5, 0.5], [[0.0], [1.0]])


def test_lost_reports_are_not_drawn():
    mechanism = ik.MatrixMechanism(RESPONSE, efficiency=True)
    rng = np.random.default_rng(5)
    secrets = np.repeat([0, 1, 2], [10_000, 30_000, 60_000])
    expected = 1e5 * TRUTH @ RESPONSE
    drawn = np.bincount(mechanism.randomize(secrets, rng), minlength=3)
    simulated = mechanism.simulate([10_000, 30_000, 60_000], rng).counts
    for counts in (drawn, simulated):
        assert (np.abs(counts - expected) <= 6 * np.sqrt(expected)).all()
    assert (np.abs(drawn - 1e5 * AMONG_SEEN @ RESPONSE) > 6 * np.sqrt(expected)).any()


@pytest.mark.parametrize("seed", range(5))
def test_the_background_is_taken_out(seed):
    response, background, counts = instance(np.random.default_rng(seed), most=200)
    found = ik.unfold(counts, response, background=background, tol=1e-12)
    assert found.gap <= 1e-12
    assert found.log_likelihood == pytest.approx(
        poisson(found.counts, response, counts, background), abs=1e-8
    )
    slow = iterated(response, counts, background, 3000)
    assert found.log_likelihood >= poisson(slow, response, counts, background) - 1e-8
    best = minimize(
        lambda at: -poisson(at, response, counts, background),
        np.full(4, 100.0),
        jac=lambda at: response @ (1 - counts / (at @ response + background)),
        bounds=[(0, None)] * 4,
        options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 10_000},
    )
    assert found.log_likelihood == pytest.approx(-best.fun, abs=1e-4)
    np.testing.assert_allclose(found.counts, best.x, atol=1.0)


def test_exact_counts_over_a_background_give_back_all_numbers():
    numbers, background = 1000 * TRUTH, np.array([50.0, 0.0, 80.0])
    found = ik.unfold(numbers @ RESPONSE + background, RESPONSE, background=background)
    np.testing.assert_allclose(found.counts, numbers, rtol=1e-7)
    np.testing.assert_allclose(found.expected, numbers @ RESPONSE + background, rtol=1e-9)
    assert found.total == pytest.approx(1000)
    # to ignore it is another estimate
    assert np.abs(ik.unfold(numbers @ RESPONSE + background, RESPONSE).counts - numbers).max() > 50


def test_a_background_that_vanishes():
    response, counts = RESPONSE, [150, 170, 340]
    without, zero, tiny = (
        ik.unfold(counts, response, background=b) for b in (None, np.zeros(3), np.full(3, 1e-7))
    )
    assert np.array_equal(without.counts, zero.counts)
    np.testing.assert_allclose(without.counts, tiny.counts, rtol=1e-6)
    np.testing.assert_allclose(without.standard_errors(), tiny.standard_errors(), rtol=1e-5)
    assert without.log_likelihood == pytest.approx(
        poisson(without.counts, response, counts), rel=1e-12
    )
    assert without.total == pytest.approx(without.counts.sum())


def test_the_poisson_gap_is_a_bound():
    rng = np.random.default_rng(7)
    response, background, counts = instance(rng)
    best = ik.unfold(counts, response, background=background, tol=1e-12)
    efficiency = response.sum(axis=1)
    seen = response / efficiency[:, None]
    loose = []
    # numbers of all sizes, too few and too many
    for numbers in rng.dirichlet(np.ones(4), 200) * rng.exponential(best.total, (200, 1)):
        lacking = (
            best.log_likelihood - poisson(numbers, response, counts, background)
        ) / counts.sum()
        bound = _poisson.gap(numbers * efficiency, seen, counts.astype(float), background)
        assert 0 <= lacking <= bound + 1e-12
        loose.append(bound - lacking)
    assert min(loose) < 0.05, "a bound that is of use"


@pytest.mark.parametrize("counts", [[10, 20, 30], [0, 0, 0], [0, 0, 90]])
def test_a_background_that_explains_all(counts):
    background = np.full(3, 100.0)
    found = ik.unfold(counts, RESPONSE, background=background)
    assert (found.total, found.counts.tolist(), found.gap) == (0, [0, 0, 0], 0)
    assert found.log_likelihood == pytest.approx(
        np.dot(counts, np.log(background)) - background.sum()
    )
    assert np.array_equal(found.expected, background)
    # Anything added is less probable.
    for more in 0.01 * np.eye(3):
        assert poisson(more, RESPONSE, counts, background) < found.log_likelihood
    # No signal has no distribution.
    assert not found.identified.any()
    assert np.isinf(found.standard_errors()).all()
    assert np.isinf(found.covariance()).all()
    assert found.standard_errors(of=[1, 1, 1]) == 0
    assert "do not determine" in str(found.summary())
    one = ik.unfold([1, 2], [[0.2, 0.5]], background=[9, 9])
    assert (one.total, one.distribution.tolist(), one.identified.tolist()) == (0, [1], [True])
    # with the counts that are expected of it alone, and one more of each, there is something
    assert ik.unfold([101, 101, 101], RESPONSE, background=[100, 100, 100]).total < 10


def test_labels_go_before_places():
    table = pd.DataFrame(RESPONSE, index=["x", "y", "z"], columns=["low", "middle", "high"])
    counts = pd.Series(EXACT, index=table.columns)
    background = dict(zip(table.columns, [50, 20, 80], strict=True))
    plain = ik.unfold(EXACT, RESPONSE, background=[50, 20, 80])
    named = ik.unfold(counts[::-1], table[["high", "low", "middle"]], background=background)
    assert named.alphabet == ik.Alphabet(["x", "y", "z"])
    np.testing.assert_allclose(named.counts, plain.counts, rtol=1e-9)
    assert ik.unfold({"low": 5, "high": 7}, table).observed.tolist() == [5, 0, 7]
    with pytest.raises(
        ik.errors.AlphabetMismatch, match="counts contains 'top', which is not in the alphabet"
    ):
        ik.unfold({"low": 5, "top": 7}, table)
    with pytest.raises(
        ik.errors.AlphabetMismatch,
        match="background must have a number for each report, got none for",
    ):
        ik.unfold(counts, table, background={"low": 5})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"counts": [1, 2]},
            r"counts must have one number for each of the 3 elements, got shape \(2,\)",
        ),
        ({"counts": [1, -2, 3]}, r"counts must be finite and not negative, got -2\.0 at index 1"),
        ({"counts": [1, np.nan, 3]}, "counts must be finite and not negative, got nan at index 1"),
        ({"counts": [0, 0, 0]}, "counts must not all be 0"),
        ({"counts": "abc"}, "counts must be a list, an array or a Series, got 'abc'"),
        (
            {"background": [1, 2, np.inf]},
            "background must be finite and not negative, got inf at index 2",
        ),
        (
            {"background": [1, 2]},
            r"background must have one number for each of the 3 elements, got shape \(2,\)",
        ),
        ({"matrix": RESPONSE.T / RESPONSE.sum(axis=1)}, "its columns do|transposed"),
        (
            {"matrix": [[0.2, 0, 0], [0, 0.5, 0.5], [0.3, 0.2, 0.1], [0.5, 0.3, 0.4]]},
            "is it transposed",
        ),
        ({"matrix": [[0.2, 0.1, 0], [0, 0.5, 0]]}, "which no secret can produce"),
        (
            {"matrix": [[0.2, 0.1, 0], [0, 0.5, 0]], "background": [1, 1, 0]},
            "which neither a secret nor the",
        ),
        ({"tol": -1}, "tol must be a finite number above 0, got -1"),
        ({"efficiency": [0.9, 0.5, 0.6]}, r"row 2 sums to 0\.7"),
        (
            {"efficiency": [0.9, 0.0, 0.6]},
            r"efficiency must be above 0 .*got 0\.0 at index 1; such a secret is never",
        ),
        (
            {"efficiency": [0.9, 1.5, 0.6]},
            r"efficiency must be above 0 and at most 1, got 1\.5 at index 1",
        ),
        (
            {"efficiency": [0.9, 0.5]},
            r"efficiency must have one value for each of the 3 secrets, got shape \(2,\)",
        ),
        ({"efficiency": "high"}, "efficiency must be True, a number, or 3 numbers, got str"),
        (
            {"efficiency": {0: 0.9, 1: 0.5}},
            "efficiency must have a value for each secret, got none for 2",
        ),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    given = {"counts": [10, 20, 30], "matrix": RESPONSE} | arguments
    with pytest.raises(ValueError, match=message):
        ik.unfold(**given)


def test_a_matrix_of_counts_is_told_apart_by_who_hands_it_in():
    columns = np.array([[0.2, 0.1], [0.3, 0.4], [0.5, 0.5]])
    with pytest.raises(ik.errors.InvalidDistribution, match="is it transposed"):
        ik.unfold([3, 4], columns)
    assert ik.unfold([3, 4], columns, efficiency=True).total > 7
    assert ik.unfold([3, 4, 5], columns.T).total == pytest.approx(12)


def test_rows_above_1_are_taken_if_the_caller_says_that_they_are_efficiencies():
    for matrix in ([[0.6, 0.8], [0.5, 0.7]], [[0.6, 0.3], [0.4, 0.7]]):
        unfolded = ik.unfold([35, 30], matrix, efficiency=True)
        np.testing.assert_allclose(unfolded.expected.sum(), 65)
        np.testing.assert_allclose(unfolded.counts @ matrix, unfolded.expected)
    with pytest.raises(ik.errors.InvalidDistribution, match="percentages"):
        ik.unfold([35, 30], [[60, 40], [30, 70]], efficiency=True)


def test_a_maximum_that_is_missed(monkeypatch):
    response, background, counts = instance(np.random.default_rng(8))
    monkeypatch.setattr(_poisson, "_composition", lambda m, n, added: (ik.uniform(4), 1))
    with pytest.raises(
        ik.ConvergenceError, match="tol=1e-09 was not certified: the best gap is 0"
    ) as caught:
        ik.unfold(counts, response, background=background)
    found = ik.unfold(counts, response, background=background, strict=False)
    assert found.gap == caught.value.estimate.gap
    assert found.status is ik.Status.MAX_ITER


def test_weights_count_as_people():
    counts = np.array([50, 40, 60])
    for mechanism in (ik.MatrixMechanism(RESPONSE, efficiency=True), ik.RandomizedResponse(3, 1.0)):
        people, weights = (
            mechanism.tally_counts(counts),
            mechanism.tally_counts(counts * 0.3, weighted=True),
        )
        assert (people.n, weights.n) == (150, pytest.approx(45.0))
        whole, weighted = ik.mle(people), ik.mle(weights)
        np.testing.assert_allclose(weighted.distribution, whole.distribution, rtol=1e-9)
        np.testing.assert_allclose(
            weighted.standard_errors(), whole.standard_errors() / np.sqrt(0.3), rtol=1e-9
        )
        assert ik.gap(weights, whole.distribution) <= 1e-9
        np.testing.assert_allclose(
            ik.ibu(weights).distribution, ik.ibu(people).distribution, rtol=1e-6
        )
        assert (people + weights).n == pytest.approx(195.0)
        assert weighted.identified.all()
    by_label = ik.Rappor(2, 1.0).tally_counts({3: 0.5, 0: 1.5}, weighted=True)
    assert by_label.counts.tolist() == [1.5, 0.5]


def test_what_counts_people_refuses_weights():
    mechanism = ik.RandomizedResponse(3, 1.0)
    tally = mechanism.tally_counts([0.5, 1.5, 2.0], weighted=True)
    for function in (
        ik.smooth,
        ik.inv,
        ik.theory.fixed_points,
        lambda tally: ik.posterior(tally, 1.0),
    ):
        with pytest.raises(ValueError, match="tally must hold whole counts, got weights"):
            function(tally)
    with pytest.raises(ValueError, match="tally must hold whole counts, got weights"):
        ik.ibu(tally, stop=ik.Discrepancy())
    with pytest.raises(ValueError, match=r"counts must be whole numbers, got 0\.5 at index 0"):
        mechanism.tally_counts([0.5, 1.5, 2.0])
    with pytest.raises(
        ValueError, match=r"counts must be finite and not negative, got -1\.5 at index 1"
    ):
        mechanism.tally_counts([0.5, -1.5, 2.0], weighted=True)


def test_steps_count_every_maximum_that_was_looked_for(monkeypatch, rng):
    response, background, counts = instance(rng)
    share, taken = _poisson._composition, []

    def noted(*arguments):
        taken.append(share(*arguments))
        return taken[-1]

    monkeypatch.setattr(_poisson, "_composition", noted)
    found = _poisson.maximise_signal(response, counts.astype(float), background)
    assert len(taken) > 2
    assert found.n_iter == sum(steps for _, steps in taken)


def test_a_gap_of_exactly_the_tolerance_is_enough(monkeypatch, rng):
    response, background, counts = instance(rng)
    maximise = _poisson.maximise_signal
    monkeypatch.setattr(
        unfolding, "maximise_signal", lambda *case: maximise(*case)._replace(gap=1e-6)
    )
    for tol, status in ((1e-6, ik.Status.CONVERGED), (0.9e-6, ik.Status.MAX_ITER)):
        assert (
            ik.unfold(counts, response, background=background, tol=tol, strict=False).status
            is status
        )


def test_what_an_estimate_of_counts_adds_is_given_by_name():
    own = [
        field
        for field in fields(type(ik.unfold([70, 50], [[0.6, 0.2], [0.1, 0.3]])))
        if field.name == "background"
    ]
    assert [field.kw_only for field in own] == [True]
