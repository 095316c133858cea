"""Observability for the operator of a server: log lines, metrics and traces, by one interface.

`toolkit serve` sets this up; an embedded engine has none of it and stays silent.
"""

from toolkit.observability.setup import ObservabilityOptions, ServerObserver, observe_server

__all__ = ["ObservabilityOptions", "ServerObserver", "observe_server"]
