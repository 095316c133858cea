"""The records that the engine keeps for accounts: table, model and word of each kind."""

from toolkit.contract.account import ApiKey
from toolkit.contract.agents import Agent
from toolkit.contract.artifacts import Artifact
from toolkit.contract.compute import Compute
from toolkit.contract.connections import Connection
from toolkit.contract.endpoints import Endpoint
from toolkit.contract.jobs import Job
from toolkit.contract.plans import Plan
from toolkit.contract.storage import Storage
from toolkit.contract.tasks import Task
from toolkit.contract.templates import Template
from toolkit.contract.workflows import WorkflowRecord
from toolkit.engine.job_record import read_wire_job
from toolkit.store import Repository, Row, Store


class JobRepository(Repository[Job]):
    """The jobs, as callers see them; the engine reads its own form with `read_job`."""

    def read(self, row: Row) -> Job:
        """Read a row."""
        return read_wire_job(row)


class Records:
    """The repository of each kind of record."""

    def __init__(self, store: Store) -> None:
        self.keys = Repository(store, "api_keys", "key", ApiKey)
        self.connections = Repository(store, "connections", "connection", Connection, deleted=False)
        self.artifacts = Repository(store, "artifacts", "artifact", Artifact, deleted=False)
        self.jobs = JobRepository(store, "jobs", "job", Job)
        self.workflows = Repository(store, "workflows", "workflow", WorkflowRecord)
        self.plans = Repository(store, "plans", "plan", Plan)
        self.tasks = Repository(store, "tasks", "task", Task)
        self.agents = Repository(store, "agents", "agent", Agent, deleted=False)
        final_status = "deleted"
        self.endpoints = Repository(store, "endpoints", "endpoint", Endpoint, without=final_status)
        self.compute = Repository(store, "compute", "compute", Compute, without=final_status)
        self.storage = Repository(store, "storage", "storage", Storage, without=final_status)
        self.templates = Repository(store, "templates", "template", Template, without=final_status)
