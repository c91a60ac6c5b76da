"""PRIVIC: collect reports in cycles, each through the mechanism that the last estimate calls for."""
