"""`Prefer: wait=N`: the answer to accepted work is held for up to N seconds."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from fastapi import Request
from pydantic import BaseModel
from starlette.responses import Response

from toolkit.engine import Engine
from toolkit.server.envelope import one
from toolkit.server.paging import LONGEST_WAIT_S, preferred_wait


class Readable(Protocol):
    """A service of the engine whose records can be read again."""

    @property
    def get(self) -> Callable[[str, str], Awaitable[BaseModel]]:
        """The method that reads one record of an account."""


async def held(
    request: Request, engine: Engine, account_id: str, area: Readable, accepted_id: str
) -> Response | None:
    """Return the state that was reached within the wait asked for; none where none was."""
    seconds = preferred_wait(request, LONGEST_WAIT_S)
    if seconds is None:
        return None
    await engine.wait(account_id, accepted_id, seconds)
    reached = await area.get(account_id, accepted_id)
    return one(reached, 202, {"Preference-Applied": f"wait={seconds}"})
