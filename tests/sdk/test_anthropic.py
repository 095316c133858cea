"""The anthropic SDK on the `anthropic` wire."""

from typing import Any

import pytest

from tests.sdk.conftest import Order
from toolkit.sandbox import SANDBOX_KEYS

anthropic = pytest.importorskip("anthropic", reason="needs the extra `sdk`")
ASKED: dict[str, Any] = {
    "model": "claude-haiku-5-5",
    "max_tokens": 200,
    "messages": [{"role": "user", "content": "Write two sentences about tides."}],
}
SCHEMA = {
    "type": "object",
    "properties": {"title": {"type": "string"}},
    "required": ["title"],
    "additionalProperties": False,
}


@pytest.fixture
def client(cloud_url: str) -> Any:
    """The vendor's own client."""
    return anthropic.Anthropic(
        base_url=f"{cloud_url}/anthropic",
        api_key=SANDBOX_KEYS["ANTHROPIC_API_KEY"],
        max_retries=0,
    )


def test_an_answer(client: Any) -> None:
    """Given a prompt, then the SDK has text, usage, a reason to stop and a request id."""
    answer = client.messages.create(**ASKED)
    assert "tide" in answer.content[0].text.lower()
    assert answer.stop_reason == "end_turn"
    assert min(answer.usage.input_tokens, answer.usage.output_tokens) > 0
    assert answer.model == "claude-haiku-5-5-sandbox"
    assert answer._request_id.startswith("req_")
    cut = client.messages.create(**{**ASKED, "max_tokens": 3})
    assert cut.stop_reason == "max_tokens"


def test_a_stream(client: Any) -> None:
    """Given a stream, then its text and usage are those of the whole answer."""
    whole = client.messages.create(**ASKED)
    with client.messages.stream(**ASKED) as stream:
        assert "".join(stream.text_stream) == whole.content[0].text
        final = stream.get_final_message()
    assert final.usage.output_tokens == whole.usage.output_tokens
    assert final.stop_reason == "end_turn"


def test_output_by_a_schema(client: Any) -> None:
    """Given a schema, then the text is JSON of that shape."""
    wanted = {"format": {"type": "json_schema", "schema": SCHEMA}}
    answer = client.messages.create(**ASKED, output_config=wanted)
    assert answer.content[0].text.startswith('{"title"')


def test_models(client: Any) -> None:
    """Given the models, then those that the price table knows are among them."""
    assert "claude-haiku-5-5" in {model.id for model in client.models.list()}


@pytest.mark.parametrize(
    ("change", "raised"),
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
def test_refusals(client: Any, change: dict[str, Any], raised: str) -> None:
    """Given what the vendor refuses, then the SDK raises its own exception."""
    with pytest.raises(getattr(anthropic, raised)) as refused:
        client.messages.create(**{**ASKED, **change})
    assert refused.value.request_id == refused.value.body["request_id"]


def test_sampling_belongs_to_the_older_version(client: Any) -> None:
    """Given a temperature, then the newer version refuses it and the older one takes it."""
    for version, taken in (("2023-06-01", True), ("2026-10-21", False)):
        headers = {"anthropic-version": version}
        body = {"extra_headers": headers, "extra_body": {"temperature": 0.5}}
        if taken:
            assert client.messages.create(**ASKED, **body).content
        else:
            with pytest.raises(anthropic.BadRequestError, match="temperature"):
                client.messages.create(**ASKED, **body)


def test_a_wrong_key(cloud_url: str) -> None:
    """Given a wrong key, then the SDK says so."""
    stranger = anthropic.Anthropic(base_url=f"{cloud_url}/anthropic", api_key="x", max_retries=0)
    with pytest.raises(anthropic.AuthenticationError):
        stranger.messages.create(**ASKED)


@pytest.mark.parametrize("status", [429, 503, 529])
def test_faults(client: Any, order: Order, status: int) -> None:
    """Given an ordered fault, then the SDK raises its own exception with the vendor's type."""
    order("anthropic", status=status)
    with pytest.raises(anthropic.APIStatusError) as failed:
        client.messages.create(**ASKED)
    assert failed.value.status_code == status
    kinds = {429: "rate_limit_error", 503: "api_error", 529: "overloaded_error"}
    assert failed.value.body["error"]["type"] == kinds[status]
    assert failed.value.request_id == failed.value.body["request_id"]
