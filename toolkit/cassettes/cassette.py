"""A cassette: the recorded answers to each request, the replay position, and new answers."""

import asyncio
import json
import logging
import os
import threading
from collections import defaultdict
from pathlib import Path
from typing import Literal, Self

import httpx

from toolkit.cassettes import yaml_file
from toolkit.cassettes.matching import RequestKey, compute_request_key
from toolkit.cassettes.scrubbing import Scrubber
from toolkit.cassettes.yaml_file import HandMadeAnswer, RecordedExchange
from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.plugins import ProviderError

CassetteMode = Literal["replay", "record", "auto"]
_MODES: tuple[CassetteMode, ...] = ("replay", "record", "auto")

log = logging.getLogger(__name__)
_JOB_FAILED = frozenset({"FAILED", "CANCELLED", "TIMED_OUT"})
_JOB_UNDER_WAY = frozenset({"IN_QUEUE", "IN_PROGRESS", "RUNNING"})
# The voice exists already, so the caller's request is fulfilled.
_VOICE_EXISTS = 2039


class Cassette:
    """The exchanges of one file; for use on a single event loop.

    A request that is made several times gets its recorded answers in order. When they are used up,
    the last answer repeats. A cassette made by hand has no exchanges: the simulated models give its
    `answers`.

    >>> cassette = Cassette(Path("run.yaml"), "record", [])
    >>> request = httpx.Request("GET", "https://api.example/models")
    >>> cassette.replay_response(cassette.compute_key(request)) is None
    True
    """

    def __init__(self, path: Path, mode: CassetteMode, exchanges: list[RecordedExchange]) -> None:
        self.path = path
        self.mode: CassetteMode = mode
        self.answers: list[HandMadeAnswer] = []
        self._scrubber = Scrubber()
        self._exchanges: dict[RequestKey, list[RecordedExchange]] = defaultdict(list)
        for exchange in exchanges:
            self._exchanges[exchange.key].append(exchange)
        self._play_counts: dict[RequestKey, int] = defaultdict(int)
        # The exchanges by the position of their request; exchanges read from the file come first.
        file_exchanges = exchanges if mode == "auto" else []
        self._items = {
            n - len(file_exchanges): yaml_file.as_yaml(exchange)
            for n, exchange in enumerate(file_exchanges)
        }
        self._jobs: dict[int, str] = {}
        self._last_position = self._changes = self._written = 0
        self._writing = threading.Lock()

    @classmethod
    def open(cls, path: Path, mode: CassetteMode) -> Self:
        """Read a cassette, or start a new cassette.

        Args:
            path: path of the file. `record` starts over: the first success replaces its content.

        Raises:
            ServiceError: `UNAVAILABLE` for a file that is missing, damaged, of a later version or
                no cassette, and for a directory that cannot be created.
            ValueError: for an unknown mode.
        """
        if mode not in _MODES:
            raise ValueError(f"mode must be one of {', '.join(_MODES)}, not {mode!r}")
        is_present = yaml_file.has_content(path)
        if mode == "replay" and not is_present:
            raise ServiceError(
                ErrorCode.UNAVAILABLE,
                f'There is no cassette `{path.name}`: make it with mode="record".',
            )
        if mode == "record" or not is_present or path.is_dir():
            _check_writable(path)
            return cls(path, mode, [])
        exchanges, answers = yaml_file.read_cassette(path)
        if answers and mode != "replay":
            raise ServiceError(
                ErrorCode.UNAVAILABLE,
                f"The cassette `{path.name}` was made by hand and cannot be recorded to:"
                ' open it with mode="replay".',
            )
        cassette = cls(path, mode, exchanges)
        cassette.answers = answers
        return cassette

    def add_secret(self, secret: str) -> None:
        """Scrub a secret from everything that is recorded from now on."""
        self._scrubber.add_secret(secret)

    def compute_key(self, request: httpx.Request) -> RequestKey:
        """Compute the key of a request whose body has been read."""
        return compute_request_key(request, self._scrubber)

    def replay_response(self, key: RequestKey) -> httpx.Response | None:
        """Return the next recorded answer to this request, or None if it has no answer.

        The last answer repeats, unless it says that a job still runs: then None is returned.
        """
        exchanges = self._exchanges.get(key, ())
        if not exchanges:
            return None
        turn = self._play_counts[key]
        self._play_counts[key] += 1
        if turn < len(exchanges):
            return exchanges[turn].to_response()
        last = exchanges[-1].to_response()
        # Repeating "still running" would make the caller wait forever.
        return None if is_job_running(key.url, last) else last

    def make_miss_error(self, key: RequestKey) -> ProviderError:
        """Make the error for a request that is not recorded."""
        url = httpx.URL(key.url)
        code = ErrorCode.REPLAY_MISS
        return ProviderError(
            code,
            f"{key.method} {url.host}{url.path} is not in the cassette `{self.path.name}`."
            f" {code.hint}",
        )

    def reserve_position(self) -> int:
        """Return the next position in the file; the order of the file is that of these calls."""
        self._last_position += 1
        return self._last_position

    async def record_response(
        self, place: int, key: RequestKey, response: httpx.Response, model: str = ""
    ) -> None:
        """Record an answer if it is a success, and return once it is in the file.

        If a job failed, its recorded answers are removed, because a replay needs the job that a
        retry submits next.

        Args:
            place: position from `reserve_position`.
            response: answer whose body has been read.
            model: model that the request named, if the key leaves it out.
        """
        item, job = await asyncio.to_thread(self._prepare_entry, key, response, model)
        if item is not None:
            self._items[place] = item
            if job is not None:
                self._jobs[place] = job
        elif job is not None:
            for position in [n for n, job_id in self._jobs.items() if job_id == job]:
                del self._items[position], self._jobs[position]
        else:
            return
        self._changes += 1
        try:
            await asyncio.to_thread(self._save_file, self._changes)
        except OSError as error:
            # The answer may have been paid for: it is returned even if the file is not written.
            log.warning("the cassette %s was not written: %s", self.path.name, error.strerror)

    def _prepare_entry(
        self, key: RequestKey, response: httpx.Response, model: str
    ) -> tuple[str | None, str | None]:
        """Check, scrub and serialize an answer; runs in a thread, because it may be megabytes.

        Returns:
            the answer's text for the file, or None if it is not recorded, and the id of its job.
        """
        if not is_success(key.method, response):
            failed = response.is_success and job_failed(response)
            return None, get_job_id(key.url, response) if failed else None
        body = self._scrubber.scrub_body(response.content, is_json=is_json(response))
        headers = self._scrubber.scrub_headers(response.headers)
        exchange = RecordedExchange(key, response.status_code, headers, body, model)
        return yaml_file.as_yaml(exchange), get_job_id(key.url, response)

    def _save_file(self, change: int) -> None:
        """Write the file, unless the write of a later change has included this change."""
        with self._writing:
            if self._written >= change:
                return
            change_count, items = self._changes, dict(self._items)
            yaml_file.write_items(self.path, [items[place] for place in sorted(items)])
            self._written = change_count


def _check_writable(path: Path) -> None:
    """Raise an error for a path that is a directory, another kind of file, or not writable."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            problem = "is a directory: choose a file"
        elif yaml_file.is_foreign(path):
            problem = "is another kind of file and is not overwritten: choose another path"
        elif not os.access(path.parent, os.W_OK):
            problem = "cannot be written: its directory is read-only"
        else:
            return
    except OSError as error:
        problem = f"cannot be written: {error.strerror}"
    raise ServiceError(ErrorCode.UNAVAILABLE, f"The cassette `{path.name}` {problem}.")


def is_success(method: str, response: httpx.Response) -> bool:
    """Check whether an answer is to be recorded.

    It is recorded if its status and its body report success, or if it redirects a GET.

    Args:
        response: answer whose body has been read.
    """
    if response.has_redirect_location and method == "GET":
        return True
    if not response.is_success:
        return False
    if not is_json(response):
        return True
    try:
        document = json.loads(response.content)
    except (ValueError, RecursionError):
        return not response.content
    if not isinstance(document, dict):
        return True
    base = document.get("base_resp")
    code = base.get("status_code", 0) if isinstance(base, dict) else 0
    return code in (0, _VOICE_EXISTS) and not job_failed(response) and not document.get("error")


def get_job_id(url: str, response: httpx.Response) -> str | None:
    """Return the id of the queued job that an answer is about, or None if there is no job.

    Args:
        url: URL of the request; it ends with the id if the answer lacks it.
        response: answer whose body has been read.
    """
    job = _parse_job(response)
    if "status" not in job:
        return None
    return job.get("id") or (url.rpartition("/")[2] if "/status/" in url else None)


def job_failed(response: httpx.Response) -> bool:
    """Check whether an answer reports that a job has failed."""
    return _parse_job(response).get("status") in _JOB_FAILED


def is_job_running(url: str, response: httpx.Response) -> bool:
    """Check whether an answer reports that a job is still running, so another answer follows.

    Args:
        url: URL of the request. Machines are `RUNNING`, too, but no caller waits for their end.
        response: answer whose body has been read.
    """
    return "/status/" in url and _parse_job(response).get("status") in _JOB_UNDER_WAY


def is_json(response: httpx.Response) -> bool:
    """Check whether the body is declared as JSON."""
    return "json" in response.headers.get("content-type", "").lower()


def _parse_job(response: httpx.Response) -> dict[str, str]:
    """Parse the id and the status of a job or other resource from an answer, if it has them."""
    if not is_json(response) or b'"status"' not in response.content:
        return {}
    try:
        document = json.loads(response.content)
    except (ValueError, RecursionError):
        return {}
    members = (
        {name: document.get(name) for name in ("id", "status")}
        if isinstance(document, dict)
        else {}
    )
    return {name: value for name, value in members.items() if isinstance(value, str)}
