"""Artifacts: what jobs yield and callers upload."""

from pydantic import Field

from toolkit.contract.base import JsonObject, Record, Timestamp

# What may be stored and served. A closed list: a page that a browser would run is not in it.
MEDIA_TYPES: dict[str, str] = {
    "application/json": "json",
    "application/octet-stream": "bin",
    "audio/mp4": "m4a",
    "audio/mpeg": "mp3",
    "audio/wav": "wav",
    "image/jpeg": "jpg",
    "image/png": "png",
    "image/svg+xml": "svg",
    "image/webp": "webp",
    "text/plain": "txt",
}


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
