"""`client.endpoints`: serverless endpoints."""

from toolkit.client._async.handle import AsyncDeletable
from toolkit.client._async.resource import AsyncResource
from toolkit.client._infrastructure import EndpointCalls, EndpointView
from toolkit.client._replies import AsyncReply
from toolkit.contract import endpoints


class AsyncEndpoint(EndpointView, AsyncDeletable[endpoints.Endpoint]):
    """A serverless GPU endpoint of a GPU cloud."""

    noun, resource, record_type = "Endpoint", "endpoints", endpoints.Endpoint


class AsyncEndpoints(EndpointCalls[AsyncReply[AsyncEndpoint]], AsyncResource[AsyncEndpoint]):
    """`client.endpoints`: create, list and delete serverless endpoints."""

    handle = AsyncEndpoint
