# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.catalog`: GPUs that can be rented, and vendors' models, with list prices."""

from toolkit.client._collections import Collection
from toolkit.client._definition_views import GpuView, ModelView
from toolkit.client._replies import Reply
from toolkit.client._resource_calls import CatalogCalls


class Catalog(CatalogCalls[Reply[Collection[GpuView]], Reply[Collection[ModelView]]]):
    """`client.catalog`: the GPUs and models that vendors offer, with list prices."""
