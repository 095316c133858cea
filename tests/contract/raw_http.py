"""Raw HTTP to a server of the service, with nothing of the client's in between."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from tests.conftest import Server
from tests.support.timing import PATIENCE_S, wait_until
from toolkit.engine import Registry
from toolkit.sandbox import Faults
from toolkit.settings import Settings

Json = dict[str, Any]
WITHIN_S = 30.0

# "Vendor connection ids and use", with the names and the variables that stand behind the labels.
VENDORS = {
    "V1": ("openai", "OPENAI_API_KEY"),
    "V2": ("anthropic", "ANTHROPIC_API_KEY"),
    "V3": ("google", "GEMINI_API_KEY"),
    "V4": ("minimax", "MINIMAX_API_KEY"),
    "V5": ("elevenlabs", "ELEVENLABS_API_KEY"),
    "V6": ("aws", "AWS_BEARER_TOKEN_BEDROCK"),
    "V7": ("runpod", "RUNPOD_API_KEY"),
}
POINTER = {
    "provider": "openai",
    "connection_type": "environment",
    "secret_ref": "OPENAI_API_KEY",
}
NAMES = {label: name for label, (name, _) in VENDORS.items()}
SETTINGS = {"rate_limit_per_s": 1e6, "rate_limit_burst": 10**6, "signups_per_hour": 10**6}


@dataclass
class RawCaller:
    """A caller of the service with a key of its own, or with none."""

    http: httpx.Client
    faults: Faults
    data_dir: str
    key: str | None = None

    def send(self, method: str, path: str, body: object = None, **headers: str) -> httpx.Response:
        """Send a request as the specification writes it; `_` in a header's name is `-`."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.key is not None:
            named.setdefault("Authorization", f"Bearer {self.key}")
        if body is None:
            return self.http.request(method, path, headers=named)
        return self.http.request(method, path, headers=named, json=body)

    def get(self, path: str) -> Json:
        """The body of what is read, which has to be there."""
        answer = self.send("GET", path)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def create(self, path: str, body: object) -> Json:
        """The body of what is made, which has to be accepted."""
        answer = self.send("POST", path, body)
        assert answer.status_code in (201, 202), answer.text
        return dict(answer.json())

    def poll(self, path: str, *states: str) -> Json:
        """Read until one of the states is there, as the specification has a caller do."""
        wait_until(lambda: self.get(path)["status"] in states, f"{path} is {states}", WITHIN_S)
        return self.get(path)

    def run(self, name: str, given: Json, **options: object) -> Json:
        """A run of a capability, polled until it has ended."""
        asked = {"target": "capability", "name": name, "version": "1", "input": given}
        made = self.create("/v1/runs", {**asked, "options": options} if options else asked)
        return self.poll(f"/v1/runs/{made['id']}", "completed", "failed", "cancelled")

    def task(self, objective: str, **constraints: object) -> Json:
        """A task, polled until nothing moves it any more."""
        asked: Json = {"objective": objective}
        made = self.create(
            "/v1/tasks", {**asked, "constraints": constraints} if constraints else asked
        )
        return self.poll(f"/v1/tasks/{made['id']}", "completed", "failed", "blocked")

    def workflow(self, *nodes: Json, **fields: object) -> Json:
        """A workflow, polled until it has ended."""
        made = self.create("/v1/workflows", {"name": "w", "nodes": list(nodes), **fields})
        return self.poll(f"/v1/workflows/{made['id']}", "completed", "failed")

    def connect(self, provider: str) -> str:
        """Register the pointer of a vendor; its `prv_` id."""
        variable = dict(VENDORS.values())[provider]
        pointer = {"provider": provider, "connection_type": "environment", "secret_ref": variable}
        return str(self.create("/v1/providers/connections", pointer)["id"])

    def sign_up(self, *providers: str) -> "RawCaller":
        """A caller with a new account, which has connected these."""
        stranger = RawCaller(self.http, self.faults, self.data_dir)
        made = stranger.create("/v1/account", {"email": f"a{time.time_ns()}@example.org"})
        door = RawCaller(self.http, self.faults, self.data_dir, made["data"]["api_key"])
        for provider in providers:
            door.connect(provider)
        return door


@contextmanager
def open_door(settings: Settings, registry: Registry | None = None) -> Iterator[RawCaller]:
    """A door without a key to a server of a service."""
    faults = Faults()
    server = Server(settings, faults if settings.sandbox else None, registry)
    with httpx.Client(base_url=server.url, trust_env=False, timeout=PATIENCE_S) as http:
        yield RawCaller(http, faults, str(settings.data_dir))
    server.close()
