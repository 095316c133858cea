"""Every vendor's adapter on a real socket, compared with the SDK that the vendor publishes.

Each adapter does each of its kinds of work through a client's engine, over the network transport.
Then the vendor's SDK requests the same work from the same server. The SDK must accept the body,
spell the same target, send the same credentials, and read the same answer. Each vendor that is
loaded, built-in or installed, is tested.
"""

import inspect
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import httpx
import pytest

from tests.sdk.conftest import Cloud, ReceivedRequest
from tests.sdk.own_sdks import ask_groq, ask_mistral, embed_by_mistral
from tests.sdk.transcript_sdks import (
    transcribe_by_elevenlabs,
    transcribe_by_google,
    transcribe_by_openai,
)
from tests.sdk.vector_sdks import (
    embed_by_bedrock,
    embed_by_google,
    embed_by_openai,
    open_gemini,
    rank_by_bedrock,
    read_key,
)
from tests.support.recordings import make_silent_wav
from tests.support.service_account import write_account
from toolkit import Client
from toolkit.assembly import list_compatible_vendors, point_vendors_at_sandbox
from toolkit.engine import Registry
from toolkit.sandbox import SANDBOX_KEYS, VENDOR_PATHS
from toolkit.sandbox.audio.speech import VoiceSettings, synthesize_speech
from toolkit.sandbox.vendor_paths import ACCESS_KEY, AZURE_KEY, SIGNING_KEY
from toolkit.settings import Settings
from toolkit.verify.checks import CHEAPEST_REQUESTS

WORDS = "The tide turns twice a day. Mills once ran on it."
SPEECH, _ = synthesize_speech(WORDS, VoiceSettings("Rachel"))
REGISTRY = Registry.load()
COMPATIBLE = {vendor.id: vendor for vendor in list_compatible_vendors(REGISTRY)}
AWS_KEYS = {
    "access_key_id": ACCESS_KEY,
    "secret_access_key": SIGNING_KEY,
    "region": "eu-central-1",
}


@dataclass(frozen=True)
class Work:
    """One kind of work of one vendor, with one form of its secret."""

    vendor: str
    kind: str
    secret: str
    streamed: bool = False

    @property
    def is_signed(self) -> bool:
        """True if requests are signed with the secret, which is a pair of keys."""
        return self.secret.startswith("{")

    def __str__(self) -> str:
        form = "-signed" if self.is_signed else ""
        form += "-granted" if "private_key" in self.secret else ""
        return f"{self.vendor}-{self.kind}{form}{'-streamed' if self.streamed else ''}"


def list_secrets(vendor: str) -> list[str]:
    """List a secret of each form that a vendor takes."""
    if vendor in COMPATIBLE:
        return [COMPATIBLE[vendor].key or "any-key"]  # a local server takes any
    key = SANDBOX_KEYS[REGISTRY.vendors[vendor].variable]
    others = {"aws": json.dumps(AWS_KEYS), "azure": AZURE_KEY, "vertex": write_account()}
    return [key, others[vendor]] if vendor in others else [key]


WORKS = [
    Work(vendor.id, operation.kind, secret, streamed)
    for vendor in REGISTRY.vendors.values()
    for operation in vendor.operations
    for secret in list_secrets(vendor.id)
    for streamed in ((False, True) if operation.kind == "text" else (False,))
]
Connect = Callable[[str, str], str]
each_work = pytest.mark.parametrize("work", WORKS, ids=str)


@pytest.fixture(scope="module")
def client(cloud: Cloud, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client whose engine reaches every vendor over the socket."""
    folder = tmp_path_factory.mktemp("sockets")
    mounted = VENDOR_PATHS | {vendor.id: vendor.path for vendor in COMPATIBLE.values()}
    sandbox = point_vendors_at_sandbox(Settings(), REGISTRY, mounted)
    vendors = {
        name: {"base_urls": {h: cloud.url + urlsplit(u).path for h, u in vendor.base_urls.items()}}
        for name, vendor in sandbox.items()
    }
    settings = Settings(
        data_dir=folder,
        vendors=vendors,
        encyclopedia_url=cloud.url + mounted["encyclopedia"],
        retries=0,
    )
    with Client.local(settings=settings) as client:
        yield client


@pytest.fixture
def connect(client: Client, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connect]:
    """Connects a vendor by a secret, and returns the id of the connection."""
    ids: list[str] = []

    def connect(vendor: str, secret: str) -> str:
        monkeypatch.setenv("SECRET_OF_SOCKETS", secret)
        connection = client.connections.create(vendor, "environment", "SECRET_OF_SOCKETS")
        ids.append(connection.id)
        return connection.id

    yield connect
    for id in ids:
        client.connections.delete(id)


def do_work(client: Client, work: Work, connection_id: str, folder: Path) -> Any:
    """Have the engine do the cheapest work of a kind by a connection, and return the run."""
    capability, fields = CHEAPEST_REQUESTS[work.kind]
    if work.kind == "clone":
        recording = folder / "voice.wav"
        recording.write_bytes(make_silent_wav(11))
        fields = {**fields, "reference_audio": client.artifacts.upload(recording).id}
    if work.kind == "transcription":
        fields = {"audio": client.artifacts.upload(SPEECH, filename="speech.mp3").id}
    run = client.runs.create(
        capability, fields, provider=connection_id, cache=False, stream=work.streamed
    )
    return run.wait(progress=False)


@each_work
def test_adapter_and_sdk_send_the_same_request(
    client: Client, connect: Connect, cloud: Cloud, tmp_path: Path, work: Work
) -> None:
    """Given a kind of work, then adapter and SDK send the same request and read the same answer."""
    connection_id = connect(work.vendor, work.secret)
    cloud.received.clear()
    run = do_work(client, work, connection_id, tmp_path)
    assert run.status == "completed"
    sent = find_work_request(cloud)
    judge = find_judge(work)
    if judge is None:
        return
    cloud.received.clear()
    answer = judge(cloud.url + sent.target, sent, work)
    request = find_work_request(cloud)
    assert split_target(request) == split_target(sent)
    assert list_credentials(request) == list_credentials(sent)
    if work.kind == "text":
        assert answer == run.output["text"]
    elif work.kind == "embedding":
        assert run.vectors.tolist() == [pytest.approx(vector, abs=1e-6) for vector in answer]
    elif work.kind == "rerank":
        assert run.output["scores"] == pytest.approx(answer, abs=1e-6)
    elif work.kind == "transcription":
        assert answer == run.output["text"] == WORDS
    elif work.kind != "clone":  # each clone has a new id
        assert answer == client.artifacts.get(run.output["artifact_id"]).content()


def find_work_request(cloud: Cloud) -> ReceivedRequest:
    """Return the last POST request that the cloud received: earlier ones were refused."""
    return [request for request in cloud.received if request.method == "POST"][-1]


def split_target(request: ReceivedRequest) -> tuple[str, dict[str, list[str]]]:
    """Return the path of a request, in the client's spelling, and its query parameters."""
    path, _, query = request.target.partition("?")
    return path, parse_qs(query)


def list_credentials(request: ReceivedRequest) -> set[str]:
    """Return the keys that a request carries, or the scope of its signature."""
    names = {"api-key", "authorization", "x-api-key", "x-goog-api-key", "xi-api-key"}
    carried = (value for name, value in request.headers.items() if name in names)
    return {value.removeprefix("Bearer ").partition(", SignedHeaders")[0] for value in carried}


@pytest.mark.parametrize(
    ("vendor", "secret"),
    [(vendor, secret) for vendor in REGISTRY.vendors for secret in list_secrets(vendor)],
    ids=lambda value: "signed" if value.startswith("{") else value.removeprefix("sandbox-"),
)
def test_tests_a_connection(client: Client, connect: Connect, vendor: str, secret: str) -> None:
    """Given a good key, then the test of its connection succeeds."""
    tested = client.connections.test(connect(vendor, secret))
    assert tested.ok or REGISTRY.vendors[vendor].probe is None, tested.record
    assert tested.record.error is None


def test_sends_no_key_to_a_local_server(
    client: Client, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a local server and no variable, then it is asked without any key."""
    monkeypatch.delenv("OLLAMA_API_KEY", raising=False)
    (connection,) = client.connections.connect("ollama")
    cloud.received.clear()
    run = client.runs.create(*CHEAPEST_REQUESTS["text"], provider="ollama", cache=False)
    assert run.wait(progress=False).cost_usd == 0
    assert [list_credentials(request) for request in cloud.received] == [set(), set()]
    connection.delete()


def test_calls_share_a_token(client: Client, connect: Connect, cloud: Cloud) -> None:
    """Given calls at once by a service account, then one of them asks for the token of all."""
    connection_id = connect("vertex", write_account())
    cloud.received.clear()
    objectives = [{"objective": f"A line on tide {number}"} for number in range(4)]
    runs = [
        client.runs.create("llm.generate", objective, provider=connection_id, cache=False)
        for objective in objectives
    ]
    assert {run.wait(progress=False).status for run in runs} == {"completed"}
    targets = [request.target for request in cloud.received if request.method == "POST"]
    assert len([target for target in targets if target.endswith(":generateContent")]) == 4
    # The connection's own test may ask for the token before.
    assert len([target for target in targets if target.endswith("/token")]) <= 1


@pytest.mark.parametrize("vendor", [v.id for v in REGISTRY.vendors.values() if v.infrastructure])
def test_manages_infrastructure(client: Client, connect: Connect, vendor: str) -> None:
    """Given a GPU cloud, then volume, template, endpoint and pod are made, used and deleted."""
    connect(vendor, list_secrets(vendor)[0])
    gpus = client.catalog.gpus()
    storage = client.storage.create("weights", 20)
    template = client.templates.create("worker", "example/sdxl:1")
    endpoint = client.endpoints.create(
        "studio", gpu_ids=gpus[0].record.pool, storage_id=storage.id, template_id=template.id
    )
    pod = client.compute.create("easel", gpus[0].id)
    for place in ({"endpoint_id": endpoint.id}, {"compute_id": pod.id}):
        run = client.runs.create(
            *CHEAPEST_REQUESTS["image"], provider=vendor, cache=False, **place
        ).wait(progress=False)
        assert client.artifacts.get(run.output["artifact_id"]).media_type == "image/png"
    for resource in (pod, endpoint, template, storage):
        resource.delete()


def test_reads_an_encyclopedia(client: Client) -> None:
    """Given a topic with characters that a URL encodes, then its articles are found."""
    run = client.runs.create("research.gather", {"topic": "Café au lait: 50% milk?"})
    assert run.wait(progress=False).output["sources"]


# An SDK call: it sends the body that the adapter sent, to the same server, and returns the answer.
Judge = Callable[[str, ReceivedRequest, Work], Any]


def find_judge(work: Work) -> Judge | None:
    """Return the SDK's call for some work, or None if no SDK can make it."""
    wire = REGISTRY.vendors[work.vendor].wire or SAME_API.get(work.vendor, work.vendor)
    if (wire, work.kind) in WITHOUT_SDK:
        return None
    if wire == "aws" and not work.is_signed:
        return None  # boto3 sends an API key over TLS alone
    if "private_key" in work.secret:
        return None  # each token is another
    return JUDGES.get((work.vendor, work.kind)) or JUDGES[wire, work.kind]


def import_sdk(name: str) -> Any:
    """Import an SDK, or skip the test."""
    return pytest.importorskip(name, reason="needs the extra `sdk`")


def ask_openai(url: str, sent: ReceivedRequest, work: Work) -> str:
    """Request text by the openai SDK; undocumented fields go as extra fields."""
    openai = import_sdk("openai")
    client = openai.OpenAI(
        base_url=url.removesuffix("/chat/completions"), api_key=read_key(work), max_retries=0
    )
    body = json.loads(sent.body)
    documented = inspect.signature(client.chat.completions.create).parameters
    extra = {name: body.pop(name) for name in list(body) if name not in documented}
    answer = client.chat.completions.create(**body, extra_body=extra)
    if not work.streamed:
        return str(answer.choices[0].message.content)
    return "".join(chunk.choices[0].delta.content or "" for chunk in answer if chunk.choices)


def ask_anthropic(url: str, sent: ReceivedRequest, work: Work) -> str:
    """Request text by the anthropic SDK."""
    anthropic = import_sdk("anthropic")
    base_url = url.removesuffix("/v1/messages")
    client = anthropic.Anthropic(base_url=base_url, api_key=work.secret, max_retries=0)
    answer = client.messages.create(**json.loads(sent.body))
    if not work.streamed:
        return "".join(block.text for block in answer.content)
    return "".join(event.delta.text for event in answer if event.type == "content_block_delta")


def ask_google(url: str, sent: ReceivedRequest, work: Work) -> str:
    """Request text by the google-genai SDK."""
    client, model = open_gemini(url, work)
    from google.genai import types

    body = json.loads(sent.body)
    contents = body.pop("contents")
    config = body.pop("generationConfig", {}) | body
    arguments = {
        "model": model,
        "contents": [types.Content.model_validate(content) for content in contents],
        "config": types.GenerateContentConfig.model_validate(config),
    }
    if not work.streamed:
        return str(client.models.generate_content(**arguments).text)
    return "".join(part.text or "" for part in client.models.generate_content_stream(**arguments))


def ask_bedrock(url: str, sent: ReceivedRequest, work: Work) -> str:
    """Request text by boto3, with a pair of keys."""
    boto3 = import_sdk("boto3")
    base_url, _, path = url.partition("/model/")
    keys = json.loads(work.secret)
    client = boto3.client(
        "bedrock-runtime",
        endpoint_url=base_url,
        region_name=keys["region"],
        aws_access_key_id=keys["access_key_id"],
        aws_secret_access_key=keys["secret_access_key"],
    )
    arguments = {"modelId": unquote(path.partition("/")[0]), **json.loads(sent.body)}
    if not work.streamed:
        return str(client.converse(**arguments)["output"]["message"]["content"][0]["text"])
    return "".join(
        event["contentBlockDelta"]["delta"]["text"]
        for event in client.converse_stream(**arguments)["stream"]
        if "contentBlockDelta" in event
    )


def ask_elevenlabs_speech(url: str, sent: ReceivedRequest, work: Work) -> bytes:
    """Request speech by the elevenlabs SDK."""
    client, parts = open_elevenlabs(url, work), urlsplit(url)
    (output_format,) = parse_qs(parts.query)["output_format"]
    return b"".join(
        client.text_to_speech.convert(
            voice_id=unquote(parts.path.rpartition("/")[2]),
            output_format=output_format,
            **json.loads(sent.body),
        )
    )


def ask_elevenlabs_clone(url: str, _: ReceivedRequest, work: Work) -> None:
    """Clone a voice by the elevenlabs SDK; each clone has a new id."""
    client = open_elevenlabs(url, work)
    files = [("reference.wav", make_silent_wav(11), "audio/wav")]
    assert client.voices.ivc.create(name="verify", files=files).voice_id


def open_elevenlabs(url: str, work: Work) -> Any:
    """Open the elevenlabs SDK at the server of a URL."""
    import_sdk("elevenlabs")
    from elevenlabs.client import ElevenLabs

    return ElevenLabs(base_url=url.partition("/v1/")[0], api_key=work.secret)


def ask_runpod(url: str, sent: ReceivedRequest, work: Work) -> bytes:
    """Request an image by the runpod SDK."""
    runpod = import_sdk("runpod")
    base_url, endpoint, _ = url.rsplit("/", 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runpod, "endpoint_url_base", base_url)
        patch.setattr(runpod, "api_key", work.secret)
        job = runpod.Endpoint(endpoint).run(json.loads(sent.body))
        return httpx.get(job.output(timeout=20)["image_url"]).content


JUDGES: dict[tuple[str, str], Judge] = {
    ("openai", "text"): ask_openai,
    ("cohere", "text"): ask_openai,
    ("minimax", "text"): ask_openai,
    ("runpod", "text"): ask_openai,
    ("anthropic", "text"): ask_anthropic,
    ("google", "text"): ask_google,
    ("aws", "text"): ask_bedrock,
    ("elevenlabs", "speech"): ask_elevenlabs_speech,
    ("elevenlabs", "clone"): ask_elevenlabs_clone,
    ("runpod", "image"): ask_runpod,
    ("openai", "embedding"): embed_by_openai,
    ("groq", "text"): ask_groq,
    ("mistral", "text"): ask_mistral,
    ("mistral", "embedding"): embed_by_mistral,
    ("google", "embedding"): embed_by_google,
    ("aws", "embedding"): embed_by_bedrock,
    ("aws", "rerank"): rank_by_bedrock,
    ("openai", "transcription"): transcribe_by_openai,
    ("google", "transcription"): transcribe_by_google,
    ("elevenlabs", "transcription"): transcribe_by_elevenlabs,
}
# The vendors whose APIs others serve at their own addresses, with their own keys.
SAME_API = {"azure": "openai", "vertex": "google"}
# MiniMax, Voyage and Cohere: no Python SDK for these is in the extra `sdk`.
WITHOUT_SDK = {
    *(("minimax", kind) for kind in ("speech", "clone", "embedding")),
    *((vendor, kind) for vendor in ("cohere", "voyage") for kind in ("embedding", "rerank")),
}
