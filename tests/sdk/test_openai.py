"""Features of the openai SDK on the `openai` wire that no adapter uses."""

from typing import Any

import pytest
from pydantic import BaseModel

from tests.sdk.conftest import Order, skip_without
from toolkit.sandbox import SANDBOX_KEYS

pytestmark = skip_without("openai")
CHAT: dict[str, Any] = {
    "model": "gpt-6-luna",
    "messages": [{"role": "user", "content": "Write two sentences about tides."}],
}


class OpenAIOutline(BaseModel):
    """The shape of an answer."""

    title: str
    points: list[str]


@pytest.fixture
def client(cloud_url: str) -> Any:
    """The vendor's own client."""
    import openai

    return openai.OpenAI(
        base_url=f"{cloud_url}/openai/v1", api_key=SANDBOX_KEYS["OPENAI_API_KEY"], max_retries=0
    )


def test_parses_an_answer_into_a_model_class(client: Any) -> None:
    """Given a model class, then the SDK parses the answer into it."""
    answer = client.chat.completions.parse(**CHAT, response_format=OpenAIOutline)
    assert answer.choices[0].message.parsed.title
    assert answer.choices[0].message.parsed.points


@pytest.mark.parametrize(
    ("status", "error"), [(429, "RateLimitError"), (503, "InternalServerError")]
)
def test_retries_after_a_fault(client: Any, order: Order, status: int, error: str) -> None:
    """Given an ordered fault, then the SDK raises its own exception, or retries if allowed."""
    import openai

    order("openai", status=status)
    with pytest.raises(getattr(openai, error)):
        client.chat.completions.create(**CHAT)
    order("openai", status=status, headers={"retry-after-ms": "1"})
    patient = client.with_options(max_retries=2)
    assert patient.chat.completions.create(**CHAT).choices


def test_reads_the_log_probabilities_of_tokens(client: Any) -> None:
    """Given a request for log-probabilities, then the SDK reads one for each token of the text."""
    answer = client.chat.completions.create(**CHAT | {"model": "gpt-4.1"}, logprobs=True)
    choice = answer.choices[0]

    assert "".join(row.token for row in choice.logprobs.content) == choice.message.content
    assert all(row.logprob <= 0 and row.top_logprobs == [] for row in choice.logprobs.content)
    assert b"".join(bytes(row.bytes) for row in choice.logprobs.content).decode() == (
        choice.message.content
    )
    assert client.chat.completions.create(**CHAT).choices[0].logprobs is None


def test_refuses_log_probabilities_of_a_reasoning_model(client: Any) -> None:
    """Given a model that reasons, then log-probabilities are refused, unless it does not reason."""
    import openai

    with pytest.raises(openai.BadRequestError, match="logprobs"):
        client.chat.completions.create(**CHAT, logprobs=True)
    answer = client.chat.completions.create(**CHAT, logprobs=True, reasoning_effort="none")
    assert answer.choices[0].logprobs.content
