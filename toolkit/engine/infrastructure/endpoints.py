"""Serverless endpoints: workers that scale to zero, at the GPU cloud the account has connected."""

from toolkit.contract.base import now
from toolkit.contract.endpoints import Endpoint, EndpointCreate
from toolkit.contract.errors import Detail, ErrorCode, RequestError
from toolkit.contract.ids import Prefix, new_id
from toolkit.engine.context import EngineContext
from toolkit.engine.infrastructure.catalog import Catalog
from toolkit.engine.infrastructure.managed_resource import ManagedResource, make_vendor_name
from toolkit.engine.infrastructure.resource_refs import resolve_refs
from toolkit.engine.request_context import RequestContext
from toolkit.plugins.infrastructure import (
    EndpointCreation,
    ResourceState,
)

DEFAULT_POOL = "ADA_24"


class Endpoints(ManagedResource[Endpoint, ResourceState]):
    """The operations of `/v1/endpoints`."""

    table = "endpoints"
    creation = EndpointCreation
    resource = "endpoint"

    def __init__(self, core: EngineContext, catalog: Catalog) -> None:
        super().__init__(core, core.records.endpoints)
        self._catalog = catalog

    async def create(self, context: RequestContext, request: EndpointCreate) -> Endpoint:
        """Create an endpoint at the GPU cloud that the account has connected.

        Raises:
            RequestError: `FORBIDDEN` for a key with an allowance if workers never stop;
                `CREDENTIALS_MISSING`; `NOT_FOUND` for an unknown template or storage,
                `CONFLICT` if either is not ready; `INVALID_REQUEST` if the maximum of workers is
                below the minimum, a pool is not in the catalogue, or a template is for pods.
        """
        if request.workers_min > request.workers_max:
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                "workers_min is more than workers_max.",
                details=[Detail("workers_min", f"is more than {request.workers_max}")],
            )
        if request.workers_min:
            await self._core.allowances.check_renting(context)
        refs = await resolve_refs(
            self._core, context.account_id, request.storage_id, request.template_id, serverless=True
        )
        await self._core.directory.find_cloud(context.scope, self.creation.kind)
        if request.gpu_ids is not None:
            await self._catalog.check_pool(context.scope, request.gpu_ids)
        pool = request.gpu_ids or DEFAULT_POOL
        endpoint = Endpoint(
            id=new_id(Prefix.ENDPOINT),
            created_at=now(),
            price_per_hour_usd=await self._catalog.find_pool_price(context.scope, pool),
            **{**request.model_dump(), "gpu_ids": pool},
        )
        creation = EndpointCreation(
            name=make_vendor_name(endpoint),
            gpu_pool=endpoint.gpu_ids,
            workers_min=endpoint.workers_min,
            workers_max=endpoint.workers_max,
            image=endpoint.image,
            template_id=refs.template_id,
            volume_ids=() if refs.volume_id is None else (refs.volume_id,),
        )
        await self._create_at_vendor(context, endpoint, creation, refs.own_ids)
        return endpoint
