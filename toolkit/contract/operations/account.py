"""The operations on an account: itself, its keys, its usage and its bill."""

from collections.abc import Sequence

from toolkit.contract.account import (
    AccountCreate,
    AccountCreated,
    ApiKey,
    CallerAccount,
    KeyCreate,
    KeyCreated,
    KeyRotate,
)
from toolkit.contract.billing import Billing
from toolkit.contract.errors import ErrorCode
from toolkit.contract.ids import Prefix
from toolkit.contract.operations.definitions import ApiOperation, ApiResource
from toolkit.contract.operations.queries import BillingQuery, UsageQuery
from toolkit.contract.usage import UsageLine

_ACCOUNT = ApiResource("/v1/account", "The caller's account, and the keys that open it.")
ACCOUNT_READ: ApiOperation[None, CallerAccount] = ApiOperation(
    _ACCOUNT,
    "read",
    "GET",
    "",
    CallerAccount,
    "Read the caller's account, and what is known of the key that was sent.",
    scope="read",
)
ACCOUNT_CREATE: ApiOperation[AccountCreate, AccountCreated] = ApiOperation(
    _ACCOUNT,
    "create",
    "POST",
    "",
    AccountCreated,
    "Open an account; its key is shown this once.",
    (ErrorCode.CONFLICT,),
    scope=None,
    status=201,
    body=AccountCreate,
    shows_key=True,
)

_KEYS = ApiResource("/v1/account/keys", _ACCOUNT.about, Prefix.KEY, heading="account")
KEYS_LIST = _KEYS.define_list(ApiKey, "List keys: their last four characters only.", scope="admin")
KEYS_CREATE: ApiOperation[KeyCreate, KeyCreated] = ApiOperation(
    _KEYS,
    "create",
    "POST",
    "",
    KeyCreated,
    "Make another key, with its scopes and what it may spend in a day; it is shown this once.",
    scope="admin",
    status=201,
    body=KeyCreate,
    shows_key=True,
)
KEYS_READ = _KEYS.define_read(
    ApiKey, "Read what is known of a key: its last four characters only.", scope="admin"
)
KEYS_DELETE = _KEYS.define_delete(ApiKey, "Revoke a key at once.", scope="admin")
KEYS_ROTATE: ApiOperation[KeyRotate, KeyCreated] = ApiOperation(
    _KEYS,
    "rotate",
    "POST",
    "/{id}/rotate",
    KeyCreated,
    "Make a key in the place of another, which is good for a while yet; it is shown this once.",
    (ErrorCode.CONFLICT,),
    scope="admin",
    status=201,
    body=KeyRotate,
    shows_key=True,
)

_BILLING = ApiResource("/v1/billing", "What each vendor bills the caller.")
BILLING_READ: ApiOperation[BillingQuery, Billing] = ApiOperation(
    _BILLING,
    "read",
    "GET",
    "",
    Billing,
    "Tell what each vendor bills for a month; the platform's own line is 0 here.",
    scope="read",
    query=BillingQuery,
)

_USAGE = ApiResource("/v1/usage", "What work has cost.")
USAGE_LIST: ApiOperation[UsageQuery, Sequence[UsageLine]] = ApiOperation(
    _USAGE,
    "list",
    "GET",
    "",
    UsageLine,
    "Sum up what was used, by day, capability, provider, connection, agent, key or account.",
    scope="read",
    form="page",
    query=UsageQuery,
)
