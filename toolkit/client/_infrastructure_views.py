"""Infrastructure as it shows itself in both clients."""

from datetime import datetime
from typing import TypeVar

from toolkit.client._members import Member
from toolkit.client._record_view import RecordView
from toolkit.contract.base import ErrorInfo
from toolkit.contract.compute import Compute
from toolkit.contract.endpoints import Endpoint, Infrastructure, InfrastructureStatus
from toolkit.contract.storage import Storage
from toolkit.contract.templates import Template

S = TypeVar("S", bound=Infrastructure)


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


class StorageView(InfrastructureView[Storage]):
    """A network volume."""

    size_gb = Member[int]("The size, in gigabytes.")
    data_center = Member[str]("The data center that it is in.")


class TemplateView(InfrastructureView[Template]):
    """A template."""

    image = Member[str]("The container that it runs.")
    serverless = Member[bool]("True if endpoints run it; pods do otherwise.")
    hidden = Member[bool]("True if it was made for one endpoint, and goes with it.")
