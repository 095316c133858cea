"""Raw HTTP calls to a server, without the client."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import httpx

from tests.conftest import Server
from tests.support.timing import PATIENCE_S, wait_until
from toolkit.engine import Registry
from toolkit.sandbox import Faults
from toolkit.settings import Settings

Json = dict[str, Any]
WITHIN_S = 30.0

# "Vendor connection ids and use": provider and variable of its key, by the specification's label.
VENDORS = {
    "V1": ("openai", "OPENAI_API_KEY"),
    "V2": ("anthropic", "ANTHROPIC_API_KEY"),
    "V3": ("google", "GEMINI_API_KEY"),
    "V4": ("minimax", "MINIMAX_API_KEY"),
    "V5": ("elevenlabs", "ELEVENLABS_API_KEY"),
    "V6": ("aws", "AWS_BEARER_TOKEN_BEDROCK"),
    "V7": ("runpod", "RUNPOD_API_KEY"),
}
POINTER = {"provider": "openai", "connection_type": "environment", "secret_ref": "OPENAI_API_KEY"}
NAMES = {label: name for label, (name, _) in VENDORS.items()}
SETTINGS = {"rate_limit_per_s": 1e6, "rate_limit_burst": 10**6, "signups_per_hour": 10**6}
UNKNOWN_ULID = "01m7xrhddbvq3n2zjx4fe01326"
SMALL_IMAGE = {"prompt": "a lighthouse", "steps": 2, "width": 256, "height": 256}


def build_run_body(name: str, input: Json, **changes: object) -> Json:
    """Return the body of `POST /v1/runs` for a capability."""
    return {"target": "capability", "name": name, "version": "1", "input": input, **changes}


class Refusal(NamedTuple):
    """Error of a response.

    Attributes:
        status: HTTP status.
        code: error code.
        paths: faulty places of the request.
    """

    status: int
    code: str
    paths: list[str]


@dataclass
class RawCaller:
    """Caller of the service with a key, or without."""

    http: httpx.Client
    faults: Faults
    data_dir: str
    key: str | None = None

    def send(self, method: str, path: str, body: object = None, **headers: str) -> httpx.Response:
        """Send a request; `_` in the name of a header stands for `-`."""
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.key is not None:
            fields.setdefault("Authorization", f"Bearer {self.key}")
        if body is None:
            return self.http.request(method, path, headers=fields)
        return self.http.request(method, path, headers=fields, json=body)

    def read_error(self, method: str, path: str, body: object = None) -> Refusal:
        """Send a request that must fail, and return its error."""
        response = self.send(method, path, body)
        assert response.status_code >= 400, response.text
        error = response.json()["error"]
        paths = [detail["path"] for detail in error.get("details", [])]
        return Refusal(response.status_code, error["code"], paths)

    def get(self, path: str) -> Json:
        """Return the body of a resource that must exist."""
        response = self.send("GET", path)
        assert response.status_code == 200, response.text
        return dict(response.json())

    def create(self, path: str, body: object) -> Json:
        """Create a resource, and return its body."""
        response = self.send("POST", path, body)
        assert response.status_code in (201, 202), response.text
        return dict(response.json())

    def upload(self, filename: str, content: bytes) -> str:
        """Upload an artifact, and return its id."""
        key = {"Authorization": f"Bearer {self.key}"}
        response = self.http.post("/v1/artifacts", headers=key, files={"file": (filename, content)})
        return str(response.json()["id"])

    def poll(self, path: str, *states: str) -> Json:
        """Read a resource until it is in one of the states."""
        wait_until(lambda: self.get(path)["status"] in states, f"{path} is {states}", WITHIN_S)
        return self.get(path)

    def run(self, name: str, input: Json, **options: object) -> Json:
        """Run a capability to its end."""
        changes = {"options": options} if options else {}
        run = self.create("/v1/runs", build_run_body(name, input, **changes))
        return self.poll(f"/v1/runs/{run['id']}", "completed", "failed", "cancelled")

    def task(self, objective: str, **constraints: object) -> Json:
        """Run a task until it has ended or is blocked."""
        body: Json = {"objective": objective}
        if constraints:
            body["constraints"] = constraints
        task = self.create("/v1/tasks", body)
        return self.poll(f"/v1/tasks/{task['id']}", "completed", "failed", "blocked")

    def workflow(self, *nodes: Json, **fields: object) -> Json:
        """Run a workflow to its end."""
        workflow = self.create("/v1/workflows", {"name": "w", "nodes": list(nodes), **fields})
        return self.poll(f"/v1/workflows/{workflow['id']}", "completed", "failed")

    def connect(self, provider: str) -> str:
        """Connect a provider, and return the id of the connection."""
        variable = dict(VENDORS.values())[provider]
        pointer = {"provider": provider, "connection_type": "environment", "secret_ref": variable}
        return str(self.create("/v1/providers/connections", pointer)["id"])

    def sign_up(self, *providers: str) -> "RawCaller":
        """Return a caller with a new account that has connected these providers."""
        stranger = RawCaller(self.http, self.faults, self.data_dir)
        account = stranger.create("/v1/account", {"email": f"a{time.time_ns()}@example.org"})
        caller = RawCaller(self.http, self.faults, self.data_dir, account["data"]["api_key"])
        for provider in providers:
            caller.connect(provider)
        return caller


@contextmanager
def open_door(settings: Settings, registry: Registry | None = None) -> Iterator[RawCaller]:
    """Serve an engine, and yield a caller without a key."""
    faults = Faults()
    server = Server(settings, faults if settings.sandbox else None, registry)
    with httpx.Client(base_url=server.url, trust_env=False, timeout=PATIENCE_S) as http:
        yield RawCaller(http, faults, str(settings.data_dir))
    server.close()
