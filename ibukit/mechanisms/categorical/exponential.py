"""The exponential mechanism on any alphabet with a distance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logsumexp

from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.channels import plane
from ibukit.domain.alphabet import Alphabet, AlphabetLike, Line, as_alphabet
from ibukit.domain.grid import Grid
from ibukit.mechanisms.categorical.tight_constraints import check_metric
from ibukit.mechanisms.epsilon_range import check_metric_epsilon
from ibukit.mechanisms.spatial._grid_mechanism import GridMechanism
from ibukit.mechanisms.truth import truthful_at_infinity
from ibukit.privacy import closed_forms

# Largest number of secrets whose distances are checked, which takes k^3 operations: milliseconds.
MAX_CHECKED = 64


@truthful_at_infinity
@dataclass(frozen=True)
class Exponential(GridMechanism):
    r"""The exponential mechanism: near reports are more probable than far ones.

    .. math::

        P(z\mid x)=\frac{e^{-\varepsilon d(x,z)/2}}{N_x},\qquad N_x=\sum_z e^{-\varepsilon
        d(x,z)/2}.

    These probabilities satisfy epsilon-d-privacy; the tight level is in general lower, because
    :math:`N_{x}` varies less than the bound allows. Reports are simulated, see `Mechanism`. Where
    :math:`N_{x}` varies, as it does near a border, the secret nearer to a report need not be the
    likelier one: see the chapter on mechanisms.

    Parameters
    ----------
    alphabet : Alphabet, sequence of labels or int
        The k secrets, which are also the reports; its distances are d, which must satisfy the
        triangle inequality. This is not checked for more than 64 secrets:
        `privacy.epsilon_metric` gives the tight level.
    epsilon : float
        Nats per unit of distance. inf releases the truth: the matrix is the identity.

    Raises
    ------
    ValueError
        If `epsilon` is not a number above 0, or so small that :math:`\varepsilon` times the
        largest distance is below 5e-15, or so large that :math:`e^{-\varepsilon\,d / 2}` is at most
        :math:`2^{-53}` for the least distance d of two secrets; or if the distances of at most 64
        secrets are not a metric.

    References
    ----------
    .. [mcsherry] McSherry and Talwar, "Mechanism design via differential privacy", FOCS 2007.
    .. [consistency] ElSalamouny and Palamidessi, arXiv:2508.09980, section 7.3.

    Examples
    --------
    >>> mechanism = Exponential(3, epsilon=1.0)
    >>> mechanism.matrix().round(4)
    array([[0.5065, 0.3072, 0.1863],
           [0.2741, 0.4519, 0.2741],
           [0.1863, 0.3072, 0.5065]])
    """

    alphabet: Alphabet
    epsilon: float
    metric = True

    # For type checkers: the arguments, before they are converted to the fields.
    if TYPE_CHECKING:

        def __init__(self, alphabet: AlphabetLike, epsilon: float) -> None: ...

    def __post_init__(self) -> None:
        """Check and convert the fields."""
        self._keep(alphabet=as_alphabet(self.alphabet))
        self._keep(epsilon=check_metric_epsilon(self.epsilon, self.alphabet, rate=0.5))
        # Lines and grids have true distances.
        if self.k <= MAX_CHECKED and not isinstance(self.alphabet, (Line, Grid)):
            check_metric(self.alphabet.distances())

    @override
    def make_matrix(self) -> Floats:
        # Half of epsilon for the weight, half for the normaliser N_x, which depends on x as well.
        weights = np.exp(-self.epsilon / 2 * self.alphabet.distances())
        return weights / weights.sum(axis=1, keepdims=True)

    @override
    def _plane_channel(self, reports: Ints) -> plane.PlaneChannel:
        grid = self.alphabet
        assert isinstance(grid, Grid)  # called for grids only
        return plane.row_normalised(grid, self.epsilon / 2, reports)


def _log_matrix(mechanism: Exponential) -> Floats:
    # Far reports have probabilities below the smallest double; their logarithms are exact.
    logs = -mechanism.epsilon / 2 * mechanism.alphabet.distances()
    return np.asarray(logs - logsumexp(logs, axis=1, keepdims=True))


def _epsilon(mechanism: Exponential, metric: bool) -> float | None:
    if not isinstance(mechanism.alphabet, Line):
        return None
    k, half = mechanism.k, mechanism.epsilon / 2
    # The log-ratio of x and x' at the report x is eps / 2 |x - x'| + log N_x' - log N_x, and
    # log N_x changes by less than eps / 2 a step. So the two ends, which have the same N_x, are
    # the pair with the largest ratio.
    if not metric:
        return half * (k - 1)
    # N_x is the sum of two geometric series, one to each side of x. It is enough to look at pairs
    # of neighbours, because both distances and log-ratios add up along a line.
    one_side = -np.expm1(-half * np.arange(1, k + 1))
    sums = one_side + one_side[::-1] + np.expm1(-half)
    return half + float(np.abs(np.diff(np.log(sums))).max(initial=0.0))


closed_forms.register(
    Exponential, closed_forms.ClosedForms(epsilon=_epsilon, log_matrix=_log_matrix)
)
