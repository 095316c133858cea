"""The `aws` wire: refusals as boto3 reads them, and signatures as botocore makes them."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from urllib.parse import quote, unquote

import httpx
import pytest

from tests.sdk.conftest import Cloud
from toolkit import Client
from toolkit.sandbox.vendor_paths import ACCESS_KEY, SIGNING_KEY
from toolkit.settings import Settings

boto3 = pytest.importorskip("boto3", reason="needs the extra `sdk`")
MODEL = "eu.amazon.nova-2-lite-v1:0"
MESSAGES = [{"role": "user", "content": [{"text": "Write two sentences about tides."}]}]


@pytest.mark.parametrize(
    ("access_key", "model", "code", "words"),
    [
        ("AKIDOTHER", MODEL, "UnrecognizedClientException", ""),
        (ACCESS_KEY, "no.such-model", "ValidationException", ""),
        (ACCESS_KEY, "us.amazon.nova-2-lite-v1:0", "ValidationException", "identifier is invalid"),
        (ACCESS_KEY, "amazon.nova-2-lite-v1:0", "ValidationException", "ID or ARN of an inference"),
    ],
)
def test_refuses_an_unknown_key_or_model(
    cloud_url: str,
    monkeypatch: pytest.MonkeyPatch,
    access_key: str,
    model: str,
    code: str,
    words: str,
) -> None:
    """Given an unknown key, or a model that the region lacks, then boto3 raises the error."""
    monkeypatch.delenv("AWS_BEARER_TOKEN_BEDROCK", raising=False)
    client = boto3.client(
        "bedrock-runtime",
        endpoint_url=f"{cloud_url}/aws",
        region_name="eu-central-1",
        aws_access_key_id=access_key,
        aws_secret_access_key=SIGNING_KEY,
    )
    with pytest.raises(client.exceptions.ClientError, match=f"{code}.*{words}"):
        client.converse(modelId=model, messages=MESSAGES)


REGION = "ap-southeast-2"
ARN = "arn:aws:bedrock:ap-southeast-2:123456789012:application-inference-profile/a1b2c3"


def sign(
    method: str, url: str, body: bytes, headers: dict[str, str], at: str, region: str = "us-east-1"
) -> str:
    """Return the `Authorization` by which botocore signs all headers of a request."""
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    signer = SigV4Auth(Credentials(ACCESS_KEY, SIGNING_KEY), "bedrock", region)
    request = AWSRequest(method=method, url=url, data=body, headers=headers)
    request.context["timestamp"] = at
    text = signer.string_to_sign(request, signer.canonical_request(request))
    names = signer.signed_headers(signer.headers_to_sign(request))
    return (
        f"AWS4-HMAC-SHA256 Credential={signer.scope(request)}, SignedHeaders={names},"
        f" Signature={signer.signature(text, request)}"
    )


@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("model", ["amazon.nova-2-lite-v1:0", ARN, "a model/of=one's own~+%3A"])
def test_adapter_signs_as_botocore_does(
    cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, is_streamed: bool
) -> None:
    """Given a pair of keys and any model id, then the adapter and botocore sign alike."""
    keys = {"access_key_id": ACCESS_KEY, "secret_access_key": SIGNING_KEY, "region": REGION}
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", json.dumps(keys))
    vendors = {"aws": {"base_urls": {"api": f"{cloud.url}/aws"}, "models": {"text": model}}}
    cloud.received.clear()
    with Client.local(settings=Settings(data_dir=tmp_path, vendors=vendors, retries=0)) as client:
        client.connections.connect("aws")
        objective = {"objective": "Write a sentence about tides."}
        client.runs.create("llm.generate", objective, stream=is_streamed).wait(check=False)
    posts = [request for request in cloud.received if request.method == "POST"]
    for request in posts:
        authorization = request.headers["authorization"]
        names = authorization.partition("SignedHeaders=")[2].partition(",")[0].split(";")
        assert {"host", "x-amz-date"} <= set(names)
        headers = {name: request.headers[name] for name in names}
        url = f"http://{request.headers['host']}{request.target}"
        signature = sign("POST", url, request.body, headers, headers["x-amz-date"], REGION)
        assert authorization == signature
    models = [unquote(request.target.split("/")[3]) for request in posts]
    assert {name.removeprefix("global.") for name in models} == {model}


# Parts of a target, of which some have more than one spelling.
PARTS = ["%3A", "%2F", "%7E", "%C3%A9", "%20", "%2B", "a", "Z", "0", "-", ".", "_", "~", "/"]
QUERY_PARTS = ["%3A", "%2F", "%20", "%2B", "a", "Z", "0", "-", ".", "_", "~"]


def build_signed_request(cloud_url: str, chance: Random) -> httpx.Request:
    """Build a request for a random model, signed by botocore."""
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
    headers["authorization"] = sign("POST", url, body, headers, at)
    return httpx.Request("POST", url, content=body, headers=headers)


def name_error(request: httpx.Request) -> str:
    """Send a request, and return the name of the error in the answer."""
    with httpx.Client() as client:
        return client.send(request).headers.get("x-amzn-errortype", "")


def test_sandbox_accepts_signatures_of_botocore(cloud_url: str) -> None:
    """Given any spelling of target, query and headers, then the signature is accepted."""
    chance = Random(7)
    for _ in range(60):
        request = build_signed_request(cloud_url, chance)
        assert name_error(request) in ("", "ValidationException"), request.url


def change_body(request: httpx.Request) -> None:
    """Change the body."""
    request.stream = httpx.ByteStream(request.content.replace(b"tides", b"TIDES"))


def change_path(request: httpx.Request) -> None:
    """Name another model."""
    changed = request.url.raw_path.replace(b"/model/m", b"/model/n")
    request.url = request.url.copy_with(raw_path=changed)


def change_spelling(request: httpx.Request) -> None:
    """Change the percent-encoding of the path, as a library between the two may do."""
    path, _, query = request.url.raw_path.decode().partition("?")
    spelled = quote(unquote(path), safe="/~")
    assert spelled != path
    request.url = request.url.copy_with(raw_path=f"{spelled}?{query}".encode())


def change_query(request: httpx.Request) -> None:
    """Add a parameter to the query."""
    request.url = request.url.copy_merge_params({"more": "1"})


def change_header(request: httpx.Request) -> None:
    """Change a header that is signed."""
    request.headers["x-amz-note"] = "other"


def add_header(request: httpx.Request) -> None:
    """Add an `x-amz-` header that is not signed."""
    request.headers["x-amz-more"] = "1"


def change_scope(request: httpx.Request) -> None:
    """Name another service than the signature does."""
    request.headers["authorization"] = request.headers["authorization"].replace("/bedrock/", "/s3/")


def sign_long_ago(request: httpx.Request) -> None:
    """Sign the request with a date of 16 minutes ago."""
    at = (datetime.now(UTC) - timedelta(minutes=16)).strftime("%Y%m%dT%H%M%SZ")
    names = ("content-type", "host", "x-amz-note")
    headers = {name: request.headers[name] for name in names} | {"x-amz-date": at}
    authorization = sign("POST", str(request.url), request.content, headers, at)
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
def test_sandbox_refuses_a_request_that_was_changed(
    cloud_url: str, change: Callable[[httpx.Request], None]
) -> None:
    """Given a signed request that is changed on its way, then its signature is refused."""
    request = build_signed_request(cloud_url, Random(3))
    change(request)
    assert name_error(request) == "InvalidSignatureException"
