"""Templates: shared ones, and the hidden ones that earlier versions made for an endpoint each.

A hidden template was recorded together with its endpoint, and is deleted with it; its name at the
vendor contains the endpoint's id.
"""

import json

from toolkit.contract.base import now
from toolkit.contract.endpoints import InfrastructureStatus
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.ids import Prefix, new_id
from toolkit.contract.operations.queries import MAX_TOTAL
from toolkit.contract.templates import Template, TemplateCreate
from toolkit.engine.context import EngineContext
from toolkit.engine.infrastructure.managed_resource import ManagedResource
from toolkit.engine.infrastructure.resource_refs import check_unused
from toolkit.engine.infrastructure.resource_type import make_vendor_name
from toolkit.engine.request_context import RequestContext
from toolkit.plugins.infrastructure import (
    TemplateCreation,
    TemplateDeletion,
    TemplateListing,
    TemplateState,
)
from toolkit.store import Row, UpdateRow


class Templates(ManagedResource[Template, TemplateState]):
    """`/v1/templates`; lists omit the hidden ones, which can be read by their id."""

    table = "templates"
    creation = TemplateCreation
    listing = TemplateListing()

    def __init__(self, core: EngineContext) -> None:
        super().__init__(core, core.records.templates)

    async def create(self, context: RequestContext, request: TemplateCreate) -> Template:
        """Make a template to share.

        Raises:
            RequestError: `CREDENTIALS_MISSING`.
        """
        template = Template(id=new_id(Prefix.TEMPLATE), created_at=now(), **request.model_dump())
        creation = TemplateCreation(
            name=make_vendor_name(template), image=template.image, serverless=template.serverless
        )
        await self._create_at_vendor(context, template, creation)
        return template

    async def find_hidden(self, template_id: str | None) -> Row | None:
        """Find the row of a template, if it is a hidden one."""
        row = await self._core.store.get_row(self.table, template_id) if template_id else None
        return row if row is not None and self._records.read(row).hidden else None

    def make_companion_update(self, row: Row, status: InfrastructureStatus) -> UpdateRow:
        """Return the update of a hidden template that follows its endpoint's new status.

        Args:
            row: the template's.
            status: of the endpoint; the template of one that failed is looked up and deleted.
        """
        template, known = self._records.read(row), row["vendor_id"]
        if status == "ready" and known is None:
            status = "creating"  # it is looked up later
        elif status == "failed" or (status == "deleted" and known is None):
            status = "deleting"
        template.status, template.deleted = status, status == "deleted"
        return self._records.make_update(template, status=status, vendor_id=known)

    async def _make_deletion(self, record: Template, vendor_id: str) -> TemplateDeletion:  # noqa: ARG002
        return TemplateDeletion(vendor_id=vendor_id)

    def is_abandoned(self, row: Row) -> bool:
        """Tell whether neither it nor the resource it was made for is being worked on."""
        return self._get_reference(row) not in self._core.in_flight and super().is_abandoned(row)

    async def count(self, context: RequestContext) -> int | None:
        """Count the templates of a list, without the hidden ones; None if there are too many."""
        found = len(await self.list(context, MAX_TOTAL + 1, None))
        return None if found > MAX_TOTAL else found

    def _is_listed(self, record: Template) -> bool:
        return not record.hidden

    def _get_reference(self, row: Row) -> str:
        return str(json.loads(row["spec"]).get("endpoint_id", row["id"]))

    async def _check_deletable(self, account_id: str, record: Template) -> None:
        if record.hidden:
            raise RequestError(
                ErrorCode.CONFLICT, "It is hidden: it goes when its endpoint is deleted."
            )
        await check_unused(self._core, account_id, "template_id", record.id)
