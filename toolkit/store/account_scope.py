"""The scope of a read: the rows of one account, or of all accounts.

The condition on a table's `account_id` is built here and nowhere else, so tenancy is decided in
one place. A statement takes its scope as an argument, and nothing rewrites it afterwards.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from sqlalchemy import ColumnElement, Table, bindparam, true

ScopeKind: TypeAlias = Literal["account", "all"]


@dataclass(frozen=True, slots=True)
class AccountScope:
    """The rows of one account."""

    account_id: str

    kind: ClassVar[ScopeKind] = "account"


@dataclass(frozen=True, slots=True)
class AllAccounts:
    """The rows of all accounts; only the owner of the database may read these."""

    kind: ClassVar[ScopeKind] = "all"


ReadScope: TypeAlias = AccountScope | AllAccounts


def build_account_condition(kind: ScopeKind, table: str) -> str:
    """Build the condition, in SQL, that a row of a table is in a scope.

    >>> build_account_condition("account", "jobs")
    'jobs.account_id = :account_id'
    >>> build_account_condition("all", "jobs")
    'TRUE'
    """
    return "TRUE" if kind == "all" else f"{table}.account_id = :account_id"


def make_account_condition(kind: ScopeKind, table: Table) -> ColumnElement[bool]:
    """Make the condition of `build_account_condition` as an expression of SQLAlchemy."""
    return true() if kind == "all" else table.c.account_id == bindparam("account_id")


def get_scope_values(scope: ReadScope) -> dict[str, object]:
    """Return the parameter of the account condition; no parameter for the scope of all accounts."""
    return {} if isinstance(scope, AllAccounts) else {"account_id": scope.account_id}
