"""Options from environment variables, read before the tests clear them."""

import os

_GIVEN = {name: value for name, value in os.environ.items() if name.startswith("TOOLKIT_CRASH_")}


def get_option(name: str) -> str | None:
    """Return a `TOOLKIT_CRASH_…` variable as it was when the tests were collected."""
    return _GIVEN.get(name)
