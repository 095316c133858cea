"""`toolkit migrate`."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolkit.cli.output import print_json
from toolkit.cli.stores import AsJson, Database, DataDir, make_settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.settings import Settings


def migrate(
    source: Annotated[
        Path | None,
        typer.Option("--from", help="The data directory to move; nobody has it open."),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--to",
            help="The database of PostgreSQL to move it to, as postgresql://user@host/name;"
            " TOOLKIT_DATABASE by default.",
        ),
    ] = None,
    artifacts: Annotated[
        str | None,
        typer.Option(help="Where artifacts' bytes go, a folder or a URL; they stay by default."),
    ] = None,
    data_dir: DataDir = Path(".toolkit"),
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Bring tables up to this version, beside engines of the one before; or move them elsewhere.

    With --from or --to, a data directory moves into a database of PostgreSQL; interrupted, it goes
    on where it was. All rows are compared and all bytes are read before an engine can open the
    database. Nothing is deleted: the directory's own database is state.db.moved from then on.

    With --artifacts alone, the artifacts of a database move to another place, while no engine runs.
    """
    if source is None and target is None and artifacts is not None:
        _move_artifacts(make_settings(data_dir, database), artifacts, as_json=as_json)
        return
    if source is None and target is None:
        _bring_up_to_date(data_dir, database, as_json=as_json)
        return
    from toolkit.store.maintenance.moving import ArtifactPlaces, move_data_dir

    source = source or data_dir
    settings = make_settings(source, target or database)
    url = settings.get_database_url()
    if url is None:
        raise typer.BadParameter("name the database, or set TOOLKIT_DATABASE", param_hint="--to")
    places = ArtifactPlaces(
        settings.artifact_url, artifacts or settings.artifact_url, settings.artifact_endpoint_url
    )
    moved = move_data_dir(source, url, places)
    if as_json:
        print_json(asdict(moved))
    else:
        typer.echo(
            f"✓ {moved.rows} rows are there and alike, and {moved.artifacts} files of bytes."
        )
        _print_lost(moved.lost)
        typer.echo(f"Serve it: {_explain_serving(source, places.target)}")
    if moved.lost:
        raise typer.Exit(1)


def _bring_up_to_date(data_dir: Path, database: str | None, *, as_json: bool) -> None:
    """Run the missing migrations, before any engine of this version does."""
    from toolkit.store.maintenance.databases import bring_up_to_date

    settings = make_settings(data_dir, database)
    version = bring_up_to_date(settings.data_dir, settings.get_database_url())
    if as_json:
        print_json(asdict(version))
    else:
        typer.echo(
            f"✓ The tables are of revision {version.revision}; engines of"
            f" {version.oldest or version.revision} and later may work on them."
        )


def _move_artifacts(settings: "Settings", artifacts: str, *, as_json: bool) -> None:
    """Move the artifacts of a database to another place."""
    from toolkit.store.blobs import open_place
    from toolkit.store.maintenance.databases import move_artifacts_of

    url = settings.get_database_url()
    if url is None:
        raise typer.BadParameter(
            "name the database, or set TOOLKIT_DATABASE", param_hint="--database"
        )
    endpoint_url = settings.artifact_endpoint_url
    new = make_settings(settings.data_dir, artifact_url=artifacts).artifact_url
    places = (settings.artifact_url, new)
    old, target = (
        open_place(settings.data_dir, each, endpoint_url=endpoint_url, synced=True)
        for each in places
    )
    try:
        moved = move_artifacts_of(url, old, target)
    finally:
        old.close()
        target.close()
    if as_json:
        print_json(asdict(moved))
    else:
        typer.echo(f"✓ {moved.artifacts} files of bytes are there, {moved.copied} of them copied.")
        _print_lost(moved.lost)
        typer.echo(f"Serve it with TOOLKIT_ARTIFACT_URL={new}.")
    if moved.lost:
        raise typer.Exit(1)


def _print_lost(lost: "Sequence[str]") -> None:
    for digest in lost:
        typer.echo(f"✗ bytes with SHA-256 {digest} were not in the store, or damaged")


def _explain_serving(source: Path, artifact_url: str | None) -> str:
    """Explain how the database is served; its address may have a password, and is not repeated."""
    if artifact_url is None:
        return f"toolkit serve --data-dir {source} --database …, as artifacts' bytes stay there."
    return f"toolkit serve --database …, with TOOLKIT_ARTIFACT_URL={artifact_url}"
