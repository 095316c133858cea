"""Infrastructure, as it shows itself and as it is created in both clients."""

from datetime import datetime
from typing import TypeVar

from toolkit.client._members import Member
from toolkit.client._record_view import RecordView
from toolkit.client._resource_calls import DeletableCalls
from toolkit.client._wire.messages import drop_none
from toolkit.contract.base import ErrorInfo
from toolkit.contract.compute import Compute
from toolkit.contract.endpoints import Endpoint, Infrastructure, InfrastructureStatus
from toolkit.contract.storage import Storage
from toolkit.contract.templates import Template

S = TypeVar("S", bound=Infrastructure)
H = TypeVar("H")  # a handle, or for the async client what is awaited for one


class InfrastructureView(RecordView[S]):
    """A resource at a GPU cloud, billed there until it is deleted."""

    status = Member[InfrastructureStatus]("`creating`, `ready`, `failed`, `deleting` or `deleted`.")
    error = Member[ErrorInfo | None]("The error, if there was any.")
    name = Member[str]("The name that it was given.")
    status_detail = Member[str | None]("A word on what it waits for, where there is one.")
    created_at = Member[datetime]("The time at which it was asked for.")
    deleted = Member[bool]("True once it was deleted.")
    deleted_at = Member[datetime | None]("The time at which it was deleted; none while it was not.")


class ComputeView(InfrastructureView[Compute]):
    """A GPU pod."""

    gpu_type = Member[str]("The GPU of the catalogue that it has.")
    image = Member[str]("The container that it runs.")
    storage_id = Member[str | None]("The volume that is mounted, if there is one.")
    template_id = Member[str | None]("The shared template that it was made of, if there is one.")
    cost_per_hour_usd = Member[float | None](
        "US dollars for each hour that it is there; none where the vendor does not say."
    )


class ComputeCalls(DeletableCalls[H]):
    """The calls of `client.compute`."""

    def create(
        self,
        name: str,
        gpu_type: str,
        *,
        image: str | None = None,
        storage_id: str | None = None,
        template_id: str | None = None,
    ) -> H:
        """Rent a GPU pod; it is billed by the hour until it is deleted.

        Args:
            name: what to call it.
            gpu_type: a GPU of the catalogue, such as `NVIDIA GeForce RTX 4090`.
            image: the container to run when there is no template; an image worker by default.
            storage_id: a volume to mount; the pod is then where the volume is.
            template_id: a shared template that is for pods.

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
    """A serverless endpoint."""

    gpu_ids = Member[str]("The pools of GPUs that its workers are taken from.")
    workers_min = Member[int]("The fewest workers that it keeps.")
    workers_max = Member[int]("The most workers that it has at once.")
    image = Member[str]("The container that it runs.")
    storage_id = Member[str | None]("The volume that is mounted, if there is one.")
    template_id = Member[str | None]("The shared template that it was made of, if there is one.")
    price_per_hour_usd = Member[float | None](
        "The list price of one worker in US dollars, as it was when it was made; none if unknown."
    )


class EndpointCalls(DeletableCalls[H]):
    """The calls of `client.endpoints`."""

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


class StorageView(InfrastructureView[Storage]):
    """A network volume."""

    size_gb = Member[int]("The size, in gigabytes.")
    data_center = Member[str]("The data center that it is in.")


class StorageCalls(DeletableCalls[H]):
    """The calls of `client.storage`."""

    def create(self, name: str, size_gb: int, *, data_center: str | None = None) -> H:
        """Rent a network volume; it is billed by its size until it is deleted.

        Args:
            name: what to call it.
            size_gb: gigabytes, 10 to 4096.
            data_center: where it is, such as `EU-RO-1`; the service chooses by default.

        Raises:
            RequestError: `CREDENTIALS_MISSING`, `INVALID_REQUEST`.
        """
        return self._create(drop_none(name=name, size_gb=size_gb, data_center=data_center))


class TemplateView(InfrastructureView[Template]):
    """A template."""

    image = Member[str]("The container that it runs.")
    serverless = Member[bool]("True if endpoints run it; pods do otherwise.")
    hidden = Member[bool]("True if it was made for one endpoint, and goes with it.")


class TemplateCalls(DeletableCalls[H]):
    """The calls of `client.templates`."""

    def create(self, name: str, image: str, *, serverless: bool = True) -> H:
        """Make a template to share.

        Args:
            name: what to call it.
            image: the container.
            serverless: whether endpoints run it; pods do otherwise.

        Raises:
            RequestError: `CREDENTIALS_MISSING`, `INVALID_REQUEST`.
        """
        return self._create({"name": name, "image": image, "serverless": serverless})
