"""Keys: creation, rotation, revocation and lists; the scopes and allowance of a key."""

from datetime import timedelta

import pytest

from tests.contract.conftest import use_up
from tests.support.embedded import with_key
from toolkit.client import Client
from toolkit.contract.account import DEFAULT_OVERLAP_S, MAX_OVERLAP_S
from toolkit.contract.base import now
from toolkit.contract.errors import RequestError
from toolkit.engine.access import api_keys

INPUT = {"objective": "One line on tides", "max_tokens": 64}


def get_error(client: Client, api_key: str) -> str | None:
    """Return the code of the error of a key, or None if the key is valid."""
    with with_key(client, api_key) as caller:
        try:
            caller.account.get()
        except RequestError as error:
            return error.code.name
    return None


def test_a_rotated_key_stays_valid_for_a_while(
    bare: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a rotated key, then both work, and after the overlap the new key alone."""
    key = bare.api_keys.create(name="ci", scopes=["read"], max_cost_usd_per_day=2.0)
    new = bare.api_keys.rotate(key.id)
    assert (new.name, new.scopes, new.max_cost_usd_per_day) == ("ci", ["read"], 2.0)
    assert (new.rotated_from, new.expires_at) == (key.id, None)
    assert get_error(bare, key.api_key) is None
    assert get_error(bare, new.api_key) is None
    old = bare.api_keys.get(key.id).record
    assert old.expires_at == new.created_at + timedelta(seconds=DEFAULT_OVERLAP_S)
    assert (old.rotated_to, old.revoked_at) == (new.id, None)
    monkeypatch.setattr(api_keys, "now", lambda: now() + timedelta(seconds=DEFAULT_OVERLAP_S))
    assert get_error(bare, key.api_key) == "UNAUTHENTICATED"
    assert get_error(bare, new.api_key) is None


def test_the_account_shows_the_key_that_was_sent(bare: Client) -> None:
    """Given a key that may only read, then its account shows the key's record without the key."""
    key = bare.api_keys.create(name="ci", scopes=["read"], max_cost_usd_per_day=2.0)
    with with_key(bare, key.api_key) as caller:
        account = caller.account.get()
    owner = bare.account.get()
    assert account.id == owner.id
    assert account.key is not None
    assert account.key.model_dump() == key.model_dump(include=set(type(account.key).model_fields))
    assert key.api_key not in account.model_dump_json()
    assert owner.key is not None
    assert owner.key.scopes == ["read", "write", "admin"]


def test_revokes_a_key_at_once(bare: Client) -> None:
    """Given a rotation without overlap, or a deletion, then the next request is rejected."""
    first = bare.api_keys.create(scopes=["read"])
    second = bare.api_keys.get(first.id).rotate(overlap_s=0)
    assert second.scopes == ["read"]
    assert get_error(bare, first.api_key) == "UNAUTHENTICATED"
    assert get_error(bare, second.api_key) is None
    assert bare.api_keys.get(second.id).delete().revoked_at is not None
    assert get_error(bare, second.api_key) == "UNAUTHENTICATED"


def test_shows_a_key_once(bare: Client) -> None:
    """Given keys, then lists and records have the last four characters of each key alone."""
    key = bare.api_keys.create(name="ci")
    new = bare.api_keys.rotate(key.id)
    records = [bare.api_keys.get(key.id).record, bare.api_keys.get(new.id).record]
    for record in (*records, *(item.record for item in bare.api_keys.list())):
        text = record.model_dump_json()
        for secret in (key.api_key, new.api_key, api_keys.hash_key(key.api_key)):
            assert secret not in text
    assert records[1].last4 == new.api_key[-4:]
    assert records[1].prefix == "sk_live_"


def test_rejects_a_rotation_of_an_invalid_key(bare: Client) -> None:
    """Given a rotated, revoked or unknown key, or a long overlap, then the rotation is rejected."""
    rotated = bare.api_keys.create().id
    revoked = bare.api_keys.rotate(rotated).id
    bare.api_keys.delete(revoked)
    for key_id, options, match in (
        (rotated, {}, f"^CONFLICT:.*{revoked}"),
        (revoked, {}, "^CONFLICT:.*revoked"),
        ("key_01m7xrhddbvq3n2zjx4fe01326", {}, "^NOT_FOUND:.*no key"),
        (rotated, {"overlap_s": MAX_OVERLAP_S + 1}, "^INVALID_REQUEST:"),
    ):
        with pytest.raises(RequestError, match=match):
            bare.api_keys.rotate(key_id, **options)


def test_no_key_grants_scopes_that_it_lacks(bare: Client) -> None:
    """Given a key with the scope `admin` alone, then it creates and rotates no key that reads."""
    other = bare.api_keys.create(scopes=["read", "write"])
    with with_key(bare, bare.api_keys.create(scopes=["admin"]).api_key) as admin:
        assert admin.api_keys.create(scopes=["admin"]).scopes == ["admin"]
        with pytest.raises(RequestError, match=r"^FORBIDDEN:"):
            admin.api_keys.create(scopes=["admin", "read"])
        with pytest.raises(RequestError, match=r"^FORBIDDEN:"):
            admin.api_keys.rotate(other.id)
        admin.api_keys.delete(other.id)


def test_no_key_evades_its_allowance(bare: Client) -> None:
    """Given an allowance, then its key creates no keys, and rotates no key but itself."""
    rich = bare.api_keys.create(scopes=["admin"])
    key = bare.api_keys.create(scopes=["admin"], max_cost_usd_per_day=1.0)
    with with_key(bare, key.api_key) as poor:
        for attempt in (
            lambda: poor.api_keys.create(scopes=["admin"]),
            lambda: poor.api_keys.create(scopes=["admin"], max_cost_usd_per_day=0.5),
            lambda: poor.api_keys.rotate(rich.id),
        ):
            with pytest.raises(RequestError, match=r"^FORBIDDEN:.*allowance"):
                attempt()
        assert poor.api_keys.rotate(key.id).max_cost_usd_per_day == 1.0


def test_a_rotation_does_not_refill_the_allowance(client: Client) -> None:
    """Given an exhausted key, then the keys that it is rotated to can run nothing either."""
    bound = client.route("llm.generate", INPUT).record.reservation_usd
    assert bound
    first = client.api_keys.create(max_cost_usd_per_day=bound * 1.2)
    second = client.api_keys.rotate(first.id)
    third = client.api_keys.rotate(second.id)
    with with_key(client, first.api_key) as spender:
        spender.runs.create("llm.generate", INPUT).wait()
        use_up(spender, INPUT)
    for key in (second, third):
        with (
            with_key(client, key.api_key) as spender,
            pytest.raises(RequestError, match=r"^BUDGET_EXCEEDED:"),
        ):
            spender.runs.create("llm.generate", INPUT)
