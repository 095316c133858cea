"""Every operation end to end: the vendors' flows on the simulated vendor cloud."""

import io
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import httpx
import pytest
from PIL import Image

from tests.support.recordings import make_silent_wav
from tests.vendors.conftest import VENDORS, access
from toolkit.contract.errors import ErrorCode
from toolkit.engine.concurrency.threads import start_thread
from toolkit.engine.transport.answers import read_answer
from toolkit.plugins import (
    Access,
    CloneRequest,
    Flow,
    ImageRequest,
    Operation,
    Pause,
    ProviderError,
    RunInProcess,
    RunInThread,
    SpeechRequest,
    Submitted,
    TextRequest,
)
from toolkit.plugins.infrastructure import (
    EndpointCreation,
)
from toolkit.plugins.streaming import STREAM_READER, AnswerPiece
from toolkit.sandbox import SANDBOX_KEYS, VENDOR_PATHS, create_app
from toolkit.sandbox.state import SandboxState
from toolkit.sandbox.transport import AppTransport
from toolkit.sandbox.vendor_paths import ACCESS_KEY, SIGNING_KEY
from toolkit.sandbox.wires import anthropic, aws, elevenlabs, google, minimax, openai, runpod_jobs

TEXT = {"type": "string"}
SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {"title": TEXT, "points": {"type": "array", "items": TEXT}},
    "required": ["title", "points"],
    "additionalProperties": False,
}


class SandboxDriver:
    """Drives flows against one sandbox, without ever waiting."""

    def __init__(self, state: SandboxState, client: httpx.AsyncClient) -> None:
        self.state = state
        self._client = client
        self.steps: list[object] = []
        self.shown: list[AnswerPiece] = []

    async def run(self, vendor: str, operation: Operation[Any], **changes: Any) -> Any:
        """Carry out an operation, of either kind."""
        declared = VENDORS[vendor]
        flows = {kind.kind: flow for kind, flow in declared.operations.items()}
        flows |= declared.infrastructure
        access = await self._access(vendor, operation.kind, **changes)
        return await self._drive(flows[operation.kind](operation, access))

    async def probe(self, vendor: str, **changes: Any) -> None:
        """Ask a vendor whether it accepts the key."""
        flow = VENDORS[vendor].probe
        assert flow is not None
        await self._drive(flow(await self._access(vendor, "", **changes)))

    async def _access(self, vendor: str, kind: str, **changes: Any) -> Access:
        declared, urls = VENDORS[vendor], {}
        for host, url in declared.base_urls.items():
            mount = VENDOR_PATHS[vendor if host == "api" else f"{vendor}-{host}"]
            urls[host] = f"http://sandbox.invalid{mount}{httpx.URL(url).path.rstrip('/')}"
        usual = {"secret": SANDBOX_KEYS[declared.variable], "dialect": declared.dialect}
        plain = access(vendor, kind, base_urls=urls, **usual | changes)
        if declared.sign_in is None:
            return plain
        signed: Access = await self._drive(declared.sign_in(plain))
        return signed

    async def _drive(self, flow: Flow[Any]) -> Any:
        try:
            step = next(flow)
            while True:
                self.steps.append(step)
                try:
                    outcome = await self._perform(step)
                except Exception as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(outcome)
        except StopIteration as stop:
            return stop.value

    async def _perform(self, step: object) -> object:
        match step:
            case httpx.Request():
                answer = await self._client.send(step, stream=STREAM_READER in step.extensions)
                if STREAM_READER in step.extensions:
                    answer = await read_answer(
                        step, answer, 10_000_000, self.shown.append, start_thread
                    )
                return answer
            case RunInProcess() | RunInThread():
                return step.run()
        assert isinstance(step, Pause | Submitted)
        return None


@pytest.fixture
async def cloud() -> AsyncIterator[SandboxDriver]:
    """A fresh vendor cloud."""
    app = create_app(seed=3)
    async with httpx.AsyncClient(transport=AppTransport(app)) as client:
        yield SandboxDriver(app.state.sandbox, client)


LLMS = ["openai", "anthropic", "google", "minimax", "aws", "azure", "vertex"]
# Their replies have no name of a model with `-sandbox`: aws names none, vertex has profiles.
UNNAMED = ("aws", "vertex")


SAMPLES: dict[str, Operation[Any]] = {
    "text": TextRequest(prompt="Write two sentences about tides.", system="Be brief."),
    "speech": SpeechRequest(text="Tides turn."),
    "image": ImageRequest(prompt="a tidal mill", width=256, height=256, steps=4),
}
CATALOGUE = [
    (vendor.id, model.kind, model.id)
    for vendor in VENDORS.values()
    for model in vendor.models
    if model.kind in SAMPLES and vendor.id in VENDOR_PATHS
    if model.id != "served-by-the-endpoint"  # a placeholder for the model of an endpoint
]


@pytest.mark.parametrize(("vendor", "kind", "model"), CATALOGUE)
async def test_serves_every_model_of_the_catalogue(
    cloud: SandboxDriver, vendor: str, kind: str, model: str
) -> None:
    """Given a model of the catalogue, then the simulated vendor answers for it."""
    reply = await cloud.run(vendor, SAMPLES[kind], model=model)
    assert reply.cost.units


def test_serves_no_model_without_a_place_in_the_catalogue() -> None:
    """Given the models of each wire, then the catalogue has all but the known exceptions."""
    served = {
        "openai": set(openai.MODELS),
        "anthropic": set(anthropic.MODELS),
        "google": set(google.MODELS),
        "minimax": {*minimax.CHAT_MODELS, *minimax.SPEECH_MODELS},
        "elevenlabs": set(elevenlabs.MODELS),
        "aws": {*aws.MODELS}
        | {f"{part}.{name}" for name, parts in aws.PROFILES.items() for part in parts},
        "runpod": set(runpod_jobs.PUBLIC_MODELS),
    }
    listed = {vendor.id: {model.id for model in vendor.models} for vendor in VENDORS.values()}
    extra = {name: models - listed[name] for name, models in served.items()}
    assert {name: models for name, models in extra.items() if models} == {
        # They accept `max_tokens` and a temperature, as an operator's own server may.
        "openai": {"gpt-4.1", "gpt-4.1-mini", "gpt-4o", "gpt-4o-mini"},
        # The vendor lists it without a price.
        "minimax": {"speech-01-hd", "speech-01-turbo"},
    }


@pytest.mark.parametrize("vendor", [*LLMS, "runpod"])
@pytest.mark.parametrize("schema", [None, SCHEMA], ids=["text", "json"])
async def test_streamed_text_equals_the_whole(
    cloud: SandboxDriver, vendor: str, schema: dict[str, object] | None
) -> None:
    """Given a prompt, then text has its tokens, and a stream joins to the same text and cost."""
    request = TextRequest(prompt="Write two sentences about tides.", temperature=0.4, schema=schema)
    whole = await cloud.run(vendor, request)
    assert whole.text
    assert schema is None or set(json.loads(whole.text)) == {"title", "points"}
    assert vendor in UNNAMED or whole.model.endswith("-sandbox")
    assert whole.vendor_request_id
    assert min(whole.cost.units["input_tokens"], whole.cost.units["output_tokens"]) > 0
    assert cloud.shown == []
    streamed = await cloud.run(vendor, replace(request, stream=True))
    assert "".join(piece.text for piece in cloud.shown) == streamed.text == whole.text
    assert len(cloud.shown) > 2
    assert (streamed.cost, streamed.model) == (whole.cost, whole.model)


@pytest.mark.parametrize("vendor", ["minimax", "elevenlabs"])
async def test_speaks_by_a_cloned_voice(cloud: SandboxDriver, vendor: str) -> None:
    """Given reference audio, then a voice is made of it and speaks, billed by the character."""
    clone = CloneRequest(name="Ada", audio=make_silent_wav(12), media_type="audio/wav")
    voice = (await cloud.run(vendor, clone)).voice
    reply = await cloud.run(vendor, SpeechRequest(text="Tides turn.", voice=voice))
    assert reply.audio[:3] == b"ID3" or reply.audio[0] == 0xFF
    assert reply.cost.units == {"characters": 11.0}


async def test_generates_text_at_an_own_endpoint(cloud: SandboxDriver) -> None:
    """Given an endpoint, then its OpenAI-compatible worker is asked for the model it serves."""
    endpoint = await cloud.run("runpod", EndpointCreation(name="llm", gpu_pool="ADA_24"))
    request = TextRequest(prompt="Write a sentence about tides.")
    reply = await cloud.run("runpod", request, endpoint=endpoint.vendor_id)
    assert reply.text
    assert reply.model.endswith("-sandbox")
    assert reply.cost.units["output_tokens"] > 0
    with pytest.raises(ProviderError, match="endpoint_id"):
        await cloud.run("runpod", request, model="served-by-the-endpoint")


async def test_generates_text_at_a_public_endpoint(cloud: SandboxDriver) -> None:
    """Given no endpoint, then the public endpoint answers, without thoughts."""
    reply = await cloud.run("runpod", TextRequest(prompt="Write a sentence about tides."))
    assert reply.text
    assert "<think>" not in reply.text
    assert reply.model == "Qwen/Qwen3-32B-AWQ-sandbox"
    assert reply.cost.units["output_tokens"] < 150


async def test_signs_requests_for_aws(cloud: SandboxDriver) -> None:
    """Given credentials, then requests are signed, and wrong credentials are refused."""
    keys = {"access_key_id": ACCESS_KEY, "secret_access_key": SIGNING_KEY, "region": "eu-west-1"}
    request = TextRequest(prompt="Write a sentence about tides.")
    reply = await cloud.run("aws", request, secret=json.dumps(keys))
    assert reply.text
    for wrong in ({"secret_access_key": "x"}, {"access_key_id": "AKIDOTHER"}):
        with pytest.raises(ProviderError) as refused:
            await cloud.run("aws", request, secret=json.dumps(keys | wrong))
        assert refused.value.code is ErrorCode.PROVIDER_AUTH_FAILED
        assert "AKIDOTHER" not in refused.value.message


@pytest.mark.parametrize(
    "vendor", ["openai", "anthropic", "google", "minimax", "elevenlabs", "runpod"]
)
async def test_probe_accepts_only_the_right_key(cloud: SandboxDriver, vendor: str) -> None:
    """Given the right key and a wrong key, then the probe distinguishes them without cost."""
    await cloud.probe(vendor)
    with pytest.raises(ProviderError) as refused:
        await cloud.probe(vendor, secret="wrong")
    assert refused.value.code is ErrorCode.PROVIDER_AUTH_FAILED
    assert not any(call.billed for call in cloud.state.calls)


async def test_generates_an_image_with_its_cost(cloud: SandboxDriver) -> None:
    """Given the public endpoint, then a job is queued and read, with its cost."""
    reply = await cloud.run("runpod", ImageRequest(prompt="a tidal mill", width=320, height=256))
    with Image.open(io.BytesIO(reply.image)) as picture:
        assert picture.size == (320, 256)
    assert reply.media_type == "image/png"
    assert reply.cost.units["megapixels"] == 0.08192
    assert reply.cost.reported_usd == Decimal("0.001638")
    assert [step for step in cloud.steps if isinstance(step, Submitted)]


@pytest.mark.parametrize("temperature", [0.0, 1.5])
async def test_drops_a_refused_temperature(cloud: SandboxDriver, temperature: float) -> None:
    """Given a temperature that a model refuses, then it answers without, and this is remembered."""
    request = TextRequest(prompt="Tides?", temperature=temperature)
    refusals: set[str] = set()
    for calls in (2, 3):  # the second call remembers the refusal
        reply = await cloud.run("minimax", request, model="MiniMax-M2.5", refusals=refusals)
        assert reply.text
        assert len(cloud.state.calls) == calls
    assert sum(call.billed for call in cloud.state.calls) == 2
    usual = TextRequest(prompt="Tides?", temperature=0.5)
    await cloud.run("minimax", usual, model="MiniMax-M2.5", refusals=refusals)
    assert len(cloud.state.calls) == 4


async def test_rejects_a_prompt_that_is_too_long_for_minimax(cloud: SandboxDriver) -> None:
    """Given a prompt beyond the context, then it is rejected, not rate-limited."""
    with pytest.raises(ProviderError, match=r"2013.*context") as caught:
        await cloud.run("minimax", TextRequest(prompt="tide " * 210_000))
    assert (caught.value.code, caught.value.retryable) == (ErrorCode.PROVIDER_REJECTED, False)
