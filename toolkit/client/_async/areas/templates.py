"""`client.templates`: containers to share."""

from toolkit.client._async.rented import AsyncHosted, AsyncRented
from toolkit.contract import templates


class AsyncTemplate(AsyncHosted[templates.Template]):
    """A template."""

    kind, area, model = "Template", "templates", templates.Template


class AsyncTemplates(AsyncRented[AsyncTemplate]):
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
        return await self._posted({"name": name, "image": image, "serverless": serverless})
