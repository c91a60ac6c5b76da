"""Intervals of many groups: void ones, weighted ones, and processes that share the work."""

import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster

import ibukit as ik

KRR = ik.RandomizedResponse(["a", "b", "c"], epsilon=2.0)


def table(seed=0, groups=6, n=300):
    rng = np.random.default_rng(seed)
    frames = []
    for group in range(groups):
        part = KRR.simulate(rng.multinomial(n, [0.6, 0.3, 0.1]), rng).parts[0]
        frames.append(
            pd.DataFrame({"report": KRR.alphabet.labels_of(part.reports), "count": part.counts})
        )
        frames[-1]["country"] = f"c{group}"
    return pd.concat(frames, ignore_index=True)


def test_processes_find_the_same_profiles():
    estimates = ik.mle(ik.Tally.from_table(table(), KRR, count="count", groups="country"))
    alone = estimates.to_frame(method="profile")
    shared = estimates.to_frame(method="profile", n_jobs=2)
    pd.testing.assert_frame_equal(alone, shared)
    one = estimates["c3"].to_frame(method="profile")
    assert np.allclose(alone.loc["c3", ["lower", "upper"]], one[["lower", "upper"]], atol=1e-12)
    with pytest.raises(ValueError, match="n_jobs"):
        estimates.intervals(method="profile", n_jobs=0)


@pytest.mark.parametrize("level", [0.5, 0.99])
def test_groups_have_the_level_that_is_asked_for(level):
    estimates = ik.mle(ik.Tally.from_table(table(), KRR, count="count", groups="country"))
    for method in ("wald", "profile"):
        lower, upper = estimates.intervals(level, method)
        for row, estimate in enumerate(estimates.values()):
            right = estimate.interval(level, method=method)
            assert np.allclose((lower[row], upper[row]), right, atol=1e-9)


def test_workers_of_a_cluster_find_the_same_profiles():
    estimates = ik.mle(ik.Tally.from_table(table(), KRR, count="count", groups="country"))
    with (
        LocalCluster(n_workers=1, processes=False, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        spread = estimates.to_frame(method="profile", client=client)
        with pytest.raises(ValueError, match="n_jobs must be 1 with a client"):
            estimates.intervals(method="profile", n_jobs=2, client=client)
    pd.testing.assert_frame_equal(spread, estimates.to_frame(method="profile"))
    with pytest.raises(TypeError, match=r"client must be a dask\.distributed\.Client"):
        estimates.intervals(method="profile", client="tcp://")


def test_weighted_groups_have_the_intervals_of_each_alone():
    weighted = table()
    weighted["count"] = weighted["count"] * 0.5
    estimates = ik.mle(
        ik.Tally.from_table(weighted, KRR, count="count", weighted=True, groups="country")
    )
    lower, upper = estimates.intervals()
    for row, estimate in enumerate(estimates.values()):
        right = estimate.interval(method="wald")
        assert np.allclose((lower[row], upper[row]), right, atol=1e-12)


def test_groups_whose_errors_are_infinite_have_profiles_and_say_so():
    # The second mechanism cannot tell b from c; the boundary does in the second group.
    blind = ik.MatrixMechanism(
        [[0.9, 0.1], [0.2, 0.8], [0.1, 0.9]], ["a", "b", "c"], reports=["x", "y"]
    )
    frame = pd.DataFrame(
        {"report": ["x", "y"] * 2, "count": [500, 500, 990, 10], "country": ["c0"] * 2 + ["c1"] * 2}
    )
    estimates = ik.mle(ik.Tally.from_table(frame, blind, count="count", groups="country"))
    found = estimates.to_frame()
    alone = estimates["c1"].to_frame(method="profile")
    assert (found.loc["c1", "method"] == "profile").all()
    assert np.allclose(found.loc["c1", ["lower", "upper"]], alone[["lower", "upper"]])


def test_groups_of_which_wald_says_nothing_are_named():
    few = pd.DataFrame({"report": ["a", "b", "c"], "country": ["c0"] * 3})
    mechanism = ik.RandomizedResponse(["a", "b", "c"], epsilon=0.3)
    found = ik.mle(ik.Tally.from_table(few, mechanism, groups="country")).to_frame()
    assert (found["method"] == 'wald, void: see method="profile"').all()
