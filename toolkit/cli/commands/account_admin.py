"""Account commands for the operator of a data directory or database; a server may be running."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from typer import Argument, Option

from toolkit.cli.local_completion import MAX_COMPLETIONS, Suggestions, completion
from toolkit.cli.options import list_options, make_command
from toolkit.cli.output import Output
from toolkit.cli.stores import AsJson, Database, DataDir, make_settings, run_on_store
from toolkit.cli.target import Target

if TYPE_CHECKING:
    from toolkit.engine.access.account_admin import AccountAdmin, RentedResource
    from toolkit.settings import Settings
    from toolkit.store import Store

T = TypeVar("T")

ACCOUNT_COLUMNS = (
    "id", "email", "operator", "created_at", "disabled_at", "spent_usd_today",
    "max_cost_usd_per_day", "records", "stored_bytes",
)  # fmt: skip
KEY_COLUMNS = (
    "id", "name", "last4", "scopes", "max_cost_usd_per_day", "left_usd_today", "spent_usd_today",
    "last_used_at", "expires_at", "revoked_at", "created_at",
)  # fmt: skip


@dataclass(frozen=True)
class OperatorOutput(Output):
    """The output of an operator's command, and the data directory or database that it uses.

    Its fields are options of these commands.
    """

    data_dir: DataDir = Path(".toolkit")
    database: Database = None
    as_json: AsJson = False

    def make_settings(self) -> "Settings":
        """Make the settings for the data directory or the database that the options name."""
        return make_settings(self.data_dir, self.database)

    def read(self, ask: "Callable[[AccountAdmin], Awaitable[T]]") -> T:
        """Run a function that only reads the accounts, and return its result."""
        return _run_on_accounts(self.make_settings(), ask, read_only=True)

    def change(self, make: "Callable[[AccountAdmin], Awaitable[T]]") -> T:
        """Run a function that changes an account, even one that another process serves."""
        return _run_on_accounts(self.make_settings(), make, read_only=False)

    def print_change(self, account: Any, sentence: str) -> None:
        """Print the account's new rights in a sentence, or the account as JSON."""
        if self.as_json:
            self.print_record(account)
        else:
            print(f"✓ {sentence}")


def _run_on_accounts(
    settings: "Settings", operation: "Callable[[AccountAdmin], Awaitable[T]]", *, read_only: bool
) -> T:
    from toolkit.engine.access.account_admin import AccountAdmin

    async def run(store: "Store") -> T:
        return await operation(AccountAdmin(store, settings))

    return run_on_store(settings, run, read_only=read_only)


def _operator_command(function: Callable[..., None]) -> Callable[..., None]:
    """Make a command with the options of `OperatorOutput`, the first argument of the function."""

    def run(options: dict[str, Any], **arguments: Any) -> None:
        function(OperatorOutput(**options), **arguments)

    return make_command(function, list_options(OperatorOutput), run)


@completion
def complete_accounts(ctx: typer.Context, incomplete: str) -> Suggestions:  # noqa: ARG001
    """Offer the email addresses of the accounts in the data directory."""
    from toolkit.store.maintenance.newest_ids import list_newest_ids

    folder = Path(ctx.params.get("data_dir") or ".toolkit")
    return list_newest_ids(folder, "accounts", MAX_COMPLETIONS)


AccountName = Annotated[
    str,
    Argument(
        metavar="ACCOUNT",
        help="Id or email address of the account.",
        autocompletion=complete_accounts,
    ),
]

DailyLimit = Annotated[
    float | None, Option(min=0, help="Maximum cost of all its work per UTC day, in US dollars.")
]


@_operator_command
def create_account(
    shell: OperatorOutput,
    email: Annotated[str, Argument(help="Email address of the owner.")],
    allow_env: Annotated[
        list[str] | None,
        Option(help="Variable that the account's `environment` pointers may name; repeatable."),
    ] = None,
    max_cost_usd_per_day: DailyLimit = None,
    operator: Annotated[
        bool,
        Option(
            "--operator", help="Give the account operator rights: it may share its connections."
        ),
    ] = False,
) -> None:
    """Make an account and print its key, only this once; a server may be running.

    The account's pointers may name the vendors' conventional variables, and those given here.
    """
    from toolkit.contract.account import AccountCreate, AccountCreated
    from toolkit.engine.access.accounts import Accounts

    settings = shell.make_settings()
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
    shell.print_change(account, f"{account.id} {account.email}\n{account.api_key}")


@_operator_command
def limit_account(
    shell: OperatorOutput,
    account: Annotated[
        str, Argument(help="Email address or id of the account.", autocompletion=complete_accounts)
    ],
    max_cost_usd_per_day: DailyLimit = None,
    unlimited: Annotated[bool, Option("--unlimited", help="Remove the limit.")] = False,
) -> None:
    """Set an account's maximum cost per day for all its keys together; a server may be running."""
    from toolkit.contract.account import Account
    from toolkit.engine.access.accounts import Accounts

    if (max_cost_usd_per_day is None) != unlimited:
        raise typer.BadParameter("give either --max-cost-usd-per-day or --unlimited")
    settings = shell.make_settings()

    async def set_limit(store: "Store") -> Account:
        return await Accounts(store, settings).set_daily_limit(account, max_cost_usd_per_day)

    record = run_on_store(settings, set_limit)
    limit = record.max_cost_usd_per_day
    allowed = "without a daily limit" if limit is None else f"${limit:g} a day"
    shell.print_change(record, f"{record.email} may spend {allowed}.")


@_operator_command
def list_accounts(shell: OperatorOutput) -> None:
    """List the accounts of a data directory, with today's cost and the stored data of each."""
    shell.print_table(shell.read(lambda admin: admin.list_all()), ACCOUNT_COLUMNS)


@_operator_command
def list_keys(shell: OperatorOutput, account: AccountName) -> None:
    """List an account's keys, including ended keys, without the secrets themselves."""
    shell.print_table(shell.read(lambda admin: admin.list_keys(account)), KEY_COLUMNS)


def show_account(target: Target, account: str | None) -> bool:
    """Show the named account from its data directory; return False if no account is named.

    Raises:
        BadParameter: a server is named, too.
    """
    if account is None:
        return False
    if target.base_url or target.profile:
        raise typer.BadParameter(
            "a server shows only the account of the key: name a data directory, or no account",
            param_hint="--base-url" if target.base_url else "--profile",
        )
    from toolkit.settings import Settings

    settings = Settings() if target.data_dir is None else Settings(data_dir=target.data_dir)
    record = _run_on_accounts(settings, lambda admin: admin.describe(account), read_only=True)
    OperatorOutput(as_json=target.as_json).print_record(record, "keys", KEY_COLUMNS)
    return True


@_operator_command
def disable(
    shell: OperatorOutput,
    account: AccountName,
    let_finish: Annotated[
        bool, Option("--let-finish", help="Let work in progress finish.")
    ] = False,
) -> None:
    """Refuse an account's keys, and end its work under way; nothing of it is deleted."""
    report = shell.change(lambda admin: admin.disable(account, let_finish=let_finish))
    if shell.as_json:
        shell.print_record(report)
        return
    print(f"✓ {report.id} {report.email} is disabled: its keys answer 401 UNAUTHENTICATED.")
    if report.ended:
        print(f"  {report.ended} in progress were cancelled.")
    if report.under_way and let_finish:
        print(f"  {report.under_way} in progress continue.")
    elif report.under_way:
        print(f"  {report.under_way} in progress will be cancelled when a server starts.")
    _print_infrastructure(shell, report.rented)


def _print_infrastructure(shell: OperatorOutput, rented: "list[RentedResource]") -> None:
    if rented:
        resources = ", ".join(f"{resource.id} ({resource.status})" for resource in rented)
        shell.print_note(
            f"It has {resources} at a GPU cloud, billed until deleted. To delete"
            " them, run `toolkit account enable` and use a key of `toolkit account"
            " recover`."
        )


@_operator_command
def enable(shell: OperatorOutput, account: AccountName) -> None:
    """Make a disabled account's keys work again."""
    record = shell.change(lambda admin: admin.enable(account))
    shell.print_change(record, f"{record.id} {record.email} is enabled: its keys work again.")


@_operator_command
def promote(shell: OperatorOutput, account: AccountName) -> None:
    """Give an account operator rights: it may share its connections with others."""
    record = shell.change(lambda admin: admin.set_operator(account, operator=True))
    shell.print_change(
        record, f"{record.id} {record.email} may share: toolkit connections share VENDOR --all."
    )


@_operator_command
def demote(shell: OperatorOutput, account: AccountName) -> None:
    """Take away an account's operator rights; others can no longer use its shared connections."""
    record = shell.change(lambda admin: admin.set_operator(account, operator=False))
    shell.print_change(
        record,
        f"{record.id} {record.email} may no longer share, and others cannot use its connections.",
    )


@_operator_command
def recover(
    shell: OperatorOutput,
    account: AccountName,
    revoke_others: Annotated[
        bool, Option("--revoke-others", help="Revoke all its other keys at once.")
    ] = False,
) -> None:
    """Make a key with all scopes for an account that lost its key; it is shown only once."""
    recovery = shell.change(lambda admin: admin.recover(account, revoke_others=revoke_others))
    if shell.as_json:
        shell.print_record(recovery)
        return
    print(f"✓ {recovery.account.id} {recovery.account.email}: {recovery.id}\n{recovery.api_key}")
    if recovery.revoked:
        shell.print_note(f"Revoked: {', '.join(recovery.revoked)}.")
    if recovery.still_good:
        keys = ", ".join(f"{key.id} (…{key.last4})" for key in recovery.still_good)
        shell.print_note(
            f"Still valid: {keys}. Revoke the lost key with the new key: toolkit"
            " keys revoke ID; or revoke all other keys: --revoke-others."
        )
    if recovery.account.disabled_at is not None:
        shell.print_note(f"The account is disabled: toolkit account enable {recovery.account.id}.")
