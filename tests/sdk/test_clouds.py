"""Azure OpenAI and Vertex AI: what their own clients do beyond the comparison on sockets."""

import json
from typing import Any

import pytest

from tests.sdk.conftest import Order
from tests.support.service_account import write_account
from toolkit.sandbox.vendor_paths import AZURE_KEY

openai = pytest.importorskip("openai", reason="needs the extra `sdk`")
service_account = pytest.importorskip("google.oauth2.service_account", reason="needs `sdk`")
transport = pytest.importorskip("google.auth.transport.requests", reason="needs `sdk`")
PROMPT = [{"role": "user", "content": "Write two sentences about tides."}]


def open_azure(cloud_url: str, key: str = AZURE_KEY) -> Any:
    """Open Azure's client, which names the deployment in the path."""
    return openai.AzureOpenAI(
        azure_endpoint=f"{cloud_url}/azure",
        api_key=key,
        api_version="2025-04-01-preview",
        max_retries=0,
    )


def test_azure_s_client_asks_a_deployment(cloud_url: str) -> None:
    """Given Azure's own client, then text, a stream and vectors come from the deployment."""
    client = open_azure(cloud_url)
    whole = client.chat.completions.create(model="gpt-6-luna", messages=PROMPT)
    stream = client.chat.completions.create(model="gpt-6-luna", messages=PROMPT, stream=True)
    pieces = [chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices]
    assert "".join(pieces) == whole.choices[0].message.content
    vectors = client.embeddings.create(model="text-embedding-3-small", input=["tide", "mill"])
    assert [len(row.embedding) for row in vectors.data] == [1_536, 1_536]


def test_azure_s_client_is_refused(cloud_url: str) -> None:
    """Given a wrong key or an unknown deployment, then the client raises the error of each."""
    with pytest.raises(openai.AuthenticationError):
        open_azure(cloud_url, "wrong").chat.completions.create(model="gpt-6-luna", messages=PROMPT)
    with pytest.raises(openai.NotFoundError):
        open_azure(cloud_url).chat.completions.create(model="nobody", messages=PROMPT)


def open_account(cloud_url: str) -> Any:
    """Open a service account by Google's library."""
    info = {**json.loads(write_account()), "token_uri": f"{cloud_url}/vertex-token/token"}
    scopes = ["https://www.googleapis.com/auth/cloud-platform"]
    return service_account.Credentials.from_service_account_info(info, scopes=scopes)


def test_google_s_library_reads_a_refusal(cloud_url: str, order: Order) -> None:
    """Given an account that is refused, then Google's library raises its error."""
    exceptions = pytest.importorskip("google.auth.exceptions")
    order("vertex-token", status=400, times=1)
    with pytest.raises(exceptions.RefreshError, match="invalid_grant"):
        open_account(cloud_url).refresh(transport.Request())


def test_google_s_library_is_granted_a_token(cloud_url: str) -> None:
    """Given a service account, then Google's library exchanges its assertion for a token."""
    credentials = open_account(cloud_url)
    credentials.refresh(transport.Request())
    assert credentials.token
    genai = pytest.importorskip("google.genai")
    client = genai.Client(
        vertexai=True,
        project="sandbox-project",
        location="europe-west4",
        credentials=credentials,
        http_options=genai.types.HttpOptions(base_url=f"{cloud_url}/vertex"),
    )
    answer = client.models.generate_content(model="gemini-3.8-flash", contents="Tides?")
    assert answer.text
    count = client.models.count_tokens(model="gemini-3.8-flash", contents="Tides?")
    assert count.total_tokens
    body: dict[str, Any] = json.loads(answer.model_dump_json())
    assert body["model_version"].endswith("-sandbox")
