"""Which secrets an account's pointers may lead to (decisions, "Pointers")."""

import json
from collections.abc import Collection

from toolkit.contract.connections import is_variable
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.secrets import OWN_PREFIX
from toolkit.store import Store


def spelled(allow_env: Collection[str]) -> str:
    """What the operator lets an account have, as its row tells it.

    Raises:
        RequestError: `INVALID_REQUEST` for what no variable is called, and for our own settings.
    """
    for name in allow_env:
        if not is_variable(name) or name.upper().startswith(OWN_PREFIX):
            raise RequestError(
                ErrorCode.INVALID_REQUEST, f"`{name}` is no variable that a pointer may name."
            )
    return json.dumps({"allow_env": sorted(allow_env)})


class Grants:
    """The variables that accounts may point to beside those that all may.

    Args:
        store: knows the accounts that the operator made, and what each was given.
        conventional: the vendors' own variables, which each of those accounts has.
    """

    def __init__(self, store: Store, conventional: Collection[str]) -> None:
        self._store = store
        self._conventional = frozenset(conventional)

    async def of_connection(self, connection_id: str) -> frozenset[str]:
        """The variables for the account whose connection this is; none for one that signed up.

        Whose it is, is told by the store and not by whoever asks.
        """
        connection = await self._store.get("connections", connection_id, "account_id")
        if connection is None:
            return frozenset()
        account = await self._store.get("accounts", str(connection["account_id"]), "spec")
        if account is None or account["spec"] is None:
            return frozenset()
        return self._conventional.union(json.loads(str(account["spec"]))["allow_env"])
