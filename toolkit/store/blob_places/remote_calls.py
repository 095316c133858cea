"""Calls of object storage: tried again where that may help, with errors that tell no secret."""

import random
import re
import time
from collections.abc import Callable
from typing import TypeVar

from toolkit.contract.errors import ErrorCode, ServiceError
from toolkit.store.blob_places.remote_threads import is_abandoned
from toolkit.store.changes import StoreUnavailableError

T = TypeVar("T")
MAX_TRIES = 4
RETRY_BASE_S = 0.1  # the longest first wait; it doubles each time
RETRY_AFTER_S = 5.0
_CODE = re.compile(r"[A-Za-z]{1,60}")
NO_CONTAINER_CODES = ("NoSuchBucket", "ContainerNotFound")


class RemoteCalls:
    """Runs calls of a file system that is far away; each may be repeated safely.

    Objects are stored under the hash of their bytes, so to store, read or delete one twice is as
    good as once.
    """

    def run(self, call: Callable[[], T]) -> T:
        """Run a call, again if it failed for a reason that may pass.

        Raises:
            FileNotFoundError: there is no such object.
            NotImplementedError: this kind of storage cannot do that.
            ServiceError: `UNAVAILABLE`.
        """
        for n in range(MAX_TRIES):
            try:
                return call()
            except (ServiceError, NotImplementedError):
                raise
            except Exception as error:
                code = find_code(error)
                if isinstance(error, FileNotFoundError) and code not in NO_CONTAINER_CODES:
                    raise FileNotFoundError from None
                # Its own text may name keys and signed URLs: only its kind is told.
                failed = _make_error(error, code)
            if failed.retry_after is None or n + 1 == MAX_TRIES or is_abandoned():
                break
            time.sleep(random.uniform(0, RETRY_BASE_S * 2**n))  # noqa: S311 - no secret
        raise failed


def make_remote_error(reason: str) -> StoreUnavailableError:
    """Make the error for storage that cannot be used now."""
    return StoreUnavailableError(
        ErrorCode.UNAVAILABLE,
        f"The artifacts' storage cannot be used now: {reason}.",
        retry_after=RETRY_AFTER_S,
    )


def _make_error(error: Exception, code: str) -> ServiceError:
    if code in NO_CONTAINER_CODES:
        return ServiceError(
            ErrorCode.UNAVAILABLE,
            f"The artifacts' storage cannot be used: {code}. Make it, or correct `artifact_url`.",
        )
    if isinstance(error, PermissionError) or "Credentials" in code:
        return ServiceError(
            ErrorCode.UNAVAILABLE,
            f"The artifacts' storage cannot be used: {code}. Give this process credentials that may"
            " read, write, list and delete there.",
        )
    return make_remote_error(code)


def find_code(error: BaseException) -> str:
    """Find the storage's own word for an error; the name of its class where it has none."""
    for each in (error, error.__cause__):
        response = getattr(each, "response", None)
        if isinstance(response, dict):
            code = str(response.get("Error", {}).get("Code", ""))
            if _CODE.fullmatch(code):
                return code
    return type(error).__name__
