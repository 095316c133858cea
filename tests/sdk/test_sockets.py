"""Every vendor's adapter on a real socket, judged by the SDK that the vendor publishes.

Each adapter does each of its kinds of work through a client's engine, over the network transport.
Then the vendor's SDK asks the same server for the same work. The SDK has to accept the body, spell
the same target, send the same credentials, and read the same answer. A vendor that is added or
installed is in these tests as soon as it is loaded.
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
from tests.support.recordings import make_silent_wav
from toolkit import Client
from toolkit.assembly import list_compatible_vendors, point_vendors_at_sandbox
from toolkit.engine import Registry
from toolkit.sandbox import SANDBOX_KEYS, VENDOR_PATHS
from toolkit.sandbox.wires.aws import ACCESS_KEY, SIGNING_KEY
from toolkit.settings import Settings
from toolkit.verify.checks import CHEAPEST_REQUESTS

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
        return f"{self.vendor}-{self.kind}{form}{'-streamed' if self.streamed else ''}"


def list_secrets(vendor: str) -> list[str]:
    """List a secret of each form that a vendor takes."""
    if vendor in COMPATIBLE:
        return [COMPATIBLE[vendor].key]
    key = SANDBOX_KEYS[REGISTRY.vendors[vendor].variable]
    return [key, json.dumps(AWS_KEYS)] if vendor == "aws" else [key]


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
    vendors = {
        name: {"base_urls": {host: cloud.url + urlsplit(url).path for host, url in urls.items()}}
        for name, urls in (
            (name, settings.base_urls)
            for name, settings in point_vendors_at_sandbox(Settings(), REGISTRY, mounted).items()
        )
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
    """Have an engine do the cheapest work of a kind by a connection, and return the run."""
    capability, fields = CHEAPEST_REQUESTS[work.kind]
    if work.kind == "clone":
        recording = folder / "voice.wav"
        recording.write_bytes(make_silent_wav(11))
        fields = {**fields, "reference_audio": client.artifacts.upload(recording).id}
    run = client.runs.create(
        capability, fields, provider=connection_id, cache=False, stream=work.streamed
    )
    return run.wait(progress=False)


@each_work
def test_an_adapter_does_its_work_over_a_socket_as_the_sdk_does(
    client: Client, connect: Connect, cloud: Cloud, tmp_path: Path, work: Work
) -> None:
    """Given a kind of work, then adapter and SDK ask for it alike, and read the same answer."""
    connection_id = connect(work.vendor, work.secret)
    cloud.received.clear()
    run = do_work(client, work, connection_id, tmp_path)
    assert run.status == "completed"
    asked = find_work_request(cloud)
    judge = find_judge(work)
    if judge is None:
        return
    cloud.received.clear()
    answer = judge(cloud.url + asked.target, asked, work)
    request = find_work_request(cloud)
    assert split_target(request) == split_target(asked)
    assert list_credentials(request) == list_credentials(asked)
    if work.kind == "text":
        assert answer == run.output["text"]
    elif work.kind != "clone":  # each clone has an id of its own
        assert answer == client.artifacts.get(run.output["artifact_id"]).content()


def find_work_request(cloud: Cloud) -> ReceivedRequest:
    """Return the last request for work that the cloud received; one before it was refused."""
    return [request for request in cloud.received if request.method == "POST"][-1]


def split_target(request: ReceivedRequest) -> tuple[str, dict[str, list[str]]]:
    """Return the path of a request, as it was spelled, and what its query says."""
    path, _, query = request.target.partition("?")
    return path, parse_qs(query)


def list_credentials(request: ReceivedRequest) -> set[str]:
    """Return the keys that a request carries; of a signature, the scope that it was made for."""
    names = {"authorization", "x-api-key", "x-goog-api-key", "xi-api-key"}
    carried = (value for name, value in request.headers.items() if name in names)
    return {value.removeprefix("Bearer ").partition(", SignedHeaders")[0] for value in carried}


@pytest.mark.parametrize(
    ("vendor", "secret"),
    [(one, secret) for one in REGISTRY.vendors for secret in list_secrets(one)],
    ids=lambda value: "signed" if value.startswith("{") else value.removeprefix("sandbox-"),
)
def test_a_connection_is_tested_over_a_socket(
    client: Client, connect: Connect, vendor: str, secret: str
) -> None:
    """Given a good key, then the test of its connection says so."""
    tested = client.connections.test(connect(vendor, secret))
    assert tested.ok or REGISTRY.vendors[vendor].probe is None, tested.record
    assert tested.record.error is None


@pytest.mark.parametrize("vendor", [v.id for v in REGISTRY.vendors.values() if v.infrastructure])
def test_infrastructure_is_managed_over_a_socket(
    client: Client, connect: Connect, vendor: str
) -> None:
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


def test_an_encyclopedia_is_read_over_a_socket(client: Client) -> None:
    """Given a topic, then its articles are found, whatever their titles are spelled like."""
    run = client.runs.create("research.gather", {"topic": "Café au lait: 50% milk?"})
    assert run.wait(progress=False).output["sources"]


# The SDK of each wire and kind: it sends the body that the adapter sent, to the same server, and
# returns what it reads in the answer.
Judge = Callable[[str, ReceivedRequest, Work], Any]


def find_judge(work: Work) -> Judge | None:
    """Return the SDK's call for some work, or None if no SDK can make it."""
    wire = REGISTRY.vendors[work.vendor].wire or work.vendor
    if (wire, work.kind) in WITHOUT_SDK:
        return None
    if wire == "aws" and not work.is_signed:
        return None  # boto3 sends an API key over TLS alone
    return JUDGES[wire, work.kind]


def import_sdk(name: str) -> Any:
    """Import an SDK, or skip the test."""
    return pytest.importorskip(name, reason="needs the extra `sdk`")


def ask_openai(url: str, asked: ReceivedRequest, work: Work) -> str:
    """Ask by the openai SDK; undocumented fields go as extra fields."""
    openai = import_sdk("openai")
    client = openai.OpenAI(
        base_url=url.removesuffix("/chat/completions"), api_key=work.secret, max_retries=0
    )
    body = json.loads(asked.body)
    documented = inspect.signature(client.chat.completions.create).parameters
    extra = {name: body.pop(name) for name in list(body) if name not in documented}
    answer = client.chat.completions.create(**body, extra_body=extra)
    if not work.streamed:
        return str(answer.choices[0].message.content)
    return "".join(chunk.choices[0].delta.content or "" for chunk in answer if chunk.choices)


def ask_anthropic(url: str, asked: ReceivedRequest, work: Work) -> str:
    """Ask by the anthropic SDK."""
    anthropic = import_sdk("anthropic")
    base_url = url.removesuffix("/v1/messages")
    client = anthropic.Anthropic(base_url=base_url, api_key=work.secret, max_retries=0)
    answer = client.messages.create(**json.loads(asked.body))
    if not work.streamed:
        return "".join(block.text for block in answer.content)
    return "".join(event.delta.text for event in answer if event.type == "content_block_delta")


def ask_google(url: str, asked: ReceivedRequest, work: Work) -> str:
    """Ask by the google-genai SDK."""
    genai = import_sdk("google.genai")
    base_url, version, _, action = url.partition("?")[0].rsplit("/", 3)
    model = action.partition(":")[0]
    client = genai.Client(
        api_key=work.secret,
        http_options=genai.types.HttpOptions(base_url=base_url, api_version=version),
    )
    body = json.loads(asked.body)
    config = {**body.pop("generationConfig", {})}
    contents = body.pop("contents")
    arguments = {
        "model": model,
        "contents": [genai.types.Content.model_validate(content) for content in contents],
        "config": genai.types.GenerateContentConfig.model_validate({**config, **body}),
    }
    if not work.streamed:
        return str(client.models.generate_content(**arguments).text)
    return "".join(part.text or "" for part in client.models.generate_content_stream(**arguments))


def ask_bedrock(url: str, asked: ReceivedRequest, work: Work) -> str:
    """Ask by boto3, with a pair of keys."""
    boto3 = import_sdk("boto3")
    base_url, _, rest = url.partition("/model/")
    keys = json.loads(work.secret)
    client = boto3.client(
        "bedrock-runtime",
        endpoint_url=base_url,
        region_name=keys["region"],
        aws_access_key_id=keys["access_key_id"],
        aws_secret_access_key=keys["secret_access_key"],
    )
    arguments = {"modelId": unquote(rest.partition("/")[0]), **json.loads(asked.body)}
    if not work.streamed:
        return str(client.converse(**arguments)["output"]["message"]["content"][0]["text"])
    return "".join(
        event["contentBlockDelta"]["delta"]["text"]
        for event in client.converse_stream(**arguments)["stream"]
        if "contentBlockDelta" in event
    )


def ask_elevenlabs_speech(url: str, asked: ReceivedRequest, work: Work) -> bytes:
    """Speak by the elevenlabs SDK."""
    client, parts = open_elevenlabs(url, work), urlsplit(url)
    (output_format,) = parse_qs(parts.query)["output_format"]
    return b"".join(
        client.text_to_speech.convert(
            voice_id=unquote(parts.path.rpartition("/")[2]),
            output_format=output_format,
            **json.loads(asked.body),
        )
    )


def ask_elevenlabs_clone(url: str, _: ReceivedRequest, work: Work) -> None:
    """Clone a voice by the elevenlabs SDK; the id is a new one each time."""
    client = open_elevenlabs(url, work)
    files = [("reference.wav", make_silent_wav(11), "audio/wav")]
    assert client.voices.ivc.create(name="verify", files=files).voice_id


def open_elevenlabs(url: str, work: Work) -> Any:
    """Open the elevenlabs SDK at the server of an address."""
    import_sdk("elevenlabs")
    from elevenlabs.client import ElevenLabs

    return ElevenLabs(base_url=url.partition("/v1/")[0], api_key=work.secret)


def ask_runpod(url: str, asked: ReceivedRequest, work: Work) -> bytes:
    """Have an image made by the runpod SDK."""
    runpod = import_sdk("runpod")
    base_url, endpoint, _ = url.rsplit("/", 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runpod, "endpoint_url_base", base_url)
        patch.setattr(runpod, "api_key", work.secret)
        job = runpod.Endpoint(endpoint).run(json.loads(asked.body))
        return httpx.get(job.output(timeout=20)["image_url"]).content


JUDGES: dict[tuple[str, str], Judge] = {
    ("openai", "text"): ask_openai,
    ("minimax", "text"): ask_openai,
    ("runpod", "text"): ask_openai,
    ("anthropic", "text"): ask_anthropic,
    ("google", "text"): ask_google,
    ("aws", "text"): ask_bedrock,
    ("elevenlabs", "speech"): ask_elevenlabs_speech,
    ("elevenlabs", "clone"): ask_elevenlabs_clone,
    ("runpod", "image"): ask_runpod,
}
# MiniMax publishes no Python SDK for sounds.
WITHOUT_SDK = {("minimax", "speech"), ("minimax", "clone")}
