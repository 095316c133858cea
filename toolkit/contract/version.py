"""The version of the toolkit that is installed."""

from functools import cache
from importlib.metadata import PackageNotFoundError, version


@cache  # it is looked up in all of the environment's metadata, and stays for as long as the process
def read_installed_version() -> str:
    """Read the version of the installed distribution; "0" if only the source is present."""
    try:
        return version("capability-toolkit")
    except PackageNotFoundError:
        return "0"
