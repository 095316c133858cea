"""Waits before a retry: the vendor's own, or exponential backoff, or the soonest provider's."""

import random
from collections.abc import Iterator
from itertools import pairwise

import pytest

from tests.support.timing import PATIENCE_S
from toolkit import Client
from toolkit.sandbox import Faults
from toolkit.settings import Settings

TIDES = {"objective": "One line on tides"}


@pytest.fixture
def client(settings: Settings, faults: Faults) -> Iterator[Client]:
    """A client of two providers, which waits at most 0.6 s before a retry at the same provider."""
    patient = settings.model_copy(update={"retry_cap_s": 0.6, "retries": 2})
    with Client.local(settings=patient, faults=faults) as client:
        for connection in client.connections.list():
            if connection.record.provider not in ("minimax", "openai"):
                client.connections.delete(connection.id)
        yield client


def test_waits_as_long_as_the_vendor_asks(client: Client, faults: Faults) -> None:
    """Given an answer with Retry-After, then the same vendor is called again no sooner."""
    faults.fail("openai", status=429, headers={"Retry-After": "0.4"}, times=1)
    run = client.runs.create("llm.generate", TIDES, provider="openai").wait()
    assert [attempt.status for attempt in run.record.attempts] == ["failed", "completed"]
    first, second = [call for call in faults.calls if call.path.endswith("/completions")]
    assert second.at_s - first.at_s >= 0.4


def test_backs_off_exponentially(
    settings: Settings, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given failures without Retry-After, and the longest jitter, then each wait doubles."""
    monkeypatch.setattr(random, "uniform", lambda _, longest: longest)
    patient = settings.model_copy(update={"retry_base_s": 0.05, "retries": 3})
    faults.fail("openai", status=503, times=3)
    with Client.local(settings=patient, faults=faults) as client:
        assert client.runs.create("llm.generate", TIDES, provider="openai").wait(PATIENCE_S)
    calls = [call.at_s for call in faults.calls if call.path.endswith("/completions")]
    waits = [later - earlier for earlier, later in pairwise(calls)]
    assert len(waits) == 3
    assert all(wait >= minimum for wait, minimum in zip(waits, (0.05, 0.1, 0.2), strict=True))


def test_waits_for_the_provider_with_the_shortest_cooldown(client: Client, faults: Faults) -> None:
    """Given two providers that cool down, then a run waits for the shorter of the two times."""
    for provider, wait_s in (("minimax", "3600"), ("openai", "1")):
        faults.fail(provider, status=429, headers={"Retry-After": wait_s}, times=1)
        failed = client.runs.create("llm.generate", TIDES, provider=provider).wait(check=False)
        assert failed.error.code == "PROVIDER_RATE_LIMITED"
    assert client.runs.create("llm.generate", TIDES).wait().provider == "openai"
