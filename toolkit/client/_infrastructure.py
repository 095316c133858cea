"""Views of infrastructure, and the calls about it that both clients share."""

from datetime import datetime
from typing import TypeVar

from toolkit.client._record_view import Member, RecordView
from toolkit.client._resource_calls import DeletableCalls
from toolkit.client._wire.messages import drop_none
from toolkit.contract.base import ErrorInfo
from toolkit.contract.compute import Compute
from toolkit.contract.endpoints import Endpoint, Infrastructure, InfrastructureStatus
from toolkit.contract.storage import Storage
from toolkit.contract.templates import Template

S = TypeVar("S", bound=Infrastructure)
H = TypeVar("H")  # a handle; in the async client, a coroutine that returns one


class InfrastructureView(RecordView[S]):
    """A resource at a GPU cloud, which bills it until it is deleted."""

    status = Member[InfrastructureStatus]("`creating`, `ready`, `failed`, `deleting` or `deleted`.")
    error = Member[ErrorInfo | None]("The error, if there was any.")
    name = Member[str]("The name.")
    status_detail = Member[str | None]("What the resource waits for, if anything.")
    created_at = Member[datetime]("The time of the request.")
    deleted = Member[bool]("True after deletion.")
    deleted_at = Member[datetime | None]("The time of deletion, or None.")


class ComputeView(InfrastructureView[Compute]):
    """A GPU pod (a container on a GPU machine), rented from a vendor."""

    gpu_type = Member[str]("The GPU, by its name in the catalogue.")
    image = Member[str]("The container image.")
    storage_id = Member[str | None]("The mounted volume, if any.")
    template_id = Member[str | None]("The shared template, if any.")
    cost_per_hour_usd = Member[float | None]("The US dollars per hour, if known.")


class ComputeCalls(DeletableCalls[H]):
    """The methods of `client.compute`, for the sync and the async client."""

    def create(
        self,
        name: str,
        gpu_type: str,
        *,
        image: str | None = None,
        storage_id: str | None = None,
        template_id: str | None = None,
    ) -> H:
        """Rent a GPU pod, which is billed by the hour until it is deleted.

        Args:
            name: name of the new resource.
            gpu_type: name of a GPU in the catalogue, such as `NVIDIA GeForce RTX 4090`.
            image: container image, if no template is given. Default: an image worker.
            storage_id: volume to mount; the pod then runs in its data centre.
            template_id: shared template for pods.

        Raises:
            RequestError: `CREDENTIALS_MISSING`, `INVALID_REQUEST`, `NOT_FOUND`, `CONFLICT`.
        """
        return self._create(
            drop_none(
                name=name,
                gpu_type=gpu_type,
                image=image,
                storage_id=storage_id,
                template_id=template_id,
            )
        )


class EndpointView(InfrastructureView[Endpoint]):
    """A serverless GPU endpoint of a vendor."""

    gpu_ids = Member[str]("The GPU pools of its workers.")
    workers_min = Member[int]("The minimum number of workers.")
    workers_max = Member[int]("The maximum number of workers.")
    image = Member[str]("The container image.")
    storage_id = Member[str | None]("The mounted volume, if any.")
    template_id = Member[str | None]("The shared template, if any.")
    price_per_hour_usd = Member[float | None]("The US dollars per worker and hour, if known.")


class EndpointCalls(DeletableCalls[H]):
    """The methods of `client.endpoints`, for the sync and the async client."""

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
    ) -> H:
        """Create a serverless endpoint; omitted values have the defaults of the API.

        Args:
            name: name of the new resource.
            gpu_ids: GPU pool of the catalogue, such as `ADA_24`.
            workers_min: minimum number of workers.
            workers_max: maximum number of workers.
            storage_id: volume to attach.
            template_id: shared template for endpoints.
            image: container image, if no template is given. Default: an image worker.

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


class StorageView(InfrastructureView[Storage]):
    """A network volume of a vendor, which pods and endpoints can mount."""

    size_gb = Member[int]("The size in gigabytes.")
    data_center = Member[str]("The data centre.")


class StorageCalls(DeletableCalls[H]):
    """The methods of `client.storage`, for the sync and the async client."""

    def create(self, name: str, size_gb: int, *, data_center: str | None = None) -> H:
        """Rent a network volume, which is billed by its size until it is deleted.

        Args:
            name: name of the new resource.
            size_gb: size in gigabytes, from 10 to 4096.
            data_center: data centre, such as `EU-RO-1`. Default: the service chooses.

        Raises:
            RequestError: `CREDENTIALS_MISSING`, `INVALID_REQUEST`.
        """
        return self._create(drop_none(name=name, size_gb=size_gb, data_center=data_center))


class TemplateView(InfrastructureView[Template]):
    """A template: a container image that endpoints or pods run."""

    image = Member[str]("The container image.")
    serverless = Member[bool]("True for endpoints, False for pods.")
    hidden = Member[bool]("True if the template belongs to one endpoint and is deleted with it.")


class TemplateCalls(DeletableCalls[H]):
    """The methods of `client.templates`, for the sync and the async client."""

    def create(self, name: str, image: str, *, serverless: bool = True) -> H:
        """Create a container template at the vendor, for endpoints or pods to share.

        Args:
            name: name of the new resource.
            image: container image.
            serverless: True for endpoints, False for pods.

        Raises:
            RequestError: `CREDENTIALS_MISSING`, `INVALID_REQUEST`.
        """
        return self._create({"name": name, "image": image, "serverless": serverless})
