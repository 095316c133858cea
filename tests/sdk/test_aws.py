"""boto3 on the `aws` wire: it signs, and the sandbox works the signature out again."""

from typing import Any

import pytest

from tests.sdk.conftest import Order
from toolkit.sandbox.wires.aws import ACCESS_KEY, SIGNING_KEY

boto3 = pytest.importorskip("boto3", reason="needs the extra `sdk`")
MODEL = "eu.amazon.nova-2-lite-v1:0"
MESSAGES = [{"role": "user", "content": [{"text": "Write two sentences about tides."}]}]


def client_of(cloud_url: str, secret: str = SIGNING_KEY, access_key: str = ACCESS_KEY) -> Any:
    """The vendor's own client."""
    from botocore.config import Config

    return boto3.client(
        "bedrock-runtime",
        endpoint_url=f"{cloud_url}/aws",
        region_name="eu-central-1",
        aws_access_key_id=access_key,
        aws_secret_access_key=secret,
        config=Config(retries={"max_attempts": 0}),
    )


@pytest.fixture
def client(cloud_url: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The vendor's own client, with the right credentials."""
    monkeypatch.delenv("AWS_BEARER_TOKEN_BEDROCK", raising=False)
    return client_of(cloud_url)


def test_an_answer(client: Any) -> None:
    """Given a prompt, then boto3 has text, usage, a reason to stop and a request id."""
    answer = client.converse(
        modelId=MODEL,
        messages=MESSAGES,
        system=[{"text": "Be brief."}],
        inferenceConfig={"maxTokens": 200, "temperature": 0.2},
    )
    assert "tide" in answer["output"]["message"]["content"][0]["text"].lower()
    assert answer["stopReason"] == "end_turn"
    usage = answer["usage"]
    assert usage["totalTokens"] == usage["inputTokens"] + usage["outputTokens"] > 0
    assert answer["ResponseMetadata"]["RequestId"]


def test_a_stream(client: Any) -> None:
    """Given a stream, then boto3 reads its frames, and they are the whole answer and its usage."""
    asked = {"modelId": MODEL, "messages": MESSAGES}
    whole = client.converse(**asked)
    events = list(client.converse_stream(**asked)["stream"])
    deltas = [
        one["contentBlockDelta"]["delta"]["text"]
        for one in events
        if len(one) == 1 and "contentBlockDelta" in one
    ]
    assert len(deltas) > 2
    assert "".join(deltas) == whole["output"]["message"]["content"][0]["text"]
    assert [one["messageStop"]["stopReason"] for one in events if "messageStop" in one] == [
        whole["stopReason"]
    ]
    assert [one["metadata"]["usage"] for one in events if "metadata" in one] == [whole["usage"]]


def test_output_by_a_schema(client: Any) -> None:
    """Given a schema, then the text is JSON of that shape."""
    schema = '{"type": "object", "properties": {"title": {"type": "string"}}}'
    wanted = {"type": "json_schema", "structure": {"jsonSchema": {"schema": schema, "name": "a"}}}
    answer = client.converse(modelId=MODEL, messages=MESSAGES, outputConfig={"textFormat": wanted})
    assert answer["output"]["message"]["content"][0]["text"].startswith('{"title"')


@pytest.mark.parametrize(
    ("credentials", "code"),
    [
        ({"secret": "wrong"}, "InvalidSignatureException"),
        ({"access_key": "AKIDOTHER"}, "UnrecognizedClientException"),
    ],
)
def test_wrong_credentials(cloud_url: str, credentials: dict[str, str], code: str) -> None:
    """Given wrong credentials, then boto3 raises its own exception with the vendor's code."""
    from botocore.exceptions import ClientError

    with pytest.raises(ClientError) as refused:
        client_of(cloud_url, **credentials).converse(modelId=MODEL, messages=MESSAGES)
    assert refused.value.response["Error"]["Code"] == code


def test_refusals_and_faults(client: Any, order: Order) -> None:
    """Given an unknown model or ordered faults, then boto3 raises its modelled exceptions."""
    with pytest.raises(client.exceptions.ValidationException):
        client.converse(modelId="no.such-model", messages=MESSAGES)
    with pytest.raises(client.exceptions.ValidationException, match="identifier is invalid"):
        client.converse(modelId="us.amazon.nova-2-lite-v1:0", messages=MESSAGES)
    with pytest.raises(client.exceptions.ValidationException, match="ID or ARN of an inference"):
        client.converse(modelId="amazon.nova-2-lite-v1:0", messages=MESSAGES)
    for status, raised in (
        (429, client.exceptions.ThrottlingException),
        (503, client.exceptions.ServiceUnavailableException),
    ):
        order("aws", status=status)
        with pytest.raises(raised):
            client.converse(modelId=MODEL, messages=MESSAGES)
