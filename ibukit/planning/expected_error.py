"""Mean squared errors of whole distributions, for maximum likelihood and matrix inversion."""

from __future__ import annotations

from collections.abc import Callable

from ibukit._ground.arguments import Floats
from ibukit.domain.distributions import uniform
from ibukit.errors import NotInvertible
from ibukit.mechanisms import Mechanism
from ibukit.mechanisms.categorical.independent_bits import is_bits
from ibukit.planning.dense import DenseVariances, check_matrix_size
from ibukit.planning.variance_models import as_listed, model_of
from ibukit.theory import asymptotic_mse, inv_squared_error, inv_squared_error_range


def mean_square(estimator: str, mechanism: Mechanism, theta: Floats | None) -> float:
    """Return n E ||estimate - theta||_2^2, for mle in the limit of large n.

    Without theta it is an upper bound for all distributions.
    """
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
        # If theta has zeros, the limit from inside the simplex.
        return (
            asymptotic_mse(listed, theta)
            if theta.all()
            else float(model_of(mechanism).variances(theta, None).sum())
        )
    # The error is concave in theta and symmetric in the secrets, so it is largest at the uniform
    # distribution.
    if is_bits(listed):
        return asymptotic_mse(listed, uniform(listed.k))
    if listed.m == listed.k:
        try:
            return inv_squared_error_range(listed)[1]
        except NotInvertible:
            # `DenseVariances` raises the error that names the secrets that are not identified.
            pass
    check_matrix_size(listed.k, listed.m)
    return DenseVariances(listed.matrix()).worst_sum()


MEAN_SQUARES: dict[str, Callable[[Mechanism, Floats | None], float]] = {
    "mle": _of_mle,
    "inv": _of_inv,
}
