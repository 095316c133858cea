"""Texts while vendors write them: passed to watchers and kept in memory, never in the store."""

import asyncio
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from toolkit.contract.events import PieceKind, TextDelta

# Limits on streams without a watcher yet: number of resources, and text of each.
MAX_EXPECTED = 256
MAX_KEPT_CHARACTERS = 64 * 1024
Key = TypeVar("Key", bound=tuple[object, ...])


def _join(deltas: dict[Key, TextDelta], key: Key, delta: TextDelta) -> None:
    """Append the text of a piece to that of the earlier piece with the same key, if any."""
    before = deltas.get(key)
    text = delta.text if before is None else before.text + delta.text
    deltas[key] = delta.model_copy(update={"text": text})


class TextWatch:
    """The queue of one watcher of a resource's texts; pieces are joined until they are taken.

    So the queue of a slow watcher never holds more than the texts that are being written.
    """

    def __init__(self) -> None:
        self._pending: dict[tuple[object, ...], TextDelta] = {}
        self._changed = asyncio.Event()

    def add(self, delta: TextDelta) -> None:
        """Add a piece, joined to earlier pieces of its part that were not taken."""
        _join(self._pending, (delta.job_id, delta.attempt, *delta.part), delta)
        self._changed.set()

    def take(self) -> list[TextDelta]:
        """Remove and return the pieces since the last call, joined by job, attempt and part."""
        deltas = list(self._pending.values())
        self._pending.clear()
        self._changed.clear()
        return deltas

    async def wait(self) -> None:
        """Wait until there is a piece to take."""
        await self._changed.wait()


@dataclass(slots=True)
class _Written:
    """The parts that an attempt of a job has written so far, and whether they are complete."""

    attempt: int
    deltas: dict[tuple[PieceKind, int], TextDelta] = field(default_factory=dict)
    is_over: bool = False

    @property
    def length(self) -> int:
        """The number of characters of all parts."""
        return sum(len(delta.text) for delta in self.deltas.values())


class TextStreams:
    """The texts that vendors are writing for this process, by resource.

    A watcher gets the texts in progress from their beginning. A watcher announced with the request
    also gets finished texts: a fast vendor may finish before the client returns.
    """

    def __init__(self) -> None:
        self._watches: dict[str, list[TextWatch]] = {}
        self._written: dict[str, dict[str, _Written]] = {}
        self._expected: OrderedDict[str, None] = OrderedDict()

    def expect(self, resource_id: str) -> None:
        """Announce a watcher: stream the texts of a resource, and keep them until it comes.

        Beyond `MAX_EXPECTED` announced resources, the oldest is forgotten.
        """
        self._expected[resource_id] = None
        if len(self._expected) > MAX_EXPECTED:
            oldest, _ = self._expected.popitem(last=False)
            self._drop_ended(oldest)

    def is_wanted(self, *resource_ids: str) -> bool:
        """Check whether any of these resources has a watcher or expects one."""
        return any(
            resource_id in self._watches or resource_id in self._expected
            for resource_id in resource_ids
        )

    def add(self, *resource_ids: str, delta: TextDelta) -> None:
        """Keep a piece of a text for each of these resources, and pass it to their watchers.

        The first piece of a new attempt replaces the text of the job's earlier attempt.
        """
        for resource_id in resource_ids:
            piece = delta.model_copy(update={"resource_id": resource_id})
            texts = self._written.setdefault(resource_id, {})
            written = texts.get(delta.job_id)
            if written is None or written.attempt != delta.attempt:
                written = texts[delta.job_id] = _Written(delta.attempt)
            _join(written.deltas, piece.part, piece)
            for watch in self._watches.get(resource_id, ()):
                watch.add(piece)

    def end(self, *resource_ids: str, job_id: str) -> None:
        """Note that a job writes no more, and drop its text unless a watcher is announced.

        Ended texts of a resource over `MAX_KEPT_CHARACTERS` in all are dropped in any case.
        """
        for resource_id in resource_ids:
            texts = self._written.get(resource_id, {})
            if job_id in texts:
                texts[job_id].is_over = True
            length = sum(text.length for text in texts.values() if text.is_over)
            if resource_id not in self._expected or length > MAX_KEPT_CHARACTERS:
                self._drop_ended(resource_id)

    def _drop_ended(self, resource_id: str) -> None:
        texts = self._written.get(resource_id, {})
        open_texts = {job_id: text for job_id, text in texts.items() if not text.is_over}
        if open_texts:
            self._written[resource_id] = open_texts
        else:
            self._written.pop(resource_id, None)

    @contextmanager
    def watch(self, resource_id: str) -> Iterator[TextWatch]:
        """Return a context manager that watches a resource's texts, first those kept so far."""
        watch = TextWatch()
        for text in self._written.get(resource_id, {}).values():
            for delta in text.deltas.values():
                watch.add(delta)
        self._expected.pop(resource_id, None)
        self._drop_ended(resource_id)
        watches = self._watches.setdefault(resource_id, [])
        watches.append(watch)
        try:
            yield watch
        finally:
            watches.remove(watch)
            if not watches:
                self._watches.pop(resource_id, None)
