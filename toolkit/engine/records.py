"""The records that the engine keeps for accounts: table, model and word of each kind."""

from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json, to_json

from toolkit.contract.account import ApiKey
from toolkit.contract.agents import Agent
from toolkit.contract.artifacts import MEDIA_TYPES, Artifact
from toolkit.contract.compute import Compute
from toolkit.contract.connections import Connection
from toolkit.contract.endpoints import Endpoint
from toolkit.contract.jobs import Job
from toolkit.contract.maps import MapRecord
from toolkit.contract.plans import Plan
from toolkit.contract.storage import Storage
from toolkit.contract.tasks import Task
from toolkit.contract.templates import Template
from toolkit.contract.workflows import WorkflowRecord
from toolkit.engine.job_record import read_wire_job
from toolkit.store import Repository, Row, Store

_ARTIFACT_COLUMNS = {"id", "job_id", "sha256", "size_bytes", "created_at", "deleted"}
_NOT_IN_ARTIFACT = {*_ARTIFACT_COLUMNS, "filename"}


class JobRepository(Repository[Job]):
    """The jobs, as callers see them; the engine reads its own form with `read_job`."""

    def read(self, row: Row) -> Job:
        """Read a row as the API's job."""
        return read_wire_job(row)


class ArtifactRepository(Repository[Artifact]):
    """The artifacts, whose stored documents omit the members that columns have, and the name."""

    def read(self, row: Row) -> Artifact:
        """Read a row, including members that a later version has added."""
        return super().read({**row, "doc": to_json(_load_artifact(row))})

    def _dump(self, record: Artifact) -> str:
        return record.model_dump_json(exclude=_NOT_IN_ARTIFACT, exclude_defaults=True)


def read_artifact(row: Mapping[str, Any]) -> Artifact:
    """Read an artifact from its row."""
    return Artifact.model_validate(_load_artifact(row))


def name_file(artifact_id: str, media_type: str) -> str:
    """Make the name of an artifact's file."""
    # A later version may have added the media type.
    return f"{artifact_id}.{MEDIA_TYPES.get(media_type, 'bin')}"


def _load_artifact(row: Mapping[str, Any]) -> dict[str, Any]:
    document: dict[str, Any] = from_json(row["doc"])
    document |= {name: row[name] for name in _ARTIFACT_COLUMNS}
    document["filename"] = name_file(row["id"], document["media_type"])
    return document


class Records:
    """The repository of each kind of record."""

    def __init__(self, store: Store) -> None:
        self.keys = Repository(store, "api_keys", "key", ApiKey)
        self.connections = Repository(store, "connections", "connection", Connection, deleted=False)
        self.artifacts = ArtifactRepository(store, "artifacts", "artifact", Artifact, deleted=False)
        self.jobs = JobRepository(store, "jobs", "job", Job)
        self.workflows = Repository(store, "workflows", "workflow", WorkflowRecord)
        self.maps = Repository(store, "maps", "map", MapRecord)
        self.plans = Repository(store, "plans", "plan", Plan)
        self.tasks = Repository(store, "tasks", "task", Task)
        self.agents = Repository(store, "agents", "agent", Agent, deleted=False)
        final_status = "deleted"
        self.endpoints = Repository(store, "endpoints", "endpoint", Endpoint, without=final_status)
        self.compute = Repository(store, "compute", "compute", Compute, without=final_status)
        self.storage = Repository(store, "storage", "storage", Storage, without=final_status)
        self.templates = Repository(store, "templates", "template", Template, without=final_status)
