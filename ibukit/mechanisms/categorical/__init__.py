"""Mechanisms over categories: randomised response, unary encodings, subsets, Hadamard codes."""
