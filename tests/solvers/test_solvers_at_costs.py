"""The maximum where the mass of each secret has a price
and all together cost 1, as intervals ask for it.
"""

import numpy as np
import pytest

import ibukit as ik
from ibukit.solvers import Problem, interior_point, table


@pytest.mark.parametrize("kind", [ik.RandomizedResponse, ik.TruncatedGeometric])
@pytest.mark.parametrize("priced", [False, True])
def test_it_is_the_maximum_of_rows_divided_by_their_prices(kind, priced, rng):
    """With y = cost x the sum of y is 1, and x M = y (M / cost)."""
    tally = kind(40, 0.5).simulate(rng.multinomial(5000, rng.dirichlet(np.ones(40))), rng)
    cost = rng.uniform(0.8, 1.2, 40) if priced else np.ones(40)
    found = table.maximiser_at_costs(Problem(tally.operator, tally.counts))(cost)
    scaled, _ = interior_point.maximise(tally.matrix() / cost[:, None], tally.frequencies, 1e-12)
    np.testing.assert_allclose(found, scaled / cost, atol=1e-7)
    assert cost @ found == pytest.approx(1, abs=1e-9)


def test_a_matrix_has_no_quick_way():
    identity = ik.MatrixMechanism(np.eye(2)).tally([0, 1]).operator
    assert table.maximiser_at_costs(Problem(identity, np.ones(2))) is None


def test_each_row_of_a_sketch_counts_as_a_mechanism(rng):
    """Their number decides, beside the entries of the matrix, whether their structure is used."""
    one = ik.HadamardResponse(100, 1.0).simulate(np.full(100, 90), rng)
    many = ik.HadamardCountMeanSketch(100, 1.0, 16, 32).simulate(np.full(100, 90), rng)
    for tally, rows in ((one, 1), (many, 16)):
        problem = Problem(tally.operator, tally.counts)
        entries = problem.k * problem.channel.size
        assert table._n_mechanisms(problem.channel) == rows
        cheap = table._has_cheap_structure(problem)
        assert cheap == (entries > rows * table.MIN_ENTRIES_PER_MECHANISM)
    assert not cheap
