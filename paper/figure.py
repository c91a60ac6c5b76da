"""Draw the figure of the paper: ages true, reported and reconstructed, as on the landing page.

python paper/figure.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray

import ibukit as ik

EPSILON, SEED = 0.05, 1  # per year; those of the landing page of the book


def curves() -> dict[str, NDArray[np.float64]]:
    """Distributions of the ages, of their reports and of the estimate."""
    ages = ik.datasets.load_adult_ages()
    mechanism = ik.TruncatedGeometric(ages.alphabet, EPSILON)
    secrets = np.repeat(ages.alphabet.values, ages.counts)
    tally = mechanism.tally(mechanism.randomize(secrets, np.random.default_rng(SEED)))
    return {
        "true ages": ages.distribution,
        "reports": tally.counts / tally.n,
        "smooth": ik.smooth(tally).distribution,
    }


def draw(path: Path) -> None:
    """Write the figure as a PNG file."""
    mpl.use("agg")
    import matplotlib.pyplot as plt

    from ibukit import plotting

    alphabet = ik.datasets.load_adult_ages().alphabet
    plotting.use_style()
    figure, axes = plt.subplots(figsize=(6.4, 2.5), layout="constrained")
    plotting.distributions(alphabet, curves(), axes).set_ylim(0, 0.045)
    figure.savefig(path, dpi=160, facecolor="white", transparent=False, metadata={"Software": None})


if __name__ == "__main__":
    draw(Path(__file__).with_name("ages.png"))
