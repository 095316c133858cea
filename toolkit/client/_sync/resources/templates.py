# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.templates`: containers to share."""

from toolkit.client._infrastructure_views import TemplateView
from toolkit.client._sync.handle import Deletable
from toolkit.client._sync.resource import DeletableResource
from toolkit.contract import templates


class Template(TemplateView, Deletable[templates.Template]):
    """A template."""

    noun, resource, record_type = "Template", "templates", templates.Template


class Templates(DeletableResource[Template]):
    """`client.templates`; lists leave out the hidden ones, which go with their endpoint."""

    handle = Template

    def create(self, name: str, image: str, *, serverless: bool = True) -> Template:
        """Make a template to share.

        Args:
            name: what to call it.
            image: the container.
            serverless: whether endpoints run it; pods do otherwise.

        Raises:
            RequestError: `CREDENTIALS_MISSING`, `INVALID_REQUEST`.
        """
        return self._create({"name": name, "image": image, "serverless": serverless})
