"""Completion in notebooks and IPython: names inside calls, magics and YAML cells."""
