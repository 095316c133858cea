"""The operations on the caller's account, its keys, its usage and its bill."""

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

_ACCOUNT = ApiResource("/v1/account", "The caller's account and its API keys.")
ACCOUNT_READ: ApiOperation[None, CallerAccount] = ApiOperation(
    _ACCOUNT,
    "read",
    "GET",
    "",
    CallerAccount,
    "Read the caller's account, and the facts of the key that was sent.",
    scope="read",
)
ACCOUNT_CREATE: ApiOperation[AccountCreate, AccountCreated] = ApiOperation(
    _ACCOUNT,
    "create",
    "POST",
    "",
    AccountCreated,
    "Open an account. Its key is shown only once.",
    (ErrorCode.CONFLICT,),
    scope=None,
    status=201,
    body=AccountCreate,
    shows_key=True,
)

_KEYS = ApiResource("/v1/account/keys", _ACCOUNT.about, Prefix.KEY, heading="account")
KEYS_LIST = _KEYS.define_list(
    ApiKey, "List the account's keys, each with only its last four characters.", scope="admin"
)
KEYS_CREATE: ApiOperation[KeyCreate, KeyCreated] = ApiOperation(
    _KEYS,
    "create",
    "POST",
    "",
    KeyCreated,
    "Create a key with scopes and spending limits. The key is shown only once.",
    scope="admin",
    status=201,
    body=KeyCreate,
    shows_key=True,
)
KEYS_READ = _KEYS.define_read(
    ApiKey, "Read the facts of a key, with only its last four characters.", scope="admin"
)
KEYS_DELETE = _KEYS.define_delete(ApiKey, "Revoke a key at once.", scope="admin")
KEYS_ROTATE: ApiOperation[KeyRotate, KeyCreated] = ApiOperation(
    _KEYS,
    "rotate",
    "POST",
    "/{id}/rotate",
    KeyCreated,
    "Replace a key by a new key, which is shown only once. The old key stays valid for a while.",
    (ErrorCode.CONFLICT,),
    scope="admin",
    status=201,
    body=KeyRotate,
    shows_key=True,
)

_BILLING = ApiResource("/v1/billing", "Each vendor's bill for the caller.")
BILLING_READ: ApiOperation[BillingQuery, Billing] = ApiOperation(
    _BILLING,
    "read",
    "GET",
    "",
    Billing,
    "Report each vendor's bill for a month. The platform's own line is 0.",
    scope="read",
    query=BillingQuery,
)

_USAGE = ApiResource("/v1/usage", "The usage and its cost.")
USAGE_LIST: ApiOperation[UsageQuery, Sequence[UsageLine]] = ApiOperation(
    _USAGE,
    "list",
    "GET",
    "",
    UsageLine,
    "Total the usage by day, capability, provider, connection, agent, key or account.",
    scope="read",
    form="page",
    query=UsageQuery,
)
