"""The rows of a request for a map: a page of the request, or the table of an artifact."""

from collections.abc import Mapping, Sequence
from typing import Final, cast

from pydantic_core import from_json

from toolkit.contract.base import JsonObject
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.maps import MapCreate, MapRows
from toolkit.contract.row_templates import check_columns, list_columns
from toolkit.engine.concurrency.fair_semaphore import FairSemaphore
from toolkit.engine.context import EngineContext
from toolkit.engine.request_context import RequestContext
from toolkit.engine.services.artifacts import Artifacts
from toolkit.plugins import ProviderError, RunInProcess
from toolkit.workers.table_pages import read_table_pages

MAX_IN_MEMORY: Final = 2  # tables in memory at once
RowPage = Sequence[JsonObject] | bytes  # the rows, or their JSON


class TableReader:
    """A reader of the rows of requests; a worker process reads the table of an artifact."""

    def __init__(self, core: EngineContext, artifacts: Artifacts) -> None:
        self._core = core
        self._artifacts = artifacts
        self._in_memory = FairSemaphore(MAX_IN_MEMORY)

    async def read(
        self,
        context: RequestContext,
        templates: Mapping[str, object],
        request: MapCreate | MapRows,
    ) -> list[RowPage]:
        """Return the rows of a request in pages; of a table, the columns of the templates.

        A table is read whole before any of its rows is stored, so a faulty table adds none.

        Raises:
            RequestError: `NOT_FOUND` for an unknown artifact; `INVALID_REQUEST` for a file that is
                no table, lacks a column or exceeds a limit.
        """
        if request.artifact_id is None:
            return [request.rows] if request.rows else []
        entry = await self._artifacts.find(context.scope, request.artifact_id)
        needed = list_columns(templates)
        async with self._in_memory.hold(context.account_id):
            blob = await self._artifacts.load_blob(entry)
            step = RunInProcess(read_table_pages, (blob.data, entry.artifact.media_type, needed))
            try:
                answer = await self._core.driver.run_in_process(step, context.account_id)
            except ImportError:
                fault = "needs pyarrow: pip install 'capability-toolkit[tables]'"
            except ValueError as error:
                fault = str(error)
            except ProviderError as error:
                fault = f"cannot be read: {error.message}"
            else:
                pages, columns = cast("tuple[list[bytes], list[str]]", answer)
                check_columns(needed if columns else [], columns)
                return list(pages)
        message = f"The table `{request.artifact_id}` {fault}."
        raise RequestError(ErrorCode.INVALID_REQUEST, message)


def parse_page(page: RowPage) -> Sequence[JsonObject]:
    """Return the rows of a page."""
    if isinstance(page, bytes):
        rows: list[JsonObject] = from_json(page)
        return rows
    return page
