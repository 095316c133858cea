"""`client.catalog`: GPUs that can be rented, and vendors' models, with list prices."""

from toolkit.client._async.http import AsyncHttpClient
from toolkit.client._collections import Collection
from toolkit.client._definition_views import GpuView, ModelView
from toolkit.contract.catalog import CatalogModel, Gpu


class AsyncCatalog:
    """`client.catalog`: GPUs that can be rented, and vendors' models, with list prices."""

    def __init__(self, http: AsyncHttpClient) -> None:
        self._http = http

    async def gpus(self) -> Collection[GpuView]:
        """List the GPUs of the connected cloud, by the id that a compute's `gpu_type` takes.

        Raises:
            RequestError: `CREDENTIALS_MISSING`.
        """
        page = await self._http.request_page(Gpu, "/catalog/gpus")
        return Collection([GpuView(gpu) for gpu in page.records], "GPUs")

    async def models(self) -> Collection[ModelView]:
        """List every vendor's models with their list prices."""
        page = await self._http.request_page(CatalogModel, "/catalog/models")
        return Collection([ModelView(model) for model in page.records], "models")
