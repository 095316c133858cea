"""Features of the google-genai SDK on the `google` wire that no adapter uses."""

from typing import Any

import pytest
from pydantic import BaseModel

from tests.sdk.conftest import skip_without
from toolkit.sandbox import SANDBOX_KEYS

pytestmark = skip_without("google.genai")
MODEL, PROMPT = "gemini-3.8-flash", "Write two sentences about tides."


class GoogleOutline(BaseModel):
    """The shape of an answer."""

    title: str
    points: list[str]


@pytest.fixture
def client(cloud_url: str) -> Any:
    """The vendor's own client."""
    from google import genai

    options = genai.types.HttpOptions(base_url=f"{cloud_url}/google")
    return genai.Client(api_key=SANDBOX_KEYS["GEMINI_API_KEY"], http_options=options)


def test_answers_in_the_shape_of_a_model_class(client: Any) -> None:
    """Given a schema in the SDK's own form, then the answer has that shape."""
    config = {"response_mime_type": "application/json", "response_schema": GoogleOutline}
    answer = client.models.generate_content(model=MODEL, contents=PROMPT, config=config)
    assert GoogleOutline.model_validate_json(answer.text).title
