"""Vectors and ranks by the vendors' SDKs, for the comparison on a socket."""

import json
from typing import Any
from urllib.parse import unquote

import pytest

from tests.sdk.conftest import ReceivedRequest

VECTOR = list[float]


def read_key(work: Any) -> str:
    """Return the key or the token of a secret, which may be JSON."""
    if not work.is_signed:
        return str(work.secret)
    members = json.loads(work.secret)
    return str(members.get("api_key") or members["access_token"])


def open_gemini(url: str, work: Any) -> tuple[Any, str]:
    """Open the google-genai SDK at the server of a URL, and return it and the URL's model."""
    genai = pytest.importorskip("google.genai", reason="needs the extra `sdk`")
    head, _, action = url.partition("?")[0].rpartition("/models/")
    server, is_vertex, place = head.partition("/projects/")
    base_url, version = server.rsplit("/", 1)
    access = {"api_key": work.secret}
    if is_vertex:
        from google.oauth2.credentials import Credentials

        project, _, location, *_ = place.split("/")
        access = {"project": project, "location": location, "vertexai": True}
        access["credentials"] = Credentials(read_key(work))
    options = genai.types.HttpOptions(base_url=base_url, api_version=version)
    return genai.Client(**access, http_options=options), action.partition(":")[0]


def embed_by_openai(url: str, sent: ReceivedRequest, work: Any) -> list[VECTOR]:
    """Embed by the openai SDK."""
    openai = pytest.importorskip("openai", reason="needs the extra `sdk`")
    base_url = url.removesuffix("/embeddings")
    client = openai.OpenAI(base_url=base_url, api_key=read_key(work), max_retries=0)
    body = json.loads(sent.body)
    body.pop("encoding_format", None)  # the SDK adds it, and then decodes the answer
    answer = client.embeddings.create(**body)
    return [entry.embedding for entry in answer.data]


def embed_by_google(url: str, sent: ReceivedRequest, work: Any) -> list[VECTOR]:
    """Embed by the google-genai SDK."""
    client, model = open_gemini(url, work)
    from google.genai.types import Content

    requests = json.loads(sent.body)["requests"]
    config = requests[0].get("embedContentConfig") or requests[0]
    count = len(requests)
    if "/projects/" in url and count == 1:
        requests *= 2  # the SDK sends a batch only if it has several texts
    answer = client.models.embed_content(
        model=model,
        contents=[Content.model_validate(request["content"]) for request in requests],
        config={name: config.get(name) for name in ("taskType", "outputDimensionality")},
    )
    return [embedding.values for embedding in answer.embeddings[:count]]


def invoke_by_bedrock(url: str, sent: ReceivedRequest, work: Any) -> dict[str, Any]:
    """Return the answer of a model to a body of its own, by boto3."""
    boto3 = pytest.importorskip("boto3", reason="needs the extra `sdk`")
    base_url, _, rest = url.partition("/model/")
    keys = json.loads(work.secret)
    client = boto3.client(
        "bedrock-runtime",
        endpoint_url=base_url,
        region_name=keys["region"],
        aws_access_key_id=keys["access_key_id"],
        aws_secret_access_key=keys["secret_access_key"],
    )
    answer = client.invoke_model(modelId=unquote(rest.partition("/")[0]), body=sent.body)
    read: dict[str, Any] = json.loads(answer["body"].read())
    return read


def embed_by_bedrock(url: str, sent: ReceivedRequest, work: Any) -> list[VECTOR]:
    """Embed by boto3, with a pair of keys."""
    answer = invoke_by_bedrock(url, sent, work)
    if "embedding" in answer:
        return [answer["embedding"]]
    vectors: list[VECTOR] = answer["embeddings"]["float"]
    return vectors


def rank_by_bedrock(url: str, sent: ReceivedRequest, work: Any) -> VECTOR:
    """Rank by boto3, and return the score of each document in the order of the request."""
    results = invoke_by_bedrock(url, sent, work)["results"]
    return [r["relevance_score"] for r in sorted(results, key=lambda result: result["index"])]
