"""mixsqp, in R: the maximum likelihood of both instances
by its default control and by a tight one.
"""

import subprocess

import numpy as np

from foreign.inputs import COUNTS, LINE_COUNTS, LINE_MATRIX, MATRIX
from foreign.record import write

CONTROLS = {
    "": "",
    ", tight": "tol.svd = 0, eps = 1e-12, convtol.sqp = 1e-12, zero.threshold.solution = 1e-12, ",
}


def r(program):
    """What Rscript prints for a program."""
    done = subprocess.run(["Rscript", "-e", program], capture_output=True, text=True, check=True)
    return done.stdout


def vector(values):
    return f"c({', '.join(repr(float(value)) for value in np.ravel(values))})"


def fitted(matrix, counts, control):
    text = r(
        f"library(mixsqp); L <- matrix({vector(matrix)}, {matrix.shape[1]}, {matrix.shape[0]});"
        f"fit <- mixsqp(L, {vector(counts)}, control = list({control}verbose = FALSE));"
        'cat(fit$status, "\\n", sprintf("%.17g ", fit$x))'
    )
    status, numbers = text.split("\n", 1)
    return {"theta": np.array(numbers.split(), dtype=float), "status": status.strip()}


answers = {"R": r("cat(format(getRversion()))")}
for name, matrix, counts in (("small", MATRIX, COUNTS), ("line", LINE_MATRIX, LINE_COUNTS)):
    answers |= {
        name + suffix: fitted(matrix, counts, control) for suffix, control in CONTROLS.items()
    }
write("mixsqp", "mixsqp", r('cat(packageDescription("mixsqp")$Version)'), answers)
