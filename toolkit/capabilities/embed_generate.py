"""`embed.generate`: vectors of texts, as one matrix; the registry loads it."""

import json
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, model_validator

from toolkit.capabilities._conversation import ArtifactId
from toolkit.contract.base import Record, Request
from toolkit.contract.errors import ErrorCode
from toolkit.plugins import (
    Blob,
    Call,
    Capability,
    EmbedRequest,
    Flow,
    InputBinding,
    ProviderError,
    Result,
    request_operation,
    run_in_process,
)

MAX_TEXTS, MAX_ARTIFACT_TEXTS, MAX_CHARACTERS = 2_048, 20_000, 32_000
# Texts of a request; a vendor may take fewer of them.
BATCH = 96
MEDIA_TYPE = "application/x-npy"
_ALIGNMENT = 64
_BYTES_PER_NUMBER = 4


class EmbedInput(Request):
    """The input of `embed.generate`."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": ["texts"]}, {"required": ["artifact_id"]}]}
    )

    texts: list[Annotated[str, Field(min_length=1, max_length=MAX_CHARACTERS)]] = Field(
        default_factory=list,
        max_length=MAX_TEXTS,
        description="the texts to embed",
        json_schema_extra={"x-planned": False},
    )
    artifact_id: ArtifactId | None = Field(
        default=None,
        description="id of an artifact with the texts: a JSON list, JSON lines, or lines of text; "
        "upstream fills it",
    )
    purpose: Literal["document", "query"] = Field(
        default="document",
        description="`document` for texts to be found, `query` for texts to find them by",
    )
    dimensions: int | None = Field(
        default=None,
        ge=8,
        le=4_096,
        description="length of the vectors, if the model can shorten them; by default its own",
    )

    @model_validator(mode="after")
    def _check_source(self) -> "EmbedInput":
        if bool(self.texts) == bool(self.artifact_id):
            raise ValueError("exactly one of texts and artifact_id is required")
        return self


class EmbedOutput(Record):
    """The output of `embed.generate`."""

    count: int = Field(description="number of vectors, one for each text")
    dimensions: int = Field(description="length of each vector")
    model: str = Field(description="the model that embedded them")


def build_request(fields: EmbedInput) -> EmbedRequest:
    """Build the request for the first texts, or for assumed texts of an artifact, to price it."""
    texts = tuple(fields.texts[:BATCH]) or ("x" * 1_000,) * BATCH
    return _build_batch(fields, texts)


def _build_batch(fields: EmbedInput, texts: tuple[str, ...]) -> EmbedRequest:
    return EmbedRequest(texts=texts, purpose=fields.purpose, dimensions=fields.dimensions)


def embed_texts(call: Call[EmbedInput]) -> Flow[Result]:
    """Request the vectors of all texts, up to 96 at a time, and join them to a matrix.

    Raises:
        ProviderError: `PROVIDER_REJECTED` for an artifact without texts. `INVALID_OUTPUT` if
            vectors of one input differ in length or model.
    """
    texts = call.input.texts
    if "artifact_id" in call.blobs:
        blob = call.blobs["artifact_id"]
        try:
            texts = yield from run_in_process(read_texts, blob.data)
        except ValueError as error:
            message = f"The artifact {error}."
            raise ProviderError(ErrorCode.PROVIDER_REJECTED, message) from None
    parts: list[bytes] = []
    shapes: set[tuple[str, int]] = set()
    done = 0
    while done < len(texts):
        batch = _build_batch(call.input, tuple(texts[done : done + BATCH]))
        reply = yield from request_operation(batch)
        parts.append(reply.vectors)
        shapes.add((reply.model, reply.dimensions))
        done += len(reply.vectors) // (reply.dimensions * _BYTES_PER_NUMBER)
    if len(shapes) != 1:
        message = "Vectors of one input came from different models; pin a model and try again."
        raise ProviderError(ErrorCode.INVALID_OUTPUT, message)
    model, dimensions = shapes.pop()
    output: dict[str, object] = {"count": len(texts), "dimensions": dimensions, "model": model}
    data = write_npy(b"".join(parts), len(texts), dimensions)
    return Result(output, Blob(data, MEDIA_TYPE, dict(output)))


def read_texts(data: bytes) -> list[str]:
    """Read the texts of an artifact: a JSON list, JSON lines, or lines of text.

    An object in the list or on a line gives its member `text`.

    >>> read_texts(b'["a", "b"]'), read_texts(b'{"text": "a"}'), read_texts(b"a")
    (['a', 'b'], ['a'], ['a'])

    Raises:
        ValueError: it has no texts, too many, or an empty or too long text; the text says which.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise ValueError("is no text") from None
    lines = [line for line in text.splitlines() if line.strip()]
    values: list[object]
    try:
        whole = json.loads(text)
        values = whole if isinstance(whole, list) else [whole]
    except ValueError:
        values = [_read_line(line) for line in lines]
    texts = [value.get("text") if isinstance(value, dict) else value for value in values]
    if not 1 <= len(texts) <= MAX_ARTIFACT_TEXTS:
        raise ValueError(f"has {len(texts)} texts, and 1 to {MAX_ARTIFACT_TEXTS} are embedded")
    checked = [text for text in texts if isinstance(text, str) and 0 < len(text) <= MAX_CHARACTERS]
    if len(checked) < len(texts):
        raise ValueError(f"has a text that is empty or longer than {MAX_CHARACTERS} characters")
    return checked


def _read_line(line: str) -> object:
    if line.lstrip().startswith(("{", '"')):
        try:
            return json.loads(line)
        except ValueError:
            return line
    return line


def write_npy(data: bytes, rows: int, columns: int) -> bytes:
    """Return a matrix of 32-bit floats as a file in NumPy's format (NEP 1, version 1.0).

    >>> len(write_npy(bytes(8), 1, 2))
    136
    """
    shape = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {columns}), }}"
    magic = b"\x93NUMPY\x01\x00"
    length = len(magic) + 2 + len(shape) + 1
    padded = shape + " " * (-length % _ALIGNMENT) + "\n"
    return magic + len(padded).to_bytes(2, "little") + padded.encode() + data


CAPABILITY = Capability(
    id="embed.generate",
    title="Embed texts",
    description="Makes vectors of texts, to search, group or compare them by meaning.",
    input_model=EmbedInput,
    output_model=EmbedOutput,
    flow=embed_texts,
    operation=EmbedRequest,
    default_provider="openai",
    accepts={"artifact_id": InputBinding(("text/*", "application/json"), "artifact")},
    produces=MEDIA_TYPE,
    estimate=build_request,
    cpu_steps=(read_texts,),
    keywords=("embed", "embedding", "embeddings", "vectors", "vectorize"),
)
