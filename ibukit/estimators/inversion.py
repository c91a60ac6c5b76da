"""`inv`: matrix inversion, unbiased, O(k) with a known inverse, and seldom on the simplex."""

from __future__ import annotations

from typing import Any, Literal, overload

from ibukit._ground import arguments
from ibukit.estimate import Estimate, Status
from ibukit.estimate.estimate_groups import EstimateGroups
from ibukit.estimators._post_processing import POST
from ibukit.estimators.certificate import certified_on_or_off_simplex
from ibukit.estimators.groups import each_group
from ibukit.tally.likelihood_rows import require_law
from ibukit.tally.tally import Tally, single_part
from ibukit.tally.tally_groups import TallyGroups

# The names that `Estimate.method` gives to inversion and its post-processing.
NAMES = {name for name, _ in POST.values()}

Post = Literal[
    "none", "normalize", "project", "norm-mul", "norm-sub", "base-pos", "norm", "norm-cut"
]


@overload
def inv(tally: Tally, post: Post = ...) -> Estimate: ...


@overload
def inv(tally: TallyGroups, post: Post = ...) -> EstimateGroups: ...


def inv(tally: Tally | TallyGroups, post: Post = "project") -> Estimate | EstimateGroups:
    r"""Matrix inversion: :math:`v=q\,M^{-1}`, then INV-N, INV-P or another repair.

    v is the unbiased estimate of the secrets' distribution: :math:`\mathbb E[vM]=\theta M`. It can
    have negative entries. INV-N sets these to 0 and rescales; INV-P takes the nearest point of the
    simplex, :math:`\arg\min_p\lVert p-v\rVert_2`.

    Parameters
    ----------
    tally : Tally
        Of one mechanism. For unary encodings (RAPPOR, OUE) and subset selection v is each bit's
        debiased frequency.
    post : str
        Post-processing of v:

        - "none": no post-processing, which is raw INV;
        - "normalize" or "norm-mul": INV-N, negative entries set to 0 and the rest divided by its
          sum;
        - "project" or "norm-sub": INV-P, which subtracts one number from all entries and sets to 0
          those that are then negative;
        - "base-pos": negative entries set to 0, and nothing else changed;
        - "norm": the same number added to all entries, so that they sum to 1;
        - "norm-cut": the largest entries, up to and including the one at which their sum reaches 1,
          divided by their sum; the others set to 0.

    Returns
    -------
    Estimate
        ``status`` is CLOSED_FORM. Where "none", "base-pos" or "norm" do not leave a distribution,
        it is OFF_SIMPLEX, and ``gap`` is inf.

    Raises
    ------
    NotInvertible
        If the rows of the channel matrix are numerically dependent, or the mechanism has neither a
        matrix nor an estimator of its own.
    WeightsRefused
        If reports are weighted.
    InvalidDistribution
        If INV-N or Norm-Cut is asked for and v has no positive component (RAPPOR with few reports).
    ValueError
        If `post` is unknown or the tally pools several mechanisms.

    References
    ----------
    .. [kairouz] Kairouz, Bonawitz and Ramage, "Discrete distribution estimation under local
       privacy", ICML 2016.
    .. [consistency] ElSalamouny and Palamidessi, arXiv:2508.09980, section 7.
    .. [postprocessing] Wang et al., "Locally differentially private frequency estimation with
       consistency", NDSS 2020 (the names Base-Pos, Norm, Norm-Mul, Norm-Sub, Norm-Cut; its programs
       treat the last entry of Norm-Cut in two ways, of which this is one).

    Examples
    --------
    >>> import ibukit as ik
    >>> tally = ik.RandomizedResponse(3, epsilon=1.0).tally_counts([60, 30, 10])
    >>> ik.inv(tally, post="none").distribution.round(4)
    array([ 1.0656,  0.2418, -0.3074])
    >>> ik.inv(tally).distribution.round(4)
    array([0.9119, 0.0881, 0.    ])
    """
    if isinstance(tally, TallyGroups):
        return each_group(tally, lambda one: inv(one, post))
    if not arguments.is_one_of(post, POST):
        raise ValueError(f"post must be one of {', '.join(map(repr, POST))}, got {post!r}")
    part = single_part(tally)
    name, processed = POST[post]
    mechanism: Any = part.mechanism
    require_law([mechanism], "an inverse")
    v = processed(mechanism.invert(part.reports, tally.frequencies))
    return certified_on_or_off_simplex(tally, v, Status.CLOSED_FORM, 0, name)
