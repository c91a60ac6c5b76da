"""Summed histogram encoding: Laplace noise on each entry of a one-hot row."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit._ground.typing import override
from ibukit.channels import RowMajorChannel
from ibukit.domain.alphabet import Alphabet, AlphabetLike
from ibukit.domain.report_kind import ReportKind
from ibukit.errors import AlphabetMismatch, TooLarge
from ibukit.mechanisms.base import Mechanism
from ibukit.mechanisms.epsilon_range import check_epsilon

# Entries k x n of the densities that a channel keeps: a gigabyte.
MAX_DENSITIES = 2**27


@dataclass(frozen=True)
class HistogramEncoding(Mechanism):
    r"""Summed histogram encoding (SHE): a one among zeros, with Laplace noise.

    The report is :math:`z=e_x` plus noise in each of k coordinates; the noise has the density
    :math:`(\varepsilon / 4)\,e^{-\varepsilon\,|t| / 2}`. The density of the report given x is
    :math:`(\varepsilon/4)^k\,e^{-(\varepsilon/2)\sum_i|z_i|}\,e^{\varepsilon(c_x-1/2)}`, where
    :math:`c_x` is :math:`z_x` moved into [0, 1]. These probabilities satisfy epsilon-local
    differential privacy, tightly. Reports are simulated, see `Mechanism`.

    Reports are continuous: `Tally.forward` gives densities, up to the factor
    :math:`e^{\mathrm{log\_scale}}`, which does not depend on the secret. The exact likelihood needs
    much less data than the published mean: as k grows, n times the variance of an estimate goes to
    :math:`3 / (2\,e^{\varepsilon / 2} + e^{-\varepsilon} - 3)` instead of
    :math:`8 / \varepsilon^{2}`.

    Parameters
    ----------
    alphabet : Alphabet, sequence of labels or int
        The k secrets; reports are rows of k finite numbers, shape (n, k).
    epsilon : float
        Nats, for all pairs of secrets.

    Raises
    ------
    ValueError
        If `epsilon` is not a number from 5e-15 to 72.08 (where the probability of noise that hides
        the secret's 1 falls below :math:`2^{-53}`), or if there are fewer than two secrets.

    Notes
    -----
    `inv` gives the published estimate, the mean of z. It is unbiased, and n times its variance is
    :math:`8/\varepsilon^2` + :math:`\theta_x` (1 - :math:`\theta_x`). A tally keeps the matrix of
    densities, which takes 8 k n bytes.

    References
    ----------
    .. [wang2017] Wang, Blocki, Li and Jha, "Locally differentially private protocols for frequency
       estimation", USENIX Security 2017, section 4.2.

    Examples
    --------
    >>> import numpy as np
    >>> mechanism = HistogramEncoding(3, epsilon=2.0)
    >>> mechanism.randomize([0, 2], np.random.default_rng(1)).shape
    (2, 3)
    >>> tally = mechanism.tally([[0.9, -0.3, 0.4]])
    >>> (tally.matrix() / tally.matrix().max()).round(3).ravel()
    array([1.   , 0.165, 0.368])
    """

    alphabet: Alphabet
    epsilon: float

    report_kind: ClassVar[ReportKind] = ReportKind.ROWS
    every_report_is_possible: ClassVar[bool] = True

    # For type checkers: the arguments, before they are converted to the fields.
    if TYPE_CHECKING:

        def __init__(self, alphabet: AlphabetLike, epsilon: float) -> None: ...

    def __post_init__(self) -> None:
        """Check and convert the fields."""
        super().__post_init__()
        arguments.whole("number of secrets", self.k, 2)
        self._keep(epsilon=check_epsilon(self.epsilon, lambda eps: math.exp(-eps / 2) / 2))

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> Floats:
        reports = rng.laplace(scale=2 / self.epsilon, size=(len(secrets), self.k))
        reports[np.arange(len(secrets)), secrets] += 1
        return reports

    @override
    def check_reports(self, reports: ArrayLike) -> Floats:
        values = arguments.whole_array("reports", reports)
        try:
            # No copy: the rows may be gigabytes, and a tally sorts them into one of its own.
            rows = arguments.numbers("reports", values)
        except ValueError:
            raise ValueError(
                f"reports must be rows of numbers, got an array of type {values.dtype}"
            ) from None
        if rows.ndim != 2 or rows.shape[1] != self.k:
            raise AlphabetMismatch(
                f"reports must be rows of {self.k} numbers, shape (n, {self.k}), got {rows.shape}"
            )
        bad = ~np.isfinite(rows)
        if bad.any():
            row, column = np.argwhere(bad)[0]
            raise ValueError(
                f"reports must be finite, got {rows[row, column]} in row {row}, column {column}"
            )
        return rows

    @override
    def channel(self, reports: NDArray[Any]) -> RowMajorChannel:
        if reports.size > MAX_DENSITIES:
            raise TooLarge(
                f"the densities of {len(reports)} reports for {self.k} secrets are too many, they "
                f"may have at most {MAX_DENSITIES} entries; tally fewer, drawn from them at random"
            )
        # The density given x differs from that of noise alone only by |z_x| - |z_x - 1|, which is 2
        # clip(z_x, 0, 1) - 1. The channel has e^(eps (clip - 1)), which is at most 1; the rest is
        # in `log_scale`.
        numbers = np.clip(reports, 0.0, 1.0) - 1
        numbers *= self.epsilon
        return RowMajorChannel(np.exp(numbers, out=numbers))

    @override
    def log_scale(self, reports: NDArray[Any]) -> Floats:
        distances = np.abs(reports).sum(axis=1)
        return self.k * math.log(self.epsilon / 4) + self.epsilon / 2 * (1 - distances)

    @override
    def invert(self, reports: NDArray[Any], frequencies: Floats) -> Floats:
        # Noise has mean 0, so the mean of the reports is an estimate of the one-hot rows' mean.
        return frequencies @ reports
