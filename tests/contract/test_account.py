"""Keys: made, rotated, revoked and listed; what each may do, and hand out."""

from datetime import timedelta

import pytest

from tests.support.embedded import with_key
from toolkit.client import Client
from toolkit.contract.account import DEFAULT_OVERLAP_S, MAX_OVERLAP_S
from toolkit.contract.base import now
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.engine.access import api_keys

ASKED = {"objective": "One line on tides", "max_tokens": 64}


def refusal(client: Client, api_key: str) -> ErrorCode | None:
    """Why a key does not work; none if it does."""
    with with_key(client, api_key) as caller:
        try:
            caller.account.get()
        except RequestError as error:
            return error.code
    return None


def count_affordable_runs(spender: Client) -> int:
    """Count the runs that a key can have before nothing is left of its allowance."""
    done = 0
    while True:
        try:
            spender.runs.create("llm.generate", ASKED).wait()
        except RequestError as error:
            if error.code is ErrorCode.BUDGET_EXCEEDED:
                return done
            raise
        done += 1


def test_a_rotated_key_is_good_for_a_while(bare: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a key, when it is rotated, then both work, and after the overlap the new one alone."""
    made = bare.api_keys.create(name="ci", scopes=["read"], max_cost_usd_per_day=2.0)
    new = bare.api_keys.rotate(made.id)
    assert (new.name, new.scopes, new.max_cost_usd_per_day) == ("ci", ["read"], 2.0)
    assert (new.rotated_from, new.expires_at) == (made.id, None)
    assert refusal(bare, made.api_key) is None
    assert refusal(bare, new.api_key) is None
    old = bare.api_keys.get(made.id).record
    assert old.expires_at == new.created_at + timedelta(seconds=DEFAULT_OVERLAP_S)
    assert (old.rotated_to, old.revoked_at) == (new.id, None)
    monkeypatch.setattr(api_keys, "now", lambda: now() + timedelta(seconds=DEFAULT_OVERLAP_S))
    assert refusal(bare, made.api_key) is ErrorCode.UNAUTHENTICATED
    assert refusal(bare, new.api_key) is None


def test_a_caller_is_told_which_key_was_sent(bare: Client) -> None:
    """Given a key that may only read, then its holder is told of it, and not itself."""
    made = bare.api_keys.create(name="ci", scopes=["read"], max_cost_usd_per_day=2.0)
    with with_key(bare, made.api_key) as caller:
        account = caller.account.get()
    assert account.id == bare.account.get().id
    assert account.key is not None
    assert account.key.model_dump() == made.model_dump(include=set(type(account.key).model_fields))
    assert made.api_key not in account.model_dump_json()
    own = bare.account.get().key
    assert own is not None
    assert own.scopes == ["read", "write", "admin"]


def test_a_rotation_without_overlap_and_a_revocation_are_at_once(bare: Client) -> None:
    """Given no overlap, then the old key is refused in the very next request."""
    made = bare.api_keys.create(scopes=["read"])
    new = bare.api_keys.rotate(made.id, overlap_s=0)
    assert refusal(bare, made.api_key) is ErrorCode.UNAUTHENTICATED
    assert refusal(bare, new.api_key) is None
    bare.api_keys.delete(new.id)
    assert refusal(bare, new.api_key) is ErrorCode.UNAUTHENTICATED


def test_keys_are_told_once(bare: Client) -> None:
    """Given keys, then what is listed and read has their last four characters, and no more."""
    made = bare.api_keys.create(name="ci")
    new = bare.api_keys.rotate(made.id)
    shown = [bare.api_keys.get(made.id).record, bare.api_keys.get(new.id).record]
    shown += [key.record for key in list(bare.api_keys.list())]
    for record in shown:
        text = record.model_dump_json()
        assert made.api_key not in text
        assert new.api_key not in text
        assert api_keys.hash_key(made.api_key) not in text
    assert shown[1].last4 == new.api_key[-4:]
    assert shown[1].prefix == "sk_live_"


def test_what_cannot_be_rotated(bare: Client) -> None:
    """Given a key that was rotated, one that was revoked and one that is none, then it is said."""
    first = bare.api_keys.create()
    second = bare.api_keys.rotate(first.id)
    bare.api_keys.delete(second.id)
    for key_id, code, says in (
        (first.id, ErrorCode.CONFLICT, second.id),
        (second.id, ErrorCode.CONFLICT, "revoked"),
        ("key_01m7xrhddbvq3n2zjx4fe01326", ErrorCode.NOT_FOUND, "no key"),
    ):
        with pytest.raises(RequestError, match=says) as refused:
            bare.api_keys.rotate(key_id)
        assert refused.value.code is code
    with pytest.raises(RequestError, match=r"^INVALID_REQUEST:"):
        bare.api_keys.rotate(first.id, overlap_s=MAX_OVERLAP_S + 1)


def test_no_key_hands_out_more_than_it_has(bare: Client) -> None:
    """Given a key for keys alone, then it makes none that reads, nor rotates one to have it."""
    other = bare.api_keys.create(scopes=["read", "write"])
    with with_key(bare, bare.api_keys.create(scopes=["admin"]).api_key) as warden:
        assert warden.api_keys.create(scopes=["admin"]).scopes == ["admin"]
        for attempt in (
            lambda: warden.api_keys.create(scopes=["admin", "read"]),
            lambda: warden.api_keys.rotate(other.id),
        ):
            with pytest.raises(RequestError, match=r"^FORBIDDEN:"):
                attempt()
        warden.api_keys.delete(other.id)


def test_no_key_gets_out_of_its_allowance(bare: Client) -> None:
    """Given an allowance, then its key makes no others and rotates no others, but for itself."""
    rich = bare.api_keys.create(scopes=["admin"])
    made = bare.api_keys.create(scopes=["admin"], max_cost_usd_per_day=1.0)
    with with_key(bare, made.api_key) as poor:
        for attempt in (
            lambda: poor.api_keys.create(scopes=["admin"]),
            lambda: poor.api_keys.create(scopes=["admin"], max_cost_usd_per_day=0.5),
            lambda: poor.api_keys.rotate(rich.id),
        ):
            with pytest.raises(RequestError, match="allowance") as refused:
                attempt()
            assert refused.value.code is ErrorCode.FORBIDDEN
        assert poor.api_keys.rotate(made.id).max_cost_usd_per_day == 1.0


def test_rotating_does_not_fill_the_allowance_again(client: Client) -> None:
    """Given a key that has spent its day's allowance, then those it is rotated to have too."""
    bound = client.route("llm.generate", ASKED).record.reservation_usd
    assert bound
    made = client.api_keys.create(max_cost_usd_per_day=bound * 1.2)
    second = client.api_keys.rotate(made.id)
    third = client.api_keys.rotate(second.id)
    done = {}
    for key in (made, second, third):
        with with_key(client, key.api_key) as spender:
            done[key.id] = count_affordable_runs(spender)
    assert done.pop(made.id) >= 1
    assert set(done.values()) == {0}
