"""Network volumes: creation, use and deletion."""

import pytest

from toolkit import Client, RequestError

pytestmark = pytest.mark.embedded


def test_a_volume_is_ready_until_it_is_deleted(client: Client) -> None:
    """Given a volume, then it is ready in its data center, and not listed once it is deleted."""
    volume = client.storage.create("weights", 20, data_center="CA-MTL-1")
    record = volume.record
    assert volume.id.startswith("sto_")
    assert (record.status, record.size_gb, record.data_center) == ("ready", 20, "CA-MTL-1")
    assert client.storage.get(volume.id).record == record
    other = client.storage.create("others", 10)
    assert other.record.data_center == "EU-RO-1"  # the default
    volume.delete()
    assert (volume.status, volume.record.deleted) == ("deleted", True)
    page = client.read("/storage", {"limit": 1})
    assert ([listed["id"] for listed in page["items"]], page["total"]) == ([other.id], 1)
    with pytest.raises(RequestError, match="storage"):
        client.storage.get(volume.id)


def test_a_volume_in_an_unknown_data_center_has_failed(client: Client) -> None:
    """Given an unknown data center, then the volume has failed, and names those that exist."""
    volume = client.storage.create("weights", 20, data_center="XX-XX-9")
    assert volume.status == "failed"
    assert "EU-RO-1" in volume.error.message
    assert volume.delete().status == "deleted"
