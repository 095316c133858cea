"""The paths of the simulated wires, and the wires that each vendor has."""

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
    "encyclopedia": "/encyclopedia",
}
"""Where each wire is mounted; below it, paths are the vendor's own, `/v1` or `/v2` included."""

COMPATIBLE_WIRES = frozenset({"openai"})
"""The wires that can be mounted for other vendors, too."""

ALL_VENDORS = "*"
MAIN_WIRE_SUFFIX = "-api"  # after a vendor's name: its main wire only, if it has several


@dataclass(frozen=True, slots=True)
class CompatibleVendor:
    """A vendor that the cloud learns of as it is opened: it speaks a wire that the cloud knows.

    Attributes:
        id: the vendor's id, by which faults and the log of calls name it.
        wire: one of `COMPATIBLE_WIRES`.
        key: the one that it accepts.
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
        """The path that it is mounted at."""
        return f"/{self.id}"


def list_names(compatible: tuple[str, ...] = ()) -> list[str]:
    """List every name that faults can be set for: vendors, and the single wires of one.

    Args:
        compatible: the vendors that the cloud learned of as it was opened.

    >>> [name for name in list_names() if name.startswith("runpod")]
    ['runpod', 'runpod-jobs', 'runpod-pods', 'runpod-images', 'runpod-api']
    """
    main = [
        f"{name}{MAIN_WIRE_SUFFIX}" for name in VENDOR_PATHS if len(_find_vendor_wires(name)) > 1
    ]
    return [*VENDOR_PATHS, *compatible, *main]


@cache
def find_wires(name: str, compatible: tuple[str, ...] = ()) -> frozenset[str]:
    """Find the wires that a name stands for: all of a vendor's, or one.

    Args:
        name: a vendor, a wire, or `*`.
        compatible: the vendors that the cloud learned of as it was opened.

    Raises:
        ValueError: for a name that no vendor and no wire has; it tells those there are.
    """
    if name == ALL_VENDORS:
        return frozenset((*VENDOR_PATHS, *compatible))
    if name in compatible:
        return frozenset({name})
    known = list_names(compatible)
    if name in known:
        main = name.removesuffix(MAIN_WIRE_SUFFIX)
        return frozenset({main}) if main != name else _find_vendor_wires(name)
    close = get_close_matches(str(name).lower(), known, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise ValueError(
        f"vendor cannot be {name!r}.{hint} It is one of {', '.join(known)}, or '*' for all."
    )


def _find_vendor_wires(name: str) -> frozenset[str]:
    return frozenset(wire for wire in VENDOR_PATHS if wire == name or wire.startswith(f"{name}-"))
