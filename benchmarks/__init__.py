"""Time and memory of `ibukit.mle` beside its peers and by the problem's size: see README.md."""
