"""Protocols that are in use: local hashing, Hadamard response, sketches, numbers and places."""
