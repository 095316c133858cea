"""What an operator's commands do with a database of PostgreSQL, whose driver is an extra."""

from collections.abc import Iterator
from contextlib import contextmanager

from toolkit.contract.errors import ErrorCode, ServiceError


def check_database(url: str) -> None:
    """Check that a database has the tables of the toolkit.

    Args:
        url: its address.

    Raises:
        ServiceError: `UNAVAILABLE` when it has none, or those of a later version.
    """
    with needs_postgres():
        from toolkit.store.postgres.opening import open_existing
    with open_existing(url):
        pass


@contextmanager
def needs_postgres() -> Iterator[None]:
    """Explain a failed import of what the extra installs.

    Raises:
        ServiceError: `UNAVAILABLE` where it is not installed.
    """
    try:
        yield
    except ImportError as error:
        raise ServiceError(
            ErrorCode.UNAVAILABLE,
            "PostgreSQL needs the extra `postgres`: pip install 'capability-toolkit[postgres]'.",
        ) from error
