"""Cards of several tenants on a served process: turns by account, and the time in the queue."""

from pathlib import Path

from tests.support.served_process import open_account, serve_process
from toolkit import Client
from toolkit.client import Run

LARGE, SMALL = 3000, 200
MANY = 6
# Rounding of the timestamps and figures, and the writes before and after the work.
MARGIN_MS = 250


def start_card(client: Client, side: int) -> Run:
    """Start a card of that width and height."""
    return client.runs.create("composition.layout", {"title": "Tea", "width": side, "height": side})


def test_many_large_cards_of_one_tenant_delay_no_small_card_of_another(tmp_path: Path) -> None:
    """Given a queue of large cards, another tenant's card ends early, and waits are in queue_ms."""
    with (
        serve_process(tmp_path / "data") as (_, url),
        Client(base_url=url, api_key=open_account(url, "many")) as many,
        Client(base_url=url, api_key=open_account(url, "few")) as few,
    ):
        start_card(few, SMALL).wait()  # the first worker process is there
        large = [start_card(many, LARGE) for _ in range(MANY)]
        small = start_card(few, SMALL).wait().record
        assert large[-1].refresh().record.status != "completed", "it waited for all large cards"
        ended = [run.wait().record for run in large]
    for run in [small, *ended]:
        assert run.completed_at is not None
        whole = run.completed_at - run.created_at
        counted_ms = (run.queue_ms or 0) + (run.latency_ms or 0)
        assert abs(whole.total_seconds() * 1000 - counted_ms) < MARGIN_MS, run
    waits = [run.queue_ms or 0 for run in ended]
    works = [run.latency_ms or 0 for run in ended]
    # The last card waits for the work of the others, of which two or three run at once.
    assert waits[-1] > sum(works[:-1]) / 4, (waits, works)
