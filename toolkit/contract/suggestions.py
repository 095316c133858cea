"""Suggestions for wrong names: the only module that decides and words "did you mean".

The client uses it before it sends a request, the service when it rejects a request.
"""

from collections.abc import Iterable
from itertools import islice

MAX_ECHO = 300  # characters of a caller's own text that an answer repeats
# A caller chooses the names, so comparing must stay cheap: longer or more names are skipped.
MAX_NAME_CHARACTERS, MAX_COMPARED = 40, 64
MAX_LISTED = 16
_CUTOFF = 0.6  # difflib's own


def truncate_text(text: str, limit: int = MAX_ECHO) -> str:
    """Cut a text to the length that an answer may repeat, and mark the cut.

    >>> truncate_text("short"), truncate_text("much too long", 8)
    ('short', 'much to…')
    """
    return text if len(text) <= limit else text[: limit - 1] + "…"


def find_close_name(name: object, candidates: Iterable[str]) -> str | None:
    """Find the known name that was most likely meant. Returns None if no name is close.

    >>> names = ["llm.generate", "text.generate", "speech.generate"]
    >>> find_close_name("llm.generat", names), find_close_name("Speech", names)
    ('llm.generate', 'speech.generate')
    >>> find_close_name("video", names) is None
    True
    """
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME_CHARACTERS:
        return None
    from difflib import get_close_matches

    names = islice((text for text in candidates if len(text) <= MAX_NAME_CHARACTERS), MAX_COMPARED)
    folded: dict[str, str] = {}
    for text in names:
        folded.setdefault(_fold(text), text)
    target = _fold(name)
    near = get_close_matches(target, folded, 1, _CUTOFF)
    if near:
        return folded[near[0]]
    # A part that only one name has: `speech` of `speech.generate`.
    matches = [text for key, text in folded.items() if len(target) > 2 and target in key]
    return matches[0] if len(matches) == 1 else None


def _fold(name: str) -> str:
    return name.casefold().replace("-", "_")


def ask_meant(name: object, candidates: Iterable[str]) -> str:
    """Ask whether the closest name was meant; "" if no name is close.

    >>> ask_meant("opnai", ["openai", "aws"]), ask_meant("x", ["openai"])
    ('Did you mean `openai`?', '')
    """
    close = find_close_name(name, candidates)
    return "" if close is None else f"Did you mean `{close}`?"


def suggest_name(name: object, candidates: Iterable[str]) -> str:
    """Format the name that was most likely meant, and the known names; "" if there are none.

    >>> suggest_name("optimise_for", ["optimize_for", "provider"])
    'did you mean `optimize_for`? There are optimize_for, provider'
    >>> suggest_name("x", ["provider"])
    'there is provider'
    """
    names = list(dict.fromkeys(candidates))
    if not names:
        return ""
    listed = ", ".join(truncate_text(text, MAX_NAME_CHARACTERS) for text in names[:MAX_LISTED])
    ending = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
    close = find_close_name(name, names)
    are = "is" if len(names) == 1 else "are"
    if close is None:
        return f"there {are} {listed}{ending}"
    return f"did you mean `{close}`? There {are} {listed}{ending}"


def explain_unknown(what: str, name: object, candidates: Iterable[str]) -> str:
    """State that a name is unknown, the name most likely meant, and the known names.

    >>> explain_unknown("field", "objectiv", ["objective"])
    'there is no field `objectiv`; did you mean `objective`? There is objective'
    """
    hint = suggest_name(name, candidates)
    fault = f"there is no {what} `{truncate_text(str(name), 100)}`"
    return f"{fault}; {hint}" if hint else fault
