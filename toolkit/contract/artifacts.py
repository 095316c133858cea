"""Artifacts: files that jobs make and callers upload."""

from pydantic import Field

from toolkit.contract.base import JsonObject, Record, Timestamp

# Tables, such as functions pass on: an Arrow stream, and rows as JSON with their schema.
ARROW_MEDIA_TYPE = "application/vnd.apache.arrow.stream"
TABLE_MEDIA_TYPE = "application/vnd.dataresource+json"
# The media types that may be stored and served; no browser would run them as a page.
MEDIA_TYPES: dict[str, str] = {
    "application/json": "json",
    "application/octet-stream": "bin",
    ARROW_MEDIA_TYPE: "arrows",
    TABLE_MEDIA_TYPE: "json",
    "audio/mp4": "m4a",
    "audio/mpeg": "mp3",
    "audio/wav": "wav",
    "image/jpeg": "jpg",
    "image/png": "png",
    "image/svg+xml": "svg",
    "image/webp": "webp",
    "text/plain": "txt",
}


class LineageJob(Record):
    """A job that an artifact came from.

    Attributes:
        artifact_id: id of the artifact that the job made.
        from_artifacts: ids of the artifacts in its input, by upstream node or by field of the
            input.
    """

    id: str
    capability: str
    provider: str | None = None
    model: str | None = None
    run_id: str | None = None
    workflow_id: str | None = None
    node_id: str | None = None
    cached_from: str | None = None
    artifact_id: str
    from_artifacts: dict[str, str] = {}
    completed_at: Timestamp | None = None


class Lineage(Record):
    """`GET /v1/artifacts/{id}/lineage`: the jobs and artifacts that an artifact came from.

    Attributes:
        id: id of the artifact.
        jobs: job that made the artifact first, then the jobs that made its inputs, and so on.
        artifacts: the artifact itself first; deleted or pruned artifacts are left out.
        complete: whether the list is complete; it ends at a maximum number of jobs.
    """

    id: str
    jobs: list[LineageJob] = []
    artifacts: list["Artifact"] = []
    complete: bool = True


class Artifact(Record):
    """An artifact; its bytes are at `/v1/artifacts/{id}/content`."""

    id: str
    media_type: str
    size_bytes: int
    sha256: str
    job_id: str | None = None
    filename: str = Field(
        description="file name, made by the service from the id and the media type"
    )
    created_at: Timestamp
    metadata: JsonObject = {}
    deleted: bool = False
