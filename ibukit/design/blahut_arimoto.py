"""The mechanism of least information for a prior, a metric and beta, by steps or as an optimum."""

from __future__ import annotations

import numpy as np

from ibukit._ground import arguments
from ibukit._ground.arguments import Floats
from ibukit._ground.threads import one_thread
from ibukit.channels import DenseChannel
from ibukit.design import least_information
from ibukit.domain.alphabet import Alphabet, AlphabetLike, as_alphabet
from ibukit.domain.distributions import uniform
from ibukit.domain.vectors import VectorLike, distribution_over, positive_distribution_over
from ibukit.errors import ConvergenceError
from ibukit.mechanisms import MatrixMechanism
from ibukit.solvers import em

# Smallest gap in nats that doubles can certify.
MIN_TOL = 1e-12
# Largest number of steps. They take seconds to minutes; the digits stop changing long before.
MAX_CHANNELS = 10**7


def blahut_arimoto(
    prior: VectorLike,
    alphabet: AlphabetLike,
    beta: float,
    steps: int | None = 10,
    *,
    tol: float | None = None,
    start: VectorLike | None = None,
    strict: bool = True,
) -> MatrixMechanism:
    r"""The mechanism of least information for its distortion.

    Minimise

    .. math::

        I(x;y)+\beta\,\mathbb E\,d(x,y):\qquad C_{xy}=\frac{c_y\,e^{-\beta d(x,y)}}{\sum_w
        c_w\,e^{-\beta d(x,w)}}.

    Blahut and Arimoto alternate between the channel C and
    :math:`c_y=\sum_x\mathrm{prior}_x\,C_{xy}`, the distribution of its reports. That is the
    iterative Bayesian update for c, with :math:`\exp (-\beta\,d)` from y to x as the mechanism and
    the prior as the frequencies of the reports, and it is computed by the same routine. Every c
    that is nowhere 0 gives a channel of :math:`2\,\beta`-d-privacy.

    Parameters
    ----------
    prior : array_like or labelled, shape (k,)
        How the secrets are believed to be distributed. A secret of probability 0 has no influence
        on c, but it has a row of the channel like any other secret, so whoever has it can still
        report, as privately as the others.
    alphabet : Alphabet, sequence of labels or int
        The k secrets, which are also the reports.
    beta : float
        What a unit of distance is worth, in nats per unit of the alphabet's distances, above 0.
    steps : int or None
        Number of channels computed. The first comes from `start`, so c is improved steps - 1 times.
        None stands for the optimum.
    tol : float, optional
        With ``steps=None``: :math:`I + \beta\,E\,d` is proved to be at most this many nats above
        its minimum; 1e-9 by default, and at least 1e-12. The optimum comes from the solver of
        `mle`, which does not slow down where probabilities vanish.
    start : array_like or labelled, shape (k,), optional
        The distribution c of the reports to begin with, nowhere 0, because a 0 would stay 0;
        uniform by default. Only with `steps`: the optimum does not depend on it.
    strict : bool
        Raise if `tol` is missed, which cannot happen with a number of steps. False returns the best
        mechanism found.

    Returns
    -------
    MatrixMechanism
        Shape k x k. After finitely many steps all entries are positive, unless they fall below what
        a double can hold. At the optimum some reports may have probability 0: in PRIVIC's Paris
        this is so for all but a few of the 165 cells at a `beta` of 0.2 per cell, and for only a
        few cells at a `beta` of 5. `design.information_gap` says how good the mechanism is.

    Raises
    ------
    ValueError
        If `beta` is not a finite number above 0, if `steps` is not a whole number of at least 1, if
        `tol` is given with a number of steps, or if `start` is given with ``steps=None``.
    InvalidDistribution
        If `prior` or `start` is not a distribution, or `start` has a 0.
    AlphabetMismatch
        If `prior` or `start` is not made for the alphabet.
    ConvergenceError
        If `strict` and `tol` was missed; carries the best mechanism as ``.estimate``.

    References
    ----------
    .. [privic] Biswas and Palamidessi, arXiv:2206.10525, Definition 2.9 and section 3.
    .. [csiszar] I. Csiszar, "On the computation of rate-distortion functions", IEEE Trans. Inf.
       Theory 20, 1974.

    Examples
    --------
    With a crowd at 0 and few people at 3, whoever is far from the crowd mostly reports 0 and not
    the truth.

    >>> import ibukit as ik
    >>> prior = [0.8, 0.1, 0.08, 0.02]
    >>> mechanism = ik.blahut_arimoto(prior, ik.Line(0, 3), beta=0.5, steps=10)
    >>> mechanism.matrix().round(2)
    array([[0.95, 0.05, 0.  , 0.  ],
           [0.87, 0.12, 0.01, 0.  ],
           [0.86, 0.12, 0.02, 0.  ],
           [0.86, 0.12, 0.02, 0.  ]])
    >>> bool(ik.privacy.epsilon_metric(mechanism) <= 2 * 0.5)
    True
    >>> ik.blahut_arimoto(prior, ik.Line(0, 3), beta=0.5, steps=None).matrix()[3].round(2)
    array([1., 0., 0., 0.])
    """
    secrets = as_alphabet(alphabet)
    problem = least_information.RateDistortionProblem(
        distribution_over("prior", prior, secrets), secrets.distances()
    )
    beta = least_information.valid_beta(beta)
    if steps is None:
        if start is not None:
            raise ValueError(
                "start must be left out with steps=None: the optimum does not depend on it"
            )
        tol = 1e-9 if tol is None else _valid_tol(tol)
        with one_thread():
            c = least_information.output_distribution(problem, beta)
            gap = least_information.optimality_gap(problem, c, beta)
    else:
        if tol is not None:
            raise ValueError(
                f"tol must be left out with steps={steps}; pass steps=None to solve until it is met"
            )
        # The first channel is that of the start, without an improvement.
        improvements = arguments.whole("steps", steps, 1, MAX_CHANNELS) - 1
        c = _improved(problem, beta, _valid_start(start, secrets), improvements)
        gap, tol = 0.0, 0.0
    mechanism = MatrixMechanism(least_information.channel_of(problem, c, beta), secrets)
    # A gap that is NaN misses every tolerance.
    if arguments.flag("strict", strict) and not gap <= tol:
        raise ConvergenceError(
            f"tol={tol} was missed: the certified gap is {gap:.3g} nats; loosen tol, take steps, "
            "or take strict=False for the mechanism as it is",
            mechanism,
        )
    return mechanism


def _improved(
    problem: least_information.RateDistortionProblem, beta: float, c: Floats, steps: int
) -> Floats:
    """Return c after that many steps of Blahut and Arimoto; `c` itself is overwritten."""
    # One step is c_y <- c_y sum_x prior_x K_yx / (c K)_x with K_yx = exp(-beta d(x, y)): the
    # channel of c, and then the distribution of its reports. It is also the step of EM for the
    # weights c of a mixture of the rows of K.
    kernel, weights = least_information.kernel_of(problem, beta)
    with one_thread():
        updates = em.updates_of(DenseChannel(kernel), weights)
        p, g = em.evaluate(updates, c, len(weights))
        # Every ratio exceeds -inf, so all the steps are made.
        if steps:
            updates(c, p, g, steps, -np.inf)
    return c


def _valid_start(start: VectorLike | None, secrets: Alphabet) -> Floats:
    if start is None:
        return uniform(len(secrets))
    why = "and that report would never be made; mix it with the uniform distribution"
    return positive_distribution_over("start", start, secrets, why).copy()


def _valid_tol(tol: float) -> float:
    number = arguments.positive("tol", tol)
    if number < MIN_TOL:
        raise ValueError(f"tol must be at least {MIN_TOL}, the least that doubles allow, got {tol}")
    return number
