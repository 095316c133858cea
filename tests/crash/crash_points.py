"""Crash points: moments at which a server of the crash tests kills itself.

`commit:before:17` is when its seventeenth transaction is about to be committed, `commit:after:17`
right after it was committed and before its caller learns of it. `blob` stands for putting the
written bytes of an artifact in place, `lease` for acquiring, renewing or releasing a lease.
"""

import os
import signal
from collections.abc import Callable
from threading import local
from typing import Any
from unittest.mock import patch

from toolkit.store.blob_places.folder import BlobFolder
from toolkit.store.writing.direct_writer import DirectWriter
from toolkit.store.writing.write_connection import EventNumbers, WriteConnection

CRASH_VARIABLE = "TOOLKIT_CRASH_AT"

CrashHook = Callable[[str], None]


def install_crash_point(point: str) -> None:
    """Have this process kill itself at a point."""
    kind, when, number = point.split(":")
    remaining = int(number)

    def crash(now: str) -> None:
        nonlocal remaining
        remaining -= now == when
        if remaining == 0 and now == when:
            # Not `sys.exit`: nothing may be flushed, closed or rolled back on the way.
            os.kill(os.getpid(), signal.SIGKILL)

    {"commit": _watch_commits, "lease": _watch_leases, "blob": _watch_blobs}[kind](crash)


def _watch_commits(crash: CrashHook) -> None:
    check, trim = WriteConnection._check_limits, EventNumbers.trim

    def check_last(connection: WriteConnection) -> None:
        check(connection)
        crash("before")

    def trim_first(numbers: EventNumbers) -> None:
        crash("after")
        trim(numbers)

    patch.object(WriteConnection, "_check_limits", check_last).start()
    patch.object(EventNumbers, "trim", trim_first).start()


def _watch_leases(crash: CrashHook) -> None:
    transact = DirectWriter.transact_now

    def transact_watched(writer: DirectWriter, work: Callable[[Any], Any]) -> Any:
        def work_watched(connection: Any) -> Any:
            answer = work(connection)
            crash("before")
            return answer

        answer = transact(writer, work_watched)
        crash("after")
        return answer

    patch.object(DirectWriter, "transact_now", transact_watched).start()


def _watch_blobs(crash: CrashHook) -> None:
    write, write_chunks = BlobFolder.write, BlobFolder._write_chunks
    state = local()

    def write_watched(place: BlobFolder, digest: str, data: Any) -> None:
        state.is_new = False  # bytes that are stored already are not written again
        write(place, digest, data)
        if state.is_new:
            crash("after")

    def write_chunks_watched(place: BlobFolder, path: Any, data: Any) -> None:
        write_chunks(place, path, data)
        state.is_new = True
        crash("before")

    patch.object(BlobFolder, "write", write_watched).start()
    patch.object(BlobFolder, "_write_chunks", write_chunks_watched).start()
