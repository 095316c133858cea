"""Templates: they are shared, and outlive the endpoints that are made of them."""

from collections.abc import Callable
from functools import partial

import pytest

from toolkit import Client, RequestError

pytestmark = pytest.mark.embedded


def test_a_template_from_birth_to_death(client: Client) -> None:
    """Given a template, then it is ready, listed, and gone once it is deleted."""
    template = client.templates.create("worker", "example/worker:1")
    assert template.id.startswith("tpl_")
    record = template.record
    assert (record.status, record.image, record.serverless) == ("ready", "example/worker:1", True)
    assert record.hidden is False
    assert client.templates.get(template.id).record == record
    assert [one.id for one in client.templates.list()] == [template.id]
    assert client.templates.delete(template.id).record.deleted is True
    assert list(client.templates.list()) == []


def test_two_of_one_name(client: Client) -> None:
    """Given a name twice, which the vendor would refuse, then both are made."""
    made = [client.templates.create("worker", "example/worker:1") for _ in range(2)]
    assert {one.status for one in made} == {"ready"}


def test_a_shared_template_outlives_its_endpoint(client: Client) -> None:
    """Given an endpoint on a shared template, then the template stays when the endpoint goes."""
    template = client.templates.create("worker", "example/worker:1")
    endpoint = client.endpoints.create("studio", template_id=template.id)
    assert endpoint.record.template_id == template.id
    with pytest.raises(RequestError, match=endpoint.id) as refused:
        client.templates.delete(template.id)
    assert refused.value.code.name == "CONFLICT"
    client.endpoints.delete(endpoint.id)
    assert client.templates.get(template.id).status == "ready"
    assert client.templates.delete(template.id).status == "deleted"


@pytest.mark.parametrize("serverless", [True, False])
def test_a_template_of_the_other_kind(client: Client, serverless: bool) -> None:
    """Given a template for pods, or for endpoints, then the other kind cannot be made of it."""
    template = client.templates.create("worker", "example/worker:1", serverless=serverless)
    create: Callable[..., object] = client.endpoints.create
    if serverless:
        create = partial(client.compute.create, gpu_type="NVIDIA A40")
    with pytest.raises(RequestError) as refused:
        create("studio", template_id=template.id)
    assert refused.value.code.name == "INVALID_REQUEST"
    assert [detail.path for detail in refused.value.details] == ["template_id"]
