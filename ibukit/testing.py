"""Checks of the public contract of mechanisms, channels and tallies.

The package's own tests use these checks, and authors of other mechanisms can use them, too.
"""

from __future__ import annotations

import math
import pickle

import numpy as np
from numpy.random import Generator
from scipy import stats

from ibukit import privacy
from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit.channels import Channel
from ibukit.mechanisms import FiniteMechanism, Mechanism
from ibukit.tally.tally import Tally

# Absolute tolerance for sums of rows, and relative tolerance for products with the matrix.
ROW_SUM_TOLERANCE = 1e-12
RELATIVE_TOLERANCE = 1e-10
# Probability that the test of a correct sampler fails.
FALSE_ALARM = 1e-9
# Seed of the default generator, so that a check gives the same result each time.
SEED = 1


def check_mechanism(
    mechanism: Mechanism, *, rng: Generator | None = None, n: int = 50_000, attained: bool = False
) -> None:
    r"""Check that a mechanism keeps the contract.

    If it does not, raise AssertionError with the finding. If the reports can be listed, the
    following is checked: the matrix has non-negative entries and rows that sum to 1 within 1e-12,
    `forward` and `adjoint` are :math:`\theta M` and M w (relative error 1e-10), and the tight
    privacy level does not exceed `epsilon`. For every mechanism it is checked that `draw` and
    `simulate` follow the probabilities that the tally states, by chi-square tests on up to eight
    secrets, and that `check_tally` holds for what they draw. Reports with expected counts below
    five are pooled. So for noise that spreads n reports over more than n / 5 values, this
    says little about the sampler: increase n.

    Parameters
    ----------
    mechanism : Mechanism
    rng : numpy.random.Generator, optional
        By default a generator with a fixed seed, so that the result is the same each time.
    n : int
        Number of reports that are drawn for each secret tested.
    attained : bool
        Whether to demand also that the tight privacy level equals `epsilon` (relative error 1e-9).

    Raises
    ------
    AssertionError
        If the mechanism breaks the contract; the message names what is wrong. A correct mechanism
        fails with a probability below 2e-8.

    Examples
    --------
    >>> import ibukit as ik
    >>> check_mechanism(ik.RandomizedResponse(4, epsilon=1.0), attained=True)
    """
    rng = _fixed() if rng is None else arguments.generator(rng)
    assert mechanism.k == len(mechanism.alphabet), (
        f"k is {mechanism.k}, the alphabet has {len(mechanism.alphabet)}"
    )
    if isinstance(mechanism, FiniteMechanism):
        _check_matrix(mechanism)
        _check_operators(mechanism, rng)
        _check_epsilon(mechanism, attained)
    # Eight secrets, evenly spread over the alphabet, stand for all.
    for secret in np.unique(np.linspace(0, mechanism.k - 1, 8).astype(int)):
        reports = mechanism.draw(np.full(n, secret), rng)
        _check_sample(mechanism.tally(reports, codes=True), int(secret), "draw")
        # `simulate` has a sampler of its own in many mechanisms, so it is tested separately.
        counts = np.zeros(mechanism.k, dtype=np.int64)
        counts[secret] = n
        simulated = mechanism.simulate(counts, rng)
        assert simulated.n == n, f"simulate drew {simulated.n} reports for {n} users"
        _check_sample(simulated, int(secret), "simulate")
    check_tally(mechanism.simulate(np.full(mechanism.k, 100), rng), rng=rng)


def _check_matrix(mechanism: FiniteMechanism) -> None:
    """Check that the shape is (k, m), no entry is negative, and rows sum to 1 within 1e-12."""
    matrix = mechanism.matrix()
    assert matrix.shape == (mechanism.k, mechanism.m), f"matrix has shape {matrix.shape}"
    assert (matrix >= 0).all(), f"matrix has a negative or NaN entry, the least is {matrix.min()}"
    # The message names the worst row.
    off = np.abs(matrix.sum(axis=1) - 1)
    assert off.max() <= ROW_SUM_TOLERANCE, (
        f"row {off.argmax()} sums to {matrix[off.argmax()].sum():.15g}, not to 1"
    )


def _check_operators(mechanism: FiniteMechanism, rng: Generator) -> None:
    """Check `forward` and `adjoint` against products with the dense matrix."""
    matrix = mechanism.matrix()
    for _ in range(3):
        theta, w = rng.dirichlet(np.ones(mechanism.k)), rng.random(mechanism.m)
        _close(mechanism.forward(theta), theta @ matrix, "forward(theta) is not theta M")
        _close(mechanism.adjoint(w), matrix @ w, "adjoint(w) is not M w")


def _check_epsilon(mechanism: FiniteMechanism, attained: bool) -> None:
    """Check that the tight epsilon of the matrix does not exceed the claimed one.

    With `attained` both must be equal.
    """
    epsilon_of = privacy.epsilon_metric if mechanism.metric else privacy.epsilon_ldp
    tight = epsilon_of(mechanism)
    claim = mechanism.epsilon
    assert tight <= claim * (1 + 1e-9), f"epsilon is claimed to be {claim}, the matrix has {tight}"
    if attained:
        assert tight >= claim * (1 - 1e-9), (
            f"epsilon is claimed to be {claim}, the matrix attains only {tight}"
        )


def _check_sample(tally: Tally, secret: int, sampler: str) -> None:
    """Test the reports of one secret against the probabilities that the tally states."""
    # Expected counts if everybody has this secret.
    only = np.zeros(tally.k)
    only[secret] = 1
    expected = tally.n * tally.forward(only) * np.exp(tally.log_scale)
    cells = expected >= 5
    # All reports with expectations below 5 are pooled, with those that were not seen at all.
    rest_expected = max(tally.n - expected[cells].sum(), 0.0)
    rest_seen = tally.n - tally.counts[cells].sum()
    # Pearson's chi-square statistic over the frequent reports, with the rest as one more cell.
    statistic = ((tally.counts[cells] - expected[cells]) ** 2 / expected[cells]).sum()
    freedom = int(cells.sum())
    if rest_expected >= 5:
        statistic += (rest_seen - rest_expected) ** 2 / rest_expected
    else:
        freedom -= 1
        # A rest that is too small for chi-square is tested by the Poisson distribution.
        p_rest = stats.poisson.sf(rest_seen - 1, max(rest_expected, 1e-9 * tally.n))
        assert p_rest > FALSE_ALARM, (
            f"{sampler} drew {rest_seen} reports from secret {secret} where "
            f"{rest_expected:.3g} were expected"
        )
    p_value = stats.chi2.sf(statistic, freedom) if freedom > 0 else 1.0
    assert p_value > FALSE_ALARM, (
        f"{sampler} does not follow the stated probabilities for secret {secret}: "
        f"chi-square {statistic:.1f} on {freedom} degrees of freedom"
    )


def check_channel(channel: Channel) -> None:
    r"""Check a channel's shortcuts against its forward and adjoint.

    If they disagree, raise AssertionError with the finding. What is checked: `forward` and
    `adjoint` are linear and each other's transpose; `rows`, `gram` and `add_gram` give the matrix M
    of the map `forward`, and :math:`M\,\operatorname{diag} (w)\,M^{\top}`; `score` agrees with one
    forward and one adjoint, and `certificate` with `score`; `scaled` and `unit_columns` multiply
    each report by a factor; `take` keeps the reports asked for, `with_one_more` adds a row; and
    after pickling the channel is the same (relative error 1e-10 throughout).

    Parameters
    ----------
    channel : Channel
        A channel with at most a few thousand entries, because all of them are compared.

    Raises
    ------
    AssertionError
        If a check fails; the message names what is wrong.

    Examples
    --------
    >>> import ibukit as ik
    >>> check_channel(ik.LinearGeometric(10, epsilon=1.0).tally([0, 3, 12]).operator)
    """
    k, s = channel.k, channel.size
    theta, w = _positive(k), _positive(s)
    # `forward` defines the channel; every shortcut is compared with this matrix.
    matrix = np.array([channel.forward(row) for row in np.eye(k)])
    assert matrix.shape == (k, s), f"forward has shape {matrix.shape[1:]}, there are {s} reports"
    _close(channel.forward(theta), theta @ matrix, "forward is not linear")
    _close(channel.adjoint(w), matrix @ w, "adjoint is not the transpose of forward")
    score, p = channel.score(theta, w), theta @ matrix
    _close(
        np.array(score.log_likelihood),
        w @ np.log(p),
        "score's log-likelihood is not that of forward",
    )
    _close(score.g, matrix @ (w / p), "score's g is not adjoint(counts / p)")
    _close(np.array(score.least), p.min(), "score's least is not the least of forward")
    certificate = channel.certificate(theta, w, score.g.max() / math.e)
    _close(
        np.array(certificate),
        np.array([score.log_likelihood, 1.0]),
        "certificate is not what score says",
    )
    # Some secrets in order.
    secrets = np.arange(k)[::2]
    _close(channel.rows(secrets), matrix[secrets], "rows are not what forward says")
    gram = (matrix * w) @ matrix.T
    _close(channel.gram(w), gram, "gram is not M diag(w) M^T")
    # add_gram works in place and fills the lower triangle only.
    total = np.ones((k, k), order="F")
    channel.add_gram(total, w)
    _close(
        np.tril(total),
        np.tril(gram + 1),
        "add_gram does not add the lower triangle of M diag(w) M^T",
    )
    _close(
        channel.scaled(w).forward(theta),
        channel.forward(theta) * w,
        "scaled is not forward times the factors",
    )
    largest = matrix.max(axis=0)
    _close(
        channel.unit_columns().forward(theta),
        channel.forward(theta) / largest,
        "unit_columns are no unit columns",
    )
    # Reports are taken by a slice and by indices in reverse order.
    for places in (slice(s // 3, None), np.arange(s)[::-2]):
        _close(
            channel.take(places).forward(theta),
            channel.forward(theta)[places],
            "take keeps other reports",
        )
    joined = channel.with_one_more(w[::-1])
    expected = np.vstack([matrix, w[::-1]])
    _close(
        np.array([joined.forward(row) for row in np.eye(k + 1)]),
        expected,
        "with_one_more adds another row",
    )
    _close(
        pickle.loads(pickle.dumps(channel)).forward(theta),
        channel.forward(theta),
        "pickling changes it",
    )


def _positive(n: int) -> Floats:
    """Return numbers between 1 and 2 without a pattern."""
    # Fractional parts of multiples of the golden ratio are evenly spread.
    return 1 + (np.arange(1, n + 1) * (np.sqrt(5) - 1) / 2) % 1


def check_tally(tally: Tally, *, rng: Generator | None = None) -> None:
    """Check that a tally keeps the contract.

    If it does not, raise AssertionError with the finding. What is checked: counts are at least 1
    and add up; `forward` is linear, positive for full-support distributions and at most 1;
    `adjoint` is its transpose (dot test, relative error 1e-10); the tally survives pickling; adding
    it to itself doubles the counts.

    Parameters
    ----------
    tally : Tally
    rng : numpy.random.Generator, optional
        By default a generator with a fixed seed, so that the result is the same each time.

    Raises
    ------
    AssertionError
        If a check fails; the message names what is wrong.

    Examples
    --------
    >>> import numpy as np, ibukit as ik
    >>> check_tally(ik.Rappor(8, epsilon=1.0).simulate([10] * 8, np.random.default_rng(1)))
    """
    rng = _fixed() if rng is None else arguments.generator(rng)
    assert tally.counts.min() >= 1, "counts must be of reports that were seen"
    assert tally.n == tally.counts.sum(), f"n is {tally.n}, the counts sum to {tally.counts.sum()}"
    for _ in range(3):
        theta, other, w = (
            rng.dirichlet(np.ones(tally.k)),
            rng.dirichlet(np.ones(tally.k)),
            rng.random(len(tally.counts)),
        )
        p = tally.forward(theta)
        assert (p > 0).all(), (
            f"forward of a full-support distribution has {(p <= 0).sum()} entries that are not "
            "positive"
        )
        assert (p <= 1 + RELATIVE_TOLERANCE).all(), f"forward gives a probability of {p.max()}"
        _close(
            tally.forward(theta + 2 * other), p + 2 * tally.forward(other), "forward is not linear"
        )
        _close(
            np.array([w @ p]),
            np.array([tally.adjoint(w) @ theta]),
            "adjoint is not the transpose of forward",
        )
    # Tallies travel to worker processes.
    again = pickle.loads(pickle.dumps(tally))
    _close(again.forward(theta), p, "forward changed by pickling")
    assert np.array_equal((tally + tally).counts, 2 * tally.counts), (
        "adding a tally to itself does not double the counts"
    )


def _close(got: Floats, expected: Floats, message: str) -> None:
    """Assert that arrays agree within the relative tolerance."""
    error = np.abs(got - expected) / np.maximum(np.abs(expected), np.finfo(float).tiny)
    assert error.max() <= RELATIVE_TOLERANCE, (
        f"{message}: relative error {error.max():.3g} at index {error.argmax()}"
    )


def _fixed() -> Generator:
    """Return the default generator, always in the same state."""
    return np.random.Generator(np.random.PCG64(SEED))
