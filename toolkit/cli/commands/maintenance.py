"""Commands that maintain a data directory, or a database: doctor, backup and prune."""

import re
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from toolkit.cli.output import print_json
from toolkit.cli.stores import ArtifactUrl, AsJson, Database, DataDir, make_settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from toolkit.settings import Settings
    from toolkit.store.blob_places.place import BlobPlace
    from toolkit.store.maintenance.upkeep_database import DataDirIssue, UpkeepDatabase

_AGE = re.compile(r"(\d{1,6})([hdw])")
_HOURS = {"h": 1, "d": 24, "w": 168}


def doctor(
    data_dir: DataDir = Path(".toolkit"),
    repair: Annotated[bool, Option("--repair", help="Repair faults if possible.")] = False,
    deep: Annotated[bool, Option("--deep", help="Read every artifact, too.")] = False,
    vendors: Annotated[
        bool, Option("--vendors/--no-vendors", help="Check the connected GPU clouds, too.")
    ] = True,
    database: Database = None,
    artifact_url: ArtifactUrl = None,
    as_json: AsJson = False,
) -> None:
    """Report faults of a data directory, or a database; with --repair, repair them if possible.

    Exit code 1 while a fault is serious.
    """
    from toolkit.store.maintenance.doctor import check_database

    with _open_place_of_records(data_dir, database, artifact_url) as (settings, place):
        repairs = _repair(settings, place) if repair else []
        with _open_upkeep(settings, is_read_only=True) as records:
            issues = [*check_database(records, place, deep=deep)]
    prices = _review_prices()
    if vendors:
        issues += _check_vendor_drift(settings)
    sound = str(data_dir) if settings.database is None else "The database"
    _print_findings(repairs, issues, prices, f"{sound} is sound", as_json=as_json)


def _repair(settings: "Settings", place: "BlobPlace") -> list[str]:
    from toolkit.store.maintenance.doctor import repair_data_dir, repair_database

    if settings.database is None:
        return repair_data_dir(settings.data_dir, place)
    with _open_upkeep(settings) as records:
        return repair_database(records, place)


def _print_findings(
    repairs: "list[str]",
    issues: "list[DataDirIssue]",
    prices: "list[str]",
    sound: str,
    *,
    as_json: bool,
) -> None:
    serious = any(issue.serious for issue in issues)
    if as_json:
        findings = [asdict(issue) for issue in issues]
        print_json({"done": repairs, "findings": findings, "prices": prices})
    else:
        for line in repairs:
            typer.echo(f"✓ {line}")
        for issue in issues:
            typer.echo(f"{'✗' if issue.serious else '·'} {issue.what}")
            if issue.repair:
                typer.echo(f"    --repair would {issue.repair}")
        for line in prices:
            typer.echo(f"· {line}")
        if not serious:
            typer.echo(f"✓ {sound}.")
    if serious:
        raise typer.Exit(1)


@contextmanager
def _open_place_of_records(
    data_dir: Path, database: str | None, artifact_url: str | None
) -> "Iterator[tuple[Settings, BlobPlace]]":
    """Yield the settings of an existing data directory or database, and its artifacts' storage."""
    from toolkit.store.blobs import open_place
    from toolkit.store.data_dir.location import find_database

    settings = None
    with suppress(PermissionError):  # the check below reports missing permissions
        settings = make_settings(data_dir, database, artifact_url)
    if settings is None or settings.database is None:
        find_database(data_dir)  # reports a missing or foreign database first
    settings = settings or make_settings(data_dir, database, artifact_url)
    endpoint_url = settings.artifact_endpoint_url
    place = open_place(settings.data_dir, settings.artifact_url, endpoint_url=endpoint_url)
    with closing(place):
        yield settings, place


def _open_upkeep(
    settings: "Settings", *, is_read_only: bool = False
) -> "AbstractContextManager[UpkeepDatabase]":
    """Open the database, SQLite or PostgreSQL, for maintenance."""
    from toolkit.store.dialects import needs_postgres
    from toolkit.store.sqlite.upkeep import SqliteUpkeep

    url = settings.get_database_url()
    if url is None:
        open_directory = SqliteUpkeep.view if is_read_only else SqliteUpkeep.open
        return open_directory(settings.data_dir)
    with needs_postgres():
        from toolkit.store.postgres.upkeep import PostgresUpkeep
    return PostgresUpkeep.view(url) if is_read_only else PostgresUpkeep.open(url)


def _review_prices() -> list[str]:
    """List prices that are old or the operator's own, and models that will be shut down."""
    from toolkit.contract.base import now
    from toolkit.engine.routing.price_review import review_prices
    from toolkit.engine.routing.registry import Registry
    from toolkit.settings import Settings

    vendors = Registry.load().vendors.values()
    return list(review_prices(vendors, Settings(), now().date()))


def _check_vendor_drift(settings: "Settings") -> "list[DataDirIssue]":
    """List the differences between GPU clouds and the records."""
    import asyncio

    from toolkit.assembly import check_drift
    from toolkit.contract.errors import ServiceError
    from toolkit.store.maintenance.doctor import read_managed_rows
    from toolkit.store.maintenance.upkeep_database import DataDirIssue

    if settings.sandbox:
        note = "GPU clouds were not compared, because the sandbox simulates them."
        return [DataDirIssue(note, serious=False)]
    try:
        with _open_upkeep(settings, is_read_only=True) as records:
            rows = read_managed_rows(records)
    except ServiceError as error:
        note = f"GPU clouds could not be compared with the records: {error.message}"
        return [DataDirIssue(note, serious=False)]
    return asyncio.run(check_drift(settings, rows))


def backup(
    target: Annotated[Path, Argument(help="New directory for the copy.")],
    data_dir: DataDir = Path(".toolkit"),
    database: Database = None,
    artifact_url: ArtifactUrl = None,
    as_json: AsJson = False,
) -> None:
    """Copy a data directory, or a database, while it is in use.

    The copy of a directory is a data directory itself: to restore it, open it, or replace the
    original by it. The copy of a database is a file for pg_restore, and a folder of artifacts.
    """
    from toolkit.store.maintenance.backup import check_target, create_backup

    with _open_place_of_records(data_dir, database, artifact_url) as (settings, place):
        if settings.database is None:
            check_target(target, settings.data_dir)
        with _open_upkeep(settings, is_read_only=True) as records:
            record = create_backup(records, target, place)
    if as_json:
        print_json({**asdict(record), "path": str(record.path)})
    else:
        typer.echo(
            f"✓ {record.path}: {record.size_bytes / 1e6:.1f} MB, {record.artifacts} artifact files"
        )
        if record.elsewhere:
            typer.echo(
                f"· The bytes of {record.elsewhere} artifacts are in object storage and stay there:"
                " it has a backup of its own."
            )
        for digest in record.lost:
            typer.echo(f"✗ bytes with SHA-256 {digest} are missing or damaged")
    if record.lost:
        raise typer.Exit(1)


def prune(
    older_than: Annotated[
        str, Option(help="Minimum age of the work to delete, such as 12h, 30d or 8w.")
    ],
    data_dir: DataDir = Path(".toolkit"),
    dry_run: Annotated[
        bool, Option("--dry-run", help="Only report the rows and files to delete.")
    ] = False,
    database: Database = None,
    artifact_url: ArtifactUrl = None,
    as_json: AsJson = False,
) -> None:
    """Delete work that ended long ago, with its events, artifacts and bytes."""
    from toolkit.store.maintenance.prune import prune_records

    age = _AGE.fullmatch(older_than)
    if age is None:
        raise typer.BadParameter("give an age such as 12h, 30d or 8w", param_hint="--older-than")
    hours = int(age.group(1)) * _HOURS[age.group(2)]
    age_limit = timedelta(hours=hours)
    with (
        _open_place_of_records(data_dir, database, artifact_url) as (settings, place),
        _open_upkeep(settings) as records,
    ):
        report = prune_records(records, age_limit, place, dry_run=dry_run)
    if as_json:
        counts = {table: count for table, count in report.rows.items() if count}
        print_json({"rows": counts, "files": report.files, "freed_bytes": report.freed_bytes})
        return
    rows = (
        ", ".join(f"{count} {table}" for table, count in report.rows.items() if count) or "no rows"
    )
    word = "would be deleted" if dry_run else "deleted"
    typer.echo(f"✓ {word}: {rows}; {report.files} files, {report.freed_bytes / 1e6:.1f} MB")
    if report.is_copy:
        typer.echo(
            "· Artifacts' bytes were kept, because the original of this copy uses them, too."
        )
