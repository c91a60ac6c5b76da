"""What `make fuzz` found, each in one line: the error names the argument, or the answer is right."""

import numpy as np
import pandas as pd
import pytest

import ibukit as ik
from ibukit import attack, identification, theory
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

REFUSED = {
    # flags
    "strict": (lambda: ik.mle(TALLY, strict=RECORDS), "strict must be True or False"),
    "strict of a combination": (lambda: ik.combine_results(TALLY, strict=RECORDS), "strict must be True or False"),
    "strict as a text": (lambda: ik.ibu(TALLY, strict="no"), "strict must be True or False, got 'no'"),
    "codes": (lambda: KRR.randomize([0], np.random.default_rng(1), codes=SERIES), "codes must be True or False"),
    "codes of reports": (lambda: identification.dominated(KRR, [0], codes=SERIES), "codes must be True or False"),
    "weighted": (lambda: KRR.tally([0], weighted=ARRAY), "weighted must be True or False"),
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
    "mechanism of a subset": (lambda: identification.likely_subset(0.5, [0]), "mechanism must be a mechanism"),
    "mechanism of inversion": (lambda: theory.inv_squared_error(["a"], THIRD), "mechanism must be a mechanism"),
    "mechanism to compose": (lambda: ik.compose(2**63, np.eye(2)), "mechanism must have reports that can be listed"),
    "mechanism without matrix": (lambda: ik.design.information_gap(
        ik.LinearGeometric(3, 1.0), THIRD, 1.0), "mechanism must have a matrix"),
    "grid": (lambda: identification.likely_region(0.5, [[0, 0]]), "grid must be a Grid"),
    "report": (lambda: attack.poison_outputs(ik.SubsetSelection(3, 1.0).tally([[1, 0, 0]]), 0, 0.1), "report must"),
    "release": (lambda: ik.privacy.audit(KRR, 0.5), "release must be a function"),
    "method of a band": (lambda: ik.mle(TALLY).band(method=ARRAY), "method must be one of"),
    "entropy": (lambda: theory.posterior_entropy_bound("x", k=3), "entropy must be a number"),
    # arrays
    "ragged secrets": (lambda: KRR.randomize(RAGGED, np.random.default_rng(1)), "secrets"),
    "ragged labels": (lambda: ik.emd(THIRD, THIRD, RAGGED), "values must be"),
    "missing label": (lambda: ik.Alphabet(np.array(["a", pd.NA], dtype=object)), "values must all be different"),
    "w": (lambda: KRR.adjoint([1.0, np.nan, 1.0]), "w must be finite, got nan at index 1"),
    "theta": (lambda: TALLY.forward([1.0, np.inf, 1.0]), "theta must be finite, got inf at index 1"),
    "no report": (lambda: KRR.tally([]), "reports or counts hold none"),
    # beyond the doubles
    "epsilon of a design": (lambda: ik.optimal_private(THIRD, 3, 1e-180), "epsilon must be so large"),
    "k of a bound": (lambda: theory.least_asymptotic_mse(HUGE, 1.0), "k must be at most"),
    "k of RAPPOR": (lambda: theory.rappor_concavity_bound(HUGE, 1.0, n=1), "k must be at most"),
    "ragged n": (lambda: theory.rappor_concavity_bound(3, 1.0, n=RAGGED), "n must be"),
    "k of van Trees": (lambda: theory.van_trees_bound(10**12, 1.0, n=1, alpha=0.5), "k must be at most"),
    "epsilon of INV": (lambda: theory.inv_bound_krr(2, 1e-300), "k and epsilon must be such that doubles hold"),
    "epsilon of LDP": (lambda: theory.ldp_bounds(2, 1e-300), "k and epsilon must be such that doubles hold"),
    "epsilon of two": (lambda: theory.binary_response_mse(1e-300, n=1, alpha=0.5), "epsilon must be such that"),
    "epsilon of van Trees": (lambda: theory.van_trees_bound(3, 700.0, n=1, alpha=0.5), "epsilon must be such that"),
    "distance": (lambda: ik.LinearGaussian(3, 1.0).zcdp(pd.NA), "distance must be a number"),
    "ragged p": (lambda: ik.squared_l2(RAGGED, [0.0, 1.0]), "p must be"),
    "too large an entropy": (lambda: theory.posterior_entropy_bound(HUGE, k=3), "entropy must be"),
    "a large entropy": (lambda: theory.posterior_entropy_bound(1e9, k=3), "entropy must be such that"),
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


def test_numpys_truths_are_flags():
    assert ik.mle(TALLY, strict=np.bool_(True)) == ik.mle(TALLY, strict=False)
