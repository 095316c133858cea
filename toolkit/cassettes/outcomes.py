"""The outcomes of calls: vendors report some failures with HTTP 200."""

import json

import httpx

_JOB_FAILED = frozenset({"FAILED", "CANCELLED", "TIMED_OUT"})
_JOB_UNDER_WAY = frozenset({"IN_QUEUE", "IN_PROGRESS", "RUNNING"})
# The voice exists already, so the caller's request is fulfilled.
_VOICE_EXISTS = 2039


def is_success(method: str, response: httpx.Response) -> bool:
    """Check whether an answer is to be recorded.

    It is recorded if its status and its body report success, or if it redirects a GET.

    Args:
        method: HTTP method of the request.
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
