"""`mle`: the maximum likelihood estimate, certified."""

from __future__ import annotations

from typing import overload

from ibukit._ground import arguments
from ibukit.errors import ConvergenceError
from ibukit.estimate import Estimate, Status
from ibukit.estimate.estimate_groups import EstimateGroups
from ibukit.estimators.certificate import certified
from ibukit.estimators.groups import each_group, mle_of_groups
from ibukit.solvers import Problem, best_found
from ibukit.tally.tally import Tally, check_tally
from ibukit.tally.tally_groups import TallyGroups


@overload
def mle(tally: Tally, tol: float = ..., method: str = ..., *, strict: bool = ...) -> Estimate: ...


@overload
def mle(
    tally: TallyGroups, tol: float = ..., method: str = ..., *, strict: bool = ...
) -> EstimateGroups: ...


def mle(
    tally: Tally | TallyGroups, tol: float = 1e-9, method: str = "auto", *, strict: bool = True
) -> Estimate | EstimateGroups:
    r"""The maximum likelihood estimate, with a proof that it is one.

    Maximise

    .. math:: L(\theta)=\sum_z\mathrm{counts}_z\,\log(\theta M)_z

    over the simplex. Where reports get lost with known efficiencies, :math:`(\theta M)_z` is
    divided by :math:`\sum_z(\theta M)_z`, the share that is seen, so that :math:`\theta` is the
    distribution of all secrets (see `MatrixMechanism`).

    Parameters
    ----------
    tally : Tally
        Of one mechanism or pooled over several. A `TallyGroups` is estimated group by group, small
        groups together, and gives one `EstimateGroups`.
    tol : float
        The mean log-likelihood is certified to be within `tol` nats per report of the maximum.
        Doubles reach 1e-14 to 1e-12.
    method : str
        "auto" takes the method that suits the tally's mechanisms; ``estimate.method`` says which
        one it was, and why. By name:

        - "closed-form": reports of one k-RR mechanism, O(k);
        - "line": reports of one geometric mechanism on a line, O(k) per step;
        - "plane": reports of one planar mechanism on a large grid, by Fourier transforms; or, if
          few cells of a smaller grid have mass, by constrained Newton steps;
        - "bits": RAPPOR, OUE, subset selection, hashing and sketches from the packed bits, and
          large numbers of reports of other kinds, alone or pooled with any others;
        - "pooled": k-RR, geometric and dense channels, with normal equations that use their
          structure;
        - "dense": any reports, as a matrix;
        - "active-set": any reports, however large the problem, through ``forward`` and ``adjoint``;
          quick where few secrets have mass;
        - "ibu": any reports, through ``forward`` and ``adjoint``: accelerated `ibu` until the gap
          is met.
    strict : bool
        Raise where `tol` is missed. False returns the best estimate found, with the gap that it has
        and the status MAX_ITER.

    Returns
    -------
    Estimate
        With ``gap <= tol`` on the returned vector. Where there are several maximisers, the vector
        is one of them. The digits do not depend on the number of threads.

    Raises
    ------
    ConvergenceError
        If `strict` and no certificate of `tol` was reached; carries the best ``.estimate``.
    ValueError
        If `method` is not a name in the list, or does not apply to this tally's mechanisms.

    Notes
    -----
    All methods but the closed form and `ibu` follow the central path of a primal-dual interior
    point that keeps both linear maps of the optimality conditions exact, but they differ in how
    they solve for its steps; at the end they put exact zeros where the maximiser has no mass. A
    matrix is first given to constrained Newton steps with non-negative least squares [wang]_ if it
    has at most 32 secrets, or if `tol` is at most 1e-4. These steps are quicker where few secrets
    have mass and no other maximiser exists. If `tol` is at most 1e-6, three other methods come
    before the path. One takes quasi-Newton steps [byrd]_, which find the zeros where the channel
    separates the secrets well. It is tried if there are at least 100 secrets, the matrix has at
    least 30,000 entries, and there are at most as many secrets as reports (at most twice as many if
    the matrix has at least two million entries). Another takes a few accelerated updates, then
    Newton steps for the equations :math:`g_x=1`, where :math:`g_x=\sum_z q_z M_{xz}/(\theta M)_z`
    with q the frequencies of the reports; it is quicker where every secret has mass, and is the
    first of the three to be tried if there are more than twice as many secrets as reports. The
    third, for tallies that may have several maximisers, is the path among the secrets that may have
    mass, if these are few of many. Each method gives up where it gains too little. If `tol` is
    above 1e-6, "dense" gives zeros where the certificate allows them. Where a solver misses `tol`,
    "auto" goes on to the next one that applies.

    Sums over many reports or cells run on one thread, and on n threads inside
    ``with scipy.fft.set_workers(n)``; the digits are the same. On two cores a million rows of bits
    gain a factor of 1.7, but smaller problems gain nothing: see ``benchmarks/README.md``.

    References
    ----------
    .. [mehrotra] Mehrotra, "On the implementation of a primal-dual interior point method", SIAM J.
       Optim. 2, 1992.
    .. [lindsay] Lindsay, "The geometry of mixture likelihoods", Annals of Statistics 11, 1983.
    .. [wang] Wang, "On fast computation of the non-parametric maximum likelihood estimate of a
       mixing distribution", J. R. Statist. Soc. B 69, 2007 (active sets).
    .. [byrd] Byrd, Lu, Nocedal and Zhu, "A limited memory algorithm for bound constrained
       optimization", SIAM J. Sci. Comput. 16, 1995.

    Examples
    --------
    >>> import ibukit as ik
    >>> tally = ik.RandomizedResponse(3, epsilon=1.0).tally_counts([60, 30, 10])
    >>> estimate = ik.mle(tally)
    >>> estimate.distribution.round(4), estimate.gap < 1e-9
    (array([0.8607, 0.1393, 0.    ]), True)
    >>> estimate.method
    'mle, closed form by water-filling: k-RR, k = 3'
    """
    if isinstance(tally, TallyGroups):

        def each(one: Tally) -> Estimate:
            return mle(one, tol, method, strict=strict)

        return (
            mle_of_groups(tally, arguments.positive("tol", tol), each)
            if method == "auto"
            else each_group(tally, each)
        )
    check_tally(tally, lossy=True, weighted=True)
    tol = arguments.positive("tol", tol)
    problem = Problem(tally.operator, tally.counts, tally.n)
    theta, solver, how, n_iter, log_likelihood, gap = best_found(problem, tol, method)
    # The closed form has no iteration whose end could be missed.
    closed = Status.CLOSED_FORM if solver.name == "closed-form" else Status.CONVERGED
    status = closed if gap <= tol else Status.MAX_ITER
    best = certified(tally, theta, status, n_iter, f"mle, {how}", (log_likelihood, gap))
    if arguments.flag("strict", strict) and gap > tol:
        raise ConvergenceError(
            f"tol={tol:g} was not certified: the best gap is {gap:.3g} after {n_iter} steps of "
            f"{best.method}; take a larger tol, or strict=False for the best estimate with the "
            "gap that it has",
            best,
        )
    return best
