"""Mechanisms at epsilon = inf: they release the truth, so that their matrix is the identity."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats, Ints
from ibukit.channels import ResponseChannel
from ibukit.domain.labels import CountsLike, aligned_counts
from ibukit.exact import ExactSampler
from ibukit.mechanisms.base import FiniteMechanism
from ibukit.tally.tally import Tally

Kind = TypeVar("Kind", bound=type)


def truthful_at_infinity(kind: Kind) -> Kind:
    """Let a class whose reports are secrets release the secrets themselves at epsilon = inf.

    The formulas of the class need a finite epsilon. So each method that uses them first looks
    whether epsilon is infinite, and then gives its limit instead.
    """
    for name, limit in _LIMITS.items():
        method = getattr(kind, name)
        # Methods that the base class derives from the matrix need no limit of their own.
        if name in ("make_matrix", "_exact_sampler") or method is not getattr(
            FiniteMechanism, name
        ):
            setattr(kind, name, _with_limit(method, limit))
            documented = (vars(base)[name].__doc__ for base in kind.__mro__ if name in vars(base))
            getattr(kind, name).__doc__ = next(filter(None, documented), None)
    return kind


def _with_limit(method: Callable[..., Any], limit: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def chosen(self: Any, *args: Any, **named: Any) -> Any:
        return (limit if self.epsilon == math.inf else method)(self, *args, **named)

    return chosen


def _make_matrix(mechanism: FiniteMechanism) -> Floats:
    return np.eye(mechanism.k)


def _channel(mechanism: FiniteMechanism, reports: NDArray[Any]) -> ResponseChannel:
    return ResponseChannel(mechanism.k, reports, 1.0, 0.0)


def _draw(mechanism: FiniteMechanism, secrets: NDArray[Any], rng: Generator) -> Ints:
    return np.array(secrets, dtype=np.int64)


def _simulate(mechanism: FiniteMechanism, secret_counts: CountsLike, rng: Generator) -> Tally:
    arguments.generator(rng)
    return mechanism.tally_counts(
        aligned_counts("secret_counts", secret_counts, mechanism.alphabet)
    )


def _solve(mechanism: FiniteMechanism, q: Floats) -> Floats:
    return q


def _exact_sampler(mechanism: FiniteMechanism) -> ExactSampler:
    return ExactSampler(lambda secrets, random_bits: np.array(secrets), lambda: math.inf)


_LIMITS: dict[str, Callable[..., Any]] = {
    "make_matrix": _make_matrix,
    "channel": _channel,
    "draw": _draw,
    "simulate": _simulate,
    "_solve": _solve,
    "_exact_sampler": _exact_sampler,
}
