"""The openai SDK on the `openai` wire, and on `minimax`, which speaks it too."""

from typing import Any

import pytest
from pydantic import BaseModel

from tests.sdk.conftest import Order
from toolkit.sandbox import SANDBOX_KEYS

openai = pytest.importorskip("openai", reason="needs the extra `sdk`")
ASKED: list[Any] = [{"role": "user", "content": "Write two sentences about tides."}]


class OpenAIOutline(BaseModel):
    """The shape of an answer."""

    title: str
    points: list[str]


@pytest.fixture
def client(cloud_url: str) -> Any:
    """The vendor's own client."""
    return openai.OpenAI(
        base_url=f"{cloud_url}/openai/v1", api_key=SANDBOX_KEYS["OPENAI_API_KEY"], max_retries=0
    )


def test_an_answer(client: Any) -> None:
    """Given a prompt, then the SDK has text, usage, a finish and a request id."""
    answer = client.chat.completions.create(model="gpt-6-luna", messages=ASKED)
    assert "tide" in answer.choices[0].message.content.lower()
    assert answer.choices[0].finish_reason == "stop"
    usage = answer.usage
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens > 0
    assert answer._request_id


def test_a_stream(client: Any) -> None:
    """Given a stream, then its pieces are the whole answer, and its usage comes last."""
    whole = client.chat.completions.create(model="gpt-6-luna", messages=ASKED)
    stream = client.chat.completions.create(
        model="gpt-6-luna", messages=ASKED, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == whole.choices[0].message.content
    assert chunks[-1].usage.total_tokens == whole.usage.total_tokens


def test_parsed_output(client: Any) -> None:
    """Given a model class, then the SDK parses the answer into it."""
    answer = client.chat.completions.parse(
        model="gpt-6-luna", messages=ASKED, response_format=OpenAIOutline
    )
    assert answer.choices[0].message.parsed.title
    assert answer.choices[0].message.parsed.points


def test_models(client: Any) -> None:
    """Given the models, then those that the price table knows are among them."""
    assert "gpt-6-luna-sandbox" in {model.id for model in client.models.list()}
    assert client.models.retrieve("gpt-6-luna").id == "gpt-6-luna-sandbox"


@pytest.mark.parametrize(
    ("change", "raised", "code"),
    [
        ({"model": "gpt-0"}, "NotFoundError", "model_not_found"),
        ({"max_tokens": 5}, "BadRequestError", "unsupported_parameter"),
        ({"temperature": 0.5}, "BadRequestError", "unsupported_value"),
        ({"temperature": 3}, "BadRequestError", None),
        ({"messages": [{"role": "user"}]}, "BadRequestError", None),
    ],
)
def test_refusals(client: Any, change: dict[str, Any], raised: str, code: str | None) -> None:
    """Given what the vendor refuses, then the SDK raises its own exception with its code."""
    with pytest.raises(getattr(openai, raised)) as refused:
        client.chat.completions.create(**{"model": "gpt-6-luna", "messages": ASKED, **change})
    assert refused.value.request_id
    assert code in (None, refused.value.code)


def test_a_wrong_key(client: Any) -> None:
    """Given a wrong key, then the SDK says so."""
    with pytest.raises(openai.AuthenticationError):
        client.with_options(api_key="wrong").models.list()


@pytest.mark.parametrize(
    ("status", "raised"), [(429, "RateLimitError"), (503, "InternalServerError")]
)
def test_faults(client: Any, order: Order, status: int, raised: str) -> None:
    """Given an ordered fault, then the SDK raises its own exception, and retries it away."""
    order("openai", status=status)
    with pytest.raises(getattr(openai, raised)):
        client.chat.completions.create(model="gpt-6-luna", messages=ASKED)
    order("openai", status=status, headers={"retry-after-ms": "1"})
    patient = client.with_options(max_retries=2)
    assert patient.chat.completions.create(model="gpt-6-luna", messages=ASKED).choices


def test_minimax_speaks_it_too(cloud_url: str) -> None:
    """Given the MiniMax wire, then the same SDK has its answer, whole and as a stream."""
    client = openai.OpenAI(
        base_url=f"{cloud_url}/minimax/v1", api_key=SANDBOX_KEYS["MINIMAX_API_KEY"], max_retries=0
    )
    extra = {"extra_body": {"reasoning_split": True}}
    whole = client.chat.completions.create(model="MiniMax-M3", messages=ASKED, **extra)
    stream = client.chat.completions.create(
        model="MiniMax-M3", messages=ASKED, stream=True, **extra
    )
    text = "".join(c.choices[0].delta.content or "" for c in stream if c.choices)
    assert text == whole.choices[0].message.content
