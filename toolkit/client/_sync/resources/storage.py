# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.storage`: network volumes."""

from toolkit.client._infrastructure_views import StorageView
from toolkit.client._sync.handle import Deletable
from toolkit.client._sync.resource import DeletableResource
from toolkit.client._wire.messages import drop_none
from toolkit.contract import storage


class Storage(StorageView, Deletable[storage.Storage]):
    """A network volume."""

    noun, resource, record_type = "Storage", "storage", storage.Storage


class Storages(DeletableResource[Storage]):
    """`client.storage`."""

    handle = Storage

    def create(self, name: str, size_gb: int, *, data_center: str | None = None) -> Storage:
        """Rent a network volume; it is billed by its size until it is deleted.

        Args:
            name: what to call it.
            size_gb: gigabytes, 10 to 4096.
            data_center: where it is, such as `EU-RO-1`; the service chooses by default.

        Raises:
            RequestError: `CREDENTIALS_MISSING`, `INVALID_REQUEST`.
        """
        return self._create(drop_none(name=name, size_gb=size_gb, data_center=data_center))
