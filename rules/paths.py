"""Examples for `paths.yaml`: a line below `ruleid` is found, one below `ok` is left alone."""

import os
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, Response


async def read(request: Request, engine, id: str) -> Response:
    # ruleid: no-paths-in-the-server
    Path("artifacts") / request.path_params["id"]
    # ruleid: no-paths-in-the-server
    open(request.query_params["name"])
    # ruleid: no-paths-in-the-server
    os.path.join("artifacts", id)
    # ruleid: no-paths-in-the-server
    FileResponse(id)
    # ok: no-paths-in-the-server
    await engine.artifacts.open(id)
