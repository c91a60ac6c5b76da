"""What reports determine of a distribution, for any estimator: ranks, null spaces and polytopes.

The public names are those of `ibukit.theory`.
"""
