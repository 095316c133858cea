"""The roles of a table: each table declares them next to its columns, and upkeep reads them.

Pruning, counting, the version of the configuration, moves and checks follow them. So adding a table
is one edit.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from sqlalchemy import Table

OwnerKind: TypeAlias = Literal["root", "workflow", "job"]
# A time before which work is pruned, or idempotent answers are; or a past day that ends a text.
Expiry: TypeAlias = Literal["work", "answer", "day"]

_ROLES_KEY: Final = "roles"


@dataclass(frozen=True, slots=True)
class TableRoles:
    """The roles of a table.

    Attributes:
        counted: text columns that a caller can grow. Their bytes, and those of the row, are added
            to the stored bytes of the row's account.
        decisive: columns that decide about access: a change of one raises the version of the
            configuration.
        deleted_with: kinds of owners that a column refers to, by column; a row is pruned together
            with any of them.
        expires_by: column by which rows without an owner are pruned, and their expiry.
        owns_rows: whether rows of other tables are deleted with its rows, and so before them.
        is_managed: whether its records are of resources at a GPU cloud.
        is_derived: whether its rows are derived from other rows, or describe running engines; a
            move does not copy them.
    """

    counted: tuple[str, ...] = ()
    decisive: tuple[str, ...] = ()
    deleted_with: Mapping[str, tuple[OwnerKind, ...]] = field(default_factory=dict)
    expires_by: tuple[str, Expiry] | None = None
    owns_rows: bool = False
    is_managed: bool = False
    is_derived: bool = False

    def to_info(self) -> dict[str, "TableRoles"]:
        """Return the roles as the argument `info` of a table."""
        return {_ROLES_KEY: self}


_NONE: Final = TableRoles()


def get_roles(table: Table) -> TableRoles:
    """Return the roles that a table declares."""
    roles: TableRoles = table.info.get(_ROLES_KEY, _NONE)
    return roles
