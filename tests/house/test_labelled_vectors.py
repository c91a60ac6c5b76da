"""Every public parameter that is a vector over the secrets is aligned by labels, or refused.

The parameters are found by their names among all public functions and methods, so that a new one
cannot be forgotten.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest

import ibukit as ik
from fuzz.calls import registry
from fuzz.judge import outcome
from fuzz.labelled import OF_OTHERS, OVER_SECRETS, in_another_order, is_vector
from fuzz.right import RIGHT
from fuzz.world import MECHANISMS, World

K = 5
# an exact posterior takes time with the power K + 1 of the number of people
POSTERIORS = ("ibukit.posterior", "ibukit.Posterior")
# two calls have two answers
FRESH = ("release", "audit")
# they know no alphabet, or in these worlds another one or another target
REFUSED = {
    "ibukit.attack.coarse_map(weights)",
    "ibukit.attack.poison_inputs(counts)",
    "ibukit.attack.poisoned_distribution(distribution)",
    "ibukit.check_distribution(p)",
    "ibukit.quantize(p)",
    "ibukit.rate_distortion(prior)",
    "ibukit.theory.least_asymptotic_mse(theta)",
    "ibukit.theory.van_trees_bound(alpha)",
}
# one number for all secrets, and a set of secrets where the posterior is exact
NO_VECTORS = {"ibukit.theory.binary_response_mse(alpha)", "ibukit.Posterior.interval(of)"}
# what a parameter does not come without
BESIDES = {
    "ibukit.rate_distortion": ("beta",),
    "ibukit.attack.robust_mle": ("stop",),
    "ibukit.surveys.posterior_odds": ("of",),
    "ibukit.theory.bayes_limits": ("rng",),
}
CALLS = {call.name: call for calls in registry().values() for call in calls}


def worlds_of(call):
    """Worlds in which a call may be right: with labels, and with the integers from 0."""
    own = call.kind in {*MECHANISMS, "MatrixMechanism"}
    kinds = [call.kind] if own else ["RandomizedResponse", "MatrixMechanism"]
    return [
        World(K - call.name.startswith(POSTERIORS), letters, kind, 1.0, "a few", seed)
        for letters in ("labels", "number")
        for kind in kinds
        for seed in range(3, 11)
    ]


def vectors():
    """Call and parameter of each vector over the secrets."""
    return [
        (call.name, name)
        for call in CALLS.values()
        for name, key in call.keys.items()
        if key in OVER_SECRETS and name in call.open() and not call.name.endswith(FRESH)
    ]


def answer(call, world, spoil):
    """What comes of a call in a fresh copy of a world, after `spoil` has changed some arguments."""
    world = replace(world)
    # whatever is drawn later, the mechanism is the same
    _ = world.mechanism

    def run():
        given = {
            name: spoil.get(name, as_it_is)(key, RIGHT[key](world), world)
            for name, key in call.keys.items()
            if not call.optional(name) or name in spoil or name in BESIDES.get(call.name, ())
        }
        return call.run(world, given)

    return outcome(run)


def as_it_is(key, right, world):
    return right


@cache
def right_answer(name, parameter):
    """A world in which a call is right with this parameter, and its answer.

    It is the first world in which the parameter is a vector, or else the first of all.
    """
    call, first = CALLS[name], None
    for world in worlds_of(call):
        vectors = []

        def look(key, right, world, vectors=vectors):
            vectors.append(isinstance(right, np.ndarray) and right.ndim == 1)
            return right

        found = answer(call, world, {parameter: look})
        if not isinstance(found, Exception):
            if any(vectors):
                return world, found
            first = first or (world, found)
    return first


def numbers(found):
    """The numbers of an answer, whatever holds them."""
    if isinstance(found, (ik.Estimate, ik.Posterior)):
        return np.asarray(found.distribution if isinstance(found, ik.Estimate) else found.mean)
    if isinstance(found, ik.Tally):
        return np.concatenate([part.counts for part in found.parts])
    if hasattr(found, "matrix"):
        return found.matrix()
    if hasattr(found, "mechanism") and hasattr(found.mechanism, "matrix"):
        return found.mechanism.matrix()
    if isinstance(found, tuple):
        return np.concatenate([np.ravel(each) for each in found])
    if isinstance(found, (float, int, np.ndarray, np.generic)):
        return np.asarray(found)
    return None


def test_every_vector_of_numbers_is_classified():
    world = World(K, "labels", "RandomizedResponse", 1.0, "a few", 4)
    keys = {
        key for call in CALLS.values() for name, key in call.keys.items() if name in call.open()
    }
    found = {key for key in keys for _ in range(9) if is_vector(key, world)}
    assert found - OVER_SECRETS - set(OF_OTHERS) == set()
    assert OVER_SECRETS.isdisjoint(OF_OTHERS)


@pytest.mark.parametrize(("name", "parameter"), vectors())
def test_labels_in_another_order_change_nothing(name, parameter):
    call = CALLS[name]
    world, right = right_answer(name, parameter)
    vectors = []

    def shuffled(key, right, world):
        vectors.append(isinstance(right, np.ndarray) and right.ndim == 1)
        return in_another_order(key, right, world)

    pair = [each for each in ("p", "q", "distribution", "public") if each in call.takes]
    changed = pair if parameter in pair else [parameter]
    found = answer(call, world, dict.fromkeys(changed, shuffled))
    assert all(vectors) or f"{name}({parameter})" in NO_VECTORS
    if isinstance(found, Exception):
        assert isinstance(found, ik.errors.AlphabetMismatch), found
        assert f"{name}({parameter})" in REFUSED
    elif (expected := numbers(right)) is not None:
        np.testing.assert_allclose(numbers(found), expected, rtol=1e-9, atol=1e-12)
    else:
        assert type(found) is type(right)


@pytest.mark.parametrize(("name", "parameter"), vectors())
def test_labels_of_others_are_refused(name, parameter):
    call = CALLS[name]
    world, _ = right_answer(name, parameter)
    if not is_vector(call.keys[parameter], world):
        # one number for all secrets, or nothing
        assert call.keys[parameter] in {"alpha", "ba_start", "bayes_limits.alpha", "of"}
        return

    def strange(key, right, world):
        return pd.Series(right, index=[f"other {i}" for i in range(len(right))])

    assert isinstance(answer(call, world, {parameter: strange}), ValueError)


# Right values


LABELS = ["bike", "bus", "car", "train"]
TRUTH = pd.Series({"car": 0.6, "bus": 0.2, "bike": 0.1, "train": 0.1})


@pytest.fixture
def estimate():
    mechanism = ik.RandomizedResponse(LABELS, 2.0)
    return ik.mle(mechanism.tally_counts({"bike": 150, "bus": 220, "car": 480, "train": 150}))


def test_losses_align_frequencies_of_pandas_with_an_estimate(estimate):
    truth = TRUTH[LABELS].to_numpy()
    assert ik.total_variation(estimate, TRUTH) == ik.total_variation(estimate.distribution, truth)
    assert ik.squared_l2(TRUTH, estimate) == ik.squared_l2(estimate.distribution, truth)
    assert ik.emd(dict(TRUTH), estimate, estimate.alphabet) == ik.emd(
        estimate.distribution, truth, estimate.alphabet
    )
    assert ik.emd(TRUTH.to_frame("share"), estimate, estimate.alphabet) < 0.1


def test_two_series_are_aligned_with_each_other():
    found = estimate_of = pd.Series({"bus": 0.3, "car": 0.7})
    assert ik.total_variation(TRUTH, found) == pytest.approx(0.2)
    assert ik.squared_l2(estimate_of, TRUTH) == pytest.approx(0.1**2 * 4)
    with pytest.raises(ik.errors.AlphabetMismatch, match="q must have labels, because p has"):
        ik.total_variation(TRUTH, [0.1, 0.2, 0.6, 0.1])


def test_estimates_over_the_same_labels_in_another_order_are_aligned(estimate):
    other = ik.RandomizedResponse(LABELS[::-1], 2.0)
    same = ik.mle(other.tally_counts({"bike": 150, "bus": 220, "car": 480, "train": 150}))
    assert ik.total_variation(estimate, same) == pytest.approx(0, abs=1e-12)
    assert ik.gap(estimate.tally, same) == pytest.approx(0, abs=1e-12)


def test_what_an_estimator_returns_is_aligned(estimate):
    people = ik.datasets.Dataset("modes", TRUTH * 1000, estimate.alphabet, "made up")
    assert people.counts.tolist() == [100, 200, 600, 100]
    table = ik.replicate(
        people,
        [ik.RandomizedResponse(LABELS, 4.0)],
        {"plain": lambda tally: ik.mle(tally).distribution,
         "series": lambda tally: ik.mle(tally).to_series().sort_values()},
        repetitions=2,
        seed=1,
    )  # fmt: skip
    plain, series = (
        table[table.estimator == name]["tv"].to_numpy() for name in ("plain", "series")
    )
    np.testing.assert_allclose(series, plain, rtol=1e-12)


def test_a_default_index_is_no_label_unless_it_could_be_one(estimate):
    numbered = pd.Series(TRUTH[LABELS].to_numpy())
    assert ik.total_variation(estimate, numbered) == ik.total_variation(estimate, TRUTH)
    line = ik.Line(1, 4)
    with pytest.raises(ik.errors.AlphabetMismatch, match="default index 0 to 3"):
        ik.emd(numbered, numbered, line)
    numbered.index += 1
    assert ik.emd(numbered, numbered.iloc[::-1], line) == 0


@pytest.mark.parametrize(
    "labels",
    [[2, 0, 3, 1], [10, 20, 30, 40], [0, 1, 2, 5], ["2", "0", "3", "1"], [1.0, 2.0, 0.0, 3.0]],
)  # fmt: skip
def test_a_default_index_is_refused_where_labels_are_other_numbers(labels):
    alphabet = ik.Alphabet(labels)
    mechanism = ik.RandomizedResponse(alphabet, 2.0)
    truth = pd.Series([0.1, 0.2, 0.6, 0.1], index=labels)
    numbered = truth.reset_index(drop=True)
    right = mechanism.forward(truth.to_numpy())
    np.testing.assert_array_equal(mechanism.forward(truth.iloc[::-1]), right)
    tally = mechanism.tally_counts([1, 2, 6, 1])
    for call in (
        mechanism.forward,
        lambda bad: ik.gap(tally, bad),
        lambda bad: ik.emd(bad, truth, alphabet),
        lambda bad: ik.blahut_arimoto(bad, alphabet, beta=1.0),
    ):
        with pytest.raises(ik.errors.AlphabetMismatch, match=r"default index 0 to 3.*to_numpy"):
            call(numbered)


def test_frequencies_sorted_by_their_numbers_are_never_taken_by_position():
    alphabet = ik.Alphabet([2, 0, 1])
    shares = pd.Series({2: 0.5, 0: 0.3, 1: 0.2})
    with pytest.raises(ik.errors.AlphabetMismatch, match="to_dict"):
        ik.emd(shares, shares.sort_index(), alphabet)
    # the advice, followed to the letter
    assert ik.emd(shares, shares.sort_index().to_dict(), alphabet) == 0
    with pytest.raises(ik.errors.AlphabetMismatch, match="to_dict"):
        ik.total_variation(shares, shares.sort_index())
    assert ik.total_variation(shares, shares.sort_index().to_dict()) == 0


def test_estimates_over_the_same_integers_in_another_order_are_aligned():
    counts = {2: 50, 0: 30, 1: 20}
    one, other = (
        ik.mle(ik.RandomizedResponse(alphabet, 2.0).tally_counts(counts))
        for alphabet in (ik.Alphabet([2, 0, 1]), ik.Line(0, 2))
    )
    assert ik.total_variation(one, other) == pytest.approx(0, abs=1e-12)
    assert ik.gap(one.tally, other) == pytest.approx(0, abs=1e-12)


def test_vectors_without_a_common_label_are_refused():
    with pytest.raises(ik.errors.AlphabetMismatch, match="q must share labels with p, got '1'"):
        ik.total_variation({0: 0.5, 1: 0.5}, {"1": 0.5, "0": 0.5})


@pytest.mark.parametrize("missing", [None, np.nan, pd.NaT, pd.NA])
def test_entries_without_a_label_are_refused(estimate, missing):
    shares = pd.Series(
        [0.6, 0.2, 0.1, 0.1], index=pd.Index(["car", "bus", "bike", missing], dtype=object)
    )
    with pytest.raises(
        ik.errors.AlphabetMismatch, match=r"a label for each entry, got .* at index 3"
    ):
        ik.gap(estimate.tally, shares)


def test_empty_mappings_are_refused(estimate):
    with pytest.raises(ik.errors.AlphabetMismatch, match="theta must have an entry for a label"):
        estimate.tally.forward({})


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda s: s.rename({"bus": "tram"}), "'tram'"),
        (lambda s: pd.concat([s, s])/ 2, "must have each label once, got 'bike' twice"),
        (lambda s: s.drop("car"), "must sum to 1"),
        (lambda s: pd.DataFrame({"a": s, "b": s}), "frame of 2 columns: take one of them"),
        (lambda s: s.rename(str.upper), "'CAR'"),
        (lambda s: s.set_axis([3, 1, 2, 0]), "3"),
        (lambda s: {**s, "plane": 0.0}, "'plane'"),
        (lambda s: s.astype(str), "numbers"),
        (lambda s: s.replace(0.6, np.nan), "NaN"),
        (lambda s: -s, "negative"),
    ],
)  # fmt: skip
def test_what_cannot_be_aligned_is_refused(estimate, spoil, words):
    for call in (
        lambda bad: ik.total_variation(estimate, bad),
        lambda bad: ik.gap(estimate.tally, bad),
        lambda bad: ik.blahut_arimoto(bad, estimate.alphabet, beta=1.0),
        lambda bad: ik.privacy.mutual_information(ik.RandomizedResponse(LABELS, 1.0), bad),
    ):
        with pytest.raises(ValueError, match=words):
            call(spoil(TRUTH))
