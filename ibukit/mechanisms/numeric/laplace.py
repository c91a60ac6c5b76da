"""Laplace noise on a line, rounded to the nearest element."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.domain.alphabet import Line
from ibukit.exact import ExactSampler
from ibukit.mechanisms.base import FiniteMechanism
from ibukit.mechanisms.epsilon_range import check_epsilon
from ibukit.mechanisms.exact_samplers import exact_sampler
from ibukit.mechanisms.numeric.line_alphabet import as_line
from ibukit.mechanisms.points.lattice import LineLattice
from ibukit.mechanisms.points.linear_laplace_points import LinearLaplacePoints
from ibukit.mechanisms.truth import truthful_at_infinity
from ibukit.privacy import closed_forms
from ibukit.tally.tally import Tally


@truthful_at_infinity
@dataclass(frozen=True)
class LinearLaplace(FiniteMechanism):
    r"""Laplace noise on a line, rounded to the nearest element.

    Noise of density :math:`\frac{\varepsilon}{2}\,e^{-\varepsilon|t|}` is added to the secret, then
    the nearest element of the line is reported. The noise is drawn as a real number and rounded
    afterwards; a value beyond an end is reported as that end. So, exactly, P(z given x) = the
    noise's mass on [z - 1/2 - x, z + 1/2 - x], where for the two ends the outer limit is at
    infinity. These probabilities satisfy epsilon-d-privacy with :math:`d(x,y)=|x-y|` (rounding is
    post-processing), tightly for :math:`k \ge 3`. Reports are simulated, see `Mechanism`: noise
    beyond :math:`36.74 / \varepsilon` is never drawn. `release` draws geometric noise on a lattice
    of steps of at most :math:`2^{-20} / \varepsilon` and reports the nearest element: the
    probability of each report is that of the matrix times a factor between :math:`e^{-\eta}` and
    :math:`e^{\eta}` with :math:`\eta = 2^{-20} < 10^{-6}`.

    Parameters
    ----------
    alphabet : Line or int
        The k secrets, at least two, which are also the reports (as codes 0..k-1).
    epsilon : float
        Nats per unit of the line. inf releases the truth: the matrix is the identity.

    Raises
    ------
    ValueError
        If `epsilon` is neither inf nor a number from 5e-15 to 72.0 (above it, the noise that numpy
        draws never leaves the cell of the secret), or if there are fewer than two secrets.
    TypeError
        If `alphabet` is not a Line.

    References
    ----------
    .. [dwork] Dwork, McSherry, Nissim and Smith, "Calibrating noise to sensitivity", TCC 2006.
    .. [consistency] ElSalamouny and Palamidessi, arXiv:2508.09980, section 7.3 (which does not say
       how it discretises).

    Examples
    --------
    >>> LinearLaplace(3, epsilon=1.0).matrix().round(4)
    array([[0.6967, 0.1917, 0.1116],
           [0.3033, 0.3935, 0.3033],
           [0.1116, 0.1917, 0.6967]])

    Reports may also be the real numbers that people released by
    ``mechanism.of_points.release(secrets)``:

    >>> LinearLaplace(3, epsilon=1.0).tally_points([0.3, 1.9, -2.5]).n
    3
    """

    alphabet: Line
    epsilon: float
    metric = True

    # For type checkers: the arguments, before they are converted to the fields.
    if TYPE_CHECKING:

        def __init__(self, alphabet: Line | int, epsilon: float) -> None: ...

    def __post_init__(self) -> None:
        """Check and convert the fields."""
        self._keep(alphabet=as_line(self.alphabet))
        # A secret at an end is given away unless the noise leaves its cell on the inner side.
        self._keep(
            epsilon=check_epsilon(self.epsilon, lambda eps: math.exp(-eps / 2) / 2, truthful=True)
        )
        arguments.whole("number of secrets", len(self.alphabet), 2)

    @override
    def make_matrix(self) -> Floats:
        d = self.alphabet.distances()
        # Masses of cells, each in the form that keeps its relative accuracy: no differences of
        # distribution functions. `edge` is the distance at which the cell begins; the secret's own
        # cell does not use it.
        edge = np.maximum(d - 0.5, 0)
        inside = np.where(
            d == 0, -np.expm1(-self.epsilon / 2), np.exp(-self.epsilon * edge) * self._half_cell
        )
        for end in (0, -1):
            beyond = 0.5 * np.exp(-self.epsilon * edge[:, end])
            inside[:, end] = np.where(d[:, end] == 0, 1 - 0.5 * np.exp(-self.epsilon / 2), beyond)
        return inside

    @property
    def _half_cell(self) -> float:
        # The mass of a cell whose near edge is at distance t is e^(-eps t) times this.
        return float(-np.expm1(-self.epsilon) / 2)

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> Ints:
        noisy = secrets + rng.laplace(scale=1 / self.epsilon, size=len(secrets))
        return np.clip(np.rint(noisy), 0, self.k - 1).astype(np.int64)

    @property
    def of_points(self) -> LinearLaplacePoints:
        """The mechanism of the noise before it is rounded; reports are real numbers.

        A ValueError says that there is none if `epsilon` is inf.
        """
        return LinearLaplacePoints(self.alphabet, self.epsilon)

    def tally_points(self, values: ArrayLike, bins: int | None = None) -> Tally:
        r"""Count reports that are real numbers, as people released them.

        Such numbers say more than the nearest elements of the line. The likelihood of a number z is
        the density of the noise, :math:`(\varepsilon / 2)\,e^{-\varepsilon\,|z - x|}`, for each
        element x of the line, and takes O(1) per report. Numbers beyond an end of the line are
        taken as they are. If there are more than :math:`2^{22} / k` numbers, those close together
        are merged into their mean; `ibukit.mechanisms.points.merging_loss` bounds what this may
        cost, in nats per report. It costs next to nothing, because the density is smooth between
        two neighbours on the line.

        Parameters
        ----------
        values : array_like, shape (n,)
            In the line's units.
        bins : int, optional
            Merge numbers in this many parts of each unit of the line, however few numbers there
            are.

        Returns
        -------
        Tally
            The tally of a `LinearLaplacePoints`, which `of_points` also returns; its
            ``parts[0].reports`` are rows (number, bound on what merging may cost).

        Raises
        ------
        AlphabetMismatch
            If a number is missing or infinite.
        ValueError
            If there are no numbers, their shape is not (n,), `bins` is not a whole number above 0,
            or `epsilon` is inf.
        """
        return self.of_points.counted(self.of_points.check_reports(values), bins=bins)


@exact_sampler(LinearLaplace)
def _linear_laplace_sampler(mechanism: LinearLaplace) -> ExactSampler:
    return ExactSampler(
        LineLattice(mechanism.alphabet, mechanism.epsilon).codes, lambda: mechanism.epsilon
    )


def _log_matrix(mechanism: LinearLaplace) -> Floats:
    """The logarithms of `make_matrix`; masses of far cells may be below the smallest double."""
    falls = -mechanism.epsilon * np.maximum(mechanism.alphabet.distances() - 0.5, 0)
    logs = falls + math.log(mechanism._half_cell)
    logs[:, [0, -1]] = falls[:, [0, -1]] - math.log(2)
    np.fill_diagonal(logs, np.log(np.diag(mechanism.matrix())))
    return np.asarray(logs)


closed_forms.register(LinearLaplace, closed_forms.ClosedForms(log_matrix=_log_matrix))
