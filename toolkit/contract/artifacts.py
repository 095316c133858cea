"""Artifacts: what jobs yield and callers upload."""

from pydantic import Field

from toolkit.contract.base import JsonObject, Record, Timestamp

# Tables, such as functions pass on: an Arrow stream, and rows as JSON with a schema beside them.
ARROW_MEDIA_TYPE = "application/vnd.apache.arrow.stream"
TABLE_MEDIA_TYPE = "application/vnd.dataresource+json"
# The media types that may be stored and served; none that a browser would run as a page.
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
        artifact_id: what it made.
        from_artifacts: what it was made from, by the upstream node or the field of the input.
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
    """`GET /v1/artifacts/{id}/lineage`: the jobs and artifacts that one came from.

    Attributes:
        id: of the artifact.
        jobs: the one that made it first, then those that made what it took, and so on.
        artifacts: the artifact itself first; what was deleted or pruned since is left out.
        complete: whether all of it is told; so many jobs at most are.
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
    filename: str = Field(description="made by us from the id and the media type")
    created_at: Timestamp
    metadata: JsonObject = {}
    deleted: bool = False
