"""Ports for servers that are told theirs before they start."""

import os
import random
import socket
from pathlib import Path

RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
FIRST, WORKERS = 20_000, 16
_given_ports: set[int] = set()


def free_port() -> int:
    """Find a port that nobody listens on, and that nobody else comes to listen on meanwhile.

    It lies below those that the system hands out, to kernels and to outgoing connections alike,
    and among those of this worker of the test run; no port is given twice.
    """
    first_of_system = int(RANGE.read_text().split()[0]) if RANGE.exists() else 32_768
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % WORKERS
    own = list(range(FIRST + worker, first_of_system, WORKERS))
    random.SystemRandom().shuffle(own)  # another run on this machine begins elsewhere
    for port in own:
        if port not in _given_ports and _is_free(port):
            _given_ports.add(port)
            return port
    raise OSError("No port is free.")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
