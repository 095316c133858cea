"""The paths of the simulated wires, the wires that each vendor has, and its key.

A wire is one HTTP API of a vendor. The cloud is the set of simulated wires.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache

VENDOR_PATHS: dict[str, str] = {
    "openai": "/openai",
    "anthropic": "/anthropic",
    "google": "/google",
    "minimax": "/minimax",
    "elevenlabs": "/elevenlabs",
    "aws": "/aws",
    "aws-bedrock": "/aws-bedrock",
    "aws-s3": "/aws-s3",
    "runpod": "/runpod",
    "runpod-jobs": "/runpod-jobs",
    "runpod-pods": "/runpod-pods",
    "runpod-images": "/runpod-images",
    "cohere": "/cohere",
    "cohere-compatible": "/cohere-compatible",
    "voyage": "/voyage",
    "azure": "/azure",
    "vertex": "/vertex",
    "vertex-token": "/vertex-token",
    "encyclopedia": "/encyclopedia",
}
"""Where each wire is mounted; below it, paths are the vendor's own, `/v1` or `/v2` included."""

AZURE_KEY, VERTEX_TOKEN = "sandbox-azure", "sandbox-vertex"
ACCESS_KEY, SIGNING_KEY = "SANDBOXACCESSKEY", "sandbox-aws-secret"
BUCKET = "sandbox-batches"  # the only bucket of the account at AWS
# Long names are cut short: each piece of a key is removed from messages, which name the vendor.
SANDBOX_KEYS: dict[str, str] = {
    "OPENAI_API_KEY": "sandbox-openai",
    "ANTHROPIC_API_KEY": "sandbox-anthro",
    "GEMINI_API_KEY": "sandbox-google",
    "MINIMAX_API_KEY": "sandbox-minimax",
    "ELEVENLABS_API_KEY": "sandbox-eleven",
    "AWS_BEARER_TOKEN_BEDROCK": "sandbox-aws",
    "AWS_BEDROCK_BATCHES": json.dumps(
        {
            "access_key_id": ACCESS_KEY,
            "secret_access_key": SIGNING_KEY,
            "batch_bucket": BUCKET,
            "batch_role_arn": "arn:aws:iam::123456789012:role/batches",
        }
    ),
    "RUNPOD_API_KEY": "sandbox-runpod",
    "COHERE_API_KEY": "sandbox-cohere",
    "VOYAGE_API_KEY": "sandbox-voyage",
    "AZURE_OPENAI_API_KEY": json.dumps(
        {"endpoint": "https://sandbox.openai.azure.com", "api_key": AZURE_KEY}
    ),
    "VERTEX_SERVICE_ACCOUNT": json.dumps(
        {"project_id": "sandbox", "location": "global", "access_token": VERTEX_TOKEN}
    ),
}
"""The only key that each simulated vendor accepts, by its conventional environment variable."""

LOCAL_MODELS, LOCAL_EMBEDDERS = ("llama3.2", "qwen3.5"), ("nomic-embed-text",)
"""The models that a simulated local server lists: for texts, and for vectors."""


@dataclass(frozen=True, slots=True)
class CompatibleVendor:
    """An additional vendor of a cloud, which speaks OpenAI's wire.

    Attributes:
        id: the vendor's id in faults and in the log of calls.
        key: the only key that the vendor accepts; "" for a server that needs none.
        models: the names of its models for texts.
        base_path: the path of its own base URL, such as `/v1`.
        embeddings: the names of its models for vectors.
        transcribers: the names of its models for transcripts.
        names: its names of request fields by the wire's own names, which it refuses; "" for a
            field that it ignores.
        extra: names of further request fields, which it ignores.
        upstream: member of its answers that names the host that served it; "" for none.
        key_header: header that may carry the key alone; "" for none.
        reasoning_member: member that a message with calls of tools must have; "" for none.
    """

    id: str
    key: str
    models: tuple[str, ...]
    base_path: str = "/v1"
    embeddings: tuple[str, ...] = ()
    transcribers: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    extra: frozenset[str] = frozenset()
    upstream: str = ""
    key_header: str = ""
    reasoning_member: str = ""

    def __post_init__(self) -> None:
        if self.id in VENDOR_PATHS:
            raise ValueError(f"id cannot be {self.id!r}: the cloud has a wire of that name")

    @property
    def path(self) -> str:
        """The path of its mount."""
        return f"/{self.id}"


@cache
def list_wires(compatible: tuple[str, ...] = ()) -> Mapping[str, frozenset[str]]:
    """List every name that faults (simulated failures) can be set for, with its wires.

    A vendor's name means all of its wires, and a wire's name only that wire. The name of a vendor
    with several wires, followed by `-api`, means its main wire.

    >>> [name for name in list_wires() if name.startswith("runpod")]
    ['runpod', 'runpod-jobs', 'runpod-pods', 'runpod-images', 'runpod-api']
    """
    wires_by_name = {
        name: frozenset(wire for wire in VENDOR_PATHS if f"{wire}-".startswith(f"{name}-"))
        for name in VENDOR_PATHS
    }
    wires_by_name |= {name: frozenset({name}) for name in compatible}
    main = {
        f"{name}-api": frozenset({name}) for name, wires in wires_by_name.items() if len(wires) > 1
    }
    return wires_by_name | main


def find_wires(name: str, compatible: tuple[str, ...] = ()) -> frozenset[str]:
    """Return the wires of a name.

    Args:
        name: a vendor, a wire, or `*`.

    Raises:
        ValueError: no vendor or wire has the name; the message lists the known names.
    """
    wires_by_name = list_wires(compatible)
    if name == "*":
        return frozenset[str]().union(*wires_by_name.values())
    if name in wires_by_name:
        return wires_by_name[name]
    close = get_close_matches(str(name).lower(), wires_by_name, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise ValueError(
        f"vendor cannot be {name!r}.{hint} Use one of {', '.join(wires_by_name)}, or '*' for all."
    )
