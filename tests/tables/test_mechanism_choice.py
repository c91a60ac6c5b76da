"""Which mechanism a row came through: by several columns, by functions of them, with an epsilon."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import ibukit as ik
from ibukit.errors import AlphabetMismatch

LABELS = ["no", "yes"]
TABLE = pd.DataFrame(
    {
        "report": ["yes", "no", "yes", "yes", "no", "no"],
        "version": [2, 1, 2, 1, 2, 1],
        "system": ["b", "a", "a", "b", "b", "a"],
        "eps": [1.0, 2.0, 1.0, 2.0, 0.5, 2.0],
    }
)


def of(version, system, epsilon=1.0):
    return ik.RandomizedResponse(LABELS, float(version) * epsilon + (system == "b"))


def parts(tally):
    return [(part.mechanism.epsilon, part.n) for part in tally.parts]


@pytest.mark.parametrize("engine", ["pandas", "polars", "csv", "parquet"])
def test_several_columns_name_a_mechanism(engine, tmp_path):
    TABLE.to_csv(tmp_path / "t.csv", index=False)
    TABLE.to_parquet(tmp_path / "t.parquet")
    table = {"pandas": TABLE, "polars": pl.from_pandas(TABLE).lazy()}.get(
        engine, tmp_path / f"t.{engine}"
    )
    by = ["version", "system"]
    keys = [(2, "b"), (1, "a"), (2, "a"), (1, "b")]
    mapping = {key: of(*key) for key in keys}
    # The order is that of the mapping; of a function, that of the values. Equal ones are joined.
    assert parts(ik.Tally.from_table(table, mapping, by=by)) == [(3.0, 2), (1.0, 2), (2.0, 2)]
    assert parts(ik.Tally.from_table(table, of, by=by)) == [(1.0, 2), (2.0, 2), (3.0, 2)]
    # With an epsilon the function has it last; or a mapping has functions of it.
    both = ik.Tally.from_table(table, of, by=by, epsilon="eps")
    functions = {key: lambda eps, key=key: of(*key, eps) for key in keys}
    again = ik.Tally.from_table(table, functions, by=by, epsilon="eps")
    by_hand = {}
    for row in TABLE.itertuples():
        level = of(row.version, row.system, row.eps).epsilon
        by_hand[level] = by_hand.get(level, 0) + 1
    assert dict(parts(both)) == dict(parts(again)) == by_hand


def test_a_function_may_not_know_a_value():
    def known(system):
        return of(1, system) if system == "a" else None

    tally = ik.Tally.from_table(TABLE, known, by="system", unknown="drop")
    assert (tally.n, tally.dropped) == (3, {"unknown": 3})
    with pytest.raises(AlphabetMismatch, match="'system' contains 'b', for which there is no"):
        ik.Tally.from_table(TABLE, known, by="system")


def test_texts_stand_for_keys_that_are_written_so_and_numbers_for_themselves():
    texts = TABLE.assign(version=TABLE["version"].astype(str))
    numbers, words = ({kind(v): of(v, "a") for v in (1, 2)} for kind in (int, str))
    wanted = parts(ik.Tally.from_table(TABLE, numbers, by="version"))
    assert parts(ik.Tally.from_table(texts, numbers, by="version")) == wanted
    assert parts(ik.Tally.from_table(texts, words, by="version")) == wanted
    with pytest.raises(AlphabetMismatch, match="'version' contains 2, for which"):
        ik.Tally.from_table(TABLE, words, by="version")
    epsilons = TABLE.assign(eps=TABLE["eps"].map("{:.2f}".format))
    make = lambda eps: of(1, "a", eps)  # noqa: E731
    tallies = [ik.Tally.from_table(table, make, epsilon="eps") for table in (epsilons, TABLE)]
    assert parts(tallies[0]) == parts(tallies[1])


def test_the_order_of_rows_does_not_matter():
    tallies = [
        ik.Tally.from_table(
            TABLE.iloc[np.random.default_rng(seed).permutation(6)],
            of,
            by=["version", "system"],
            epsilon="eps",
        )
        for seed in range(5)
    ]
    assert all(parts(tally) == parts(tallies[0]) for tally in tallies)


BY = ["version", "system"]
REFUSED = {
    "keys that are too short": ({1: of(1, "a")}, {"by": BY}, r"keys of 2 values, .* got key|got 1"),
    "keys that are too long": ({(1, "a", 2): of(1, "a")}, {"by": BY}, r"keys of 2 values"),
    "no such column": (of, {"by": ["version", "os"]}, r"by must name a column .* got 'os'"),
    "a function of too few": (lambda a: a, {"by": BY}, r"'version', 'system' contains 2, 'b'.*ref"),
    "not a mechanism": (lambda *a: 3, {"by": BY}, r"must return a mechanism for 2, 'b', got 3"),
    "mechanisms beside epsilon": (
        {(1, "a"): of(1, "a")},
        {"by": BY, "epsilon": "eps"},
        r"must map to functions of 'eps', as lambda eps",
    ),
    "functions without epsilon": (
        {(1, "a"): of},
        {"by": BY},
        r"must map to mechanisms, .* name the column of its argument by epsilon",
    ),
    "one mechanism for several": (of(1, "a"), {"by": BY}, r"mapping from values of 'version', 's"),
    "an epsilon below 0": (
        lambda version, system, eps: of(version, system, -eps),
        {"by": BY, "epsilon": "eps"},
        r"'version', 'system', 'eps' contains 2, 'b', 1\.0, which is refused: epsilon must be",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_does_not_name_a_mechanism_says_why(what):
    mechanism, options, message = REFUSED[what]
    with pytest.raises((ValueError, TypeError), match=message):
        ik.Tally.from_table(TABLE, mechanism, **options)


def test_lists_name_no_mechanism():
    table = pl.DataFrame({"report": ["no"], "version": [[1]]})
    with pytest.raises(ValueError, match=r"'version' contains \[1\], lists, .* make them strings"):
        ik.Tally.from_table(table, {1: of(1, "a")}, by="version")


@pytest.mark.parametrize("engine", ["pandas", "polars", "csv"])
@pytest.mark.parametrize("bad", ["-1", "0", "abc", "nan?", "1" * 400])
def test_an_epsilon_that_no_mechanism_has_is_unknown(bad, engine, tmp_path):
    table = TABLE.assign(eps=[*TABLE["eps"].map(str)[:5], bad])
    table.to_csv(tmp_path / "t.csv", index=False)
    table = {"pandas": table, "polars": pl.from_pandas(table)}.get(engine, tmp_path / "t.csv")
    make = lambda eps: of(1, "a", eps)  # noqa: E731
    tally = ik.Tally.from_table(table, make, epsilon="eps", unknown="drop")
    assert (tally.n, dict(tally.dropped)) == (5, {"unknown": 1})
    with pytest.raises(AlphabetMismatch, match=r"'eps' .*; say unknown=\"drop\" to leave such"):
        ik.Tally.from_table(table, make, epsilon="eps")


def test_a_function_may_not_know_an_epsilon():
    def known(eps):
        return of(1, "a", eps) if eps < 2 else None

    tally = ik.Tally.from_table(TABLE, known, epsilon="eps", unknown="drop")
    assert (tally.n, dict(tally.dropped)) == (3, {"unknown": 3})
    with pytest.raises(AlphabetMismatch, match=r"2\.0, for which there is no .* let the function"):
        ik.Tally.from_table(TABLE, known, epsilon="eps")


def test_an_epsilon_that_a_function_refuses_for_other_reasons_is_never_left_out():
    with pytest.raises(ValueError, match="which is refused: epsilon must be at most"):
        ik.Tally.from_table(TABLE, lambda eps: of(1, "a", 99 * eps), epsilon="eps", unknown="drop")
