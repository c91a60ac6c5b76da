"""Conditions under which the maximum likelihood estimate is consistent, with reasons."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import ArrayLike

from ibukit._ground.arguments import Floats
from ibukit.identification import _dominance
from ibukit.identification._dominance import LogLossBound
from ibukit.identification.identifiability import identifiable
from ibukit.mechanisms import FreeWill, Mechanism
from ibukit.mechanisms.matrix import as_mechanism

# Columns of the reason in the printed table.
LINE_WIDTH = 64


class Answer(Enum):
    """Answer to one condition of the theorem.

    Examples
    --------
    >>> Answer.NOT_BY_THIS_ROUTE.value
    'not by this route'
    """

    YES = "yes"
    NO = "no"
    NOT_BY_THIS_ROUTE = "not by this route"


@dataclass(frozen=True)
class Condition:
    r"""One condition of the theorem.

    Attributes
    ----------
    name : str
        "identification", "compactness", "continuity" or "dominance".
    answer : Answer
        NOT_BY_THIS_ROUTE where the condition fails, but the conclusion can be reached without it.
    reason : str
    bound : float or None
        For dominance, where it holds, a number that :math:`\mathbb E[\sup_\phi|\log P(Z\mid\phi)|]`
        does not exceed, in nats.

    Examples
    --------
    >>> import ibukit as ik
    >>> print(consistency(ik.RandomizedResponse(3, epsilon=1.0)).conditions[1])
    compactness: yes (the simplex over 3 secrets is closed and bounded)
    """

    name: str
    answer: Answer
    reason: str
    bound: float | None = None

    def __str__(self) -> str:
        return f"{self.name}: {self.answer.value} ({self.reason})"


@dataclass(frozen=True, repr=False)
class Consistency:
    """Answer of `consistency`: the conditions and the conclusion.

    It is about one mechanism. In an ``if`` statement it counts as true exactly when `consistent` is
    true.

    Attributes
    ----------
    conditions : tuple of Condition
        Identification, compactness, continuity and dominance.

    Examples
    --------
    >>> import ibukit as ik
    >>> consistency(ik.MatrixMechanism([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]))
    Consistency(consistent; identification yes, compactness yes, continuity not by this route,
    dominance not by this route)
    """

    conditions: tuple[Condition, Condition, Condition, Condition]

    @property
    def consistent(self) -> bool:
        """True if the estimate tends to the truth, whatever the truth is.

        This is convergence in probability; identification decides.
        """
        return self.conditions[0].answer is Answer.YES

    @property
    def reason(self) -> str:
        """The argument that gives the answer, in words."""
        if not self.consistent:
            return (
                "two different distributions of the secrets give the same law of reports, so that "
                "no estimator can be consistent at both"
            )
        # Together the four conditions suffice; otherwise identification alone decides.
        if all(condition.answer is Answer.YES for condition in self.conditions):
            return "all conditions of Newey and McFadden's Theorem 2.5 hold"
        return (
            "by Wald's one-sided argument: log P(z given phi) <= 0 is upper semicontinuous in phi, "
            "minus infinity where it is impossible; the simplex is compact; the entropy of the "
            "report is finite; and so identification is enough"
        )

    def __bool__(self) -> bool:
        return self.consistent

    def __repr__(self) -> str:
        verdict = "consistent" if self.consistent else "not consistent"
        return (
            f"Consistency({verdict}; "
            + ", ".join(f"{c.name} {c.answer.value}" for c in self.conditions)
            + ")"
        )

    def __str__(self) -> str:
        rows = [
            ("condition", "answer", "reason"),
            *((c.name, c.answer.value, c.reason) for c in self.conditions),
        ]
        rows.append(
            ("consistent", (Answer.YES if self.consistent else Answer.NO).value, self.reason)
        )
        first, second = (max(len(row[i]) for row in rows) + 2 for i in (0, 1))
        lines = []
        for name, answer, reason in rows:
            start, *rest = textwrap.wrap(reason, LINE_WIDTH)
            lines.append(f"{name:{first}}{answer:{second}}{start}")
            lines += [" " * (first + second) + line for line in rest]
        return "\n".join(lines)


def consistency(mechanism: Mechanism | FreeWill | ArrayLike) -> Consistency:
    r"""Check whether the estimate tends to the truth as n grows.

    The estimate is :math:`\arg\max_\theta\sum_i\log P(Z_i\mid\theta)`, and "tends to" means
    convergence in probability. With :math:`P(z\mid\phi)=\sum_x\phi_x M_{xz}` and :math:`\theta` the
    truth:

    1. identification: :math:`P(\cdot\mid\phi)=P(\cdot\mid\theta)` only if :math:`\phi=\theta`;
    2. compactness: the distributions :math:`\phi` of the secrets form a compact set;
    3. continuity: :math:`\log P(Z\mid\phi)` is continuous at each :math:`\phi`, with probability 1;
    4. dominance: :math:`\mathbb E[\sup_\phi|\log P(Z\mid\phi)|]<\infty`.

    Together they are sufficient. The first is necessary: if two distributions have the same law of
    reports, no estimator can tend to the truth whichever of them it is. On a finite alphabet the
    first condition is also enough. Where some secret never gives a report that others give, 3 and 4
    fail, because :math:`\log P` is minus infinity there. But since :math:`\log P \le 0`, no bound
    from below is needed: by the one-sided argument [wald]_ [vaart]_ it is enough that :math:`\log
    P` is upper semicontinuous on a compact set, and that :math:`E[\log P(Z \mid \theta)]`, which is
    minus the entropy of the report, is finite.

    Parameters
    ----------
    mechanism : Mechanism, FreeWill or array_like, shape (k, m)
        A row-stochastic matrix is taken as a `MatrixMechanism`. With `FreeWill` Z is the pair of a
        mechanism and its report, as in `identifiable`; for people who do not say which mechanism
        they chose, ask for ``average_mechanism(users.mechanisms, users.shares)``. For k-RR, RAPPOR,
        OUE, geometric, Laplace and exponential mechanisms the probabilities are known to be
        positive, also where a double underflows; for all others the zeros of the matrix count.

    Returns
    -------
    Consistency
        It counts as True or False in an ``if`` statement, has the four ``.conditions``,
        ``.consistent`` and ``.reason``, and is printed as a table.

    Raises
    ------
    ValueError
        If `identifiable` cannot tell, if the reports cannot be listed and the family is none of
        those above, or if reports get lost.
    InvalidDistribution
        If a matrix is not row-stochastic.

    References
    ----------
    .. [consistency] ElSalamouny and Palamidessi, arXiv:2508.09980, section 6 (condition 3 is stated
       there without M > 0).
    .. [newey] Newey and McFadden, "Large sample estimation and hypothesis testing", Handbook of
       Econometrics 4, 1994, Theorem 2.5.
    .. [wald] Wald, "Note on the consistency of the maximum likelihood estimate", Ann. Math.
       Statist. 20, 1949.
    .. [vaart] van der Vaart, Asymptotic Statistics, 1998, Theorem 5.14.

    Examples
    --------
    >>> import ibukit as ik
    >>> print(consistency(ik.RandomizedResponse(3, epsilon=1.0)))
    condition       answer  reason
    identification  yes     k-RR has k independent columns for every epsilon above 0
    compactness     yes     the simplex over 3 secrets is closed and bounded
    continuity      yes     every report that can occur has positive probability under every
                            secret
    dominance       yes     d(z) = -log of the smallest entry of M, from its formula; its
                            mean is at most 1.551 nats
    consistent      yes     all conditions of Newey and McFadden's Theorem 2.5 hold

    People who choose one of two mechanisms, and say which:

    >>> users = ik.FreeWill([ik.RandomizedResponse(3, epsilon) for epsilon in (0.5, 2.0)])
    >>> consistency(users).conditions[3].reason[:36]
    'd(A, z) = d_A(z) - log of the share '
    """
    if not isinstance(mechanism, FreeWill):
        mechanism = as_mechanism(mechanism)
    # Identification comes first, because it refuses mechanisms for which it has no answer.
    identified = identifiable(mechanism)
    if isinstance(mechanism, FreeWill):
        bound, zero = _bound_of_choice(mechanism)
    else:
        bound, zero = _bound_or_zero(mechanism)
    first = Condition("identification", Answer.YES if identified else Answer.NO, identified.reason)
    compact = f"the simplex over {len(mechanism.alphabet)} secrets is closed and bounded"
    return Consistency(
        (
            first,
            Condition("compactness", Answer.YES, compact),
            _continuity(zero),
            _dominated(bound, zero),
        )
    )


def _bound_or_zero(mechanism: Mechanism) -> tuple[LogLossBound | None, tuple[int, int] | None]:
    """Return a bound on the log-losses, or a secret and a report that rule it out."""
    truth = type(mechanism) in _dominance.TRUTHFUL and mechanism.epsilon == math.inf
    # The matrix is then the identity, which need not be written out.
    if truth and mechanism.k > 1:
        return None, (1, 0)
    bound = _dominance.by_formula(mechanism)
    if bound is not None:
        return bound, None
    # A factor that depends on the report alone moves no estimate, so merged reports suffice.
    matrix = mechanism.as_finite().matrix()
    zero = _zero(matrix)
    return (_smallest_entry(matrix) if zero is None else None), zero


def _bound_of_choice(users: FreeWill) -> tuple[LogLossBound | None, tuple[int, int] | None]:
    """Return the mean of the mechanisms' bounds plus the entropy of the choice."""
    # |log P(A, z)| is -log of A's share plus |log P(z)| under A.
    mean = 0.0
    for mechanism, share in zip(users.mechanisms, users.shares.tolist(), strict=True):
        if share == 0:
            continue
        bound, zero = _bound_or_zero(mechanism)
        if bound is None:
            return None, zero
        mean += share * (bound.mean - math.log(share))
    return LogLossBound(mean, "d(A, z) = d_A(z) - log of the share of the mechanism A"), None


def _zero(matrix: Floats) -> tuple[int, int] | None:
    """Return a secret and a report that it never gives, but another secret does."""
    # Columns of zeros are reports that never occur: they do not count.
    zeros = np.argwhere((matrix == 0) & matrix.any(axis=0))
    return (int(zeros[0, 0]), int(zeros[0, 1])) if len(zeros) else None


def _smallest_entry(matrix: Floats) -> LogLossBound:
    smallest = float(matrix[:, matrix.any(axis=0)].min())
    # A row may sum to a little more than 1, within its tolerance.
    return LogLossBound(
        max(0.0, -math.log(smallest)),
        "d(z) = -log of the smallest entry of M that is not in an empty column",
    )


def _continuity(zero: tuple[int, int] | None) -> Condition:
    if zero is None:
        every = "every report that can occur has positive probability under every secret"
        return Condition("continuity", Answer.YES, every)
    never = (
        f"the secret with code {zero[0]} never gives report {zero[1]}, which others give: log P is "
        "minus infinity where all mass is on that secret"
    )
    return Condition("continuity", Answer.NOT_BY_THIS_ROUTE, never)


def _dominated(bound: LogLossBound | None, zero: tuple[int, int] | None) -> Condition:
    if bound is None:
        assert zero is not None
        unbounded = (
            f"sup |log P| is infinite for report {zero[1]}, to which the secret with code "
            f"{zero[0]} gives 0"
        )
        return Condition("dominance", Answer.NOT_BY_THIS_ROUTE, unbounded)
    return Condition(
        "dominance",
        Answer.YES,
        f"{bound.words}; its mean is at most {bound.mean:.4g} nats",
        bound.mean,
    )
