"""Replies that a job keeps until it ends, so that it does not pay for them again.

They are of operations that are `kept`, of which a job may request many: a crash before the last of
them must not lose the others. A reply is stored by the transaction that records the next call, so
it costs no commit, and a job of one call stores none.
"""

import hashlib
from collections.abc import Sequence
from functools import partial
from typing import Any, get_args

from pydantic import TypeAdapter

from toolkit.engine.execution.job_run import JobRun
from toolkit.plugins import Operation, Reply
from toolkit.store import ReplaceRow, Store


async def find_reply(store: Store, job_run: JobRun, operation: Operation[Any]) -> Reply | None:
    """Find the reply to an equal operation of the job, whose call then counts as of this try."""
    if not operation.kept or not job_run.job.attempts:
        return None
    reply_id = _make_id(job_run.job.id, job_run.useless_tries, operation)
    row = await store.get_row("replies", reply_id)
    if row is None:
        return None
    job_run.reply_ids.append(reply_id)
    job_run.earlier_attempts = min(job_run.earlier_attempts, row["attempt"] - 1)
    return _make_adapter(operation).validate_json(row["content"])


def keep_reply(job_run: JobRun, operation: Operation[Any], reply: Reply) -> None:
    """Keep a reply, to be written as JSON and stored with the next call, if there is one."""
    if operation.kept:
        attempt, tries = len(job_run.job.attempts), job_run.useless_tries
        job_run.reply = partial(_build_row, job_run.job.id, tries, attempt, operation, reply)


def _build_row(
    job_id: str, tries: int, attempt: int, operation: Operation[Any], reply: Reply
) -> ReplaceRow:
    values = {
        "id": _make_id(job_id, tries, operation),
        "job_id": job_id,
        "attempt": attempt,
        "content": _make_adapter(operation).dump_json(reply),
    }
    return ReplaceRow("replies", values)


def take_reply(job_run: JobRun) -> Sequence[ReplaceRow]:
    """Return the change that stores the reply to the call before this one, if it is kept."""
    build_row, job_run.reply = job_run.reply, None
    if build_row is None:
        return ()
    row = build_row()
    job_run.reply_ids.append(str(row.values["id"]))
    return (row,)


def _make_id(job_id: str, tries: int, operation: Operation[Any]) -> str:
    digest = hashlib.sha256(repr(operation).encode()).hexdigest()
    return f"{job_id}:{tries}:{digest}"


def _make_adapter(operation: Operation[Any]) -> TypeAdapter[Reply]:
    """Make the pydantic adapter that writes replies to an operation as JSON, and reads them."""
    (base,) = vars(type(operation))["__orig_bases__"]
    return TypeAdapter(get_args(base)[0])
