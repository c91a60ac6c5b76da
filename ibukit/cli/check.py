"""``ibukit check``: privacy level of a mechanism, and identifiability of the distribution."""

from __future__ import annotations

import argparse

from ibukit._ground.arguments import shown
from ibukit.cli.models import mechanism_of
from ibukit.domain.alphabet import Line
from ibukit.domain.grid import Grid
from ibukit.identification.identifiability import identifiable
from ibukit.privacy import epsilon_ldp, epsilon_metric


def run(options: argparse.Namespace) -> None:
    """Print the properties of a mechanism, one on each line."""
    mechanism = mechanism_of(options)
    # A mechanism with infinitely many reports is replaced by one that has the same information and
    # whose reports can be listed.
    listed = mechanism.as_finite()
    answer = identifiable(mechanism)
    print(f"secrets: {mechanism.k}")
    print(f"reports: {shown(listed.m)}")
    print(f"epsilon, for any two secrets: {epsilon_ldp(listed):.6g} nats")
    # Labels are all at the same distance, so they have no second level.
    if isinstance(mechanism.alphabet, (Line, Grid)):
        unit = mechanism.alphabet.unit or "unit of distance"
        print(f"epsilon, per {unit}: {epsilon_metric(listed):.6g} nats")
    print(f"identifiable: {'yes' if answer else 'no'} ({answer.reason})")
    # With thousands of bits the values lie below the smallest double.
    if answer and answer.singular_values[-1] > 0:
        largest, smallest = answer.singular_values[0], answer.singular_values[-1]
        print(
            f"singular values: {largest:.6g} to {smallest:.6g}, condition {largest / smallest:.6g}"
        )
