"""multi-freq-ldpy: its estimators on reports that are given, so nothing is drawn."""

from importlib.metadata import version

import numpy as np
from multi_freq_ldpy.estimators.Histogram_estimator import IBU
from multi_freq_ldpy.long_freq_est.L_GRR import L_GRR_Aggregator_IBU, L_GRR_Aggregator_MI
from multi_freq_ldpy.long_freq_est.L_OSUE import L_OSUE_Aggregator_MI
from multi_freq_ldpy.long_freq_est.Variance_LONG_PURE import VAR_Long_Pure
from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_IBU, GRR_Aggregator_MI
from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Aggregator_MI
from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_IBU, UE_Aggregator_MI

from foreign.inputs import BITS, EPSILON, REPORTS, SECRETS, SUBSET, TWO, TWO_FREQUENCIES
from foreign.record import write

subsets = [[(i + j) % SECRETS for j in range(SUBSET)] for i in REPORTS]
p2, q1 = (np.e**3 - 1) / ((np.e + 1) * (np.e**2 - 1)), 1 / (np.e**2 + 1)
write(
    "multi_freq_ldpy",
    "multi-freq-ldpy",
    version("multi-freq-ldpy"),
    {
        "GRR MI": GRR_Aggregator_MI(REPORTS, SECRETS, EPSILON),
        "GRR IBU": GRR_Aggregator_IBU(REPORTS, SECRETS, EPSILON),
        "SUE MI": UE_Aggregator_MI(BITS, EPSILON, optimal=False),
        "OUE MI": UE_Aggregator_MI(BITS, EPSILON, optimal=True),
        "OUE IBU": UE_Aggregator_IBU(BITS, SECRETS, EPSILON, optimal=True),
        "SS MI": SS_Aggregator_MI(subsets, SECRETS, EPSILON),
        "L-OSUE MI": L_OSUE_Aggregator_MI(BITS, 2 * EPSILON, EPSILON),
        "L-GRR MI": L_GRR_Aggregator_MI(REPORTS, SECRETS, 2 * EPSILON, EPSILON),
        "L-GRR IBU": L_GRR_Aggregator_IBU(REPORTS, SECRETS, 2 * EPSILON, EPSILON),
        "IBU of a matrix that is not symmetric": IBU(
            2, TWO, TWO_FREQUENCIES, 10_000, 1e-12, "max_abs"
        ),
        "VAR_Long_Pure at 0": VAR_Long_Pure(1 / 2, q1, p2, 1 - p2, f=0),
        "VAR_Long_Pure at 1": VAR_Long_Pure(1 / 2, q1, p2, 1 - p2, f=1),
    },
)
