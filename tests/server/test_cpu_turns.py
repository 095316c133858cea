"""Cards of several accounts on a served process: turns by account, and the time in the queue."""

from pathlib import Path

from tests.support.served_process import open_account, serve_process
from toolkit import Client
from toolkit.client import Run

LARGE, SMALL = 3000, 200
MANY = 6
# Rounding of the timestamps and times, and the writes before and after the work.
MARGIN_MS = 250


def start_card(client: Client, side: int) -> Run:
    """Start a card of a width and height."""
    return client.runs.create("composition.layout", {"title": "Tea", "width": side, "height": side})


def test_large_cards_of_one_account_do_not_delay_another_account(tmp_path: Path) -> None:
    """Given a queue of large cards, then another account's card ends early."""
    with (
        serve_process(tmp_path / "data") as (_, url),
        Client(base_url=url, api_key=open_account(url, "busy")) as busy_client,
        Client(base_url=url, api_key=open_account(url, "other")) as client,
    ):
        start_card(client, SMALL).wait()  # starts the first worker process
        large = [start_card(busy_client, LARGE) for _ in range(MANY)]
        small = start_card(client, SMALL).wait().record
        assert large[-1].refresh().record.status != "completed", "it waited for all large cards"
        records = [run.wait().record for run in large]
    for run in [small, *records]:
        assert run.completed_at is not None
        elapsed_ms = (run.completed_at - run.created_at).total_seconds() * 1000
        counted_ms = (run.queue_ms or 0) + (run.latency_ms or 0)
        assert abs(elapsed_ms - counted_ms) < MARGIN_MS, run
    waits = [run.queue_ms or 0 for run in records]
    works = [run.latency_ms or 0 for run in records]
    # The last card waits for the work of the others, of which two or three run at once.
    assert waits[-1] > sum(works[:-1]) / 4, (waits, works)
