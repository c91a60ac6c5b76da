"""PyUnfold: D'Agostini's unfolding from a flat start, by its default rule,
with its statistical errors.
"""

from importlib.metadata import version

import numpy as np
from pyunfold import iterative_unfold

from foreign.inputs import COUNTS, LINE_COUNTS, LINE_MATRIX, MATRIX
from foreign.record import write


def unfolded(matrix, counts, **how):
    k = len(matrix)
    found = iterative_unfold(
        data=counts,
        data_err=np.sqrt(counts),
        response=matrix.T,
        response_err=np.zeros_like(matrix.T),
        efficiencies=np.ones(k),
        efficiencies_err=np.zeros(k),
        **how,
    )
    kept = ("unfolded", "stat_err", "num_iterations", "ts_iter", "ts_stopping")
    return {key: found[key] for key in kept if key in found}


answers = {"small": unfolded(MATRIX, COUNTS), "line": unfolded(LINE_MATRIX, LINE_COUNTS)}
# its rule is a test of equal distributions; 0 keeps it from stopping
answers["line, 25 steps"] = unfolded(LINE_MATRIX, LINE_COUNTS, ts_stopping=0.0, max_iter=25)
write("pyunfold", "PyUnfold", version("pyunfold"), answers)
