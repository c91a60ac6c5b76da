"""The mechanism that hides a secret best at a bounded loss of quality."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ibukit import privacy
from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit._ground.threads import one_thread
from ibukit.design import _linear_programme, least_information
from ibukit.design._linear_programme import Unsolved
from ibukit.domain.alphabet import AlphabetLike, as_alphabet
from ibukit.domain.vectors import VectorLike, distribution_over
from ibukit.errors import ConvergenceError, Infeasible
from ibukit.mechanisms import MatrixMechanism

CHOICES = ("least-information", "vertex")
# Share of the largest loss within which both losses of the result are right. HiGHS is asked for
# 1e-10; a result that is worse than this raises ConvergenceError.
LOSS_TOLERANCE = 1e-9


def shokri(
    prior: VectorLike,
    alphabet: AlphabetLike,
    max_quality_loss: float,
    loss: ArrayLike | None = None,
    adversary_loss: ArrayLike | None = None,
    choice: str | None = None,
    *,
    strict: bool = True,
) -> MatrixMechanism:
    r"""The mechanism that protects best at a bounded loss of quality.

    Maximise the adversary's loss

    .. math:: \sum_y\min_z\sum_x\mathrm{prior}_x\,A_{xy}\,\ell(x,z)

    while the user's loss is at most Q. The user's loss is
    :math:`\sum_{xy}\mathrm{prior}_x\,A_{xy}\,\ell(x,y)`; the adversary knows the prior and the
    mechanism A, and guesses best. With one loss l for both, the maximum is :math:`\min(Q,Q_{\max})`
    with :math:`Q_{\max}=\min_g\sum_x\mathrm{prior}_x\,l(x,g)`, and many mechanisms reach it;
    `choice` says which is returned.

    Parameters
    ----------
    prior : array_like or labelled, shape (k,)
        How the secrets are distributed, known to the adversary. For a secret of probability 0 the
        problem says nothing: its row is :math:`q_{y}\,\exp (-\beta\,l(x, y))`, like the others, if
        the choice is "least-information", and the distribution of all reports if it is "vertex".
    alphabet : Alphabet, sequence of labels or int
        The k secrets, which are also what can be reported.
    max_quality_loss : float
        Q, in the loss's unit: at least Qmin =
        :math:`\sum_{x} \mathrm{prior}_{x}\,\min_{y} l(x, y)`, which is 0 for distances.
    loss : array_like, shape (k, k), optional
        What report y costs the user whose secret is x, l(x, y); by default the alphabet's
        distances.
    adversary_loss : array_like, shape (k, guesses), optional
        What guess z costs the adversary; by default the user's loss.
    choice : str, optional
        Which of the optimal mechanisms to return:

        - "least-information", the default for one loss: the one with the least mutual information
          with the secrets. It is the solution of the rate-distortion problem, :math:`A_{xy}`
          proportional to :math:`q_{y}\,\exp (-\beta\,l(x, y))` at the :math:`\beta` at which the
          loss is Q. It does not depend on a solver: for distances on a line or a grid and a
          positive prior there is only one. For Q >= Qmax, where no information is left, the report
          is uniform over the minimisers g of Qmax.
        - "vertex", the default for two losses, where the other choice is not defined: a vertex of
          the set of optimal mechanisms or, with one loss, of the set of those whose loss is min(Q,
          Qmax). It is the cheapest vertex under fixed generic prices of the entries, so that
          another machine or solver ends at the same one.
    strict : bool
        Raise if the optimum is missed or no vertex is found. False returns the mechanism as it is;
        if no vertex is found, it is the one of least information, which keeps the bound on the
        user's loss.

    Returns
    -------
    MatrixMechanism
        Shape k x k. Rows sum to 1 up to rounding; the user's loss is at most Q, and the adversary's
        at least the maximum, within 1e-9 of the largest loss (checked before the mechanism is
        returned; "least-information" reaches 1e-12). `design.protection_gap` says by how much the
        maximum is missed.

    Raises
    ------
    ConvergenceError
        If `strict` and the optimum was missed; carries the mechanism as ``.estimate``.
    Infeasible
        If no mechanism has a loss of at most `max_quality_loss`, or if this is NaN; the message
        says what is possible.
    InvalidDistribution
        If `prior` is not a distribution.
    AlphabetMismatch
        If `prior` or a loss is not made for the alphabet.
    ValueError
        If a loss is negative, infinite or NaN, if `choice` is neither of the two, or if it is
        "least-information" for two losses.

    Notes
    -----
    The maximum is :math:`V(Q) \le Q`, because the adversary may guess the report itself; V is
    concave, and equal to Q at Qmin and at Qmax (a constant report), so it is equal to Q between
    them. Every optimum whose loss is Q is therefore a mechanism whose report is itself a best
    guess. For distances, one of them reports the best constant with probability Q / Qmax, and
    otherwise the truth. The rate-distortion channel is another: if its reports were not best
    guesses, replacing each of them by its best guess would lower the loss without adding
    information.

    It takes tens of milliseconds on a line of 100 values, and tenths of a second on a grid of 400
    cells; the linear programme takes tenths of a second for 100 values and much longer for grids of
    more than 200 cells.

    References
    ----------
    .. [shokri2012] R. Shokri et al., "Protecting location privacy: optimal strategy against
       localization attacks",
       CCS 2012.
    .. [oya2017] S. Oya et al., "Back to the drawing board: revisiting the design of optimal
       location
       privacy-preserving mechanisms", CCS 2017: on the many optima, and how to choose among them by
       conditional entropy.

    Examples
    --------
    >>> import ibukit as ik
    >>> line = ik.Line(0, 4)
    >>> mechanism = ik.shokri(ik.uniform(5), line, max_quality_loss=0.5)
    >>> mechanism.matrix().round(3)
    array([[0.616, 0.281, 0.072, 0.026, 0.005],
           [0.131, 0.634, 0.163, 0.06 , 0.012],
           [0.04 , 0.195, 0.531, 0.195, 0.04 ],
           [0.012, 0.06 , 0.163, 0.634, 0.131],
           [0.005, 0.026, 0.072, 0.281, 0.616]])
    >>> round(ik.privacy.quality_loss(mechanism, ik.uniform(5)), 9)
    0.5
    >>> round(ik.privacy.adversary_loss(mechanism, ik.uniform(5)), 9)
    0.5
    """
    secrets = as_alphabet(alphabet)
    k = len(secrets)
    weights = distribution_over("prior", prior, secrets)
    costs = arguments.losses("loss", secrets.distances() if loss is None else loss, k, k)
    adversary_costs = (
        costs if adversary_loss is None else arguments.losses("adversary_loss", adversary_loss, k)
    )
    has_one_loss = np.array_equal(costs, adversary_costs)
    kind = _valid_choice(choice, has_one_loss)
    problem = least_information.RateDistortionProblem(weights, costs)
    bound = _valid_bound(max_quality_loss, problem)
    # With one loss the maximum is known: min(Q, Qmax).
    maximum = min(bound, float(problem.constant_losses.min()))
    failure = ""
    with one_thread():
        if kind == "vertex":
            try:
                channel = (
                    _vertex(weights, costs, None, maximum)
                    if has_one_loss
                    else _vertex(weights, costs, adversary_costs, bound)
                )
            except Unsolved as reason:
                # The channel of least information keeps the user's bound for any adversary.
                kind, failure = "least-information", str(reason)
        if kind == "least-information":
            channel = least_information.solve_at_distortion(problem, bound).channel
        # Both losses are computed again from the matrix, whatever the solver said.
        mechanism = MatrixMechanism(channel, secrets)
        failure = failure or _failure(mechanism, problem, bound, maximum if has_one_loss else None)
    if arguments.flag("strict", strict) and failure:
        raise ConvergenceError(f"{failure}; strict=False returns the mechanism as it is", mechanism)
    return mechanism


def _valid_choice(choice: str | None, has_one_loss: bool) -> str:
    if choice is None:
        return "least-information" if has_one_loss else "vertex"
    if not arguments.is_one_of(choice, CHOICES):
        raise ValueError(f"choice must be 'least-information' or 'vertex', got {choice!r}")
    if choice == "least-information" and not has_one_loss:
        raise ValueError(
            "choice='least-information' is defined where user and adversary have the same loss; "
            "with an adversary_loss of its own take choice='vertex', which is then the default"
        )
    return choice


def _valid_bound(value: Any, problem: least_information.RateDistortionProblem) -> float:
    """Return a valid bound on the user's loss, which rounding may raise to the smallest loss."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ValueError(f"max_quality_loss must be a number, got {value!r}")
    bound = arguments.as_float(value)
    low, high = problem.min_loss, float(problem.constant_losses.min())
    # The comparison is turned round, so that it refuses NaN as well.
    if not bound >= low * (1 - least_information.TIE_TOLERANCE):
        raise Infeasible(
            f"max_quality_loss must be at least {low:.6g}, where every secret has its best "
            f"report, got {value}; from {low:.6g} to {high:.6g} more of it buys more privacy, "
            "above that no more"
        )
    return max(bound, low)


def _vertex(prior: Floats, loss: Floats, adversary_loss: Floats | None, bound: float) -> Floats:
    """Return an optimal vertex, shape (k, m); None for the adversary's loss if it is the user's."""
    possible = prior > 0
    p, costs = prior[possible] / prior[possible].sum(), loss[possible]
    if adversary_loss is None:
        rows = _linear_programme.one_loss(p, costs, bound)
    else:
        rows = _linear_programme.two_losses(p, costs, adversary_loss[possible], bound)
    channel = np.empty(loss.shape)
    channel[possible] = rows
    # A secret of probability 0 is not in the programme. Its reports are like the average of the
    # others, so they tell nothing.
    channel[~possible] = p @ rows
    return channel


def _failure(
    mechanism: MatrixMechanism,
    problem: least_information.RateDistortionProblem,
    bound: float,
    maximum: float | None,
) -> str:
    """Say which promise of the docstring the matrix does not keep; "" if it keeps all."""
    excess = privacy.quality_loss(mechanism, problem.prior, problem.loss) - bound
    if maximum is not None:
        protection = privacy.adversary_loss(mechanism, problem.prior, problem.loss)
        excess = max(excess, maximum - protection)
    if excess <= LOSS_TOLERANCE * problem.loss.max():
        return ""
    return (
        f"the optimum was missed by {excess:.3g} in the loss's unit; if its unit is extreme, "
        "divide loss and max_quality_loss by the largest loss"
    )
