"""A state machine of Hypothesis over an engine that may die at any step."""

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests.support.process_kill import kill_engine
from tests.support.timing import yield_turns
from toolkit.engine import Engine
from toolkit.sandbox import Faults


class EngineMachine(RuleBasedStateMachine):
    """An engine on a loop and in a data directory of its own.

    Attributes:
        faults: the faults of the sandbox, and the log of its calls.
        engine: the engine, or None before the first step.
    """

    engine: Engine | None = None

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = Path(tempfile.mkdtemp())
        self.faults = Faults(seed=1)

    async def open(self) -> Engine:
        """Open an engine on the data directory."""
        raise NotImplementedError

    async def prepare(self) -> None:
        """Make the account, once the first engine is open."""
        raise NotImplementedError

    async def end(self) -> None:
        """Wait until all work has ended, and check it."""
        raise NotImplementedError

    def run(self, work: Any) -> Any:
        """Run a coroutine on the loop of this machine."""
        return self.loop.run_until_complete(work)

    @initialize()
    def begin(self) -> None:
        """Open the first engine."""
        self.engine = self.run(self.open())
        self.run(self.prepare())

    @rule(turns=st.integers(1, 80))
    def work(self, turns: int) -> None:
        """Give the engine some turns of its loop."""
        self.run(yield_turns(turns))

    @rule()
    def crash(self) -> None:
        """Kill the engine, and open another engine that takes up its work."""
        assert self.engine is not None
        self.run(kill_engine(self.engine))
        self.engine = self.run(self.open())

    def teardown(self) -> None:
        """End the work, then delete the data directory."""
        try:
            if self.engine is not None:
                self.run(self.end())
                self.run(self.engine.close(0))
        finally:
            self.loop.close()
            shutil.rmtree(self.folder, ignore_errors=True)
