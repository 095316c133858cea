"""An account's status, enabled or disabled by the operator; checked wherever a key is used."""

import json

from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.store import Store

DISABLED_MESSAGE = "The account of this key is disabled: ask the operator of the service."


async def is_disabled(store: Store, account_id: str) -> bool:
    """Check whether the operator has disabled an account; False for an unknown account."""
    row = await store.get_row("accounts", account_id, "doc")
    return row is not None and json.loads(str(row["doc"])).get("disabled_at") is not None


def make_disabled_error() -> RequestError:
    """Make the error for a request with a key of a disabled account."""
    return RequestError(ErrorCode.UNAUTHENTICATED, DISABLED_MESSAGE)
