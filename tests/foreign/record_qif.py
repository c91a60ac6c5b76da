"""qif: its IBU by its own rule and to the end, its matrices and measures,
and its optimal mechanism.
"""

from importlib.metadata import version

from qif import channel, measure, mechanism

from foreign.inputs import (
    ANY,
    COUNTS,
    EPSILON,
    HEIGHT,
    LINE,
    LINE_COUNTS,
    LINE_EPSILON,
    LINE_MATRIX,
    MATRIX,
    SECRETS,
    SIX,
    WIDTH,
)
from foreign.record import write


def ibu(matrix, counts, **how):
    theta, steps = channel.iterative_bayesian_update(matrix, counts / counts.sum(), **how)
    return {"theta": theta, "steps": steps}


write(
    "qif",
    "qif",
    version("qif"),
    {
        "small": ibu(MATRIX, COUNTS),
        "small, 50 steps": ibu(MATRIX, COUNTS, max_diff=0.0, max_iter=50),
        "line": ibu(LINE_MATRIX, LINE_COUNTS),
        "line, 50 steps": ibu(LINE_MATRIX, LINE_COUNTS, max_diff=0.0, max_iter=50),
        "geometric": mechanism.d_privacy.geometric(LINE, LINE_EPSILON),
        "randomized_response": mechanism.d_privacy.randomized_response(SECRETS, EPSILON),
        "exponential": mechanism.d_privacy.exponential(SECRETS, lambda x, y: EPSILON * abs(x - y)),
        "tight_constraints": mechanism.d_privacy.tight_constraints(
            SECRETS, lambda x, y: EPSILON * abs(x - y)
        ),
        "planar, 3 x 3": mechanism.geo_ind.planar_geometric_grid(HEIGHT, HEIGHT, 1.0, EPSILON),
        "planar, 3 wide": mechanism.geo_ind.planar_geometric_grid(HEIGHT, WIDTH, 1.0, EPSILON),
        "planar, 4 wide": mechanism.geo_ind.planar_geometric_grid(WIDTH, HEIGHT, 1.0, EPSILON),
        "bayes_vuln": measure.bayes_vuln.posterior(ANY, MATRIX),
        "mutual information in bits": measure.shannon.add_leakage(ANY, MATRIX),
        "min_loss_given_d": mechanism.d_privacy.min_loss_given_d(
            SIX, SECRETS, lambda x, y: 0.7 * abs(x - y), lambda x, y: abs(x - y)
        ),
    },
)
