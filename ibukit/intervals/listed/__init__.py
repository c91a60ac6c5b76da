"""Tests of likelihood ratios against drawn tallies, where all possible reports can be listed."""
