"""Combining results and combining mechanisms:
against loops, the linear system, and exact variances.
"""

from functools import partial

import numpy as np
import pytest

import ibukit as ik
from oracles import free_will, naive

TIGHT = 1e-12
K = 6
LINE = ik.Line(0, K - 1)
SQUARE, WIDE = (np.random.default_rng(11).dirichlet(np.full(m, 0.4), K) for m in (K, K + 3))
# mechanism and its matrix by the oracle; those of a pool have the same reports
POOLS = {
    "k-RR": [(ik.RandomizedResponse(LINE, e), naive.k_rr(K, e)) for e in (0.3, 1.0, 4.0)],
    "geometric": [
        (ik.TruncatedGeometric(LINE, e), naive.truncated_geometric(K, e)) for e in (0.2, 1.0, 3.0)
    ],
    "mixed": [
        (ik.RandomizedResponse(LINE, 2.0), naive.k_rr(K, 2.0)),
        (ik.TruncatedGeometric(LINE, 0.4), naive.truncated_geometric(K, 0.4)),
        (ik.MatrixMechanism(SQUARE, LINE), SQUARE),
    ],
    "RAPPOR": [(ik.Rappor(LINE, e), naive.rappor(K, e)) for e in (0.5, 2.0, 6.0)],
    "OUE": [(ik.OptimizedUnaryEncoding(LINE, e), naive.oue(K, e)) for e in (0.5, 2.0)],
}
LISTED = ["k-RR", "geometric", "mixed"]
POSTS = {"none": lambda v: v, "normalize": naive.clip_and_normalize, "project": naive.project}


def drawn(name, rng, most=60):
    """Groups of unequal size: the pooled tally, the matrices, and the counts of every group."""
    made = []
    for place, (mechanism, matrix) in enumerate(POOLS[name]):
        counts = rng.integers(0, most, matrix.shape[1]) * (1 + 3 * place)
        made.append((mechanism.tally_counts(counts), matrix, counts))
    tallies, matrices, counts = zip(*made, strict=True)
    return sum(tallies), matrices, counts


def bit_frequencies(counts):
    bits = np.array(naive.all_bit_rows(K))
    return counts @ bits / counts.sum()


def inv_of_group(name, matrix, counts, place):
    if name == "RAPPOR":
        return free_will.inv_of_bits(bit_frequencies(counts), POOLS[name][place][0].epsilon)
    if name == "OUE":
        other = 1 / (np.exp(POOLS[name][place][0].epsilon) + 1)
        return (bit_frequencies(counts) - other) / (0.5 - other)
    return naive.inv(matrix, counts)


def error_at_uniform(name, matrix, place):
    uniform = np.full(K, 1 / K)
    if name == "RAPPOR":
        half = np.exp(POOLS[name][place][0].epsilon / 2)
        return free_will.compound_bit_error([(half / (1 + half), 1 / (1 + half))], [1.0], uniform)
    if name == "OUE":
        return free_will.compound_bit_error(
            [(0.5, 1 / (1 + np.exp(POOLS[name][place][0].epsilon)))], [1.0], uniform
        )
    return free_will.inv_error(matrix, uniform)


def shares_of(counts):
    n = sum(int(c.sum()) for c in counts)
    return [int(c.sum()) / n for c in counts]


def pooled_columns(matrices, counts):
    return free_will.users(list(zip(matrices, counts, strict=True)))


@pytest.mark.ledger("C-E7")
@pytest.mark.parametrize("post", POSTS)
@pytest.mark.parametrize("name", POOLS)
def test_combined_inversions_are_a_weighted_mean(name, post, rng):
    tally, matrices, counts = drawn(name, rng)
    each = [
        POSTS[post](inv_of_group(name, matrix, c, place))
        for place, (matrix, c) in enumerate(zip(matrices, counts, strict=True))
    ]
    expected = np.dot(shares_of(counts), each)
    found = ik.combine_results(tally, ik.inv, post=post)
    np.testing.assert_allclose(found.distribution, expected, atol=TIGHT)
    letter = {"none": "", "normalize": "-N", "project": "-P"}[post]
    unary = name in ("RAPPOR", "OUE")
    assert found.method == f"[{'RAP' if unary else 'INV'}{letter}]_R, weights: n_A / n"
    on = expected.min() >= 0 and abs(expected.sum() - 1) <= 1e-9
    assert found.status is (ik.Status.CLOSED_FORM if on else ik.Status.OFF_SIMPLEX)
    assert found.n_iter == 0


@pytest.mark.ledger("C-E7")
@pytest.mark.parametrize("project", [False, True])
@pytest.mark.parametrize("name", POOLS)
def test_inverse_variances_weigh_by_group_size_over_exact_error(name, project, rng):
    tally, matrices, counts = drawn(name, rng)
    precision = np.array(
        [
            c.sum() / error_at_uniform(name, m, i)
            for i, (m, c) in enumerate(zip(matrices, counts, strict=True))
        ]
    )
    each = [
        inv_of_group(name, m, c, i) for i, (m, c) in enumerate(zip(matrices, counts, strict=True))
    ]
    expected = np.dot(precision / precision.sum(), each)
    found = ik.combine_results(tally, weights="variance", post="none", project=project)
    expected = naive.project(expected) if project else expected
    np.testing.assert_allclose(found.distribution, expected, atol=TIGHT)
    assert found.method.endswith(f"weights: inverse variances{', projected' if project else ''}")


@pytest.mark.ledger("C-E7")
@pytest.mark.parametrize("steps", [1, 10, 100])
@pytest.mark.parametrize("name", ["k-RR", "mixed", "RAPPOR"])
def test_combined_ibu_is_a_weighted_mean(name, steps, rng):
    tally, matrices, counts = drawn(name, rng)
    each = [naive.ibu(matrix, c, steps) for matrix, c in zip(matrices, counts, strict=True)]
    found = ik.combine_results(tally, ik.ibu, stop=ik.Steps(steps))
    assert np.abs(found.distribution - np.dot(shares_of(counts), each)).max() <= TIGHT
    assert found.method == "[IBU]_R, weights: n_A / n"
    assert (found.status, found.n_iter) == (ik.Status.STOPPED, 3 * steps)


@pytest.mark.parametrize("estimator", [ik.inv, ik.ibu, ik.mle])
@pytest.mark.parametrize("second", ["bloom", "sketch"])
@pytest.mark.parametrize("first", ["bloom", "sketch"])
def test_numbered_rows_of_bits_are_columns_of_the_average_matrix(first, second, estimator, rng):
    made = {
        "bloom": lambda q: ik.BloomRappor(4, 8, 1, cohorts=4, f=0.25, p=0.5, q=q),
        "sketch": lambda q: ik.CountMeanSketch(4, 2 * q, rows=4, width=8),
    }
    pool = made[first](0.75), made[second](0.875)
    drawn = [
        each.randomize([0, 1, 2, 3, 3] * n, rng) for each, n in zip(pool, (9, 15), strict=True)
    ]
    found = ik.combine_mechanisms(sum(map(lambda m, r: m.tally(r), pool, drawn)), estimator)
    # The columns are in the order of the numbers that a row and its bits spell.
    rows = np.concatenate(drawn).astype(int)
    columns = rows @ np.r_[2**8, 2 ** np.arange(8)[::-1]]
    matrix = np.average([each.matrix() for each in pool], axis=0, weights=[9, 15])
    counts = np.bincount(columns, minlength=pool[0].m)
    expected = estimator(ik.MatrixMechanism(matrix, 4).tally_counts(counts))
    np.testing.assert_allclose(found.distribution, expected.distribution, atol=TIGHT)


@pytest.mark.parametrize("name", LISTED)
def test_likelihood_and_gap_are_those_of_all_reports_through_their_own_mechanisms(name, rng):
    tally, matrices, counts = drawn(name, rng)
    stacked, all_counts = np.concatenate(matrices, axis=1), np.concatenate(counts)
    best = ik.mle(tally, tol=1e-12)
    for found in (
        ik.combine_results(tally),
        ik.combine_results(tally, ik.mle, weights="variance"),
        ik.combine_mechanisms(tally, post="normalize"),
        ik.combine_mechanisms(tally, ik.ibu),
    ):
        theta = found.distribution
        assert found.log_likelihood == pytest.approx(
            naive.log_likelihood(stacked, all_counts, theta), rel=TIGHT
        )
        assert found.gap == pytest.approx(naive.gap(stacked, all_counts, theta), rel=1e-9)
        assert 0 < (best.log_likelihood - found.log_likelihood) / tally.n <= found.gap
        assert found.tally is tally


def test_raw_averages_off_the_simplex_certify_nothing(rng):
    counts = ik.RandomizedResponse(LINE, 0.1).simulate([300, 0, 0, 0, 0, 0], rng)
    tally = counts + ik.RandomizedResponse(LINE, 0.2).simulate([300, 0, 0, 0, 0, 0], rng)
    for found in (
        ik.combine_results(tally, post="none"),
        ik.combine_mechanisms(tally, post="none"),
    ):
        assert found.distribution.min() < 0
        assert (found.status, found.gap) == (ik.Status.OFF_SIMPLEX, np.inf)
    projected = ik.combine_results(tally, post="none", project=True)
    assert projected.status is ik.Status.CLOSED_FORM
    assert projected.gap < np.inf


def test_raw_averages_may_lie_on_the_simplex_though_no_part_does():
    def one_sided(tally):
        low = tally.parts[0].mechanism.epsilon < 1
        return ik.Estimate(
            np.array([1.5, -0.5] if low else [-0.5, 1.5]),
            -np.inf,
            np.inf,
            ik.Status.OFF_SIMPLEX,
            0,
            "",
            tally.alphabet,
            tally,
        )

    tally = ik.RandomizedResponse(2, 0.5).tally([0, 1]) + ik.RandomizedResponse(2, 2.0).tally(
        [0, 1]
    )
    found = ik.combine_results(tally, one_sided)
    assert np.array_equal(found.distribution, [0.5, 0.5])
    assert found.status is ik.Status.CLOSED_FORM


HARD = ik.Gap(1e-14)


@pytest.mark.parametrize(
    ("stops", "said"),
    [
        ((ik.Steps(3), ik.Gap(1e-3), ik.Gap(1e-3)), "STOPPED"),
        ((ik.Gap(1e-3), ik.Gap(1e-3), ik.Gap(1e-3)), "CONVERGED"),
        ((ik.Gap(1e-3), HARD, ik.Steps(3)), "MAX_ITER"),
        ((None, ik.Gap(1e-3), None), "CONVERGED"),
        ((None, None, None), "CLOSED_FORM"),
    ],
)
def test_the_status_is_that_of_the_worst_group(stops, said, rng):
    tally, _, _ = drawn("k-RR", rng)
    rules = {part.mechanism: stop for part, stop in zip(tally.parts, stops, strict=True)}
    alone = []

    def estimator(group):
        stop = rules[group.parts[0].mechanism]
        alone.append(
            ik.inv(group)
            if stop is None
            else ik.ibu(group, stop=stop, max_iter=9 if stop == HARD else 9999)
        )
        return alone[-1]

    found = ik.combine_results(tally, estimator)
    assert found.status.name == said
    assert found.n_iter == sum(one.n_iter for one in alone)
    assert [one.tally.parts for one in alone] == [(part,) for part in tally.parts], (
        "a group at a time"
    )


@pytest.mark.parametrize("name", ["k-RR", "geometric"])
def test_inverse_variances_are_the_best_of_fixed_weights_at_uniform_secrets(name):
    """The exact error of an average of independent unbiased estimates: sum_A w_A^2 e_A / n_A."""
    sizes = np.array([500, 200, 300])
    errors = np.array([free_will.inv_error(matrix, np.full(K, 1 / K)) for _, matrix in POOLS[name]])
    tally = sum(
        mechanism.tally_counts(np.full(K, n))
        for (mechanism, _), n in zip(POOLS[name], 6 * sizes, strict=True)
    )
    # reads the weights off an estimator that names the group it was given
    weights = np.zeros(3)
    for place, (mechanism, _) in enumerate(POOLS[name]):

        def marks(group, this=mechanism):
            return np.eye(K)[int(group.parts[0].mechanism == this)]

        weights[place] = ik.combine_results(tally, marks, weights="variance").distribution[1]
    assert weights.sum() == pytest.approx(1, abs=TIGHT)
    least = (weights**2 * errors / sizes).sum()
    assert least == pytest.approx(1 / (sizes / errors).sum(), rel=1e-10)
    for step in 0.05 * (np.eye(3) - np.eye(3)[[1, 2, 0]]):
        for moved in (weights + step, weights - step):
            assert (moved**2 * errors / sizes).sum() > least * (1 + 1e-4)
    assert ((sizes / sizes.sum()) ** 2 * errors / sizes).sum() > 1.5 * least, "the paper's weights"


def test_averages_of_raw_inversions_are_unbiased(rng):
    """E of the estimate is the estimate at the expected frequencies;
    n so large that these are whole numbers.
    """
    theta = rng.dirichlet(np.ones(K))
    pool = POOLS["mixed"]
    sizes = np.array([0.2, 0.5, 0.3]) * 1e15
    tally = sum(
        mechanism.tally_counts(np.rint(n * theta @ matrix).astype(np.int64))
        for (mechanism, matrix), n in zip(pool, sizes, strict=True)
    )
    for weights in ("users", "variance"):
        found = ik.combine_results(tally, weights=weights, post="none")
        assert np.abs(found.distribution - theta).max() <= 1e-11
    found = ik.combine_mechanisms(tally, post="none")
    assert np.abs(found.distribution - theta).max() <= 1e-11
    biased = ik.combine_results(tally, lambda group: ik.uniform(K))
    assert np.abs(biased.distribution - theta).max() > 0.01


@pytest.mark.ledger("C-E9", "C-E10")
@pytest.mark.parametrize("post", POSTS)
@pytest.mark.parametrize("name", LISTED)
def test_combined_mechanisms_solve_the_linear_system(name, post, rng):
    tally, matrices, counts = drawn(name, rng)
    shares, pooled = shares_of(counts), np.sum(counts, axis=0)
    q = pooled / pooled.sum()  # (9)
    assert np.abs(q - np.dot(shares, [c / c.sum() for c in counts])).max() <= 1e-15
    v = np.linalg.solve(free_will.average(matrices, shares).T, q)  # (10)
    found = ik.combine_mechanisms(tally, post=post)
    np.testing.assert_allclose(found.distribution, POSTS[post](v), atol=TIGHT)
    assert (
        found.method == {"none": "[INV]_M", "normalize": "[INV-N]_M", "project": "[INV-P]_M"}[post]
    )


@pytest.mark.ledger("C-E12")
def test_equation_12_as_printed(rng):
    tally, _, counts = drawn("k-RR", rng)
    q = np.sum(counts, axis=0) / tally.n
    e = np.exp(
        free_will.average_krr_level(K, [m.epsilon for m, _ in POOLS["k-RR"]], shares_of(counts))
    )
    printed = (e + K - 1) / (e - 1) * q - 1 / (e - 1)
    assert np.abs(ik.combine_mechanisms(tally, post="none").distribution - printed).max() <= TIGHT


@pytest.mark.ledger("C-E17")
@pytest.mark.parametrize("post", POSTS)
def test_equation_17_as_printed(post, rng):
    tally, _, counts = drawn("RAPPOR", rng)
    bits = bit_frequencies(np.sum(counts, axis=0))
    level = free_will.average_rappor_level(
        [m.epsilon for m, _ in POOLS["RAPPOR"]], shares_of(counts)
    )
    found = ik.combine_mechanisms(tally, post=post)
    np.testing.assert_allclose(
        found.distribution, POSTS[post](free_will.inv_of_bits(bits, level)), atol=TIGHT
    )
    assert (
        found.method == {"none": "[RAP]_M", "normalize": "[RAP-N]_M", "project": "[RAP-P]_M"}[post]
    )


def test_bits_of_oue_and_subset_selections_are_pooled_too(rng):
    tally, _, counts = drawn("OUE", rng)
    bits, shares = bit_frequencies(np.sum(counts, axis=0)), shares_of(counts)
    other = np.dot(shares, [1 / (1 + np.exp(m.epsilon)) for m, _ in POOLS["OUE"]])
    found = ik.combine_mechanisms(tally, post="none")
    np.testing.assert_allclose(found.distribution, (bits - other) / (0.5 - other), atol=TIGHT)
    sets = [ik.SubsetSelection(LINE, epsilon, 2) for epsilon in (0.5, 3.0)]
    tally = ik.FreeWill(sets).simulate([50, 0, 200, 100, 10, 30], rng)
    average = ik.average_mechanism(sets, [part.counts.sum() / tally.n for part in tally.parts])
    q = np.zeros(average.m)
    for part in tally.parts:
        q += [
            part.counts[(part.reports == row).all(axis=1)].sum() / tally.n
            for row in average._all_reports
        ]
    expected = q @ np.linalg.pinv(average.matrix())
    np.testing.assert_allclose(
        ik.combine_mechanisms(tally, post="none").distribution, expected, atol=TIGHT
    )
    # all bits together have the law of the average here, so that there is a likelihood
    found = ik.combine_mechanisms(tally, ik.ibu, stop=ik.Steps(20))
    assert np.abs(found.distribution - naive.ibu(average.matrix(), q, 20)).max() <= TIGHT


@pytest.mark.ledger("C-E13")
@pytest.mark.parametrize("steps", [1, 10, 100])
@pytest.mark.parametrize("name", LISTED)
def test_combined_ibu_takes_the_average_mechanism(name, steps, rng):
    tally, matrices, counts = drawn(name, rng)
    average = free_will.average(matrices, shares_of(counts))
    found = ik.combine_mechanisms(tally, ik.ibu, stop=ik.Steps(steps))
    assert (
        np.abs(found.distribution - naive.ibu(average, np.sum(counts, axis=0), steps)).max()
        <= TIGHT
    )
    assert (found.method, found.status, found.n_iter) == ("[IBU]_M", ik.Status.STOPPED, steps)


def test_more_reports_than_secrets(rng):
    """The pseudo-inverse of the average, and unequal sets of seen reports."""
    other = np.random.default_rng(12).dirichlet(np.ones(K + 3), K)
    counts = [rng.integers(1, 50, K + 3) for _ in range(2)]
    counts[0][2], counts[1][5] = 0, 0
    tally = sum(
        ik.MatrixMechanism(m).tally_counts(c) for m, c in zip((WIDE, other), counts, strict=True)
    )
    average = free_will.average([WIDE, other], shares_of(counts))
    q = np.sum(counts, axis=0) / tally.n
    found = ik.combine_mechanisms(tally, post="none")
    np.testing.assert_allclose(found.distribution, q @ np.linalg.pinv(average), atol=TIGHT)
    found = ik.combine_mechanisms(tally, ik.ibu, stop=ik.Steps(50))
    assert (
        np.abs(found.distribution - naive.ibu(average, np.sum(counts, axis=0), 50)).max() <= TIGHT
    )


@pytest.mark.parametrize("post", POSTS)
@pytest.mark.parametrize(
    "mechanism", [ik.RandomizedResponse(LINE, 1.0), ik.Rappor(LINE, 1.0)], ids=["k-RR", "RAPPOR"]
)
def test_of_equal_mechanisms_both_ways_are_the_plain_estimator(mechanism, post, rng):
    groups = [mechanism.simulate(rng.integers(5, 30, K), rng) for _ in range(3)]
    tally = sum(groups)
    plain = ik.inv(tally, post=post)
    for combine in (ik.combine_results, ik.combine_mechanisms):
        assert np.array_equal(combine(tally, post=post).distribution, plain.distribution)
    plain = ik.ibu(tally)
    for combine in (ik.combine_results, ik.combine_mechanisms):
        found = combine(tally, ik.ibu)  # of one RAPPOR there is a likelihood
        assert np.array_equal(found.distribution, plain.distribution)
        assert (found.gap, found.n_iter) == (plain.gap, plain.n_iter)


@pytest.mark.ledger("C-E13", "C-X14")
def test_an_average_that_says_nothing(rng):
    truthful, lying = (
        ik.MatrixMechanism(m) for m in ([[0.75, 0.25], [0.25, 0.75]], [[0.25, 0.75], [0.75, 0.25]])
    )
    # as many users each: the average is flat to the last bit
    tally = truthful.simulate([90_000, 10_000], rng) + lying.simulate([90_000, 10_000], rng)
    with pytest.raises(ik.errors.NotInvertible, match="rank 1 for 2 secrets"):
        ik.combine_mechanisms(tally)
    for start in ([0.5, 0.5], [0.3, 0.7]):
        found = ik.combine_mechanisms(tally, ik.ibu, start=start)
        np.testing.assert_allclose(found.distribution, start, rtol=1e-15)
        assert (found.status, found.n_iter) == (ik.Status.CONVERGED, 0)
        assert found.gap > 0.01, "the pooled tally knows better"
    for best in (
        ik.mle(tally),
        ik.ibu(tally),
        ik.combine_results(tally),
        ik.combine_results(tally, ik.ibu),
    ):
        assert np.abs(best.distribution - [0.9, 0.1]).max() < 0.01
    assert ik.mle(tally).gap < 1e-9


@pytest.mark.parametrize(
    ("estimator", "options", "name"),
    [
        (ik.inv, {}, "INV-P"),
        (ik.inv, {"post": "none"}, "INV"),
        (partial(ik.inv, post="normalize"), {}, "INV-N"),
        (partial(ik.inv, post="normalize"), {"post": "none"}, "INV"),
        (partial(partial(ik.inv, post="none"), post="project"), {}, "INV-P"),
        (ik.ibu, {"stop": ik.Steps(5)}, "IBU"),
        (partial(ik.ibu, stop=ik.Steps(5)), {"accelerate": False}, "IBU"),
        (ik.mle, {"tol": 1e-6}, "MLE"),
        (ik.smooth, {}, "smooth"),
        (lambda tally: ik.uniform(tally.k), {}, "<lambda>"),
    ],
)
def test_options_partials_and_names(estimator, options, name, rng):
    tally, _, _ = drawn("k-RR", rng)
    for combine, letter in ((ik.combine_results, "R"), (ik.combine_mechanisms, "M")):
        found = combine(tally, estimator, **options)
        assert found.method.split(",")[0] == f"[{name}]_{letter}"
    groups = [ik.Tally((part,)) for part in tally.parts]
    each = [estimator(group, **options) for group in groups]
    each = [one.distribution if isinstance(one, ik.Estimate) else one for one in each]
    expected = np.dot([group.n / tally.n for group in groups], each)
    assert (
        np.abs(ik.combine_results(tally, estimator, **options).distribution - expected).max()
        <= TIGHT
    )


def test_an_object_that_can_be_called_has_the_name_of_its_class(rng):
    class Uniformly:
        def __call__(self, tally):
            return ik.uniform(tally.k)

    tally, _, _ = drawn("mixed", rng)
    assert ik.combine_results(tally, Uniformly()).method == "[Uniformly]_R, weights: n_A / n"
    found = ik.combine_mechanisms(tally, Uniformly())
    assert (found.method, found.status) == ("[Uniformly]_M", ik.Status.CLOSED_FORM)


def test_what_the_estimator_returns_is_not_changed(rng):
    tally, _, _ = drawn("k-RR", rng)
    kept = ik.uniform(K)
    found = ik.combine_mechanisms(tally, lambda _: kept)
    assert not np.shares_memory(found.distribution, kept)
    assert not found.distribution.flags.writeable


def test_the_average_of_one_mechanism_is_that_mechanism(rng):
    """Its tally goes to the estimator as it is."""
    tally, asked = POOLS["geometric"][1][0].tally_counts(rng.integers(1, 60, K)), []
    found = ik.combine_mechanisms(tally, lambda given: asked.append(given) or ik.mle(given))
    assert asked == [tally]
    np.testing.assert_array_equal(found.distribution, ik.mle(tally).distribution)


@pytest.mark.filterwarnings("error")
def test_estimates_of_a_single_secret_have_no_error_and_are_combined_all_the_same():
    tally = sum(ik.Exponential(1, epsilon).tally([0, 0]) for epsilon in (1.0, 2.0))
    assert ik.combine_results(tally, weights="variance").distribution.tolist() == [1.0]
