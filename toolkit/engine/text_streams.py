"""Texts as they are written: shown to watchers, never stored, lost when the process ends."""

import asyncio
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from toolkit.contract.events import TextDelta

# Limits on streams without a watcher yet: number of resources, and text of each.
MAX_EXPECTED = 256
MAX_KEPT_CHARACTERS = 64 * 1024


class TextWatch:
    """The texts of a resource for one watcher, with pieces joined until they are taken.

    So the slowest reader holds no more than the texts that are being written.
    """

    def __init__(self) -> None:
        self._pending: dict[tuple[str, int], TextDelta] = {}
        self._changed = asyncio.Event()

    def add(self, delta: TextDelta) -> None:
        """Add a piece of a text."""
        key = delta.job_id, delta.attempt
        earlier = self._pending.get(key)
        if earlier is not None:
            delta = earlier.model_copy(update={"text": earlier.text + delta.text})
        self._pending[key] = delta
        self._changed.set()

    def take(self) -> list[TextDelta]:
        """Take the new pieces since the last call, by job and attempt."""
        deltas = list(self._pending.values())
        self._pending.clear()
        self._changed.clear()
        return deltas

    async def wait(self) -> None:
        """Wait until there is a piece to take."""
        await self._changed.wait()


@dataclass(slots=True)
class _Written:
    """The text that an attempt of a job has written so far, and whether it is complete."""

    delta: TextDelta
    is_over: bool = False


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
        """Stream the texts of a resource, and keep them until the first watcher comes."""
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
        """Show a piece of a text to the watchers of these resources."""
        for resource_id in resource_ids:
            piece = delta.model_copy(update={"resource_id": resource_id})
            texts = self._written.setdefault(resource_id, {})
            before = texts.get(delta.job_id)
            if before is None or before.delta.attempt != delta.attempt:
                texts[delta.job_id] = _Written(piece)
            else:
                before.delta = piece.model_copy(update={"text": before.delta.text + delta.text})
            for watch in self._watches.get(resource_id, ()):
                watch.add(piece)

    def end(self, *resource_ids: str, job_id: str) -> None:
        """Note that the newest attempt of a job writes no more."""
        for resource_id in resource_ids:
            texts = self._written.get(resource_id, {})
            if job_id in texts:
                texts[job_id].is_over = True
            length = sum(len(text.delta.text) for text in texts.values() if text.is_over)
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
        """Watch a resource's texts."""
        watch = TextWatch()
        for text in self._written.get(resource_id, {}).values():
            watch.add(text.delta)
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
