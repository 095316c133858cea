"""Templates of pods and of serverless endpoints."""

from collections.abc import Callable
from functools import partial

import pytest

from tests.contract.conftest import expect_refusal
from toolkit import Client

pytestmark = pytest.mark.embedded


def test_templates_may_share_a_name(client: Client) -> None:
    """Given a name twice, which the vendor would reject, then both templates are ready."""
    templates = [client.templates.create("worker", "example/worker:1") for _ in range(2)]
    for template in templates:
        assert (template.status, template.record.image) == ("ready", "example/worker:1")
        assert (template.record.serverless, template.record.hidden) == (True, False)
    assert {record.id for record in client.templates.list()} == {t.id for t in templates}


@pytest.mark.parametrize("serverless", [True, False])
def test_rejects_a_template_of_the_other_kind(client: Client, serverless: bool) -> None:
    """Given a template for pods, or for endpoints, then the other kind cannot use it."""
    template = client.templates.create("worker", "example/worker:1", serverless=serverless)
    create: Callable[..., object] = client.endpoints.create
    if serverless:
        create = partial(client.compute.create, gpu_type="NVIDIA A40")
    with expect_refusal("INVALID_REQUEST", "template_id"):
        create("studio", template_id=template.id)
