"""RAPPOR with Bloom filters:
the likelihood of the whole filter by its definition, levels by enumeration.
"""

import itertools
import math

import numpy as np
import pytest

import ibukit as ik
from ibukit.mechanisms.sketches import _sketch_kernels
from ibukit.testing import check_channel, check_mechanism

SMALL = [
    ik.BloomRappor(6, 6, 2, 2, 0.5, 0.5, 0.75),
    ik.BloomRappor(3, 4, 3, 1, 0.0, 0.1, 0.9),
    ik.BloomRappor(4, 5, 2, 3, 0.2, 1.0, 0.0),
    ik.BloomRappor(4, 3, 1, 1, 0.2, 0.7, 0.1, seed=5),
    ik.BloomRappor(5, 4, 6, 2, 0.4, 0.2, 0.3, seed=2),
]


def name(mechanism):
    return f"{mechanism.k}-{mechanism.bits}-{mechanism.hashes}-{mechanism.cohorts}"


def written_out(mechanism):
    """Through the permanent filter, bit by bit."""
    f, p, q = mechanism.f, mechanism.p, mechanism.q
    permanent = np.array([[1 - f / 2, f / 2], [f / 2, 1 - f / 2]])
    one_bit = permanent @ np.array([[1 - p, p], [1 - q, q]])
    reports = list(itertools.product(range(mechanism.cohorts), *[(0, 1)] * mechanism.bits))
    matrix = np.empty((mechanism.k, len(reports)))
    for x, (z, (cohort, *bits)) in itertools.product(range(mechanism.k), enumerate(reports)):
        functions = np.arange(mechanism.hashes) + cohort * mechanism.hashes
        own = set(
            _sketch_kernels.buckets(functions, mechanism.k, mechanism.bits, mechanism.seed)[
                :, x
            ].tolist()
        )
        matrix[x, z] = (
            math.prod(one_bit[int(i in own), bit] for i, bit in enumerate(bits)) / mechanism.cohorts
        )
    return matrix


@pytest.mark.parametrize("mechanism", SMALL, ids=name)
def test_the_matrix_follows_the_definition_and_the_level_is_attained(mechanism, rng):
    np.testing.assert_allclose(mechanism.matrix(), written_out(mechanism), rtol=1e-12)
    check_mechanism(mechanism, rng=rng, n=3000, attained=True)
    check_channel(mechanism._full_channel)
    reports = mechanism.randomize(np.zeros(50, dtype=int), rng)
    assert np.array_equal(mechanism.restore_reports(mechanism.check_reports(reports)), reports)


@pytest.mark.parametrize("mechanism", [m for m in SMALL if m.f > 0], ids=name)
def test_the_lifetime_level_is_that_of_the_permanent_response(mechanism):
    """Which is reported itself where p = 0 and q = 1."""
    shown = ik.BloomRappor(
        mechanism.k,
        mechanism.bits,
        mechanism.hashes,
        mechanism.cohorts,
        mechanism.f,
        0.0,
        1.0,
        mechanism.seed,
    )
    assert ik.privacy.epsilon_ldp(shown) == pytest.approx(mechanism.lifetime_epsilon, rel=1e-12)
    assert shown.epsilon == pytest.approx(shown.lifetime_epsilon, rel=1e-12)
    assert mechanism.epsilon <= mechanism.lifetime_epsilon


def test_filters_of_coinciding_hashes_have_their_own_level():
    """Five bits for six hash functions:
    few secrets set the same number, and no pair is disjoint.
    """
    mechanism = SMALL[-1]
    sizes = {int(n) for cohort in range(2) for n in mechanism.filters(cohort).sum(axis=1)}
    assert len(sizes) > 1
    assert max(sizes) < mechanism.hashes
    if_disjoint = mechanism.hashes * math.log(
        mechanism.p_set * (1 - mechanism.p_clear) / (mechanism.p_clear * (1 - mechanism.p_set))
    )
    assert mechanism.epsilon < 0.5 * if_disjoint


def test_the_published_levels():
    mechanism = ik.BloomRappor(200, 128, 2, 8, 0.5, 0.5, 0.75)
    assert round(mechanism.epsilon, 4) == 1.0743
    assert mechanism.epsilon == pytest.approx(
        2
        * math.log(
            mechanism.p_set * (1 - mechanism.p_clear) / (mechanism.p_clear * (1 - mechanism.p_set))
        ),
        rel=1e-12,
    )
    assert mechanism.lifetime_epsilon == pytest.approx(4 * math.log(3), rel=1e-12)
    assert ik.BloomRappor(200, 128, 2, 8, 0.0, 0.5, 0.75).lifetime_epsilon == math.inf


def test_the_level_of_many_secrets_is_found_soon():
    """Of 20 000 secrets there are 200 million pairs in each cohort;
    one at the largest distance ends the search.
    """
    for hashes, bits in ((3, 64), (5, 7)):
        many = ik.BloomRappor(20_000, bits, hashes, 64, 0.3, 0.4, 0.7)
        one, zero = many.p_set / many.p_clear, (1 - many.p_clear) / (1 - many.p_set)
        apart = min(hashes, bits - hashes)
        sides = sorted([math.log(one), math.log(zero)])
        assert many.epsilon == pytest.approx(hashes * sides[1] + apart * sides[0], rel=1e-10)


def test_one_hash_without_collisions_is_a_unary_encoding():
    seed = next(
        s
        for s in range(1000)
        if _sketch_kernels.buckets(np.array([0]), 3, 3, s)[0].tolist() == [0, 1, 2]
    )
    p = ik.Rappor(3, 1.0).p_one
    same = ik.BloomRappor(3, 3, 1, 1, 0.0, 1 - p, p, seed)
    assert same.epsilon == pytest.approx(1.0, rel=1e-12)
    np.testing.assert_allclose(same.matrix(), ik.Rappor(3, 1.0).matrix(), rtol=1e-12)
    # half of the noise in the permanent response, half in the instantaneous one
    f = 0.3
    q = (p - f / 2) / (1 - f)
    np.testing.assert_allclose(
        ik.BloomRappor(3, 3, 1, 1, f, 1 - q, q, seed).matrix(), same.matrix(), rtol=1e-12
    )


def test_least_squares_is_unbiased_and_says_where_it_is_not_defined(rng):
    mechanism = SMALL[0]
    theta = rng.dirichlet(np.ones(6))
    every = mechanism._all_reports
    np.testing.assert_allclose(
        mechanism.invert(every, theta @ mechanism.matrix()), theta, atol=1e-11
    )
    with pytest.raises(
        ik.errors.NotInvertible, match="the filters of the cohorts seen have rank 2 for 4 secrets"
    ):
        ik.inv(SMALL[3].tally(SMALL[3].randomize([0, 1, 2, 3], rng)))


def test_many_reports_go_to_the_parabola_and_agree(rng):
    mechanism = ik.BloomRappor(60, 32, 2, 8, 0.25, 0.3, 0.7)
    counts = rng.multinomial(4000, rng.dirichlet(np.ones(60) / 5))
    tally = mechanism.simulate(counts, rng)
    found = {method: ik.mle(tally, method=method) for method in ("auto", "bits", "dense", "ibu")}
    assert "parabola" in found["auto"].method
    for each in found.values():
        assert each.gap <= 1e-9
        assert abs(each.log_likelihood - found["dense"].log_likelihood) <= 2e-9 * tally.n
    assert len((tally + mechanism.simulate(counts, rng)).parts) == 1
    both = ik.mle(tally + ik.HadamardResponse(60, 1.0).simulate(counts, rng))
    assert both.gap <= 1e-9
    l1 = np.abs(found["auto"].distribution - counts / counts.sum()).sum()
    assert l1 < np.abs(ik.inv(tally, post="none").distribution - counts / counts.sum()).sum()


def test_thousands_of_bits_do_not_underflow(rng):
    k, bits = 20, 5000
    mechanism = ik.BloomRappor(k, bits, 15, 1000, 0.5, 0.5, 0.75)
    tally = mechanism.tally(mechanism.randomize(rng.integers(0, k, 500), rng))
    theta = rng.dirichlet(np.ones(k))
    some = mechanism.restore_reports(tally.parts[0].reports[:5]).astype(int)
    a, b = mechanism.p_set, mechanism.p_clear
    for report, p, scale in zip(some, tally.forward(theta), tally.log_scale, strict=False):
        filters, bits_seen = mechanism.filters(int(report[0])), report[1:]
        empty = (
            bits_seen.sum() * math.log(b)
            + (bits - bits_seen.sum()) * math.log1p(-b)
            - math.log(1000)
        )
        ratios = np.where(
            filters == 1, np.where(bits_seen == 1, a / b, (1 - a) / (1 - b)), 1.0
        ).prod(axis=1)
        assert math.log(p) + scale == pytest.approx(empty + math.log(theta @ ratios), rel=1e-12)
        assert empty < math.log(5e-324)
    assert ik.mle(tally).gap <= 1e-9


def test_a_sampler_without_the_second_hash_is_noticed(rng):
    class Careless(ik.BloomRappor):
        def draw(self, secrets, rng):
            return ik.BloomRappor(self.k, self.bits, 1, self.cohorts, self.f, self.p, self.q).draw(
                secrets, rng
            )

    with pytest.raises(AssertionError, match="does not follow the stated probabilities"):
        check_mechanism(Careless(4, 4, 2, 1, 0.2, 0.3, 0.8), rng=rng, n=20_000)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"bits": 1}, "bits must be at least 2, got 1"),
        ({"hashes": 16}, "hashes must be at most 15, got 16"),
        ({"hashes": 0}, "hashes must be at least 1, got 0"),
        ({"cohorts": 0}, "cohorts must be at least 1, got 0"),
        ({"f": 1.0}, r"f must be in \[0, 1\), got 1\.0"),
        ({"p": math.nan}, r"p must be in \[0, 1\], got nan"),
        ({"q": 0.5}, r"p and q must differ, got 0\.5 for both"),
        (
            {"f": 0.0, "p": 0.0},
            r"f, p and q must leave each bit in doubt, got 0\.0, 0\.0 and 0\.75",
        ),
        ({"alphabet": 1}, "number of secrets must be at least 2, got 1"),
    ],
)
def test_what_is_refused(given, message):
    good = {"alphabet": 7, "bits": 8, "hashes": 2, "cohorts": 2, "f": 0.5, "p": 0.5, "q": 0.75}
    with pytest.raises(ValueError, match=message):
        ik.BloomRappor(**good | given)


def test_filters_that_tell_nobody_apart_are_refused():
    seed = next(
        s
        for s in range(1000)
        if len(set(_sketch_kernels.buckets(np.array([0]), 3, 2, s)[0].tolist())) == 1
    )
    with pytest.raises(
        ValueError, match="bits, hashes and cohorts must tell secrets apart, got 2, 1 and 1"
    ):
        ik.BloomRappor(3, 2, 1, 1, 0.5, 0.5, 0.75, seed)
    with pytest.raises(ValueError, match="cohort must be below 2, got 2"):
        SMALL[0].filters(2)


@pytest.mark.parametrize(
    ("report", "message"),
    [
        (
            [0, 1, 0],
            r"reports must be rows of a cohort and 6 bits, shape \(n, 7\), got shape \(1, 3\)",
        ),
        ([2, 1, 0, 0, 0, 0, 0], "reports must have their cohort from 0 to 1, got 2 at index 0"),
        ([1, 1, 0, 3, 0, 0, 0], "reports must have bits 0 and 1 after the cohort, got 3"),
        ([1, 1, 0, math.nan, 0, 0, 0], "reports must be whole numbers, got nan"),
    ],
)
def test_reports_that_are_no_filters(report, message):
    with pytest.raises(ValueError, match=message):
        SMALL[0].tally([report])


@pytest.mark.parametrize("seed", [1, 2])
def test_filters_of_another_program_are_read_by_their_likelihoods(seed, rng):
    # the other program's functions are those of another seed; the docstring names the way
    ours, theirs = (ik.BloomRappor(6, 16, 2, 4, 0.2, 0.2, 0.8, seed=each) for each in (0, seed))
    reports = theirs.randomize([3] * 4000, rng)
    sets = np.array([theirs.filters(cohort) for cohort in range(4)], dtype=bool)
    chance = np.where(sets, theirs.p_set, theirs.p_clear)[reports[:, 0]]
    rows = np.where(reports[:, None, 1:], chance, 1 - chance).prod(axis=2)
    assert ik.mle(ik.Tally.from_likelihoods(rows)).distribution[3] > 0.99
    assert ik.mle(ours.tally(reports)).distribution[3] < 0.9


@pytest.mark.parametrize(
    ("family", "way"),
    [
        (ik.BloomRappor, "`Tally.from_likelihoods`"),
        (ik.LocalHashing, "`UnaryEncoding`"),
        (ik.CountMeanSketch, "`UnaryEncoding`"),
        (ik.HadamardCountMeanSketch, "`CountMeanSketch`"),
        (ik.LongitudinalHashing, "`LocalHashing`"),
    ],
    ids=lambda case: getattr(case, "__name__", ""),
)
def test_hash_families_say_what_to_do_with_those_of_another_program(family, way):
    described = " ".join(family.__doc__.split())
    assert "another program's hash functions" in described
    assert way in described
