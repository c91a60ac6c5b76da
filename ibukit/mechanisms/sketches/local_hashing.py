"""Local hashing (BLH, OLH)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ibukit._ground import arguments
from ibukit.domain.alphabet import Alphabet, AlphabetLike
from ibukit.mechanisms.sketches.hashed_reports import HashedReports


@dataclass(frozen=True)
class LocalHashing(HashedReports):
    r"""Local hashing (BLH, OLH): k-RR on the buckets of a hash function of one's own.

    A user draws a seed, uniformly from :math:`0 \ldots 2^{63} - 1`, hashes the secret to a bucket
    0..g-1 by the hash function of this seed, and reports the seed and a bucket: the secret's own
    with probability :math:`p=\frac{e^\varepsilon}{e^\varepsilon+g-1}`, each other bucket with
    probability :math:`1 / (e^{\varepsilon} + g - 1)`. So :math:`P(\mathrm{seed},y\mid x)` is
    :math:`2^{-63}` times p if H(x) = y, else times :math:`1/(e^\varepsilon+g-1)`. Given the hash
    function, whatever it is, the likelihood is exact. These probabilities satisfy epsilon-local
    differential privacy, tightly unless every hash function sends all secrets to one bucket.
    Reports are simulated, see `Mechanism`.

    The hash family is ibukit's own (`hash_family`): 64-bit integer arithmetic, the same on every
    machine. With g = 2 this is BLH, with the default g it is OLH. Seeds of another program's hash
    functions look the same, and reports with them are not refused, but the estimate is then
    meaningless, which `Estimate.fit_test` may notice. For such reports, tell `UnaryEncoding` which
    secrets each of them supports, as the page *Protocols of other libraries* of the book shows.

    Parameters
    ----------
    alphabet : Alphabet, sequence of labels or int
        The k secrets. Reports are rows (seed, bucket), integers.
    epsilon : float
        Nats, for all pairs of secrets.
    g : int, optional
        The number of buckets, at least 2; with `balanced` at most k. By default the whole number
        with the least :math:`(e^{\varepsilon} - 1 + g)^{2} / (g - 1)`, to which the variance of the
        published estimate is proportional for a rare secret. It is next to
        :math:`e^{\varepsilon} + 1`, but not always the whole number nearest to it. With `balanced`
        the default, too, is at most k.
    balanced : bool
        Whether every bucket gets k / g secrets, up to rounding, by a shuffle of the secrets in
        place of a hash. If g divides k and all shuffles are equally likely, this has the law of
        `SubsetSelection` with sets of k / g secrets, and a smaller error than a hash. To make a
        report with a shuffle takes k steps instead of one.

    Raises
    ------
    ValueError
        If `epsilon` is not a number from 5e-15 to about :math:`36.7 + \log (g - 1)` (where the
        probability of reporting the secret's bucket rounds to 1 in doubles), if `g` is not a whole
        number from 2 to :math:`2^{31} - 1` (with `balanced`, to k), or if there are fewer than two
        secrets.
    TypeError
        If `balanced` is not True or False.

    Notes
    -----
    `inv` gives the published unbiased estimator, the mean of ([H(x) = y] - c) / (p - c) over the
    reports, with c the probability that a report supports a secret that is not its user's: 1/g. It
    is unbiased on average over the seeds that users draw. It does not invert the matrix of the
    seeds that were in fact drawn, so it also has the noise of their hash functions, and does not
    sum to 1. (With `balanced`, c is slightly smaller.) The likelihood knows which hash functions
    were drawn.

    References
    ----------
    .. [bassily2015] Bassily and Smith, "Local, private, efficient protocols for succinct
       histograms", STOC 2015: the case g = 2.
    .. [oue] Wang, Blocki, Li and Jha, "Locally differentially private protocols for frequency
       estimation", USENIX Security 2017, section 4.4.

    Examples
    --------
    >>> import numpy as np, ibukit as ik
    >>> mechanism = LocalHashing(100, epsilon=1.0)
    >>> mechanism.g, round(mechanism.truth, 4)
    (4, 0.4754)
    >>> reports = mechanism.randomize([7, 7, 7], np.random.default_rng(1))
    >>> reports[:, 1].tolist(), mechanism.hash(reports[:, 0], [7, 7, 7]).tolist()
    ([2, 0, 0], [2, 1, 0])
    >>> estimate = ik.mle(mechanism.simulate([5000] * 2 + [0] * 98, np.random.default_rng(1)))
    >>> estimate.distribution[:4].round(2)
    array([0.48, 0.48, 0.  , 0.  ])
    """

    alphabet: Alphabet
    epsilon: float
    g: int = None  # type: ignore[assignment]  # until it is made
    balanced: bool = False

    # For type checkers: the arguments, before they are converted to the fields.
    if TYPE_CHECKING:

        def __init__(
            self,
            alphabet: AlphabetLike,
            epsilon: float,
            g: int | None = None,
            balanced: bool = False,
        ) -> None: ...

    def __post_init__(self) -> None:
        """Check and convert the fields."""
        self._keep(balanced=arguments.flag("balanced", self.balanced))
        super().__post_init__()
