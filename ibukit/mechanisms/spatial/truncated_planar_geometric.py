"""Geometric noise on cells, moved to the nearest cell of the grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.random import Generator
from numpy.typing import NDArray

from ibukit import exact
from ibukit._ground.arguments import Floats, Ints
from ibukit._ground.typing import override
from ibukit.channels import offset_masses
from ibukit.domain.grid import Grid
from ibukit.mechanisms.exact_samplers import exact_sampler
from ibukit.mechanisms.spatial._grid_mechanism import (
    RemappedNoise,
    check_grid_epsilon,
    nearest_cell,
)
from ibukit.mechanisms.spatial.planar_geometric import PlanarGeometric
from ibukit.mechanisms.truth import truthful_at_infinity


@truthful_at_infinity
@dataclass(frozen=True)
class TruncatedPlanarGeometric(RemappedNoise):
    r"""Planar geometric noise, moved to the nearest cell of the grid.

    P(z given x) = sum over the cells w of the infinite grid whose nearest cell is z of
    :math:`\lambda\,\exp (-\varepsilon\,d(x, w))`: a border cell gets all that lies beyond it. These
    probabilities satisfy epsilon-geo-indistinguishability (remapping is post-processing). Reports
    are simulated, see `Mechanism`. Towards a border, the secret nearer to the report need not be
    the likelier one.

    Parameters
    ----------
    alphabet : Grid
        The k secrets, which are also the reports (as codes 0..k-1).
    epsilon : float
        Nats per unit of the grid, e.g. per km. inf releases the truth: the matrix is the identity.

    Raises
    ------
    ValueError
        If `epsilon` is not a number above 0, is so small that the noise spreads over millions of
        cells, or is so large that the noise leaves the secret's cell with a probability of at most
        :math:`2^{-53}`.
    TypeError
        If `alphabet` is not a Grid.

    References
    ----------
    .. [consistency] ElSalamouny and Palamidessi, arXiv:2508.09980, section 7.2.

    Examples
    --------
    >>> mechanism = TruncatedPlanarGeometric(Grid(20, 14, cell_size=0.5), epsilon=1.0)
    >>> mechanism.matrix().shape, mechanism.matrix()[0, 0].round(4)
    ((280, 280), np.float64(0.3408))
    """

    alphabet: Grid
    epsilon: float
    metric = True

    def __post_init__(self) -> None:
        """Check and convert the fields."""
        escape = offset_masses.geometric_escape
        self._keep(epsilon=check_grid_epsilon(self.alphabet, self.epsilon, escape))

    @property
    @override
    def _table(self) -> Floats:
        return offset_masses.geometric_table(self.alphabet, self.epsilon)

    @override
    def draw(self, secrets: NDArray[Any], rng: Generator) -> Ints:
        # Remapping is post-processing: the noise is that of the infinite grid.
        return nearest_cell(
            self.alphabet, PlanarGeometric(self.alphabet, self.epsilon).draw(secrets, rng)
        )


@exact_sampler(TruncatedPlanarGeometric)
def _truncated_planar_geometric_sampler(mechanism: TruncatedPlanarGeometric) -> exact.ExactSampler:
    noisy = PlanarGeometric(mechanism.alphabet, mechanism.epsilon)._noisy
    return exact.ExactSampler(
        lambda secrets, random_bits: nearest_cell(mechanism.alphabet, noisy(secrets, random_bits)),
        lambda: mechanism.epsilon,
    )
