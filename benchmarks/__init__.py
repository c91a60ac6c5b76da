"""Time and memory of `ibukit.mle` beside its peers,
and against the size of the problem; see README.md.
"""
