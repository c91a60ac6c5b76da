"""Matrix inversion: unbiased, O(k) where the inverse is known, and rarely a distribution."""

from __future__ import annotations

from typing import Literal

import numpy as np

from ibukit.distributions import normalize, project_to_simplex
from ibukit.errors import InvalidDistribution
from ibukit.estimate import Estimate, Status
from ibukit.estimators.certificate import certified_on_or_off_simplex
from ibukit.mechanisms.base import single_part
from ibukit.tally import Tally

NAMES = {"none": "INV", "normalize": "INV-N", "project": "INV-P"}


def inv(tally: Tally, post: Literal["none", "normalize", "project"] = "project") -> Estimate:
    """Matrix inversion: v = q M^-1, then INV-N, INV-P or nothing.

    v is the unbiased estimate of the secrets' distribution: E[v M] = theta M. It can have negative entries. INV-N sets
    these to 0 and rescales; INV-P takes the nearest point of the simplex, argmin ||p - v||_2.

    Parameters
    ----------
    tally : Tally
        Of one mechanism. For unary encodings (RAPPOR, OUE) and subset selection v is each bit's debiased frequency.
    post : {"none", "normalize", "project"}
        Raw INV, INV-N or INV-P.

    Returns
    -------
    Estimate
        ``status`` CLOSED_FORM; for raw INV off the simplex OFF_SIMPLEX, and then ``gap`` is inf.

    Raises
    ------
    NotInvertible
        If the rows of the channel matrix are numerically dependent, or the mechanism's reports cannot be listed.
    InvalidDistribution
        If INV-N is asked for and v has no positive component (RAPPOR with few reports).
    ValueError
        If `post` is unknown or the tally pools several mechanisms.

    References
    ----------
    .. [kairouz] Kairouz, Bonawitz and Ramage, "Discrete distribution estimation under local privacy", ICML 2016.
    .. [consistency] ElSalamouny and Palamidessi, arXiv:2508.09980, section 7.

    Examples
    --------
    >>> import ibukit as ik
    >>> tally = ik.RandomizedResponse(3, epsilon=1.0).tally_counts([60, 30, 10])
    >>> ik.inv(tally, post="none").distribution.round(4)
    array([ 1.0656,  0.2418, -0.3074])
    >>> ik.inv(tally).distribution.round(4)
    array([0.9119, 0.0881, 0.    ])
    """
    if post not in NAMES:
        raise ValueError(f'post must be "none", "normalize" or "project", got {post!r}')
    part = single_part(tally)
    v = part.mechanism.invert(part.reports, tally.frequencies)
    if post == "normalize":
        if not (v > 0).any():
            raise InvalidDistribution("INV has no positive component, so INV-N is not defined; use post='project'")
        v = normalize(np.maximum(v, 0))
    elif post == "project":
        v = project_to_simplex(v)
    return certified_on_or_off_simplex(tally, v, Status.CLOSED_FORM, 0, NAMES[post])
