"""`client.storage`: network volumes."""

from toolkit.client._async.handle import AsyncDeletable
from toolkit.client._async.resource import AsyncResource
from toolkit.client._infrastructure import StorageCalls, StorageView
from toolkit.client._replies import AsyncReply
from toolkit.contract import storage


class AsyncStorage(StorageView, AsyncDeletable[storage.Storage]):
    """A network volume of a GPU cloud, which is billed until it is deleted."""

    noun, resource, record_type = "Storage", "storage", storage.Storage


class AsyncStorages(StorageCalls[AsyncReply[AsyncStorage]], AsyncResource[AsyncStorage]):
    """`client.storage`: rent, list and delete network volumes."""

    handle = AsyncStorage
