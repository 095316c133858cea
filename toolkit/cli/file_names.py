"""File names for the results of nodes, whatever the nodes are called."""

import re
from collections.abc import Collection

# Leaves room for a suffix, and for the name of a partial file; systems allow 255 bytes.
MAX_BYTES = 200
# Separators, wildcards and shell characters of the common systems.
_UNSAFE = re.compile(r'[\x00-\x1f\x7f-\x9f\u2028\u2029<>:"/\\|?*]')
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?$")


def make_file_stem(name: str, taken: Collection[str] = ()) -> str:
    """Make the stem of a file's name from any name; a name is never a path.

    Args:
        name: any name, such as a node's.
        taken: stems of other files, in lower case: some systems ignore case.

    >>> make_file_stem("../a b/c:d"), make_file_stem("copy")
    ('_a b_c_d', 'copy')
    >>> make_file_stem("Copy", {"copy"}), make_file_stem("..")
    ('Copy-2', 'file')
    """
    stem = _truncate(_UNSAFE.sub("_", name).strip(". "), MAX_BYTES).rstrip(". ") or "file"
    stem = f"_{stem}" if _RESERVED.match(stem) else stem
    unique, n = stem, 2
    while unique.lower() in taken:
        unique, n = f"{stem}-{n}", n + 1
    return unique


def _truncate(text: str, size: int) -> str:
    """Cut a text to so many bytes of UTF-8, between two characters."""
    return text.encode("utf-8", "replace")[:size].decode("utf-8", "ignore")
