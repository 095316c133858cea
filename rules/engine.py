"""Examples for `engine.yaml`: a line below `ruleid` is found, one below `ok` is left alone."""

# ruleid: no-serving-in-the-engine
import starlette

# ruleid: no-serving-in-the-engine
from fastapi import Request

# ruleid: no-serving-in-the-engine
from starlette.responses import Response


def accept(claim, answer, outcome):
    # ruleid: no-serving-in-the-engine
    claim.stored = answer.status_code
    # ruleid: no-serving-in-the-engine
    key = answer.headers["idempotency-key"]
    # ruleid: no-serving-in-the-engine
    render(claim, status_code=202)
    # ok: no-serving-in-the-engine
    claim.outcome = outcome.code
