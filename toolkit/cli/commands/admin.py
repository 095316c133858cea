"""Commands of an administrator: account create and limit."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolkit.cli.output import print_json
from toolkit.cli.stores import AsJson, Database, DataDir, make_settings, run_on_store

if TYPE_CHECKING:
    from toolkit.store import Store


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
        print_json(account.model_dump(mode="json"))
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
        print_json(found.model_dump(mode="json"))
    elif found.max_cost_usd_per_day is None:
        typer.echo(f"✓ {found.email} may spend without a daily limit.")
    else:
        typer.echo(f"✓ {found.email} may spend ${found.max_cost_usd_per_day:g} a day.")
