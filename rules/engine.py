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


def read(row, account_id, store):
    # ruleid: no-tenancy-by-hand
    if row is None or row["account_id"] != account_id or row["deleted"]:
        raise LookupError
    # ruleid: no-tenancy-by-hand
    mine = account_id == row["account_id"]
    # ok: no-tenancy-by-hand
    return store.find_rows("plans", id=row["id"], account_id=account_id)
