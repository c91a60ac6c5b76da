"""``ibukit check``: how private a mechanism is, and whether its reports identify the distribution."""

from __future__ import annotations

import argparse

from ibukit.cli.models import mechanism_of
from ibukit.identification import identifiable
from ibukit.privacy import epsilon_ldp, epsilon_metric


def run(options: argparse.Namespace) -> None:
    """Print one fact a line."""
    mechanism = mechanism_of(options)
    listed = mechanism.as_finite()
    unit = mechanism.alphabet.unit or "unit of distance"
    found = identifiable(mechanism)
    print(f"secrets: {mechanism.k}")
    print(f"reports: {listed.m}")
    print(f"epsilon, for any two secrets: {epsilon_ldp(listed):.6g} nats")
    print(f"epsilon, per {unit}: {epsilon_metric(listed):.6g} nats")
    print(f"identifiable: {'yes' if found else 'no'} ({found.reason})")
    if found:
        largest, smallest = found.singular_values[0], found.singular_values[-1]
        print(
            f"singular values: {largest:.6g} to {smallest:.6g}, condition {largest / smallest:.6g}"
        )
