"""The paths of the simulated wires, and the wires that each vendor has."""

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

ALL_VENDORS = "*"
MAIN_WIRE_SUFFIX = "-api"  # after a vendor's name: its main wire only, if it has several


def list_names() -> list[str]:
    """List every name that faults can be set for: vendors, and the single wires of one.

    >>> [name for name in list_names() if name.startswith("runpod")]
    ['runpod', 'runpod-jobs', 'runpod-pods', 'runpod-images', 'runpod-api']
    """
    main = [
        f"{name}{MAIN_WIRE_SUFFIX}" for name in VENDOR_PATHS if len(_find_vendor_wires(name)) > 1
    ]
    return [*VENDOR_PATHS, *main]


@cache
def find_wires(name: str) -> frozenset[str]:
    """Find the wires that a name stands for: all of a vendor's, or one.

    Raises:
        ValueError: for a name that no vendor and no wire has; it tells those there are.
    """
    if name == ALL_VENDORS:
        return frozenset(VENDOR_PATHS)
    known = list_names()
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
