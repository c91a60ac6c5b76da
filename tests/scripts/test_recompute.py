"""The scripts that recompute data/ from the publishers' files,
on small files made up in the publishers' formats.
"""

import gzip
import importlib
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

import ibukit as ik

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts" / "recompute"


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    yield importlib.import_module
    for name in ("_download", "acharya", "adult", "gowalla", "taxi"):
        sys.modules.pop(name, None)


def person(age, workclass, income="<=50K"):
    return (
        f"{age}, {workclass}, 77516, Bachelors, 13, Never-married, Sales, Own-child, X, Y, 0, 0,"
        f" 40, Z, {income}"
    )


def test_adult_counts_ages_and_classes(script, tmp_path, monkeypatch):
    source, to = tmp_path / "source", tmp_path / "to"
    source.mkdir()
    people = [person(39, "State-gov"), person(17, "?"), person(39, "?")]
    (source / "adult.data").write_text("\n".join([*people, "", ""]))
    (source / "adult.test").write_text(
        "|1x3 Cross validator\n" + person(90, "Private", ">50K.") + "\n\n"
    )
    monkeypatch.setattr(sys, "argv", ["adult.py", "--from", str(source), "--to", str(to)])
    script("adult").main()
    assert (to / "adult/ages.csv").read_text() == "age,count\n17,1\n39,2\n90,1\n"
    assert (to / "adult/ages_train.csv").read_text() == "age,count\n17,1\n39,2\n"
    assert (
        to / "adult/workclass.csv"
    ).read_text() == "workclass,count\n?,2\nState-gov,1\nPrivate,1\n"
    assert (to / "adult/workclass_train.csv").read_text() == "workclass,count\n?,2\nState-gov,1\n"


def test_gowalla_counts_by_cell_with_edges_where_they_belong(script, tmp_path):
    south, north, west, east = ik.datasets.load_gowalla("manhattan").alphabet.bounds
    row_2 = float(np.linspace(south, north, 21)[2])
    points = [
        (south, west),  # the south-west corner: cell 0
        (row_2, west),  # a southern edge belongs to the row above it
        (north, east),  # the far corner belongs to the last cell
        (south - 1e-6, west),  # outside
        (30.2, -97.7),  # another city
    ]
    lines = [
        f"{user}\t2010-10-19T23:55:27Z\t{lat!r}\t{lon!r}\t22847"
        for user, (lat, lon) in enumerate(points)
    ]
    file = tmp_path / "loc-gowalla_totalCheckins.txt.gz"
    file.write_bytes(gzip.compress("\n".join(lines).encode()))
    counts = script("gowalla").count_checkins(file, "manhattan")
    assert Counter({int(cell): int(counts[cell]) for cell in np.flatnonzero(counts)}) == Counter(
        {0: 1, 28: 1, 279: 1}
    )


def test_gowalla_writes_the_published_centres(script, tmp_path, monkeypatch):
    (tmp_path / "loc-gowalla_totalCheckins.txt.gz").write_bytes(
        gzip.compress(b"0\t2010\t40.75\t-73.98\t1\n")
    )
    monkeypatch.setattr(sys, "argv", ["gowalla.py", "--from", str(tmp_path), "--to", str(tmp_path)])
    script("gowalla").main()
    for city in (
        "manhattan",
        "paris",
        "san_francisco",
        "san_francisco_24x17",
        "manhattan_exact_km",
    ):
        made = np.genfromtxt(tmp_path / "gowalla" / f"{city}.csv", delimiter=",", names=True)
        kept = np.genfromtxt(
            ik.datasets.DATA / "gowalla" / f"{city}.csv", delimiter=",", names=True
        )
        for column in ("row", "col"):
            np.testing.assert_array_equal(made[column], kept[column])
        for column in ("lat_center", "lon_center"):
            np.testing.assert_allclose(made[column], kept[column], atol=1.5e-6)
    assert made["count"].sum() == 1


def test_taxi_counts_distances_and_payments(script, tmp_path):
    file = tmp_path / "trips.csv"
    file.write_text(
        "vendor_id,trip_distance,payment_type\n1,0.03,1\n1,0.04,2\n2,0.0,\n2,-1.2,1\n2,30.0,1\n2,30.01,3\n"
    )
    taxi = script("taxi")
    distances, payments = taxi.count_trips(file)
    assert distances == Counter({3: 1, 4: 1, 3000: 1, 3001: 1})
    assert payments == Counter({1: 3, 0: 1, 2: 1, 3: 1})
    binned = taxi.bins(distances)
    assert (binned[0], binned[1], binned[999], sum(binned)) == (1, 1, 1, 3)


def test_taxi_tables_agree_with_each_other(script):
    taxi = script("taxi")
    kept = np.genfromtxt(
        ik.datasets.DATA / "taxi" / "distances_hundredths.csv", delimiter=",", names=True, dtype=int
    )
    hundredths = Counter(
        dict(zip(kept["distance_centimiles"].tolist(), kept["count"].tolist(), strict=True))
    )
    assert taxi.bins(hundredths) == ik.datasets.load_taxi_distances().counts.tolist()


def test_a_file_without_a_known_hash_says_so(script, capsys, monkeypatch):
    download = script("_download")
    monkeypatch.setattr(
        download.pooch, "retrieve", lambda address, **options: f"kept/{options['fname']}"
    )
    assert download.obtain("https://example.org/trips.csv", None, None) == Path("kept/trips.csv")
    assert "no hash is known for trips.csv" in capsys.readouterr().err


@pytest.mark.parametrize("people", [1_000_000, 500_000])
def test_acharya_takes_the_place_of_the_rows_of_its_claim_and_of_no_other(
    script, tmp_path, monkeypatch, people
):
    acharya = script("acharya")
    monkeypatch.setattr(acharya, "RUNS", {("Zipf 0.5", 100): ("a", "b", "c", "d")})
    for i, (distribution, k, level, name) in enumerate(acharya.names()):
        theirs = {f"{short}_error": [9.0, 0.01 * (i + 1)] for short in acharya.PROTOCOLS.values()}
        run = {"absz": k, "privacy": float(level), "repetition": 30, "indices": [50_000, people]}
        savemat(tmp_path / name, run | theirs | {"prob": acharya.shares(distribution, k)})
    table = tmp_path / "published" / "protocols.csv"
    table.parent.mkdir()
    before = ["claim,...", "one,of another", f"{acharya.CLAIM},old", "two,of another"]
    table.write_text("\n".join(before) + "\n")
    monkeypatch.setattr(sys, "argv", ["acharya.py", "--from", str(tmp_path), "--to", str(tmp_path)])
    if people != acharya.PEOPLE:
        with pytest.raises(ValueError, match="30 repetitions of a million people"):
            acharya.main()
        return
    acharya.main()
    header, first, *made, last = table.read_text().splitlines()
    assert [header, first, last] == [before[0], before[1], before[3]]
    assert len(made) == 4 * 4
    assert made[-1].startswith(f"{acharya.CLAIM},Data/data_Zipf_k_100_eps_5_d.mat,")
    assert ",0.04000,,text,,30,relative,0.06," in made[-1]


def test_acharya_refuses_a_file_of_another_distribution(script, tmp_path):
    acharya = script("acharya")
    run = {
        "absz": 100,
        "privacy": 1.0,
        "repetition": 30,
        "indices": 10**6,
        "prob": acharya.shares("uniform", 100),
    }
    savemat(tmp_path / "one.mat", run)
    with pytest.raises(ValueError, match="distribution two steps"):
        acharya.errors(tmp_path / "one.mat", "two steps", 100, "1")
