"""Storage: network volumes at the GPU cloud that the account has connected."""

from toolkit.contract.base import now
from toolkit.contract.ids import Prefix, new_id
from toolkit.contract.storage import Storage, StorageCreate
from toolkit.engine.context import EngineContext
from toolkit.engine.infrastructure.managed_resource import ManagedResource, make_vendor_name
from toolkit.engine.request_context import RequestContext
from toolkit.plugins.infrastructure import (
    ResourceState,
    VolumeCreation,
)

DEFAULT_DATA_CENTER = "EU-RO-1"


class Storages(ManagedResource[Storage, ResourceState]):
    """The operations of `/v1/storage`: network volumes."""

    table = "storage"
    creation = VolumeCreation
    resource = "volume"
    used_as = "storage_id"

    def __init__(self, core: EngineContext) -> None:
        super().__init__(core, core.records.storage)

    async def create(self, context: RequestContext, request: StorageCreate) -> Storage:
        """Rent a network volume; it is billed until it is deleted.

        Raises:
            RequestError: `FORBIDDEN` for a key with an allowance; `CREDENTIALS_MISSING`.
        """
        await self._core.allowances.check_renting(context)
        storage = Storage(
            id=new_id(Prefix.STORAGE),
            created_at=now(),
            name=request.name,
            size_gb=request.size_gb,
            data_center=request.data_center or DEFAULT_DATA_CENTER,
        )
        creation = VolumeCreation(
            name=make_vendor_name(storage), size_gb=storage.size_gb, data_center=storage.data_center
        )
        await self._create_at_vendor(context, storage, creation)
        return storage
