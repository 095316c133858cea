"""`client.storage`: network volumes."""

from toolkit.client._async.handle import AsyncDeletable
from toolkit.client._async.resource import AsyncDeletableResource
from toolkit.client._infrastructure_views import StorageView
from toolkit.client._wire.messages import drop_none
from toolkit.contract import storage


class AsyncStorage(StorageView, AsyncDeletable[storage.Storage]):
    """A network volume."""

    noun, resource, record_type = "Storage", "storage", storage.Storage


class AsyncStorages(AsyncDeletableResource[AsyncStorage]):
    """`client.storage`."""

    handle = AsyncStorage

    async def create(
        self, name: str, size_gb: int, *, data_center: str | None = None
    ) -> AsyncStorage:
        """Rent a network volume; it is billed by its size until it is deleted.

        Args:
            name: what to call it.
            size_gb: gigabytes, 10 to 4096.
            data_center: where it is, such as `EU-RO-1`; the service chooses by default.

        Raises:
            RequestError: `CREDENTIALS_MISSING`, `INVALID_REQUEST`.
        """
        return await self._create(drop_none(name=name, size_gb=size_gb, data_center=data_center))
