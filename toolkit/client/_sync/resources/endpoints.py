# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.endpoints`: serverless endpoints."""

from toolkit.client._infrastructure_views import EndpointView
from toolkit.client._sync.handle import Deletable
from toolkit.client._sync.resource import DeletableResource
from toolkit.client._wire.messages import drop_none
from toolkit.contract import endpoints


class Endpoint(EndpointView, Deletable[endpoints.Endpoint]):
    """A serverless endpoint."""

    noun, resource, record_type = "Endpoint", "endpoints", endpoints.Endpoint


class Endpoints(DeletableResource[Endpoint]):
    """`client.endpoints`."""

    handle = Endpoint

    def create(
        self,
        name: str | None = None,
        *,
        gpu_ids: str | None = None,
        workers_min: int | None = None,
        workers_max: int | None = None,
        storage_id: str | None = None,
        template_id: str | None = None,
        image: str | None = None,
    ) -> Endpoint:
        """Create a serverless endpoint; what is left out has the contract's default.

        Args:
            name: what to call it.
            gpu_ids: a pool of the catalogue, such as `ADA_24`.
            workers_min: how many workers it keeps.
            workers_max: how many it may have.
            storage_id: a volume to attach.
            template_id: a shared template that is for endpoints.
            image: the container to run when there is no template; an image worker by default.

        Raises:
            RequestError: `CREDENTIALS_MISSING`, `INVALID_REQUEST`, `NOT_FOUND`, `CONFLICT`.
        """
        return self._create(
            drop_none(
                name=name,
                gpu_ids=gpu_ids,
                workers_min=workers_min,
                workers_max=workers_max,
                storage_id=storage_id,
                template_id=template_id,
                image=image,
            )
        )
