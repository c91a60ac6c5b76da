"""Users who pick their mechanisms:
the law of every group's reports, and a population like any other to `replicate`.
"""

import pickle
from functools import partial

import numpy as np
import pytest
from scipy import stats

import ibukit as ik
from ibukit.files.canonical_text import fingerprint as digest
from ibukit.files.seeding import spawn_key
from oracles import naive
from replicate_cases import LINE as AGES
from replicate_cases import MECHANISMS, PEOPLE, numbers

FALSE_ALARM = 1e-6
LINE = ik.Line(0, 4)
THETA = np.array([0.1, 0.4, 0.05, 0.25, 0.2])
SHARES = np.array([0.2, 0.5, 0.3])
KRR, LAPLACE = ik.RandomizedResponse(LINE, 1.0), ik.TruncatedGeometric(LINE, 0.5)
MATRIX = np.random.default_rng(3).dirichlet(np.ones(7), 5)
THREE = [KRR, LAPLACE, ik.MatrixMechanism(MATRIX, LINE)]
MATRICES = [naive.k_rr(5, 1.0), naive.truncated_geometric(5, 0.5), MATRIX]


def p_value(counts, expected):
    """Chi-squared test of the counts of cells against a multinomial law."""
    assert expected.min() > 50
    return stats.chi2.sf(((counts - expected) ** 2 / expected).sum(), counts.size - 1)


def cells(users, n, rng):
    """How many users reported what through which mechanism, secrets drawn anew."""
    tally = users.simulate(rng.multinomial(n, THETA), rng)
    assert [part.mechanism for part in tally.parts] == list(users.mechanisms)
    groups = [np.bincount(part.reports, part.counts, part.mechanism.m) for part in tally.parts]
    assert sum(group.sum() for group in groups) == tally.n == n
    return np.concatenate(groups)


@pytest.mark.ledger("C-D4")
def test_every_group_has_the_law_of_its_own_mechanism(rng):
    n = 200_000
    counts = cells(ik.FreeWill(THREE, SHARES), n, rng)

    def law(theta, shares, matrices):
        return n * np.concatenate(
            [
                share * np.asarray(theta) @ matrix
                for share, matrix in zip(shares, matrices, strict=True)
            ]
        )

    assert p_value(counts, law(THETA, SHARES, MATRICES)) > FALSE_ALARM
    # the test sees other shares, other secrets, another level, and reports that went to the wrong
    # group
    assert p_value(counts, law(THETA, [0.21, 0.49, 0.3], MATRICES)) < FALSE_ALARM
    assert p_value(counts, law([0.12, 0.38, 0.05, 0.25, 0.2], SHARES, MATRICES)) < FALSE_ALARM
    assert p_value(counts, law(THETA, SHARES, [naive.k_rr(5, 1.3), *MATRICES[1:]])) < FALSE_ALARM
    assert p_value(counts, law(THETA, SHARES, [MATRICES[1], MATRICES[0], MATRIX])) < FALSE_ALARM


@pytest.mark.ledger("C-D4")
def test_users_choose_independently_of_their_secret(rng):
    """Two mechanisms that hide nothing, so that tallies show who chose which."""
    honest, mirror = ik.MatrixMechanism(np.eye(5)), ik.MatrixMechanism(np.eye(5)[::-1].copy())
    users = ik.FreeWill([honest, mirror], [0.3, 0.7])
    secrets = np.array([20_000, 5_000, 60_000, 300, 10_000])
    one, two = users.simulate(secrets, rng).parts
    table = np.array([one.counts, two.counts[::-1]])
    assert np.array_equal(table.sum(axis=0), secrets), "every user is in one group"

    def p(table):
        return stats.chi2_contingency(table).pvalue

    assert p(table) > FALSE_ALARM
    assert stats.binomtest(int(table[0].sum()), int(secrets.sum()), 0.3).pvalue > FALSE_ALARM
    moved = table.copy()
    moved[:, 2] += [900, -900]
    assert p(moved) < FALSE_ALARM


def test_groups_of_different_reports_keep_them_apart(rng):
    kinds = [
        KRR,
        ik.Rappor(LINE, 2.0),
        ik.LinearGeometric(LINE, 0.3),
        ik.SubsetSelection(LINE, 1.0, 2),
    ]
    tally = ik.FreeWill(kinds).simulate([100, 0, 300, 50, 50], rng)
    assert [part.mechanism for part in tally.parts] == kinds
    assert tally.n == 500
    for part, mechanism in zip(tally.parts, kinds, strict=True):
        alone = mechanism.simulate([30, 0, 0, 0, 0], rng).parts[0]
        assert (part.reports.dtype, part.reports.ndim) == (alone.reports.dtype, alone.reports.ndim)


def test_a_mechanism_that_nobody_chose_is_not_in_the_tally(rng):
    for shares in ([0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.5, 0.5]):
        tally = ik.FreeWill(THREE, shares).simulate([10, 10, 10, 10, 10], rng)
        assert [part.mechanism for part in tally.parts] == [
            a for a, p in zip(THREE, shares, strict=True) if p
        ]
    alone = ik.FreeWill(THREE).simulate([0, 0, 1, 0, 0], rng)
    assert (alone.n, len(alone.parts)) == (1, 1)
    thousand = [ik.RandomizedResponse(LINE, epsilon) for epsilon in np.linspace(1, 2, 1000)]
    some = ik.FreeWill(thousand).simulate([100, 0, 0, 0, 100], rng)
    assert some.n == 200
    assert 100 < len(some.parts) <= 200


def test_one_mechanism_is_that_mechanism():
    secrets = [100, 20, 3, 40, 50]
    users = ik.FreeWill([KRR])
    one, two = (
        users.simulate(secrets, np.random.default_rng(5)),
        users.simulate(secrets, np.random.default_rng(5)),
    )
    assert np.array_equal(one.counts, two.counts), "the generator decides"
    assert one.parts[0].mechanism == KRR
    assert users.alphabet == LINE


def test_equal_where_all_is_equal():
    users = ik.FreeWill(THREE, SHARES, name="three")
    same = ik.FreeWill(tuple(THREE), list(SHARES), "three")
    assert users == same
    assert hash(users) == hash(same)
    others = [
        ik.FreeWill(THREE, SHARES),
        ik.FreeWill(THREE, name="three"),
        ik.FreeWill(THREE[::-1], SHARES, "three"),
        ik.FreeWill(THREE[:2], [0.5, 0.5], "three"),
        KRR,
    ]
    assert all(users != other for other in others)
    assert len({digest(other) for other in (users, *others)}) == 6
    assert digest(users) == digest(same)
    assert len({spawn_key(other) for other in (users, *others)}) == 6
    assert repr(users) == "FreeWill('three', 3 mechanisms over Line(0, 4))"


def test_pickles_and_stays_as_it_is(rng):
    shares = SHARES.copy()
    users = ik.FreeWill(THREE, shares)
    copy = pickle.loads(pickle.dumps(users))
    assert copy == users
    for one in (users, copy):
        with pytest.raises(ValueError, match="read-only"):
            one.shares[0] = 1.0
        with pytest.raises(AttributeError):
            one.name = "other"
    shares[0] = 0.9
    assert users == copy, "the shares are the object's own"
    tallies = [one.simulate([50] * 5, np.random.default_rng(1)) for one in (users, copy)]
    assert np.array_equal(tallies[0].counts, tallies[1].counts)


FREE = ik.FreeWill(MECHANISMS, name="as they like")
RAPPORS = ik.FreeWill(
    [ik.Rappor(AGES, epsilon) for epsilon in (1.0, 3.0)], [0.7, 0.3], name="RAPPORs"
)
ESTIMATORS = {
    "GIBU": ik.mle,
    "[INV]_M": partial(ik.combine_mechanisms, post="project"),
    "[INV]_R": ik.combine_results,
}


def by_name(table):
    """`numbers`, with a word where a mixture has no epsilon."""
    return numbers(
        table.assign(
            epsilon=table["epsilon"].astype(object).where(table["epsilon"].notna(), "none")
        )
    )


@pytest.mark.parametrize(
    "other",
    [
        {"n_jobs": 2},
        {"mechanisms": [RAPPORS, FREE]},
        {"mechanisms": [FREE]},
        {"mechanisms": [MECHANISMS[0], FREE, RAPPORS, ik.FreeWill(MECHANISMS, name="again")]},
        {"estimators": {"GIBU": ik.mle}},
        {"repetitions": 5},
    ],
    ids=["two processes", "backwards", "one less", "more", "one estimator", "more repetitions"],
)
def test_rows_of_replicate_depend_on_nothing_else(other):
    question = {
        "mechanisms": [FREE, RAPPORS],
        "estimators": ESTIMATORS,
        "repetitions": 3,
        "seed": 8,
    }
    one, two = (by_name(ik.replicate(PEOPLE, **{**question, **change})) for change in ({}, other))
    common = one.keys() & two.keys()
    assert len(common) == min(len(one), sum(key in one for key in two))
    assert common
    assert {key: one[key] for key in common} == {key: two[key] for key in common}


def test_the_table_of_replicate_names_the_mixture(tmp_path):
    path = tmp_path / "runs.jsonl"
    ask = partial(ik.replicate, PEOPLE, [FREE, MECHANISMS[0]], ESTIMATORS, 2, 8, path)
    table = ask()
    assert table["mechanism"].unique().tolist() == ["as they like", "TruncatedGeometric"]
    mixed = table["mechanism"] == "as they like"
    assert table.loc[mixed, "epsilon"].isna().all()
    assert (table.loc[~mixed, "epsilon"] == MECHANISMS[0].epsilon).all()
    assert ask().equals(table), "read from its file"
    other = ik.FreeWill(MECHANISMS, [0.5, 0.25, 0.25], name="as they like")
    with pytest.raises(ik.errors.ForeignFile):
        ik.replicate(PEOPLE, [other, MECHANISMS[0]], ESTIMATORS, 2, 8, path)


def test_what_replicate_draws_are_repetitions_of_the_same_mixture():
    sizes = []

    def spy(tally):
        sizes.append([int(part.counts.sum()) for part in tally.parts])
        return ik.uniform(tally.k)

    ik.replicate(PEOPLE, [FREE], {"spy": spy}, 30, 1)
    assert all(sum(row) == PEOPLE.counts.sum() for row in sizes)
    assert len(set(map(tuple, sizes))) > 25
    expected = np.full(3, PEOPLE.counts.sum() * 30 / 3)
    total = np.sum(sizes, axis=0)
    assert stats.chi2.sf(((total - expected) ** 2 / expected).sum(), 2) > FALSE_ALARM


@pytest.mark.parametrize(
    ("mechanisms", "error", "said"),
    [
        (
            [FREE, ik.FreeWill(MECHANISMS[:2], name="as they like")],
            ValueError,
            "or name, but as they like occurs twice",
        ),
        (
            [ik.FreeWill(MECHANISMS), ik.FreeWill(MECHANISMS[:2])],
            ValueError,
            "FreeWill occurs twice",
        ),
        (FREE, TypeError, r"got one: pass \[FreeWill\('as they like'"),
        (
            [ik.FreeWill([KRR])],
            ik.errors.AlphabetMismatch,
            r"over the population's Line\(0, 7.*FreeWill.* is not",
        ),
    ],
)
def test_replicate_says_which_mixture_it_cannot_take(mechanisms, error, said):
    with pytest.raises(error, match=said):
        ik.replicate(PEOPLE, mechanisms, ESTIMATORS, 1, 1)


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        (([],), ValueError, "mechanisms must hold at least one mechanism, got none"),
        ((KRR,), TypeError, r"got one: pass \[RandomizedResponse"),
        (([KRR, "k-RR"],), TypeError, "sequence of mechanisms, got 'k-RR' in it"),
        (([KRR, ik.FreeWill([LAPLACE])],), TypeError, "got FreeWill.* in it"),
        (
            ([KRR, LAPLACE, KRR],),
            ValueError,
            "mechanisms must differ, but RandomizedResponse.* occurs twice; add",
        ),
        (
            ([KRR, ik.RandomizedResponse(6, 1.0)],),
            ik.errors.AlphabetMismatch,
            r"same secrets, got .*0, 4.* and .*0, 5",
        ),
        (
            (THREE, [0.5, 0.5]),
            ik.errors.AlphabetMismatch,
            "shares must have one probability for each of the 3.*got 2",
        ),
        (
            (THREE, [0.5, 0.6, -0.1]),
            ik.errors.InvalidDistribution,
            "shares must not have negative or NaN entries, got -0.1",
        ),
        (
            (THREE, [5, 3, 2]),
            ik.errors.InvalidDistribution,
            "shares must sum to 1 .*but sums to 10; .*normalize",
        ),
    ],
)
def test_bad_input_is_named(arguments, error, said):
    with pytest.raises(error, match=said):
        ik.FreeWill(*arguments)


@pytest.mark.parametrize(
    ("secrets", "error", "said"),
    [
        ([0, 0, 0, 0, 0], ValueError, "secret_counts must count at least one user, got none"),
        (
            [1, 2, 3],
            ik.errors.AlphabetMismatch,
            "secret_counts must have one count for each of the 5 elements, got 3",
        ),
        ([1, 2, 3, 4, -5], ValueError, "secret_counts must not be negative, got -5 at index 4"),
        ([0.5, 1, 1, 1, 1], ValueError, "secret_counts must be whole numbers, got 0.5 at index 0"),
    ],
)
def test_there_must_be_users(secrets, error, said, rng):
    with pytest.raises(error, match=said):
        ik.FreeWill(THREE).simulate(secrets, rng)
    with pytest.raises(TypeError, match=r"rng must be a numpy\.random\.Generator"):
        ik.FreeWill(THREE).simulate([1] * 5, 7)
