"""Commands of an administrator: doctor, backup, prune, account create and limit."""

import re
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolkit.cli.stores import Database, DataDir, make_settings, run_on_store
from toolkit.contract.errors import ErrorCode, RequestError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.settings import Settings
    from toolkit.store import Store
    from toolkit.store.blob_places.place import BlobPlace
    from toolkit.store.maintenance.doctor import DataDirIssue

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
_AGE = re.compile(r"(\d{1,6})([hdw])")
_HOURS = {"h": 1, "d": 24, "w": 168}


def doctor(
    data_dir: DataDir = Path(".toolkit"),
    repair: Annotated[bool, typer.Option("--repair", help="Do what can be done.")] = False,
    deep: Annotated[bool, typer.Option("--deep", help="Read every artifact, too.")] = False,
    vendors: Annotated[
        bool, typer.Option("--vendors/--no-vendors", help="Look at the connected GPU clouds, too.")
    ] = True,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Say what is wrong with a data directory; with --repair, do what can be done about it.

    Of a database, its rows and artifacts' bytes are examined. Exit code 1 while something serious
    is wrong.
    """
    settings = None
    with suppress(PermissionError):  # who may not read here is told so below
        settings = make_settings(data_dir, database)
    if settings is not None and settings.database is not None:
        _examine_database(settings, deep=deep, repair=repair, as_json=as_json)
        return
    from toolkit.store.maintenance import doctor as examiner

    with _open_artifacts(data_dir) as place:
        done = examiner.repair_data_dir(data_dir, place=place) if repair else []
        found = examiner.check_data_dir(data_dir, deep=deep, place=place)
    prices = _review_prices()
    if vendors:
        found += _check_vendor_drift(data_dir)
    _print_findings(done, found, prices, f"{data_dir} is sound", as_json=as_json)


def _examine_database(settings: "Settings", *, deep: bool, repair: bool, as_json: bool) -> None:
    from toolkit.store.maintenance.databases import examine_database

    url = settings.get_database_url() or ""
    with _open_place(settings) as place:
        done, found = examine_database(url, place, deep=deep, repair=repair)
    _print_findings(done, found, _review_prices(), "The database is sound", as_json=as_json)


def _print_findings(
    done: "list[str]",
    found: "list[DataDirIssue]",
    prices: "list[str]",
    sound: str,
    *,
    as_json: bool,
) -> None:
    """Print what was done and found, and end with 1 while something serious is wrong."""
    serious = any(finding.serious for finding in found)
    if as_json:
        findings = [asdict(finding) for finding in found]
        _print_json({"done": done, "findings": findings, "prices": prices})
    else:
        for line in done:
            typer.echo(f"✓ {line}")
        for finding in found:
            typer.echo(f"{'✗' if finding.serious else '·'} {finding.what}")
            if finding.repair:
                typer.echo(f"    --repair would {finding.repair}")
        for line in prices:
            typer.echo(f"· {line}")
        if not serious:
            typer.echo(f"✓ {sound}.")
    if serious:
        raise typer.Exit(1)


@contextmanager
def _open_artifacts(data_dir: Path) -> "Iterator[BlobPlace]":
    """Open the place of artifacts' bytes that the settings name."""
    from toolkit.settings import Settings
    from toolkit.store.data_dir.location import find_database

    find_database(data_dir)  # what is wrong with that is told before anything else
    settings = Settings(data_dir=data_dir)
    if settings.database is not None and settings.artifact_url is not None:
        # To this directory's records, all that the database's refer to would be nobody's.
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            "The artifacts that the settings name belong to the records in a database"
            " (TOOLKIT_DATABASE), and not to this directory's: unset one of the two.",
        )
    with _open_place(settings) as place:
        yield place


@contextmanager
def _open_place(settings: "Settings") -> "Iterator[BlobPlace]":
    from toolkit.store.blobs import open_place

    endpoint_url = settings.artifact_endpoint_url
    place = open_place(settings.data_dir, settings.artifact_url, endpoint_url=endpoint_url)
    try:
        yield place
    finally:
        place.close()


def _review_prices() -> list[str]:
    """List prices that are old or the operator's own, and models that are to end."""
    from toolkit.contract.base import now
    from toolkit.engine.routing.price_review import review_prices
    from toolkit.engine.routing.registry import Registry
    from toolkit.settings import Settings

    vendors = Registry.load().vendors.values()
    return list(review_prices(vendors, Settings(), now().date()))


def _check_vendor_drift(data_dir: Path) -> "list[DataDirIssue]":
    """List the differences between GPU clouds and the data directory."""
    import asyncio

    from toolkit.assembly import check_drift
    from toolkit.contract.errors import ServiceError
    from toolkit.settings import Settings
    from toolkit.store.maintenance.doctor import DataDirIssue, read_managed_resources

    settings = Settings(data_dir=data_dir)
    if settings.sandbox:
        told = "The sandbox's cloud ends with its process: nothing is at vendors."
        return [DataDirIssue(told, serious=False)]
    try:
        kept = read_managed_resources(data_dir)
    except ServiceError as error:
        told = f"What is at vendors could not be compared: {error.message}"
        return [DataDirIssue(told, serious=False)]
    return asyncio.run(check_drift(settings, kept))


def backup(
    target: Annotated[Path, typer.Argument(help="The new directory that the copy becomes.")],
    data_dir: DataDir = Path(".toolkit"),
    as_json: AsJson = False,
) -> None:
    """Copy a data directory while it is worked on; the copy is a data directory itself.

    To restore one, open it, or put it in the place of the other.
    """
    from toolkit.store.maintenance.backup import create_backup as copy

    with _open_artifacts(data_dir) as place:
        made = copy(data_dir, target, place=place)
    if as_json:
        _print_json({**asdict(made), "path": str(made.path)})
    else:
        typer.echo(
            f"✓ {made.path}: {made.size_bytes / 1e6:.1f} MB, {made.artifacts} artifact files"
        )
        if made.elsewhere:
            typer.echo(
                f"· The bytes of {made.elsewhere} artifacts are in object storage and stay there:"
                " it has a backup of its own."
            )
        for digest in made.lost:
            typer.echo(f"✗ bytes with SHA-256 {digest} were not in the store, or damaged")
    if made.lost:
        raise typer.Exit(1)


def prune(
    older_than: Annotated[str, typer.Option(help="Such as 12h, 30d or 8w.")],
    data_dir: DataDir = Path(".toolkit"),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    as_json: AsJson = False,
) -> None:
    """Take out work that ended long ago, with its events, artifacts and bytes."""
    from toolkit.store.maintenance.prune import prune_data_dir as take_out

    age = _AGE.fullmatch(older_than)
    if age is None:
        raise typer.BadParameter("give an age such as 12h, 30d or 8w", param_hint="--older-than")
    hours = int(age.group(1)) * _HOURS[age.group(2)]
    with _open_artifacts(data_dir) as place:
        gone = take_out(data_dir, timedelta(hours=hours), dry_run=dry_run, place=place)
    if as_json:
        counts = {table: count for table, count in gone.rows.items() if count}
        _print_json({"rows": counts, "files": gone.files, "freed_bytes": gone.freed_bytes})
        return
    rows = ", ".join(f"{count} {table}" for table, count in gone.rows.items() if count) or "no rows"
    word = "would go" if dry_run else "gone"
    typer.echo(f"✓ {word}: {rows}; {gone.files} files, {gone.freed_bytes / 1e6:.1f} MB")
    if gone.is_copy:
        typer.echo("· What is in object storage was left: this is a copy, and the original's, too.")


def create_account(
    email: Annotated[str, typer.Argument(help="Whose account it is.")],
    allow_env: Annotated[
        list[str] | None,
        typer.Option(help="A variable that its `environment` pointers may name; repeatable."),
    ] = None,
    max_cost_usd_per_day: Annotated[
        float | None, typer.Option(min=0, help="What all its work may cost in a day, by UTC.")
    ] = None,
    operator: Annotated[
        bool, typer.Option("--operator", help="An operator's, which may share its connections.")
    ] = False,
    data_dir: DataDir = Path(".toolkit"),
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Make an account and print its key, this once; a server may be running meanwhile.

    Its pointers may name the vendors' conventional variables, and those given here.
    """
    from toolkit.contract.account import AccountCreate, AccountCreated
    from toolkit.engine.access.accounts import Accounts

    settings = make_settings(data_dir, database)
    try:
        request = AccountCreate(email=email)
    except ValueError:
        raise typer.BadParameter("give an address such as name@example.org") from None

    async def create_record(store: "Store") -> AccountCreated:
        return await Accounts(store, settings).create(
            request,
            allow_env=allow_env or (),
            max_cost_usd_per_day=max_cost_usd_per_day,
            operator=operator,
        )

    account = run_on_store(settings, create_record)
    if as_json:
        _print_json(account.model_dump(mode="json"))
    else:
        typer.echo(f"✓ {account.id} {account.email}\n{account.api_key}")


def complete_accounts(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Complete the addresses of a directory's accounts."""
    import sqlite3

    from toolkit.store.maintenance.newest_ids import list_newest_ids

    try:
        known = list_newest_ids(Path(ctx.params.get("data_dir") or ".toolkit"), "accounts", 50)
    except sqlite3.Error:  # no error may disturb typing
        return []
    return [(email, said) for email, said in known if email.startswith(incomplete)]


def limit_account(
    account: Annotated[
        str, typer.Argument(help="Its address or id.", autocompletion=complete_accounts)
    ],
    max_cost_usd_per_day: Annotated[
        float | None, typer.Option(min=0, help="What all its work may cost in a day, by UTC.")
    ] = None,
    unlimited: Annotated[bool, typer.Option("--unlimited", help="End its limit.")] = False,
    data_dir: DataDir = Path(".toolkit"),
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Set what an account may spend in a day, whichever key it uses; a server may be running."""
    from toolkit.contract.account import Account
    from toolkit.engine.access.accounts import Accounts

    if (max_cost_usd_per_day is None) != unlimited:
        raise typer.BadParameter("give either --max-cost-usd-per-day or --unlimited")
    settings = make_settings(data_dir, database)

    async def set_limit(store: "Store") -> Account:
        return await Accounts(store, settings).set_daily_limit(account, max_cost_usd_per_day)

    found = run_on_store(settings, set_limit)
    if as_json:
        _print_json(found.model_dump(mode="json"))
    elif found.max_cost_usd_per_day is None:
        typer.echo(f"✓ {found.email} may spend without a daily limit.")
    else:
        typer.echo(f"✓ {found.email} may spend ${found.max_cost_usd_per_day:g} a day.")


def _print_json(value: object) -> None:
    import json

    typer.echo(json.dumps(value, indent=2))
