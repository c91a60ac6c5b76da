"""The logic of the benchmarks that `make bench` starts as processes of their own:
Figure 9, Gibbs, threads.
"""

from types import SimpleNamespace

import numpy as np
import pytest

import ibukit as ik
from benchmarks import figure9, gibbs, threads


def walks(rates, starts, sweeps, rng):
    """Stationary autoregressive walks of variance 1, shape (starts, sweeps + 1, coordinates)."""
    rates = np.array(rates)
    path = [rng.normal(size=(starts, len(rates)))]
    for _ in range(sweeps):
        path.append(rates * path[-1] + np.sqrt(1 - rates**2) * rng.normal(size=path[0].shape))
    return np.stack(path, axis=1)


def test_a_chain_of_one_rate_costs_what_its_correlation_says(rng):
    paths = walks([0.5, 0.95, 0.7], 4000, gibbs.LAGS[-1], rng)
    assert gibbs.sweeps_a_sample(paths, np.ones(3)) == pytest.approx(
        (1 + 0.95) / (1 - 0.95), rel=0.05
    )


def test_a_chain_of_two_rates_costs_more_than_the_bound_and_less_than_eight_times(rng):
    fast, slow = walks([0.2, 0.99], 4000, gibbs.LAGS[-1], rng).transpose(2, 0, 1)
    both = (np.sqrt(0.7) * fast + np.sqrt(0.3) * slow)[..., None]
    cost = 0.7 * 1.2 / 0.8 + 0.3 * 1.99 / 0.01
    assert cost / 8 < gibbs.sweeps_a_sample(both, np.ones(1)) < cost


def test_the_plain_sampler_draws_from_the_posterior(rng):
    tally = ik.TruncatedGeometric(4, 1.0).simulate(np.array([5, 0, 3, 2]), rng)
    draws = gibbs.plain(tally, np.full((2, 4), 0.25), 4000, rng)
    assert draws.shape == (2, 4001, 4)
    assert draws.sum(axis=2) == pytest.approx(1)
    exact = ik.posterior_mean(tally, 1.0, "frequencies").distribution
    error = gibbs._gibbs._arviz().mcse(draws, chain_axis=0, draw_axis=1)
    assert (np.abs(draws.mean(axis=(0, 1)) - exact) < 5 * error).all()


def test_figure_nine_has_all_its_settings_and_two_processes_find_the_same(monkeypatch):
    assert [len(noises) for _, noises in figure9.settings()] == [24, 24]
    assert 100 * 48 * len(figure9.ESTIMATORS) == 14_400
    monkeypatch.setattr(figure9, "LEVELS", 1)
    row = figure9.run(1, 1)
    assert (row["fits"], row["jobs"], row["parent"]) == (18, 1, 1.0)
    assert 0 < row["in fits"] < 1
    assert row["worst gap"] <= 1e-9


@pytest.mark.parametrize(("own", "most"), [(4, 4), (2, 3)])
def test_seconds_side_by_side_are_those_of_the_busiest_thread(own, most, monkeypatch):
    clocks = {"perf_counter": [10, 13], "process_time": [2, 7], "thread_time": [1, 1 + own]}
    monkeypatch.setattr(
        threads, "time", SimpleNamespace(**{name: iter(at).__next__ for name, at in clocks.items()})
    )
    assert threads.timed(lambda: None, 2) == (3, 5, most)
