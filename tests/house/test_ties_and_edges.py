"""Where a rule turns: at ties, at equality, at the last user, at the least double.
Each test states one law.

Cases that are symmetric, even or far from the turn pass with the rule on the wrong side of it.
"""

from dataclasses import dataclass

import numpy as np
import pytest

import ibukit as ik
from ibukit.bayes._marginals import Marginals
from ibukit.channels import offset_masses
from ibukit.cli import main
from ibukit.estimators import maximum_likelihood
from ibukit.estimators._expected_deviance import expected_deviance_term
from ibukit.files import seeding
from ibukit.identification.maximisers import bound_on_ratios
from ibukit.solvers import _em_kernels
from ibukit.testing import check_mechanism
from ibukit.theory import van_trees_bound
from mechanism_cases import KINDS
from oracles import chance

K3 = ik.RandomizedResponse(3, epsilon=1.0)


@pytest.mark.parametrize("shape", [(100, 2), (2, 100), (7, 3)])
def test_a_map_on_its_side_has_the_same_noise(shape):
    """The way that the noise reaches north grows with the columns as
    that to the east does with the rows.
    """
    upright, lying = (
        ik.Grid(*shape, cell_size=(0.5, 1.0)),
        ik.Grid(*shape[::-1], cell_size=(1.0, 0.5)),
    )
    assert offset_masses.reach(upright, 5.0) == offset_masses.reach(lying, 5.0)[::-1]
    turned = (
        np.arange(len(upright)).reshape(shape[::-1]).T.ravel()
    )  # cells of the upright one in the lying one
    one, other = (ik.TruncatedPlanarGeometric(grid, 5.0).matrix() for grid in (upright, lying))
    np.testing.assert_allclose(one, other[np.ix_(turned, turned)], rtol=1e-9)


def test_one_user_has_the_noise_of_one_of_many():
    """P(0) = tanh(eps / 2), and each unit farther out has e^-eps times that;
    the walk's last users are no exception.
    """
    mechanism, rng, draws = ik.LinearGeometric(ik.Line(0, 0), 1.0), np.random.default_rng(7), 250
    away = np.array([abs(mechanism.simulate([1], rng).parts[0].reports[0]) for _ in range(draws)])
    for distance, probability in enumerate(np.tanh(0.5) * np.exp(-np.arange(4.0)) * [1, 2, 2, 2]):
        error = np.sqrt(probability * (1 - probability) / draws)
        assert abs((away == distance).mean() - probability) < 4.5 * error


@pytest.mark.parametrize("gap", [1e-14, 1e-9, 1e-4, 0.1, 3.0, 1e3])
def test_no_ratio_of_a_maximum_is_above_what_the_gap_allows(gap):
    """Where q_z h(p'_z / p_z) <= gap for h(u) = u - 1 - log u,
    u <= 1 + r needs h(1 + r) >= gap / q_z.
    """
    tally = ik.MatrixMechanism(np.eye(3)).tally_counts([6, 3, 1])
    q = tally.frequencies
    most = bound_on_ratios(tally, q, gap)  # of the identity: 1 + r at each report
    assert (most - 1 - np.log(most) >= gap / q * (1 - 1e-6) - 1e-15).all()


def test_cycle_t_draws_from_the_seed_and_t():
    """The documented generator, by which anybody can make the reports of one cycle again."""
    people = [30, 20, 10]
    ran = ik.Privic(3, ba_steps=2, ibu_steps=2).run(people, 2, seed=5)
    by_hand = ik.Privic(3, ba_steps=2, ibu_steps=2)
    for t in (1, 2):
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(5, spawn_key=(t,))))
        by_hand.collect(by_hand.mechanism().simulate(people, rng))
    np.testing.assert_array_equal(ran.distributions, by_hand.distributions)


COMMAND = ["--mechanism", "k-rr", "--epsilon", "1", "--k", "3", "--first", "2019"]


def test_no_steps_are_no_default(tmp_path, capsys):
    """After 0 steps an estimate is where it began."""
    (tmp_path / "r.csv").write_text("year\n2019\n2020\n")
    assert main(["estimate", str(tmp_path / "r.csv"), *COMMAND, "--steps", "0"]) == 0
    shares = [float(row.split(",")[1]) for row in capsys.readouterr().out.splitlines()[1:]]
    assert shares == pytest.approx([1 / 3] * 3)


def test_a_name_that_could_be_a_report_is_a_name_where_it_is_named(tmp_path, capsys):
    (tmp_path / "r.csv").write_text("2020\n2019\n2019\n2021\n")
    n_of = {}
    for options in ([], ["--column", "2020"]):
        assert main(["estimate", str(tmp_path / "r.csv"), *COMMAND, *options]) == 0
        shown = capsys.readouterr().out
        n_of[len(options)] = float(
            shown.splitlines()[2].split(",")[1]
        )  # of 2020, which is a report or is not
    assert n_of[0] > 0
    assert n_of[2] == 0


@pytest.mark.parametrize(
    ("factor", "met"), [(1.0, True), (1 + 1e-9, False), (1.5, False), (2.0, False)]
)
def test_a_tolerance_is_met_or_missed_and_nothing_between(factor, met, monkeypatch):
    original = maximum_likelihood.best_found
    tally = K3.tally_counts([5, 3, 2])
    monkeypatch.setattr(
        maximum_likelihood, "best_found", lambda *asked: (*original(*asked)[:-1], factor * 1e-6)
    )
    assert (ik.mle(tally, 1e-6, strict=False).status is not ik.Status.MAX_ITER) == met
    if not met:
        with pytest.raises(ik.ConvergenceError, match="was not certified"):
            ik.mle(tally, 1e-6)


@dataclass(frozen=True)
class Boast(ik.FiniteMechanism):
    """K-RR of a level that is `over` times the one that it claims."""

    alphabet: ik.Alphabet
    epsilon: float
    over: float = 1.0

    def make_matrix(self):
        return ik.RandomizedResponse(self.alphabet, self.epsilon * self.over).matrix().copy()


@pytest.mark.parametrize("over", [1.005, 1 + 1e-6])
def test_a_claim_that_is_half_a_percent_too_good_is_caught(over):
    check_mechanism(Boast(3, 1.0), rng=np.random.default_rng(1), n=1000)
    with pytest.raises(AssertionError, match="epsilon is claimed to be 1"):
        check_mechanism(Boast(3, 1.0, over), rng=np.random.default_rng(1), n=1000)


def test_a_quantile_at_a_tie_is_the_least_value_that_reaches_the_level():
    """Thirds sum to 1/3 and 2/3 up to rounding, on either side of it."""
    halves, thirds = (
        Marginals(np.array([[0.5, 0.25, 0.25]]), np.ones(1), 0.0),
        np.full((1, 3), 1 / 3),
    )
    assert halves.quantiles("frequencies", 0.5) == [0.0]
    assert halves.quantiles("frequencies", 0.75) == [0.5]
    assert halves.quantiles("frequencies", 0.7500001) == [1.0]
    assert Marginals(thirds, np.ones(1), 0.0).quantiles("frequencies", 2 / 3) == [0.5]
    assert Marginals(thirds, np.ones(1), 0.0).quantiles("frequencies", 1.0) == [1.0]


@pytest.mark.parametrize("first", [(-3, 4), (4, -3), (5, 2)])
def test_blocks_do_not_depend_on_what_the_cells_are_called(first):
    weights = np.arange(1, 13)
    elsewhere = ik.attack.coarse_map(weights, ik.Grid(3, 4, first=first), 2)
    np.testing.assert_array_equal(elsewhere, ik.attack.coarse_map(weights, ik.Grid(3, 4), 2))


@pytest.mark.parametrize("n", [1, 3, 10, 40])
def test_a_gap_that_step_n_has_is_met_at_step_n(n):
    tally = ik.TruncatedGeometric(ik.Line(0, 5), 0.5).tally_counts([9, 1, 7, 2, 8, 3])
    there = ik.ibu(tally, stop=ik.Steps(n))
    assert ik.ibu(tally, stop=ik.Gap(there.gap * (1 + 1e-6))).n_iter == n
    assert ik.ibu(tally, stop=ik.Gap(there.gap * (1 - 1e-6))).n_iter > n


@pytest.mark.parametrize("mass", [1e-90, 1e-150, 1e-250, 1e-307])
def test_mass_that_a_double_can_hold_is_kept_while_it_falls(mass):
    """It may be needed again: what is set to 0 stays there."""
    theta, g = np.array([mass, 0.5]), np.array([0.5, 1.5])
    _em_kernels._step(theta, g)
    assert theta[0] == mass / 2
    theta, g = np.array([3e-308, 0.5]), np.array([0.5, 1.5])
    _em_kernels._step(theta, g)
    assert theta[0] == 0


@pytest.mark.parametrize("mean", [100.001, 150.0, 400.0])
def test_frequent_reports_have_the_second_term_of_their_expansion(mean):
    """1 + 1 / (6 mu) + 1 / (6 mu^2): without the last the share is off by 1.7e-5 at 100."""
    expected = pytest.approx(chance.expected_deviance_term(mean), abs=3e-6)
    assert expected_deviance_term(np.log([mean]))[0] == expected
    assert expected_deviance_term(np.log([mean, 1.0]))[0] == expected


def test_the_words_for_zeros_of_either_sign_are_the_same():
    assert seeding.text(np.array([-0.0, 1.0])) == seeding.text(np.array([0.0, 1.0]))


@pytest.mark.parametrize("mechanism", KINDS, ids=lambda mechanism: type(mechanism).__name__)
def test_the_gap_looks_at_secrets_without_mass_too(mechanism):
    """The secret that fits the reports best has the largest ratio of all
    where an estimate gives it nothing.
    """
    k = mechanism.k
    tally = mechanism.simulate(1000 * (np.arange(k) == 0), np.random.default_rng(3))
    rows = tally.matrix()
    best = (rows @ (tally.frequencies / rows.mean(axis=0))).argmax()
    theta = (np.arange(k) != best) / (k - 1)
    ratios = rows @ (tally.frequencies / (theta @ rows))
    assert ratios[best] > 1.001 * ratios[theta > 0].max()
    assert ik.gap(tally, theta) == pytest.approx(np.log(ratios.max()), rel=1e-9)


def test_the_gap_of_a_distribution_without_the_most_frequent_value():
    tally, theta = K3.tally_counts([60, 30, 10]), np.array([0, 0.5, 0.5])
    ratios = K3.matrix() @ (tally.frequencies / (theta @ K3.matrix()))
    assert ratios.argmax() == 0
    assert ik.gap(tally, theta) == pytest.approx(np.log(ratios[0]))
    assert np.log(ratios[0]) == pytest.approx(0.613, abs=1e-3)
    assert np.log(ratios[1:].max()) == pytest.approx(0.088, abs=1e-3)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 1.2, 1.5, 1.9, 2.0, 2.1, 3.0])
def test_no_bound_exceeds_the_error_of_who_has_no_reports(alpha):
    """The prior's own mean errs by its variance; a prior's information is finite only above 2."""
    k = 3
    variance = (1 - 1 / k) / (k * alpha + 1)
    for n in range(1, 60):
        assert van_trees_bound(k, 1.0, n=n, alpha=alpha) <= variance * (1 + 1e-12)


def test_grids_are_equal_only_if_their_cells_have_the_same_height_and_width():
    grids = [ik.Grid(2, 2, size) for size in (1.0, (1.0, 2.0), (2.0, 1.0), 2.0)]
    assert len(set(grids)) == 4
    assert ik.Grid(2, 2, (1.0, 1.0)) == grids[0]
    assert [grid == grids[0] for grid in grids] == [True, False, False, False]


def test_a_quantile_beyond_shares_that_lack_their_last_digits_is_the_largest_value():
    lacking = Marginals(np.array([[0.5, 0.4]]), np.ones(1), 0.0)
    assert lacking.quantiles("frequencies", 0.95).tolist() == [1.0]
    assert lacking.quantiles("frequencies", 0.4).tolist() == [0.0]
