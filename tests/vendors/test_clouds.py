"""Azure OpenAI and Vertex AI: secrets of JSON, addresses that they may name, tokens, prices."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import httpx
import pytest

from tests.support.service_account import EMAIL, write_account, write_public_key
from tests.vendors.conftest import TEXT, VENDORS, VendorDrive, access, ok
from tests.vendors.test_chat import chat
from toolkit import Client
from toolkit.contract.errors import ErrorCode
from toolkit.engine import Registry
from toolkit.plugins import Access, EmbedRequest, Operation, ProviderError
from toolkit.sandbox import Faults
from toolkit.sandbox.vendor_paths import AZURE_KEY, VERTEX_TOKEN
from toolkit.vendors import vertex

KEY = "azure-key-0123456789"
ADDRESS = "https://mill.openai.azure.com"
GRANT = {"access_token": "ya29.granted-0123456789", "expires_in": 3_599, "token_type": "Bearer"}
GEMINI = {
    "candidates": [{"content": {"parts": [{"text": "Why."}]}, "finishReason": "STOP"}],
    "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 3},
    "modelVersion": "gemini-3.8-flash",
}


def sign_in(drive: VendorDrive, vendor: str, secret: str, *answers: Any, **changes: Any) -> Access:
    """Sign in to a vendor by a secret, and return the access of its calls."""
    declared = VENDORS[vendor]
    assert declared.sign_in is not None
    plain = access(vendor, "text", secret=secret, dialect=declared.dialect, **changes)
    signed: Access = drive(declared.sign_in(plain), *answers)
    return signed


def ask(drive: VendorDrive, signed: Access, operation: Operation[Any], body: object) -> Any:
    """Have a vendor's flow answer an operation."""
    return drive(VENDORS[signed.vendor].operations[type(operation)](operation, signed), ok(body))


def write_azure(**members: object) -> str:
    """Write a secret of Azure."""
    return json.dumps({"endpoint": ADDRESS, "api_key": KEY, **members})


@pytest.mark.parametrize(
    "endpoint",
    [
        ADDRESS,
        f"{ADDRESS}/",
        f"{ADDRESS}/openai/v1/",
        "https://mill.services.ai.azure.com",
        "https://mill.cognitiveservices.azure.com",
        "https://mill.openai.azure.us",
    ],
)
def test_asks_the_resource_that_the_secret_names(drive: VendorDrive, endpoint: str) -> None:
    """Given the address of a resource, then its v1 API is asked, with the key in its header."""
    signed = sign_in(drive, "azure", write_azure(endpoint=endpoint))
    ask(drive, signed, TEXT, chat())
    (request,) = drive.requests
    host = httpx.URL(endpoint).host
    assert str(request.url) == f"https://{host}/openai/v1/chat/completions"
    assert request.headers["api-key"] == KEY
    assert "authorization" not in request.headers
    assert drive.body()["model"] == "gpt-6-luna"
    assert drive.body().keys() >= {"max_completion_tokens", "service_tier"}
    assert "max_tokens" not in drive.body()


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://mill.openai.azure.com",
        "https://mill.openai.azure.com:8443",
        "https://user@mill.openai.azure.com",
        "https://mill.openai.azure.com.example.org",
        "https://openai.azure.com",
        "https://a.b.openai.azure.com",
        "https://127.0.0.1",
        "https://169.254.169.254/openai/v1",
        "https://mill.openai.azure.com/other",
        "https://mill.openai.azure.com?x=1",
        "mill",
        "",
        7,
    ],
)
def test_a_key_goes_to_no_other_address(drive: VendorDrive, endpoint: object) -> None:
    """Given any other address in a secret, then nothing is sent, and the error quotes nothing."""
    with pytest.raises(ProviderError, match="store JSON with `endpoint`") as refused:
        sign_in(drive, "azure", write_azure(endpoint=endpoint))
    assert refused.value.code is ErrorCode.SECRET_UNRESOLVED
    assert KEY not in refused.value.message
    assert not drive.requests


@pytest.mark.parametrize(
    ("secret", "words"),
    [
        (KEY, "needs `endpoint`"),
        (json.dumps({"endpoint": ADDRESS}), "without `api_key`"),
        ("{", "without `api_key`"),
        (write_azure(data_zone="mars"), "none of apac, eu, global, us"),
    ],
)
def test_a_secret_of_azure_names_what_it_lacks(drive: VendorDrive, secret: str, words: str) -> None:
    """Given a secret that is not enough, then the error says what it must hold."""
    with pytest.raises(ProviderError, match=words):
        sign_in(drive, "azure", secret)


@pytest.mark.parametrize("secret", [KEY, write_azure()])
def test_an_address_of_the_operator_comes_first(drive: VendorDrive, secret: str) -> None:
    """Given an address in the settings, then it is asked, and the secret may be a key alone."""
    urls = {"api": "https://gateway.example.org/openai/v1"}
    signed = sign_in(drive, "azure", secret, base_urls=urls)
    assert (signed.base_urls, signed.secret) == (urls, KEY)


def test_asks_the_deployment_of_a_model(drive: VendorDrive) -> None:
    """Given deployments in the secret, then a model is asked by its deployment."""
    secret = write_azure(deployments={"fast": "gpt-6-luna", "vectors": "text-embedding-3-small"})
    signed = sign_in(drive, "azure", secret)
    reply = ask(drive, signed, TEXT, chat())
    assert drive.body()["model"] == "fast"
    assert reply.model == "model-2026"  # what the answer says
    embedding = replace(signed, model="text-embedding-3-small")
    body = {"data": [{"embedding": [1.0]}], "usage": {"prompt_tokens": 1}}
    ask(drive, embedding, EmbedRequest(texts=("tide",)), body)
    assert drive.body()["model"] == "vectors"
    other = replace(signed, model="gpt-6.1-sol")
    ask(drive, other, TEXT, chat())
    assert drive.body()["model"] == "gpt-6.1-sol"


@pytest.mark.parametrize(("zone", "share"), [("global", 1), ("us", 1.1), ("eu", 1.2)])
def test_bills_the_data_zone(drive: VendorDrive, zone: str, share: float) -> None:
    """Given a data zone in the secret, then the reply names the model with the zone's prices."""
    signed = sign_in(drive, "azure", write_azure(data_zone=zone))
    reply = ask(drive, signed, TEXT, chat())
    assert reply.model == f"{zone}.gpt-6-luna"
    prices = {model.id: model.prices["input_tokens"] for model in VENDORS["azure"].models}
    original = VENDORS["openai"].find_default_model("text")
    assert original is not None
    assert float(prices[reply.model]) == pytest.approx(
        share * float(original.prices["input_tokens"])
    )
    assert prices["gpt-6-luna"] == max(usd for id, usd in prices.items() if "luna" in id)


@pytest.mark.parametrize(
    ("location", "host", "profile"),
    [
        (None, "aiplatform.googleapis.com", "global"),
        ("global", "aiplatform.googleapis.com", "global"),
        ("eu", "aiplatform.eu.rep.googleapis.com", "regional"),
        ("europe-west4", "europe-west4-aiplatform.googleapis.com", "regional"),
    ],
)
def test_asks_the_host_of_the_location(
    drive: VendorDrive, location: str | None, host: str, profile: str
) -> None:
    """Given a service account, then its project is asked at its location, by a granted token."""
    secret = write_account(**{} if location is None else {"location": location})
    signed = sign_in(drive, "vertex", secret, ok(GRANT))
    reply = ask(drive, signed, TEXT, GEMINI)
    granted, asked = drive.requests
    assert str(granted.url) == "https://oauth2.googleapis.com/token"
    place = f"projects/sandbox-project/locations/{location or 'global'}/publishers/google"
    path = f"v1/{place}/models/gemini-3.8-flash:generateContent"
    assert str(asked.url) == f"https://{host}/{path}"
    assert asked.headers["authorization"] == f"Bearer {GRANT['access_token']}"
    assert reply.model == f"{profile}.gemini-3.8-flash"


def test_google_s_library_accepts_the_assertion(drive: VendorDrive) -> None:
    """Given a service account, then its assertion has the claims that Google's library verifies."""
    jwt = pytest.importorskip("google.auth.jwt", reason="needs the extra `sdk`")
    sign_in(drive, "vertex", write_account(), ok(GRANT))
    form = parse_qs(drive.requests[0].content.decode())
    assert form["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]
    (assertion,) = form["assertion"]
    audience = "https://oauth2.googleapis.com/token"
    claims = jwt.decode(assertion, certs=write_public_key(), audience=audience)
    assert (claims["iss"], claims["exp"] - claims["iat"]) == (EMAIL, 3_600)
    assert claims["scope"] == "https://www.googleapis.com/auth/cloud-platform"
    assert jwt.decode_header(assertion) == {
        "alg": "RS256",
        "typ": "JWT",
        "kid": json.loads(write_account())["private_key_id"],
    }


def test_keeps_a_token_until_shortly_before_its_end(
    drive: VendorDrive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a granted token, then calls share it until two minutes before its end."""
    now = 1_000_000.0
    monkeypatch.setattr(vertex.time, "time", lambda: now)
    tokens: dict[str, tuple[str, float]] = {}
    sign_in(drive, "vertex", write_account(), ok(GRANT), tokens=tokens)
    now += 3_599 - 121
    assert sign_in(drive, "vertex", write_account(), tokens=tokens).secret == GRANT["access_token"]
    now += 2
    again = ok({**GRANT, "access_token": "ya29.second"})
    assert sign_in(drive, "vertex", write_account(), again, tokens=tokens).secret == "ya29.second"
    assert len(tokens) == 1


def test_another_secret_is_granted_another_token(drive: VendorDrive) -> None:
    """Given a rotated secret, then its token is asked for, and the older token is forgotten."""
    tokens: dict[str, tuple[str, float]] = {}
    sign_in(drive, "vertex", write_account(), ok(GRANT), tokens=tokens)
    rotated = write_account(client_email=f"second-{EMAIL}")
    again = ok({**GRANT, "access_token": "ya29.second"})
    assert sign_in(drive, "vertex", rotated, again, tokens=tokens).secret == "ya29.second"
    assert len(tokens) == 1


def test_forgets_a_token_that_is_refused(drive: VendorDrive) -> None:
    """Given a token that Google revoked, then the next call asks for another."""
    tokens: dict[str, tuple[str, float]] = {}
    signed = sign_in(drive, "vertex", write_account(), ok(GRANT), tokens=tokens)
    body = {"error": {"code": 401, "message": "Expired.", "status": "UNAUTHENTICATED"}}
    flow = VENDORS["vertex"].operations[type(TEXT)](TEXT, signed)
    with pytest.raises(ProviderError) as refused:
        drive(flow, httpx.Response(401, json=body))
    assert refused.value.code is ErrorCode.PROVIDER_AUTH_FAILED
    assert not tokens


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (httpx.Response(400, json={"error": "invalid_grant"}), ErrorCode.PROVIDER_AUTH_FAILED),
        (httpx.Response(503, json={"error": "internal_failure"}), ErrorCode.PROVIDER_UNAVAILABLE),
        (httpx.Response(200, json={"token_type": "Bearer"}), ErrorCode.PROVIDER_BAD_RESPONSE),
    ],
)
def test_reports_a_token_that_is_not_granted(
    drive: VendorDrive, answer: httpx.Response, code: ErrorCode
) -> None:
    """Given an account without a token, then the error says whose fault it is, without a key."""
    with pytest.raises(ProviderError) as failed:
        sign_in(drive, "vertex", write_account(), answer)
    assert failed.value.code is code
    form = parse_qs(drive.requests[0].content.decode())
    assert form["assertion"][0] not in failed.value.message


@pytest.mark.parametrize(
    "secret",
    [
        "a-key",
        "{",
        json.dumps({"private_key": "x", "client_email": EMAIL}),
        write_account(project_id="../other"),
        write_account(location="evil.example.org/"),
        write_account(private_key="no key"),
        write_account(client_email=""),
    ],
)
def test_a_secret_of_vertex_is_a_service_account(drive: VendorDrive, secret: str) -> None:
    """Given any other secret, then nothing is sent, and the error says what to store."""
    with pytest.raises(ProviderError, match="store the file that Google Cloud made") as refused:
        sign_in(drive, "vertex", secret)
    assert refused.value.code is ErrorCode.SECRET_UNRESOLVED
    assert not drive.requests


def test_names_the_extra_that_signs(drive: VendorDrive, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given no cryptography, then the error names the extra; a token needs none."""
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)
    with pytest.raises(ProviderError, match=r"install `capability-toolkit\[vertex\]`"):
        sign_in(drive, "vertex", write_account())
    token = json.dumps({"project_id": "mill", "access_token": "ya29.mine"})
    assert sign_in(drive, "vertex", token).secret == "ya29.mine"


@pytest.mark.parametrize(("provider", "key"), [("azure", AZURE_KEY), ("vertex", VERTEX_TOKEN)])
def test_sandbox_serves_a_cloud(tmp_path: Path, provider: str, key: str) -> None:
    """Given the sandbox, then a cloud answers, is billed, can fail, and its calls show no key."""
    faults = Faults()
    objective = {"objective": "A line on tides"}
    with Client.local(tmp_path, sandbox=True, faults=faults, registry=Registry.load()) as client:
        faults.fail(provider, status=401, times=1)
        refused = client.runs.create("llm.generate", objective, provider=provider)
        message = f"{provider} did not accept"
        assert refused.wait(check=False).record.error.message.startswith(message)
        faults.answer(provider, "tides", f"They turn {key} twice.")
        run = client.runs.create(
            "llm.generate", objective, provider=provider, max_cost_usd=2, cache=False
        ).wait()
        assert (run.provider, run.text) == (provider, "They turn [key] twice.")
        assert 0 < run.cost_usd < 0.01
        vectors = client.runs.create("embed.generate", {"texts": ["tide"]}, provider=provider)
        assert vectors.wait().output["dimensions"] in (1_536, 3_072)
        (connection,) = [c for c in client.connections.list() if c.provider == provider]
        assert connection.test().ok
    assert {call.vendor for call in faults.calls} == {provider}


def test_a_replay_needs_no_sign_in(tmp_path: Path) -> None:
    """Given a cassette of both clouds, then it replays without secrets, and has no token in it."""
    cassette = tmp_path / "clouds.yaml"
    texts = {}
    for mode in ("record", "replay"):
        place = tmp_path / mode
        with Client.local(place, sandbox=True, cassette=cassette, mode=mode) as client:
            for provider in ("azure", "vertex"):
                run = client.runs.create(
                    "llm.generate", {"objective": "A line on tides"}, provider=provider
                ).wait()
                assert texts.setdefault(provider, run.text) == run.text
    written = cassette.read_text()
    assert not [key for key in (AZURE_KEY, VERTEX_TOKEN) if key in written]
