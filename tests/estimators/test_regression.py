"""The certificate of a regression, what it refuses, and what it does not depend on."""

import numpy as np
import pandas as pd
import pytest

import ibukit as ik
import regression_reference as reference

RR = ik.RandomizedResponse(["no", "yes"], epsilon=2.0)
TRUTH = ik.MatrixMechanism(np.eye(2), alphabet=["no", "yes"])


def fitted(seed=1, n=300, mechanism=RR, **options):
    matrices = [mechanism.matrix()] * n
    X, reports = reference.drawn(seed, n, np.array([[-0.5], [0.8], [0.6]]), matrices)
    return X, reports, ik.regress(X, reports, mechanism, codes=True, **options)


def reports_of(*counts):
    """No and yes so many times, one pair after the other."""
    return np.concatenate([np.repeat(["no", "yes"], pair) for pair in counts])


def test_the_certificate_is_that_of_the_likelihood_written_out():
    X, reports, found = fitted()
    design = np.column_stack([np.ones(len(X)), X])
    data = (design, [RR.matrix()] * len(X), reports)
    beta = found.coefficients.T
    # In coordinates in which the mean of x x' is the unit matrix.
    root = np.linalg.inv(np.linalg.cholesky(design.T @ design / len(X)))
    gradient = root @ reference.gradient(beta, *data) / len(X)
    assert np.linalg.norm(gradient) <= 1e-9
    assert found.gradient <= 1e-12
    eigenvalues = np.linalg.eigvalsh(root @ reference.information(beta, *data) @ root.T / len(X))
    assert found.eigenvalues == pytest.approx(eigenvalues, rel=1e-6)
    assert found.local_maximum


def test_a_saddle_between_two_maxima_is_left():
    # Rare secrets in the middle, reports of yes at both ends: the slope can explain one end only,
    # and by symmetry a slope of 0 is stationary, where the information has a negative eigenvalue.
    X = np.concatenate([np.zeros(900), -np.ones(50), np.ones(50)])
    reports = reports_of((765, 135), (10, 40), (10, 40))
    found = ik.regress(X, reports, RR)
    assert found.local_maximum
    assert abs(found.coefficients[1, 0]) > 1
    other = ik.regress(X, reports, RR, start=found.coefficients * [[1], [-1]])
    assert other.coefficients[1, 0] == pytest.approx(-found.coefficients[1, 0], rel=1e-6)
    assert other.log_likelihood == pytest.approx(found.log_likelihood, rel=1e-12)
    codes = (reports == "yes").astype(int)
    data = (np.column_stack([np.ones(1000), X]), [RR.matrix()] * 1000, codes)
    level = reference.maximum((1, 1), data[0][:, :1], *data[1:])[0, 0]
    saddle = np.array([[level, 0.0]])
    assert np.abs(reference.gradient(saddle, *data)).max() < 1e-6
    assert np.linalg.eigvalsh(reference.information(saddle, *data))[0] < -1
    assert found.log_likelihood > reference.log_likelihood(saddle, *data) + 1


def test_a_mechanism_that_hides_everything_leaves_a_stationary_point_only():
    found = ik.regress([0, 1, 2, 3], [0, 1, 0, 1], ik.MatrixMechanism(np.full((2, 2), 0.5)))
    assert not found.local_maximum
    assert np.abs(found.eigenvalues).max() < 1e-12
    assert np.isinf(found.standard_errors()).all()
    for method in ("wald", "profile"):
        lower, upper = found.interval(method=method)
        assert (lower == -np.inf).all()
        assert (upper == np.inf).all()
    assert not found.to_frame().isna().any().any()
    assert "no proven maximum" in repr(found)


def test_secrets_that_a_mechanism_cannot_tell_apart_have_infinite_errors_alone():
    # b and c have the same rows: the odds of both together are known, those between them are not.
    mechanism = ik.MatrixMechanism([[0.9, 0.1], [0.2, 0.8], [0.2, 0.8]], alphabet=["a", "b", "c"])
    X = np.repeat([0.0, 1.0], 500)
    reports = np.concatenate([np.repeat([0, 1], pair) for pair in [(300, 200), (200, 300)]])
    found = ik.regress(X, reports, mechanism, codes=True)
    assert not found.local_maximum
    errors = found.prediction_errors([0, 1])
    assert np.isfinite(errors[:, 0]).all()
    assert np.isinf(errors[:, 1:]).all()
    # The share of "a" among the first: (0.6 - 0.2) / 0.7.
    assert found.predict([0])[0, 0] == pytest.approx(0.4 / 0.7, abs=1e-9)


def test_missed_tolerances_raise_and_carry_the_best():
    with pytest.raises(ik.ConvergenceError, match=r"tol=1e-09 was missed.*max_iter") as caught:
        fitted(max_iter=1)
    best = caught.value.estimate
    assert best.gradient > 1e-9
    assert not best.local_maximum
    assert fitted(max_iter=1, strict=False)[2].gradient == best.gradient


# Designs that have no estimate.


def test_a_column_that_others_give_is_refused_by_its_name():
    X = np.random.default_rng(0).normal(size=(50, 2))
    frame = {"age": X[:, 0], "height": X[:, 1], "both": X @ [2.0, -1.0]}
    pd = pytest.importorskip("pandas")
    with pytest.raises(ik.errors.CollinearDesign, match=r"'\w+' is a combination of .*leave one"):
        ik.regress(pd.DataFrame(frame), ["no", "yes"] * 25, RR)
    with pytest.raises(ik.errors.CollinearDesign, match=r"the intercept is added by itself"):
        ik.regress(np.column_stack([X, np.ones(50)]), ["no", "yes"] * 25, RR)
    with pytest.raises(ik.errors.CollinearDesign, match=r"'x2' is 0 everywhere"):
        ik.regress(np.column_stack([X[:, 0], np.zeros(50)]), ["no", "yes"] * 25, RR)
    with pytest.raises(ik.errors.CollinearDesign, match=r"3 columns for 2 respondents"):
        ik.regress([[1, 2], [2, 1]], ["no", "yes"], RR)


def test_a_nearly_collinear_design_is_estimated():
    X, reports, found = fitted()
    near = np.column_stack([X[:, 0], X[:, 0] + 1e-6 * X[:, 1]])
    twisted = ik.regress(near, reports, RR, codes=True)
    assert twisted.log_likelihood == pytest.approx(found.log_likelihood, abs=1e-8)
    assert twisted.coefficients[2, 0] == pytest.approx(1e6 * found.coefficients[2, 0], rel=1e-5)


@pytest.mark.parametrize("mechanism", [TRUTH, RR], ids=["the truth", "randomised response"])
def test_a_separated_group_is_refused_by_the_name_of_its_coefficient(mechanism):
    # Nobody of the second group says yes; under randomised response fewer than the noise makes.
    X = np.repeat([0, 1], 100)
    with pytest.raises(ik.errors.SeparatedDesign, match=r"'x1' for 'yes' to -infinity.*leave"):
        ik.regress(X, reports_of((50, 50), (100, 0)), mechanism)
    with pytest.raises(ik.errors.SeparatedDesign, match=r"'intercept' for 'yes' to -infinity"):
        ik.regress(X, reports_of((100, 0), (50, 50)), mechanism)


def test_a_threshold_that_separates_truthful_reports_is_refused():
    X = np.linspace(-1, 1, 40)
    reports = np.where(X < 0.1, "no", "yes")
    with pytest.raises(ik.errors.SeparatedDesign, match="'x1' for 'yes' to infinity"):
        ik.regress(X, reports, TRUTH)
    # Reports that overlap by one have an estimate, if only just.
    reports[18] = "yes"
    assert ik.regress(X, reports, TRUTH).local_maximum


@pytest.mark.parametrize("seed", [123, 178, 205, 373, 451, 497, 686, 1401])
def test_noise_that_fits_a_threshold_between_two_people_is_refused(seed):
    # Reports that say nothing of the covariates, drawn anew for each seed: with strong noise or few
    # people a step of the odds between two neighbours explains them best.
    rng = np.random.default_rng(seed)
    k = int(rng.choice([2, 2, 3, 4]))
    n, d = int(rng.choice([12, 40, 200])), int(rng.choice([1, 2]))
    epsilon = float(rng.choice([0.1, 0.5, 1, 2, 5, 20]))
    matrix = ik.MatrixMechanism(rng.dirichlet(np.ones(k + 1), k))
    kinds = [ik.RandomizedResponse(k, epsilon), matrix, ik.Rappor(k, epsilon)]
    mechanism = kinds[rng.integers(3)]
    X, secrets = rng.normal(size=(n, d)), rng.integers(0, k, n)
    reports = mechanism.randomize(secrets, rng, codes=True)
    with pytest.raises(ik.errors.SeparatedDesign):
        ik.regress(X, reports, mechanism, codes=True)


def test_secrets_that_the_reports_do_not_determine_are_not_called_a_fault_of_the_covariates():
    # Four pairs of answers, of which two samples tell two sums: no column is to blame.
    rng = np.random.default_rng(0)
    design = ik.surveys.UnrelatedQuestion(["no", "yes"], p=(0.7, 0.3))
    n, codes = 2000, rng.choice(4, 2000, p=[0.4, 0.3, 0.2, 0.1])
    samples = dict(enumerate(design.samples))
    data = pd.DataFrame({"sample": rng.integers(0, 2, n), "x": rng.normal(size=n)})
    for place, sample in samples.items():
        own = data["sample"] == place
        answers = sample.randomize(codes[own], rng, codes=True)
        data.loc[own, "answer"] = sample.label_reports(answers)
    with pytest.raises(ik.errors.SeparatedDesign, match=r"4 secrets.* rank 3.*any X") as told:
        ik.regress("x", "answer", samples, data, by="sample")
    assert "leave the column out" not in str(told.value)
    data["group"] = data["x"] > 0
    groups = ik.Tally.from_table(data, samples, "answer", by="sample", groups="group")
    errors = [each.standard_errors(of=design.sensitive) for each in ik.mle(groups).values()]
    assert np.isfinite(errors).all(), "the advice helps"


def test_strong_noise_takes_no_more_steps_than_weak_noise():
    X, reports, _ = fitted(n=2000)
    for epsilon in (0.1, 0.3, 1.0, 3.0):
        mechanism = ik.RandomizedResponse(["no", "yes"], epsilon)
        drawn = mechanism.randomize(reports, np.random.default_rng(4), codes=True)
        found = ik.regress(X, drawn, mechanism, codes=True)
        assert found.local_maximum
        assert found.n_iter <= 40


def test_separated_secrets_among_several_are_refused():
    mechanism = ik.MatrixMechanism(np.eye(3), alphabet=["a", "b", "c"])
    X = np.repeat([0, 1], 30)
    with pytest.raises(ik.errors.SeparatedDesign, match="'x1' for 'c' to -infinity"):
        ik.regress(X, np.repeat(list("abcab"), [10, 10, 10, 15, 15]), mechanism)
    with pytest.raises(ik.errors.SeparatedDesign, match="for 'c' to -infinity"):
        ik.regress(X, np.repeat(list("abab"), 15), mechanism)


# What results do not depend on.


def test_coefficients_follow_the_units_of_covariates():
    X, reports, found = fitted()
    scaled = ik.regress(X * [1e6, 1] + [1e6, -3], reports, RR, codes=True)
    assert scaled.coefficients[1:] == pytest.approx(found.coefficients[1:] / [[1e6], [1]], rel=1e-6)
    assert scaled.log_likelihood == pytest.approx(found.log_likelihood, abs=1e-8)
    assert scaled.eigenvalues == pytest.approx(found.eigenvalues, rel=1e-6)
    assert scaled.predict(X * [1e6, 1] + [1e6, -3]) == pytest.approx(found.predict(X), abs=1e-8)
    for scale in (1e90, 1e-90):
        again = ik.regress(X * scale, reports, RR, codes=True)
        assert again.coefficients[1:] * scale == pytest.approx(found.coefficients[1:], rel=1e-6)


def test_the_baseline_is_a_matter_of_notation():
    # The labels in another order give the same probabilities and the opposite coefficients.
    X, reports, found = fitted()
    mirrored = ik.MatrixMechanism(RR.matrix()[::-1], alphabet=["yes", "no"])
    other = ik.regress(X, reports, mirrored, codes=True)
    assert other.coefficients == pytest.approx(-found.coefficients, abs=1e-8)
    assert other.predict(X)[:, ::-1] == pytest.approx(found.predict(X), abs=1e-9)


def test_without_covariates_it_is_the_maximum_likelihood_estimate():
    mechanism = ik.RandomizedResponse(["a", "b", "c"], epsilon=1.0)
    counts = [400, 350, 250]
    found = ik.regress(np.zeros((1000, 0)), np.repeat(["a", "b", "c"], counts), mechanism)
    estimate = ik.mle(mechanism.tally_counts(counts))
    assert found.predict(np.zeros((1, 0)))[0] == pytest.approx(estimate.distribution, abs=1e-9)
    assert found.log_likelihood == pytest.approx(estimate.log_likelihood, abs=1e-8)
    errors = found.prediction_errors(np.zeros((1, 0)))[0]
    assert errors == pytest.approx(estimate.standard_errors(), rel=1e-6)


def test_whole_weights_have_the_estimate_of_repeated_rows_and_zeros_leave_out():
    X, reports, _ = fitted(n=200)
    weights = np.random.default_rng(3).integers(0, 4, 200)
    weighted = ik.regress(X, reports, RR, codes=True, weights=weights)
    rows = np.repeat(np.arange(200), weights)
    repeated = ik.regress(X[rows], reports[rows], RR, codes=True)
    assert weighted.coefficients == pytest.approx(repeated.coefficients, abs=1e-8)
    assert weighted.n == repeated.n == weights.sum()
    # Clusters of the rows of one person give the errors of these people, apart from n / (n - 1):
    # people of weight 0 belong to the sample.
    clustered = ik.regress(X[rows], reports[rows], RR, codes=True, clusters=rows)
    n = np.count_nonzero(weights)
    errors = clustered.standard_errors() * np.sqrt(200 / 199 / (n / (n - 1)))
    assert errors == pytest.approx(weighted.standard_errors(), rel=1e-6)
    groups = np.where(np.arange(200) < 120, "early", "late")
    frame = weighted.predict_groups(groups)
    mean = repeated.predict_groups(groups[rows])
    assert frame["probability"].to_numpy() == pytest.approx(mean["probability"], abs=1e-8)


def test_strata_take_their_means_out_of_the_errors():
    X, reports, _ = fitted(n=200)
    weights, strata = np.ones(200), np.repeat(["a", "b"], 100)
    found = ik.regress(X, reports, RR, codes=True, weights=weights, strata=strata)
    plain = ik.regress(X, reports, RR, codes=True, weights=weights)
    design = np.column_stack([np.ones(200), X])
    scores = np.array(
        [
            reference.gradient(found.coefficients.T, x[None], [RR.matrix()], [z])
            for x, z in zip(design, reports, strict=True)
        ]
    )
    data = (design, [RR.matrix()] * 200, reports)
    bread = np.linalg.inv(reference.information(found.coefficients.T, *data))
    within = sum(np.cov(scores[strata == h].T) * 100 for h in "ab")
    assert found.covariance() == pytest.approx(bread @ within @ bread, rel=1e-5)
    assert found.coefficients == pytest.approx(plain.coefficients, abs=1e-10)


def test_people_without_privacy_beside_others_add_their_information():
    X, reports, _ = fitted(n=400)
    known = ik.MatrixMechanism(np.eye(2), alphabet=["no", "yes"])
    half = [known if i % 2 else RR for i in range(400)]
    mixed = ik.regress(X, reports, half, codes=True)
    assert (mixed.standard_errors() < fitted(n=400)[2].standard_errors()).all()


def test_a_result_travels_between_processes():
    import pickle

    _, _, found = fitted()
    again = pickle.loads(pickle.dumps(found))
    assert np.array_equal(again.coefficients, found.coefficients)
    assert again.marginal_effects().equals(found.marginal_effects())
    assert not again.coefficients.flags.writeable
