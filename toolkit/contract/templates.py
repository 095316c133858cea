"""Templates: containers that endpoints or pods run, shared or for a single endpoint."""

from pydantic import Field

from toolkit.contract.base import Request
from toolkit.contract.endpoints import Infrastructure


class TemplateCreate(Request):
    """`POST /v1/templates`.

    Attributes:
        image: container to run.
        serverless: whether endpoints run it; otherwise pods do.
    """

    name: str = Field(min_length=1, max_length=191)
    image: str = Field(min_length=1, max_length=512)
    serverless: bool = True


class Template(Infrastructure):
    """A template.

    Attributes:
        image: container; empty if the GPU cloud's own image worker runs.
        hidden: whether it was made for one endpoint and is deleted with it; lists leave it out.
    """

    image: str
    serverless: bool = True
    hidden: bool = False
