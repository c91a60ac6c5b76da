"""The robust estimate: an honest likelihood where it should be, a proof always,
the attack found, few false alarms.
"""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

import ibukit as ik
from ibukit.attack import _adversary
from ibukit.attack._adversary import scan, with_adversaries

TOL = 1e-10
PLACES = ik.Grid(4, 5)
ISLAND = 19
HONEST = ik.normalize([5, 8, 2, 1, 0.1, 4, 9, 3, 0.2, 0.1, 6, 7, 2, 0.1, 0, 3, 4, 1, 0, 0.5])


def elastic():
    return ik.blahut_arimoto(HONEST, PLACES, beta=0.8)


def tally_of(seed, k=4, m=6, n=60):
    draw = np.random.default_rng(seed)
    mechanism = ik.MatrixMechanism(draw.dirichlet(np.ones(m), size=k))
    return mechanism.tally_counts(draw.multinomial(n, draw.dirichlet(np.ones(m))))


def naive_log_likelihood(tally, theta, share, report):
    matrix = tally.parts[0].mechanism.matrix()
    total = 0.0
    for z, count in zip(tally.parts[0].reports, tally.counts, strict=True):
        p = (1 - share) * sum(theta[x] * matrix[x, z] for x in range(len(theta))) + share * (
            z == report
        )
        total += count * np.log(p)
    return total


def naive_em(tally, report, steps=10_000):
    """Theta, gamma and their log-likelihood by plain EM with the responsibilities written out."""
    matrix = tally.parts[0].mechanism.matrix()[:, tally.parts[0].reports]
    own = (tally.parts[0].reports == report).astype(float)
    theta, share = np.full(len(matrix), 1 / len(matrix)), 0.5
    for _ in range(steps):
        joint = np.vstack([(1 - share) * theta[:, None] * matrix, share * own])
        posterior = joint / joint.sum(axis=0) @ (tally.counts / tally.n)
        share = posterior[-1]
        theta = posterior[:-1] / posterior[:-1].sum()
    return theta, share, naive_log_likelihood(tally, theta, share, report)


def test_a_maximum_that_was_missed_is_at_most_its_gap_higher(monkeypatch):
    mechanism = ik.MatrixMechanism([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3]])
    tally = mechanism.tally_counts([60, 0, 0])
    honest, (part,) = ik.mle(tally, TOL), tally.parts
    best = ik.mle(with_adversaries(part, 0), TOL)
    monkeypatch.setattr(
        _adversary, "mle", lambda tally, tol, strict: ik.ibu(tally, stop=ik.Steps(0))
    )
    found = scan(part, honest, TOL, above=50.0)
    assert found.suspect is None
    assert found.gap > 0.1, "the maximum was missed"
    # Here the gap is no more than what the likelihood can still rise.
    true = 2 * (best.log_likelihood - honest.log_likelihood)
    assert found.bound == pytest.approx(true, rel=1e-9)


def test_honest_reports_give_the_maximum_likelihood_estimate(rng):
    tally = elastic().simulate(rng.multinomial(5000, HONEST), rng)
    found = ik.attack.robust_mle(tally)
    assert (found.report, found.share, found.threshold) == (None, 0, 20)
    assert 0 <= found.likelihood_ratio <= 20
    assert found.estimate.distribution.tolist() == ik.mle(tally).distribution.tolist()
    assert "no adversaries" in repr(found)


MANY_POSSIBLE_REPORTS = {
    "rows of 40 bits": ik.UnaryEncoding(40, 0.75, 0.25),
    "seeds of one's own": ik.LocalHashing(6, 1.0, 2),
    "numbers": ik.HistogramEncoding(6, 1.0),
}


@pytest.mark.parametrize("mechanism", MANY_POSSIBLE_REPORTS.values(), ids=MANY_POSSIBLE_REPORTS)
def test_honest_reports_that_hardly_repeat_are_no_adversaries(mechanism, rng):
    """At a threshold of 20 nearly each of them is: it is so unlikely that it came once."""
    theta = rng.dirichlet(np.ones(mechanism.k))
    tally = mechanism.simulate(rng.multinomial(1000, theta), rng)
    found = ik.attack.robust_mle(tally)
    assert found.report is None
    assert found.likelihood_ratio <= found.threshold
    assert ik.attack.robust_mle(tally, 20.0, most=2).reports
    sent = ik.attack.poison_outputs(
        tally, ik.attack.robust_mle(tally, 0, most=1).report, fraction=0.02
    )
    assert ik.attack.robust_mle(sent).share == pytest.approx(0.02, abs=0.003)


@pytest.mark.parametrize(("k", "expected"), [(3, 20), (220, 20), (300, 2 * np.log(30_000))])
def test_the_threshold_bounds_false_alarms_by_one_percent_or_is_20(k, expected):
    tally = ik.RandomizedResponse(k, 4.0).tally_counts(np.full(k, 9))
    assert ik.attack.robust_mle(tally).threshold == pytest.approx(expected, rel=1e-3)


def test_possible_reports_that_cannot_be_listed_are_estimated(rng):
    """This local hashing has two reports for each of 2^63 seeds."""
    tally = MANY_POSSIBLE_REPORTS["seeds of one's own"].simulate([300] * 6, rng)
    found = ik.attack.robust_mle(tally)
    assert found.threshold == pytest.approx(2 * np.log(100 * 2.0**64), rel=0.01)


def test_a_single_far_report_hides_no_attack(rng):
    """It is as unlikely as its sender likes, and must not raise the threshold of the others."""
    mechanism = ik.LinearGeometric(ik.Line(0, 9), 1.0)
    honest = mechanism.randomize(np.repeat([2, 3, 4], 3000), rng)
    attacked = mechanism.tally(np.concatenate([honest, np.full(900, 12), [10**6]]))
    assert set(ik.attack.robust_mle(attacked).reports) == {12, 10**6}
    numbers = ik.HistogramEncoding(5, 1.0)
    rows = numbers.randomize(np.repeat([0, 1, 2], 200), rng)
    sent = np.vstack([rows, np.tile([0.0, 3, 3, 0, 0], (60, 1)), [[1000.0, 0, 0, 0, 0]]])
    assert (0.0, 3.0, 3.0, 0.0, 0.0) in ik.attack.robust_mle(numbers.tally(sent)).reports


def test_adversaries_are_found_and_left_out(rng):
    honest = elastic().simulate(rng.multinomial(20_000, HONEST), rng)
    attacked = ik.attack.poison_outputs(honest, ISLAND, 0.02)
    found = ik.attack.robust_mle(attacked)
    assert found.report == ISLAND
    assert found.likelihood_ratio > 100
    assert found.share == pytest.approx(0.02, abs=0.003)
    assert found.estimate.alphabet == PLACES
    assert found.estimate.gap <= 1e-9
    assert repr(found).startswith("RobustEstimate(a share of 0.0")
    assert found.estimate.distribution.sum() == pytest.approx(1, abs=1e-12)
    # what design depends on is as without them
    fitted = [
        found.estimate.distribution,
        ik.mle(attacked).distribution,
        ik.mle(honest).distribution,
    ]
    robust, plain, clean = (honest.forward(theta) for theta in fitted)
    assert ik.total_variation(robust / robust.sum(), clean / clean.sum()) < 0.002
    assert ik.total_variation(plain / plain.sum(), clean / clean.sum()) > 0.01
    with pytest.raises(ValueError, match="no tally"):
        found.estimate.standard_errors()


DECOYS = {"one": [0], "beside it": [18], "three": [0, 4, 14]}


@pytest.mark.parametrize("name", DECOYS)
def test_decoys_do_not_hide_the_target(name, rng):
    honest = elastic().simulate(rng.multinomial(20_000, HONEST), rng)
    attacked = ik.attack.poison_outputs(honest, ISLAND, 0.01)
    for decoy in DECOYS[name]:
        attacked = ik.attack.poison_outputs(attacked, decoy, 0.03)
    found = ik.attack.robust_mle(attacked)
    assert set(found.reports) >= {ISLAND}
    assert found.report == found.reports[0]
    assert found.share == pytest.approx(sum(found.shares), abs=1e-12)
    assert found.shares[found.reports.index(ISLAND)] == pytest.approx(0.01, abs=0.004)
    assert repr(found).count(",") == len(found.reports) - 1
    # left out together, what design depends on is as without them; left out one by one, the target
    # stays in
    fitted = [found, ik.attack.robust_mle(attacked, most=1)]
    assert len(found.reports) > 1 == len(fitted[1].reports)
    several, one = (honest.forward(each.estimate.distribution) for each in fitted)
    clean = honest.forward(ik.mle(honest).distribution)
    spots = [ik.total_variation(seen / seen.sum(), clean / clean.sum()) for seen in (several, one)]
    assert spots[0] < 0.5 * spots[1]
    assert fitted[1].reports == (found.report,)


def test_several_reports_are_one_mixture(rng):
    attacked = elastic().simulate(rng.multinomial(20_000, HONEST), rng)
    for report in (ISLAND, 0):
        attacked = ik.attack.poison_outputs(attacked, report, 0.03)
    stopped, found = (ik.attack.robust_mle(attacked, stop=stop) for stop in (ik.Steps(5), None))
    assert set(found.reports) == set(stopped.reports) == {ISLAND, 0}
    matrix, seen = attacked.matrix(), attacked.parts[0].reports
    own = np.array([seen == report for report in found.reports], dtype=float)
    theta, shares = np.full(20, 0.05), np.array(found.shares)
    for _ in range(5):  # plain EM from the certified shares
        joint = np.vstack([(1 - shares.sum()) * theta[:, None] * matrix, shares[:, None] * own])
        posterior = joint / joint.sum(axis=0) @ attacked.frequencies
        theta, shares = posterior[:20] / posterior[:20].sum(), posterior[20:]
    assert stopped.estimate.distribution == pytest.approx(theta, rel=1e-9)
    assert stopped.shares == pytest.approx(tuple(shares), rel=1e-9)
    law = (1 - found.share) * found.estimate.distribution @ matrix + np.array(found.shares) @ own
    assert found.estimate.log_likelihood == pytest.approx(attacked.counts @ np.log(law), abs=1e-6)
    assert found.estimate.log_likelihood > stopped.estimate.log_likelihood


def test_adversaries_are_never_the_half_that_is_left_out():
    # two reports where geometric noise would make many: either could be sent, but not both
    tally = ik.LinearGeometric(3, 1.0).tally([0] * 50 + [1] * 50)
    found = ik.attack.robust_mle(tally)
    assert len(found.reports) == 1
    assert found.share < 1 / 2


def test_adversaries_who_spread_are_not_found(rng):
    # the limit that the documentation states: each report stands out too little
    square = [9, 13, 14, 18, ISLAND]
    honest = elastic().simulate(rng.multinomial(10_000, HONEST), rng)
    spread, gathered = (ik.attack.poison_outputs(honest, to, 0.001) for to in (square, ISLAND))
    assert ik.attack.robust_mle(spread).report is None
    assert ik.attack.robust_mle(gathered).report == ISLAND


@pytest.mark.parametrize("seed", range(3))
def test_the_joint_maximum_agrees_with_plain_em_on_every_report(seed):
    tally = tally_of(seed)
    honest = ik.mle(tally, TOL)
    by_em = {int(report): naive_em(tally, report)[2] for report in tally.parts[0].reports}
    best = max(by_em, key=by_em.__getitem__)
    found = ik.attack.robust_mle(tally, threshold=0, tol=TOL, most=1)
    assert found.likelihood_ratio == pytest.approx(
        2 * (by_em[best] - honest.log_likelihood), abs=1e-6
    )
    if found.likelihood_ratio > 1e-3:
        assert found.report == best
        theta = found.estimate.distribution
        assert found.estimate.log_likelihood == pytest.approx(
            naive_log_likelihood(tally, theta, found.share, best), abs=1e-9
        )


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), other=st.integers(0, 10**6))
def test_the_gap_bounds_what_any_theta_and_gamma_could_gain(seed, other):
    tally = tally_of(seed)
    found = ik.attack.robust_mle(
        tally, threshold=0, stop=ik.Steps(3), most=1
    )  # far from the maximum, where the gap matters
    if found.report is None:
        return
    draw = np.random.default_rng(other)
    theta, share = draw.dirichlet(np.full(4, 0.3)), draw.random()
    gain = naive_log_likelihood(tally, theta, share, found.report) - found.estimate.log_likelihood
    assert gain <= tally.n * found.estimate.gap + 1e-9
    best = naive_em(tally, found.report, 2000)[2] - found.estimate.log_likelihood
    assert best <= tally.n * found.estimate.gap + 1e-9


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6))
@example(
    40
)  # here the report with the largest bound is not the one with the largest ratio, nor far from it
@example(46)
@example(244)
def test_no_report_that_is_passed_over_could_have_won(seed):
    tally = tally_of(seed, k=3, m=8)
    part, honest = tally.parts[0], ik.mle(tally, TOL)
    q, p = tally.frequencies, tally.forward(honest.distribution)
    ratios = np.array(
        [
            2 * (ik.mle(with_adversaries(part, y), TOL).log_likelihood - honest.log_likelihood)
            for y in range(len(part.reports))
        ]
    )
    assert (ratios <= 2 * tally.n * (honest.gap + np.maximum(q * np.log(q / p), 0)) + 1e-6).all()
    found, largest, _ = scan(part, honest, TOL)
    assert (found.likelihood_ratio if found else 0.0) == pytest.approx(
        max(ratios.max(), 0), abs=1e-6
    )
    assert largest == pytest.approx(max(ratios.max(), 0), abs=1e-6)
    # above a threshold that none reaches, a bound of all is as good, and costs fewer trials
    none, bound, _ = scan(part, honest, TOL, above=ratios.max() + 0.01)
    assert none is None
    assert ratios.max() - 1e-6 <= bound <= max(ratios.max() + 0.01, 1e-6)


def test_the_search_leaves_most_reports_untried(monkeypatch, rng):
    import ibukit.attack._adversary as module

    tried = []
    monkeypatch.setattr(
        module, "mle", lambda *given, **how: tried.append(1) or ik.mle(*given, **how)
    )
    attacked = ik.attack.poison_outputs(
        elastic().simulate(rng.multinomial(20_000, HONEST), rng), ISLAND, 0.02
    )
    scan(attacked.parts[0], ik.mle(attacked), 1e-9)
    assert len(tried) == 1


@pytest.mark.parametrize("start", [None, HONEST])
def test_early_stopping_is_em_on_theta_and_gamma(start, rng):
    start = None if start is None else 0.9 * start + 0.1 / 20
    attacked = ik.attack.poison_outputs(
        elastic().simulate(rng.multinomial(9000, HONEST), rng), ISLAND, 0.03
    )
    share = ik.attack.robust_mle(attacked).share
    found = ik.attack.robust_mle(attacked, stop=ik.Steps(7), start=start)
    assert (found.estimate.status, found.estimate.n_iter, found.report) == (
        ik.Status.STOPPED,
        7,
        ISLAND,
    )
    theta = np.full(20, 0.05) if start is None else start
    matrix, own = attacked.matrix(), attacked.parts[0].reports == ISLAND
    for _ in range(7):
        joint = np.vstack([(1 - share) * theta[:, None] * matrix, share * own])
        posterior = joint / joint.sum(axis=0) @ attacked.frequencies
        share, theta = posterior[-1], posterior[:-1] / posterior[:-1].sum()
    assert found.share == pytest.approx(share, rel=1e-9)
    assert found.estimate.distribution == pytest.approx(theta, rel=1e-9)
    assert 0 < found.estimate.gap < np.inf


def test_early_stopping_without_adversaries_is_ibu(rng):
    tally = elastic().simulate(rng.multinomial(5000, HONEST), rng)
    found = ik.attack.robust_mle(tally, stop=ik.Steps(7))
    assert (
        found.estimate.distribution.tolist()
        == ik.ibu(tally, stop=ik.Steps(7)).distribution.tolist()
    )


@pytest.mark.parametrize("n", [300, 5000])
def test_honest_people_are_hardly_ever_suspected(n, rng):
    mechanism, runs = elastic(), 100
    ratios = np.array(
        [
            ik.attack.robust_mle(
                mechanism.simulate(rng.multinomial(n, HONEST), rng), 0, 1e-7, most=1
            ).likelihood_ratio
            for _ in range(runs)
        ]
    )
    # the rule of thumb for 20 reports: at most 20 exp(-t / 2) of the runs exceed t
    for t in (8, 10, 14, 20):
        assert (
            stats.binomtest(
                int((ratios > t).sum()), runs, min(1, 20 * np.exp(-t / 2)), "greater"
            ).pvalue
            > 1e-3
        )
    # a threshold that is too low cries wolf, so the count above can fail
    assert (ratios > 2).mean() > 0.1


FOREIGN = {
    "line": (ik.LinearGeometric(10, 1.0), 14, 14),
    "line, beyond what a double holds": (ik.LinearGeometric(10, 1.0), 2000, 2000),
    "plane": (ik.PlanarGeometric(ik.Grid(3, 3), 1.0), (6, -4), (6, -4)),
    "bits": (ik.Rappor(6, 2.0), [1, 1, 1, 1, 1, 1], (1, 1, 1, 1, 1, 1)),
    "bits of more than a byte": (
        ik.OptimizedUnaryEncoding(12, 2.0),
        [1] * 11 + [0],
        (1,) * 11 + (0,),
    ),
    "sets": (
        ik.SubsetSelection(9, 0.5, size=3),
        [0, 1, 0, 0, 0, 0, 1, 0, 1],
        (0, 1, 0, 0, 0, 0, 1, 0, 1),
    ),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_every_kind_of_report_can_be_the_adversaries(name, rng):
    mechanism, report, kept = FOREIGN[name]
    counts = np.zeros(mechanism.k, dtype=int)
    counts[:4] = 1500
    attacked = ik.attack.poison_outputs(mechanism.simulate(counts, rng), report, 0.05)
    found = ik.attack.robust_mle(attacked, threshold=0, most=1)
    assert found.report == kept
    assert found.share == pytest.approx(0.05, abs=0.02)
    assert found.likelihood_ratio > 20
    (own,) = mechanism.check_reports(np.array([found.report])).tolist()
    joint = with_adversaries(attacked.parts[0], attacked.parts[0].reports.tolist().index(own))
    both = np.append((1 - found.share) * found.estimate.distribution, found.share)
    assert ik.gap(joint, both) == pytest.approx(found.estimate.gap, abs=1e-12)
    draw = rng.random(mechanism.k + 1)
    weights = rng.random(len(joint.counts))
    assert joint.forward(draw) @ weights == pytest.approx(draw @ joint.adjoint(weights), rel=1e-12)


@pytest.mark.parametrize("name", FOREIGN)
def test_what_is_found_can_be_sent_again(name, rng):
    mechanism, report, kept = FOREIGN[name]
    honest = mechanism.simulate(np.r_[[1500] * 3, np.zeros(mechanism.k - 3, dtype=int)], rng)
    attacked = ik.attack.poison_outputs(honest, report, 0.05)
    found = ik.attack.robust_mle(attacked, threshold=0, most=1)
    assert found.report == kept
    for again in (found.report, found.reports):
        (twice,) = ik.attack.poison_outputs(honest, again, 0.05).parts
        np.testing.assert_array_equal(twice.reports, attacked.parts[0].reports)
        np.testing.assert_array_equal(twice.counts, attacked.parts[0].counts)
    assert mechanism.tally([found.report]).n == 1


def test_reports_that_honest_people_could_make_as_often_are_no_attack(rng):
    # under k-RR a share of honest people with the secret 5 explains its reports as well as
    # adversaries do
    attacked = ik.RandomizedResponse(6, 3.0).simulate([1500, 1500, 1500, 0, 0, 0], rng)
    attacked = ik.attack.poison_outputs(attacked, 5, 0.05)
    found = ik.attack.robust_mle(attacked)
    assert found.report is None
    assert found.estimate.distribution[5] == pytest.approx(0.05, abs=0.02)


def test_the_likelihood_is_that_of_the_same_reports():
    # a report so far off that its probability is kept as a logarithm: both likelihoods count it in
    # full
    mechanism = ik.LinearGeometric(3, 1.0)
    tally = mechanism.tally([0] * 50 + [1] * 50 + [900] * 5)
    honest, found = ik.mle(tally), ik.attack.robust_mle(tally, most=1)
    assert honest.log_likelihood < -5 * 890
    assert found.likelihood_ratio == pytest.approx(
        2 * (found.estimate.log_likelihood - honest.log_likelihood)
    )
    assert found.share == pytest.approx(5 / 105, rel=1e-6)
    assert found.estimate.log_likelihood > -500
