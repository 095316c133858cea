# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.api_keys`: the keys of the account."""

from toolkit.client._definition_views import ApiKeyView
from toolkit.client._replies import Reply
from toolkit.client._resource_calls import ApiKeyCalls, ApiKeyHandleCalls
from toolkit.client._sync.handle import Deletable
from toolkit.client._sync.resource import Resource
from toolkit.contract import account


class ApiKey(
    ApiKeyView,
    Deletable[account.ApiKey],
    ApiKeyHandleCalls[Reply[account.KeyCreated]],
):
    """The record of an API key: never the key itself. Deleting it revokes the key at once."""

    noun, resource, record_type = "Key", "account/keys", account.ApiKey


class ApiKeys(ApiKeyCalls[Reply[ApiKey], Reply[account.KeyCreated]], Resource[ApiKey]):
    """`client.api_keys`. Deleting a key revokes it; its record remains."""

    handle = ApiKey
