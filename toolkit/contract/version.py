"""The version of the toolkit that is installed."""

from importlib.metadata import PackageNotFoundError, version


def read_installed_version() -> str:
    """Read the version of the installed distribution; "0" where only its source is there."""
    try:
        return version("capability-toolkit")
    except PackageNotFoundError:
        return "0"
