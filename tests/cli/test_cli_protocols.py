"""Protocols on the command line:
by name, with their parameters from a file, and seeds that keep all their digits.
"""

import io
import json

import numpy as np
import pandas as pd
import pytest

import ibukit as ik
from ibukit.cli import main
from ibukit.cli.models import named_mechanisms


def estimated(capsys):
    return pd.read_csv(io.StringIO(capsys.readouterr().out))["probability"].to_numpy()


def test_every_protocol_has_a_name():
    names = named_mechanisms()
    assert {
        "local-hashing",
        "hadamard-response",
        "square-wave",
        "hybrid-mechanism",
        "bloom-rappor",
        "olh",
    } <= set(names)
    assert names["olh"] is ik.LocalHashing
    assert {"matrix-mechanism", "mechanism", "finite-mechanism"}.isdisjoint(names)


def test_a_protocol_is_estimated_like_any_mechanism(tmp_path, capsys, rng):
    wave = ik.SquareWave(ik.Line(0, 5), 2.0)
    reports = wave.randomize([1, 1, 2, 5] * 50, rng)
    pd.DataFrame({"z": reports}).to_csv(tmp_path / "z.csv", index=False)
    assert (
        main(
            [
                "estimate",
                str(tmp_path / "z.csv"),
                "--mechanism",
                "square-wave",
                "--k",
                "6",
                "--epsilon",
                "2",
            ]
        )
        == 0
    )
    np.testing.assert_allclose(
        estimated(capsys), ik.mle(wave.tally(reports)).distribution, atol=1e-6
    )


def test_seeds_in_two_columns_of_a_file_keep_all_their_digits(tmp_path, capsys, rng):
    hashing = ik.LocalHashing(5, 2.0)
    reports = hashing.randomize([1, 1, 2, 4] * 50, rng)
    assert reports[:, 0].max() > 2**53
    pd.DataFrame(reports, columns=["seed", "bucket"]).to_csv(tmp_path / "r.csv", index=False)
    columns = ["--column", "seed", "--column", "bucket"]
    command = [
        "estimate",
        str(tmp_path / "r.csv"),
        *columns,
        "--mechanism",
        "olh",
        "--k",
        "5",
        "--epsilon",
        "2",
    ]
    assert main(command) == 0
    np.testing.assert_allclose(
        estimated(capsys), ik.mle(hashing.tally(reports)).distribution, atol=1e-6
    )


def test_parameters_of_its_own_come_from_a_file(tmp_path, capsys, rng):
    sketch = ik.HadamardCountMeanSketch(5, 2.0, rows=8, width=16)
    reports = sketch.randomize([0, 0, 3] * 50, rng)
    own = {"mechanism": "hcms", "k": 5, "epsilon": 2.0, "rows": 8, "width": 16}
    gauss = {"mechanism": "linear-gaussian", "k": 5, "sigma": 0.5}
    noisy = ik.LinearGaussian(ik.Line(0, 4), 0.5)
    for name, parameters, mechanism, rows in (
        ("sketch", own, sketch, reports),
        ("gauss", gauss, noisy, noisy.randomize([0, 0, 3] * 50, rng)),
    ):
        (tmp_path / f"{name}.json").write_text(json.dumps(parameters))
        table = pd.DataFrame(np.asarray(rows).reshape(150, -1)).add_prefix("c")
        table.to_csv(tmp_path / "r.csv", index=False)
        columns = [part for each in table.columns for part in ("--column", each)]
        assert (
            main(
                [
                    "estimate",
                    str(tmp_path / "r.csv"),
                    *columns,
                    "--mechanism",
                    str(tmp_path / f"{name}.json"),
                ]
            )
            == 0
        )
        np.testing.assert_allclose(
            estimated(capsys), ik.mle(mechanism.tally(rows)).distribution, atol=1e-5
        )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["cms", "--k", "5", "--epsilon", "2"], "cms needs rows, width"),
        (["linear-gaussian", "--k", "5"], "linear-gaussian needs sigma"),
        (["longitudinal-hashing", "--k", "5", "--epsilon", "1"], "needs epsilon_inf"),
        (["local-hashing", "--k", "5"], "--epsilon must be given"),
    ],
)
def test_what_is_missing_is_named(words, said, capsys):
    assert main(["check", *words]) == 2
    assert said in capsys.readouterr().err


def test_an_epsilon_that_a_mechanism_has_not_is_refused(tmp_path, capsys):
    (tmp_path / "g.json").write_text(
        json.dumps({"mechanism": "linear-gaussian", "k": 5, "sigma": 0.5})
    )
    assert main(["check", str(tmp_path / "g.json"), "--epsilon", "1"]) == 2
    assert "--epsilon does not apply" in capsys.readouterr().err
