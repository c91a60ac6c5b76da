"""Wald's intervals: the estimate -+ standard errors."""

from __future__ import annotations

import numpy as np

from ibukit.domain.linear_functionals import normal_quantile
from ibukit.intervals.request import Asked, Ends


def wald(asked: Asked) -> Ends:
    """W . theta -+ z standard errors, cut at what any distribution can have."""
    questions = asked.questions
    margin = normal_quantile(asked.level) * asked.estimate.standard_errors(
        questions.weights, asked.target
    )
    middle = questions.values(asked.estimate.distribution)
    return np.maximum(middle - margin, questions.least), np.minimum(middle + margin, questions.most)
