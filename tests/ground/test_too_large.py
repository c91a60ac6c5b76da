"""Matrices that do not fit are refused by name, before anything asks the system for the memory."""

import sys

import numpy as np
import pytest

import ibukit as ik
from ibukit._ground.limits import require_channel

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="limits are those of POSIX")
# A matrix of this many secrets takes 18.6 GiB, which a large machine may grant.
K = 50_000
UNIFORM = np.full(K, 1 / K)
LINE = ik.Line(0, K - 1)
LABELS = ik.Alphabet([f"label {number}" for number in range(K)])
KRR = ik.RandomizedResponse(K, 5.0)


@pytest.fixture(autouse=True)
def little_memory():
    """No more than a gigabyte can be asked for at a time."""
    import resource

    limits = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm", encoding="ascii") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**30, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, limits)


# The reports of many coins can be listed, those of many ratings cannot.
COINS = ik.product(*[ik.MatrixMechanism([[0.5, 0.5]])] * 24)
RATINGS = ik.product(*[ik.MatrixMechanism(np.full((1, 4), 0.25))] * 31)
ONE_RATING = RATINGS.tally([(0,) * 31])


REFUSED = {
    "matrix of k-RR": KRR.matrix,
    "matrix of geometric noise": lambda: ik.TruncatedGeometric(LINE, 1.0).matrix(),
    "matrix of Laplace": lambda: ik.LinearLaplace(LINE, 1.0).matrix(),
    "matrix of square waves": lambda: ik.SquareWave(LINE, 1.0).matrix(),
    "matrix of the piecewise mechanism": lambda: ik.Piecewise(LINE, 1.0).matrix(),
    "matrix of staircase noise": lambda: ik.Staircase(LINE, 1.0).matrix(),
    "matrix of repeated answers": lambda: ik.LongitudinalResponse(LINE, 1.0, 2.0).matrix(),
    "level of repeated answers": lambda: ik.privacy.epsilon_ldp(
        ik.LongitudinalResponse(LINE, 1.0, 2.0)
    ),
    "level of square waves": lambda: ik.privacy.epsilon_metric(ik.SquareWave(LINE, 1.0)),
    "distances of a line": LINE.distances,
    "distances of labels": LABELS.distances,
    "distances of a grid": lambda: ik.Grid(250, 200).distances(),
    "emd over labels": lambda: ik.emd(UNIFORM, UNIFORM, LABELS),
    "limit of the emd": lambda: ik.theory.asymptotic_emd(KRR, UNIFORM),
    "blahut_arimoto": lambda: ik.blahut_arimoto(UNIFORM, K, 1.0),
    "blahut_arimoto, certified": lambda: ik.blahut_arimoto(UNIFORM, K, 1.0, steps=None),
    "shokri": lambda: ik.shokri(UNIFORM, LINE, 1.0),
    "optimal_private": lambda: ik.optimal_private(UNIFORM, LINE, 1.0),
    "optimal_private of emd": lambda: ik.optimal_private(UNIFORM, LINE, 1.0, criterion="emd"),
    "Privic": lambda: ik.Privic(K).mechanism(),
    "information_gap": lambda: ik.design.information_gap(KRR, UNIFORM, 1.0),
    "rate_distortion": lambda: ik.design.rate_distortion(UNIFORM, LINE, 1.0),
    "breakdown_fraction": lambda: ik.attack.breakdown_fraction(UNIFORM, K, 1.0, 0),
    "compose": lambda: ik.compose(KRR, KRR),
    "product": lambda: ik.product(KRR, KRR),
    "inv of a product": lambda: ik.inv(ONE_RATING),
    "forward of a product": lambda: RATINGS.forward([1.0]),
    "tally_counts of a product": lambda: RATINGS.tally_counts([1]),
    "tally of Laplace": lambda: ik.LinearLaplace(LINE, 1.0).tally([0, 1]),
    "covariance": lambda: ik.mle(KRR.tally([0, 1, 1])).covariance(),
}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems have no /proc")
@pytest.mark.parametrize("what", REFUSED)
def test_what_takes_a_matrix_of_all_secrets_is_refused_by_name(what):
    with pytest.raises(ik.errors.TooLarge, match=r"more than|at most|must have"):
        REFUSED[what]()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems have no /proc")
def test_what_takes_no_matrix_is_computed():
    assert ik.privacy.epsilon_ldp(KRR) == pytest.approx(5.0)
    assert ik.privacy.mutual_information(KRR, UNIFORM) > 0
    assert ik.mle(KRR.tally([0, 1, 1])).gap <= 1e-9
    assert ik.emd(UNIFORM, UNIFORM, LINE) == 0
    assert COINS.forward([1.0])[-1] == 1 / COINS.m
    with pytest.raises(MemoryError):
        np.eye(K)


def test_each_limit_that_is_set_is_kept():
    tally = ik.RandomizedResponse(6, 1.0).tally_counts([1, 1, 1, 1, 1, 0])
    assert tally.matrix().shape == (6, 5)
    with ik.solvers.limits(channel_entries=30):
        assert tally.matrix().shape == (6, 5)
    for name, call in (
        ("channel_entries", tally.matrix),
        ("dense_entries", ik.RandomizedResponse(6, 1.0).matrix),
    ):
        with (
            ik.solvers.limits(**{name: 29}),
            pytest.raises(ik.errors.TooLarge, match=rf"more than 29; .*limits\({name}="),
        ):
            call()


def test_sizes_are_written_out_below_a_thousand_millions():
    with pytest.raises(ik.errors.TooLarge, match=r"have 999999999 x 1\.00e\+9 entries"):
        require_channel("the channel", 10**9 - 1, 10**9)
