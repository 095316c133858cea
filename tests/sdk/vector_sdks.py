"""Vectors and ranks by the vendors' SDKs, for the comparison on a socket."""

import json
from typing import Any
from urllib.parse import unquote

import pytest

from tests.sdk.conftest import ReceivedRequest

VECTOR = list[float]


def embed_by_openai(url: str, sent: ReceivedRequest, work: Any) -> list[VECTOR]:
    """Embed by the openai SDK."""
    openai = pytest.importorskip("openai", reason="needs the extra `sdk`")
    base_url = url.removesuffix("/embeddings")
    client = openai.OpenAI(base_url=base_url, api_key=work.secret, max_retries=0)
    body = json.loads(sent.body)
    body.pop("encoding_format")  # the SDK adds it, and then decodes the answer
    answer = client.embeddings.create(**body)
    return [entry.embedding for entry in answer.data]


def embed_by_google(url: str, sent: ReceivedRequest, work: Any) -> list[VECTOR]:
    """Embed by the google-genai SDK."""
    genai = pytest.importorskip("google.genai", reason="needs the extra `sdk`")
    base_url, version, _, action = url.partition("?")[0].rsplit("/", 3)
    client = genai.Client(
        api_key=work.secret,
        http_options=genai.types.HttpOptions(base_url=base_url, api_version=version),
    )
    requests = json.loads(sent.body)["requests"]
    answer = client.models.embed_content(
        model=action.partition(":")[0],
        contents=[genai.types.Content.model_validate(request["content"]) for request in requests],
        config={name: requests[0].get(name) for name in ("taskType", "outputDimensionality")},
    )
    return [embedding.values for embedding in answer.embeddings]


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
