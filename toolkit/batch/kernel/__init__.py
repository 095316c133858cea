"""Kernels that are prepared ahead of need: their pool, and the processes they come from."""
