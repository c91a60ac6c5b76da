"""Errors of shares by the design of a survey, beside formulas by hand and statsmodels.

With Warner's design of probability p the share is (y - (1 - p)) / (2 p - 1), y the weighted mean of
the reports, so its errors are those of a mean divided by 2 p - 1.
"""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

import ibukit as ik
from ibukit.errors import TooLarge, WeightsRefused
from ibukit.fisher_information import sandwich

P = 0.8
DESIGN = ik.MatrixMechanism([[P, 1 - P], [1 - P, P]], alphabet=["no", "yes"])
FACTOR = 2 * P - 1


def table(seed=1, n=240, n_clusters=12):
    rng = np.random.default_rng(seed)
    clusters = rng.permutation(np.arange(n) % n_clusters)
    rate = rng.uniform(0.35, 0.6, n_clusters)[clusters]
    said = rng.random(n) < rate
    return pd.DataFrame(
        {
            "report": np.where(said, "yes", "no"),
            "y": said.astype(float),
            "w": rng.uniform(0.5, 2, n),
            "stratum": np.where(clusters < n_clusters // 2, "a", "b"),
            "cluster": clusters,
            "sex": rng.choice(["f", "m"], n),
        }
    )


def share(frame, **options):
    tally = ik.Tally.from_table(frame, DESIGN, report="report", count="w", weighted=True, **options)
    return ik.mle(tally)


def residual_totals(frame):
    """Totals of w (y - mean) / W by stratum and cluster."""
    mean = np.average(frame.y, weights=frame.w)
    moved = frame.w * (frame.y - mean) / frame.w.sum()
    return moved.groupby([frame.stratum, frame.cluster]).sum()


def test_strata_of_clusters_have_the_linearised_variance_of_a_ratio():
    frame = table()
    totals = residual_totals(frame)
    variance = sum(6 * np.var(totals[h], ddof=1) for h in "ab")
    found = share(frame, strata="stratum", clusters="cluster")
    mean = np.average(frame.y, weights=frame.w)
    assert found.distribution[1] == pytest.approx((mean - 1 + P) / FACTOR, abs=1e-9)
    error = np.sqrt(variance) / FACTOR
    assert found.standard_errors() == pytest.approx([error, error], rel=1e-6)
    _, upper = found.interval(0.9, method="wald")
    assert upper - found.distribution == pytest.approx(t.ppf(0.95, 10) * error, rel=1e-6)


def test_clusters_alone_are_those_of_a_weighted_mean_of_statsmodels():
    sm = pytest.importorskip("statsmodels.api")
    frame = table(2)
    options = {"groups": frame.cluster, "use_correction": False}
    theirs = sm.WLS(frame.y, np.ones(240), frame.w).fit(cov_type="cluster", cov_kwds=options)
    error = np.sqrt(12 / 11) * theirs.bse.iloc[0] / FACTOR
    found = share(frame, clusters="cluster")
    assert found.standard_errors()[1] == pytest.approx(error, rel=1e-6)


def test_replicate_weights_have_the_jackknife_of_means():
    frame = table(3)
    names = []
    for c in range(12):
        names.append(f"r{c}")
        frame[names[-1]] = frame.w * (frame.cluster != c) * 12 / 11
    means = [np.average(frame.y, weights=frame[name]) for name in names]
    whole = np.average(frame.y, weights=frame.w)
    error = np.sqrt(11 / 12 * ((np.array(means) - whole) ** 2).sum()) / FACTOR
    found = share(frame, replicate_weights=names)
    assert found.standard_errors()[1] == pytest.approx(error, rel=1e-6)
    _, upper = found.interval(0.9, method="wald")
    assert upper[1] - found.distribution[1] == pytest.approx(t.ppf(0.95, 11) * error, rel=1e-6)


def test_a_group_is_a_domain_whose_strata_keep_the_units_without_its_people():
    frame = table(4)
    # Nobody of the first cluster is of the group, yet stratum a has still six units.
    frame.loc[frame.cluster == 0, "sex"] = "m"
    women = frame[frame.sex == "f"]
    totals = residual_totals(women)
    totals["a", 0] = 0.0
    variance = sum(6 * np.var(totals[h], ddof=1) for h in "ab")
    groups = share(frame, strata="stratum", clusters="cluster", groups="sex")
    assert groups["f"].standard_errors()[1] == pytest.approx(np.sqrt(variance) / FACTOR, rel=1e-6)
    alone = share(women, strata="stratum", clusters="cluster")
    assert alone.standard_errors()[1] != pytest.approx(np.sqrt(variance) / FACTOR, rel=1e-3)


DESIGNS = [
    {},
    {"strata": "stratum"},
    {"clusters": "cluster"},
    {"strata": "stratum", "clusters": "cluster"},
]


def groups_of(frame, options):
    return ik.Tally.from_table(frame, DESIGN, count="w", weighted=True, groups="sex", **options)


def kept(thing, folder):
    """Return what comes back from a file."""
    thing.save(folder / "kept")
    return type(thing).load(folder / "kept")


def domain_error(frame, sex, options):
    """The linearised error of the share of a group; other people have residuals of 0."""
    here = frame.sex == sex
    mean = np.average(frame.y[here], weights=frame.w[here])
    rows = frame.assign(u=frame.w * here * (frame.y - mean) / frame.w[here].sum(), all=0)
    stratum = options.get("strata", "all")
    units = [rows.index] if "clusters" not in options else [rows.cluster]
    totals = rows.groupby([stratum, *units]).u.sum()
    variance = sum(
        len(own) * np.var(own, ddof=1) for _, own in totals.groupby(level=0) if own.any()
    )
    return np.sqrt(variance) / FACTOR


@pytest.mark.parametrize("options", DESIGNS)
@pytest.mark.parametrize("n_tables", [2, 7])
def test_groups_of_tables_that_are_added_are_groups_of_all_their_people(
    options, n_tables, tmp_path
):
    frame = table(9)
    # The last table lacks men, and clusters have people in several tables.
    files = [frame[i::n_tables] for i in range(n_tables)]
    files[-1] = files[-1].assign(sex="f")
    frame = pd.concat(files)
    tables = [groups_of(each, options) for each in files]
    added, again = sum(tables), sum(kept(each, tmp_path) for each in tables[::-1])
    whole = groups_of(frame, options)
    for sex in "fm":
        error = pytest.approx(domain_error(frame, sex, options), rel=1e-6)
        for groups in (whole, added, again, kept(added, tmp_path)):
            assert ik.mle(groups[sex]).standard_errors()[1] == error
            units = groups[sex].survey.units
            assert units.tolist() == whole[sex].survey.units.tolist()
    one = ik.mle(sum(each["f"] for each in tables)).standard_errors()
    assert one[1] == pytest.approx(domain_error(frame, "f", options), rel=1e-6)


def test_a_file_of_groups_has_the_units_of_their_table_once(tmp_path):
    frame = table(9, n=2000, n_clusters=1000).assign(sex=np.arange(2000) % 50)
    groups = groups_of(frame, {"clusters": "cluster"})
    again = kept(groups, tmp_path)
    for one in (groups, again):
        assert len({id(tally.survey.shares[0].units) for tally in one.values()}) == 1
    assert (tmp_path / "kept").stat().st_size < 30 * len(again[0].survey.shares[0].units)


@pytest.mark.parametrize("options", DESIGNS)
def test_groups_of_one_table_that_are_added_share_its_people(options, tmp_path):
    frame = table(10)
    groups, again = (groups_of(each, options) for each in (frame, frame[::-1]))
    everybody = share(frame, **options).standard_errors()
    loaded = pickle.loads(pickle.dumps(kept(again["m"], tmp_path)))
    for both in (groups["f"] + groups["m"], sum(groups.values()), groups["f"] + loaded):
        assert ik.mle(both).standard_errors() == pytest.approx(everybody, rel=1e-9)
    # Two tables of the same content are two tables where one group is of both.
    twice = groups + again
    added = share(pd.concat([frame, frame], ignore_index=True), **options).standard_errors()
    for both in (twice["f"] + twice["m"], sum([*groups.values(), *again.values()])):
        assert ik.mle(both).standard_errors() == pytest.approx(added, rel=1e-9)


@pytest.mark.parametrize("options", DESIGNS)
def test_people_of_weight_0_outside_a_group_leave_it_the_errors_of_a_group(options):
    frame = table(11)
    # Some people of the group have weight 0, too.
    frame.loc[frame.index % 7 == 0, "w"] = 0.0
    outside = frame.assign(w=frame.w * (frame.sex == "f"))
    parts = [outside[i::3] for i in range(3)]
    with_weights = {"report": "report", "count": "w", "weighted": True, **options}
    found = [
        groups_of(frame, options)["f"],
        sum(groups_of(frame[i::3], options)["f"] for i in range(3)),
        share(outside, **options).tally,
        sum(ik.Tally.from_table(part, DESIGN, **with_weights) for part in parts),
    ]
    if not options:
        found.append(DESIGN.tally(outside.report, counts=outside.w, weighted=True))
    error = domain_error(frame, "f", options)
    for tally in found:
        assert ik.mle(tally).standard_errors()[1] == pytest.approx(error, rel=1e-6)
        assert tally.survey.degrees_of_freedom == found[0].survey.degrees_of_freedom
        assert tally.survey.n_reports == np.count_nonzero(outside.w)
    names = {"weights": "w", **options}
    fitted = ik.regress(np.zeros((len(outside), 0)), "report", DESIGN, outside, **names)
    errors = fitted.prediction_errors(np.zeros((1, 0)))[0]
    assert errors[1] == pytest.approx(error, rel=1e-6)


def test_profile_intervals_are_those_of_the_deviance_divided_by_the_design_effect():
    frame = table(5)
    found = share(frame, strata="stratum", clusters="cluster")
    mean, weight = np.average(frame.y, weights=frame.w), frame.w.sum()
    effect = (found.standard_errors()[1] * FACTOR) ** 2 * weight / (mean * (1 - mean))

    def deviance(of):
        """Twice the fall of the weighted log-likelihood of yes and no."""
        rate = 1 - P + FACTOR * of
        return (
            2 * weight * (mean * np.log(mean / rate) + (1 - mean) * np.log((1 - mean) / (1 - rate)))
        )

    lower, upper = found.interval(0.9, method="profile")
    limit = effect * t.ppf(0.95, 10) ** 2
    assert deviance(lower[1]) == pytest.approx(limit, rel=1e-4)
    assert deviance(upper[1]) == pytest.approx(limit, rel=1e-4)


def test_weights_of_equal_size_in_one_stratum_are_a_simple_sample():
    frame = table(6).assign(w=2.5)
    found = share(frame)
    mean = frame.y.mean()
    error = np.sqrt(mean * (1 - mean) / 239) / FACTOR
    assert found.standard_errors()[1] == pytest.approx(error, rel=1e-6)


@pytest.mark.parametrize("design", ["alone", "clusters", "strata", "replicates"])
def test_the_covariance_has_the_squares_of_the_errors(design):
    frame = table(5)
    replicates = {f"r{c}": np.where(frame.cluster == c, 0, frame.w * 12 / 11) for c in range(12)}
    options = {
        "alone": {},
        "clusters": {"clusters": "cluster"},
        "strata": {"strata": "stratum", "clusters": "cluster"},
        "replicates": {"replicate_weights": list(replicates)},
    }[design]
    found = share(frame.assign(**replicates), **options)
    covariance = found.covariance()
    assert np.diag(covariance) == pytest.approx(found.standard_errors() ** 2, rel=1e-9)
    # The two shares sum to 1.
    assert covariance.sum(axis=1) == pytest.approx([0, 0], abs=1e-12)


def test_a_covariance_that_needs_too_much_memory_is_refused_and_errors_are_not(monkeypatch):
    found = share(table(5))
    monkeypatch.setattr(sandwich, "MAX_INFLUENCES", 3)
    with pytest.raises(
        TooLarge, match=r"covariance of 2 secrets .* standard_errors\(\) needs less"
    ):
        found.covariance()
    assert (found.standard_errors() > 0).all()


def test_strata_of_one_cluster_are_named_unless_replicates_tell_the_errors():
    frame = table(6).assign(stratum=lambda rows: np.where(rows.cluster == 0, "alone", "others"))
    found = share(frame, strata="stratum", clusters="cluster")
    assert any(
        "1 stratum has one cluster" in each for each in found.summary(method="wald").warnings
    )
    replicates = {f"r{c}": np.where(frame.cluster == c, 0, frame.w * 12 / 11) for c in range(12)}
    frame = frame.assign(**replicates)
    for rows in (frame, frame[:1]):
        assert share(rows, replicate_weights=list(replicates)).tally.survey.n_lonely == 0


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"clusters": "one"}, "clusters"),
        ({"strata": "cluster", "clusters": "cluster"}, "clusters"),
        ({"strata": "row"}, "weights"),
    ],
)
def test_where_no_stratum_has_two_units_errors_are_refused_and_intervals_void(options, name):
    frame = table(7, n=24).assign(one=0, row=range(24))
    found = share(frame, **options)
    for ask in (
        found.standard_errors,
        found.covariance,
        partial(found.interval, method="wald"),
    ):
        with pytest.raises(WeightsRefused, match=rf"{name} must have at least two .* one in each"):
            ask()
    rows = found.to_frame()
    assert (rows.lower.tolist(), rows.upper.tolist()) == ([0, 0], [1, 1])
    assert "intervals are void" in str(found.summary())


@pytest.mark.parametrize("unit", [1e-135, 1e-3, 1e135])
def test_errors_and_effective_numbers_do_not_depend_on_the_unit_of_weights(unit):
    frame = table(8)
    usual, other = share(frame), share(frame.assign(w=unit * frame.w))
    assert other.tally.effective_n == pytest.approx(usual.tally.effective_n, rel=1e-12)
    assert other.standard_errors() == pytest.approx(usual.standard_errors(), rel=1e-9)
    assert other.interval(method="wald")[1] == pytest.approx(usual.interval(method="wald")[1])


@pytest.mark.parametrize("unit", [1e-300, 1e-160, 1e160, 1e300])
@pytest.mark.filterwarnings("error")
def test_weights_whose_squares_leave_the_doubles_are_refused_where_squares_are_needed(unit):
    frame = table(8).assign(w=lambda rows: unit * rows.w)
    tallies = (share(frame).tally, DESIGN.tally(frame.report, counts=frame.w, weighted=True))
    for tally in tallies:
        found = ik.mle(tally)
        for ask in (lambda: tally.effective_n, found.standard_errors, found.interval):  # noqa: B023
            with pytest.raises(WeightsRefused, match=r"squares whose sum .* divide all weights by"):
                ask()
    with pytest.raises(WeightsRefused, match="divide all weights by"):
        ik.regress(frame.y.to_numpy(), frame.report.tolist(), DESIGN, weights=frame.w.to_numpy())


def test_replicate_weights_go_with_rows_of_weight_0():
    frame = table(5)
    for c in range(12):
        frame[f"r{c}"] = frame.w * (frame.cluster != c) * 12 / 11
    names = [f"r{c}" for c in range(12)]
    with_zeros = frame.assign(w=frame.w.where(frame.sex == "f", 0))
    for name in names:
        with_zeros[name] = frame[name].where(frame.sex == "f", 0)
    group = share(frame, replicate_weights=names, groups="sex")["f"]
    found = share(with_zeros, replicate_weights=names)
    assert found.standard_errors() == pytest.approx(group.standard_errors(), rel=1e-9)


def test_two_waves_of_as_many_people_are_two_tables():
    frame = table(6).assign(w=1.0)
    other = frame.assign(report=np.where(frame.report == "yes", "no", "yes"))
    first, second = (
        ik.Tally.from_table(each, DESIGN, report="report", count="w", weighted=True, groups="sex")
        for each in (frame, other)
    )
    found = ik.compare(first["f"], second["f"], of="yes", method="wald")
    error = np.hypot(*(ik.mle(each["f"]).standard_errors()[1] for each in (first, second)))
    lower, upper = found.difference.interval
    assert upper - lower == pytest.approx(2 * t.ppf(0.975, 2 * 239) * error, rel=1e-3)
