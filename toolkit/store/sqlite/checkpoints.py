"""Checkpoints of the write-ahead log: by one connection of one process at a time."""

import sqlite3
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from toolkit.store.private_files import lock_file, open_private

# The longer, the fewer times a page that changes often is moved: at 4 MB it takes twice the CPU. To
# read a log of this length, which a crash leaves, takes less than 0.1 s.
LARGE_WAL_BYTES = 16 * 1024 * 1024
# A log that is always being written to is never moved as a whole, so never reset: past this size,
# writers wait until all of it is moved.
HUGE_WAL_BYTES = 2 * LARGE_WAL_BYTES
COMMITS_PER_CHECK = 20


class WalCheckpointer:
    """A checkpointer that moves a long log into the database, under a lock between processes.

    SQLite 3.7.0 to 3.51.2 can corrupt a database that two connections checkpoint at once. It is
    done in a thread: a checkpoint takes many times as long as a commit.
    """

    def __init__(self, database: Path) -> None:
        self._database = database
        self._wal = database.with_name(database.name + "-wal")
        self._lock = database.with_name("checkpoint.lock")
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="toolkit-checkpoint")
        self._running: Future[None] | None = None
        self._commits = 0
        # The length of the log when the last checkpoint began: all before that has been moved.
        self._moved_bytes = 0

    def checkpoint_if_due(self) -> None:
        """Run a checkpoint if the log has grown by much since the last checkpoint, or is huge.

        The length is checked once in `COMMITS_PER_CHECK` commits. It is no sufficient sign: writes
        during a checkpoint prevent a restart of the log, and so it stays long.
        """
        self._commits += 1
        if self._commits % COMMITS_PER_CHECK:
            return
        size = self._get_wal_size()
        self._moved_bytes = min(size, self._moved_bytes)  # it may have been cut off
        is_huge = size >= HUGE_WAL_BYTES
        if not is_huge and size - self._moved_bytes < LARGE_WAL_BYTES:
            return
        if self._running is None or self._running.done():
            modes = ("PASSIVE", "TRUNCATE") if is_huge else ("PASSIVE",)
            self._running = self._thread.submit(self._run_checkpoint, *modes)

    def close(self) -> None:
        """Truncate the log, and end the thread."""
        self._thread.shutdown()
        self._run_checkpoint(
            "TRUNCATE"
        )  # here: an interpreter that ends may start no thread any more

    def _get_wal_size(self) -> int:
        return self._wal.stat().st_size if self._wal.exists() else 0

    def _run_checkpoint(self, *modes: str) -> None:
        size = self._get_wal_size()
        with open(self._lock, "ab", opener=open_private) as file:
            if not lock_file(file):
                return
            connection = sqlite3.connect(self._database, isolation_level=None)
            try:
                for mode in modes:
                    connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchall()
                self._moved_bytes = size
            except sqlite3.OperationalError:
                return  # another connection is writing: the log stays until the next time
            finally:
                connection.close()
