"""The options of a run as keyword arguments, for code that runs without pydantic.

Written by `scripts/run_options.py` from `Options`, which defines the options.
"""

from collections.abc import Sequence
from typing import Final, TypedDict

from toolkit.contract.choices import OptimizeFor, Tier, When


class WorkOptions(TypedDict, total=False):
    """The options of any work; None means that an option is omitted."""

    optimize_for: OptimizeFor | None
    provider: str | None
    only: str | Sequence[str] | None
    ignore: str | Sequence[str] | None
    tier: Tier | None
    when: When | None
    max_cost_usd: float | None
    fallback_on_rejection: bool | None
    cache: bool | None
    sealed: bool | str | None
    deadline_s: float | None


class RunOptions(WorkOptions, total=False):
    """The options of a run: the options of any work, and the place of GPU work."""

    endpoint_id: str | None
    compute_id: str | None


class RunOptionAttributes:
    """The options of a run as attributes; None if an option is omitted."""

    optimize_for: OptimizeFor | None = None
    provider: str | None = None
    only: str | Sequence[str] | None = None
    ignore: str | Sequence[str] | None = None
    tier: Tier | None = None
    when: When | None = None
    max_cost_usd: float | None = None
    fallback_on_rejection: bool | None = None
    cache: bool | None = None
    sealed: bool | str | None = None
    deadline_s: float | None = None
    endpoint_id: str | None = None
    compute_id: str | None = None


PLACEMENT_OPTIONS: Final = ("endpoint_id", "compute_id")
PROVIDER_LISTS: Final = ("only", "ignore")  # members of the object that `provider` may be
RUN_OPTIONS: Final[dict[str, str]] = {
    "optimize_for": (
        "goal of the router; without a goal, the capability's default provider is used"
    ),
    "provider": (
        "provider that must serve the work: a provider id such as `openai`, or the `prv_` id "
        "of a connection, each also with a model (`openai/MODEL`); a pinned provider never "
        "falls back to another"
    ),
    "only": (
        "providers, connections or models (`openai/MODEL`) that may serve the work; it falls "
        "back only between them"
    ),
    "ignore": "providers, connections or models (`openai/MODEL`) that may not serve the work",
    "tier": (
        "service tier to ask for: `standard`, or `flex`, which is slower and about half the "
        "price; a model without it is asked at the standard price"
    ),
    "when": (
        "`now`, or `batch`: the rows of a map become batches of the vendor, which cost about "
        "half the price and may take a day"
    ),
    "max_cost_usd": "maximum cost in US dollars; costlier work is refused or stopped",
    "fallback_on_rejection": "try the next connection if a vendor rejects the input",
    "cache": (
        "reuse the result of an equal job of yours, and keep this result for later jobs; the "
        "client's own choice by default"
    ),
    "sealed": (
        "refuse a second model or host for the same capability: within this workflow or run, "
        "or within all work that names the same seal"
    ),
    "deadline_s": (
        "maximum seconds from its start, after which it fails; a vendor's call in progress is"
        " cancelled, and counts as spent"
    ),
    "endpoint_id": "id (`ep_…`) of the serverless endpoint for GPU work",
    "compute_id": "id (`cmp_…`) of the pod for GPU work, instead of an endpoint",
}
"""The description of each option, by name."""
WORK_OPTIONS: Final[dict[str, str]] = {
    name: words for name, words in RUN_OPTIONS.items() if name not in PLACEMENT_OPTIONS
}
"""The descriptions of the options of any work."""
