"""Requests of the adapters, held against what each vendor publishes of its own API.

The openai facts are a small part of its OpenAPI document, kept in `tests/vendors/facts`; the others
are the types that the vendors' SDKs are generated with.
"""

import json
from pathlib import Path
from typing import Any, get_type_hints

import jsonschema
import pytest
from pydantic import ConfigDict, TypeAdapter

from tests.vendors.conftest import CLONE, SPEECH, TEXT, VENDORS, VendorDrive, flow
from toolkit.plugins import Operation, ProviderError, TextRequest

FACTS = json.loads((Path(__file__).parent.parent / "vendors/facts/openai.json").read_text("utf-8"))
SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {"title": {"type": "string"}},
    "required": ["title"],
    "additionalProperties": False,
}
FULL = TextRequest(
    prompt="Tides?", system="Be brief.", max_tokens=50, temperature=0.3, schema=SCHEMA
)
EACH = pytest.mark.parametrize("operation", [TEXT, FULL], ids=["plain", "everything"])


def get_sent_body(vendor: str, operation: Operation[Any]) -> dict[str, Any]:
    """The JSON body of an adapter's first request."""
    drive = VendorDrive()
    with pytest.raises((ProviderError, AssertionError)):
        drive(flow(vendor, operation))  # nothing is there to answer it
    return drive.body()


@EACH
def test_openai(operation: TextRequest) -> None:
    """Given any request, then it is one of the document's: known fields, and of their types."""
    schema = {
        "type": "object",
        "required": FACTS["required"],
        "properties": FACTS["properties"],
        "additionalProperties": False,
    }
    jsonschema.validate(get_sent_body("openai", operation), schema)
    assert "POST /chat/completions" in FACTS["paths"]
    assert VENDORS["openai"].base_urls["api"].endswith("/v1")


@EACH
def test_anthropic(operation: TextRequest) -> None:
    """Given any request, then it fits the parameters that the SDK is generated with."""
    pytest.importorskip("anthropic", reason="needs the extra `sdk`")
    from anthropic.types import MessageCreateParams

    body = get_sent_body("anthropic", operation)
    TypeAdapter(MessageCreateParams).validate_python(body)
    known: set[str] = set()
    for kind in MessageCreateParams.__args__:
        known |= set(get_type_hints(kind))
    assert set(body) <= known


@EACH
def test_google(operation: TextRequest) -> None:
    """Given any request, then its parts are the SDK's own models, which take no other field."""
    pytest.importorskip("google.genai", reason="needs the extra `sdk`")
    from google.genai import types

    assert types.Content.model_config.get("extra") == "forbid"
    body = get_sent_body("google", operation)
    assert set(body) <= {"contents", "systemInstruction", "generationConfig", "serviceTier"}
    assert body["serviceTier"] in list(types.ServiceTier)
    for content in [*body["contents"], body["systemInstruction"]]:
        types.Content.model_validate(content)
    types.GenerationConfig.model_validate(body["generationConfig"])


@EACH
def test_aws(operation: TextRequest) -> None:
    """Given any request, then botocore's own model of Converse takes it."""
    pytest.importorskip("botocore", reason="needs the extra `sdk`")
    from botocore.session import Session
    from botocore.validate import ParamValidator

    model = Session().get_service_model("bedrock-runtime").operation_model("Converse")
    body = {**get_sent_body("aws", operation), "modelId": "amazon.nova-2-lite-v1:0"}
    found = ParamValidator().validate(body, model.input_shape)
    assert not found.has_errors(), found.generate_report()
    assert (model.http["method"], model.http["requestUri"]) == (
        "POST",
        "/model/{modelId}/converse",
    )


def test_elevenlabs() -> None:
    """Given speech and a clone, then the fields are those of the SDK's own calls."""
    pytest.importorskip("elevenlabs", reason="needs the extra `sdk`")
    import inspect

    from elevenlabs import VoiceSettings
    from elevenlabs.text_to_speech.client import TextToSpeechClient
    from elevenlabs.voices.ivc.client import IvcClient

    from toolkit.plugins import SpeechRequest

    spoken = set(inspect.signature(TextToSpeechClient.convert).parameters)
    body = get_sent_body("elevenlabs", SpeechRequest(text="Tides turn.", speed=1.1))
    assert set(body) <= spoken
    strict = type("Strict", (VoiceSettings,), {"model_config": ConfigDict(extra="forbid")})
    strict(**body["voice_settings"])
    drive = VendorDrive()
    for operation in (SPEECH, CLONE):
        with pytest.raises(AssertionError):
            drive(flow("elevenlabs", operation))
    assert "output_format" in spoken
    assert drive.requests[0].url.params["output_format"] == "mp3_44100_128"
    assert {"name", "files"} <= set(inspect.signature(IvcClient.create).parameters)
    assert b'name="files"' in drive.requests[1].content
