"""Grants: the environment variables that an account's pointers may name (decisions, "Pointers")."""

import json
from collections.abc import Collection

from toolkit.contract.connections import is_variable_name
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.secrets import SETTINGS_PREFIX
from toolkit.store import Store


def format_allow_env(allow_env: Collection[str]) -> str:
    """Format the environment variables that the operator allows an account as the JSON of its row.

    Raises:
        RequestError: `INVALID_REQUEST` for an invalid variable name, and for our own settings.
    """
    for name in allow_env:
        if not is_variable_name(name) or name.upper().startswith(SETTINGS_PREFIX):
            raise RequestError(
                ErrorCode.INVALID_REQUEST, f"A pointer may not name the variable `{name}`."
            )
    return json.dumps({"allow_env": sorted(allow_env)})


class Grants:
    """The environment variables that an account's pointers may name beyond those allowed to all.

    Args:
        store: store of the accounts that the operator made, and of their variables.
        conventional: vendors' own variables, which each of those accounts may use.
    """

    def __init__(self, store: Store, conventional: Collection[str]) -> None:
        self._store = store
        self._conventional = frozenset(conventional)

    async def find_variables(self, connection_id: str) -> frozenset[str]:
        """Find the environment variables that a connection's pointer may name.

        The owner is read from the store, not taken from the caller. The set is empty if the owner
        signed up itself, or the connection is unknown.
        """
        connection = await self._store.get_row("connections", connection_id, "account_id")
        if connection is None:
            return frozenset()
        account = await self._store.get_row("accounts", str(connection["account_id"]), "spec")
        if account is None or account["spec"] is None:
            return frozenset()
        return self._conventional.union(json.loads(str(account["spec"]))["allow_env"])
