"""The product of mechanisms: each attribute of a person is reported through one of its own."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ibukit._ground import arguments, limits
from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.channels import Channel, DenseChannel
from ibukit.channels.product import ProductChannel
from ibukit.domain.alphabet import MAX_LABELS, Alphabet
from ibukit.domain.labels import CountsLike, LabelsLike
from ibukit.errors import AlphabetMismatch, TooLarge
from ibukit.exact import ExactSampler, RandomBits
from ibukit.mechanisms.base import FiniteMechanism, Mechanism
from ibukit.mechanisms.exact_samplers import exact_sampler
from ibukit.tally.part import has_likelihood
from ibukit.tally.tally import Tally
from ibukit.tally.trials import refuse_trials

# Most mechanisms: numpy's arrays have at most 64 axes, and the weighted sum of products of pairs of
# rows has two for each mechanism. Of the mechanisms allowed, at most 26 have several secrets.
MAX_PARTS = 32
# Most tuples of reports for each of which a number is kept while the channel is applied: 128 MB.
MAX_LATTICE = 2**24


def product(*mechanisms: FiniteMechanism) -> FiniteMechanism:
    r"""Report several attributes of a person, each through a mechanism of its own.

    Secrets are tuples with one value of each attribute; reports are tuples with one report of each
    mechanism: :math:`P(z\mid x)=\prod_j P_j(z_j\mid x_j)`. The estimate is the joint distribution
    of all attributes. In the literature on several attributes this is called SPL, because the level
    of all reports together is split among them: `epsilon` is the sum of the mechanisms' levels, and
    is attained if their levels are. A mechanism whose level is per unit of distance contributes its
    level between the two secrets furthest apart.

    Parameters
    ----------
    *mechanisms : FiniteMechanism
        One for each attribute, with a label for each report. A mechanism with a single report says
        nothing about its attribute: only the others are then reported.

    Returns
    -------
    FiniteMechanism
        Its alphabet has all tuples in the order of `numpy.kron`, in which the last attribute
        changes fastest. The matrix of all tuples is written out only by `matrix`.

    Raises
    ------
    TypeError
        If an argument is not a mechanism, or there is none.
    ValueError
        If reports have no labels (rows of bits, real numbers) or may get lost.
    MatrixUncertain
        If a matrix was measured (`MatrixMechanism.from_trials`).
    TooLarge
        If there are more than 32 mechanisms, :math:`2^{26}` tuples of secrets, or :math:`2^{62}`
        tuples of reports.

    References
    ----------
    .. [rsfd] Arcolezi, Couchot, Al Bouna and Xiao, "Random sampling plus fake data", CIKM 2021.

    Examples
    --------
    >>> import ibukit as ik
    >>> smokes = ik.RandomizedResponse(["no", "yes"], epsilon=1.0)
    >>> region = ik.RandomizedResponse(["north", "west", "south"], epsilon=2.0)
    >>> both = ik.product(smokes, region)
    >>> both.k, both.epsilon
    (6, 3.0)
    >>> tally = both.tally([("no", "west"), ("yes", "north"), ("no", "south"), ("no", "west")])
    >>> estimate = ik.mle(tally)
    >>> estimate.distribution.reshape(2, 3).sum(axis=1).round(3)
    array([0.765, 0.235])
    >>> west = {label: 1.0 for label in both.alphabet.values.tolist() if label[1] == "west"}
    >>> lower, upper = estimate.interval(of=west, method="profile")
    >>> print(f"{lower:.2f} to {upper:.2f}")
    0.03 to 1.00
    """
    return ProductMechanism(mechanisms)


@dataclass(frozen=True)
class ProductMechanism(FiniteMechanism):
    """The mechanism that `product` returns; a report's code has those of the parts as digits."""

    parts: tuple[FiniteMechanism, ...]

    def __post_init__(self) -> None:
        """Check the parts."""
        parts = arguments.items("mechanisms", self.parts, "mechanisms, one for each attribute")
        if not parts:
            raise TypeError("product must have at least one mechanism, got none: give one or more")
        if len(parts) > MAX_PARTS:
            raise TooLarge(
                f"mechanisms must be at most {MAX_PARTS}, got {len(parts)}: leave out those with a "
                "single secret"
            )
        for place, part in enumerate(parts):
            if not isinstance(part, Mechanism):
                raise TypeError(
                    f"mechanisms must be mechanisms, got {arguments.brief(part)} at index {place}"
                )
            listed = isinstance(part, FiniteMechanism) and part._reports_are_codes
            if not listed or not has_likelihood(part):
                raise ValueError(
                    f"mechanisms must have reports with a label each, but {part} at index {place} "
                    "does not: take MatrixMechanism(mechanism.matrix(), mechanism.alphabet) if the "
                    "reports are few rows of bits, and for noise without an end a truncated kind, "
                    "with reports beyond its ends moved to the ends"
                )
            if getattr(part, "efficiency", None) is not None:
                raise ValueError(
                    f"mechanisms must not lose reports, {part} at index {place} has efficiencies: "
                    "take its with_null_report, whose last report says that nothing was seen"
                )
        refuse_trials(parts, "product", "take MatrixMechanism(matrix) if its error does not matter")
        self._keep(parts=parts)
        if math.prod(self._secrets) > MAX_LABELS or self.m > 2**62:
            raise TooLarge(
                f"mechanisms must have at most {MAX_LABELS} tuples of secrets and 2^62 of reports, "
                f"got {arguments.shown(math.prod(self._secrets))} and {arguments.shown(self.m)}: "
                "merge values, or leave one out"
            )

    def __repr__(self) -> str:
        return f"product({', '.join(map(repr, self.parts))})"

    @property
    def _secrets(self) -> tuple[int, ...]:
        return tuple(part.k for part in self.parts)

    @property
    def _reports(self) -> tuple[int, ...]:
        return tuple(part.m for part in self.parts)

    @cached_property
    def alphabet(self) -> Alphabet:  # type: ignore[override]
        """All tuples of the attributes' values."""
        return _tuples([part.alphabet for part in self.parts])

    @cached_property
    @override
    def report_alphabet(self) -> Alphabet:
        limits.require_dense("the list of tuples of reports", self.m, len(self.parts))
        return _tuples([part.report_alphabet for part in self.parts])

    @cached_property
    def epsilon(self) -> float:  # type: ignore[override]
        """The sum of the parts' levels."""
        return math.fsum(part.epsilon * _diameter(part) for part in self.parts if part.k > 1)

    @property
    @override
    def m(self) -> int:
        return math.prod(self._reports)

    @override
    def make_matrix(self) -> Floats:
        found: Floats = np.ones((1, 1))
        for part in self.parts:
            found = np.kron(found, part.matrix()).astype(np.float64)
        return found

    @override
    def channel(self, reports: NDArray[Any]) -> Channel:
        columns, places = [], []
        for part, codes in zip(self.parts, np.unravel_index(reports, self._reports), strict=True):
            distinct, at = np.unique(codes, return_inverse=True)
            columns.append(np.ascontiguousarray(part.matrix()[:, distinct]))
            places.append(at.ravel())
        shape = [each.shape[1] for each in columns]
        if math.prod(shape) <= max(MAX_LATTICE, len(reports)):
            at = np.ravel_multi_index(places, shape)
            return ProductChannel(tuple(columns), at)
        limits.require_channel("the channel of the reports seen", self.k, len(reports))
        rows = np.ones((self.k, len(reports)))
        secrets = np.unravel_index(np.arange(self.k), self._secrets)
        for each, x, z in zip(columns, secrets, places, strict=True):
            rows *= each[x][:, z]
        return DenseChannel(rows)

    @cached_property
    @override
    def _full_channel(self) -> Channel:
        # In the list of all tuples each part has all its reports, so no tuple is taken apart.
        return ProductChannel(tuple(part.matrix() for part in self.parts), self._all_reports)

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> Ints:
        return self._joined(
            part.draw(own, rng) for part, own in zip(self.parts, self._split(secrets), strict=True)
        )

    @override
    def simulate(self, secret_counts: CountsLike, rng: Generator) -> Tally:
        # Reports are drawn person by person, because a row of the matrix may be too long.
        return Mechanism.simulate(self, secret_counts, rng)

    @override
    def code_reports(self, reports: LabelsLike) -> Ints:
        rows, d = arguments.listed("reports", reports), len(self.parts)
        for index, row in enumerate(rows):
            if not isinstance(row, (tuple, list)) or len(row) != d:
                raise AlphabetMismatch(
                    f"reports must be tuples of {d} reports, one of each mechanism, got "
                    f"{arguments.brief(row)} at index {index}; places in the list of reports are "
                    "taken with codes=True"
                )
        columns = zip(*rows, strict=True) if rows else [()] * d
        return self._joined(
            part.code_reports(list(column))
            for part, column in zip(self.parts, columns, strict=True)
        )

    @override
    def label_reports(self, reports: NDArray[Any]) -> NDArray[Any]:
        digits = np.unravel_index(reports, self._reports)
        labels = [
            _listed(part.label_reports(own)) for part, own in zip(self.parts, digits, strict=True)
        ]
        return _objects(list(zip(*labels, strict=True)))

    @override
    def _solve(self, q: Floats) -> Floats:
        # The pseudo-inverse of a product is the product of the pseudo-inverses.
        tensor = q.reshape(self._reports)
        for part in self.parts:
            tensor = np.tensordot(tensor, part._right_inverse, axes=(0, 0))
        return tensor.ravel()

    def _split(self, secrets: NDArray[Any]) -> tuple[Ints, ...]:
        return np.unravel_index(secrets, self._secrets)

    def _joined(self, reports: Any) -> Ints:
        """Codes of tuples, from those of each part's reports."""
        codes: Ints = np.ravel_multi_index(tuple(reports), self._reports)
        return codes


@exact_sampler(ProductMechanism)
def _by_parts(mechanism: ProductMechanism) -> ExactSampler:
    """Draw each part by its own sampler; the levels add up."""
    samplers = [part._exact_sampler() for part in mechanism.parts]

    def draw(secrets: NDArray[Any], random_bits: RandomBits) -> NDArray[Any]:
        own = mechanism._split(secrets)
        return mechanism._joined(
            sampler.draw(each, random_bits) for sampler, each in zip(samplers, own, strict=True)
        )

    def epsilon() -> float:
        levels = [
            (sampler.epsilon(), _diameter(part))
            for sampler, part in zip(samplers, mechanism.parts, strict=True)
            if part.k > 1
        ]
        if any(math.isinf(level) for level, _ in levels):
            return math.inf
        exact = sum(Fraction(level) * Fraction(distance) for level, distance in levels)
        nearest = float(exact)
        return nearest if nearest >= exact else math.nextafter(nearest, math.inf)

    return ExactSampler(draw, epsilon)


def _diameter(part: FiniteMechanism) -> float:
    """The factor from a part's level to that of any two of its secrets."""
    return float(part.alphabet.distances().max()) if part.metric else 1.0


def _tuples(alphabets: list[Alphabet]) -> Alphabet:
    labels = [_listed(alphabet.labels_of(np.arange(len(alphabet)))) for alphabet in alphabets]
    return Alphabet(_objects(list(itertools.product(*labels))))


def _listed(labels: NDArray[Any]) -> list[Any]:
    """Return labels as a list; those of a grid are rows of two numbers, and become pairs."""
    return [tuple(each) if isinstance(each, list) else each for each in labels.tolist()]


def _objects(tuples: list[Any]) -> NDArray[Any]:
    """Return tuples as an array of objects, which does not make rows of them."""
    found = np.empty(len(tuples), dtype=object)
    found[:] = tuples
    return found
