"""Which secrets can carry mass:
the definition against all pairs, each family against the estimate on all secrets.
"""

import numpy as np
import pytest
from scipy.special import xlogy

import ibukit as ik
import likely_cases as cases

KINDS = {"line": 70, "map": 70, "response": 60, "definition": 40}
MAKERS = {
    "line": cases.on_a_line,
    "map": cases.on_a_map,
    "response": cases.by_response,
    "definition": cases.by_definition,
}
CASES = [(kind, seed) for kind, number in KINDS.items() for seed in range(number)]


def better(a, b):
    return all(x >= y for x, y in zip(a, b, strict=True)) and any(
        x > y for x, y in zip(a, b, strict=True)
    )


@pytest.mark.ledger("A-Def2")
@pytest.mark.parametrize("kind", KINDS)
def test_an_element_is_unlikely_if_another_is_at_least_as_probable_everywhere(kind):
    rng = np.random.default_rng(1)
    for _ in range(10):
        mechanism, reports = MAKERS[kind](rng)
        # ties are ties only to rounding
        rows = [
            tuple(float(f"{p:.12g}") for p in row) for row in cases.columns(mechanism, reports)[0]
        ]
        expected = [any(better(other, row) for other in rows) for row in rows]
        np.testing.assert_array_equal(ik.theory.dominated(mechanism, reports, codes=True), expected)


@pytest.mark.ledger("A-L5", "A-Def3", "A-T4", "A-P6", "A-P7", "A-P8")
@pytest.mark.parametrize(("kind", "seed"), CASES)
def test_estimates_on_the_subset_are_those_on_all_secrets(kind, seed):
    mechanism, reports = MAKERS[kind](np.random.default_rng([seed, len(kind)]))
    tally = mechanism.tally(reports, codes=True)
    kept = ik.theory.likely_subset(mechanism, reports, codes=True)
    full = ik.mle(tally, tol=1e-10)
    left_out = np.delete(full.distribution, kept)
    assert left_out.max(initial=0) <= 1e-9
    rows, counts = cases.columns(mechanism, reports)
    few = ik.mle(cases.on_these(rows[kept], counts), tol=1e-10)
    assert few.log_likelihood == pytest.approx(
        full.log_likelihood, abs=tally.n * (few.gap + full.gap) + 1e-9
    )
    extended = np.zeros(mechanism.k)
    extended[kept] = few.distribution
    # the certificate of the few is one of all
    assert ik.gap(tally, extended) <= few.gap + 1e-12
    # and all that no single secret dominates is still there, unless a mixture dominates it
    if kind != "line":
        assert set(np.flatnonzero(~ik.theory.dominated(mechanism, reports, codes=True))) <= set(
            kept.tolist()
        )


def test_a_set_that_is_too_small_is_seen():
    # the negative control: without one reported value the estimates differ by more than their gaps
    mechanism = ik.TruncatedGeometric(9, 1.0)
    reports = [2, 2, 5, 5, 5, 7]
    tally = mechanism.tally(reports, codes=True)
    rows, counts = cases.columns(mechanism, reports)
    full, few = ik.mle(tally), ik.mle(cases.on_these(rows[[2, 7]], counts))
    assert few.log_likelihood < full.log_likelihood - 0.1
    assert np.delete(full.distribution, [2, 7]).max() > 0.1


@pytest.mark.ledger("A-P6")
@pytest.mark.parametrize("kind", [ik.LinearGeometric, ik.TruncatedGeometric, ik.LinearLaplace])
def test_on_a_line_of_a_hundred_nothing_outside_the_reports_has_mass(kind, rng):
    for _ in range(40):
        mechanism = kind(ik.Line(-40, 60), float(rng.uniform(0.02, 1)))
        reports = mechanism.draw(rng.integers(30, 50, 50), rng)
        labels = reports if kind is ik.LinearGeometric else reports - 40
        inside = (mechanism.alphabet.values >= labels.min()) & (
            mechanism.alphabet.values <= labels.max()
        )
        assert inside[ik.theory.likely_subset(mechanism, reports, codes=True)].all()
        assert ik.mle(mechanism.tally(reports, codes=True)).distribution[~inside].sum() < 1e-9


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 3.0])
def test_columns_are_interpolated_from_two_reports_with_weights_below_one(epsilon):
    # the proof in the docstring, number by number
    for mechanism, c in (
        (ik.TruncatedGeometric(40, epsilon), epsilon),
        (ik.Exponential(40, epsilon), epsilon / 2),
    ):
        matrix, (a, b) = mechanism.matrix(), (11, 29)
        others = [*range(a + 1), *range(b, 40)]
        g = 1 / np.exp(-c * mechanism.alphabet.distances()).sum(axis=1)
        if isinstance(mechanism, ik.TruncatedGeometric):
            g = np.ones(40)
        for x in range(a + 1, b):
            first, second = (
                np.sinh(c * (b - x)) / np.sinh(c * (b - a)),
                np.sinh(c * (x - a)) / np.sinh(c * (b - a)),
            )
            w = np.array([first * g[x] / g[a], second * g[x] / g[b]])
            np.testing.assert_allclose(w @ matrix[[a, b]][:, others], matrix[x, others], rtol=1e-9)
            assert w.sum() < 1
        # beyond the last report a multiple of the column at it
        for x in range(b + 1, 40):
            w = np.exp(-c * (x - b)) * g[x] / g[b]
            np.testing.assert_allclose(w * matrix[b, : b + 1], matrix[x, : b + 1], rtol=1e-9)
            assert w < 1


def test_laplace_noise_in_cells_may_put_mass_between_the_reports():
    # the rounding flattens the top of a column: why the reported values are not enough there
    mechanism, reports = ik.LinearLaplace(9, 0.1), [2] * 10 + [3, 6]
    between = [x for x in range(2, 7) if x not in reports]
    kept = ik.theory.likely_subset(mechanism, reports, codes=True)
    assert kept.tolist() == [2, 3, 4, 5, 6]
    assert set(between) <= set(
        np.flatnonzero(~ik.theory.dominated(mechanism, reports, codes=True)).tolist()
    )


@pytest.mark.ledger("A-P8")
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_under_response_the_reported_values_are_enough(epsilon):
    k = 25
    mechanism = ik.RandomizedResponse(k, epsilon)
    reports = [3, 3, 3, 3, 8, 8, 11, 20, 20, 20]
    kept = ik.theory.likely_subset(mechanism, reports, codes=True)
    assert kept.tolist() == [3, 8, 11, 20]
    q = np.bincount(reports, minlength=k) / len(reports)
    theta = ik.mle(mechanism.tally(reports, codes=True)).distribution
    assert np.delete(theta, kept).sum() == 0
    # max(0, c q_x - 1 / (e^eps - 1)), c so that the sum is 1
    floor = 1 / np.expm1(epsilon)
    c = next(
        c
        for held in range(1, 5)
        for c in [(1 + held * floor) / np.sort(q)[::-1][:held].sum()]
        if (np.sort(q)[::-1][:held] * c > floor).all() and np.sort(q)[::-1][held] * c <= floor
    )
    np.testing.assert_allclose(theta, np.maximum(0, c * q - floor), atol=1e-12)
    by_steps = ik.ibu(mechanism.tally(reports, codes=True), stop=ik.Gap(1e-12)).distribution
    np.testing.assert_allclose(by_steps, theta, atol=1e-6)
    assert np.delete(by_steps, kept).sum() < 1e-8


@pytest.mark.erratum("A14")
@pytest.mark.ledger("A-Def3", "A-T4")
def test_a_chain_of_ever_better_elements_needs_its_end():
    # x_i = (.4 - 1/(10 i), .4 - 1/(10 i)) and a = (.41, .1): without an end each x_i is dominated
    # by the next
    i = np.arange(1, 11)
    chain = np.column_stack([0.4 - 1 / (10 * i)] * 2)
    rows = np.vstack([chain, [0.41, 0.1]])
    mechanism = ik.MatrixMechanism(np.column_stack([rows, 1 - rows.sum(axis=1)]))
    assert ik.theory.dominated(mechanism, [0, 1]).tolist() == [True] * 9 + [False, False]
    # a is in every likely subset, but alone it explains the reports worse than any late x_i
    log_likelihood = xlogy([1, 1], rows).sum(axis=1)
    assert log_likelihood[-1] == pytest.approx(-3.19, abs=0.005)
    assert log_likelihood[9] == pytest.approx(-1.88, abs=0.005)
    # with an end, what is left out is dominated by what is kept
    assert ik.theory.likely_subset(mechanism, [0, 1]).tolist() == [9, 10]
    best = ik.mle(mechanism.tally([0, 1]))
    assert best.distribution[:9].max() == 0
    assert best.log_likelihood >= log_likelihood[9] - 1e-14


@pytest.mark.ledger("A-P6")
@pytest.mark.erratum("A14")
@pytest.mark.parametrize("m", [2, 10, 50])
def test_the_nearest_element_need_not_exist(m):
    """X = {1 - 1/i} and 5, one report of 2:
    each 1 - 1/i is unlikely because of the next, as the proposition says.

    So {5} is likely, and the theorem on likely subsets fails for it. With an end the last element
    is the nearest.
    """
    points = np.append(1 - 1 / np.arange(1, m + 1), 5.0)
    column = 0.3 * np.exp(-np.abs(points - 2))
    mechanism = ik.MatrixMechanism(np.column_stack([column, 1 - column]))
    assert (np.diff(column[:-1]) > 0).all()
    assert ik.theory.likely_subset(mechanism, [0]).tolist() == [m - 1]
    assert (column[:-1] > column[-1]).all()


@pytest.mark.erratum("A16")
def test_the_exponential_mechanism_keeps_to_the_reports_though_farther_may_be_likelier():
    mechanism = ik.Exponential(100, 0.05)
    matrix = mechanism.matrix()
    assert matrix[3, 2] < matrix[0, 2]
    reports = [2, 2, 2, 9, 40]
    assert ik.theory.likely_subset(mechanism, reports, codes=True).tolist() == [2, 9, 40]
    theta = ik.mle(mechanism.tally(reports, codes=True), tol=1e-12).distribution
    assert np.delete(theta, [2, 9, 40]).max() < 1e-9
    # what the proof rests on: N_x' < e^(eps |x - x'| / 2) N_x
    d = mechanism.alphabet.distances()
    n = np.exp(-0.025 * d).sum(axis=1)
    apart = ~np.eye(100, dtype=bool)
    assert (n[None, :] < np.exp(0.025 * d) * n[:, None])[apart].all()


def test_equal_secrets_both_stay():
    rows = [[0.5, 0.3, 0.2], [0.5, 0.3, 0.2], [0.5 * (1 - 1e-14), 0.3, 0.2], [0.4, 0.3, 0.3]]
    mechanism = ik.MatrixMechanism(np.array(rows) / np.sum(rows, axis=1, keepdims=True))
    assert ik.theory.dominated(mechanism, [0, 1]).tolist() == [False, False, False, True]


def test_bad_calls_say_what_to_do(monkeypatch):
    with pytest.raises(ValueError, match="at least one report"):
        ik.theory.likely_subset(ik.RandomizedResponse(3, 1.0), [])
    with pytest.raises(ik.errors.AlphabetMismatch, match=r"codes 0\.\.2, got 7"):
        ik.theory.likely_subset(ik.RandomizedResponse(3, 1.0), [7])
    with pytest.raises(ValueError, match=r"\(n, 2\), got \(1, 3\)"):
        ik.theory.likely_region(ik.Grid(2, 2), [[1, 2, 3]])
    monkeypatch.setattr("ibukit.identification.likely_subsets.MAX_COMPARED", 10)
    with pytest.raises(ik.errors.TooLarge, match="5 secrets on 3 distinct reports"):
        ik.theory.dominated(ik.Exponential(5, 1.0), [0, 1, 4])
    # what is known without comparing does not need it
    assert ik.theory.likely_subset(ik.Exponential(5, 1.0), [0, 1, 4]).tolist() == [0, 1, 4]
    laplace = ik.PlanarLaplace(ik.Grid(4, 5), 1.0)
    box = ik.theory.likely_subset(laplace, [[1, 1], [3, 2]])
    assert laplace.alphabet.values[box].tolist() == [[r, c] for r in (1, 2, 3) for c in (1, 2)]
