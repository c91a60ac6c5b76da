"""Groundwork without statistics: argument checks, read-only arrays, threads, fallbacks, limits."""
