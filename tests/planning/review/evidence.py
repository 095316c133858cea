"""Evidence of nodes that completed, for the tests of checks, retries and reviews."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.planning.sample_capabilities import LLM
from toolkit.contract.plans import Expect, PlanNode
from toolkit.planning.review.evidence import Evidence
from toolkit.plugins import Blob, Capability

ARTIFACT = "art_6wa1ev325z55yq2d0xhznm3dmx"


def build_evidence(
    capability: Capability,
    inputs: Mapping[str, object],
    blob: Blob,
    *,
    node_id: str = "made",
    depends_on: Sequence[str] = (),
    upstream: str | None = None,
    expect: Expect | None = None,
    pictures: Mapping[str, Blob] = {},
    **facts: object,
) -> Evidence:
    """Build the evidence of a node that completed.

    Args:
        capability: capability of the node.
        inputs: input of the node.
        blob: artifact of the node.
        facts: members of the output that replace the defaults.
    """
    defaults: dict[str, object] = {
        "artifact_id": ARTIFACT, "media_type": blob.media_type, "size_bytes": len(blob.data),
        "model": "m", "finish_reason": "stop", "characters": 99,
    }  # fmt: skip
    fields = capability.output_model.model_fields
    output = {name: value for name, value in {**defaults, **facts}.items() if name in fields}
    node = PlanNode(
        id=node_id,
        capability=capability.id,
        input=dict(inputs),
        depends_on=list(depends_on),
        expect=expect,
    )
    return Evidence(
        node, capability, "completed", output, blob, None, upstream, pictures=dict(pictures)
    )


def build_text(text: str, inputs: Mapping[str, object], **options: Any) -> Evidence:
    """Build the evidence of a written text."""
    return build_evidence(LLM, inputs, Blob(text.encode(), "text/plain"), text=text, **options)
