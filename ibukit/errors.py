"""Named errors; each message names the argument, the value, and what to do."""

from __future__ import annotations

from typing import Any


class IbukitError(Exception):
    """Base class of all ibukit errors."""


class InvalidDistribution(IbukitError, ValueError):
    """A vector or a matrix row that should be a probability distribution is not one."""


class AlphabetMismatch(IbukitError, ValueError):
    """Two objects have different alphabets, or a value is not in the alphabet."""


class MechanismMismatch(IbukitError, ValueError):
    """Reports came through a mechanism other than the given one."""


class ImpossibleReport(IbukitError, ValueError):
    """A report was seen that no secret can produce.

    Mechanism and data do not belong together.
    """


class NotInvertible(IbukitError, ValueError):
    """Matrix inversion was asked for, but the rows are (numerically) dependent."""


class Infeasible(IbukitError, ValueError):
    """No mechanism keeps the requested bound.

    The message states the bounds that are possible.
    """


class LikelihoodUnknown(IbukitError, ValueError):
    """The likelihood was asked for, but the tally does not have it.

    The message says what to take instead.
    """


class MechanismUnknown(IbukitError, ValueError):
    """The law of all possible reports was asked for, but a tally has only likelihoods.

    The message says what such a tally is good for.
    """


class NotCertified(IbukitError, ValueError):
    """A certificate was asked for, but the estimate has none.

    The message says what it lacks.
    """


class MatrixUncertain(IbukitError, ValueError):
    """A matrix was measured, and a computation would take it for the true one.

    The message says which methods take the trials into account.
    """


class WeightsRefused(IbukitError, ValueError):
    """A method that needs counts of independent reports was given weights.

    The message says which methods take weights.
    """


class UselessDesign(IbukitError, ValueError):
    """The parameters of a survey design make its reports independent of the secret.

    The message says which parameters make the reports more informative.
    """


class CollinearDesign(IbukitError, ValueError):
    """A column of a regression's design is a combination of others.

    The message names that column and the others.
    """


class SeparatedDesign(IbukitError, ValueError):
    """The likelihood of a regression rises as coefficients go to infinity.

    The message names these coefficients, and says what to leave out or to merge.
    """


class NoExactSampler(IbukitError, ValueError):
    """A mechanism has no sampler without rounding.

    The message names a mechanism that has one.
    """


class TooLarge(IbukitError, ValueError):
    """An exact computation would take too many terms or too much memory.

    The message says how many or how much, and what to use instead.
    """


class MissingExtra(IbukitError, ImportError):
    """A package of one of the extras is not installed.

    The message has the command that installs it.
    """


class DataChanged(IbukitError, RuntimeError):
    """Data has changed.

    A data file or a file of results does not have the recorded SHA-256, another process has written
    to it, or reports differ from those that were tallied.
    """


class ForeignFile(IbukitError, ValueError):
    """A file belongs to another computation, or has another format."""


class ConvergenceError(IbukitError, RuntimeError):
    """An iteration missed its goal: a tolerance, or a stopping rule.

    `estimate` is the best result that was found, in most cases an `Estimate`. With ``strict=False``
    the function returns it instead of raising this error.

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
        # The type is Any, because `Estimate` and other results stand above this module.
        self.estimate = estimate

    def __reduce__(self) -> tuple[type[ConvergenceError], tuple[str, Any]]:
        # An exception with a second argument does not unpickle by default, and worker processes
        # must be able to raise it.
        return type(self), (str(self), self.estimate)
