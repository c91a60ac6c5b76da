"""Weighted tallies compared: against Taylor linearisation by hand, jackknives and simulation."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student

import ibukit as ik

WARNER = ik.surveys.Warner(["no", "yes"], 0.8)
COLUMNS = {"strata": "stratum", "clusters": "cluster"}


def drawn(seed, n=900, n_clusters=30):
    """Answers in clusters whose shares differ, and which people of both regions share."""
    rng = np.random.default_rng(seed)
    cluster = np.arange(n) * n_clusters // n
    region = np.where(rng.random(n) < 0.4, "north", "south")
    logits = rng.normal(0, 0.8, n_clusters)[cluster] - 0.3 * (region == "north")
    secrets = (rng.random(n) < 1 / (1 + np.exp(-logits))).astype(int)
    answer = WARNER.label_reports(WARNER.randomize(secrets, rng, codes=True))
    return pd.DataFrame(
        {
            "report": answer,
            "w": rng.uniform(1, 4, n),
            "stratum": cluster % 3,
            "cluster": cluster,
            "region": region,
        }
    )


def tally_of(data, mechanism=WARNER, **columns):
    return ik.Tally.from_table(data, mechanism, count="w", weighted=True, **columns)


def compared(data, **columns):
    groups = tally_of(data, groups="region", **columns)
    return ik.compare(groups["north"], groups["south"], of="yes", method="wald")


def influences(data, region):
    """The estimate of a domain, and how it moves with each report of the table."""
    values, own = ((data["report"] == "yes") - 0.2) / 0.6, data["region"] == region
    total = data["w"][own].sum()
    estimate = (data["w"] * values)[own].sum() / total
    return estimate, np.where(own, data["w"] * (values - estimate) / total, 0)


def taylor(data, u, v, columns):
    """The covariance of two totals over all clusters of the table, and its degrees of freedom."""
    stratum = data["stratum"] if "strata" in columns else np.zeros(len(data))
    cluster = data["cluster"] if "clusters" in columns else np.arange(len(data))
    totals = (
        pd.DataFrame({"u": u, "v": v}).groupby([np.asarray(stratum), np.asarray(cluster)]).sum()
    )
    found, freedom = 0.0, 0
    for _, own in totals.groupby(level=0):
        found += len(own) * own.cov()["u"]["v"]
        freedom += len(own) - 1
    return found, freedom


@pytest.mark.parametrize("names", [(), ("strata",), ("clusters",), ("strata", "clusters")])
def test_groups_of_a_survey_are_compared_by_taylor_linearisation(names):
    data, columns = drawn(5), {name: COLUMNS[name] for name in names}
    found = compared(data, **columns)
    (north, u), (south, v) = influences(data, "north"), influences(data, "south")
    variance, freedom = taylor(data, u - v, u - v, columns)
    difference, error = north - south, np.sqrt(variance)
    q = student.ppf(0.975, freedom)
    ends = difference - q * error, difference + q * error
    np.testing.assert_allclose(found.difference.interval, ends, rtol=1e-9)
    p_value = 2 * student.sf(abs(difference) / error, freedom)
    assert found.difference.p_value == pytest.approx(p_value, rel=1e-8)
    for ratio in found.ratio.interval:
        w = u - ratio * v
        margin = q * np.sqrt(taylor(data, w, w, columns)[0])
        assert abs(north - ratio * south) == pytest.approx(margin, rel=1e-8), "Fieller's ends"


def test_groups_with_replicate_weights_are_compared_replicate_by_replicate():
    data = drawn(6)
    left_out = np.arange(30) == data["cluster"].to_numpy()[:, None]
    replicates = np.where(left_out, 0, data["w"].to_numpy()[:, None] * 30 / 29)
    names = [f"r{place}" for place in range(30)]
    data[names] = replicates
    found = compared(data, replicate_weights=names)

    def difference(w):
        return np.subtract(*(influences(data.assign(w=w), each)[0] for each in ("north", "south")))

    moved = [difference(w) - difference(data["w"]) for w in replicates.T]
    margin = student.ppf(0.975, 29) * np.sqrt(29 / 30 * np.square(moved).sum())
    middle = difference(data["w"])
    np.testing.assert_allclose(found.difference.interval, (middle - margin, middle + margin))


def test_separate_surveys_are_independent_with_the_degrees_of_freedom_of_welch():
    # Few clusters in the one, many in the other: the one with the larger error decides.
    surveys = [drawn(7, 200, 5).assign(stratum="2019"), drawn(8).assign(stratum="2021")]
    tallies = [tally_of(each, **COLUMNS) for each in surveys]
    found = ik.compare(*tallies, of="yes", method="wald").difference
    one, other = (ik.mle(each).standard_errors(of="yes") ** 2 for each in tallies)
    freedom = (one + other) ** 2 / (one**2 / 4 + other**2 / 29)
    margin = student.ppf(0.975, freedom) * np.sqrt(one + other)
    half = (found.interval[1] - found.interval[0]) / 2
    assert half == pytest.approx(margin, rel=1e-9)
    exchanged = ik.compare(*tallies[::-1], of="yes", method="wald").difference
    np.testing.assert_allclose(exchanged.interval, np.negative(found.interval)[::-1])
    # Counts know their errors from the likelihood: only the survey costs degrees of freedom.
    counts = WARNER.tally(surveys[1]["report"])
    mixed = ik.compare(tallies[0], counts, of="yes", method="wald").difference
    other = ik.mle(counts).standard_errors(of="yes") ** 2
    margin = student.ppf(0.975, 4 * (one + other) ** 2 / one**2) * np.sqrt(one + other)
    assert (mixed.interval[1] - mixed.interval[0]) / 2 == pytest.approx(margin, rel=1e-9)


def test_all_shares_and_many_questions_are_compared_at_once(monkeypatch):
    mechanism = ik.RandomizedResponse(["a", "b", "c"], 1.0)
    data, rng = drawn(9), np.random.default_rng(9)
    secrets = (rng.random(900) < 0.6) + (data["cluster"].to_numpy() % 2)
    data["report"] = mechanism.label_reports(mechanism.randomize(secrets, rng, codes=True))
    groups = tally_of(data, mechanism, groups="region", **COLUMNS)
    every = ik.compare(groups["north"], groups["south"], method="wald").to_frame()
    monkeypatch.setattr("ibukit.fisher_information.sandwich.INFLUENCES_AT_ONCE", 1)
    parts = ik.compare(groups["north"], groups["south"], of=np.eye(3), method="wald").to_frame()
    np.testing.assert_allclose(every, parts, rtol=1e-10)
    alone = ik.compare(groups["north"], groups["south"], of="b", method="wald").to_frame()
    np.testing.assert_allclose(every.loc[["b"]], alone, rtol=1e-10)


def test_weighted_tallies_whose_covariance_is_not_known_are_refused_with_what_to_do():
    data = drawn(10)
    parts = [data[data["region"] == region] for region in ("north", "south")]
    one, other = (tally_of(part, clusters="cluster") for part in parts)
    for method in ("profile", "guaranteed"):
        with pytest.raises(ik.errors.WeightsRefused, match=f"got '{method}'.*method=\"wald\""):
            ik.compare(one, other, method=method)
    with pytest.raises(ik.errors.WeightsRefused, match=r"clusters in common.*groups=\.\.\."):
        ik.compare(one, other, method="wald")
    # What the message says: strata with names of their own.
    apart = [tally_of(p.assign(s=i), strata="s", clusters="cluster") for i, p in enumerate(parts)]
    assert ik.compare(*apart, of="yes", method="wald").difference.p_value > 0
    copies = [part.assign(r1=part["w"] * 1.1, r2=part["w"] * 0.9) for part in parts]
    replicated = [tally_of(each, replicate_weights=["r1", "r2"]) for each in copies]
    with pytest.raises(ik.errors.WeightsRefused, match="replicate weights must be groups of one"):
        ik.compare(*replicated, method="wald")
    sums = WARNER.tally_counts([60.5, 39.5], weighted=True)
    with pytest.raises(ik.errors.WeightsRefused, match="sums only"):
        ik.compare(sums, other, method="wald")


def test_one_group_in_both_tallies_is_refused_and_added_tables_are_compared_as_one():
    data = drawn(9)
    groups = tally_of(data, groups="region", **COLUMNS)
    with pytest.raises(ik.errors.WeightsRefused, match="tallies must hold different people"):
        ik.compare(groups["north"], groups["north"] + groups["south"], method="wald")
    half = data["cluster"] < 15
    added = tally_of(data[half], groups="region", **COLUMNS) + tally_of(
        data[~half], groups="region", **COLUMNS
    )
    one, two = (
        ik.compare(each["north"], each["south"], of="yes", method="wald")
        for each in (groups, added)
    )
    np.testing.assert_allclose(two.difference.interval, one.difference.interval, rtol=1e-9)


@pytest.mark.slow
def test_intervals_of_differences_between_groups_that_share_clusters_cover_at_their_level():
    """500 surveys: the standard error of a coverage is 1 point. Without the covariance of the
    clusters, intervals would be half as long again and nearly always cover.
    """
    effects = np.random.default_rng(3).normal(0, 0.8, 10**6)
    north, south = (np.mean(1 / (1 + np.exp(-(effects + shift)))) for shift in (-0.3, 0))
    covered = []
    for seed in range(500):
        lower, upper = compared(drawn(seed + 100), clusters="cluster").difference.interval
        covered.append(lower <= north - south <= upper)
    assert 0.92 <= np.mean(covered) <= 0.98
