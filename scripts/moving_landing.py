"""The moving figure of the landing page: ages, their reports, and what the smoother makes of it."""

from __future__ import annotations

from typing import Any

import numpy as np

import ibukit as ik
from moving_ages import LEVELS, curve, epsilon_control, hump_panel, reports_of_ages
from moving_parts import plain, rounded, table


def ages_reconstructed() -> dict[str, Any]:
    """The figure of the landing page: the ages, the reports, and what the smoother makes of them.

    The smoother reads the reports and the mechanism only, so the truth has no part in its curve.
    """
    ages = ik.datasets.load_adult_ages()
    told, curves, emds, raw = [], [], [], []
    for level in LEVELS:
        mechanism, reports = reports_of_ages(level)
        secrets = np.repeat(np.arange(100), ages.counts)
        estimate = ik.smooth(mechanism.tally(reports))
        told.append(rounded(np.bincount(reports, minlength=100) / ages.n))
        curves.append(rounded(estimate.distribution))
        raw.append(plain(float(np.abs(reports - secrets).mean())))
        emds.append(f"{ik.emd(estimate.distribution, ages.distribution, ages.alphabet):.2f}")
    panel = hump_panel(told, "Pink")
    panel["marks"].append(curve("smooth", "estimate", table("epsilon", curves)))
    return {
        "title": "The ages: what the reports say together",
        "controls": [epsilon_control()],
        "panels": [panel],
        "said": {
            "text": (
                "With ε = {epsilon} one report is off by {raw} years on average, and the estimate"
                " from all reports by {emd} years (EMD)."
            ),
            "values": {"raw": table("epsilon", raw), "emd": table("epsilon", emds)},
        },
    }
