"""Rules of the `anthropic` wire, by the anthropic SDK."""

from typing import Any

import pytest

from tests.sdk.conftest import skip_without
from toolkit.sandbox import SANDBOX_KEYS

pytestmark = skip_without("anthropic")
MESSAGE: dict[str, Any] = {
    "model": "claude-haiku-5-5",
    "max_tokens": 200,
    "messages": [{"role": "user", "content": "Write two sentences about tides."}],
}


@pytest.fixture
def client(cloud_url: str) -> Any:
    """The vendor's own client."""
    import anthropic

    return anthropic.Anthropic(
        base_url=f"{cloud_url}/anthropic",
        api_key=SANDBOX_KEYS["ANTHROPIC_API_KEY"],
        max_retries=0,
    )


def test_stops_at_the_token_limit(client: Any) -> None:
    """Given a low limit, then the answer is cut off and says so."""
    answer = client.messages.create(**{**MESSAGE, "max_tokens": 3})
    assert answer.stop_reason == "max_tokens"


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"model": "claude-0"}, "NotFoundError"),
        ({"max_tokens": 0}, "BadRequestError"),
        ({"messages": []}, "BadRequestError"),
        ({"extra_body": {"surprise": 1}}, "BadRequestError"),
        ({"messages": [{"role": "user", "content": [7]}]}, "BadRequestError"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "BadRequestError"),
        ({"extra_headers": {"anthropic-version": "2020-01-01"}}, "BadRequestError"),
    ],
)
def test_refuses_an_invalid_request(client: Any, change: dict[str, Any], error: str) -> None:
    """Given a request that the vendor refuses, then the SDK raises the matching exception."""
    import anthropic

    with pytest.raises(getattr(anthropic, error)) as refusal:
        client.messages.create(**{**MESSAGE, **change})
    assert refusal.value.request_id == refusal.value.body["request_id"]


def test_only_the_older_version_accepts_a_temperature(client: Any) -> None:
    """Given a temperature, then version 2026-10-21 refuses it and 2023-06-01 accepts it."""
    import anthropic

    temperature = {"extra_body": {"temperature": 0.5}}
    older, newer = ({"anthropic-version": date} for date in ("2023-06-01", "2026-10-21"))
    assert client.messages.create(**MESSAGE, **temperature, extra_headers=older).content
    with pytest.raises(anthropic.BadRequestError, match="temperature"):
        client.messages.create(**MESSAGE, **temperature, extra_headers=newer)
