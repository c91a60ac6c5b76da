"""Coefficients and errors against a likelihood written out, statsmodels, and the truth."""

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import binom

import ibukit as ik
import regression_reference as reference

TRUTH = ik.MatrixMechanism(np.eye(3), alphabet=["a", "b", "c"])


def with_intercept(X):
    return np.column_stack([np.ones(len(X)), X])


# The designs of rr::rrreg: P(yes | secret) of two secrets. Forced response answers yes with 1/6 and
# no with 1/6 of the throws of a die; the mirrored question is asked with 1/3; unrelated and
# disguised responses are two more pairs of probabilities.
DESIGNS = {
    "forced": [[5 / 6, 1 / 6], [1 / 6, 5 / 6]],
    "unequally forced": [[0.9, 0.1], [0.3, 0.7]],
    "mirrored": [[1 / 3, 2 / 3], [2 / 3, 1 / 3]],
    "unrelated": [[0.85, 0.15], [0.15, 0.85]],
    "Kuk's": [[0.8, 0.2], [0.2, 0.8]],
}


@pytest.mark.parametrize("name", DESIGNS)
def test_two_secrets_as_the_likelihood_of_rrreg_has_it(name):
    M = np.array(DESIGNS[name])
    X, reports = reference.drawn(3, 700, np.array([[-0.5], [0.8], [0.6]]), [M] * 700)
    data = (with_intercept(X), [M] * 700, reports)
    expected = reference.maximum((1, 3), *data)
    found = ik.regress(X, reports, ik.MatrixMechanism(M))
    assert found.coefficients == pytest.approx(expected.T, abs=1e-6)
    errors = reference.standard_errors(expected, *data)
    assert found.standard_errors() == pytest.approx(errors.T, rel=1e-6)
    assert found.log_likelihood == pytest.approx(
        reference.log_likelihood(expected, *data), abs=1e-8
    )
    assert found.local_maximum


def test_three_secrets_and_a_mechanism_for_each_as_the_likelihood_written_out_has_it():
    kinds = [ik.RandomizedResponse(3, 1.5), ik.RandomizedResponse(3, 3.0)]
    kinds.append(ik.MatrixMechanism([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.1, 0.6]]))
    each = [kinds[i % 3] for i in range(900)]
    matrices = [mechanism.matrix() for mechanism in each]
    truth = np.array([[0.3, -0.4], [0.7, -0.5], [-0.6, 0.8]])
    X, reports = reference.drawn(4, 900, truth, matrices)
    data = (with_intercept(X), matrices, reports)
    expected = reference.maximum((2, 3), *data)
    found = ik.regress(X, reports, each)
    assert found.coefficients == pytest.approx(expected.T, abs=1e-6)
    errors = reference.standard_errors(expected, *data)
    assert found.standard_errors() == pytest.approx(errors.T, rel=1e-6)
    inverse = np.linalg.inv(reference.information(expected, *data))
    assert found.covariance() == pytest.approx(inverse, abs=1e-6)


def test_weights_and_clusters_give_the_sandwich_written_out():
    M = np.array([[0.8, 0.2], [0.2, 0.8]])
    X, reports = reference.drawn(5, 300, np.array([[-0.3], [0.9], [0.5]]), [M] * 300)
    weights = np.random.default_rng(6).uniform(0.2, 3, 300)
    clusters = np.random.default_rng(7).integers(0, 25, 300)
    data = (with_intercept(X), [M] * 300, reports)
    expected = reference.maximum((1, 3), *data, weights)
    bread = np.linalg.inv(reference.information(expected, *data, weights))
    scores = np.array(
        [
            w * reference.gradient(expected, x[None], [M], [z])
            for w, x, z in zip(weights, with_intercept(X), reports, strict=True)
        ]
    )
    mechanism = ik.MatrixMechanism(M)
    found = ik.regress(X, reports, mechanism, weights=weights)
    assert found.coefficients == pytest.approx(expected.T, abs=1e-6)
    meat = 300 / 299 * scores.T @ scores
    assert found.covariance() == pytest.approx(bread @ meat @ bread, rel=1e-5)
    sums = np.array([scores[clusters == c].sum(axis=0) for c in range(25)])
    meat = 25 / 24 * sums.T @ sums
    found = ik.regress(X, reports, mechanism, weights=weights, clusters=clusters)
    assert found.covariance() == pytest.approx(bread @ meat @ bread, rel=1e-5)


def test_profile_intervals_are_where_the_likelihood_written_out_has_fallen_far_enough():
    M = np.array([[0.8, 0.2], [0.2, 0.8]])
    X, reports = reference.drawn(8, 250, np.array([[-0.5], [0.7], [0.4]]), [M] * 250)
    X = X[:, :1]
    found = ik.regress(X, reports, ik.MatrixMechanism(M))
    data = (with_intercept(X), [M] * 250, reports)

    def fall(slope):
        """Twice the fall of the profile, minus the 95 % quantile of chi squared."""
        best = minimize_scalar(
            lambda a: -reference.log_likelihood(np.array([[a, slope]]), *data),
            bracket=(-1, 0),
            tol=1e-12,
        )
        return 2 * (found.log_likelihood + best.fun) - 3.841458820694124

    estimate = found.coefficients[1, 0]
    ends = brentq(fall, estimate - 3, estimate), brentq(fall, estimate, estimate + 3)
    lower, upper = found.interval(method="profile")
    assert (lower[1, 0], upper[1, 0]) == pytest.approx(ends, abs=1e-6)


# Where the mechanism tells the truth this is the logit of every package of statistics.


def truthful(seed, n=500):
    truth = np.array([[0.3, -0.4], [0.7, -0.5], [-0.6, 0.8]])
    return reference.drawn(seed, n, truth, [np.eye(3)] * n)


def test_the_truth_of_three_secrets_is_the_multinomial_logit_of_statsmodels():
    sm = pytest.importorskip("statsmodels.api")
    X, secrets = truthful(9)
    theirs = sm.MNLogit(secrets, sm.add_constant(X)).fit(disp=0, tol=1e-12)
    found = ik.regress(X, TRUTH.alphabet.labels_of(secrets), TRUTH)
    assert found.coefficients == pytest.approx(theirs.params, abs=1e-6)
    assert found.standard_errors() == pytest.approx(theirs.bse, rel=1e-6)
    assert found.log_likelihood == pytest.approx(theirs.llf, abs=1e-8)
    assert found.predict(X[:5]) == pytest.approx(theirs.predict(sm.add_constant(X)[:5]), abs=1e-7)
    effects = theirs.get_margeff()
    frame = found.marginal_effects()
    ours = {name: frame[name].to_numpy().reshape(3, 2).T for name in frame}
    assert ours["effect"] == pytest.approx(effects.margeff, abs=1e-6)
    assert ours["standard_error"] == pytest.approx(effects.margeff_se, rel=1e-5)


def test_the_truth_of_two_secrets_is_the_logit_of_statsmodels_with_its_sandwich():
    sm = pytest.importorskip("statsmodels.api")
    X, secrets = truthful(10)
    yes = np.minimum(secrets, 1)
    groups = np.arange(500) // 7
    mechanism = ik.MatrixMechanism(np.eye(2))
    model = sm.Logit(yes, sm.add_constant(X))
    plain = model.fit(disp=0, tol=1e-12)
    found = ik.regress(X, yes, mechanism)
    assert found.coefficients[:, 0] == pytest.approx(plain.params, abs=1e-6)
    assert found.standard_errors()[:, 0] == pytest.approx(plain.bse, rel=1e-6)
    frame = found.to_frame()
    assert frame["p_value"].to_numpy() == pytest.approx(plain.pvalues, rel=1e-5)
    assert frame[["lower", "upper"]].to_numpy() == pytest.approx(plain.conf_int(), abs=1e-6)
    # HC0 and clusters without its corrections; ours has n / (n - 1) of the units.
    robust = model.fit(disp=0, tol=1e-12, cov_type="HC0")
    weighted = ik.regress(X, yes, mechanism, weights=np.ones(500))
    assert weighted.covariance() == pytest.approx(500 / 499 * robust.cov_params(), rel=1e-6)
    options = {"groups": groups, "use_correction": False}
    by_groups = model.fit(disp=0, tol=1e-12, cov_type="cluster", cov_kwds=options)
    n = len(set(groups))
    clustered = ik.regress(X, yes, mechanism, clusters=groups)
    assert clustered.covariance() == pytest.approx(n / (n - 1) * by_groups.cov_params(), rel=1e-6)


def test_a_saturated_design_inverts_the_matrix_of_each_group():
    mechanism = ik.RandomizedResponse(["no", "yes"], epsilon=1.0)
    counts = {"a": [520, 480], "b": [400, 600], "c": [350, 650]}
    groups = np.repeat(list(counts), 1000)
    reports = np.concatenate([np.repeat(["no", "yes"], each) for each in counts.values()])
    X = np.column_stack([groups == "b", groups == "c"])
    found = ik.regress(X, reports, mechanism)
    p, q = np.e / (1 + np.e), 1 / (1 + np.e)
    shares = np.array([(each[1] / 1000 - q) / (p - q) for each in counts.values()])
    logits = np.log(shares / (1 - shares))
    assert found.coefficients[:, 0] == pytest.approx(
        [logits[0], logits[1] - logits[0], logits[2] - logits[0]], abs=1e-9
    )
    frame = found.predict_groups(groups)
    assert frame.loc[("b", "yes"), "probability"] == pytest.approx(shares[1], abs=1e-9)
    # The share's error is that of the inverted rate.
    error = np.sqrt(0.6 * 0.4 / 1000) / (p - q)
    assert frame.loc[("b", "yes"), "standard_error"] == pytest.approx(error, rel=1e-6)


def test_errors_of_predictions_and_effects_are_those_of_numerical_derivatives():
    mechanism = ik.RandomizedResponse(3, 2.0)
    truth = np.array([[0.3, -0.4], [0.7, -0.5], [-0.6, 0.8]])
    X, reports = reference.drawn(11, 400, truth, [mechanism.matrix()] * 400)
    found = ik.regress(X, reports, mechanism)
    beta, design = found.coefficients.T, with_intercept(X)

    def shares(flat, columns):
        odds = np.exp(np.column_stack([np.zeros(len(columns)), columns @ flat.reshape(2, 3).T]))
        return odds / odds.sum(axis=1, keepdims=True)

    def effects(flat):
        h = 1e-5
        parts = []
        for j in (1, 2):
            step = np.zeros(3)
            step[j] = h
            rise = shares(flat, design + step) - shares(flat, design - step)
            parts.append((rise / (2 * h)).mean(axis=0))
        return np.array(parts).T.ravel()

    def error(function):
        h = 1e-4
        unit = np.eye(6) * h
        slopes = np.array(
            [(function(beta.ravel() + e) - function(beta.ravel() - e)) / (2 * h) for e in unit]
        )
        return np.sqrt(np.einsum("ar,ab,br->r", slopes, found.covariance(), slopes))

    first = error(lambda flat: shares(flat, design[:1])[0])
    assert found.prediction_errors(X[:1])[0] == pytest.approx(first, rel=1e-5)
    mean = error(lambda flat: shares(flat, design).mean(axis=0))
    groups = found.predict_groups(["all"] * 400)
    assert groups["standard_error"].to_numpy() == pytest.approx(mean, rel=1e-5)
    frame = found.marginal_effects()
    assert frame["effect"].to_numpy() == pytest.approx(effects(beta.ravel()), abs=1e-8)
    assert frame["standard_error"].to_numpy() == pytest.approx(error(effects), rel=1e-4)


@pytest.mark.slow
def test_intervals_cover_the_truth_as_often_as_they_say():
    """200 data sets, seeds 0 to 199, of 2000 people each; two mechanisms, three secrets."""
    truth = np.array([[-0.3, 0.2], [0.6, -0.5], [0.5, 0.4]])
    kinds = [ik.RandomizedResponse(3, 2.0), ik.RandomizedResponse(3, 3.0)]
    each = [kinds[i % 2] for i in range(2000)]
    matrices = [mechanism.matrix() for mechanism in each]
    covered = {"wald": np.zeros((3, 2)), "profile": np.zeros((3, 2))}
    for seed in range(200):
        X, reports = reference.drawn(seed, 2000, truth, matrices)
        found = ik.regress(X, reports, each)
        for method, count in covered.items():
            lower, upper = found.interval(0.9, method)
            count += (lower <= truth) & (truth <= upper)
    # Twelve counts outside these bounds with probability 1e-3 / 12 each, if the level is right.
    low, high = binom.ppf([0.5e-3 / 12, 1 - 0.5e-3 / 12], 200, 0.9)
    for count in covered.values():
        assert ((count >= low) & (count <= high)).all(), covered
