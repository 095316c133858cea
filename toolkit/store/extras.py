"""The extra that PostgreSQL needs, imported only where a database is named."""

from collections.abc import Iterator
from contextlib import contextmanager

from toolkit.contract.errors import ErrorCode, ServiceError


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
