"""Runs flows without an engine."""

from collections.abc import Callable
from typing import Any

from toolkit.plugins import Flow


def run_flow(flow: Flow[Any], perform: Callable[[object], object]) -> Any:
    """Run a flow to its result; `perform` returns the outcome of a step, or raises its error."""
    try:
        step = next(flow)
        while True:
            try:
                outcome = perform(step)
            except Exception as error:
                step = flow.throw(error)
            else:
                step = flow.send(outcome)
    except StopIteration as stop:
        return stop.value
