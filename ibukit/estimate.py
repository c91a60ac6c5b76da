"""What every estimator returns: a distribution with the proof of how far its likelihood is from the optimum."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ibukit._validate import Floats
from ibukit.alphabet import Alphabet


class Status(Enum):
    """How an estimator ended.

    Examples
    --------
    >>> Status.CONVERGED.value
    'the stopping rule was met'
    """

    CONVERGED = "the stopping rule was met"
    MAX_ITER = "max_iter was reached before the stopping rule was met"
    CLOSED_FORM = "computed directly, there was nothing to iterate"
    OFF_SIMPLEX = "computed directly; the vector has negative entries or does not sum to 1: it is not a distribution"


@dataclass(frozen=True, eq=False)
class Estimate:
    """An estimate of the distribution of the secrets.

    Attributes
    ----------
    distribution : ndarray, shape (k,)
        Probabilities in the alphabet's order. On the simplex unless `status` is OFF_SIMPLEX (raw matrix inversion).
    log_likelihood : float
        L = sum_z counts_z log P(z), in nats, total over all reports; -inf where a seen report has probability 0.
    gap : float
        Nats per report: no distribution has a mean log-likelihood above that of this one by more than `gap`.
        It bounds the likelihood, not the distance to the truth. inf off the simplex.
    status : Status
    n_iter : int
        Steps taken; 0 for closed forms.
    method : str
        Estimator and stopping rule.
    alphabet : Alphabet

    Examples
    --------
    >>> import ibukit as ik
    >>> tally = ik.RandomizedResponse(3, epsilon=1.0).tally_counts([50, 30, 20])
    >>> estimate = ik.ibu(tally)
    >>> estimate.gap <= 1e-6
    True
    """

    distribution: Floats
    log_likelihood: float
    gap: float
    status: Status
    n_iter: int
    method: str
    alphabet: Alphabet

    def __repr__(self) -> str:
        return (
            f"Estimate({self.method}: k={len(self.distribution)}, n_iter={self.n_iter}, "
            f"gap={self.gap:.3g} nats/report, log_likelihood={self.log_likelihood:.6g}, {self.status.name})"
        )
