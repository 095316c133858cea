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

_ACCOUNT = ApiResource(
    "account", "/v1/account", "account", "The caller's account, and the keys that open it."
)
ACCOUNT_READ: ApiOperation[None, CallerAccount] = _ACCOUNT.define(
    "read",
    "GET",
    "",
    CallerAccount,
    "Read the caller's account, and what is known of the key that was sent.",
    scope="read",
)
ACCOUNT_CREATE: ApiOperation[AccountCreate, AccountCreated] = _ACCOUNT.define(
    "create",
    "POST",
    "",
    AccountCreated,
    "Open an account; its key is shown this once.",
    ErrorCode.CONFLICT,
    scope=None,
    status=201,
    body=AccountCreate,
    replays=False,
)

_KEYS = ApiResource("keys", "/v1/account/keys", _ACCOUNT.tag, _ACCOUNT.about, Prefix.KEY)
KEYS_LIST = _KEYS.define_list(ApiKey, "List keys: their last four characters only.", scope="admin")
KEYS_CREATE: ApiOperation[KeyCreate, KeyCreated] = _KEYS.define(
    "create",
    "POST",
    "",
    KeyCreated,
    "Make another key, with its scopes and what it may spend in a day; it is shown this once.",
    scope="admin",
    status=201,
    body=KeyCreate,
    replays=False,
)
KEYS_READ = _KEYS.define_read(
    ApiKey, "Read what is known of a key: its last four characters only.", scope="admin"
)
KEYS_DELETE = _KEYS.define_delete(ApiKey, "Revoke a key at once.", scope="admin")
KEYS_ROTATE: ApiOperation[KeyRotate, KeyCreated] = _KEYS.define(
    "rotate",
    "POST",
    "/{id}/rotate",
    KeyCreated,
    "Make a key in the place of another, which is good for a while yet; it is shown this once.",
    ErrorCode.CONFLICT,
    scope="admin",
    status=201,
    body=KeyRotate,
    replays=False,
)

_BILLING = ApiResource("billing", "/v1/billing", "billing", "What each vendor bills the caller.")
BILLING_READ: ApiOperation[BillingQuery, Billing] = _BILLING.define(
    "read",
    "GET",
    "",
    Billing,
    "Tell what each vendor bills for a month; the platform's own line is 0 here.",
    scope="read",
    query=BillingQuery,
)

_USAGE = ApiResource("usage", "/v1/usage", "usage", "What work has cost.")
USAGE_LIST: ApiOperation[UsageQuery, Sequence[UsageLine]] = _USAGE.define(
    "list",
    "GET",
    "",
    UsageLine,
    "Sum up what was used, by day, capability, provider, connection, agent, key or account.",
    scope="read",
    form="page",
    query=UsageQuery,
)
