"""The google-genai SDK on the `google` wire."""

from typing import Any

import pytest
from pydantic import BaseModel

from tests.sdk.conftest import Order
from toolkit.sandbox import SANDBOX_KEYS

genai = pytest.importorskip("google.genai", reason="needs the extra `sdk`")
MODEL, PROMPT = "gemini-3.8-flash", "Write two sentences about tides."


class GoogleOutline(BaseModel):
    """The shape of an answer."""

    title: str
    points: list[str]


def client_of(cloud_url: str, key: str) -> Any:
    """The vendor's own client."""
    options = genai.types.HttpOptions(base_url=f"{cloud_url}/google")
    return genai.Client(api_key=key, http_options=options)


@pytest.fixture
def client(cloud_url: str) -> Any:
    """The vendor's own client, with the right key."""
    return client_of(cloud_url, SANDBOX_KEYS["GEMINI_API_KEY"])


def test_an_answer(client: Any) -> None:
    """Given a prompt, then the SDK has text, usage, a finish and a response id."""
    config = {"system_instruction": "Be brief.", "max_output_tokens": 200, "temperature": 0.2}
    answer = client.models.generate_content(model=MODEL, contents=PROMPT, config=config)
    assert "tide" in answer.text.lower()
    assert answer.candidates[0].finish_reason == genai.types.FinishReason.STOP
    usage = answer.usage_metadata
    total = usage.prompt_token_count + usage.candidates_token_count + usage.thoughts_token_count
    assert usage.total_token_count == total > 0
    assert (answer.model_version, bool(answer.response_id)) == (f"{MODEL}-sandbox", True)


def test_a_stream(client: Any) -> None:
    """Given a stream, then its pieces are the whole answer."""
    whole = client.models.generate_content(model=MODEL, contents=PROMPT).text
    pieces = client.models.generate_content_stream(model=MODEL, contents=PROMPT)
    assert "".join(piece.text for piece in pieces) == whole


@pytest.mark.parametrize("given", ["response_schema", "response_json_schema"])
def test_parsed_output(client: Any, given: str) -> None:
    """Given a schema, in the SDK's form or as JSON Schema, then the answer is of that shape."""
    schema = GoogleOutline if given == "response_schema" else GoogleOutline.model_json_schema()
    config = {"response_mime_type": "application/json", given: schema}
    answer = client.models.generate_content(model=MODEL, contents=PROMPT, config=config)
    assert GoogleOutline.model_validate_json(answer.text).title


def test_models_and_tokens(client: Any) -> None:
    """Given the models, then those of the price table are there; tokens can be counted."""
    assert f"models/{MODEL}" in {model.name for model in client.models.list()}
    assert client.models.count_tokens(model=MODEL, contents=PROMPT).total_tokens > 0


def test_refusals(client: Any, cloud_url: str) -> None:
    """Given an unknown model or a wrong key, then the SDK raises its own exception."""
    with pytest.raises(genai.errors.ClientError) as refused:
        client.models.generate_content(model="gemini-0", contents=PROMPT)
    assert (refused.value.code, refused.value.status) == (404, "NOT_FOUND")
    stranger = client_of(cloud_url, "wrong")
    with pytest.raises(genai.errors.ClientError) as refused:
        stranger.models.generate_content(model=MODEL, contents=PROMPT)
    assert (refused.value.code, refused.value.status) == (400, "INVALID_ARGUMENT")
    assert "API_KEY_INVALID" in str(refused.value.details)


@pytest.mark.parametrize(
    ("status", "raised", "name"),
    [(429, "ClientError", "RESOURCE_EXHAUSTED"), (503, "ServerError", "UNAVAILABLE")],
)
def test_faults(client: Any, order: Order, status: int, raised: str, name: str) -> None:
    """Given an ordered fault, then the SDK raises its own exception with the vendor's status."""
    order("google", status=status)
    with pytest.raises(getattr(genai.errors, raised)) as failed:
        client.models.generate_content(model=MODEL, contents=PROMPT)
    assert (failed.value.code, failed.value.status) == (status, name)
