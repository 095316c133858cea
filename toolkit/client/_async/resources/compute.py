"""`client.compute`: GPU pods."""

from toolkit.client._async.handle import AsyncDeletable
from toolkit.client._async.resource import AsyncResource
from toolkit.client._infrastructure import ComputeCalls, ComputeView
from toolkit.client._replies import AsyncReply
from toolkit.contract import compute


class AsyncCompute(ComputeView, AsyncDeletable[compute.Compute]):
    """A rented GPU pod, which is billed until it is deleted."""

    noun, resource, record_type = "Compute", "compute", compute.Compute


class AsyncComputes(ComputeCalls[AsyncReply[AsyncCompute]], AsyncResource[AsyncCompute]):
    """`client.compute`: rent, list and delete GPU pods."""

    handle = AsyncCompute
