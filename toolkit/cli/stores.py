"""The store that a command of the operator works on: a data directory's, or a database's."""

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

import typer
from typer import Option

if TYPE_CHECKING:
    from toolkit.settings import Settings
    from toolkit.store import Store

T = TypeVar("T")
_PASSWORD = re.compile(r"^\w+://[^/@]*:[^/@]+@|[?&]password=")
DataDir = Annotated[Path, Option(help="Data directory.")]
Database: TypeAlias = Annotated[
    str | None,
    Option(
        help="PostgreSQL database of the records, as postgresql://user@host/name;"
        " TOOLKIT_DATABASE by default."
    ),
]
ArtifactUrl: TypeAlias = Annotated[
    str | None, Option(help="Storage of artifacts' bytes; TOOLKIT_ARTIFACT_URL by default.")
]
AsJson: TypeAlias = Annotated[bool, Option("--json", help="Print JSON instead of text.")]


def make_settings(
    data_dir: Path,
    database: str | None = None,
    artifact_url: str | None = None,
    artifact_endpoint_url: str | None = None,
) -> "Settings":
    """Make the settings of a command; omitted options keep their configured values.

    Raises:
        SettingsError: an option has an invalid value.
    """
    from toolkit.settings import Settings

    warn_of_password(database)
    options: dict[str, Any] = {
        "database": database,
        "artifact_url": artifact_url,
        "artifact_endpoint_url": artifact_endpoint_url,
    }
    return Settings(
        data_dir=data_dir, **{name: value for name, value in options.items() if value is not None}
    )


def warn_of_password(url: str | None) -> None:
    """Warn on stderr if an address from the command line has a password."""
    if url is not None and _PASSWORD.search(url):
        typer.echo(
            "Other users can see the password on the command line: give the"
            " address in TOOLKIT_DATABASE, or the password in PGPASSWORD or a"
            " password file.",
            err=True,
        )


def run_on_store(
    settings: "Settings", work: "Callable[[Store], Awaitable[T]]", *, read_only: bool = False
) -> T:
    """Run a function on an existing store, even one that another process serves; return its result.

    No engine is opened, because an engine would resume old work with this shell's variables.

    Args:
        read_only: write nothing, and treat all accounts of a data directory as one.

    Raises:
        ServiceError: `UNAVAILABLE` if the store is missing, or of another version.
    """
    import asyncio

    async def run() -> T:
        store = await _open_store(settings, read_only=read_only)
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(run())


async def _open_store(settings: "Settings", *, read_only: bool) -> "Store":
    from toolkit.store import ReadOnlyStore, Store
    from toolkit.store.data_dir.location import find_database
    from toolkit.store.dialects import needs_postgres

    if settings.database is None and read_only:
        return await ReadOnlyStore.view(
            settings.data_dir, settings.artifact_url, settings.artifact_endpoint_url
        )
    url = settings.get_database_url()
    if url is None:
        find_database(settings.data_dir)  # a key is of no use in a directory that no server has
    else:
        with needs_postgres():
            from toolkit.store.postgres.schema import open_existing
        with open_existing(url):  # likewise
            pass
    return await Store.open(
        settings.data_dir,
        durability=settings.durability,
        artifact_url=settings.artifact_url,
        artifact_endpoint_url=settings.artifact_endpoint_url,
        database=url,
    )
