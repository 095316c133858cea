"""The constructions of a language by which acts are asked for that nothing here does.

Each language has at most one file, `frames/<code>.toml`, with classes of words and, by what would
be needed, expressions in which `<class>` stands for a word of one.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import cast

_NAME = r"(?-i:[A-Z][\w'’-]+)"
_WHOSE = rf"(?:my|our|his|her|their|every|each|the|{_NAME}(?: {_NAME})?['’]s?|\w+ \w+s['’])"
# Who something is sent to or done for, besides who asks.
_WHO = (
    rf"(?:him|her|them|everyone|everybody|(?:my|our|his|her|their|the|all|both|every|each)"
    rf"(?: [\w'’-]+){{1,3}}?|(?:(?:Mr|Mrs|Ms|Dr)\.? )?{_NAME}(?: {_NAME})?)"
)
_PLACE = re.compile(r"<(\w+)>")


@dataclass(frozen=True, slots=True)
class Frame:
    """The expression of what needs one capability.

    Attributes:
        key: of the capability, as the lexicon has it.
        pattern: what is matched where a request can begin.
        is_told: whether it says something to somebody, which a text could do as well.
    """

    key: str
    pattern: re.Pattern[str]
    is_told: bool


@cache
def load_frames(code: str) -> tuple[Frame, ...]:
    """Load the expressions of a language; none where it has no file.

    Example:
        >>> [one.key for one in load_frames("en") if one.pattern.match("shoot Ann a message")]
        ['send']
    """
    source = resources.files(__package__) / "frames" / f"{code}.toml"
    if not source.is_file():
        return ()
    data = tomllib.loads(source.read_text(encoding="utf-8"))
    classes = {"name": _NAME, "whose": _WHOSE, "who": _WHO, "it": "(?:it|them|this|that|these)"}
    for name, words in cast("dict[str, str]", data["classes"]).items():
        classes[name] = f"(?:{'|'.join(words.split())})"
    classes["person"] = f"(?:him|her|them|everyone|everybody|{_WHOSE} {classes['kin']}|{_NAME})"
    return tuple(
        Frame(key, _compile(lines, classes), is_told=section == "told")
        for section in ("frames", "told")
        for key, lines in cast("dict[str, str]", data[section]).items()
    )


def _compile(lines: str, classes: Mapping[str, str]) -> re.Pattern[str]:
    filled = (_PLACE.sub(lambda found: classes[found[1]], one) for one in lines.split("\n") if one)
    return re.compile("|".join(f"(?:{one})" for one in filled), re.IGNORECASE)
