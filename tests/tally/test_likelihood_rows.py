"""Tallies of likelihoods, beside closed forms and published examples."""

import importlib
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.stats import norm

import ibukit as ik
from ibukit.errors import (
    AlphabetMismatch,
    ImpossibleReport,
    InvalidDistribution,
    MechanismUnknown,
)


def censored(times, observed):
    """Rows of right-censored times, the times of failures and "later", and Kaplan-Meier."""
    times, observed = np.asarray(times), np.asarray(observed, dtype=bool)
    failures = np.unique(times[observed])
    support = np.append(failures, np.inf)
    # Censored at t: the failure comes after t.
    rows = np.where(observed[:, None], support == times[:, None], support > times[:, None]).astype(
        float
    )
    survival, variance, S, V = 1.0, 0.0, [], []
    for t in failures:
        at_risk, died = (times >= t).sum(), ((times == t) & observed).sum()
        survival *= 1 - died / at_risk
        variance += died / (at_risk * (at_risk - died)) if at_risk > died else 0.0
        S.append(survival)
        V.append(survival**2 * variance)
    return rows, support, np.array(S), np.array(V)


# Remission times under 6-mercaptopurine: Freireich et al., Blood 21, 1963.
TIMES = [6, 6, 6, 6, 7, 9, 10, 10, 11, 13, 16, 17, 19, 20, 22, 23, 25, 32, 32, 34, 35]
SEEN = [1, 1, 1, 0, 1, 0, 1, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0]


def test_kaplan_meier_and_greenwood():
    rows, support, S, V = censored(TIMES, SEEN)
    # Published: S(6) = .857, S(22) = .538, S(23) = .448, with errors .0764, .1282, .1346.
    np.testing.assert_allclose(S[[0, -2, -1]], [0.857, 0.538, 0.448], atol=5e-4)
    np.testing.assert_allclose(np.sqrt(V)[[0, -2, -1]], [0.0764, 0.1282, 0.1346], atol=5e-5)
    estimate = ik.mle(ik.Tally.from_likelihoods(rows, alphabet=[str(t) for t in support]))
    after = (np.arange(len(support)) > np.arange(len(S))[:, None]).astype(float)
    np.testing.assert_allclose(after @ estimate.distribution, S, rtol=0, atol=2e-15)
    np.testing.assert_allclose(estimate.standard_errors(of=after), np.sqrt(V), rtol=0, atol=2e-15)
    assert estimate.gap < 1e-14


def test_turnbull():
    tally = ik.Tally.from_likelihoods([[1, 0], [0, 1], [1, 1]], [1, 5, 5], alphabet=[2, 3])
    estimate = ik.mle(tally)
    np.testing.assert_allclose(estimate.distribution, [1 / 6, 5 / 6], rtol=0, atol=1e-14)
    assert tally.n == 11
    # One and five of six are binomial; the five in (1, 3] say nothing.
    assert abs(estimate.standard_errors()[0] - np.sqrt(5 / 36 / 6)) < 1e-14
    binomial = ik.mle(ik.MatrixMechanism(np.eye(2)).tally_counts([1, 5]))
    for method in ("profile", "wald", "credible"):
        of_rows, of_six = (e.interval(method=method) for e in (estimate, binomial))
        np.testing.assert_allclose(of_rows, of_six, rtol=0, atol=1e-9)


def test_what_censoring_leaves_open():
    # Two twins that no row tells apart: only their sum is determined.
    tally = ik.Tally.from_likelihoods([[1, 0, 0], [0, 1, 1]], [30, 70])
    estimate = ik.mle(tally, 1e-14)
    assert estimate.identified.tolist() == [True, False, False]
    assert ik.theory.mle_set(tally).dimension == 1
    assert not ik.theory.strictly_concave(tally)
    assert abs(estimate.standard_errors(of=[0, 1, 1]) - np.sqrt(0.21 / 100)) < 1e-14


def test_a_mixture_is_a_mechanism_where_densities_are_probabilities(rng):
    mechanism = ik.MatrixMechanism(rng.dirichlet(np.ones(6), 4), ik.Line(0, 3))
    counts = np.array([40, 0, 55, 20, 70, 15])
    right = mechanism.tally_counts(counts)
    factor = np.exp(rng.uniform(-600, 600, 6))
    tally = ik.Tally.from_likelihoods(mechanism.matrix().T * factor[:, None], counts)
    both = [ik.mle(one) for one in (tally, right)]
    np.testing.assert_allclose(both[0].distribution, both[1].distribution, rtol=0, atol=1e-10)
    np.testing.assert_allclose(both[0].covariance(), both[1].covariance(), rtol=0, atol=1e-10)
    assert both[0].log_likelihood == pytest.approx(
        both[1].log_likelihood + counts @ np.log(factor), rel=1e-13
    )
    for act in (
        lambda t: ik.ibu(t, stop=ik.Steps(7)).distribution,
        lambda t: ik.gibu([t, t], stop=ik.Steps(7)).distribution,
        lambda t: ik.ems(t, ik.Steps(5)).distribution,
        lambda t: ik.smooth(t).distribution,
        lambda t: ik.smooth(t, of="frequencies").distribution,
        lambda t: [ik.gap(t, [0.25] * 4)],
        lambda t: np.concatenate(ik.mle(t).interval(method="profile")),
        lambda t: ik.theory.mle_set(t).dimension,
    ):
        np.testing.assert_allclose(act(tally), act(right), rtol=0, atol=1e-6)
    # The exact recursion takes time with the fourth power of the number of reports.
    few = counts // 5
    np.testing.assert_allclose(
        *(
            ik.posterior_mean(t, 1.0).distribution
            for t in (
                ik.Tally.from_likelihoods(mechanism.matrix().T * factor[:, None], few),
                mechanism.tally_counts(few),
            )
        ),
        rtol=0,
        atol=1e-6,
    )


def test_efron_two_groups():
    """Normal means of which a share is 0: the maximum by EM, written anew."""
    rng = np.random.default_rng(5)
    z = rng.normal(np.where(rng.random(2000) < 0.9, 0.0, 2.5))
    means = np.array([-2.5, 0.0, 2.5])
    rows = norm.pdf(z[:, None] - means)
    theta = np.full(3, 1 / 3)
    for _ in range(3000):
        theta *= (rows / (rows @ theta)[:, None]).mean(axis=0)
    estimate = ik.mle(ik.Tally.from_likelihoods(rows, alphabet=["-", "0", "+"]))
    np.testing.assert_allclose(estimate.distribution, theta, rtol=0, atol=1e-8)
    assert estimate.gap < 1e-9
    lower, upper = estimate.interval()
    assert lower[1] < 0.9 < upper[1]


@pytest.mark.parametrize("scale", [1e-300, 1e300, 5e-324 * 2**60])
def test_rows_of_any_scale(scale):
    rows = np.array([[1.0, 0.25], [0.5, 1.0], [0.125, 0.75]]) * scale
    plain = ik.mle(ik.Tally.from_likelihoods(rows / scale, [5, 3, 2]))
    scaled = ik.mle(ik.Tally.from_likelihoods(rows, [5, 3, 2]))
    np.testing.assert_array_equal(scaled.distribution, plain.distribution)
    assert scaled.log_likelihood == pytest.approx(plain.log_likelihood + 10 * np.log(scale))


def test_columns_are_aligned_by_their_labels():
    frame = pd.DataFrame(
        [[0.9, 0.2, 0.1], [0.1, 0.5, 0.2], [0.3, 0.3, 0.7]],
        columns=["a", "b", "c"],
        index=list("xyz"),
    )
    counts = pd.Series({"z": 3, "x": 9, "y": 4})
    right = ik.mle(ik.Tally.from_likelihoods(frame.to_numpy(), [9, 4, 3], alphabet=list("abc")))
    for L, given in (
        (frame, counts),
        (frame[["c", "a", "b"]], counts),
        (frame.loc[["y", "z", "x"]], counts),
        (frame.loc[["y", "z", "x"], ["b", "c", "a"]], counts.to_dict()),
    ):
        found = ik.mle(ik.Tally.from_likelihoods(L, given, alphabet=["a", "b", "c"]))
        np.testing.assert_allclose(found.distribution, right.distribution, rtol=0, atol=1e-12)
    assert ik.Tally.from_likelihoods(frame).alphabet == ik.Alphabet(["a", "b", "c"])
    # Without counts the labels of rows may repeat: they are not asked for.
    assert ik.Tally.from_likelihoods(frame.set_axis(["x", "x", "y"])).n == 3


@pytest.mark.parametrize("library", ["pyarrow", "polars"])
def test_tables_of_other_libraries_keep_their_labels(library):
    module, columns = importlib.import_module(library), {"b": [0.9, 0.3], "a": [0.1, 0.7]}
    table = module.table(columns) if library == "pyarrow" else module.DataFrame(columns)
    found = ik.mle(ik.Tally.from_likelihoods(table, [8, 2], alphabet=["a", "b"]))
    right = ik.mle(ik.Tally.from_likelihoods([[0.9, 0.3], [0.1, 0.7]], [8, 2]))
    wanted = ik.mle(ik.Tally.from_likelihoods([[0.1, 0.9], [0.7, 0.3]], [8, 2]))
    np.testing.assert_array_equal(found.distribution, wanted.distribution)
    assert not np.allclose(found.distribution, right.distribution)
    matrix = {"yes": [0.9, 0.3], "no": [0.1, 0.7]}
    table = module.table(matrix) if library == "pyarrow" else module.DataFrame(matrix)
    labels = ik.MatrixMechanism(table).report_alphabet
    assert labels == ik.Alphabet(["yes", "no"])


def test_sparse_and_dense_are_alike():
    rows = sparse.csr_matrix([[1, 0, 0], [0, 1, 1], [1, 1, 0]])
    one, other = (ik.Tally.from_likelihoods(L, [4, 5, 6]) for L in (rows, rows.toarray()))
    assert one.parts[0].mechanism == other.parts[0].mechanism
    assert hash(one.parts[0].mechanism) == hash(other.parts[0].mechanism)
    assert (one + other).n == 30
    assert len((one + other).parts) == 1


def test_weights_are_asked_for_by_their_name():
    rows = [[1, 0], [0, 1], [1, 1]]
    weighted = ik.Tally.from_likelihoods(rows, [0.5, 2.5, 3.0], weighted=True)
    np.testing.assert_allclose(ik.mle(weighted).distribution, [1 / 6, 5 / 6], atol=1e-15)
    with pytest.raises(ValueError, match="counts"):
        ik.Tally.from_likelihoods(rows, [0.5, 2.5, 3.0])
    with pytest.raises(ValueError, match="counts must be given where weighted is True"):
        ik.Tally.from_likelihoods(rows, weighted=True)


def test_pools_with_reports_of_a_mechanism():
    mechanism = ik.RandomizedResponse(["yes", "no"], epsilon=1.0)
    reports = mechanism.tally_counts([60, 40])
    rows = ik.Tally.from_likelihoods(mechanism.matrix().T * 7.0, [30, 20], alphabet=["yes", "no"])
    whole = mechanism.tally_counts([90, 60])
    for both in (reports + rows, rows + reports, sum([rows, reports])):
        estimate = ik.mle(both)
        np.testing.assert_allclose(
            estimate.distribution, ik.mle(whole).distribution, rtol=0, atol=1e-12
        )
        np.testing.assert_allclose(
            estimate.standard_errors(), ik.mle(whole).standard_errors(), rtol=1e-9
        )
    with pytest.raises(AlphabetMismatch):
        reports + ik.Tally.from_likelihoods([[1, 0]], alphabet=["no", "yes"])


def test_saved_and_loaded(tmp_path):
    tally = ik.Tally.from_likelihoods(
        [[1e-300, 3e-301], [0, 1]], [4, 6], alphabet=["a", "b"]
    ) + ik.RandomizedResponse(["a", "b"], 1.0).tally_counts([5, 5])
    tally.save(tmp_path / "rows")
    for again in (ik.Tally.load(tmp_path / "rows"), pickle.loads(pickle.dumps(tally))):
        assert again.parts[0].mechanism == tally.parts[0].mechanism
        assert ik.mle(again).log_likelihood == ik.mle(tally).log_likelihood
    estimate = ik.mle(tally)
    estimate.save(tmp_path / "estimate")
    again = ik.Estimate.load(tmp_path / "estimate")
    np.testing.assert_array_equal(again.standard_errors(), estimate.standard_errors())


ROWS = [[0.9, 0.1], [0.3, 0.7], [0.5, 0.5]]


@pytest.mark.parametrize(
    "act",
    [
        ik.inv,
        lambda t: ik.combine_results(t, ik.inv),
        lambda t: ik.ibu(t, stop=ik.Discrepancy()),
        lambda t: ik.mle(t).interval(method="guaranteed", by="betting"),
        lambda t: ik.mle(t).interval(method="calibrated"),
        lambda t: ik.mle(t).interval(method="bootstrap"),
        lambda t: t.parts[0].mechanism.simulate([1, 1], np.random.default_rng(1)),
        lambda t: t.parts[0].mechanism.randomize([0], np.random.default_rng(1)),
        lambda t: t.parts[0].mechanism.tally_counts([1, 1]),
        lambda t: t.parts[0].mechanism.matrix(),
        lambda t: ik.combine_mechanisms(t + ik.RandomizedResponse(2, 1.0).tally([0]), ik.mle),
        lambda t: ik.attack.robust_mle(t),
        lambda t: ik.attack.detect_poisoning(t, rng=np.random.default_rng(1)),
        lambda t: ik.attack.poison_outputs(t, report=0, fraction=0.1),
    ],
)
def test_what_needs_the_law_of_reports_is_refused_by_name(act):
    with pytest.raises(MechanismUnknown, match=r"from_likelihoods.*mle, ibu, smooth"):
        act(ik.Tally.from_likelihoods(ROWS, [30, 20, 10]))


def test_what_needs_no_law_is_allowed():
    estimate = ik.mle(ik.Tally.from_likelihoods(ROWS, [30, 40, 10]))
    for options in (
        {"method": "bootstrap", "kind": "reports"},
        {"method": "guaranteed", "by": "split"},
        {"method": "guaranteed"},
        {"method": "auto"},
    ):
        lower, upper = estimate.interval(**options)
        assert (lower < estimate.distribution).all()
        assert (estimate.distribution < upper).all()
    assert 'method "auto"' in str(estimate.summary())


@pytest.mark.parametrize(
    ("L", "options", "error", "message"),
    [
        ([[1, 0], [0, 0]], {}, ImpossibleReport, "L must have an entry above 0 in each row, row 1"),
        (
            [[1, 0], [np.nan, 1]],
            {},
            InvalidDistribution,
            "L must not have .*nan at row 1, column 0",
        ),
        (
            [[1, -0.1]],
            {},
            InvalidDistribution,
            "L must not have negative .*-0.1 at row 0, column 1",
        ),
        ([[1, np.inf]], {}, InvalidDistribution, "L must have finite entries.*row 0.*subtract"),
        (
            [1, 0],
            {},
            InvalidDistribution,
            r"L must have two dimensions.*one row for each observation",
        ),
        (np.ones((2, 2, 2)), {}, InvalidDistribution, "L must have two dimensions"),
        (np.ones((0, 2)), {}, InvalidDistribution, "L must have two dimensions"),
        ([[1, 0], [1]], {}, InvalidDistribution, "rows of different lengths: row 0"),
        ([["1", "0"]], {}, InvalidDistribution, "L must be a rectangular array of numbers"),
        ([[1 + 1j, 0]], {}, InvalidDistribution, "L must be .*complex"),
        (None, {}, InvalidDistribution, "L must have two dim"),
        ({"a": [1]}, {}, InvalidDistribution, "L must be"),
        (np.ma.masked_array([[1, 0]], [[True, False]]), {}, InvalidDistribution, "masked"),
        (
            np.ones((2, 3)),
            {"alphabet": ["a", "b"]},
            AlphabetMismatch,
            r"L must have one column.*L\.T",
        ),
        (np.ones((3, 4)), {"alphabet": 5}, AlphabetMismatch, "for each of the 5 secrets, got 4"),
        (
            ROWS,
            {"counts": [1, 2]},
            AlphabetMismatch,
            "counts must have one count for each of the 3",
        ),
        (ROWS, {"counts": [1, -2, 3]}, ValueError, "counts must not be negative, got -2"),
        (ROWS, {"counts": [1, np.nan, 3]}, ValueError, "counts"),
        (ROWS, {"counts": [0, 0, 0]}, ValueError, "empty"),
        (ROWS, {"counts": {"x": 1}}, AlphabetMismatch, "counts"),
        (
            pd.DataFrame(ROWS, columns=["a", "b"]),
            {"alphabet": ["a", "c"]},
            AlphabetMismatch,
            "L has a column for 'b'",
        ),
        (
            pd.DataFrame(ROWS, columns=["a", "a"]),
            {},
            AlphabetMismatch,
            "L has a column twice for 'a'",
        ),
        (
            pd.DataFrame(ROWS, columns=["a", "b"], index=["x", "x", "y"]),
            {"counts": pd.Series({"x": 1, "y": 2})},
            AlphabetMismatch,
            "L has a row twice for 'x'",
        ),
        (sparse.coo_matrix((2**20, 2**20)), {}, ik.errors.TooLarge, "L of shape"),
    ],
)
def test_rows_that_are_none_are_refused(L, options, error, message):
    with pytest.raises(error, match=message):
        ik.Tally.from_likelihoods(L, **options)


def test_advice_for_likelihoods_given_as_a_matrix():
    with pytest.raises(InvalidDistribution, match=r"Tally\.from_likelihoods\(matrix\.T, counts\)"):
        ik.MatrixMechanism([[1, 0, 1], [0, 1, 1], [0, 0.3, 0.3]])
