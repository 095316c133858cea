"""The options of a run as keyword arguments, for whoever asks without pydantic.

Written by `scripts/run_options.py` from `Options`, which is where an option is defined.
"""

from typing import Final, TypedDict

from toolkit.contract.choices import OptimizeFor


class WorkOptions(TypedDict, total=False):
    """The options of any work; none is as if it was left out."""

    optimize_for: OptimizeFor | None
    provider: str | None
    max_cost_usd: float | None
    fallback_on_rejection: bool | None
    cache: bool | None
    deadline_s: float | None


class RunOptions(WorkOptions, total=False):
    """The options of a run: those of any work, and the place where GPU work runs."""

    endpoint_id: str | None
    compute_id: str | None


class RunOptionAttributes:
    """The options of a run as attributes; none where one was left out."""

    optimize_for: OptimizeFor | None = None
    provider: str | None = None
    max_cost_usd: float | None = None
    fallback_on_rejection: bool | None = None
    cache: bool | None = None
    deadline_s: float | None = None
    endpoint_id: str | None = None
    compute_id: str | None = None


PLACEMENT_OPTIONS: Final = ("endpoint_id", "compute_id")
RUN_OPTIONS: Final[dict[str, str]] = {
    "optimize_for": "what the router favours; none means the capability's default provider",
    "provider": (
        "the provider that has to serve it: a provider id such as `openai`, or the `prv_` id "
        "of one connection; what is pinned never falls back to another provider"
    ),
    "max_cost_usd": "spend at most this, in US dollars: refuse, or stop, instead",
    "fallback_on_rejection": "try the next connection with an input that a vendor refused",
    "cache": (
        "use the result of an equal job of yours again, and keep this one's for the next; the"
        " client's own choice by default"
    ),
    "deadline_s": (
        "fail rather than take longer, in seconds from when it is taken up; what a vendor is "
        "still doing then is cancelled, and counts as spent"
    ),
    "endpoint_id": "the `ep_` id of the serverless endpoint that GPU work runs on",
    "compute_id": "the `cmp_` id of the pod that GPU work runs on, instead of an endpoint",
}
"""The description of each option, by name."""
WORK_OPTIONS: Final[dict[str, str]] = {
    name: words for name, words in RUN_OPTIONS.items() if name not in PLACEMENT_OPTIONS
}
"""Those of any work."""
