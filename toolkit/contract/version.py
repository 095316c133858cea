"""The installed version of the toolkit."""

from functools import cache
from importlib.metadata import PackageNotFoundError, version


@cache  # the look-up reads all of the environment's metadata; the result never changes in a process
def read_installed_version() -> str:
    """Read the version of the installed distribution; "0" if only the source is present."""
    try:
        return version("capability-toolkit")
    except PackageNotFoundError:
        return "0"
