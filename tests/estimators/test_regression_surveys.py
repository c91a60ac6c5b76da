"""Errors of regressions by the design of a survey, beside jackknives and formulas by hand."""

import numpy as np
import pytest
from scipy.stats import binom, t

import ibukit as ik
import regression_reference as reference

M = np.array([[0.8, 0.2], [0.2, 0.8]])
MECHANISM = ik.MatrixMechanism(M)


def with_intercept(X):
    return np.column_stack([np.ones(len(X)), X])


def survey(seed, n=240, n_clusters=12):
    """Covariates, reports, weights, and clusters of which the first half is stratum a."""
    rng = np.random.default_rng(seed)
    X, reports = reference.drawn(seed, n, np.array([[-0.3], [0.9], [0.5]]), [M] * n)
    clusters = rng.permutation(np.arange(n) % n_clusters)
    strata = np.where(clusters < n_clusters // 2, "a", "b")
    return X, reports, rng.uniform(0.5, 2, n), strata, clusters


def delete_one(weights, clusters):
    """Weights of the jackknife: each cluster is left out, and the others stand for it."""
    n = clusters.max() + 1
    return np.column_stack([weights * (clusters != c) * n / (n - 1) for c in range(n)])


def test_replicate_weights_give_the_jackknife_of_refits_by_scipy():
    X, reports, weights, _, clusters = survey(1)
    data = (with_intercept(X), [M] * len(X), reports)
    whole = reference.maximum((1, 3), *data, weights)
    R = delete_one(weights, clusters)
    refits = [reference.maximum((1, 3), *data, r, start=whole) for r in R.T]
    moved = np.array(refits)[:, 0] - whole[0]
    expected = 11 / 12 * moved.T @ moved
    found = ik.regress(X, reports, MECHANISM, weights=weights, replicate_weights=R)
    assert found.coefficients == pytest.approx(whole.T, abs=1e-6)
    assert found.covariance() == pytest.approx(expected, rel=1e-5)
    # The linearised covariance of the same clusters is near that, and not equal.
    sandwich = ik.regress(X, reports, MECHANISM, weights=weights, clusters=clusters)
    ratio = found.standard_errors() / sandwich.standard_errors()
    assert (np.abs(np.log(ratio)) < 0.15).all()
    assert (np.abs(ratio - 1) > 1e-4).any()


def test_balanced_and_fays_replicates_have_their_own_scales():
    # Four strata of two clusters each, and a Hadamard matrix of order 4 that picks one of each two.
    X, reports, weights, _, clusters = survey(2, n=320, n_clusters=8)
    signs = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]])
    side = signs[:, clusters // 2] * np.where(clusters % 2, 1, -1)
    data = (with_intercept(X), [M] * len(X), reports)
    whole = reference.maximum((1, 3), *data, weights)
    # Factors 1 -+ (1 - rho): 0 or 2 for balanced repeated replication, 0.5 or 1.5 for Fay's 0.5.
    for rho, scale in ((0.0, 1 / 4), (0.5, 1 / 4 / 0.25)):
        R = (weights * (1 + (1 - rho) * side)).T
        refits = [reference.maximum((1, 3), *data, r, start=whole) for r in R.T]
        moved = np.array(refits)[:, 0] - whole[0]
        found = ik.regress(X, reports, MECHANISM, weights=weights, replicate_weights=R)
        assert found.covariance() == pytest.approx(scale * moved.T @ moved, rel=1e-5)


def test_strata_of_clusters_give_the_formula_of_binder():
    X, reports, weights, strata, clusters = survey(3)
    data = (with_intercept(X), [M] * len(X), reports)
    whole = reference.maximum((1, 3), *data, weights)
    bread = np.linalg.inv(reference.information(whole, *data, weights))
    rows = zip(weights, with_intercept(X), reports, strict=True)
    scores = np.array([w * reference.gradient(whole, x[None], [M], [z]) for w, x, z in rows])
    totals = np.array([scores[clusters == c].sum(axis=0) for c in range(12)])
    # Binder (1983): the totals of six clusters in each stratum vary around its mean.
    meat = sum(6 * np.cov(totals[here].T) for here in (slice(6), slice(6, 12)))
    found = ik.regress(X, reports, MECHANISM, weights=weights, strata=strata, clusters=clusters)
    assert found.covariance() == pytest.approx(bread @ meat @ bread, rel=1e-5)
    without = ik.regress(X, reports, MECHANISM, weights=weights, clusters=clusters)
    assert np.abs(without.covariance() / found.covariance() - 1).max() > 0.01


def test_weighted_clusters_of_the_truth_are_those_of_statsmodels():
    sm = pytest.importorskip("statsmodels.api")
    # It knows no weights with clusters, so each row is there as often as its weight says.
    X, secrets, _, _, clusters = survey(4)
    weights = np.random.default_rng(4).integers(1, 4, len(X))
    rows = np.repeat(np.arange(len(X)), weights)
    options = {"groups": clusters[rows], "use_correction": False}
    model = sm.Logit(secrets[rows], sm.add_constant(X[rows]))
    theirs = model.fit(disp=0, tol=1e-12, cov_type="cluster", cov_kwds=options)
    truth = ik.MatrixMechanism(np.eye(2))
    found = ik.regress(X, secrets, truth, weights=weights, clusters=clusters)
    assert found.coefficients[:, 0] == pytest.approx(theirs.params, abs=1e-7)
    assert found.covariance() == pytest.approx(12 / 11 * theirs.cov_params(), rel=1e-6)


def test_intervals_have_the_degrees_of_freedom_of_the_design():
    X, reports, weights, strata, clusters = survey(5)
    designs = [
        ({"clusters": clusters}, 11),
        ({"strata": strata, "clusters": clusters}, 10),
        ({"strata": strata}, 238),
        ({"replicate_weights": delete_one(weights, clusters)}, 11),
    ]
    for options, df in designs:
        found = ik.regress(X, reports, MECHANISM, weights=weights, **options)
        half = t.ppf(0.95, df) * found.standard_errors()
        lower, upper = found.interval(0.9)
        assert upper - found.coefficients == pytest.approx(half, rel=1e-10)
        assert found.coefficients - lower == pytest.approx(half, rel=1e-10)
        frame = found.to_frame(0.9)
        p_values = 2 * t.sf(np.abs(frame["z"]), df)
        assert frame["p_value"].to_numpy() == pytest.approx(p_values, rel=1e-10)
        for other in (found.marginal_effects(0.9), found.predict_groups(strata, 0.9)):
            name = other.columns[0]
            width = (other["upper"] - other[name]).to_numpy()
            errors = other["standard_error"].to_numpy()
            assert width == pytest.approx(t.ppf(0.95, df) * errors, rel=1e-9)


def test_without_covariates_the_errors_are_those_of_the_shares_of_a_table():
    pd = pytest.importorskip("pandas")
    _, reports, weights, strata, clusters = survey(6)
    R = delete_one(weights, clusters)
    names = [f"r{c}" for c in range(12)]
    table = pd.DataFrame(R, columns=names).assign(
        report=reports, w=weights, stratum=strata, cluster=clusters
    )
    for options in ({"strata": "stratum", "clusters": "cluster"}, {"replicate_weights": names}):
        tally = ik.Tally.from_table(table, MECHANISM, count="w", weighted=True, **options)
        shares = ik.mle(tally)
        found = ik.regress(np.zeros((240, 0)), "report", MECHANISM, table, weights="w", **options)
        assert found.predict(np.zeros((1, 0)))[0] == pytest.approx(shares.distribution, abs=1e-8)
        errors = found.prediction_errors(np.zeros((1, 0)))[0]
        # A jackknife of log-odds and one of shares differ in second order.
        exact = "strata" in options
        assert errors == pytest.approx(shares.standard_errors(), rel=1e-6 if exact else 0.02)


def test_rows_of_weight_zero_leave_their_replicates_out():
    X, reports, weights, _, clusters = survey(7)
    weights = np.where(np.arange(240) % 5, weights, 0)
    R, kept = delete_one(weights, clusters), weights > 0
    found = ik.regress(X, reports, MECHANISM, weights=weights, replicate_weights=R)
    less = ik.regress(
        X[kept], reports[kept], MECHANISM, weights=weights[kept], replicate_weights=R[kept]
    )
    assert found.covariance() == pytest.approx(less.covariance(), rel=1e-9)


def test_what_a_mechanism_hides_stays_unknown_with_replicates():
    mechanism = ik.MatrixMechanism([[0.9, 0.1], [0.2, 0.8], [0.2, 0.8]])
    reports = np.concatenate([np.repeat([0, 1], pair) for pair in [(300, 200), (200, 300)]])
    X, ones, clusters = np.repeat([0.0, 1.0], 500), np.ones(1000), np.arange(1000) % 10
    R = delete_one(ones, clusters)
    errors = [
        ik.regress(X, reports, mechanism, weights=ones, **options).prediction_errors([0, 1])
        for options in ({"clusters": clusters}, {"replicate_weights": R})
    ]
    assert np.isinf(errors[1][:, 1:]).all()
    assert errors[1][:, 0] == pytest.approx(errors[0][:, 0], rel=0.05)


def test_a_replicate_without_an_estimate_is_named():
    # Without the third cluster nobody of the second group says yes.
    X, truth = np.repeat([0, 1], 60), ik.MatrixMechanism(np.eye(2))
    clusters = np.arange(120) % 4
    reports = np.where((X == 0) & (np.arange(120) % 3 == 0), 1, 0)
    reports[(X == 1) & (clusters == 2)] = 1
    ones = np.ones(120)
    R = delete_one(ones, clusters)
    found = ik.regress(X, reports, truth, weights=ones, replicate_weights=R)
    with pytest.raises(ik.errors.SeparatedDesign, match=r"replicate_weights, column 2: .*'x1'"):
        found.standard_errors()


def test_a_replicate_that_misses_its_maximum_is_named(monkeypatch):
    X, reports, weights, _, clusters = survey(8)
    R = delete_one(weights, clusters)
    found = ik.regress(X, reports, MECHANISM, weights=weights, replicate_weights=R)
    monkeypatch.setattr("ibukit.estimators.regression.sampling.MAX_STEPS", 0)
    with pytest.raises(ik.errors.WeightsRefused, match=r"a maximum .* column 0 does not"):
        found.standard_errors()


W, N = np.ones(4), ["no", "yes", "no", "yes"]
GOOD = np.array([[0, 2], [2, 0], [2, 0], [0, 2]])
REFUSED = [
    ({"replicate_weights": GOOD}, ValueError, "given with weights, and without strata"),
    (
        {"replicate_weights": GOOD, "weights": W, "clusters": [1, 1, 2, 2]},
        ValueError,
        "replicate_weights must be given with weights, and without strata",
    ),
    ({"replicate_weights": GOOD[:, :1], "weights": W}, ValueError, r"two columns.*\(4, 1\)"),
    ({"replicate_weights": GOOD[:3], "weights": W}, ValueError, r"each of 4 rows.*\(3, 2\)"),
    ({"replicate_weights": W, "weights": W}, ValueError, r"got shape \(4,\)"),
    ({"replicate_weights": -GOOD, "weights": W}, ValueError, r"not negative.*index \(0, 1\)"),
    ({"replicate_weights": GOOD * [0, 1], "weights": W}, ValueError, "not all be 0 in a column"),
    ({"replicate_weights": GOOD / 10, "weights": W}, ik.errors.WeightsRefused, "weight itself"),
    ({"replicate_weights": np.ones((4, 2)), "weights": W}, ik.errors.WeightsRefused, "differ"),
    ({"replicate_weights": ["a", "b"], "weights": W}, TypeError, "column of data, got 'a'"),
    ({"replicate_weights": "a", "weights": W}, ValueError, "replicate_weights must be a list"),
]


@pytest.mark.parametrize(("options", "error", "message"), REFUSED)
def test_bad_replicate_weights_are_refused(options, error, message):
    mechanism = ik.RandomizedResponse(["no", "yes"], epsilon=2.0)
    with pytest.raises(error, match=message):
        ik.regress([1, 2, 3, 4], N, mechanism, **options)


@pytest.mark.slow
def test_intervals_of_few_clusters_cover_the_truth_as_often_as_they_say():
    """400 data sets, seeds 0 to 399, of 12 clusters with 100 people each, who share a covariate."""
    hits = np.zeros(2)
    for seed in range(400):
        rng = np.random.default_rng(seed)
        clusters, ones = np.arange(1200) % 12, np.ones(1200)
        X = rng.normal(size=12)[clusters]
        # People of a cluster share an effect, too, that no covariate tells: the slope is 0.
        effect = rng.normal(size=12)[clusters]
        secrets = (rng.random(1200) < 1 / (1 + np.exp(-effect))).astype(int)
        reports = (rng.random(1200) < M[secrets, 1]).astype(int)
        R = delete_one(ones, clusters)
        for place, options in enumerate(({"clusters": clusters}, {"replicate_weights": R})):
            found = ik.regress(X, reports, MECHANISM, weights=ones, **options)
            lower, upper = found.interval(0.9)
            hits[place] += lower[1, 0] <= 0 <= upper[1, 0]
    # Both counts outside these bounds with probability 1e-3, if the level is right.
    low, high = binom.ppf([0.25e-3, 1 - 0.25e-3], 400, 0.9)
    assert ((low <= hits) & (hits <= high)).all(), hits
