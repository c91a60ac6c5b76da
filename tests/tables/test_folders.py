"""Folders as their writers mean them: hidden files, formats, partitions, the order of parts."""

import gzip

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow.dataset as ds
import pytest

import ibukit as ik

LABELS = ["a", "b", "c"]
MECHANISM = ik.RandomizedResponse(LABELS, 1.0)
ROWS = pd.DataFrame({"report": ["a", "b", "c", "a"], "n": [1, 2, 3, 4]})
BY_VERSION = {1: ik.RandomizedResponse(LABELS, 1.0), 2: ik.RandomizedResponse(LABELS, 2.0)}


def write(file, rows=ROWS):
    file.parent.mkdir(parents=True, exist_ok=True)
    name = file.name.lower()
    if name.endswith((".parquet", ".pq")):
        rows.to_parquet(file)
    else:
        rows.to_csv(file, index=False, sep="\t" if ".tsv" in name else ",", compression="infer")


def content(tally):
    """The parts in their order, as numbers."""
    return [(part.mechanism, part.reports.tolist(), part.counts.tolist()) for part in tally.parts]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize(
    "hidden",
    ["_temporary/0/part", "_part", ".part", ".ipynb_checkpoints/part-checkpoint", "a/_tmp/part"],
)
def test_hidden_and_temporary_files_are_not_counted(tmp_path, kind, hidden):
    write(tmp_path / f"part.{kind}")
    write(tmp_path / f"{hidden}.{kind}")
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / f".part.{kind}.crc").touch()
    assert ik.Tally.from_table(tmp_path, MECHANISM).n == len(ROWS)
    assert ik.Tally.from_table(f"{tmp_path}/**/*.{kind}", MECHANISM).n == len(ROWS)
    # Arrow's rule is the same.
    assert ds.dataset(tmp_path, format=kind).count_rows() == len(ROWS)
    # A file that is named is meant.
    assert ik.Tally.from_table(tmp_path / f"{hidden}.{kind}", MECHANISM).n == len(ROWS)


def test_a_partition_of_a_column_whose_name_begins_with_an_underscore_is_data(tmp_path):
    for version in (1, 2):
        write(tmp_path / f"_version={version}" / "part.parquet")
    found = ik.Tally.from_table(tmp_path, BY_VERSION, by="_version")
    assert [part.mechanism.epsilon for part in found.parts] == [1.0, 2.0]
    assert found.n == 2 * len(ROWS)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_folders_inside_folders_are_read(tmp_path, kind):
    for name in ("one", "a/two", "a/b/three", "c/four"):
        write(tmp_path / f"{name}.{kind}")
    assert ik.Tally.from_table(tmp_path, MECHANISM).n == 4 * len(ROWS)


@pytest.mark.parametrize(
    "kinds", [("parquet", "PARQUET"), ("parquet", "pq"), ("csv", "CSV"), ("csv", "TSV")]
)
def test_one_format_may_be_spelt_in_several_ways(tmp_path, kinds):
    for kind in kinds:
        write(tmp_path / f"{kind}.{kind}")
    assert ik.Tally.from_table(tmp_path, MECHANISM).counts.tolist() == [4, 2, 2]


@pytest.mark.parametrize(
    ("kinds", "words"),
    [
        (("parquet", "csv"), "files of one format, got Parquet and text"),
        (("parquet", "CSV"), "files of one format, got Parquet and text"),
        (("PQ", "tsv"), "files of one format, got Parquet and text"),
        (("csv", "txt"), r"x\.txt' must be Parquet .* by a pattern such as 'folder/\*\.csv'"),
        (("parquet", "json"), r"x\.json' must be Parquet"),
        (("csv", "xlsx"), r"x\.xlsx' must be Parquet"),
    ],
)
def test_a_folder_of_several_formats_is_refused(tmp_path, kinds, words):
    write(tmp_path / f"0.{kinds[0]}")
    (tmp_path / f"x.{kinds[1]}").touch()
    for table in (tmp_path, f"{tmp_path}/*"):
        with pytest.raises(ValueError, match=words):
            ik.Tally.from_table(table, MECHANISM)


def test_hidden_files_alone_are_named(tmp_path):
    write(tmp_path / "_temporary" / "0.csv")
    with pytest.raises(FileNotFoundError, match="no file was found except hidden ones"):
        ik.Tally.from_table(tmp_path, MECHANISM)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_hive_partitions_are_columns(tmp_path, kind):
    for version, rows in ((1, ROWS), (2, ROWS.iloc[:2])):
        write(tmp_path / f"version={version}" / f"part.{kind}", rows)
    tally = ik.Tally.from_table(tmp_path, BY_VERSION, by="version")
    assert [(part.mechanism.epsilon, part.n) for part in tally.parts] == [(1.0, 4), (2.0, 2)]
    # Spark 4.3.0 wrote these rows by write.partitionBy("version") and counted {1: 4, 2: 2}; copies
    # below _temporary, and as _part and .part, changed nothing.
    # As others read the same folder.
    others = {
        "arrow": ds.dataset(tmp_path, format=kind, partitioning="hive").to_table().to_pandas(),
        "duckdb": duckdb.sql(
            f"from read_{kind}('{tmp_path}/**/*.{kind}', hive_partitioning = true)"
        ).df(),
    }
    if kind == "parquet":
        others["polars"] = pl.read_parquet(tmp_path / "**/*.parquet", hive_partitioning=True)
    for table in others.values():
        assert content(ik.Tally.from_table(table, BY_VERSION, by="version")) == content(tally)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_column_of_the_file_counts_more_than_the_folder(tmp_path, kind):
    write(tmp_path / "version=1" / f"part.{kind}", ROWS.assign(version=2))
    tally = ik.Tally.from_table(tmp_path, BY_VERSION, by="version")
    assert [part.mechanism.epsilon for part in tally.parts] == [2.0]


def test_names_and_missing_values_of_partitions(tmp_path):
    write(tmp_path / "app%20version=v%201" / "part.csv")
    write(tmp_path / "app%20version=__HIVE_DEFAULT_PARTITION__" / "part.csv")
    tally = ik.Tally.from_table(tmp_path, {"v 1": MECHANISM}, by="app version", missing="drop")
    assert (tally.n, dict(tally.dropped)) == (4, {"missing": 4})


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_partition_that_some_files_lack_is_no_column(tmp_path, kind):
    write(tmp_path / "day=1" / f"a.{kind}")
    write(tmp_path / f"b.{kind}")
    assert ik.Tally.from_table(tmp_path, MECHANISM).n == 2 * len(ROWS)
    with pytest.raises(ValueError, match="by must name a column of the table, got 'day'"):
        ik.Tally.from_table(tmp_path, {1: MECHANISM}, by="day")


def test_a_renamed_column_names_its_file(tmp_path):
    write(tmp_path / "1.parquet")
    write(tmp_path / "2.parquet", ROWS.rename(columns={"report": "answer"}))
    with pytest.raises(ValueError, match=r"'report' in every file, \S*2\.parquet has 'ans"):
        ik.Tally.from_table(tmp_path, MECHANISM)


def test_parts_stand_in_one_order_however_the_engine_reads(tmp_path):
    rng = np.random.default_rng(1)
    rows = pd.DataFrame(
        {"report": rng.choice(LABELS, 4000), "eps": rng.choice([4.0, 0.5, 2.0, 1.0], 4000)}
    )
    shuffled = [rows.sample(frac=1, random_state=seed) for seed in range(4)]
    write(tmp_path / "rows.parquet", rows)
    make = lambda eps: ik.RandomizedResponse(LABELS, eps)  # noqa: E731
    tallies = [
        ik.Tally.from_table(table, make, epsilon="eps")
        for table in (*shuffled, tmp_path / "rows.parquet", pl.from_pandas(rows).lazy())
    ]
    for tally in tallies:
        assert [part.mechanism.epsilon for part in tally.parts] == [0.5, 1.0, 2.0, 4.0]
        assert content(tally) == content(tallies[0])
    # A mapping has the order of its keys.
    named = {4.0: make(4.0), 0.5: make(0.5), 2.0: make(2.0), 1.0: make(1.0)}
    for table in shuffled:
        tally = ik.Tally.from_table(table, named, by="eps")
        assert [part.mechanism.epsilon for part in tally.parts] == list(named)


def test_zipped_files_are_text_whatever_the_letters(tmp_path):
    with gzip.open(tmp_path / "R.CSV.GZ", "wt") as file:
        file.write("report\na\nb\n")
    assert ik.Tally.from_table(tmp_path, MECHANISM).n == 2


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_names_of_files_are_no_patterns(tmp_path, kind):
    write(tmp_path / "day=1" / f"x.{kind}")
    write(tmp_path / "day=[1]" / f"x.{kind}", ROWS[:1])
    assert ik.Tally.from_table(tmp_path, MECHANISM).n == 5
    assert ik.Tally.from_table(tmp_path / "day=[1]" / f"x.{kind}", MECHANISM).n == 1


@pytest.mark.parametrize(
    ("log", "writer"), [("_delta_log", "Delta Lake"), (".hoodie", "Apache Hu")]
)
def test_a_folder_with_a_log_of_its_files_is_refused(tmp_path, log, writer):
    write(tmp_path / "x.parquet")
    (tmp_path / log).mkdir()
    with pytest.raises(ValueError, match=f"table '.*' must be .* of {writer}.*: pass the frame"):
        ik.Tally.from_table(tmp_path, MECHANISM)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_folders_above_the_table_are_no_columns(tmp_path, kind):
    # The files have a column of the name of a folder above, which holds something else.
    for version in (1, 2):
        rows = ROWS.assign(eps=[1.0, 1.0, 2.0, 2.0])
        write(tmp_path / "eps=9" / "data" / f"version={version}" / f"x.{kind}", rows)
    tally = ik.Tally.from_table(
        tmp_path / "eps=9" / "data", lambda eps: ik.RandomizedResponse(LABELS, eps), epsilon="eps"
    )
    assert [(part.mechanism.epsilon, part.n) for part in tally.parts] == [(1.0, 4), (2.0, 4)]


def test_sums_of_weights_have_the_same_bits_at_each_reading(tmp_path):
    rng = np.random.default_rng(1)
    rows = {"report": rng.choice(LABELS, 500_000), "w": rng.random(500_000)}
    pd.DataFrame(rows).to_parquet(tmp_path / "x.parquet", row_group_size=20_000)
    tallies = [ik.Tally.from_table(tmp_path, MECHANISM, count="w", weighted=True) for _ in range(4)]
    assert len({tally.counts.tobytes() for tally in tallies}) == 1


def test_counts_of_several_files_are_too_many_together(tmp_path):
    for label in LABELS:
        write(tmp_path / f"{label}.csv", pd.DataFrame({"report": [label], "n": [2**62]}))
    with pytest.raises(ik.errors.TooLarge, match=r"table's counts must sum to less than 2\^63"):
        ik.Tally.from_table(tmp_path, MECHANISM, count="n")


@pytest.mark.parametrize("name", ["it's", "'", "a') UNION (SELECT 'b", "\\'", "$files", "x;--"])
def test_quotes_in_the_names_of_files_are_part_of_the_names(tmp_path, name):
    for place in (tmp_path / name, tmp_path / name / f"eps={name}"):
        place.mkdir(exist_ok=True)
    write(tmp_path / name / f"{name}.parquet", ROWS)
    write(tmp_path / name / f"eps={name}" / f"{name}.parquet", ROWS)
    for path in (tmp_path / name / f"{name}.parquet", tmp_path / name / f"eps={name}"):
        assert ik.Tally.from_table(path, MECHANISM).n == len(ROWS)
