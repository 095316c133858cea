# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.templates`: descriptions of containers for endpoints or pods."""

from toolkit.client._infrastructure import TemplateCalls, TemplateView
from toolkit.client._replies import Reply
from toolkit.client._sync.handle import Deletable
from toolkit.client._sync.resource import Resource
from toolkit.contract import templates


class Template(TemplateView, Deletable[templates.Template]):
    """A template: a container image that endpoints or pods run."""

    noun, resource, record_type = "Template", "templates", templates.Template


class Templates(TemplateCalls[Reply[Template]], Resource[Template]):
    """`client.templates`. Lists omit hidden templates, which are deleted with their endpoint."""

    handle = Template
