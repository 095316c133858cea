"""Finds which process is at the other end of a connection on loopback, by /proc."""

import os
from contextlib import suppress
from pathlib import Path

TABLE = Path("/proc/net/tcp")
LOOPBACK = "0100007F"
NOBODY = "0"  # the inode of a connection that no process has open any more


class ConnectionOwners:
    """Knows the processes that have connections here.

    Args:
        port: where they are connected to.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._owners: dict[str, str] = {}

    def find_owner(self, port: int) -> str:
        """Find the process whose end of a connection is a port; empty where it has died by now."""
        ends = [f"{LOOPBACK}:{port:04X}", f"{LOOPBACK}:{self._port:04X}"]
        lines = [line.split() for line in TABLE.read_text().splitlines()]
        inode = next((fields[9] for fields in lines if fields[1:3] == ends), NOBODY)
        if inode != NOBODY and not self._owners.get(inode):
            self._owners[inode] = _find_holder(f"socket:[{inode}]")
        return self._owners.get(inode, "")


def _find_holder(socket: str) -> str:
    """Find the process that has a socket open."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is another user's
            if any(_is_link_to(socket, one) for one in (folder / "fd").iterdir()):
                return folder.name
    return ""


def _is_link_to(target: str, path: Path) -> bool:
    try:
        return os.readlink(path) == target
    except OSError:  # closed meanwhile
        return False
