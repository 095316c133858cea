"""The paths of the simulated wires, and the wires that each vendor has.

A wire is one HTTP API of a vendor. The cloud is the set of simulated wires.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache

VENDOR_PATHS: dict[str, str] = {
    "openai": "/openai",
    "anthropic": "/anthropic",
    "google": "/google",
    "minimax": "/minimax",
    "elevenlabs": "/elevenlabs",
    "aws": "/aws",
    "runpod": "/runpod",
    "runpod-jobs": "/runpod-jobs",
    "runpod-pods": "/runpod-pods",
    "runpod-images": "/runpod-images",
    "cohere": "/cohere",
    "cohere-compatible": "/cohere-compatible",
    "voyage": "/voyage",
    "encyclopedia": "/encyclopedia",
}
"""Where each wire is mounted; below it, paths are the vendor's own, `/v1` or `/v2` included."""

COMPATIBLE_WIRES = frozenset({"openai"})
"""The wires that can be mounted for other vendors, too."""


@dataclass(frozen=True, slots=True)
class CompatibleVendor:
    """An additional vendor of a cloud, which speaks a wire that the cloud knows.

    Attributes:
        id: the vendor's id in faults and in the log of calls.
        wire: a wire of `COMPATIBLE_WIRES`.
        key: the only key that the vendor accepts.
        models: the names of its models.
        base_path: the path of its own base URL, such as `/v1`.
    """

    id: str
    wire: str
    key: str
    models: tuple[str, ...]
    base_path: str = "/v1"

    def __post_init__(self) -> None:
        if self.id in VENDOR_PATHS:
            raise ValueError(f"id cannot be {self.id!r}: the cloud has a wire of that name")
        if self.wire not in COMPATIBLE_WIRES:
            raise ValueError(f"wire cannot be {self.wire!r}: {', '.join(COMPATIBLE_WIRES)} can")

    @property
    def path(self) -> str:
        """The path of its mount."""
        return f"/{self.id}"


@cache
def list_wires(compatible: tuple[str, ...] = ()) -> Mapping[str, frozenset[str]]:
    """List every name that faults (simulated failures) can be set for, with its wires.

    A vendor's name means all of its wires, and a wire's name only that wire. The name of a vendor
    with several wires, followed by `-api`, means its main wire.

    Args:
        compatible: ids of additional vendors of the cloud, which speak an API like OpenAI's.

    >>> [name for name in list_wires() if name.startswith("runpod")]
    ['runpod', 'runpod-jobs', 'runpod-pods', 'runpod-images', 'runpod-api']
    """
    wires_by_name = {
        name: frozenset(wire for wire in VENDOR_PATHS if f"{wire}-".startswith(f"{name}-"))
        for name in VENDOR_PATHS
    }
    wires_by_name |= {name: frozenset({name}) for name in compatible}
    main = {
        f"{name}-api": frozenset({name}) for name, wires in wires_by_name.items() if len(wires) > 1
    }
    return wires_by_name | main


def find_wires(name: str, compatible: tuple[str, ...] = ()) -> frozenset[str]:
    """Return the wires of a name.

    Args:
        name: a vendor, a wire, or `*`.
        compatible: ids of additional vendors of the cloud, which speak an API like OpenAI's.

    Raises:
        ValueError: no vendor or wire has the name; the message lists the known names.
    """
    wires_by_name = list_wires(compatible)
    if name == "*":
        return frozenset[str]().union(*wires_by_name.values())
    if name in wires_by_name:
        return wires_by_name[name]
    close = get_close_matches(str(name).lower(), wires_by_name, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise ValueError(
        f"vendor cannot be {name!r}.{hint} Use one of {', '.join(wires_by_name)}, or '*' for all."
    )
