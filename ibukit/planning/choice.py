"""Reports through mechanisms that people choose, as reports of one mechanism."""

from __future__ import annotations

from typing import Any

import numpy as np

from ibukit.mechanisms import FreeWill, MatrixMechanism
from ibukit.mechanisms.surveys import TwoSampleDesign
from ibukit.planning.dense import check_matrix_size
from ibukit.planning.variance_models import as_listed


def with_choice(mechanism: Any) -> Any:
    """Return `FreeWill` as one mechanism, whose reports say what they came through.

    Its matrix has the matrices of the mechanisms, times their shares, side by side. A survey design
    with two samples is treated in the same way, with half of the people in each sample. Anything
    else is returned as it is.

    Examples
    --------
    >>> import ibukit as ik
    >>> careful, careless = (ik.RandomizedResponse(3, epsilon) for epsilon in (1.0, 3.0))
    >>> with_choice(FreeWill([careful, careless], [0.75, 0.25])).matrix().round(2)
    array([[0.43, 0.16, 0.16, 0.23, 0.01, 0.01],
           [0.16, 0.43, 0.16, 0.01, 0.23, 0.01],
           [0.16, 0.16, 0.43, 0.01, 0.01, 0.23]])
    """
    if isinstance(mechanism, TwoSampleDesign):
        mechanism = FreeWill(mechanism.samples, [0.5, 0.5])
    if not isinstance(mechanism, FreeWill):
        return mechanism
    listed = [as_listed(each) for each in mechanism.mechanisms]
    check_matrix_size(listed[0].k, sum(each.m for each in listed))
    matrices = [share * each.matrix() for share, each in zip(mechanism.shares, listed, strict=True)]
    return MatrixMechanism(np.hstack(matrices), mechanism.alphabet)
