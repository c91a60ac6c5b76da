"""Mechanisms that hash their secrets: local hashing, Bloom filters, count mean sketches."""
