"""The square wave mechanism:
its window, its exact matrix for points and bins, its sampler at the ends.
"""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import ibukit as ik
from ibukit._ground.threads import one_thread
from ibukit.mechanisms.numeric.square_wave import half_width
from ibukit.testing import check_mechanism

EPSILONS = [0.1, 1.0, 4.0, 12.0]
LINE = ik.Line(3, 9)
NUMBERS = [
    ik.SquareWave(LINE, 1.0),
    ik.Piecewise(LINE, 1.0),
    ik.Duchi(LINE, 1.0),
    ik.HybridMechanism(LINE, 1.0),
    ik.Staircase(LINE, 1.0),
]


@pytest.mark.parametrize(
    "eps", ["1e-12", "1e-9", "1e-6", "0.01", "0.49", "0.5", "0.51", "2", "8", "30"]
)
def test_the_half_width_has_all_digits(eps):
    with localcontext() as context:
        context.prec = 80
        e, power = Decimal(eps), Decimal(eps).exp()
        exact = float((e * power - power + 1) / (2 * power * (power - 1 - e)))
    assert half_width(float(eps)) == pytest.approx(exact, rel=1e-14)


def test_the_formula_as_it_stands_is_seen_to_fail_at_a_small_level():
    e, power = 1e-9, np.exp(1e-9)
    with np.errstate(all="ignore"):
        naive = (e * power - power + 1) / (2 * power * (power - 1 - e))
    assert not abs(naive - half_width(e)) < 0.1


@pytest.mark.parametrize("k", [2, 5, 64])
@pytest.mark.parametrize("eps", EPSILONS)
def test_points_have_few_classes_and_the_level_is_tight(k, eps):
    mechanism = ik.SquareWave(k, eps)
    matrix = mechanism.matrix()
    assert mechanism.m <= 2 * k + 1
    assert abs(matrix.sum(axis=1) - 1).max() < 3e-15
    assert ik.privacy.epsilon_ldp(mechanism) == pytest.approx(eps, rel=1e-12)
    # the density of each class at each secret, from the definition
    v, at = (np.arange(k)[:, None] + 0.5) / k, (mechanism.breaks[1:] + mechanism.breaks[:-1]) / 2
    p = 1 / (2 * mechanism.b + np.exp(-eps))
    density = np.where(abs(at - v) < mechanism.b, p, p * np.exp(-eps))
    widths = np.diff(mechanism.breaks)
    np.testing.assert_allclose(matrix, density * widths, rtol=1e-6 if eps > 9 else 1e-9)


def exact_matrix(k, m, b, eps, uniform):
    """By fractions: lengths, or areas as second differences of squares,
    which lose no digits there.
    """
    b = Fraction(b)
    less = Fraction(float(np.exp(-eps)))
    p = 1 / (2 * b + less)
    q = p * less
    matrix = np.empty((k, m))
    ends = [-b + i * (1 + 2 * b) / m for i in range(m + 1)]
    for x in range(k):
        v = (Fraction(x, k), Fraction(x + 1, k)) if uniform else (Fraction(2 * x + 1, 2 * k),) * 2
        for z in range(m):
            u = ends[z], ends[z + 1]
            if uniform:

                def area(c, u=u, v=v):
                    def half(t):
                        return max(t, 0) ** 2 / 2

                    return (
                        half(c - u[0] + v[1])
                        - half(c - u[1] + v[1])
                        - half(c - u[0] + v[0])
                        + half(c - u[1] + v[0])
                    )

                inside = (area(b) - area(-b)) * k
            else:
                inside = max(min(u[1], v[0] + b) - max(u[0], v[0] - b), 0)
            matrix[x, z] = q * (u[1] - u[0]) + (p - q) * inside
    return matrix


@pytest.mark.parametrize("kind", ["centre", "uniform"])
@pytest.mark.parametrize(
    ("k", "m", "eps"), [(6, 6, 1.0), (5, 12, 4.0), (8, 3, 0.2), (4, 9, 12.0), (3, 5, 1e-9)]
)
def test_bins_have_exact_masses(kind, k, m, eps):
    mechanism = ik.SquareWave(k, eps, kind, m)
    np.testing.assert_allclose(
        mechanism.matrix(), exact_matrix(k, m, mechanism.b, eps, kind == "uniform"), rtol=1e-11
    )
    assert ik.privacy.epsilon_ldp(mechanism) <= eps * (1 + 1e-6)


@pytest.mark.parametrize(("k", "m"), [(1024, 1024), (1024, 512), (256, 512)])
def test_rows_of_many_bins_sum_to_1(k, m):
    for kind in ("centre", "uniform"):
        matrix = ik.SquareWave(k, 1.0, kind, m).matrix()
        assert abs(matrix.sum(axis=1) - 1).max() < 2e-15
        assert matrix.min() > 0


def test_secrets_in_their_bins_are_reported_by_bins():
    assert ik.SquareWave(7, 1.0, "uniform").report_bins == 7
    assert ik.SquareWave(7, 1.0).report_bins is None


@pytest.mark.parametrize(
    "mechanism",
    [
        ik.SquareWave(LINE, 0.3),
        ik.SquareWave(LINE, 3.0),
        ik.SquareWave(4, 22.0),
        ik.SquareWave(LINE, 1.0, "centre", 40),
        ik.SquareWave(LINE, 2.0, "uniform", 25),
        ik.DiscreteSquareWave(LINE, 1.0),
        ik.DiscreteSquareWave(3, 6.0),
    ],
    ids=lambda mechanism: f"{mechanism}"[:60],
)
def test_the_contract_also_at_both_ends(mechanism, rng):
    attained = getattr(mechanism, "report_bins", None) is None
    check_mechanism(mechanism, rng=rng, n=20_000, attained=attained)


class TossedAside(ik.SquareWave):
    """What a program in use draws:
    outside the window, left or right by a coin, whatever the secret.
    """

    def draw(self, secrets, rng):
        n = len(secrets)
        v = (secrets + 0.5) / self.k
        near = v - self.b + 2 * self.b * rng.random(n)
        left = rng.random(n) < 0.5
        far = np.where(left, -self.b + v * rng.random(n), v + self.b + (1 - v) * rng.random(n))
        return np.where(rng.random(n) < self.inside, near, far)


def test_a_sampler_that_is_wrong_at_the_ends_is_noticed(rng):
    with pytest.raises(
        AssertionError, match="does not follow the stated probabilities for secret 0"
    ):
        check_mechanism(TossedAside(40, 1.0), rng=rng, n=20_000)


@pytest.mark.parametrize("eps", [1e-3, 1.0, 20.0])
def test_ends_of_intervals_belong_to_the_interval_above(eps):
    mechanism = ik.SquareWave(20, eps)
    np.testing.assert_array_equal(
        mechanism.check_reports(mechanism.breaks[:-1]), np.arange(mechanism.m)
    )
    every = np.arange(mechanism.m)
    np.testing.assert_array_equal(mechanism.check_reports(mechanism.restore_reports(every)), every)


def test_reports_outside_the_line_are_kept_and_others_refused(rng):
    mechanism = ik.SquareWave(LINE, 1.0)
    reports = mechanism.randomize([3] * 4000 + [9] * 4000, rng)
    assert -mechanism.b <= reports.min() < 0
    assert 1 < reports.max() <= 1 + mechanism.b
    assert mechanism.tally(reports).n == 8000
    # the last digits of another program's b
    assert mechanism.tally([-mechanism.b - 1e-12, 1 + mechanism.b + 1e-12]).counts.tolist() == [
        1,
        1,
    ]
    with pytest.raises(
        ik.errors.AlphabetMismatch,
        match=r"reports must be numbers from -0\.25.* got 2\.0 at index 1",
    ):
        mechanism.tally([0.5, 2.0])
    with pytest.raises(
        ik.errors.AlphabetMismatch, match="must be finite numbers, got nan at index 0"
    ):
        mechanism.tally([np.nan, 0.5])
    with pytest.raises(ValueError, match=r"must have shape \(n,\)"):
        mechanism.tally([[0.5]])
    with pytest.raises(ValueError, match="epsilon must be at most"):
        ik.SquareWave(5, 35.0)


@pytest.mark.parametrize(("k", "eps"), [(6, 1.0), (40, 0.5), (5, 3.0)])
def test_the_discrete_kind_follows_its_formula(k, eps):
    mechanism = ik.DiscreteSquareWave(ik.Line(1, k), eps)
    b = int(half_width(eps) * k)
    assert (mechanism.b, mechanism.m) == (b, k + 2 * b)
    q = 1 / ((2 * b + 1) * np.exp(eps) + k - 1)
    z, x = np.arange(1 - b, k + b + 1), np.arange(1, k + 1)[:, None]
    np.testing.assert_allclose(
        mechanism.matrix(), np.where(abs(z - x) <= b, q * np.exp(eps), q), rtol=1e-13
    )
    assert ik.privacy.epsilon_ldp(mechanism) == pytest.approx(eps, rel=1e-12)


def test_without_neighbours_it_is_randomized_response():
    mechanism = ik.DiscreteSquareWave(3, 6.0)
    assert mechanism.b == 0
    np.testing.assert_allclose(
        mechanism.matrix(), ik.RandomizedResponse(3, 6.0).matrix(), rtol=1e-13
    )
    assert ik.DiscreteSquareWave(4, 1.0).b == 1  # where it is not


def test_binned_reports_are_nearly_singular_and_smoothing_copes(rng):
    with one_thread():
        s = np.linalg.svd(ik.SquareWave(256, 1.0, "uniform").matrix(), compute_uv=False)
        assert s[0] / s[-1] > 1e12
        assert np.linalg.cond(ik.DiscreteSquareWave(256, 1.0).matrix()) == pytest.approx(589, abs=1)
        assert np.linalg.cond(ik.SquareWave(256, 1.0).matrix()) == pytest.approx(555, abs=1)
    k, n = 64, 50_000
    mechanism = ik.SquareWave(k, 1.0, "uniform")
    v = (np.arange(k) + 0.5) / k
    theta = ik.normalize(v**4 * (1 - v))
    tally = mechanism.simulate(rng.multinomial(n, theta), rng)
    comb, smooth = ik.mle(tally), ik.smooth(tally)
    assert (comb.distribution > 1e-9).sum() < k / 2
    assert (smooth.distribution > 0).all()
    assert (
        ik.total_variation(smooth.distribution, theta)
        < ik.total_variation(comb.distribution, theta) / 2
    )


@pytest.mark.parametrize("mechanism", NUMBERS, ids=lambda mechanism: type(mechanism).__name__)
def test_real_reports_come_from_tables(mechanism, rng, tmp_path):
    reports = mechanism.randomize([3, 4, 9] * 40, rng)
    direct = mechanism.tally(reports)
    frame = pd.DataFrame({"report": reports})
    frame.to_csv(tmp_path / "reports.csv", index=False)
    for table in (frame, tmp_path / "reports.csv"):
        tally = ik.Tally.from_table(table, mechanism)
        np.testing.assert_array_equal(tally.parts[0].reports, direct.parts[0].reports)
        np.testing.assert_array_equal(tally.counts, direct.counts)
    # whole numbers are numbers, too, and no codes
    if not isinstance(mechanism, ik.Duchi):
        whole = pd.DataFrame({"report": [0, 1]})
        expected = mechanism.check_reports([0.0, 1.0])
        np.testing.assert_array_equal(
            ik.Tally.from_table(whole, mechanism).parts[0].reports, np.unique(expected)
        )
