"""`client.api_keys`: the keys of the account."""

from toolkit.client._async.handle import AsyncDeletable
from toolkit.client._async.resource import AsyncResource
from toolkit.client._definition_views import ApiKeyView
from toolkit.client._replies import AsyncReply
from toolkit.client._resource_calls import ApiKeyCalls, ApiKeyHandleCalls
from toolkit.contract import account


class AsyncApiKey(
    ApiKeyView,
    AsyncDeletable[account.ApiKey],
    ApiKeyHandleCalls[AsyncReply[account.KeyCreated]],
):
    """The record of an API key: never the key itself. Deleting it revokes the key at once."""

    noun, resource, record_type = "Key", "account/keys", account.ApiKey


class AsyncApiKeys(
    ApiKeyCalls[AsyncReply[AsyncApiKey], AsyncReply[account.KeyCreated]], AsyncResource[AsyncApiKey]
):
    """`client.api_keys`. Deleting a key revokes it; its record remains."""

    handle = AsyncApiKey
