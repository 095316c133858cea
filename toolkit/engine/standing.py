"""If an account's keys are good, as its operator says: asked wherever one comes in."""

import json

from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.store import Store

DISABLED = "The account of this key is disabled: ask whoever operates the service."


async def is_disabled(store: Store, account_id: str) -> bool:
    """Tell if the operator has disabled an account."""
    row = await store.get("accounts", account_id, "doc")
    return row is not None and json.loads(str(row["doc"])).get("disabled_at") is not None


async def check_enabled(store: Store, account_id: str) -> None:
    """Refuse what is asked for with a key of a disabled account.

    Raises:
        RequestError: `UNAUTHENTICATED`, as the key is good for nothing any more.
    """
    if await is_disabled(store, account_id):
        raise RequestError(ErrorCode.UNAUTHENTICATED, DISABLED)
