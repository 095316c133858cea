"""Benchmarks. Each measures a floor in the same run; the tests only check that a benchmark runs."""
