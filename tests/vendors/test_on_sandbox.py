"""Every operation end to end: the vendors' flows on the simulated vendor cloud, in-process."""

import io
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import httpx
import pytest
from PIL import Image
from starlette.applications import Starlette

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
    EndpointDeletion,
    EndpointListing,
    GpuListing,
)
from toolkit.plugins.streaming import STREAM_READER
from toolkit.sandbox import SANDBOX_KEYS, VENDOR_PATHS, create_app
from toolkit.sandbox.transport import AppTransport
from toolkit.sandbox.wires import anthropic, aws, elevenlabs, google, minimax, openai, runpod_jobs
from toolkit.sandbox.wires.aws import ACCESS_KEY, SIGNING_KEY
from toolkit.sandbox.wires.runpod import RunPodAccount

TEXT = {"type": "string"}
SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {"title": TEXT, "points": {"type": "array", "items": TEXT}},
    "required": ["title", "points"],
    "additionalProperties": False,
}


class SandboxDriver:
    """Drives flows against one sandbox, without ever waiting."""

    def __init__(self, app: Starlette) -> None:
        self.state = app.state.sandbox
        self._client = httpx.AsyncClient(transport=AppTransport(app))
        self.steps: list[object] = []
        self.shown: list[str] = []

    async def close(self) -> None:
        """Let go of the app."""
        await self._client.aclose()

    async def run(self, vendor: str, operation: Operation[Any], **changes: Any) -> Any:
        """Carry out an operation, of either kind."""
        declared = VENDORS[vendor]
        flows = {kind.kind: made for kind, made in declared.operations.items()}
        flows |= declared.infrastructure
        given = self._access(vendor, operation.kind, **changes)
        return await self._drive(flows[operation.kind](operation, given))

    async def probe(self, vendor: str, **changes: Any) -> None:
        """Ask a vendor whether it takes the key."""
        flow = VENDORS[vendor].probe
        assert flow is not None
        await self._drive(flow(self._access(vendor, "", **changes)))

    def _access(self, vendor: str, kind: str, **changes: Any) -> Access:
        declared, urls = VENDORS[vendor], {}
        for host, url in declared.base_urls.items():
            mount = VENDOR_PATHS[vendor if host == "api" else f"{vendor}-{host}"]
            urls[host] = f"http://sandbox.invalid{mount}{httpx.URL(url).path.rstrip('/')}"
        changes = {"secret": SANDBOX_KEYS[declared.variable], **changes}
        return access(vendor, kind, base_urls=urls, **changes)

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
    made = SandboxDriver(create_app(seed=3))
    yield made
    await made.close()


LLMS = ["openai", "anthropic", "google", "minimax", "aws"]


SAMPLES: dict[str, Operation[Any]] = {
    "text": TextRequest(prompt="Write two sentences about tides."),
    "speech": SpeechRequest(text="Tides turn."),
    "image": ImageRequest(prompt="a tidal mill", width=256, height=256, steps=4),
}
CATALOGUE = [
    (vendor.id, model.kind, model.id)
    for vendor in VENDORS.values()
    for model in vendor.models
    if model.kind in SAMPLES and vendor.id in VENDOR_PATHS
    if model.id != "served-by-the-endpoint"  # it stands for whatever an endpoint serves
]


@pytest.mark.parametrize(("vendor", "kind", "model"), CATALOGUE)
async def test_serves_every_model_of_the_catalogue(
    cloud: SandboxDriver, vendor: str, kind: str, model: str
) -> None:
    """Given any model that can be asked for, then the simulated vendor answers for it."""
    reply = await cloud.run(vendor, SAMPLES[kind], model=model)
    assert reply.cost.units


def test_serves_no_model_without_a_place_in_the_catalogue() -> None:
    """Given the models that each wire serves, then the catalogue has them, but for known ones."""
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
        # They take `max_tokens` and a temperature, as servers do that an operator may name.
        "openai": {"gpt-4.1", "gpt-4.1-mini", "gpt-4o", "gpt-4o-mini"},
        # The vendor still lists it; its price was not seen.
        "minimax": {"speech-01-hd", "speech-01-turbo"},
    }


@pytest.mark.parametrize("vendor", [*LLMS, "runpod"])
@pytest.mark.parametrize("schema", [None, SCHEMA], ids=["text", "json"])
async def test_text(cloud: SandboxDriver, vendor: str, schema: dict[str, object] | None) -> None:
    """Given a prompt, then text comes back with its tokens, at once and streamed the same."""
    asked = TextRequest(prompt="Write two sentences about tides.", temperature=0.4, schema=schema)
    whole = await cloud.run(vendor, asked)
    assert whole.text
    assert schema is None or set(json.loads(whole.text)) == {"title", "points"}
    assert vendor == "aws" or whole.model.endswith("-sandbox")  # aws names no model
    assert whole.vendor_request_id
    assert min(whole.cost.units["input_tokens"], whole.cost.units["output_tokens"]) > 0
    assert cloud.shown == []
    streamed = await cloud.run(vendor, replace(asked, stream=True))
    assert "".join(cloud.shown) == streamed.text == whole.text
    assert len(cloud.shown) > 2
    assert (streamed.cost, streamed.model) == (whole.cost, whole.model)


async def test_truncated_text(cloud: SandboxDriver) -> None:
    """Given a limit that thinking uses up, the flow says that the answer was truncated."""
    with pytest.raises(ProviderError, match="truncated"):
        await cloud.run("minimax", TextRequest(prompt="Tides?", max_tokens=5), model="MiniMax-M2.5")


async def test_speech_by_a_cloned_voice(cloud: SandboxDriver) -> None:
    """Given reference audio, a voice is made of it, twice the same, and speaks."""
    audio = make_silent_wav(12)
    asked = CloneRequest(name="Ada Lovelace", audio=audio, media_type="audio/wav")
    first, second = await cloud.run("minimax", asked), await cloud.run("minimax", asked)
    assert first.voice == second.voice
    assert (first.cost.units, second.cost.units) == ({"voices": 1.0}, {"voices": 0.0})
    spoken = await cloud.run("minimax", SpeechRequest(text="Tides turn.", voice=first.voice))
    assert spoken.audio[:3] == b"ID3" or spoken.audio[0] == 0xFF
    assert (spoken.duration_ms or 0) > 0
    assert spoken.cost.units == {"characters": 11.0}


async def test_speech_by_a_cloned_voice_of_elevenlabs(cloud: SandboxDriver) -> None:
    """Given reference audio, a voice is made of it and speaks; characters are as billed."""
    asked = CloneRequest(name="Ada Lovelace", audio=make_silent_wav(12), media_type="audio/wav")
    voice = (await cloud.run("elevenlabs", asked)).voice
    spoken = await cloud.run("elevenlabs", SpeechRequest(text="Tides turn.", voice=voice))
    assert spoken.audio[:3] == b"ID3" or spoken.audio[0] == 0xFF
    assert spoken.cost.units == {"characters": 11.0}
    assert spoken.vendor_request_id
    with pytest.raises(ProviderError) as refused:
        await cloud.run("elevenlabs", SpeechRequest(text="Tides turn.", voice="nobody"))
    assert refused.value.code is ErrorCode.PROVIDER_REJECTED


async def test_text_at_an_endpoint_of_ones_own(cloud: SandboxDriver) -> None:
    """Given an endpoint, its OpenAI-compatible worker is asked for the model that it serves."""
    made = await cloud.run("runpod", EndpointCreation(name="llm", gpu_pool="ADA_24"))
    asked = TextRequest(prompt="Write a sentence about tides.")
    reply = await cloud.run("runpod", asked, endpoint=made.vendor_id)
    assert reply.text
    assert reply.model.endswith("-sandbox")
    assert reply.cost.units["output_tokens"] > 0
    with pytest.raises(ProviderError, match="endpoint_id"):
        await cloud.run("runpod", asked, model="served-by-the-endpoint")


async def test_text_at_a_public_endpoint(cloud: SandboxDriver) -> None:
    """Given no endpoint, the public one is asked, and nothing is spent on thoughts."""
    reply = await cloud.run("runpod", TextRequest(prompt="Write a sentence about tides."))
    assert reply.text
    assert "<think>" not in reply.text
    assert reply.model == "Qwen/Qwen3-32B-AWQ-sandbox"
    assert reply.cost.units["output_tokens"] < 150


async def test_aws_by_a_signature(cloud: SandboxDriver) -> None:
    """Given credentials, requests are signed as AWS works it out; a wrong one is refused."""
    keys = {"access_key_id": ACCESS_KEY, "secret_access_key": SIGNING_KEY, "region": "eu-west-1"}
    asked = TextRequest(prompt="Write a sentence about tides.")
    reply = await cloud.run("aws", asked, secret=json.dumps(keys))
    assert reply.text
    for wrong in ({"secret_access_key": "x"}, {"access_key_id": "AKIDOTHER"}):
        with pytest.raises(ProviderError) as refused:
            await cloud.run("aws", asked, secret=json.dumps(keys | wrong))
        assert refused.value.code is ErrorCode.PROVIDER_AUTH_FAILED
        assert "AKIDOTHER" not in refused.value.message


@pytest.mark.parametrize(
    "vendor", ["openai", "anthropic", "google", "minimax", "elevenlabs", "runpod"]
)
async def test_a_key_is_probed(cloud: SandboxDriver, vendor: str) -> None:
    """Given the right key and a wrong one, then the vendor's probe tells them apart, for free."""
    await cloud.probe(vendor)
    with pytest.raises(ProviderError) as refused:
        await cloud.probe(vendor, secret="wrong")
    assert refused.value.code is ErrorCode.PROVIDER_AUTH_FAILED
    assert not any(call.billed for call in cloud.state.calls)


async def test_reference_audio_too_short(cloud: SandboxDriver) -> None:
    """Given three seconds of audio, the vendor's refusal comes through."""
    asked = CloneRequest(name="Ada", audio=make_silent_wav(3), media_type="audio/wav")
    with pytest.raises(ProviderError, match="2037"):
        await cloud.run("minimax", asked)


async def test_image(cloud: SandboxDriver) -> None:
    """Given the public endpoint, a job is queued, waited for and read, with its cost."""
    reply = await cloud.run("runpod", ImageRequest(prompt="a tidal mill", width=320, height=256))
    with Image.open(io.BytesIO(reply.image)) as picture:
        assert picture.size == (320, 256)
    assert reply.media_type == "image/png"
    assert reply.cost.units["megapixels"] == 0.08192
    assert reply.cost.reported_usd == Decimal("0.001638")
    assert [step for step in cloud.steps if isinstance(step, Submitted)]


async def test_image_taken_up_again(cloud: SandboxDriver) -> None:
    """Given a job from before a crash, its image is fetched and none is made anew."""
    asked = ImageRequest(prompt="a tidal mill", width=256, height=256)
    first = await cloud.run("runpod", asked)
    billed = sum(call.billed for call in cloud.state.calls)
    again = await cloud.run("runpod", asked, resume=first.vendor_request_id)
    assert again.image == first.image
    assert sum(call.billed for call in cloud.state.calls) == billed == 1


async def test_endpoint_from_birth_to_death(cloud: SandboxDriver) -> None:
    """Given an image, an endpoint is made, drawn on, listed and deleted; nothing is left behind."""
    creation = EndpointCreation(name="pictures", gpu_pool="ADA_24", image="example/sdxl:1")
    made = await cloud.run("runpod", creation)
    asked = ImageRequest(prompt="a tidal mill", width=264, height=256, seed=5)
    drawn = await cloud.run("runpod", asked, endpoint=made.vendor_id)
    assert (drawn.model, drawn.seed) == ("serverless", 5)
    assert drawn.cost.units["gpu_seconds"] > 0
    listed = (await cloud.run("runpod", EndpointListing())).items
    assert [(one.vendor_id, one.name) for one in listed] == [(made.vendor_id, "pictures")]
    await cloud.run("runpod", EndpointDeletion(vendor_id=made.vendor_id))
    assert not any(cloud.state.get_records(RunPodAccount).items.values())


async def test_pool_that_there_is_not(cloud: SandboxDriver) -> None:
    """Given an unknown pool, the refusal comes through and nothing is left behind."""
    creation = EndpointCreation(name="pictures", gpu_pool="NONE_9", image="example/sdxl:1")
    with pytest.raises(ProviderError, match="pools of the catalogue"):
        await cloud.run("runpod", creation)
    assert not any(cloud.state.get_records(RunPodAccount).items.values())


async def test_catalogue(cloud: SandboxDriver) -> None:
    """Given the catalogue, every GPU has a pool and a price."""
    gpus = (await cloud.run("runpod", GpuListing())).gpus
    assert {"ADA_24", "HOPPER_141"} <= {gpu.pool for gpu in gpus}
    assert all(gpu.usd_per_hour["serverless"] > 0 and gpu.memory_gb for gpu in gpus)


@pytest.mark.parametrize("vendor", LLMS)
async def test_scripted_outage(cloud: SandboxDriver, vendor: str) -> None:
    """Given an outage with a wait, the fault tells how long; the next call goes through."""
    cloud.state.faults.fail(vendor, status=503, headers={"Retry-After": "3"}, times=1)
    asked = TextRequest(prompt="Tides?")
    with pytest.raises(ProviderError) as caught:
        await cloud.run(vendor, asked)
    assert (caught.value.retryable, caught.value.retry_after) == (True, 3.0)
    assert (await cloud.run(vendor, asked)).text


async def test_outage_in_the_middle_of_a_job(cloud: SandboxDriver) -> None:
    """Given polls that fail for a while, the image comes all the same, made and billed once."""
    cloud.state.faults.fail("runpod-jobs", path_contains="/status/", status=502, times=3)
    asked = ImageRequest(prompt="a tidal mill", width=256, height=256)
    assert (await cloud.run("runpod", asked)).image
    assert [call.billed for call in cloud.state.calls].count(True) == 1


@pytest.mark.parametrize("temperature", [0.0, 1.5])
async def test_a_temperature_that_a_model_refuses(cloud: SandboxDriver, temperature: float) -> None:
    """Given a temperature that minimax's model refuses, then it answers without, asked twice."""
    asked = TextRequest(prompt="Tides?", temperature=temperature)
    known: set[str] = set()
    for calls in (2, 3):  # the second time it is known
        reply = await cloud.run("minimax", asked, model="MiniMax-M2.5", refusals=known)
        assert reply.text
        assert len(cloud.state.calls) == calls
    assert sum(call.billed for call in cloud.state.calls) == 2
    usual = TextRequest(prompt="Tides?", temperature=0.5)
    await cloud.run("minimax", usual, model="MiniMax-M2.5", refusals=known)
    assert len(cloud.state.calls) == 4


async def test_a_prompt_that_is_too_long_for_minimax(cloud: SandboxDriver) -> None:
    """Given a prompt beyond the context, then it is refused for good, and no limit of rate."""
    with pytest.raises(ProviderError, match=r"2013.*context") as caught:
        await cloud.run("minimax", TextRequest(prompt="tide " * 210_000))
    assert (caught.value.code, caught.value.retryable) == (ErrorCode.PROVIDER_REJECTED, False)
