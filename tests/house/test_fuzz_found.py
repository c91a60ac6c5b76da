"""What `make fuzz` found, each in one line:
the error names the argument, or the answer is right.
"""

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy

import ibukit as ik
from ibukit import attack, sklearn, theory
from ibukit.bayes import _randomized_response
from ibukit.mechanisms.base import require_mechanism
from ibukit.solvers import Problem, best_found, maximise_near

KRR = ik.RandomizedResponse(3, 1.0)
TALLY = KRR.tally_counts([6, 3, 1])
PROBLEM = Problem(TALLY.operator, TALLY.counts)
ARRAY = np.array([0.5, np.inf])
RECORDS = np.zeros(3, dtype=[("a", "f8")])
SERIES = pd.Series([1, pd.NA], dtype="Int64")
RAGGED = [[1.0], [0.5, 0.5]]
THIRD = ik.uniform(3)
HUGE = 10**400
TABLE = pd.DataFrame({"report": [0]})
LOSSES = pl.DataFrame(np.eye(3), schema=list("abc"))
NEARLY_MAX = 1.7e308
RNG = np.random.default_rng(1)
SPARSE = scipy.sparse.csr_array([[0, 1]])
BITS = ik.SubsetSelection(3, 1.0)
POINTS = [[40.71, -74.01], [40.79, -73.94]]
LINE = ik.RandomizedResponse(ik.Line(0, 2), 1.0).tally_counts([6, 3, 1])

REFUSED = {
    # flags
    "strict": (lambda: ik.mle(TALLY, strict=RECORDS), "strict must be True or False"),
    "strict of a combination": (lambda: ik.combine_results(TALLY, strict=RECORDS), "strict must be True or False"),
    "strict as a text": (lambda: ik.ibu(TALLY, strict="no"), "strict must be True or False, got 'no'"),
    "codes": (lambda: KRR.randomize([0], np.random.default_rng(1), codes=SERIES), "codes must be True or False"),
    "codes of reports": (lambda: theory.dominated(KRR, [0], codes=SERIES), "codes must be True or False"),
    "weighted": (lambda: KRR.tally([0], weighted=ARRAY), "weighted must be True or False"),
    "codes of adversaries": (lambda: attack.poison_outputs(TALLY, 0, 0.1, codes=TABLE), "codes must be True or False"),
    # frames whose labels nobody looked at
    "Arrow's losses": (lambda: ik.privacy.best_guess(KRR, THIRD, LOSSES.to_arrow()), "loss must be an array here, got a frame"),
    "Polars' losses": (lambda: ik.privacy.best_guess(KRR, THIRD, LOSSES), "loss must be an array here, got a frame"),
    # numbers of dimensions, and of secrets
    "0-d secrets": (lambda: KRR.randomize(np.array(0.5), RNG), "secrets must have 1 dimension"),
    "sparse secrets": (lambda: KRR.randomize(SPARSE, RNG), "secrets must"),
    "sparse reports": (lambda: ik.surveys.Warner(["no", "yes"], 0.7).tally(SPARSE), "reports must"),
    "sparse labels": (lambda: ik.Exponential(list("ab"), 1.0).release(SPARSE), "secrets must"),
    "0-d labels": (lambda: ik.Exponential(list("ab"), 1.0).release(np.array("a")), "secrets must have 1 dimension"),
    "huge alphabet": (lambda: ik.RandomizedResponse(HUGE, 1.0), "alphabet must be at most"),
    "huge line": (lambda: ik.DiscreteSquareWave(HUGE, 1.0), "alphabet must be at most"),
    "huge line of real numbers": (lambda: ik.Piecewise(2**63 + 1, 1.0), "alphabet must be at most"),
    # one of some texts
    "post": (lambda: ik.inv(TALLY, post=SERIES), "post must be"),
    "subset": (lambda: ik.datasets.load_adult_ages(ARRAY), "subset must be"),
    "method": (lambda: best_found(PROBLEM, 1e-9, method=SERIES), "method"),
    "method of an interval": (lambda: ik.mle(TALLY).interval(method=ARRAY), "method must be one of"),
    "criterion": (lambda: ik.optimal_private(THIRD, 3, 1.0, ARRAY), "criterion must be"),
    # of another type altogether
    "unit": (lambda: ik.Grid(2, 2, unit=ARRAY), "unit must be a text"),
    "mechanisms": (lambda: ik.FreeWill(0.5), "mechanisms must be a sequence of mechanisms, got 0.5"),
    "0-d mechanisms": (lambda: ik.average_mechanism(np.array(0.5)), "mechanisms must be a sequence"),
    "tallies": (lambda: ik.gibu(object()), "tallies must be an iterable"),
    "tol": (lambda: maximise_near(PROBLEM, THIRD, tol=b"x"), "tol must be a number"),
    "callbacks": (lambda: ik.Privic(3).run([1, 1, 1], 1, 1, callbacks=[1]), "callbacks must be functions"),
    "protocol": (lambda: ik.LinkedRounds.of(2**63, 2), "protocol must be a LongitudinalUnaryEncoding"),
    "q of RAPPOR": (lambda: ik.LongitudinalUnaryEncoding.rappor(3, 0.5, 0.2, np.array(0.5)), "q must be a number"),
    "lon1": (lambda: ik.Grid.from_bounds(40, 41, -74, np.array([1.0]), 2, 2), "bounds must be four numbers .*lon1"),
    "frame": (lambda: ik.Grid.from_geodataframe(0.5), "frame must be a GeoDataFrame"),
    "mechanism": (lambda: require_mechanism(np.eye(2)), "mechanism must be a mechanism"),
    "mechanism of a subset": (lambda: theory.likely_subset(0.5, [0]), "mechanism must be a mechanism"),
    "mechanism of inversion": (lambda: theory.inv_squared_error(["a"], THIRD), "mechanism must be a mechanism"),
    "mechanism to compose": (lambda: ik.compose(2**63, np.eye(2)), "mechanism must have reports that can be listed"),
    "mechanism without matrix": (lambda: ik.design.information_gap(
        ik.LinearGeometric(3, 1.0), THIRD, 1.0), "mechanism must have a matrix"),
    "grid": (lambda: theory.likely_region(0.5, [[0, 0]]), "grid must be a Grid"),
    "report": (lambda: attack.poison_outputs(ik.SubsetSelection(3, 1.0).tally([[1, 0, 0]]), 0, 0.1), "report must"),
    "release": (lambda: ik.privacy.audit(KRR, 0.5), "release must be a function"),
    "method of a band": (lambda: ik.mle(TALLY).band(method=ARRAY), "method must be one of"),
    "projected": (lambda: ik.combine_results(TALLY, project=RECORDS), "project must be True or False"),
    "pooled": (lambda: ik.Privic(3).run([1, 1, 1], 1, 1).estimate(ARRAY), "pooled must be True or False"),
    "packed": (lambda: ik.scale.tally(np.array([[1, 0, 0]]), BITS, packed=ARRAY), "packed must be True or False"),
    "published": (lambda: ik.HadamardResponse(5, 2.0, published=ARRAY), "published must be True or False"),
    "weighted column": (lambda: ik.Tally.from_table(TABLE, KRR, weighted=SERIES), "weighted must be True or"),
    "stop of EMS": (lambda: ik.ems(LINE, stop=1j), "stop must be a rule"),
    "stop without met": (lambda: ik.ibu(TALLY, stop=ik.Gap), "stop must be a rule"),
    "theta of a start": (lambda: maximise_near(PROBLEM, (0.5, np.inf, 0.5)), "theta must be finite"),
    "mechanism of an audit": (lambda: ik.privacy.audit(0.5, KRR.release), "mechanism must be a mechanism"),
    "losses": (lambda: ik.replicate(
        ik.datasets.load_adult_ages(), [ik.RandomizedResponse(ik.datasets.load_adult_ages().alphabet, 1.0)],
        {"inv": ik.inv}, 1, 1, losses={"l2": ik.squared_l2}), "losses must take an estimate, the truth and the alph"),
    "population": (lambda: ik.Privic(3).run(len, 1, 1), "population must be counts, or a function"),
    "path": (lambda: ik.Privic(3, path=0.5), "path must be a path to a file, got 0.5"),
    "no path": (lambda: TALLY.save(""), "path must be a path to a file, got ''"),
    "report of a table": (lambda: ik.Tally.from_table(TABLE, KRR, report=None), "report must be a column"),
    "count of a table": (lambda: ik.Tally.from_table(TABLE, KRR, count=ARRAY), "count must name a column"),
    "threshold": (lambda: attack.robust_mle(TALLY, threshold=np.ones((2, 2, 2))), "threshold must be a number"),
    "distortion": (lambda: ik.rate_distortion(THIRD, 3, distortion=pd.NA), "distortion must be a number"),
    "level of a sketch": (lambda: ik.CountMeanSketch(3, ARRAY[:0], rows=2, width=4), "epsilon must be a number"),
    "entropy": (lambda: theory.posterior_entropy_bound("x", k=3), "entropy must be a number"),
    "estimator": (lambda: ik.combine_results(TALLY, len), "estimator must take a tally"),
    "no mechanisms": (lambda: ik.replicate(
        ik.datasets.load_adult_ages(), None, {"inv": ik.inv}, 1, 1), "mechanisms must be a sequence of mechanisms"),
    "function of labels": (lambda: ik.privacy.audit(KRR, dict), "release must be a function from labels to reports"),
    # arrays
    "ragged counts": (lambda: attack.poison_inputs(RAGGED, 0, 0.1), "counts must be"),
    "ragged target": (lambda: attack.poison_inputs([1, 1, 1], RAGGED, 0.1), "target must be a label or several"),
    "ragged report": (lambda: attack.poison_outputs(TALLY, RAGGED, 0.1), "report must be a report or several"),
    "ragged distribution": (lambda: attack.poisoned_distribution(RAGGED, 0, 0.1), "distribution must be"),
    "ragged secrets": (lambda: KRR.randomize(RAGGED, np.random.default_rng(1)), "secrets"),
    "ragged labels": (lambda: ik.emd(THIRD, THIRD, RAGGED), "values must be"),
    "missing label": (lambda: ik.Alphabet(np.array(["a", pd.NA], dtype=object)), "values must all be different"),
    "w": (lambda: KRR.adjoint([1.0, np.nan, 1.0]), "w must be finite, got nan at index 1"),
    "theta": (lambda: TALLY.forward([1.0, np.inf, 1.0]), "theta must be finite, got inf at index 1"),
    "no report": (lambda: KRR.tally([]), "reports or counts hold none"),
    "half precision": (lambda: KRR.randomize(np.array([0.5], dtype=np.float16), RNG), "secrets must be whole numbers"),
    "imaginary reports": (lambda: ik.HistogramEncoding(3, 1.0).tally(1j * np.ones((2, 3))), "reports must be rows of"),
    "ragged bits": (lambda: BITS.tally(RAGGED), "reports must be a list, .*rows of different lengths"),
    "a missing bit": (lambda: BITS.tally(np.array([[1, 0, pd.NA]], dtype=object)), "reports must be rows of 0 and 1"),
    "ragged cells": (lambda: ik.RandomizedResponse(ik.Grid(2, 2), 1.0).tally(RAGGED), "reports"),
    "no points": (lambda: ik.Grid.covering(np.zeros((2, 0))), "points must hold at least one"),
    "corner": (lambda: ik.Grid(2, 2, first=None), "first must be a pair"),
    "far corner": (lambda: ik.Grid(2, 2, first=(0, 2**63)), "first must be at most"),
    "0-d cells": (lambda: ik.Grid(2, 2, cell_size=np.array(0.5)), "cell_size must be a number or a pair"),
    "no cells": (lambda: ik.Grid.from_geodataframe(
        ik.Grid(2, 2).to_geodataframe(range(4)), cell_size=ARRAY[:0]), "cell_size must be a number or a pair"),
    "ragged cell size": (lambda: ik.Grid(2, 2, cell_size=RAGGED), "cell_size must be a number or a pair"),
    "ragged reports of an estimator": (lambda: sklearn.MLE(KRR).fit(RAGGED), "X must have rows of one length"),
    "level that needs draws": (
        lambda: ik.mle(TALLY).largest(1, level=1 - 1e-9, method="calibrated"), "draws must be at least .* which this level needs"),
    "two chances": (lambda: ik.LongitudinalUnaryEncoding.rappor(3, 0.5, 0.75, 0.25), "q must be larger than p"),
    "a certain bit": (lambda: ik.LongitudinalUnaryEncoding.rappor(3, 0.5, 0, 0.75), r"p must be in \(0, 1\)"),
    # beyond the doubles
    "edge": (lambda: ik.Grid.from_bounds(HUGE, 41, -74, -73, 2, 2), "bounds must be south < north .*lat0"),
    "rows": (lambda: ik.Grid.from_bounds(40, 41, -74, -73, HUGE, 2), "a grid must have at most .* cells"),
    "small cells": (lambda: ik.Grid.covering(POINTS, cell_size=5e-324), "cell_size must be at least 0.001 metres"),
    "bits of a report": (lambda: ik.HadamardMechanism(3, 1.0, bits=HUGE), r"bits must leave .*got 1\.00e\+400"),
    "bins": (lambda: ik.PlanarLaplace(ik.Grid(2, 2), 1.0).tally_points([[0, 0]], bins=HUGE), "bins must be at most"),
    "a wide shift": (lambda: ik.DiscreteGaussian(3, 1.0).delta(1.0, distance=HUGE), "distance must be at most"),
    "a far secret": (lambda: ik.DiscreteGaussian(3, 1.0).zcdp(NEARLY_MAX), "distance must be at most"),
    "a wide Gaussian": (lambda: ik.LinearGaussian(3, 1e300), "sigma must be from 1e-50 to 1e\\+50"),
    "a narrow Gaussian": (lambda: ik.PlanarGaussian(ik.Grid(2, 2), 1e-300), "sigma must be from 1e-50 to 1e\\+50"),
    "weight": (lambda: ik.mle(TALLY).standard_errors([1e300, 0, 0]), "of must be at most 1e\\+150"),
    "level of Duchi": (lambda: ik.Duchi(3, NEARLY_MAX), "epsilon must be at most"),
    "level of a wave": (lambda: ik.DiscreteSquareWave(3, NEARLY_MAX), "epsilon must be at most"),
    "beta": (lambda: ik.blahut_arimoto(THIRD, 3, NEARLY_MAX), "beta must be at most"),
    "steps": (lambda: ik.blahut_arimoto(THIRD, 3, 1.0, steps=2**53), "steps must be at most"),
    "cycles": (lambda: ik.Privic(3).run([1, 1, 1], HUGE, 1), r"cycles must be at most \d+, got 1\.00e\+400"),
    "large level of a design": (lambda: ik.optimal_private(THIRD, 3, NEARLY_MAX), "epsilon must be smaller"),
    "small alpha": (lambda: ik.posterior(TALLY, 5e-324), "alpha must be from 1e-300"),
    "large alpha": (lambda: ik.posterior(TALLY, NEARLY_MAX), "alpha must be from 1e-300"),
    "repetitions": (lambda: ik.replicate(
        ik.datasets.load_adult_ages(), [ik.RandomizedResponse(ik.datasets.load_adult_ages().alphabet, 1.0)],
        {"inv": ik.inv}, HUGE, 1), r"repetitions must be at most \d+"),
    "n of a plan": (lambda: ik.plan(KRR, width=0.1).width(HUGE), "n must be at most"),
    "n of a bound": (lambda: theory.rappor_concavity_bound(3, 1.0, n=HUGE), "n must be at most"),
    "n of an audit": (lambda: ik.privacy.audit(KRR, KRR.release, n=HUGE), "n must be at most"),
    "beta of a gap": (lambda: ik.design.information_gap(KRR, THIRD, NEARLY_MAX), "beta must be at most"),
    "beta of an attack": (lambda: attack.breakdown_fraction(THIRD, 3, beta=NEARLY_MAX, target=0), "beta must be at most"),
    "epsilon of geometric noise": (lambda: theory.inv_bound_geometric(9, 5e-324), "epsilon must be less extreme"),
    "users of one posterior": (lambda: ik.posterior(KRR.tally_counts([10**15, 3, 1]), 0.5), "take method='gibbs'"),
    "epsilon of a design": (lambda: ik.optimal_private(THIRD, 3, 1e-180), "epsilon must be larger"),
    "k of a bound": (lambda: theory.least_asymptotic_mse(HUGE, 1.0), "k must be at most"),
    "k of RAPPOR": (lambda: theory.rappor_concavity_bound(HUGE, 1.0, n=1), "k must be at most"),
    "ragged n": (lambda: theory.rappor_concavity_bound(3, 1.0, n=RAGGED), "n must be"),
    "k of van Trees": (lambda: theory.van_trees_bound(10**12, 1.0, n=1, alpha=0.5), "k must be at most"),
    "epsilon of INV": (lambda: theory.inv_bound_krr(2, 1e-300), "k and epsilon must be less extreme, or the result"),
    "epsilon of LDP": (lambda: theory.ldp_bounds(2, 1e-300), "k and epsilon must be less extreme, or the result"),
    "epsilon of two": (lambda: theory.binary_response_mse(1e-300, n=1, alpha=0.5), "epsilon must be less extreme"),
    "epsilon of van Trees": (lambda: theory.van_trees_bound(3, 700.0, n=1, alpha=0.5), "epsilon must be less extreme"),
    "distance": (lambda: ik.LinearGaussian(3, 1.0).zcdp(pd.NA), "distance must be a number"),
    "ragged p": (lambda: ik.squared_l2(RAGGED, [0.0, 1.0]), "p must be"),
    "too large an entropy": (lambda: theory.posterior_entropy_bound(HUGE, k=3), "entropy must be"),
    "a large entropy": (lambda: theory.posterior_entropy_bound(1e9, k=3), "entropy must be less extreme"),
    "too far apart": (lambda: ik.squared_l2([1e300, 0.0], [0.0, 1.0]), "p and q must not be so far apart"),
}  # fmt: skip


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("call", REFUSED)
def test_the_error_names_the_argument(call):
    function, message = REFUSED[call]
    with pytest.raises((ValueError, TypeError), match=message):
        function()


def test_a_block_larger_than_the_grid_is_the_whole_grid():
    np.testing.assert_allclose(attack.coarse_map([3, 1, 0, 0], ik.Grid(2, 2), block=2**63), 0.25)


def test_a_secret_that_is_minus_zero_is_the_first():
    assert ik.privacy.exposure(KRR, THIRD, -0.0) == ik.privacy.exposure(KRR, THIRD, 0)


def test_a_file_that_is_not_there_is_named():
    for place in ("nothing.npy", "."):
        with pytest.raises(FileNotFoundError, match=r"rows must name .npy files, .*is not a file"):
            ik.scale.tally(place, KRR)


def test_numpys_truths_are_flags():
    assert ik.mle(TALLY, strict=np.bool_(True)) == ik.mle(TALLY, strict=False)


def test_the_least_level_has_a_bound_too():
    # near 0 the logarithm of tanh(epsilon / 4) is one of epsilon, and no -inf
    small = [
        theory.rappor_concavity_bound(3, epsilon, n=10**6) for epsilon in (1e-300, 1e-12, 1e-4)
    ]
    np.testing.assert_allclose(small, small[0], rtol=1e-6)
    near = [theory.rappor_concavity_bound(9, epsilon, n=9) for epsilon in (4 - 1e-9, 4 + 1e-9)]
    np.testing.assert_allclose(*near, rtol=1e-7)


@pytest.mark.filterwarnings("error")
def test_a_huge_level_or_distance_leaves_nothing_or_all():
    noise = ik.LinearGaussian(4, 3.0)
    assert noise.delta(NEARLY_MAX, 1.0) == ik.DiscreteGaussian(4, 3.0).delta(NEARLY_MAX) == 0.0
    assert noise.delta(1.0, 1e50) == 1.0
    # where the exponents cancel: e^eps P(Z > high) is exp(-low^2 / 2) times a small number
    far = math.sqrt(2e20) * noise.sigma
    np.testing.assert_allclose(noise.delta(1e20, far), 0.5, atol=1e-5)


def test_delta_is_the_integral_of_what_is_not_covered():
    for eps, d in [(0.01, 0.001), (1.0, 1.0), (5.0, 1.0), (0.5, 3.0)]:
        low = eps / d - d / 2
        z, w = np.polynomial.laguerre.laggauss(60)
        inner = np.exp(z - (low + z) ** 2 / 2) / math.sqrt(2 * math.pi) * -np.expm1(-z * d)
        np.testing.assert_allclose(
            ik.LinearGaussian(9, 1.0).delta(eps, d), w @ inner, rtol=1e-6, atol=1e-300
        )


@pytest.mark.parametrize("counts", [[10**9, 10**9, 1], [10**15, 10**15, 10**15]])
def test_walks_over_all_users_are_counted_before_the_first(counts, monkeypatch):
    monkeypatch.setattr(_randomized_response, "report_moments", None)  # is not asked
    with pytest.raises(ik.errors.TooLarge, match=r"in \S+ steps"):
        ik.posterior_mean(KRR.tally_counts(counts), 0.5)


def test_the_fewest_points_are_no_more_than_any_tally_takes(monkeypatch):
    taken, found = [], _randomized_response._Contour._moments_of

    def counted(line, points):
        taken.append(len(points.w))
        return found(line, points)

    monkeypatch.setattr(_randomized_response._Contour, "_moments_of", counted)
    for counts in ([1, 0, 0], [50, 30, 20], [10**4, 1, 1]):
        ik.posterior_mean(KRR.tally_counts(counts), 0.5)
    # all of them, then those between
    assert min(taken[::2]) >= _randomized_response.MIN_POINTS


@pytest.mark.parametrize("alpha", [1e-300, 1e-20, 1e-9])
def test_small_parameters_of_a_prior_are_not_lost_beside_1(alpha):
    tally = ik.MatrixMechanism([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6]]).tally_counts(
        [5, 2, 1]
    )
    by_totals, by_splits = (
        ik.posterior(tally, alpha, method=method) for method in ("exact", "enumerate")
    )
    np.testing.assert_allclose(by_totals.mean, by_splits.mean, rtol=1e-9)
    np.testing.assert_allclose(
        by_totals.standard_deviations, by_splits.standard_deviations, rtol=1e-9
    )
    np.testing.assert_allclose(by_totals.interval(), by_splits.interval(), rtol=1e-6)


def test_a_pooled_frame_keeps_whole_numbers_where_a_mechanism_lacks_a_column():
    sketch = ik.HadamardCountMeanSketch(3, 1.0, rows=2, width=4)
    tally = sketch.simulate([9, 9, 9], np.random.default_rng(1)) + KRR.tally_counts([6, 3, 1])
    frame = tally.to_frame()
    assert [str(frame[f"report_{i}"].dtype) for i in range(3)] == ["Int64"] * 3
    others = frame["report_0"].isna()
    assert frame.loc[others, "report"].tolist() == [0, 1, 2]
    assert frame["report"].isna().equals(~others)
    assert frame["count"].sum() == 37


def test_the_profile_of_a_number_ends_where_rounding_leaves_no_step():
    """With 1e15 reports and a level of 1e-9, the region is narrower than the likelihood's digits."""
    unfolded = ik.unfold([1e13, 2.6e14, 1.5e14, 1.4e14, 6e13], np.full((4, 5), 0.2))
    lower, upper = unfolded.count_intervals(1e-9)
    assert (lower <= unfolded.counts).all()
    assert (unfolded.counts <= upper).all()


def test_a_question_of_zeros_has_the_number_zero():
    assert ik.unfold([50, 30, 20], np.eye(3)).count_intervals(of=[0, 0, 0]) == (0, 0)


def test_a_population_with_a_billion_different_reports_is_refused_at_once():
    mechanism = ik.LinearGeometric(ik.Line(0, 2), 1e-8)
    with pytest.raises(
        ik.errors.TooLarge, match=r"secret_counts must be smaller .* simulate fewer people"
    ):
        mechanism.simulate([10**15, 5, 5], np.random.default_rng(1))
    assert mechanism.simulate([10**3, 5, 5], np.random.default_rng(1)).n == 1010


def test_steps_end_where_rounding_leaves_no_better_point():
    points = ik.PlanarLaplace(ik.Grid(1, 3), 0.1)
    tally = points.tally_counts([24, 4, 30])
    found = best_found(Problem(tally.operator, tally.counts), 1e-17, method="ibu")
    assert found.theta.argmax() == 2
    assert found.n_iter < 100_000


@pytest.mark.parametrize("epsilon", [1e200, np.finfo(float).max])
@pytest.mark.parametrize("cells", [1, 4])
def test_the_largest_levels_are_refused_on_a_grid_for_what_they_are(cells, epsilon):
    with pytest.raises(ValueError, match="epsilon must be at most"):
        ik.TruncatedPlanarGeometric(ik.Grid(1, cells), epsilon)


def test_more_processes_than_a_machine_has_are_refused():
    with pytest.raises(ValueError, match="n_jobs must be a number of processes up to 4096"):
        ik.mle(TALLY).interval(method="bootstrap", n_jobs=2**53)


def test_a_quadratic_model_without_a_solution_ends_the_search_without_a_warning():
    """Each of 20 points was seen once: the system is singular up to rounding."""
    grid = ik.Grid(2, 3)
    rng = np.random.default_rng(40)
    tally = ik.PlanarGaussian(grid, 0.05).simulate([0, 20, 0, 0, 0, 0], rng)
    distances = grid.distances()
    lower, upper = ik.mle(tally).interval(0.999999999, of=distances, method="profile")
    assert (lower <= distances @ ik.mle(tally).distribution + 1e-9).all()
    assert (lower <= upper).all()
