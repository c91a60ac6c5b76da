"""Other machines emulated:
the noise is as small as it says, it is everywhere, and what feeds draws withstands it.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ibukit as ik

FOLDER = Path(__file__).parents[1] / "rounding"
sys.path.insert(0, str(FOLDER))
from rounding_noise import SIZE, Noise  # noqa: E402

# the counts that a PRIVIC loop draws, with and without rounding its estimates before a mechanism is
# made of them
LOOP = """
import ibukit as ik
import importlib
privic = importlib.import_module("ibukit.design.privic.privic")

paris = ik.datasets.load_gowalla("privic_paris")

def drawn():
    for beta, ba_steps, ibu_steps in ((1.0, None, 10), (0.5, 8, None)):
        for seed in range(2):
            loop = ik.Privic(paris.alphabet, beta, ba_steps, ibu_steps).run(paris, 15, seed)
            print([tally.counts.tolist() for tally in loop.tallies()])

drawn()
privic.quantize = lambda p: p
drawn()
"""
# what each operator and each solver answers
NUMBERS = """
import numpy as np
import ibukit as ik
tally = ik.RandomizedResponse(3, 1.0).tally_counts([5, 3, 2])
third = np.full(3, 1 / 3)
numbers = [*tally.forward(third), *tally.adjoint(third), ik.gap(tally, third)]
numbers += [*ik.inv(tally, post="none").distribution]
numbers += [*ik.ibu(tally, stop=ik.Steps(5)).distribution]
numbers += [*ik.mle(tally, method="dense").distribution]
# constrained Newton steps, and at a rough tolerance the interior point
many = ik.RandomizedResponse(40, 1.0).tally_counts(range(1, 41))
numbers += [*ik.mle(many, method="dense").distribution]
numbers += [*ik.mle(many, method="dense", tol=1e-5).distribution]
print(*map(repr, map(float, numbers)))
"""


def python(code, noise=None):
    """What a program prints; with a seed, under that seed's noise, and without one, without any."""
    environment = {
        key: value for key, value in os.environ.items() if key != "IBUKIT_ROUNDING_NOISE"
    }
    if noise is not None:
        path = [str(FOLDER), environment.get("PYTHONPATH", "")]
        environment |= {
            "IBUKIT_ROUNDING_NOISE": str(noise),
            "PYTHONPATH": os.pathsep.join(filter(None, path)),
        }
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    ).stdout


def test_noise_is_small_and_everywhere_and_twice_the_same(rng):
    x = rng.normal(size=10_000) * 10.0 ** rng.integers(-300, 300, 10_000)
    one, other = Noise(1), Noise(2)
    u = one(x) / x - 1
    assert 0.9 * SIZE < np.abs(u).max() <= SIZE + 2.0**-52
    assert abs(u.mean()) < 0.02 * SIZE
    assert (u != 0).mean() > 0.7
    assert np.array_equal(one(x), one(x.copy()))
    assert (one(x) != other(x)).mean() > 0.7
    assert np.array_equal(one(x.reshape(100, 100)), one(x).reshape(100, 100))
    assert one(float(x[0])) == one(x)[0]
    kept = np.array([0.0, np.inf, -np.inf])
    assert np.array_equal(one(kept), kept)
    whole = np.arange(3)
    assert one(whole) is whole
    assert one((x, 1)) == (pytest.approx(x, rel=1e-14), 1)


@pytest.fixture(scope="module")
def quiet_and_noisy():
    """The lines of one process without noise and of one with it,
    as starting them is most of what they cost.
    """
    return [python(NUMBERS + LOOP, noise=seed).splitlines() for seed in (None, 1)]


def test_every_operator_and_solver_is_noisy(quiet_and_noisy):
    quiet, noisy = ([float(x) for x in lines[0].split()] for lines in quiet_and_noisy)
    assert noisy == pytest.approx(quiet, rel=1e-12)
    for part in (
        slice(0, 3),
        slice(3, 6),
        slice(7, 10),
        slice(10, 13),
        slice(13, 16),
        slice(16, 56),
        slice(56, None),
    ):
        assert quiet[part] != noisy[part]


def test_draws_withstand_it_because_what_they_depend_on_is_rounded(quiet_and_noisy):
    (quiet, quiet_exact), (noisy, noisy_exact) = (
        (lines[1:5], lines[5:]) for lines in quiet_and_noisy
    )
    assert len(quiet) == len(quiet_exact) == 4
    assert noisy == quiet
    assert noisy_exact != quiet_exact  # and without that they part


def test_tidy_probabilities_are_drawn_alike_on_both_sides_of_a_whole_number():
    # n p + p is a whole number for n = 79 and p = 0.4, where one unit in the last place would
    # decide
    for users in (79, 84, 89):
        counts = []
        for share in (0.4, np.nextafter(0.4, 0), np.nextafter(0.4, 1)):
            mechanism = ik.MatrixMechanism([[1 - share, share], [0.5, 0.5]])
            tallies = [
                mechanism.simulate([users, 0], np.random.default_rng(seed)) for seed in range(200)
            ]
            counts.append([tally.counts.tolist() for tally in tallies])
        assert counts[0] == counts[1] == counts[2]
    rows = [np.array([0.6, 0.4]), np.array([np.nextafter(0.6, 1), np.nextafter(0.4, 0)])]
    bare = [
        [np.random.default_rng(seed).multinomial(79, row).tolist() for seed in range(200)]
        for row in rows
    ]
    assert bare[0] != bare[1]
