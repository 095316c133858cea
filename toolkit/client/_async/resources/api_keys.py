"""`client.api_keys`: the keys of the account."""

from toolkit.client._async.handle import AsyncDeletable
from toolkit.client._async.resource import AsyncResource
from toolkit.client._definition_views import ApiKeyView
from toolkit.client._replies import AsyncReply
from toolkit.client._resource_calls import ApiKeyCalls
from toolkit.client._wire.messages import drop_none
from toolkit.contract import account


class AsyncApiKey(ApiKeyView, AsyncDeletable[account.ApiKey]):
    """The record of an API key: never the key itself. Deleting it revokes the key at once."""

    noun, resource, record_type = "Key", "account/keys", account.ApiKey

    async def rotate(self, *, overlap_s: int | None = None) -> account.KeyCreated:
        """Replace it by a new one, which is shown this once.

        Args:
            overlap_s: how long it is still good, in seconds; a day by default, 0 ends it at once.

        Raises:
            RequestError: `CONFLICT` for one that has ended, or was rotated before.
        """
        return await self._http.request_record(
            account.KeyCreated,
            "POST",
            f"{self.path}/rotate",
            json=drop_none(overlap_s=overlap_s),
        )


class AsyncApiKeys(
    ApiKeyCalls[AsyncReply[AsyncApiKey], AsyncReply[account.KeyCreated]], AsyncResource[AsyncApiKey]
):
    """`client.api_keys`; deleting one revokes it, and its record stays."""

    handle = AsyncApiKey
