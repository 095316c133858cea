"""Network volumes: rented, listed, used and given back."""

import pytest

from toolkit import Client, RequestError

pytestmark = pytest.mark.embedded


def test_a_volume_from_birth_to_death(client: Client) -> None:
    """Given a volume, then it is ready where it was asked for, and gone once it is deleted."""
    volume = client.storage.create("weights", 20, data_center="CA-MTL-1")
    assert volume.id.startswith("sto_")
    record = volume.record
    assert (record.status, record.size_gb, record.data_center) == ("ready", 20, "CA-MTL-1")
    assert client.storage.get(volume.id).record == record
    assert [one.id for one in client.storage.list()] == [volume.id]
    gone = client.storage.delete(volume.id)
    assert (gone.status, gone.record.deleted) == ("deleted", True)
    assert list(client.storage.list()) == []
    with pytest.raises(RequestError, match="storage"):
        client.storage.get(volume.id)


def test_a_data_centre_of_our_choice(client: Client) -> None:
    """Given no data centre, then the record tells which one it became."""
    assert client.storage.create("weights", 10).record.data_center == "EU-RO-1"


def test_a_data_centre_that_there_is_not(client: Client) -> None:
    """Given a data centre that the vendor has not, then the volume failed, and says what it has."""
    volume = client.storage.create("weights", 20, data_center="XX-XX-9")
    assert volume.status == "failed"
    assert "EU-RO-1" in volume.error.message
    assert client.storage.delete(volume.id).status == "deleted"


def test_a_volume_in_use(client: Client) -> None:
    """Given a volume that an endpoint has, then it stays until the endpoint has gone."""
    volume = client.storage.create("weights", 20)
    endpoint = client.endpoints.create("studio", storage_id=volume.id)
    with pytest.raises(RequestError, match=endpoint.id) as refused:
        client.storage.delete(volume.id)
    assert refused.value.code.name == "CONFLICT"
    assert client.storage.get(volume.id).status == "ready"
    client.endpoints.delete(endpoint.id)
    assert client.storage.delete(volume.id).status == "deleted"


def test_pages_leave_out_what_is_gone(client: Client) -> None:
    """Given deleted volumes between living ones, then pages are full, and lead to the last."""
    made = [client.storage.create(f"v{i}", 10).id for i in range(6)]
    for gone in made[2:5]:
        client.storage.delete(gone)
    first = client.read("/storage", {"limit": 2})
    assert [volume["id"] for volume in first["items"]] == [made[5], made[1]]
    assert first["total"] == client.storage.list().total == 3
    second = client.read("/storage", {"limit": 2, "cursor": first["next_cursor"]})
    assert [volume["id"] for volume in second["items"]] == [made[0]]
    assert second["next_cursor"] is None
