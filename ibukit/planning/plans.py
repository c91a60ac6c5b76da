"""Number of reports needed for intervals of a given width, for one or several mechanisms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.random import Generator

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit.datasets import Dataset
from ibukit.domain.alphabet import Alphabet
from ibukit.domain.linear_functionals import normal_quantile, parse_functionals
from ibukit.domain.vectors import VectorLike, distribution_over
from ibukit.errors import AlphabetMismatch
from ibukit.mechanisms import FreeWill, Mechanism
from ibukit.mechanisms.base import require_same_alphabet
from ibukit.mechanisms.matrix import as_mechanism
from ibukit.mechanisms.surveys import TwoSampleDesign
from ibukit.planning.choice import with_choice
from ibukit.planning.power import PlannedTest, PowerPlan
from ibukit.planning.result import Plan, Plans
from ibukit.planning.sampled import SimulatedVariances
from ibukit.planning.variance_models import model_of
from ibukit.tally.trials import refuse_trials

# The distributions that `near` may be.
Distribution: TypeAlias = VectorLike | Dataset


@overload
def plan(
    mechanism: Mechanism | FreeWill | TwoSampleDesign | Floats,
    width: float = 0.01,
    level: float = 0.95,
    of: Any = None,
    near: Distribution | None = None,
    *,
    rng: Generator | None = None,
    difference: None = None,
    power: float = 0.8,
    groups: int = 2,
) -> Plan: ...
@overload
def plan(
    mechanism: Mechanism | FreeWill | TwoSampleDesign | Floats,
    width: float = 0.01,
    level: float = 0.95,
    of: Any = None,
    near: Distribution | None = None,
    *,
    rng: Generator | None = None,
    difference: float,
    power: float = 0.8,
    groups: int = 2,
) -> PowerPlan: ...
@overload
def plan(
    mechanism: Sequence[Mechanism | FreeWill | TwoSampleDesign],
    width: float = 0.01,
    level: float = 0.95,
    of: Any = None,
    near: Distribution | None = None,
    *,
    rng: Generator | None = None,
    difference: float | None = None,
    power: float = 0.8,
    groups: int = 2,
) -> Plans: ...


def plan(
    mechanism: Mechanism
    | FreeWill
    | TwoSampleDesign
    | Floats
    | Sequence[Mechanism | FreeWill | TwoSampleDesign],
    width: float = 0.01,
    level: float = 0.95,
    of: Any = None,
    near: Distribution | None = None,
    *,
    rng: Generator | None = None,
    difference: float | None = None,
    power: float = 0.8,
    groups: int = 2,
) -> Plan | Plans:
    r"""Plan the number of reports for intervals of a given width, or for a test.

    The number is the smallest n with :math:`2z\sqrt{v/n}\le\mathrm{width}`, where z is the normal
    quantile at (1 + level) / 2, and v is the variance of the best estimate of :math:`w \cdot
    \theta` from one report, for the question with the largest such variance:

    .. math:: v(\theta)=\min_{u:\,Mu=w}\;\sum_z p_z u_z^2-(w\cdot\theta)^2,\qquad p=\theta M,

    which is w C w with C the inverse Fisher information, whose trace is `theory.asymptotic_mse`.
    With `near`, v is taken at that distribution; without it, v is the largest over all
    distributions.

    With a `difference` :math:`\delta` the number is the smallest n for which a test of level 1 -
    level finds the difference with probability `power`:

    .. math:: n\ge\Bigl(\frac{z\,\sigma_0+z_{\mathrm{power}}\,\sigma_1}{\delta}\Bigr)^2.

    The test is the likelihood ratio of `compare`, between two groups of n reports each; or, with
    ``groups=1``, it asks whether an interval contains a given value. :math:`\sigma_1^2` is the sum
    of the variances v of the groups, and :math:`\sigma_0^2` is that sum if there is no difference.
    With `near`, one group has this distribution, and the other has the nearest one that differs by
    :math:`\delta`, in the worse direction. With one group the value that is tested is that of
    `near`.

    Parameters
    ----------
    mechanism : Mechanism, FreeWill or surveys.TwoSampleDesign, or sequence of them
        Several mechanisms, over the same secrets, give a table from which to choose one. A
        row-stochastic matrix is taken as a `MatrixMechanism`. With `FreeWill` each report comes
        through one of several mechanisms, by their shares, and says through which one. With a
        design of two samples half of the people are in each sample; ``FreeWill(design.samples,
        shares)`` divides them otherwise.
    width : float
        Upper end minus lower end, of every interval; less than twice the range of the answers. Not
        used if there is a `difference`.
    level : float
        Strictly between 0 and 1. The test has the level 1 - level, on two sides.
    of : array_like, shape (k,) or (questions, k), optional
        Weights w of the questions :math:`w \cdot \theta`: 1 inside a region and 0 outside it for
        its share, or the values of the secrets for their mean. A mapping or Series is one question
        with weights by label, 0 for the labels that it lacks. By default each single probability is
        a question; for designs with two samples, the sensitive attribute.
    near : array_like or labelled, shape (k,), optional
        The expected distribution. By default the worst case over all distributions.
    rng : numpy.random.Generator, optional
        For mechanisms whose reports cannot be listed and have no structure that replaces the list
        (SHE, Gaussian noise, large sketches): what one report tells is averaged over simulated
        reports, 1,000 for each secret and at least 50,000. `Plan.noise` is the relative standard
        error of n. Such mechanisms need `near`, and have at most 259 secrets.
    difference : float, optional
        Plan a test that finds a difference of this size between answers, for the question whose
        variance is largest.
    power : float
        Probability of finding the difference, strictly between 0 and 1.
    groups : int
        2 for two groups of n reports each, 1 for one group and a value.

    Returns
    -------
    Plan or Plans
        A `PowerPlan` if there is a `difference`, a `Plans` for a sequence of mechanisms. `Plan.n`
        is the number of reports; `Plan.width` and `Plan.error` return width and error for any other
        number.

    Raises
    ------
    ValueError
        If `width` is not above 0 and below twice the range of the answers, if `level` or `power` is
        not between 0 and 1, if a weight is not finite, if no question depends on the distribution,
        if the reports cannot be listed or get lost, or if no distribution differs by `difference`.
    MatrixUncertain
        If the matrix of a mechanism was measured (`MatrixMechanism.from_trials`).
    AlphabetMismatch
        If `of` or `near` is not over the mechanism's secrets.
    InvalidDistribution
        If `near` is not on the simplex.
    NotInvertible
        If the reports do not answer a question, however many there are.
    TooLarge
        If the alphabet is unbounded, or the matrix is too large. k-RR and geometric noise on a line
        take O(k) operations. So do unary encodings and subset selection if `of` and `near` are
        None; otherwise subset selection is mostly limited to hundreds of secrets, unary encodings
        to thousands.

    Notes
    -----
    Intervals are the estimate -+ z standard errors of the maximum likelihood estimate: they cover
    with probability `level` in the limit of many reports, at distributions without zeros. If `near`
    has zeros, v is its limit from inside the simplex. There the maximum likelihood estimate is not
    normal, because it never goes below 0. If one probability is 0, it is estimated as 0 about half
    of the time; if several are 0, each of them is estimated as 0 more often (about 80 % of the time
    if 90 of 100 are 0, under k-RR with epsilon = 1 and 20,000 reports).

    In the worst case each u bounds v from above at every distribution, by :math:`\sum_{x}
    \theta_x\,c_{x} - (w \cdot \theta)^{2}` with :math:`c_{x}` = :math:`\sum_{z} M_{xz}\,u_{z}^{2}`,
    and the maximum of this bound is found exactly. v is concave, so at the worst :math:`\theta` the
    best u there gives v itself as the bound. k-RR, geometric noise on a line and every matrix with
    independent columns have only one u. Otherwise Newton's method climbs v inside the simplex until
    bound and value agree to 1e-7, and n follows from the bound. Secrets of unary encodings and
    subset selection that a question weighs alike are merged first, because they are exchangeable;
    if many are left, sums over their :math:`2^{k}` reports are found as in `theory.asymptotic_mse`,
    up to the rounding of doubles.

    The power, too, holds in the limit of many reports: if a share is nearly 0 in either group,
    simulate the power with `compare`.

    References
    ----------
    .. [vaart1998] A. W. van der Vaart, "Asymptotic Statistics", Cambridge University Press, 1998,
       section 8.9.

    Examples
    --------
    Number of people to ask to know every share within one percentage point either way, whatever the
    shares are:

    >>> import ibukit as ik
    >>> mechanism = ik.RandomizedResponse(["bike", "bus", "car", "train"], epsilon=2.0)
    >>> plan(mechanism, width=0.02)
    Plan(RandomizedResponse(k=4, epsilon=2), n=25,394 for width 0.02 at level 0.95, worst case)

    And if only the share of those who do not drive matters, which is about 60 %:

    >>> expected = {"bike": 0.2, "bus": 0.3, "car": 0.4, "train": 0.1}
    >>> plan(mechanism, width=0.02, of={"bike": 1, "bus": 1, "train": 1}, near=expected).n
    22866

    Number of people to ask in each of two towns, to find out with a probability of 90 % that 5
    percentage points more of the people drive in one of them:

    >>> test = plan(mechanism, of="car", near=expected, difference=0.05, power=0.9)
    >>> test.n
    5104
    """
    margin, half = arguments.positive("width", width), normal_quantile(level)
    test = None if difference is None else PlannedTest.checked(difference, power, groups)
    given: Any = mechanism
    if isinstance(given, Sequence) and (
        not given or any(isinstance(each, (Mechanism, FreeWill, TwoSampleDesign)) for each in given)
    ):
        mechanisms = require_same_alphabet([*map(with_choice, given)])
        return Plans(
            tuple(
                _plan(each, margin, level, half, _question(of, design), near, rng, test)
                for each, design in zip(mechanisms, given, strict=True)
            )
        )
    of = _question(of, given)
    return _plan(as_mechanism(with_choice(given)), margin, level, half, of, near, rng, test)


def _question(of: Any, design: Any) -> Any:
    """Return `of`, or the sensitive attribute if nothing is asked of a design of two samples."""
    # Such a design has more secrets than the attribute, and reports need not determine all of them.
    return design.sensitive if of is None and isinstance(design, TwoSampleDesign) else of


def _plan(
    mechanism: Mechanism,
    width: float,
    level: float,
    z: float,
    of: Any,
    near: Any,
    rng: Any,
    test: PlannedTest | None,
) -> Plan:
    refuse_trials(
        [mechanism],
        "a plan",
        "more reports do not make up for few trials; plan with MatrixMechanism(matrix) for a "
        "matrix that will be known, and see in the interval of drawn tallies what the trials add",
    )
    questions = parse_functionals(of, mechanism.alphabet)
    weights, ranges = questions.weights, questions.ranges
    if not ranges.any():
        raise ValueError(
            "of must depend on the distribution: the answer is the same for all of them"
            if of is not None
            else f"mechanism must have at least two secrets, got {mechanism}: nothing is unknown"
        )
    if test is not None and test.difference >= ranges.max():
        raise ValueError(
            f"difference must be below {ranges.max():g}, the range of the answers, got "
            f"{test.difference:g}"
        )
    if test is None and width >= 2 * ranges.max():
        raise ValueError(
            f"width must be below {2 * ranges.max():g}, twice the range of the answers, got "
            f"{width:g}: an interval that wide excludes nothing"
        )
    # A constant added to the weights changes no variance; centring them saves digits.
    if weights is not None:
        weights = weights - (questions.most + questions.least)[:, None] / 2
    theta = None if near is None else _expected_distribution(near, mechanism.alphabet)
    model = model_of(mechanism, None if rng is None else arguments.generator(rng))
    if theta is None:
        worst = model.worst_case(weights)
        variance, question, theta = worst.upper, worst.question, worst.theta
        gap = max(0.0, 1 - worst.lower / worst.upper) if worst.upper > 0 else 0.0
    else:
        variances = model.variances(theta, weights)
        question, gap = int(variances.argmax()), 0.0
        variance = max(0.0, float(variances[question]))
    distribution = arguments.frozen(np.array(theta))
    noise = model.noise if isinstance(model, SimulatedVariances) else 0.0
    if test is not None:
        deviation = math.sqrt(test.groups * variance)
        w = np.eye(1, mechanism.k, question)[0] if weights is None else weights[question]
        deviations = (
            (deviation, deviation) if near is None else test.deviations_near(theta, w, model)
        )
        n = test.reports_needed(deviations, z)
        return PowerPlan(
            mechanism,
            n,
            2 * z * math.sqrt(variance / n),
            float(level),
            variance,
            gap,
            question,
            distribution,
            near is None,
            noise,
            *test,
            deviations,
        )
    n = reports_needed(variance, width, z)
    return Plan(
        mechanism,
        n,
        width,
        float(level),
        variance,
        gap,
        question,
        distribution,
        near is None,
        noise,
    )


def _expected_distribution(near: Any, alphabet: Alphabet) -> Floats:
    """Parse the argument `near` into a probability vector in the alphabet's order."""
    if isinstance(near, Dataset):
        if near.alphabet != alphabet:
            raise AlphabetMismatch(
                f"near must be over {alphabet!r}, got a dataset over {near.alphabet!r}; if its "
                "secrets only have other names, pass near.distribution"
            )
        near = near.distribution
    return distribution_over("near", near, alphabet)


def reports_needed(variance: float, width: float, z: float) -> int:
    """Return the smallest n >= 1 with 2 z sqrt(variance / n) <= width."""
    errors = 2 * z / width
    needed = variance * errors * errors
    if not math.isfinite(needed):
        raise ValueError(
            f"width must be larger, got {width:g}: it takes more reports than a double can count"
        )
    return max(1, math.ceil(needed))
