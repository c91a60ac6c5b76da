"""The mean squared error of a whole distribution: of the maximum likelihood estimate, and of matrix inversion."""

from __future__ import annotations

from collections.abc import Callable

from ibukit._ground.arguments import Floats
from ibukit.domain.distributions import uniform
from ibukit.errors import NotInvertible
from ibukit.mechanisms import Mechanism
from ibukit.mechanisms.categorical.independent_bits import is_bits
from ibukit.planning.dense import Dense, refuse_if_too_large
from ibukit.planning.variance_models import as_listed, model_of
from ibukit.theory import asymptotic_mse, inv_squared_error, inv_squared_error_range


def mean_square(estimator: str, mechanism: Mechanism, theta: Floats | None) -> float:
    """The limit of n E ||estimate - theta||_2^2, or its value at every n; without theta the largest, from above."""
    return MEAN_SQUARES[estimator](mechanism, theta)


def _of_inv(mechanism: Mechanism, theta: Floats | None) -> float:
    return (
        inv_squared_error_range(mechanism)[1]
        if theta is None
        else inv_squared_error(mechanism, theta)
    )


def _of_mle(mechanism: Mechanism, theta: Floats | None) -> float:
    listed = as_listed(mechanism)
    if theta is not None:
        # where it has zeros, the limit from inside
        return (
            asymptotic_mse(listed, theta)
            if theta.all()
            else float(model_of(mechanism).near(theta, None).sum())
        )
    if is_bits(listed):  # concave, and the same for every order of the secrets
        return asymptotic_mse(listed, uniform(listed.k))
    if listed.m == listed.k:
        try:
            return inv_squared_error_range(listed)[1]
        except NotInvertible:
            pass  # what is not identified is named below
    refuse_if_too_large(listed.k, listed.m)
    return Dense(listed.matrix()).worst_sum()


MEAN_SQUARES: dict[str, Callable[[Mechanism, Floats | None], float]] = {
    "mle": _of_mle,
    "inv": _of_inv,
}
