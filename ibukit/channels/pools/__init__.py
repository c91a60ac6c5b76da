"""Channels of many small mechanisms of one kind, so that a pass over them is one call."""
