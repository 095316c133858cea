"""Storage: network volumes at the GPU cloud that the account has connected."""

from toolkit.contract.base import now
from toolkit.contract.ids import Prefix, new_id
from toolkit.contract.storage import Storage, StorageCreate
from toolkit.engine.context import EngineContext
from toolkit.engine.infrastructure.managed_resource import ManagedResource
from toolkit.engine.infrastructure.resource_refs import check_unused
from toolkit.engine.infrastructure.resource_type import make_vendor_name
from toolkit.engine.request_context import RequestContext
from toolkit.plugins.infrastructure import (
    VolumeCreation,
    VolumeDeletion,
    VolumeListing,
    VolumeState,
)

DEFAULT_DATA_CENTER = "EU-RO-1"


class Storages(ManagedResource[Storage, VolumeState]):
    """`/v1/storage`."""

    table = "storage"
    creation = VolumeCreation
    listing = VolumeListing()

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

    async def _make_deletion(self, record: Storage, vendor_id: str) -> VolumeDeletion:  # noqa: ARG002
        return VolumeDeletion(vendor_id=vendor_id)

    async def _check_deletable(self, account_id: str, record: Storage) -> None:
        await check_unused(self._core, account_id, "storage_id", record.id)
