"""Account commands for the operator of a data directory; a server may be running."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from toolkit.cli.commands.admin import complete_accounts
from toolkit.cli.output import Printer
from toolkit.cli.stores import AsJson, Database, DataDir, make_settings, run_on_store
from toolkit.cli.target import Target

if TYPE_CHECKING:
    from toolkit.contract.account import Account
    from toolkit.engine.access.account_admin import AccountAdmin, RentedResource
    from toolkit.settings import Settings
    from toolkit.store import Store

T = TypeVar("T")

AccountName = Annotated[
    str,
    typer.Argument(
        metavar="ACCOUNT", help="Its id or its address.", autocompletion=complete_accounts
    ),
]
ACCOUNT_COLUMNS = (
    "id", "email", "operator", "created_at", "disabled_at", "spent_usd_today",
    "max_cost_usd_per_day", "records", "stored_bytes",
)  # fmt: skip
KEY_COLUMNS = (
    "id", "name", "last4", "scopes", "max_cost_usd_per_day", "left_usd_today", "spent_usd_today",
    "last_used_at", "expires_at", "revoked_at", "created_at",
)  # fmt: skip


def list_accounts(
    data_dir: DataDir = Path(".toolkit"), database: Database = None, as_json: AsJson = False
) -> None:
    """List the accounts of a data directory: what each spent today, and keeps."""
    Printer(as_json).print_table(
        read_accounts(make_settings(data_dir, database), lambda admin: admin.list_all()),
        ACCOUNT_COLUMNS,
    )


def list_keys(
    account: AccountName,
    data_dir: DataDir = Path(".toolkit"),
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """List an account's keys, those that have ended too: never the keys themselves."""
    Printer(as_json).print_table(
        read_accounts(make_settings(data_dir, database), lambda admin: admin.list_keys(account)),
        KEY_COLUMNS,
    )


def show_account(where: Target, account: str | None) -> bool:
    """Show the account that is named, from its data directory; false where none is.

    Raises:
        BadParameter: a server is named, too.
    """
    if account is None:
        return False
    if where.base_url or where.profile:
        raise typer.BadParameter(
            "a server shows the account of the key alone: name a data directory, or no account",
            param_hint="--base-url" if where.base_url else "--profile",
        )
    from toolkit.settings import Settings

    settings = Settings() if where.data_dir is None else Settings(data_dir=where.data_dir)
    found = read_accounts(settings, lambda admin: admin.describe(account))
    Printer(where.as_json).print_record(found, "keys", KEY_COLUMNS)
    return True


def disable(
    account: AccountName,
    let_finish: Annotated[
        bool, typer.Option("--let-finish", help="Have what is under way go on to its end.")
    ] = False,
    data_dir: DataDir = Path(".toolkit"),
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Refuse an account's keys, and end what it has under way; nothing of it is deleted."""
    done = change_accounts(
        make_settings(data_dir, database),
        lambda admin: admin.disable(account, let_finish=let_finish),
    )
    printer = Printer(as_json)
    if as_json:
        printer.print_record(done)
        return
    print(f"✓ {done.id} {done.email} is disabled: its keys answer 401 UNAUTHENTICATED.")
    if done.ended:
        print(f"  {done.ended} under way were ended.")
    if done.under_way and let_finish:
        print(f"  {done.under_way} under way go on.")
    elif done.under_way:
        print(f"  {done.under_way} under way end as soon as a server is there to end them.")
    _print_infrastructure(printer, done.rented)


def _print_infrastructure(printer: Printer, rented: "list[RentedResource]") -> None:
    if rented:
        named = ", ".join(f"{one.id} ({one.status})" for one in rented)
        printer.print_note(
            f"It has {named} at a GPU cloud, billed until they are deleted: with a key of"
            " `toolkit account recover`, after `toolkit account enable`."
        )


def enable(
    account: AccountName,
    data_dir: DataDir = Path(".toolkit"),
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Have a disabled account's keys work again."""
    done = change_accounts(make_settings(data_dir, database), lambda admin: admin.enable(account))
    _print_change(done, "is enabled: its keys work again", as_json=as_json)


def promote(
    account: AccountName,
    data_dir: DataDir = Path(".toolkit"),
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Make an account an operator's: it may share its connections with others."""
    done = change_accounts(
        make_settings(data_dir, database), lambda admin: admin.set_operator(account, operator=True)
    )
    _print_change(done, "may share: toolkit connections share VENDOR --all", as_json=as_json)


def demote(
    account: AccountName,
    data_dir: DataDir = Path(".toolkit"),
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Make an account an operator's no longer: what it shared leads others nowhere."""
    done = change_accounts(
        make_settings(data_dir, database), lambda admin: admin.set_operator(account, operator=False)
    )
    _print_change(done, "may share no longer, and nobody uses what it shared", as_json=as_json)


def _print_change(account: "Account", state: str, *, as_json: bool) -> None:
    """Print how an account stands now."""
    if as_json:
        Printer(as_json).print_record(account)
    else:
        print(f"✓ {account.id} {account.email} {state}.")


def recover(
    account: AccountName,
    revoke_others: Annotated[
        bool, typer.Option("--revoke-others", help="Revoke all its other keys at once.")
    ] = False,
    data_dir: DataDir = Path(".toolkit"),
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Make a key with all scopes for an account whose own was lost; it is shown this once."""
    made = change_accounts(
        make_settings(data_dir, database),
        lambda admin: admin.recover(account, revoke_others=revoke_others),
    )
    printer = Printer(as_json)
    if as_json:
        printer.print_record(made)
        return
    print(f"✓ {made.account.id} {made.account.email}: {made.id}\n{made.api_key}")
    if made.revoked:
        printer.print_note(f"Revoked: {', '.join(made.revoked)}.")
    if made.still_good:
        named = ", ".join(f"{key.id} (…{key.last4})" for key in made.still_good)
        printer.print_note(
            f"Still good: {named}. Revoke the one that was lost, with the new key:"
            " toolkit keys revoke ID; or all of them: --revoke-others."
        )
    if made.account.disabled_at is not None:
        printer.print_note(f"The account is disabled: toolkit account enable {made.account.id}.")


def read_accounts(settings: "Settings", ask: "Callable[[AccountAdmin], Awaitable[T]]") -> T:
    """Read about the accounts of a data directory or database, without writing to it.

    Raises:
        ServiceError: `UNAVAILABLE` when it is none, or of another version.
    """
    return _run_on_accounts(settings, ask, read_only=True)


def change_accounts(settings: "Settings", make: "Callable[[AccountAdmin], Awaitable[T]]") -> T:
    """Change an account of a data directory or database, beside whatever process serves it.

    Raises:
        ServiceError: `UNAVAILABLE` when it is none, or of another version.
    """
    return _run_on_accounts(settings, make, read_only=False)


def _run_on_accounts(
    settings: "Settings", asked: "Callable[[AccountAdmin], Awaitable[T]]", *, read_only: bool
) -> T:
    from toolkit.engine.access.account_admin import AccountAdmin

    async def run(store: "Store") -> T:
        return await asked(AccountAdmin(store, settings))

    return run_on_store(settings, run, read_only=read_only)
