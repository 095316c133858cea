"""Safe file names for artifacts, made from names that a server, a model or a caller chose."""

import re
from collections.abc import Collection

# Leaves room for a suffix, and for the name of a partial file; systems allow 255 bytes.
MAX_BYTES = 200
# Separators, wildcards and shell characters of the common systems.
_UNSAFE = re.compile(r"""[<>:"/\\|?*$`'&;~!]""")
_PATH_PART = re.compile(r"[/\\]")
# A dot hides a file, or names a folder, and a hyphen makes an option of it.
_STRIPPED = ". -\u2010\u2011\u2012\u2013\u2014\u2212"
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?$")


def make_file_stem(name: str, other_stems: Collection[str] = ()) -> str:
    """Make the stem of a file's name from any name; a name is never a path.

    Args:
        name: any name, such as a node's.
        other_stems: stems of other files, in lower case: some systems ignore case.

    >>> make_file_stem("../a b/c:d"), make_file_stem("copy")
    ('_a b_c_d', 'copy')
    >>> make_file_stem("Copy", {"copy"}), make_file_stem("..")
    ('Copy-2', 'file')
    >>> make_file_stem(".bashrc"), make_file_stem("-rf"), make_file_stem("a\\x1b\\u202eb")
    ('bashrc', 'rf', 'a__b')
    """
    printable = "".join(c if c.isprintable() else "_" for c in name)
    clean = _UNSAFE.sub("_", printable).strip(_STRIPPED)
    stem = _truncate(clean, MAX_BYTES).rstrip(". ") or "file"
    stem = f"_{stem}" if _RESERVED.match(stem) else stem
    unique, n = stem, 2
    while unique.lower() in other_stems:
        unique, n = f"{stem}-{n}", n + 1
    return unique


def make_file_name(filename: str, media_type: str) -> str:
    """Make a file's name from the name that a server gives an artifact.

    >>> make_file_name("art_1.png", "image/png"), make_file_name("../../.bashrc", "text/plain")
    ('art_1.png', 'bashrc.txt')
    >>> make_file_name("..", "audio/mpeg"), make_file_name("C:\\\\a\\\\-rf", "a/b")
    ('file.mp3', 'rf.bin')
    """
    suffix = get_suffix(media_type)
    last = _PATH_PART.split(filename)[-1]
    return make_file_stem(last.removesuffix(suffix)) + suffix


def get_suffix(media_type: str) -> str:
    """Return the suffix of a media type; `.bin` if artifacts have no such type.

    >>> get_suffix("image/png"), get_suffix("text/html")
    ('.png', '.bin')
    """
    from toolkit.contract.artifacts import MEDIA_TYPES  # pydantic: commands start without it

    return f".{MEDIA_TYPES.get(media_type, 'bin')}"


def _truncate(text: str, size: int) -> str:
    """Cut a text to a number of bytes of UTF-8, between two characters."""
    return text.encode("utf-8", "replace")[:size].decode("utf-8", "ignore")
