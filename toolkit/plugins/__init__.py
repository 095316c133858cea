"""The interface of vendor files and capability files; third parties use it too.

A capability is a generator that yields *steps* and receives the result of each. A step is an
operation such as `TextRequest` for a routed vendor, an `httpx.Request`, or a `RunInProcess` for
this machine's CPU. A vendor is a set of such generators, one for each kind of operation it offers.
Neither opens a socket, sleeps or starts a thread or a process. The engine's driver does, so tests
of a flow need none of them.
"""

from toolkit.plugins.bounds import Bound, CharacterBound, ExactBound, PixelBound, TokenBound
from toolkit.plugins.capability import Blob, Call, Capability, InputBinding, Result, Upstream
from toolkit.plugins.compatible import TextModel, openai_compatible
from toolkit.plugins.flow import (
    PUBLIC_ONLY,
    RECORDED_MODEL,
    Flow,
    Pause,
    RunInProcess,
    RunInThread,
    Step,
    Submitted,
    pause,
    report_submission,
    request_operation,
    run_in_process,
    run_in_thread,
    send,
)
from toolkit.plugins.operations import (
    CloneReply,
    CloneRequest,
    Cost,
    ImageReply,
    ImageRequest,
    Operation,
    Reply,
    SpeechReply,
    SpeechRequest,
    TextReply,
    TextRequest,
)
from toolkit.plugins.vendor import (
    Access,
    Model,
    PriceChange,
    PriceTier,
    ProviderError,
    Vendor,
    WorkerTime,
)

__all__ = [
    "PUBLIC_ONLY",
    "RECORDED_MODEL",
    "Access",
    "Blob",
    "Bound",
    "Call",
    "Capability",
    "CharacterBound",
    "CloneReply",
    "CloneRequest",
    "Cost",
    "ExactBound",
    "Flow",
    "ImageReply",
    "ImageRequest",
    "InputBinding",
    "Model",
    "Operation",
    "Pause",
    "PixelBound",
    "PriceChange",
    "PriceTier",
    "ProviderError",
    "Reply",
    "Result",
    "RunInProcess",
    "RunInThread",
    "SpeechReply",
    "SpeechRequest",
    "Step",
    "Submitted",
    "TextModel",
    "TextReply",
    "TextRequest",
    "TokenBound",
    "Upstream",
    "Vendor",
    "WorkerTime",
    "openai_compatible",
    "pause",
    "report_submission",
    "request_operation",
    "run_in_process",
    "run_in_thread",
    "send",
]
