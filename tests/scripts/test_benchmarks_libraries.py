"""Other libraries' protocols:
our side of the race, without the libraries, and the page that lists their names.
"""

import re
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

import ibukit as ik
from benchmarks import protocol_solvers
from benchmarks.libraries import bloom, errors, peers, race, summary
from benchmarks.libraries.peer import Peer, Session, of_supports, table
from benchmarks.measure import OverBudget
from ibukit.testing import check_channel

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
FOREIGN = ROOT / "tests" / "foreign"
PAGE = (ROOT / "book" / "other-libraries.md").read_text("utf8")


def recorded(name):
    return pd.read_csv(RESULTS / f"{name}.csv")


@pytest.mark.parametrize(
    "row", list(recorded("library_names").itertuples()), ids=lambda row: f"{row.library} {row.name}"
)
def test_the_page_lists_every_protocol_that_the_packages_have(row):
    section = PAGE.split(f"\n## {row.library}\n")[1].split("\n## ")[0]
    assert f"`{row.name}`" in section


@pytest.mark.parametrize("name", ["OpenDP", "qif"])
def test_a_library_that_the_benchmarks_and_records_ask_has_a_section(name):
    section = PAGE.split(f"\n## {name}\n")[1].split("\n## ")[0]
    script = {"OpenDP": "opendp", "qif": "qif"}[name]
    called = "".join(p.read_text("utf8") for p in FOREIGN.glob(f"record_{script}*.py"))
    theirs = [
        word.rpartition(".")[2]
        for line in section.splitlines()
        if line.startswith("- `")
        for word in re.findall(r"`([\w.]+)`", line.partition(": ")[0])
    ]
    assert theirs
    assert [word for word in theirs if word not in called] == []


def test_the_page_names_what_each_library_needs_as_the_pins_do():
    pins = (ROOT / "pyproject.toml").read_text("utf8")
    for package in ("xxhash", "scikit-learn", "statsmodels"):
        assert f'"{package}==' in pins
        assert package in PAGE.split("| pure-ldp 1.2.0 |")[1].split("\n")[0]
    paper = (ROOT / "paper" / "paper.md").read_text("utf8")
    assert "no reconstruction of distributions" not in paper


def test_every_name_of_ours_on_the_page_exists():
    names = set(re.findall(r"\{(?:class|func)\}`~?ibukit\.(\w+)`", PAGE)) | set(
        re.findall(r"\bik\.(\w+)", PAGE)
    )
    assert len(names) > 20
    assert [name for name in names if not hasattr(ik, name)] == []
    assert "book/other-libraries" in str(yaml.safe_load((ROOT / "_toc.yml").read_text("utf8")))


def test_a_protocol_that_is_not_served_has_a_reason():
    entries = [line for line in PAGE.splitlines() if line.startswith("- `")]
    served = [
        line
        for line in entries
        if re.search(r"`~?ibukit\.|the (longitudinal )?mechanism that is listed above", line)
    ]
    reasons = [line.partition(": none. ")[2] for line in entries if line not in served]
    assert len(served) > 30
    assert len(reasons) == 5
    assert all(len(reason.split()) >= 3 for reason in reasons)


def test_the_recorded_errors_are_those_that_the_bench_runs():
    kept = recorded("library_errors")
    assert kept.what.tolist() == [example.what for example in errors.EXAMPLES]
    assert kept.setup.tolist() == [example.setup for example in errors.EXAMPLES]
    assert kept.example.tolist() == [example.example for example in errors.EXAMPLES]
    assert (kept.example.str.count("\n") == 1).all()
    assert (kept.printed.astype(str) != kept.right.astype(str)).all(), (
        "an example that shows no error"
    )
    assert (RESULTS / "library_errors.txt").read_text("utf8") == errors.transcript(kept)


def test_an_example_is_run_or_its_error_is_shown():
    def of(first, last):
        return errors.Example("none", "", "", f"{first}\n{last}", "")

    assert errors.printed(of("x = 1 / 3", "x")) == "0.333"
    assert errors.printed(of("x = [1]", "x[2]")) == "IndexError: list index out of range"
    same = of("x = np.random.random()", "x")
    assert errors.printed(same) == errors.printed(same)


def test_the_true_values_beside_their_errors():
    # of L-OSUE (2, 1), the variance of one bit of a secret that everybody has; what the page has in
    # the place of f
    p2, q1 = (np.e**3 - 1) / ((np.e + 1) * (np.e**2 - 1)), 1 / (np.e**2 + 1)
    protocol = ik.LongitudinalUnaryEncoding.osue(5, 1.0, 2.0)
    own, other = protocol.p_one, 1 - protocol.p_zero if protocol.p_zero > 0.5 else protocol.p_zero
    assert own == pytest.approx(0.5)
    assert own * (1 - own) / (own - other) ** 2 == pytest.approx(4.68, abs=5e-3)
    assert 1 / 4 / ((1 / 2 - q1) * (2 * p2 - 1)) ** 2 == pytest.approx(4.68, abs=5e-3)
    f = 2 / (1 + np.exp(6))
    assert f == pytest.approx(0.00495, abs=5e-6)


# the law of one's own sets, and of others', is that of a unary encoding up to a factor


def test_supports_have_the_likelihood_of_local_hashing(rng):
    mechanism = ik.LocalHashing(20, 1.5, 3)
    people = rng.multinomial(3000, ik.uniform(20))
    tally = mechanism.simulate(people, rng)
    reports = tally.parts[0].reports
    rows = np.array([mechanism.hash(np.full(20, s), np.arange(20)) == y for s, y in reports])
    other, bits = of_supports(20, 1.5, rows, 1 / 3)
    again = other.tally(bits)
    np.testing.assert_allclose(ik.mle(again).distribution, ik.mle(tally).distribution, atol=1e-5)
    np.testing.assert_allclose(
        ik.inv(again, "none").distribution, ik.inv(tally, "none").distribution, atol=1e-10
    )
    wrong, bits = of_supports(20, 0.5, rows, 1 / 3)
    assert abs(ik.mle(wrong.tally(bits)).distribution - ik.mle(tally).distribution).max() > 1e-3


def test_supports_have_the_likelihood_of_a_sketch(rng):
    mechanism = ik.CountMeanSketch(12, 2.0, rows=4, width=8)
    tally = mechanism.simulate(rng.multinomial(2000, ik.uniform(12)), rng)
    reports = mechanism.restore_reports(tally.parts[0].reports).repeat(tally.counts, axis=0)
    bits = np.take_along_axis(reports[:, 1:], mechanism.buckets[reports[:, 0]], axis=1)
    again = ik.mle(of_supports(12, 2.0, bits)[0].tally(bits))
    np.testing.assert_allclose(again.distribution, ik.mle(tally).distribution, atol=1e-5)


def test_known_filters_have_the_likelihood_of_bloom_rappor(rng):
    mechanism = ik.BloomRappor(10, 16, 2, 3, 0.5, 0.25, 0.75)
    known = bloom.KnownFilters(
        10, bloom.chances(0.5, 0.25, 0.75), np.stack([mechanism.filters(j) for j in range(3)])
    )
    reports = known.randomize(rng.integers(0, 10, 500), rng)
    ours, theirs = mechanism.tally(reports), known.tally(reports)
    check_channel(theirs.operator)
    assert known.epsilon >= mechanism.epsilon - 1e-12
    np.testing.assert_allclose(ik.mle(theirs).distribution, ik.mle(ours).distribution, atol=1e-5)


def test_hash_tables_are_functions_times_values():
    assert table([len, ord], ["a", "b"]).tolist() == [[1, 1], [97, 98]]


def test_fake_data_of_zeros_is_a_unary_encoding():
    # RS+FD with UE of a zero vector: with probability 1 / d the attribute is the one that is
    # reported
    k, d, p, q = 3, 4, 0.5, 0.2
    fake = ik.UnaryEncoding(k, p, q).matrix()
    reports = np.array(np.unravel_index(np.arange(2**k), (2,) * k)).T
    zeros = np.prod(np.where(reports == 1, q, 1 - q), axis=1)
    rows = np.array(
        [
            np.prod(
                np.where(
                    reports == 1,
                    [p if i == x else q for i in range(k)],
                    [1 - p if i == x else 1 - q for i in range(k)],
                ),
                axis=1,
            )
            for x in range(k)
        ]
    )
    assert sorted(rows[0]) == pytest.approx(sorted(fake[0]))
    mixed = rows / d + (1 - 1 / d) * zeros
    one = p / d + (1 - 1 / d) * q
    expected = np.array(
        [
            np.prod(
                np.where(
                    reports == 1,
                    [one if i == x else q for i in range(k)],
                    [1 - one if i == x else 1 - q for i in range(k)],
                ),
                axis=1,
            )
            for x in range(k)
        ]
    )
    np.testing.assert_allclose(mixed, expected, rtol=1e-12)


# the race


def stand_in(k, epsilon):
    mechanism = ik.RandomizedResponse(k, epsilon)

    def clipped(reports):
        return np.bincount(reports, minlength=k) / len(reports)

    return Session(
        lambda secrets: mechanism.randomize(secrets, np.random.default_rng(np.random.randint(9))),  # noqa: NPY002
        {"counted": clipped},
        lambda reports: (mechanism, reports),
        {"shifted": lambda v: v + 1},
    )


def test_everybody_gets_the_same_reports_and_a_line():
    setting = race.Setting("ages", 100, 3000, 3.0, 3)
    rows = race.as_frame(race.race(Peer("none", "k-RR", stand_in, "a note"), setting))
    ours = {f"ibukit, {name}" for name in ("debiased", "Norm-Mul", "Norm-Sub", "MLE")}
    assert set(rows.estimate) == {"counted", "counted, shifted", *ours}
    assert (rows.repetitions == 3).all()
    by = rows.set_index("estimate")
    assert by.squared_error["ibukit, Norm-Sub"] < by.squared_error["ibukit, debiased"]
    assert by.squared_error["counted, shifted"] > 90
    assert by.note["counted"] == "a note"
    assert by.note["ibukit, MLE"] == ""
    again = race.as_frame(race.race(Peer("none", "k-RR", stand_in, "a note"), setting))
    np.testing.assert_array_equal(
        again.set_index("estimate").squared_error.sort_index(), by.squared_error.sort_index()
    )


def test_the_conversion_of_reports_is_a_part_of_our_time_and_of_no_other():
    def start(k, epsilon):
        whole = stand_in(k, epsilon)

        def slow(reports):
            end = time.process_time() + 0.2  # as calls of a hash function
            while time.process_time() < end:
                pass
            return whole.convert(reports)

        return Session(whole.client, whole.estimators, slow)

    rows = race.as_frame(
        race.race(Peer("none", "k-RR", start), race.Setting("ages", 100, 500, 3.0, 2))
    )
    by = rows.set_index("estimate")
    assert by.conversion_seconds["ibukit, MLE"] > 0.19
    assert pd.isna(by.conversion_seconds["counted"])
    assert by.seconds["ibukit, MLE"] < 0.19
    line = summary.markdown(rows).splitlines()[-1].split(" | ")
    of = dict(zip(summary.HEAD, line, strict=True))
    assert float(of["MLE's seconds"]) > 0.19 > float(of["its seconds"])


def test_two_repetitions_have_no_standard_error():
    few = race.race(Peer("none", "k-RR", stand_in), race.Setting("ages", 100, 500, 3.0, 2))
    assert race.as_frame(few).standard_error.isna().all()
    assert "±" not in summary.markdown(race.as_frame(few))
    kept = recorded("libraries")
    told = kept.standard_error.notna()
    assert (kept.repetitions[told] >= race.MIN_REPETITIONS).all()
    assert told.sum() > 500


def test_a_kept_row_of_ours_has_its_conversion():
    kept = recorded("libraries")
    ours = kept.estimate.str.startswith("ibukit") & kept.seconds.notna()
    assert kept.conversion_seconds[ours].notna().all()
    assert kept.conversion_seconds[~ours].isna().all()
    assert (RESULTS / "libraries.md").read_text("utf8") == summary.markdown(kept)


def test_a_library_that_fails_is_a_line():
    def broken(k, epsilon):
        raise TypeError("Strings must be encoded before hashing")

    (row,) = race.race(Peer("none", "broken", broken), race.Setting("words", 10, 100, 1.0, 1))
    assert row["note"] == "TypeError: Strings must be encoded before hashing"


def test_an_estimate_that_takes_too_long_is_a_line_and_the_others_go_on():
    def slow(reports):
        raise OverBudget("stopped after 120 CPU seconds")

    def start(k, epsilon):
        whole = stand_in(k, epsilon)
        return Session(
            whole.client, whole.estimators | {"slow": slow}, whole.convert, whole.derived
        )

    setting = race.Setting("ages", 100, 500, 3.0, 2)
    rows = race.as_frame(race.race(Peer("none", "k-RR", start), setting))
    by = rows.set_index("estimate")
    assert by.note["slow"] == "did not finish in 120 s"
    assert by.seconds.isna().sum() == by.squared_error.isna().sum() == 1
    assert (by.repetitions.drop("slow") == 2).all()
    first = rows.iloc[::-1]  # where its first estimate is the slow one
    assert "| – | " in summary.markdown(first)
    assert "did not finish in 120 s" in summary.markdown(first)


def test_people_are_the_same_in_every_repetition():
    setting = race.Setting("words", 50, 1000, 1.0, 1)
    assert np.array_equal(setting.secrets(), setting.secrets())
    assert race.ages(100).sum() == pytest.approx(1)


def test_libraries_that_are_not_installed_are_named():
    found, missing = peers()
    assert len({peer.library for peer in found}) + len(missing) == 4


def test_the_tables_of_the_page_are_those_of_the_results():
    kept = recorded("libraries")
    assert (RESULTS / "libraries.md").read_text("utf8") == summary.markdown(kept)
    assert summary.markdown(kept.assign(squared_error=2 * kept.squared_error)) != summary.markdown(
        kept
    )
    assert summary.short(kept) in (ROOT / "benchmarks" / "README.md").read_text("utf8")
    broken = pd.DataFrame([{"estimate": "-", "note": "TypeError: no"}], columns=kept.columns)
    broken = broken.assign(library="none", protocol="UE", people="ages", k=2, n=10, epsilon=1.0)
    assert "| none UE | `TypeError: no` |" in summary.markdown(broken)


def test_debiased_by_us_is_what_the_libraries_publish():
    kept = recorded("libraries").set_index("estimate")
    for library, theirs, ours in (
        ("pure-ldp", "estimate", "ibukit, debiased"),
        ("pure-ldp", "estimate, simplex", "ibukit, Norm-Sub"),
        ("multi-freq-ldpy", "MI", "ibukit, Norm-Mul"),
        ("ldp-toolbox", "estimate", "ibukit, Norm-Mul"),
    ):
        rows = kept[(kept.library == library)].reset_index()
        wide = rows.pivot_table("squared_error", ["protocol", "people", "n", "epsilon"], "estimate")
        both = wide[[theirs, ours]].dropna()
        assert len(both) > 10
        np.testing.assert_allclose(both[theirs], both[ours], rtol=1e-3)


# solvers


def test_protocols_are_timed_beside_optimised_unary_encoding():
    chosen = {name: protocol_solvers.PROTOCOLS[name] for name in ("OUE", "OLH", "SHE")}
    chosen["impossible"] = lambda k, eps: ik.RandomizedResponse(k, -eps)
    found = protocol_solvers.timed(10, 500, 1, chosen).set_index("protocol")
    assert found.ratio["OUE"] == 1
    assert (found.gap[["OUE", "OLH", "SHE"]] <= 1e-9).all()
    assert "epsilon" in found.note["impossible"]
    text = protocol_solvers.verdict(found.reset_index().assign(ratio=[1, 2.9, 3.5, np.nan]))
    assert text.splitlines() == ["1 of 3 above 3 times OUE's time", "SHE at k = 10: 3.5 times"]


@pytest.mark.parametrize("name", protocol_solvers.PROTOCOLS)
def test_every_protocol_of_the_solvers_bench_can_be_solved(name, rng):
    mechanism = protocol_solvers.PROTOCOLS[name](6, protocol_solvers.EPSILON)
    found = ik.mle(mechanism.simulate([10, 20, 5, 3, 2, 1], rng), strict=False)
    assert found.distribution.sum() == pytest.approx(1)


def test_the_recorded_times_are_of_these_protocols():
    kept = recorded("protocol_solvers")
    assert set(kept.protocol) <= set(protocol_solvers.PROTOCOLS)
    assert (kept.ratio[kept.protocol == protocol_solvers.BESIDE] == 1).all()


def times_as_long(n, k, *protocols):
    """Of the MLE with its conversion, to the libraries: the least and the most."""
    kept = recorded("libraries")
    here = kept[(kept.n == n) & (kept.k == k) & kept.protocol.isin(protocols)]
    by = here.set_index(["library", "protocol", "epsilon"])
    theirs = by[~by.estimate.str.startswith("ibukit")].groupby(level=[0, 1, 2]).seconds.first()
    ours = by[by.estimate == "ibukit, MLE"]
    ratio = (ours.seconds + ours.conversion_seconds) / theirs
    return ratio.min(), ratio.max()


@pytest.mark.parametrize(
    ("sentence", "n", "k", "protocols"),
    [
        ("| bits (SUE, OUE, L-OSUE) | {} to {} |", 10_000, 100, "SUE OUE L-OSUE"),
        ("| summed histograms (SHE) | {:.0f} to {:.0f} |", 10_000, 100, "SHE"),
        ("with 100 secrets also FLH) | {} to {} |", 10_000, 100, "BLH OLH FLH"),
        ("| k-RR (DE, GRR, L-GRR) | {} to {} |", 10_000, 100, "DE GRR L-GRR"),
        ("also FLH) | 0.5 to 1.0 | {} to {} |", 10_000, 1000, "BLH OLH"),
    ],
)
def test_the_seconds_on_the_page_are_those_of_the_table(sentence, n, k, protocols):
    least, most = times_as_long(n, k, *protocols.split())
    assert sentence.replace("{}", "{:.1f}").format(least, most) in PAGE


def test_errors_on_the_page_are_those_of_the_table():
    kept = recorded("libraries")
    words = kept[kept.k == 1000].pivot_table(
        index="protocol", columns="estimate", values="squared_error"
    )
    near = abs(words["estimate, simplex"] / words["ibukit, MLE"] - 1).dropna()
    assert f"within 3 % of each other for {(near < 0.03).sum()} of {len(near)} protocols" in PAGE
    assert set(near.index[near > 0.03]) == {"DE", "SHE", "PCS"}
    many = kept[
        (kept.n == 100_000)
        & kept.protocol.isin(["SUE", "OUE", "L-OSUE", "BLH", "OLH", "FLH", "HR"])
    ]
    three = many[many.estimate.isin(["ibukit, MLE", "ibukit, Norm-Mul", "ibukit, Norm-Sub"])]
    of = three.groupby(["library", "protocol"]).squared_error
    assert (of.max() / of.min()).max() < 1.1
