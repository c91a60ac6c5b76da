"""The named errors: each says which argument, which value, and what to do."""

from __future__ import annotations

from typing import Any


class IbukitError(Exception):
    """What every named error of the package is."""


class InvalidDistribution(IbukitError, ValueError):
    """A vector or a matrix row that should be a probability distribution is not one."""


class AlphabetMismatch(IbukitError, ValueError):
    """Two objects speak of different alphabets, or a value is not in the alphabet."""


class MechanismMismatch(IbukitError, ValueError):
    """Reports came through another mechanism than the one they are handed in for."""


class ImpossibleReport(IbukitError, ValueError):
    """A report was seen that no secret can produce.

    Mechanism and data do not belong together.
    """


class NotInvertible(IbukitError, ValueError):
    """Matrix inversion was asked of a channel whose rows are (numerically) dependent."""


class Infeasible(IbukitError, ValueError):
    """No mechanism keeps the bound that was asked for.

    What is possible stands in the message.
    """


class NoExactSampler(IbukitError, ValueError):
    """A mechanism has no sampler without roundings.

    The message says what to release through instead.
    """


class TooLarge(IbukitError, ValueError):
    """An exact computation would take too many terms or too much memory.

    The message says how many, and what to use instead.
    """


class MissingExtra(IbukitError, ImportError):
    """A package of one of the extras is not installed.

    The message has the command that installs it.
    """


class DataChanged(IbukitError, RuntimeError):
    """Data is not what it was.

    A data file or a file of results does not have the recorded SHA-256, another has written to it,
    or reports are not what they were when they were tallied.
    """


class ForeignFile(IbukitError, ValueError):
    """A file of results belongs to another question, or is no such file."""


class ConvergenceError(IbukitError, RuntimeError):
    """An iteration missed its goal: a tolerance, or a stopping rule.

    `estimate` is the best that was found, which is what the function returns with ``strict=False``:
    an estimate, or whatever else it makes.

    Examples
    --------
    >>> import ibukit as ik
    >>> tally = ik.RandomizedResponse(3, epsilon=1.0).tally_counts([5, 3, 2])
    >>> try:
    ...     ik.ibu(tally, stop=ik.Gap(1e-12), max_iter=2, strict=True)
    ... except ik.ConvergenceError as error:
    ...     print(error.estimate.n_iter)
    2
    """

    def __init__(self, message: str, estimate: Any):
        super().__init__(message)
        self.estimate = estimate  # mostly an `Estimate`, which knows of errors and not they of it

    def __reduce__(self) -> tuple[type[ConvergenceError], tuple[str, Any]]:
        # an exception with a second argument does not pickle by itself, and workers must be able to
        # raise it
        return type(self), (str(self), self.estimate)
