"""Errors that cross to another process: a pool raises equal errors."""

import multiprocessing
import pickle
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor

import pytest

from toolkit import Client, ErrorCode, RequestError, ServiceTimeoutError, ToolkitError, Workflow
from toolkit.client._wait_interruption import explain_interrupts
from toolkit.contract.errors import Detail
from toolkit.contract.short_tracebacks import MissingLibraryError, PicklableError
from toolkit.plugins import ProviderError
from toolkit.settings import Settings


@pytest.fixture(scope="module")
def pool() -> Iterator[Executor]:
    """A pool of a spawned process."""
    with pytest.MonkeyPatch.context() as patch:
        # Spawning needs a spec of the main module, and a worker of pytest-xdist has none.
        patch.setattr(sys.modules["__main__"], "__spec__", None, raising=False)
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as executor:
            yield executor


def use_client(how: str) -> None:
    """Make a mistake in another process."""
    with Client.local(tempfile.mkdtemp(), sandbox=True) as client:
        if how == "unknown id":
            client.runs.get("run_unknown")
        elif how == "wrong input":
            client.runs.create("llm.generate", {"objective": 3, "tea": 1})
        elif how == "unknown attribute":
            client.rums  # type: ignore[attr-defined]  # noqa: B018
        elif how == "unknown node":
            workflow = Workflow("letter")
            workflow.add("first", "llm.generate", objective="A line on tides")
            client.workflows.submit(workflow).wait()["second"]
        elif how == "over budget":
            client.runs.create("llm.generate", {"objective": "x"}, max_cost_usd=1e-9)


@pytest.mark.parametrize(
    ("how", "kind", "message"),
    [
        ("unknown id", RequestError, "NOT_FOUND: There is no run `run_unknown` here"),
        ("wrong input", RequestError, "tea"),
        ("unknown attribute", AttributeError, "`Client` has no `rums`; did you mean `runs`"),
        ("unknown node", KeyError, "first"),
        ("over budget", RequestError, "BUDGET_EXCEEDED"),
    ],
)
def test_pool_raises_the_error_of_its_process(
    pool: Executor, how: str, kind: type[Exception], message: str
) -> None:
    """Given a mistake in a process of a pool, then the pool raises the same error and message."""
    with pytest.raises(kind) as raised:
        pool.submit(use_client, how).result(timeout=120)
    assert message.lower() in str(raised.value).lower()
    if isinstance(raised.value, ToolkitError):
        assert raised.value.request_id is not None
        assert isinstance(raised.value.code, ErrorCode)


@pytest.mark.parametrize(
    "error",
    [
        RequestError(
            ErrorCode.INVALID_REQUEST, "Wrong.", details=[Detail("nodes.2", "is no node")],
            request_id="req_1", retry_after=2.5, vendor_request_id="v1",
        ),
        ServiceTimeoutError(ErrorCode.UNAVAILABLE, "Late."),
        ProviderError(ErrorCode.PROVIDER_TIMEOUT, "Late.", status=504, retry_after=3),
        MissingLibraryError("polars"),
    ],
)  # fmt: skip
def test_copy_of_an_error_has_all_members(error: Exception) -> None:
    """Given an error of the client or of a plugin, then its copy has the same members."""
    error.add_note("while it was tried")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert (str(copy), copy.args, vars(copy)) == (str(error), error.args, vars(error))


def list_kinds(kind: type[BaseException]) -> Iterator[type[BaseException]]:
    """List the subclasses of an exception that the package defines."""
    for subclass in kind.__subclasses__():
        # The simulated cloud imports nothing of the package, and its errors stay inside it.
        is_ours = subclass.__module__.startswith("toolkit.") and not subclass.__name__.startswith(
            "_"
        )
        if is_ours and ".sandbox." not in subclass.__module__:
            yield subclass
        yield from list_kinds(subclass)


def test_errors_with_a_constructor_are_picklable(settings: Settings) -> None:
    """Given every exception of an engine, then each with a constructor has the mixin."""
    with Client.local(settings=settings):
        pass  # imports the modules of an engine
    kinds = set(list_kinds(BaseException))
    assert {RequestError, ProviderError} < kinds
    unsafe = [
        kind
        for kind in kinds
        if not issubclass(kind, PicklableError)
        and any(base in kinds and "__init__" in vars(base) for base in kind.__mro__)
    ]
    # The writer of the store raises and catches these exceptions.
    assert {kind.__name__ for kind in unsafe} <= {"CommitInDoubt", "DatabaseUnwritable"}


def test_copy_of_an_interrupt_has_advice() -> None:
    """Given an interrupted wait, then a copy of the interrupt has the call that waits again."""
    with pytest.raises(KeyboardInterrupt) as interrupt, explain_interrupts("runs", "run_1"):
        raise KeyboardInterrupt
    copy = pickle.loads(pickle.dumps(interrupt.value))
    assert "client.runs.get" in str(copy)
    assert copy._render_traceback_() == [str(copy)]
