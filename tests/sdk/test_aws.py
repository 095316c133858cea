"""boto3 on the `aws` wire, and signatures judged by botocore's own canonical form."""

import json
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote, unquote

import httpx
import pytest

from tests.sdk.conftest import Order
from toolkit import Client
from toolkit.sandbox.wires.aws import ACCESS_KEY, SIGNING_KEY
from toolkit.settings import Settings

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


REGION = "ap-southeast-2"
KEYS = {"access_key_id": "AKIDEXAMPLE", "secret_access_key": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYKEY"}
ARN = "arn:aws:bedrock:ap-southeast-2:123456789012:application-inference-profile/a1b2c3"
CONVERSED = {
    "output": {"message": {"role": "assistant", "content": [{"text": "Tides turn."}]}},
    "stopReason": "end_turn",
    "usage": {"inputTokens": 17, "outputTokens": 4, "totalTokens": 21},
}


def sign(
    method: str, url: str, body: bytes, headers: dict[str, str], at: str, keys: dict[str, str]
) -> str:
    """Return the `Authorization` that botocore gives a request, of which all headers are signed."""
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    credentials = Credentials(keys["access_key_id"], keys["secret_access_key"])
    signer = SigV4Auth(credentials, "bedrock", keys.get("region", REGION))
    request = AWSRequest(method=method, url=url, data=body, headers=headers)
    request.context["timestamp"] = at
    text = signer.string_to_sign(request, signer.canonical_request(request))
    names = signer.signed_headers(signer.headers_to_sign(request))
    return (
        f"AWS4-HMAC-SHA256 Credential={signer.scope(request)}, SignedHeaders={names},"
        f" Signature={signer.signature(text, request)}"
    )


class Bedrock:
    """A server that answers a request if botocore gives it the same signature.

    Attributes:
        models: the models that were asked for.
        refused: the targets of the requests that were refused.
    """

    def __init__(self) -> None:
        self.models: list[str] = []
        self.refused: list[str] = []
        bedrock = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                authorization = self.headers["authorization"]
                names = authorization.partition("SignedHeaders=")[2].partition(",")[0].split(";")
                signed = {name: self.headers[name] for name in names}
                url = f"http://{self.headers['host']}{self.path}"
                assert {"host", "x-amz-date"} <= set(names)
                if authorization == sign("POST", url, body, signed, signed["x-amz-date"], KEYS):
                    bedrock.models.append(unquote(self.path.split("/")[2]))
                    self._answer(200, CONVERSED)
                else:
                    bedrock.refused.append(self.path)
                    self._answer(403, {"message": "The signature does not match."})

            def _answer(self, status: int, body: dict[str, Any]) -> None:
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Stop."""
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def bedrock() -> Iterator[Bedrock]:
    """The server."""
    served = Bedrock()
    yield served
    served.close()


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("model", ["amazon.nova-2-lite-v1:0", ARN, "a model/of=one's own~+%3A"])
def test_an_adapter_signs_as_botocore_does(
    bedrock: Bedrock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, streamed: bool
) -> None:
    """Given a pair of keys and any model id, then what arrives has the signature of botocore."""
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", json.dumps({**KEYS, "region": REGION}))
    vendors = {"aws": {"base_urls": {"api": bedrock.url}, "models": {"text": model}}}
    settings = Settings(data_dir=tmp_path, vendors=vendors, retries=0)
    with Client.local(settings=settings) as client:
        client.connections.connect("aws")
        objective = {"objective": "Write a sentence about tides."}
        run = client.runs.create("llm.generate", objective, stream=streamed).wait(check=False)
    assert (bedrock.refused, run.status) == ([], "completed")
    assert [name.removeprefix("global.") for name in bedrock.models] == [model]


# Parts of a target that are spelled in ways of which one is canonical.
PARTS = ["%3A", "%2F", "%7E", "%C3%A9", "%20", "%2B", "a", "Z", "0", "-", ".", "_", "~", "/"]
QUERY_PARTS = ["%3A", "%2F", "%20", "%2B", "a", "Z", "0", "-", ".", "_", "~"]


def build_signed_request(cloud_url: str, chance: Random) -> httpx.Request:
    """A request for some model, signed by botocore for the sandbox."""
    model = "m" + "".join(chance.choices(PARTS, k=chance.randrange(9)))
    names = ["".join(chance.choices(QUERY_PARTS, k=3)) for _ in range(chance.randrange(4))]
    query = "&".join(f"{name}={chance.choice(['', 'a', '%3A'])}" for name in names)
    url = f"{cloud_url}/aws/model/{model}/converse" + (f"?{query}" if query else "")
    body = json.dumps({"messages": MESSAGES}).encode()
    at = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    headers = {
        "content-type": "application/json",
        "host": httpx.URL(url).netloc.decode(),
        "x-amz-date": at,
        "x-amz-note": chance.choice(["a", "b  c", "d\te"]),
    }
    keys = {"access_key_id": ACCESS_KEY, "secret_access_key": SIGNING_KEY}
    headers["authorization"] = sign("POST", url, body, headers, at, keys)
    return httpx.Request("POST", url, content=body, headers=headers)


def name_error(request: httpx.Request) -> str:
    """Send a request, and return the name of the error that it is answered with."""
    with httpx.Client() as client:
        return client.send(request).headers.get("x-amzn-errortype", "")


def test_the_sandbox_computes_a_signature_as_botocore_does(cloud_url: str) -> None:
    """Given targets, queries and headers of any spelling, then their signatures are accepted."""
    chance = Random(7)
    for _ in range(60):
        request = build_signed_request(cloud_url, chance)
        assert name_error(request) in ("", "ValidationException"), request.url


def change_body(request: httpx.Request) -> None:
    """Send another body."""
    request.stream = httpx.ByteStream(request.content.replace(b"tides", b"TIDES"))


def change_path(request: httpx.Request) -> None:
    """Ask for another model."""
    changed = request.url.raw_path.replace(b"/model/m", b"/model/n")
    request.url = request.url.copy_with(raw_path=changed)


def change_spelling(request: httpx.Request) -> None:
    """Spell the path otherwise, as a library between adapter and socket may do."""
    path, _, query = request.url.raw_path.decode().partition("?")
    spelled = quote(unquote(path), safe="/~")
    assert spelled != path
    request.url = request.url.copy_with(raw_path=f"{spelled}?{query}".encode())


def change_query(request: httpx.Request) -> None:
    """Add to the query."""
    request.url = request.url.copy_merge_params({"more": "1"})


def change_header(request: httpx.Request) -> None:
    """Change a header that is signed."""
    request.headers["x-amz-note"] = "other"


def add_header(request: httpx.Request) -> None:
    """Add a header of the vendor's that is not signed."""
    request.headers["x-amz-more"] = "1"


def change_scope(request: httpx.Request) -> None:
    """Name another service than the request was signed for."""
    request.headers["authorization"] = request.headers["authorization"].replace("/bedrock/", "/s3/")


def sign_long_ago(request: httpx.Request) -> None:
    """Sign it anew, a quarter of an hour ago."""
    at = (datetime.now(UTC) - timedelta(minutes=16)).strftime("%Y%m%dT%H%M%SZ")
    names = ("content-type", "host", "x-amz-note")
    headers = {name: request.headers[name] for name in names} | {"x-amz-date": at}
    keys = {"access_key_id": ACCESS_KEY, "secret_access_key": SIGNING_KEY}
    authorization = sign("POST", str(request.url), request.content, headers, at, keys)
    request.headers.update({"authorization": authorization, "x-amz-date": at})


@pytest.mark.parametrize(
    "change",
    [
        change_body,
        change_path,
        change_spelling,
        change_query,
        change_header,
        add_header,
        change_scope,
        sign_long_ago,
    ],
    ids=lambda change: change.__name__,
)
def test_the_sandbox_refuses_what_was_not_signed(
    cloud_url: str, change: Callable[[httpx.Request], None]
) -> None:
    """Given a signed request that is changed on its way, then its signature is refused."""
    request = build_signed_request(cloud_url, Random(3))
    change(request)
    assert name_error(request) == "InvalidSignatureException"
