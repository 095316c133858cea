"""Embeddings: runs of `embed.generate`, and columns of a frame."""

import numpy as np
import pandas as pd
import pytest

from toolkit import Client, WorkError
from toolkit.contract.errors import ErrorCode, RequestError

pytestmark = pytest.mark.embedded
TEXTS = ["the tide turns", "tides", "a mill"]


@pytest.mark.parametrize("provider", ["openai", "google", "minimax", "aws"])
def test_texts_that_share_words_are_near(client: Client, provider: str) -> None:
    """Given texts, when a vendor embeds them, then the matrix has a unit row for each."""
    run = client.runs.create("embed.generate", {"texts": TEXTS * 40}, provider=provider)
    run.wait(progress=False)
    vectors = run.vectors
    assert run.record.output is not None
    assert vectors.shape == (120, run.record.output["dimensions"])
    assert vectors.dtype == np.float32
    assert vectors[0] @ vectors[1] > 0.6 > vectors[0] @ vectors[2]
    assert run.record.usage["input_tokens"] >= 120


def test_a_column_is_embedded_once(client: Client) -> None:
    """Given a column with repetitions, then rows are aligned, and a second call costs nothing."""
    frame = pd.DataFrame({"text": [*TEXTS, "tides"]}, index=[7, 3, 5, 1])
    vectors = client.embed(frame["text"])
    assert (vectors[1] == vectors[3]).all()
    assert (client.embed(frame["text"]) == vectors).all()
    assert client.runs.list()[0].cost_usd == 0


def test_texts_come_from_an_artifact(client: Client) -> None:
    """Given an artifact with lines, then each line has a vector."""
    artifact = client.artifacts.upload("\n".join(TEXTS).encode(), filename="notes.txt")
    run = client.runs.create("embed.generate", {"artifact_id": artifact.id}).wait(progress=False)
    assert run.vectors.shape[0] == len(TEXTS)


def test_the_length_of_vectors_is_chosen(client: Client) -> None:
    """Given a length, then models that cannot shorten vectors are left out."""
    assert client.embed("tides", dimensions=64).shape == (1, 64)
    with pytest.raises(RequestError) as refused:
        client.embed("tides", dimensions=64, provider="minimax")
    assert refused.value.code is ErrorCode.CREDENTIALS_MISSING


@pytest.mark.parametrize("texts", [["tide", ""], ["tide", None], ["tide", 5]])
def test_items_that_are_no_texts_are_named(client: Client, texts: list[object]) -> None:
    """Given an item without text, then the error names it before any request."""
    with pytest.raises(RequestError, match="Item 1"):
        client.embed(texts)


def test_an_artifact_without_texts_fails(client: Client) -> None:
    """Given an artifact that holds no texts, then the run fails and says so."""
    artifact = client.artifacts.upload(b"[1, 2]", filename="numbers.json")
    run = client.runs.create("embed.generate", {"artifact_id": artifact.id})
    with pytest.raises(WorkError, match="empty or longer"):
        run.wait(progress=False)
