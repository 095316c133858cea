"""`toolkit route` and `toolkit health`: commands of the service without a group."""

from toolkit.cli import options
from toolkit.cli.options import looking
from toolkit.cli.output import Shell
from toolkit.given import parsed

CANDIDATES = ("provider", "model", "score", "estimated_cost_usd", "latency_p50_ms", "reason")


@looking
def route(
    shell: Shell,
    name: options.Name,
    fields: options.Fields = None,
    given: options.Given = None,
    optimize_for: options.Optimize = None,
    provider: options.Provider = None,
    endpoint_id: options.OnEndpoint = None,
    compute_id: options.OnCompute = None,
    max_cost_usd: options.MaxCost = None,
) -> None:
    """Show who would serve a run, and why; nothing is spent."""
    chosen = shell.client.route(
        name,
        parsed(fields or [], given),
        optimize_for=optimize_for,
        provider=provider,
        endpoint_id=endpoint_id,
        compute_id=compute_id,
        max_cost_usd=max_cost_usd,
    )
    shell.show(chosen, "candidates", CANDIDATES)


@looking
def health(shell: Shell) -> None:
    """Say whether the service is there, and how busy."""
    shell.show(shell.client.read("/health", max_wait_s=0.0))
