"""Identification: rank tests, null spaces and polytopes of equally likely distributions.

The public names are those of `ibukit.theory`.
"""
