"""Requests of the adapters, validated against the published API of each vendor.

The openai facts are a small part of its OpenAPI document, kept in `tests/vendors/facts`. The other
facts are the types that the vendors' SDKs are generated with.
"""

import inspect
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pydantic import ConfigDict

from tests.vendors.conftest import VENDORS, VendorDrive, flow
from toolkit.plugins import Operation, ProviderError, SpeechRequest, TextRequest

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


def get_sent_body(vendor: str, operation: Operation[Any]) -> dict[str, Any]:
    """Return the JSON body of an adapter's first request."""
    drive = VendorDrive()
    with pytest.raises((ProviderError, AssertionError)):
        drive(flow(vendor, operation))  # no answer is prepared
    return drive.body()


def test_openai_request() -> None:
    """Given a request with all fields, then they and their types are those of the document."""
    facts = {name: FACTS[name] for name in ("required", "properties")}
    schema = {"type": "object", "additionalProperties": False, **facts}
    jsonschema.validate(get_sent_body("openai", FULL), schema)
    assert "POST /chat/completions" in FACTS["paths"]
    assert VENDORS["openai"].base_urls["api"].endswith("/v1")


def test_elevenlabs_request() -> None:
    """Given a speed, then the body has the fields and settings of the SDK's own call."""
    pytest.importorskip("elevenlabs", reason="needs the extra `sdk`")
    from elevenlabs import VoiceSettings
    from elevenlabs.text_to_speech.client import TextToSpeechClient

    body = get_sent_body("elevenlabs", SpeechRequest(text="Tides turn.", speed=1.1))
    assert set(body) <= set(inspect.signature(TextToSpeechClient.convert).parameters)
    strict = type("Strict", (VoiceSettings,), {"model_config": ConfigDict(extra="forbid")})
    strict(**body["voice_settings"])
