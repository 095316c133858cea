"""Resolution of the volume and the template that an endpoint or a pod is created with."""

from dataclasses import dataclass, field

from toolkit.contract.errors import Detail, ErrorCode, RequestError
from toolkit.engine.context import EngineContext
from toolkit.engine.infrastructure.managed_resource import K
from toolkit.store import AccountScope, Repository, Row


@dataclass(slots=True)
class ResolvedRefs:
    """A volume and a template, by the vendor's ids.

    Attributes:
        data_center: data center of the volume.
        own_ids: our ids of both, by the vendor's ids.
    """

    volume_id: str | None = None
    data_center: str = ""
    template_id: str | None = None
    own_ids: dict[str, str] = field(default_factory=dict)


async def resolve_refs(
    core: EngineContext,
    account_id: str,
    storage_id: str | None,
    template_id: str | None,
    *,
    serverless: bool,
) -> ResolvedRefs:
    """Look up the volume and the template that a request names.

    Args:
        serverless: whether the request is for an endpoint, not for a pod.

    Raises:
        RequestError: `NOT_FOUND`; `CONFLICT` if either is not ready; `INVALID_REQUEST` for a
            template of the other kind.
    """
    refs = ResolvedRefs()
    if storage_id is not None:
        row = await _find_ready(core.records.storage, account_id, storage_id)
        refs.volume_id = str(row["vendor_id"])
        refs.data_center = core.records.storage.read(row).data_center
        refs.own_ids[refs.volume_id] = storage_id
    if template_id is not None:
        row = await _find_ready(core.records.templates, account_id, template_id)
        template = core.records.templates.read(row)
        if template.serverless != serverless:
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                f"Use a shared template for {'endpoints' if serverless else 'pods'}.",
                details=[Detail("template_id", f"is for {'pods' if serverless else 'endpoints'}")],
            )
        refs.template_id = str(row["vendor_id"])
        refs.own_ids[refs.template_id] = template_id
    return refs


async def _find_ready(records: Repository[K], account_id: str, record_id: str) -> Row:
    row = await records.get_row(AccountScope(account_id), record_id)
    if row["status"] != "ready":
        raise RequestError(
            ErrorCode.CONFLICT, f"`{record_id}` is {row['status']}: use a resource that is ready."
        )
    return row
