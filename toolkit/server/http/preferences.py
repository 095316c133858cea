"""Preferences of a request (RFC 7240): unknown ones are ignored."""

import re

from starlette.requests import Request

MAX_WAIT_S = 60
MAX_DIGITS = 16  # of a number that is parsed at all
# A preference, its value and its parameters: a comma in quotes does not end it.
_PREFERENCE = re.compile(
    r"""(?:^|,)\s*(?P<name>[^\s,;="]+)\s*(?:=\s*(?P<value>"[^"]*"|[^\s,;"]*))?"""
    r"""(?:"[^"]*"|[^,"])*+"""
)


def prefers_text_stream(request: Request) -> bool:
    """Tell whether a request says `Prefer: stream`: texts are to be shown as they are written."""
    preferences = _PREFERENCE.finditer(", ".join(request.headers.getlist("prefer")))
    return any(one["name"].lower() == "stream" for one in preferences)


def parse_preferred_wait(request: Request, longest_s: int) -> int | None:
    """Parse the N of `Prefer: wait=N`, at most `longest_s` seconds; none where not asked for.

    A wait that is no number of seconds counts as none: a preference that cannot be met is to be
    ignored, not refused (RFC 7240, 2), and the answer's `Preference-Applied` tells what was done.
    Of several the first counts; preferences other than `wait` are ignored.
    """
    for preference in _PREFERENCE.finditer(", ".join(request.headers.getlist("prefer"))):
        if preference["name"].lower() == "wait":
            value = (preference["value"] or "").strip('"')
            if not re.fullmatch(r"\d+", value, re.A):
                return None
            return min(int(value), longest_s) if len(value) <= MAX_DIGITS else longest_s
    return None
