"""The tables: totals, alphabets, hashes."""

import shutil

import numpy as np
import ot
import pytest

import ibukit as ik
from ibukit import datasets

HASHED = sorted(line.split()[1] for line in (datasets.DATA / "SHA256SUMS").read_text().splitlines())
TABLES = [
    datasets.load_adult_ages,
    lambda: datasets.load_adult_ages("train"),
    datasets.load_adult_workclass,
    lambda: datasets.load_adult_workclass("train"),
    datasets.load_taxi_distances,
    datasets.load_taxi_payments,
    *(lambda city=city: datasets.load_gowalla(city) for city in datasets._CITIES),
]


@pytest.mark.ledger("A-D13")
def test_ages():
    ages = datasets.load_adult_ages()
    assert ages.n == 48842
    assert ages.alphabet == ik.Line(0, 99)
    assert ages.counts @ ages.alphabet.values / ages.n == pytest.approx(38.6436, abs=5e-5)
    assert (ages.counts.argmax(), ages.counts.max()) == (36, 1348)
    seen = np.flatnonzero(ages.counts)
    assert (seen.min(), seen.max()) == (17, 90)


def test_training_ages():
    ages = datasets.load_adult_ages("train")
    assert ages.n == 32561
    assert ages.counts[89] == 0
    assert (ages.counts <= datasets.load_adult_ages().counts).all()


def test_training_work_classes():
    train, everyone = datasets.load_adult_workclass("train"), datasets.load_adult_workclass()
    assert train.n == datasets.load_adult_ages("train").n == 32561
    assert train.alphabet == everyone.alphabet
    assert (train.counts <= everyone.counts).all()


@pytest.mark.parametrize(
    ("city", "shape", "n"),
    [
        ("manhattan", (20, 14), 98061),
        ("manhattan_exact_km", (20, 14), 98060),
        ("paris", (12, 16), 10991),
        ("san_francisco", (16, 24), 123026),
        ("san_francisco_24x17", (17, 24), 123026),
        ("privic_paris", (11, 15), 10078),
        ("privic_san_francisco", (16, 24), 123025),
    ],
)
def test_cities(city, shape, n):
    data = datasets.load_gowalla(city)
    assert (data.alphabet.n_rows, data.alphabet.n_cols) == shape
    assert data.n == n


@pytest.mark.parametrize(
    "city", ["manhattan", "manhattan_exact_km", "paris", "san_francisco", "san_francisco_24x17"]
)
def test_cell_centres_lie_where_the_table_says(city):
    frame = np.genfromtxt(datasets.DATA / "gowalla" / f"{city}.csv", delimiter=",", names=True)
    data = datasets.load_gowalla(city)
    codes = data.alphabet.locate(frame["lat_center"], frame["lon_center"])
    np.testing.assert_array_equal(data.counts[codes], frame["count"])
    north, east = data.alphabet.edges()
    np.testing.assert_allclose(
        ((north[1:] + north[:-1]) / 2)[frame["row"].astype(int)], frame["lat_center"], atol=1e-6
    )
    np.testing.assert_allclose(
        ((east[1:] + east[:-1]) / 2)[frame["col"].astype(int)], frame["lon_center"], atol=1e-6
    )


@pytest.mark.parametrize(
    ("city", "distance"), [("privic_paris", 2.022618), ("privic_san_francisco", 7.376104)]
)
def test_privic_tables_are_as_far_from_uniform_as_published(city, distance):
    data = datasets.load_gowalla(city)
    k = len(data.alphabet)
    assert ik.emd(ik.uniform(k), data.distribution, data.alphabet) == pytest.approx(
        distance, abs=5e-7
    )
    rows, cols = np.divmod(np.arange(k), data.alphabet.n_cols)
    cost = np.hypot(np.subtract.outer(rows, rows), np.subtract.outer(cols, cols))
    assert ot.emd2(np.full(k, 1 / k), data.counts / data.n, cost) == pytest.approx(
        distance, abs=5e-7
    )


def test_privic_tables_are_turned_to_south_west():
    # their row i counts from the north and their column j from the east
    frame = np.genfromtxt(datasets.DATA / "privic" / "paris.csv", delimiter=",", names=True)
    data = datasets.load_gowalla("privic_paris")
    last_row, last_col = data.alphabet.n_rows - 1, data.alphabet.n_cols - 1
    cells = np.column_stack([last_row - frame["i"], last_col - frame["j"]]).astype(int)
    np.testing.assert_array_equal(data.counts[data.alphabet.codes(cells)], frame["count_as_read"])
    assert np.corrcoef(frame["lat_center"], cells[:, 0])[0, 1] > 0.999
    assert np.corrcoef(frame["lon_center"], cells[:, 1])[0, 1] > 0.999


def test_the_island_is_given_as_published():
    island = datasets.load_privic_island()
    assert island.sum() == pytest.approx(1.000000003, abs=5e-10)
    assert island[164 - 93] == 0.01
    with pytest.raises(ik.errors.InvalidDistribution):
        ik.check_distribution(island)
    assert ik.normalize(island).sum() == pytest.approx(1, abs=1e-15)


STATED = [0, 5, 10, 15, 20, 24, 29, 34, 38]  # the labels of the authors' README, in %


@pytest.mark.erratum("E1")
def test_the_nine_vectors_of_the_attack_differ_in_one_entry():
    published = [float(row["mass"]) for row in datasets._read("privic/paris_island.csv")]
    vectors = np.array([datasets.load_privic_island(stated) for stated in STATED])
    np.testing.assert_array_equal(vectors[0][::-1], published)
    for vector in vectors:
        assert np.flatnonzero(vector != vectors[0]).tolist() in ([], [164 - 93])
    np.testing.assert_allclose(vectors[:, 164 - 93], 0.01 + 0.005 * np.arange(9), rtol=1e-15)
    shares = (vectors - vectors[0]).sum(axis=1) / vectors.sum(axis=1)
    assert np.rint(1000 * shares).tolist() == STATED  # per mille, not per cent
    with pytest.raises(ValueError, match=r"stated must be one of 0, 5, .* 38, got 39"):
        datasets.load_privic_island(39)


def test_substitutes_say_that_they_are():
    for data in (datasets.load_taxi_distances(), datasets.load_taxi_payments()):
        assert "substitute" in data.source


@pytest.mark.parametrize("load", TABLES)
def test_every_table_is_a_dataset(load):
    data = load()
    assert data.counts.shape == (len(data.alphabet),)
    assert data.counts.dtype == np.int64
    assert (data.counts >= 0).all()
    assert data.distribution.sum() == pytest.approx(1)
    assert data.source
    assert data.name in repr(data)
    with pytest.raises(ValueError, match="read-only"):
        data.counts[0] = 1


@pytest.fixture
def copied_data(tmp_path, monkeypatch):
    shutil.copytree(datasets.DATA, tmp_path / "data")
    monkeypatch.setattr(datasets, "DATA", tmp_path / "data")
    return tmp_path / "data"


@pytest.mark.parametrize("name", HASHED)
def test_a_changed_file_is_named(name, copied_data):
    file = copied_data / name
    datasets._read(name)
    content = bytearray(file.read_bytes())
    content[-2] ^= 1
    file.write_bytes(content)
    with pytest.raises(ik.errors.DataChanged, match=file.name):
        datasets._read(name)


def test_a_changed_file_stops_its_loader(copied_data):
    file = copied_data / "adult" / "ages.csv"
    file.write_text(file.read_text().replace("36,1348", "36,1349"))
    with pytest.raises(ik.errors.DataChanged, match=r"ages\.csv has SHA-256"):
        datasets.load_adult_ages()


def test_every_table_in_the_tree_has_a_hash():
    folders = ("adult", "gowalla", "places", "privic", "taxi")
    found = {
        f"{folder}/{path.name}" for folder in folders for path in (datasets.DATA / folder).iterdir()
    }
    assert set(HASHED) == found


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match=r"city must be one of manhattan.*'brooklyn'"):
        datasets.load_gowalla("brooklyn")
    for load in (datasets.load_adult_ages, datasets.load_adult_workclass):
        with pytest.raises(ValueError, match=r"subset must be .*'half'"):
            load("half")


@pytest.mark.parametrize(
    "city", ["manhattan", "manhattan_exact_km", "paris", "san_francisco", "san_francisco_24x17"]
)
def test_landmarks_lie_where_people_check_in(city):
    data = ik.datasets.load_gowalla(city)
    codes = data.alphabet.locate(list(data.landmarks.values()))
    assert len(set(codes.tolist())) == len(data.landmarks) >= 4
    # exchanged or in another city they would be outside; moved by some cells they would hardly be
    # so busy
    assert np.median(data.counts[codes]) > 3 * np.median(data.counts)
    assert ik.datasets.load_adult_ages().landmarks == {}
