"""`toolkit migrate`."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from toolkit.cli.commands.admin import AsJson
from toolkit.cli.stores import make_settings


def migrate(
    source: Annotated[
        Path, typer.Option("--from", help="The data directory; nobody has it open.")
    ] = Path(".toolkit"),
    target: Annotated[
        str | None,
        typer.Option(
            "--to",
            help="The database of PostgreSQL, as postgresql://user@host/name; TOOLKIT_DATABASE by"
            " default.",
        ),
    ] = None,
    artifacts: Annotated[
        str | None,
        typer.Option(help="Where artifacts' bytes go, a folder or a URL; they stay by default."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Move a data directory into a database of PostgreSQL; interrupted, it goes on where it was.

    All rows are compared and all bytes are read before an engine can open the database. Nothing is
    deleted: the directory's own database is state.db.moved from then on.
    """
    from toolkit.store.maintenance.moving import ArtifactPlaces, move_data_dir

    settings = make_settings(source, target)
    url = settings.get_database_url()
    if url is None:
        raise typer.BadParameter("name the database, or set TOOLKIT_DATABASE", param_hint="--to")
    places = ArtifactPlaces(
        settings.artifact_url, artifacts or settings.artifact_url, settings.artifact_endpoint_url
    )
    moved = move_data_dir(source, url, places)
    if as_json:
        import json

        typer.echo(json.dumps(asdict(moved), indent=2))
    else:
        typer.echo(
            f"✓ {moved.rows} rows are there and alike, and {moved.artifacts} files of bytes."
        )
        for digest in moved.lost:
            typer.echo(f"✗ bytes with SHA-256 {digest} were not in the store, or damaged")
        typer.echo(f"Serve it: {_explain_serving(source, places.target)}")
    if moved.lost:
        raise typer.Exit(1)


def _explain_serving(source: Path, artifact_url: str | None) -> str:
    """Explain how the database is served; its address may have a password, and is not repeated."""
    if artifact_url is None:
        return f"toolkit serve --data-dir {source} --database …, as artifacts' bytes stay there."
    return f"toolkit serve --database …, with TOOLKIT_ARTIFACT_URL={artifact_url}"
