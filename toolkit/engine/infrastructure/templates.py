"""Templates: the containers that an account shares among its endpoints or its pods."""

from toolkit.contract.base import now
from toolkit.contract.ids import Prefix, new_id
from toolkit.contract.templates import Template, TemplateCreate
from toolkit.engine.context import EngineContext
from toolkit.engine.infrastructure.managed_resource import ManagedResource, make_vendor_name
from toolkit.engine.request_context import RequestContext
from toolkit.plugins.infrastructure import (
    ResourceState,
    TemplateCreation,
)


class Templates(ManagedResource[Template, ResourceState]):
    """The operations of `/v1/templates`."""

    table = "templates"
    creation = TemplateCreation
    resource = "template"
    used_as = "template_id"

    def __init__(self, core: EngineContext) -> None:
        super().__init__(core, core.records.templates)

    async def create(self, context: RequestContext, request: TemplateCreate) -> Template:
        """Create a template at the cloud, for the account's endpoints or pods to share.

        Raises:
            RequestError: `CREDENTIALS_MISSING`.
        """
        template = Template(id=new_id(Prefix.TEMPLATE), created_at=now(), **request.model_dump())
        creation = TemplateCreation(
            name=make_vendor_name(template), image=template.image, serverless=template.serverless
        )
        await self._create_at_vendor(context, template, creation)
        return template
