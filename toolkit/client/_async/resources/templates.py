"""`client.templates`: descriptions of containers for endpoints or pods."""

from toolkit.client._async.handle import AsyncDeletable
from toolkit.client._async.resource import AsyncResource
from toolkit.client._infrastructure import TemplateCalls, TemplateView
from toolkit.client._replies import AsyncReply
from toolkit.contract import templates


class AsyncTemplate(TemplateView, AsyncDeletable[templates.Template]):
    """A template: a container image that endpoints or pods run."""

    noun, resource, record_type = "Template", "templates", templates.Template


class AsyncTemplates(TemplateCalls[AsyncReply[AsyncTemplate]], AsyncResource[AsyncTemplate]):
    """`client.templates`. Lists omit hidden templates, which are deleted with their endpoint."""

    handle = AsyncTemplate
