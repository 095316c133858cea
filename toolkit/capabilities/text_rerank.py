"""`text.rerank`: how well documents answer a query; the registry loads it."""

import json
from typing import Annotated

from pydantic import Field

from toolkit.contract.base import Record, Request
from toolkit.plugins import Blob, Call, Capability, Flow, RerankRequest, Result, request_operation

MAX_DOCUMENTS, MAX_CHARACTERS = 1_000, 32_000


class RerankInput(Request):
    """The input of `text.rerank`."""

    query: str = Field(
        min_length=1,
        max_length=8_000,
        pattern=r"\S",
        description="the question that the documents may answer",
        json_schema_extra={"x-role": "topic"},
    )
    documents: list[Annotated[str, Field(min_length=1, max_length=MAX_CHARACTERS)]] = Field(
        min_length=1, max_length=MAX_DOCUMENTS, description="the documents to compare"
    )


class RerankOutput(Record):
    """The output of `text.rerank`."""

    scores: list[float] = Field(
        description="relevance of each document from 0 to 1, in the order of the input"
    )
    ranking: list[int] = Field(description="places of the documents, the most relevant first")
    model: str = Field(description="the model that compared them")


def build_request(fields: RerankInput) -> RerankRequest:
    """Build the request for ranking from an input, to price it and to send it."""
    return RerankRequest(query=fields.query, documents=tuple(fields.documents))


def rerank_documents(call: Call[RerankInput]) -> Flow[Result]:
    """Request the relevance of each document to the query, and rank the documents by it."""
    reply = yield from request_operation(build_request(call.input))
    scores = [round(score, 6) for score in reply.scores]
    output: dict[str, object] = {
        "scores": scores,
        "ranking": sorted(range(len(scores)), key=lambda place: -scores[place]),
        "model": reply.model,
    }
    return Result(output, Blob(json.dumps(output).encode(), "application/json"))


CAPABILITY = Capability(
    id="text.rerank",
    title="Rank documents",
    description="Scores how well each of some documents answers a query.",
    input_model=RerankInput,
    output_model=RerankOutput,
    flow=rerank_documents,
    operation=RerankRequest,
    default_provider="cohere",
    produces="application/json",
    estimate=build_request,
    keywords=("rerank", "rank documents", "most relevant", "relevance"),
)
