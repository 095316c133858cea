"""`client.templates`: containers to share."""

from toolkit.client._async.handle import AsyncDeletable
from toolkit.client._async.resource import AsyncDeletableResource
from toolkit.client._infrastructure_views import TemplateView
from toolkit.contract import templates


class AsyncTemplate(TemplateView, AsyncDeletable[templates.Template]):
    """A template."""

    noun, resource, record_type = "Template", "templates", templates.Template


class AsyncTemplates(AsyncDeletableResource[AsyncTemplate]):
    """`client.templates`; lists leave out the hidden ones, which go with their endpoint."""

    handle = AsyncTemplate

    async def create(self, name: str, image: str, *, serverless: bool = True) -> AsyncTemplate:
        """Make a template to share.

        Args:
            name: what to call it.
            image: the container.
            serverless: whether endpoints run it; pods do otherwise.

        Raises:
            RequestError: `CREDENTIALS_MISSING`, `INVALID_REQUEST`.
        """
        return await self._create({"name": name, "image": image, "serverless": serverless})
