"""Draw the figure of the paper: ages true, reported and reconstructed.

python paper/figure.py
"""

from pathlib import Path

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt
import numpy as np

import ibukit as ik
from ibukit import plotting

EPSILON, SEED = 0.05, 1  # nats a year

ages = ik.datasets.load_adult_ages()
mechanism = ik.TruncatedGeometric(ages.alphabet, EPSILON)
tally = mechanism.simulate(ages.counts, rng=np.random.default_rng(SEED))
curves = {
    "true ages": ages.distribution,
    "reports": tally.counts / tally.n,
    "smooth": ik.smooth(tally),
}

plotting.use_style()
figure, axes = plt.subplots(figsize=(6.4, 2.5), layout="constrained")
plotting.distributions(ages.alphabet, curves, axes).set_ylim(0, 0.045)
figure.savefig(
    Path(__file__).with_name("ages.png"),
    dpi=160,
    facecolor="white",
    transparent=False,
    metadata={"Software": None},
)
