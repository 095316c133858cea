"""The outcomes of calls: vendors report some failures with HTTP 200."""

import json

import httpx

_JOB_FAILED = frozenset({"FAILED", "CANCELLED", "TIMED_OUT"})
_JOB_UNDER_WAY = frozenset({"IN_QUEUE", "IN_PROGRESS", "RUNNING"})
# The voice exists already, which is what the caller wanted.
_VOICE_EXISTS = 2039


def is_success(method: str, response: httpx.Response) -> bool:
    """Tell whether an answer is one to record.

    That is a success by its status and by its body, or where a redirect of a GET leads.

    Args:
        method: of the request.
        response: with its body read.
    """
    if response.has_redirect_location and method == "GET":
        return True
    if not response.is_success:
        return False
    if not is_json(response):
        return True
    try:
        said = json.loads(response.content)
    except (ValueError, RecursionError):
        return not response.content
    if not isinstance(said, dict):
        return True
    base = said.get("base_resp")
    code = base.get("status_code", 0) if isinstance(base, dict) else 0
    return code in (0, _VOICE_EXISTS) and not job_failed(response) and not said.get("error")


def get_job_id(url: str, response: httpx.Response) -> str | None:
    """Return the id of the queued job that an answer is about, if it is about one.

    Args:
        url: of the request; it ends with the id where the answer does not have it.
        response: with its body read.
    """
    said = _parse_job(response)
    if "status" not in said:
        return None
    return said.get("id") or (url.rpartition("/")[2] if "/status/" in url else None)


def job_failed(response: httpx.Response) -> bool:
    """Tell whether an answer says that a job has failed."""
    return _parse_job(response).get("status") in _JOB_FAILED


def is_job_running(url: str, response: httpx.Response) -> bool:
    """Tell whether an answer says that a job is still running, so that another one follows.

    Args:
        url: of the request. Machines are `RUNNING`, too, and nobody waits for their end.
        response: with its body read.
    """
    return "/status/" in url and _parse_job(response).get("status") in _JOB_UNDER_WAY


def is_json(response: httpx.Response) -> bool:
    """Tell whether the body is declared as JSON."""
    return "json" in response.headers.get("content-type", "").lower()


def _parse_job(response: httpx.Response) -> dict[str, str]:
    """Parse the id and the status of a job or other resource from an answer, where it has them."""
    if not is_json(response) or b'"status"' not in response.content:
        return {}
    try:
        said = json.loads(response.content)
    except (ValueError, RecursionError):
        return {}
    found = {name: said.get(name) for name in ("id", "status")} if isinstance(said, dict) else {}
    return {name: value for name, value in found.items() if isinstance(value, str)}
