# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.storage`: network volumes."""

from toolkit.client._infrastructure import StorageCalls, StorageView
from toolkit.client._replies import Reply
from toolkit.client._sync.handle import Deletable
from toolkit.client._sync.resource import Resource
from toolkit.contract import storage


class Storage(StorageView, Deletable[storage.Storage]):
    """A network volume of a GPU cloud, which is billed until it is deleted."""

    noun, resource, record_type = "Storage", "storage", storage.Storage


class Storages(StorageCalls[Reply[Storage]], Resource[Storage]):
    """`client.storage`: rent, list and delete network volumes."""

    handle = Storage
