"""`client.catalog`: GPUs that can be rented, and vendors' models, with list prices."""

from toolkit.client._collections import Collection
from toolkit.client._definition_views import GpuView, ModelView
from toolkit.client._replies import AsyncReply
from toolkit.client._resource_calls import CatalogCalls


class AsyncCatalog(
    CatalogCalls[AsyncReply[Collection[GpuView]], AsyncReply[Collection[ModelView]]]
):
    """`client.catalog`: the GPUs and models that vendors offer, with list prices."""
