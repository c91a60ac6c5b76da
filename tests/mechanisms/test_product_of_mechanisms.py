"""Products of mechanisms beside Kronecker products of their matrices, written out by numpy."""

import itertools
import pickle
from functools import reduce

import numpy as np
import pytest

import ibukit as ik
from ibukit.channels import DenseChannel
from ibukit.channels.product import ProductChannel
from ibukit.mechanisms.mixtures import product as module
from ibukit.testing import check_channel, check_mechanism

SMOKES = ik.RandomizedResponse(["no", "yes"], epsilon=1.0)
AGE = ik.TruncatedGeometric(ik.Line(3, 7), epsilon=0.5)
PLACE = ik.TruncatedPlanarGeometric(ik.Grid(2, 3), epsilon=2.0)
TABLE = ik.MatrixMechanism(
    [[0.5, 0.2, 0.2, 0.1], [0.1, 0.6, 0.2, 0.1], [0.25, 0.25, 0.1, 0.4]], alphabet=["a", "b", "c"]
)
SILENT = ik.MatrixMechanism(np.ones((3, 1)), alphabet=["a", "b", "c"])
CASES = {
    "two": (SMOKES, AGE),
    "three": (SMOKES, AGE, TABLE),
    "one": (TABLE,),
    "nested": (ik.product(SMOKES, AGE), TABLE),
    "a grid": (PLACE, SMOKES),
    "a silent one": (AGE, SILENT),
}


@pytest.fixture(params=CASES)
def parts(request):
    return CASES[request.param]


def kron(parts):
    return reduce(np.kron, [part.matrix() for part in parts])


def test_the_contract_of_mechanisms_and_the_matrix_of_numpy(parts):
    mechanism = ik.product(*parts)
    check_mechanism(mechanism, n=5000)
    np.testing.assert_allclose(mechanism.matrix(), kron(parts), rtol=1e-14)


def test_levels_add_and_are_attained():
    # Two ages 4 apart, of 0.5 each, and k-RR of 1.
    assert ik.product(SMOKES, AGE).epsilon == pytest.approx(1 + 4 * 0.5, rel=1e-14)
    for parts in (CASES["two"], CASES["three"], CASES["nested"], CASES["a silent one"]):
        mechanism = ik.product(*parts)
        check_mechanism(mechanism, n=100, attained=True)
        # The level of the matrix, from its columns.
        matrix = kron(parts)
        tight = np.log(matrix.max(axis=0) / matrix.min(axis=0)).max()
        assert mechanism.epsilon == pytest.approx(tight, rel=1e-12)
        assert mechanism.epsilon <= mechanism.release_epsilon * (1 + 1e-14)
        assert mechanism.release_epsilon == pytest.approx(mechanism.epsilon, rel=1e-12)
    truth = ik.MatrixMechanism(np.eye(2))
    assert ik.product(SMOKES, truth).epsilon == np.inf
    assert ik.product(SMOKES, truth).release_epsilon == np.inf
    # A single value has nothing to hide, whatever its level is said to be.
    one = ik.MatrixMechanism([[1.0]], alphabet=["x"])
    assert ik.product(SMOKES, one).epsilon == 1.0


def test_the_channel_of_the_reports_seen_keeps_the_contract(parts):
    mechanism = ik.product(*parts)
    matrix = kron(parts)
    for reports in (np.arange(mechanism.m), np.arange(mechanism.m)[1::3]):
        channel = mechanism.channel(reports)
        assert type(channel) is ProductChannel
        check_channel(channel)
        np.testing.assert_allclose(
            channel.rows(np.arange(mechanism.k)), matrix[:, reports], rtol=1e-14
        )
        assert type(channel.take(slice(1, None)).unit_columns()) is ProductChannel


def test_gram_matrices_of_large_parts_are_made_of_rows(monkeypatch):
    channel = ik.product(SMOKES, AGE, TABLE).channel(np.arange(40)[::3])
    weights = np.random.default_rng(1).random(14)
    by_parts = channel.gram(weights)
    monkeypatch.setattr("ibukit.channels.product.MAX_PAIRS", 10)
    np.testing.assert_allclose(channel.gram(weights), by_parts, rtol=1e-13)
    check_channel(channel)


def test_few_reports_among_many_tuples_are_a_dense_channel(monkeypatch):
    mechanism, reports = ik.product(SMOKES, AGE, TABLE), np.array([0, 5, 17, 39])
    expected = mechanism.channel(reports).rows(np.arange(mechanism.k))
    monkeypatch.setattr(module, "MAX_LATTICE", 4)
    channel = mechanism.channel(reports)
    assert type(channel) is DenseChannel
    np.testing.assert_allclose(channel.columns, expected, rtol=1e-14)


def test_labels_are_tuples_in_the_order_of_numpy_kron():
    mechanism = ik.product(SMOKES, PLACE)
    cells = [(i, j) for i in range(2) for j in range(3)]
    listed = list(itertools.product(["no", "yes"], cells))
    assert mechanism.alphabet.values.tolist() == listed
    assert mechanism.report_alphabet.values.tolist() == listed
    reports = mechanism.label_reports(np.arange(12))
    assert reports.tolist() == listed
    assert mechanism.code_reports(reports).tolist() == list(range(12))
    assert mechanism.code_reports(listed).tolist() == list(range(12))
    for drawn in (
        mechanism.randomize(listed, np.random.default_rng(1)),
        mechanism.release(listed),
    ):
        assert set(drawn.tolist()) <= set(listed)
    assert ik.product(SMOKES, SILENT).alphabet.values.tolist()[3] == ("yes", "a")


def test_tallies_are_estimated_as_those_of_the_matrix():
    parts = CASES["three"]
    mechanism = ik.product(*parts)
    whole = ik.MatrixMechanism(kron(parts), mechanism.alphabet, mechanism.report_alphabet)
    rng = np.random.default_rng(2)
    people = rng.multinomial(20_000, rng.dirichlet(np.ones(30)))
    reports = mechanism.randomize(np.repeat(np.arange(30), people), rng, codes=True)
    ours = ik.mle(mechanism.tally(reports, codes=True))
    theirs = ik.mle(whole.tally(reports, codes=True))
    assert ours.gap <= 1e-9
    np.testing.assert_allclose(ours.distribution, theirs.distribution, atol=1e-7)
    np.testing.assert_allclose(ours.standard_errors(), theirs.standard_errors(), rtol=1e-5)
    assert ours.log_likelihood == pytest.approx(theirs.log_likelihood, rel=1e-12)


def test_matrix_inversion_goes_by_parts(parts):
    mechanism = ik.product(*parts)
    if any(part.m < part.k for part in parts):
        with pytest.raises(ik.errors.NotInvertible, match="rank"):
            mechanism.invert(np.array([0]), np.array([1.0]))
        return
    q = np.random.default_rng(3).dirichlet(np.ones(mechanism.m))
    found = mechanism.invert(np.arange(mechanism.m), q)
    np.testing.assert_allclose(found, q @ np.linalg.pinv(kron(parts)), atol=1e-10)
    # Unbiased: the law of the reports gives the distribution back.
    theta = np.random.default_rng(4).dirichlet(np.ones(mechanism.k))
    again = mechanism.invert(np.arange(mechanism.m), theta @ kron(parts))
    np.testing.assert_allclose(again, theta, atol=1e-12)


def test_released_reports_have_the_law_of_each_part():
    # Both means of 4000 draws are within 5 standard deviations: false alarms below 2e-6.
    mechanism = ik.product(SMOKES, AGE)
    drawn = mechanism.release([("yes", 7)] * 4000).tolist()
    share = np.mean([report[0] == "yes" for report in drawn])
    expected = SMOKES.matrix()[1, 1]
    assert abs(share - expected) < 5 * np.sqrt(expected * (1 - expected) / 4000)
    ages, law = np.arange(3, 8), AGE.matrix()[4]
    mean = law @ ages
    deviation = np.sqrt((law @ ages**2 - mean**2) / 4000)
    assert abs(np.mean([report[1] for report in drawn]) - mean) < 5 * deviation


def test_a_pool_of_single_attributes_determines_the_marginals_alone():
    # Each person reports one attribute with the whole level; the other part is silent.
    quiet = ik.MatrixMechanism(np.ones((2, 1)), alphabet=["no", "yes"])
    first = ik.product(SMOKES, SILENT).tally([("yes", 0)] * 40 + [("no", 0)] * 60)
    second = ik.product(quiet, TABLE).tally([(0, z) for z in [0, 1, 2, 3] * 25])
    estimate = ik.mle(first + second)
    p, q = SMOKES.matrix()[1, 1], SMOKES.matrix()[0, 1]
    smokers = estimate.distribution.reshape(2, 3)[1].sum()
    assert smokers == pytest.approx((0.4 - q) / (p - q), abs=1e-6)
    assert not estimate.identified.all()


def test_a_product_travels_and_is_kept_in_files(tmp_path, parts):
    mechanism = ik.product(*parts)
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism
    assert hash(ik.product(*parts)) == hash(mechanism)
    tally = mechanism.simulate(np.full(mechanism.k, 3), np.random.default_rng(5))
    tally.save(tmp_path / "tally")
    again = ik.Tally.load(tmp_path / "tally")
    assert again.parts[0].mechanism == mechanism
    assert (again + tally).n == 2 * tally.n
    assert repr(mechanism).startswith("product(")


def test_a_matrix_of_all_tuples_that_would_be_too_large_is_not_needed():
    # 2^18 secrets and reports: the matrix would take 512 GB.
    many = ik.product(*[SMOKES] * 18)
    reports = many.randomize(np.zeros(200, dtype=int), np.random.default_rng(6), codes=True)
    tally = many.tally(reports, codes=True)
    theta = np.full(many.k, 1 / many.k)
    # The uniform distribution of secrets has uniform reports.
    np.testing.assert_allclose(tally.forward(theta), 1 / many.k, rtol=1e-10)
    with pytest.raises(ik.errors.TooLarge, match="the matrix of ProductMechanism"):
        many.matrix()


def test_the_most_mechanisms_allowed_work_everywhere():
    few = ik.product(SMOKES, AGE)
    many = ik.product(*[ik.MatrixMechanism([[1.0]])] * 30, SMOKES, AGE)
    assert len(many.parts) == module.MAX_PARTS
    report = many.randomize(many.alphabet.values[:1], np.random.default_rng(0))[0]
    assert many.tally([report]).n == 1
    assert many.simulate(np.ones(many.k, dtype=int), np.random.default_rng(1)).n == many.k
    assert len(many.release(many.alphabet.values[:2])) == 2
    own, same = many.channel(np.arange(many.m)), few.channel(np.arange(few.m))
    weights = np.arange(1.0, many.m + 1)
    np.testing.assert_allclose(own.gram(weights), same.gram(weights), rtol=1e-12)
    np.testing.assert_allclose(own.adjoint(weights), same.adjoint(weights), rtol=1e-12)


LOSSY = ik.MatrixMechanism([[0.5, 0.1], [0.2, 0.7]], efficiency=[0.6, 0.9])
MEASURED = ik.MatrixMechanism.from_trials([[90, 10], [10, 90]])
REFUSED = [
    ((), TypeError, "product must have at least one mechanism"),
    ((SMOKES, 3), TypeError, "mechanisms must be mechanisms, got 3 at index 1"),
    (([SMOKES, AGE],), TypeError, "got .* at index 0"),
    ((SMOKES, ik.Rappor(3, 1.0)), ValueError, "label each.* at index 1 does not: take Matrix"),
    ((ik.LinearGeometric(ik.Line(0, 5), 1.0),), ValueError, "a truncated kind"),
    ((SMOKES, LOSSY), ValueError, "must not lose reports.*index 1"),
    ((SMOKES, MEASURED), ik.errors.MatrixUncertain, "product would take it"),
    ((ik.RandomizedResponse(30, 1.0),) * 6, ik.errors.TooLarge, "729000000"),
    ((ik.MatrixMechanism([[1.0]]),) * 33, ik.errors.TooLarge, "at most 32, got 33"),
]


@pytest.mark.parametrize(("given", "error", "message"), REFUSED)
def test_what_has_no_product_is_refused(given, error, message):
    with pytest.raises(error, match=message):
        ik.product(*given)


@pytest.mark.parametrize(
    ("reports", "message"),
    [
        (
            ["no"],
            r"reports must be tuples of 2 reports, one of each mechanism, got 'no' at index 0",
        ),
        ([("no", 3), ("no",)], r"got \('no',\) at index 1"),
        ([("no", 3), ("maybe", 3)], "maybe"),
        ([("no", 99)], "99"),
    ],
)
def test_other_reports_are_refused(reports, message):
    with pytest.raises(ik.errors.AlphabetMismatch, match=message):
        ik.product(SMOKES, AGE).tally(reports)
