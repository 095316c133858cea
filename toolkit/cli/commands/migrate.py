"""The command `toolkit migrate`, for the tables and the artifacts of a database."""

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from toolkit.cli.output import print_json
from toolkit.cli.stores import AsJson, Database, DataDir, make_settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.settings import Settings
    from toolkit.store.blob_places.place import BlobPlace


@dataclass(frozen=True, slots=True)
class _Artifacts:
    """The options for artifacts' bytes; omitted options keep their values from the settings."""

    target: str | None
    from_endpoint_url: str | None
    from_profile: str | None
    may_be_lost: bool


@dataclass(frozen=True, slots=True)
class _Places:
    """The storages of artifacts' bytes in a move: where they are or may be, and the target."""

    sources: "Sequence[BlobPlace]"
    target: "BlobPlace"
    url: str | None  # of the target; None if the target is the data directory


def migrate(
    source: Annotated[
        Path | None, Option("--from", help="Data directory to move; no process may have it open.")
    ] = None,
    target: Annotated[
        str | None,
        Option(
            "--to",
            help="PostgreSQL database to move it to, as postgresql://user@host/name;"
            " TOOLKIT_DATABASE by default.",
        ),
    ] = None,
    artifacts: Annotated[
        str | None,
        Option(
            help="Target of the artifacts' bytes, a folder or a URL;"
            " TOOLKIT_ARTIFACT_URL by default. Without a target, they stay in the"
            " data directory."
        ),
    ] = None,
    from_endpoint_url: Annotated[
        str | None,
        Option(help="S3 endpoint of the source, if it differs from TOOLKIT_ARTIFACT_ENDPOINT_URL."),
    ] = None,
    from_profile: Annotated[
        str | None,
        Option(
            help="Profile in ~/.aws with the credentials of the source, if the"
            " environment has the credentials of the target."
        ),
    ] = None,
    without_lost: Annotated[
        bool,
        Option("--without-lost", help="Continue although bytes are lost or damaged at the source."),
    ] = False,
    data_dir: DataDir = Path(".toolkit"),
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Migrate tables to this version while engines of the previous version run; or move them.

    With --from or --to, a data directory moves into a database of PostgreSQL. An interrupted move
    resumes when it is run again. All rows are compared and all bytes are read before an engine can
    open the database. Nothing is deleted: the directory's own database becomes state.db.moved.

    With --artifacts alone, the artifacts of a database move from TOOLKIT_ARTIFACT_URL to another
    place, while no engine runs. Both moves search the data directory for artifacts, too.
    """
    options = _Artifacts(artifacts, from_endpoint_url, from_profile, without_lost)
    if source is None and target is None and artifacts is not None:
        _move_artifacts(make_settings(data_dir, database), options, as_json=as_json)
        return
    if source is None and target is None:
        _bring_up_to_date(data_dir, database, as_json=as_json)
        return
    source = source or data_dir
    _move_data_dir(source, make_settings(source, target or database), options, as_json=as_json)


def _move_data_dir(
    source: Path, settings: "Settings", artifacts: _Artifacts, *, as_json: bool
) -> None:
    from toolkit.store.maintenance.moving import move_data_dir

    url = settings.get_database_url()
    if url is None:
        raise typer.BadParameter("name the database, or set TOOLKIT_DATABASE", param_hint="--to")
    with _open_places(settings, artifacts, is_folder_first=True) as places:
        moved = move_data_dir(
            source, url, places.sources, places.target, may_be_lost=artifacts.may_be_lost
        )
    if as_json:
        print_json(asdict(moved))
        return
    typer.echo(f"✓ Moved and compared {moved.rows} rows and {moved.artifacts} artifact files.")
    _print_lost(moved.lost)
    typer.echo(f"Serve it: {_explain_serving(source, places.url)}")


def _bring_up_to_date(data_dir: Path, database: str | None, *, as_json: bool) -> None:
    """Run the missing migrations of the tables, so that engines of this version can use them."""
    from toolkit.store.data_dir.location import find_database
    from toolkit.store.dialects import needs_postgres
    from toolkit.store.sqlite.database import migrate_data_dir

    settings = make_settings(data_dir, database)
    url = settings.get_database_url()
    if url is None:
        version = migrate_data_dir(find_database(settings.data_dir).parent)
    else:
        with needs_postgres():
            from toolkit.store.postgres.schema import migrate_database
        version = migrate_database(url)
    if as_json:
        print_json(asdict(version))
    else:
        typer.echo(
            f"✓ The tables have revision {version.revision}; engines of revision"
            f" {version.oldest or version.revision} and later can use them."
        )


def _move_artifacts(settings: "Settings", artifacts: _Artifacts, *, as_json: bool) -> None:
    from toolkit.store.dialects import needs_postgres
    from toolkit.store.maintenance.moving import move_artifacts

    url = settings.get_database_url()
    if url is None:
        raise typer.BadParameter(
            "name the database, or set TOOLKIT_DATABASE", param_hint="--database"
        )
    with needs_postgres():
        from toolkit.store.postgres.upkeep import PostgresUpkeep
    with (
        _open_places(settings, artifacts, is_folder_first=False) as places,
        PostgresUpkeep.open(url) as database,
    ):
        moved = move_artifacts(
            database, places.sources, places.target, may_be_lost=artifacts.may_be_lost
        )
    if as_json:
        print_json(asdict(moved))
        return
    typer.echo(f"✓ {moved.artifacts} artifact files are in place, {moved.copied} of them copied.")
    _print_lost(moved.lost)
    typer.echo(f"Serve it with TOOLKIT_ARTIFACT_URL={places.url}.")


@contextmanager
def _open_places(
    settings: "Settings", artifacts: _Artifacts, *, is_folder_first: bool
) -> "Iterator[_Places]":
    """Open the storages of a move: the data directory's folder, the configured one, the target.

    Args:
        settings: settings with the configured place, which may be the target already.
        is_folder_first: whether the data directory's folder comes before the configured place.
    """
    from toolkit.store.blobs import open_place

    data_dir, endpoint_url = settings.data_dir, settings.artifact_endpoint_url
    checked = make_settings(
        data_dir, artifact_url=artifacts.target, artifact_endpoint_url=artifacts.from_endpoint_url
    )
    if settings.artifact_url is None and (artifacts.from_endpoint_url or artifacts.from_profile):
        raise typer.BadParameter(
            "set TOOLKIT_ARTIFACT_URL to the source of the artifacts",
            param_hint="--from-endpoint-url, --from-profile",
        )
    with ExitStack() as stack:
        folder = stack.enter_context(closing(open_place(data_dir, None)))
        sources = [folder]
        if settings.artifact_url is not None:
            place = open_place(
                data_dir,
                settings.artifact_url,
                endpoint_url=checked.artifact_endpoint_url,
                aws_profile=artifacts.from_profile,
            )
            sources.append(stack.enter_context(closing(place)))
        target = open_place(data_dir, checked.artifact_url, endpoint_url=endpoint_url, synced=True)
        stack.enter_context(closing(target))
        yield _Places(sources if is_folder_first else sources[::-1], target, checked.artifact_url)


def _print_lost(lost: "Sequence[str]") -> None:
    for digest in lost:
        typer.echo(f"✗ bytes with SHA-256 {digest} are lost, or damaged")


def _explain_serving(source: Path, artifact_url: str | None) -> str:
    """Explain how the database is served; its address may have a password, and is not repeated."""
    if artifact_url is None:
        return f"toolkit serve --data-dir {source} --database …: artifacts' bytes stay there."
    return f"toolkit serve --database …, with TOOLKIT_ARTIFACT_URL={artifact_url}"
