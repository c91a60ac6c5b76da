"""The mechanism in which all constraints of metric privacy are tight."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse.csgraph import shortest_path

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.threads import one_thread
from ibukit._ground.typing import override
from ibukit.channels import plane
from ibukit.domain.alphabet import Alphabet, AlphabetLike, Line, as_alphabet
from ibukit.domain.grid import Grid
from ibukit.errors import Infeasible
from ibukit.mechanisms.epsilon_range import check_metric_epsilon
from ibukit.mechanisms.spatial._grid_mechanism import GridMechanism
from ibukit.mechanisms.truth import truthful_at_infinity
from ibukit.privacy import closed_forms

# An entry of mu this far below zero, relative to the largest, may be rounding, and counts as 0.
MU_TOLERANCE = 1e-13
# Relative violation of the triangle inequality that is accepted: distances may be of single
# precision.
TRIANGLE_TOLERANCE = 1e-6
# Relative error of the smallest feasible epsilon that an error message names.
THRESHOLD_TOLERANCE = 1e-6


@truthful_at_infinity
@dataclass(frozen=True)
class TightConstraints(GridMechanism):
    r"""The mechanism with all constraints of metric privacy tight.

    .. math::

        P(z\mid x)=\mu_z\,e^{-\varepsilon d(x,z)},\qquad\sum_z e^{-\varepsilon
        d(x,z)}\mu_z=1\text{ for every }x.

    The mechanism exists if no :math:`\mu_{z}` is negative. These probabilities satisfy
    epsilon-d-privacy, by the triangle inequality:
    :math:`M_{xz}/M_{yz}=e^{\varepsilon(d(y,z)-d(x,z))}`. For report z the bound is attained between
    z and every other secret (and wherever z is at an end of a shortest path). So for each pair of
    secrets it is attained when one of the two is the report, unless that one is never reported
    :math:`(\mu_{z} = 0)`. Reports are simulated, see `Mechanism`.

    On a line it always exists and is `TruncatedGeometric`; for the discrete metric it is k-RR. In
    the plane it exists at every epsilon that is large enough.

    Parameters
    ----------
    alphabet : Alphabet, sequence of labels or int
        The k secrets, which are also the reports; its distances are d, and must satisfy the
        triangle inequality.
    epsilon : float
        Nats per unit of distance. inf releases the truth: the matrix is the identity.

    Raises
    ------
    Infeasible
        If some :math:`\mu_{z}` is negative. The message says at which larger epsilon the mechanism
        exists: at a threshold that is found by bisection, and certainly at an epsilon for which
        :math:`\exp (-\varepsilon\,d(x, y))` summed over all :math:`y \ne x` is at most 1/2 for each
        x.
    ValueError
        If `epsilon` is not a number above 0, or so small that :math:`\varepsilon` times the largest
        distance is below 5e-15, or so large that :math:`e^{-\varepsilon\,d}` is at most
        :math:`2^{-53}` for the least distance d of two secrets; or if the distances are not a
        metric.

    Notes
    -----
    For metrics in general the levels at which the mechanism exists need not be an interval: it may
    exist at some epsilon, not at a larger one, and then again at a still larger one. If
    :math:`R = \exp (-\varepsilon\,d) - I` has row sums of at most :math:`r \le 1 / 2`, then
    :math:`\mu = 1 - R\,\mu` gives :math:`\mu \ge 1 - r / (1 - r) \ge 0`.

    References
    ----------
    .. [chatzikokolakis2017] K. Chatzikokolakis, E. ElSalamouny and C. Palamidessi, "Efficient
       utility improvement for location privacy", PoPETs 2017(4).

    Examples
    --------
    >>> import ibukit as ik
    >>> ik.TightConstraints(ik.Grid(2, 2), epsilon=1.0).matrix().round(4)
    array([[0.5053, 0.1859, 0.1859, 0.1229],
           [0.1859, 0.5053, 0.1229, 0.1859],
           [0.1859, 0.1229, 0.5053, 0.1859],
           [0.1229, 0.1859, 0.1859, 0.5053]])
    >>> try:
    ...     ik.TightConstraints(ik.Grid(4, 4), epsilon=0.3)
    ... except ik.errors.Infeasible as error:
    ...     print(str(error).partition(" on")[0])
    epsilon=0.3 is too small for the tight-constraints mechanism
    """

    alphabet: Alphabet
    epsilon: float
    metric = True

    # For type checkers: the arguments, before they are converted to the fields.
    if TYPE_CHECKING:

        def __init__(self, alphabet: AlphabetLike, epsilon: float) -> None: ...

    def __post_init__(self) -> None:
        """Check and convert the fields; Infeasible if the mechanism does not exist."""
        self._keep(alphabet=as_alphabet(self.alphabet))
        self._keep(epsilon=check_metric_epsilon(self.epsilon, self.alphabet, rate=1.0))
        if not isinstance(self.alphabet, (Line, Grid)):
            check_metric(self.alphabet.distances())
        mu = _weights(self.alphabet, self.epsilon)
        if mu is None:
            raise Infeasible(_infeasible_message(self.alphabet.distances(), self.epsilon))
        self._keep(_mu=arguments.frozen(mu))

    @cached_property
    def _mu(self) -> Floats:
        # A pickle carries the parameters only, so after unpickling the weights are solved for
        # again.
        mu = _weights(self.alphabet, self.epsilon)
        assert mu is not None  # the mechanism existed when it was made
        return mu

    @override
    def make_matrix(self) -> Floats:
        return self._mu * np.exp(-self.epsilon * self.alphabet.distances())

    @override
    def _plane_channel(self, reports: Ints) -> plane.PlaneChannel:
        grid = self.alphabet
        assert isinstance(grid, Grid)  # called for grids only
        return plane.column_scaled(grid, self.epsilon, reports, self._mu[reports])


def _log_matrix(mechanism: TightConstraints) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(mechanism._mu) - mechanism.epsilon * mechanism.alphabet.distances()


def _epsilon(mechanism: TightConstraints, metric: bool) -> float | None:
    if not isinstance(mechanism.alphabet, Line):
        return None
    return mechanism.epsilon if metric else mechanism.epsilon * (mechanism.k - 1)


closed_forms.register(
    TightConstraints, closed_forms.ClosedForms(epsilon=_epsilon, log_matrix=_log_matrix)
)


def check_metric(distances: Floats) -> None:
    """Raise ValueError if a path through other secrets is shorter than a distance."""
    shortest = shortest_path(distances)
    if (shortest < distances * (1 - TRIANGLE_TOLERANCE)).any():
        x, y = np.argwhere(shortest < distances * (1 - TRIANGLE_TOLERANCE))[0]
        raise ValueError(
            "alphabet must have distances that satisfy the triangle inequality, got "
            f"{distances[x, y]:.9g} between {x} and {y}, where the way through others is "
            f"{shortest[x, y]:.9g}; take the lengths of shortest ways, by "
            "scipy.sparse.csgraph.shortest_path(distances)"
        )


def _weights(alphabet: Alphabet, epsilon: float) -> Floats | None:
    """The weights mu, shape (k,), or None if one is negative."""
    if not isinstance(alphabet, Line):
        return _solve(alphabet.distances(), epsilon)
    # On a line the equations have a closed form, that of `TruncatedGeometric`. They are not solved
    # numerically: at a tiny epsilon the matrix exp(-eps d) rounds to a matrix of ones.
    mu = np.full(len(alphabet), np.tanh(epsilon / 2))
    mu[[0, -1]] = 1 / (1 + np.exp(-epsilon))
    return mu if len(mu) > 1 else np.ones(1)


def _solve(distances: Floats, epsilon: float) -> Floats | None:
    """The weights mu, shape (k,), by solving the equations; None also if these are singular."""
    if epsilon == np.inf:
        return np.ones(len(distances))
    kernel = np.exp(-epsilon * distances)
    try:
        with one_thread():
            mu = np.linalg.solve(kernel, np.ones(len(kernel)))
    except np.linalg.LinAlgError:
        return None
    if not mu.min() >= -MU_TOLERANCE * mu.max():
        return None
    mu = np.maximum(mu, 0)
    return mu if (np.abs(kernel @ mu - 1) < arguments.SUM_TOLERANCE).all() else None


def _infeasible_message(distances: Floats, epsilon: float) -> str:
    """Error message that names an epsilon at which the mechanism exists."""
    # If epsilon is at least `certain`, the other entries of each row of exp(-eps d) sum to at most
    # 1/2, which is enough (see the Notes of the class). Below it there may be many thresholds, of
    # which bisection finds one.
    k = len(distances)
    certain = float(np.log(2 * (k - 1)) / distances[~np.eye(k, dtype=bool)].min())
    low, high = epsilon, max(certain, epsilon)
    while high > low * (1 + THRESHOLD_TOLERANCE):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if _solve(distances, middle) is None else (low, middle)
    return (
        f"epsilon={epsilon:g} is too small for the tight-constraints mechanism on these {k} "
        "secrets: some report would have a negative probability. It exists at "
        f"epsilon={high:.6g} (by bisection) and at every epsilon from {certain:.6g} on; the "
        "exponential and the planar geometric mechanism exist at any"
    )
