"""Ports for servers that need to know their port before they start."""

import os
import random
import socket
from pathlib import Path

RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
FIRST, WORKERS = 20_000, 16
_given_ports: set[int] = set()


def free_port() -> int:
    """Find a free port that no other program will use meanwhile.

    It is below the ports that the system assigns to kernels and outgoing connections, and in the
    range of this worker of the test run; no port is returned twice.
    """
    first_of_system = int(RANGE.read_text().split()[0]) if RANGE.exists() else 32_768
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % WORKERS
    ports = list(range(FIRST + worker, first_of_system, WORKERS))
    random.SystemRandom().shuffle(ports)  # another run on this machine begins with other ports
    for port in ports:
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
