# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.endpoints`: serverless endpoints."""

from toolkit.client._infrastructure import EndpointCalls, EndpointView
from toolkit.client._replies import Reply
from toolkit.client._sync.handle import Deletable
from toolkit.client._sync.resource import Resource
from toolkit.contract import endpoints


class Endpoint(EndpointView, Deletable[endpoints.Endpoint]):
    """A serverless GPU endpoint of a GPU cloud."""

    noun, resource, record_type = "Endpoint", "endpoints", endpoints.Endpoint


class Endpoints(EndpointCalls[Reply[Endpoint]], Resource[Endpoint]):
    """`client.endpoints`: create, list and delete serverless endpoints."""

    handle = Endpoint
