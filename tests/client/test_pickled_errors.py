"""Errors that cross to another process: pools of processes raise them as they were."""

import multiprocessing
import pickle
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import suppress

import pytest

from toolkit import Client, ErrorCode, RequestError, ServiceTimeoutError, ToolkitError, Workflow
from toolkit.contract.errors import Detail
from toolkit.contract.pickled_errors import PicklableError
from toolkit.contract.short_tracebacks import MissingLibraryError
from toolkit.plugins import ProviderError
from toolkit.settings import Settings


@pytest.fixture(scope="module")
def pool() -> Iterator[Executor]:
    """A pool of one process, which shares nothing with this one."""
    with pytest.MonkeyPatch.context() as patch:
        # A worker of pytest-xdist has no spec of its main module, which spawning looks for.
        patch.setattr(sys.modules["__main__"], "__spec__", None, raising=False)
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as executor:
            yield executor


def use_client(how: str) -> None:
    """Make one mistake in another process."""
    with Client.local(tempfile.mkdtemp(), sandbox=True) as client:
        if how == "unknown id":
            client.runs.get("run_unknown")
        elif how == "wrong input":
            client.runs.create("llm.generate", {"objective": 3, "tea": 1})
        elif how == "unknown attribute":
            client.rums  # type: ignore[attr-defined]  # noqa: B018
        elif how == "unknown node":
            client.workflows.submit(_make_workflow()).wait()["second"]
        elif how == "over budget":
            client.runs.create("llm.generate", {"objective": "x"}, max_cost_usd=1e-9)


def _make_workflow() -> Workflow:
    workflow = Workflow("one")
    workflow.add("first", "llm.generate", objective="A line on tides")
    return workflow


@pytest.mark.parametrize(
    ("how", "kind", "said"),
    [
        ("unknown id", RequestError, "NOT_FOUND: There is no run `run_unknown` here"),
        ("wrong input", RequestError, "tea"),
        ("unknown attribute", AttributeError, "`Client` has no `rums`; did you mean `runs`"),
        ("unknown node", KeyError, "first"),
        ("over budget", RequestError, "BUDGET_EXCEEDED"),
    ],
)
def test_a_pool_raises_the_error_of_its_process(
    pool: Executor, how: str, kind: type[Exception], said: str
) -> None:
    """Given a mistake in a process of a pool, then its caller gets the same error and message."""
    with pytest.raises(kind) as raised:
        pool.submit(use_client, how).result(timeout=120)
    assert said.lower() in str(raised.value).lower()
    if isinstance(raised.value, ToolkitError):
        assert raised.value.request_id is not None
        assert isinstance(raised.value.code, ErrorCode)


def test_every_member_of_an_error_survives() -> None:
    """Given an error with all that it may have, then its copy has the same."""
    error = RequestError(
        ErrorCode.INVALID_REQUEST, "Wrong.", details=[Detail("nodes.2", "is no node")],
        request_id="req_1", retry_after=2.5, vendor_request_id="v1",
    )  # fmt: skip
    error.add_note("while it was tried")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is RequestError
    assert vars(copy) == vars(error)
    assert str(copy) == str(error)


@pytest.mark.parametrize(
    "make",
    [
        lambda: ServiceTimeoutError(ErrorCode.UNAVAILABLE, "Late."),
        lambda: ProviderError(ErrorCode.PROVIDER_TIMEOUT, "Late.", status=504, retry_after=3),
        lambda: MissingLibraryError("polars"),
    ],
)
def test_other_public_errors_survive(make: Callable[[], Exception]) -> None:
    """Given an error of a plugin or of the client, then its copy has the same members."""
    error = make()
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert (str(copy), copy.args, vars(copy)) == (str(error), error.args, vars(error))


def list_kinds(kind: type[BaseException]) -> Iterator[type[BaseException]]:
    """List the exceptions below one that are defined in the package."""
    for each in kind.__subclasses__():
        # The simulated cloud imports nothing of the package, and none of its errors leaves it.
        is_ours = each.__module__.startswith("toolkit.") and not each.__name__.startswith("_")
        if is_ours and ".sandbox." not in each.__module__:
            yield each
        yield from list_kinds(each)


def test_no_error_has_a_constructor_that_pickle_cannot_call(settings: Settings) -> None:
    """Given every exception that an engine knows, then one with a constructor has the mixin."""
    with Client.local(settings=settings):
        pass  # which imports the modules of an engine
    kinds = set(list_kinds(BaseException))
    assert {RequestError, ProviderError} < kinds
    unsafe = [
        kind
        for kind in kinds
        if not issubclass(kind, PicklableError)
        and any(base in kinds and "__init__" in vars(base) for base in kind.__mro__)
    ]
    # The writer of the store raises and catches these; one carries a function.
    assert {kind.__name__ for kind in unsafe} <= {"CommitInDoubt", "DatabaseUnwritable"}


def test_an_interrupted_wait_survives() -> None:
    """Given a wait that was interrupted, then a copy of the interrupt says how to wait again."""
    from toolkit.client._wait_interruption import explain_interrupts

    caught: list[BaseException] = []
    with suppress(KeyboardInterrupt):
        try:
            with explain_interrupts("runs", "run_1"):
                raise KeyboardInterrupt
        except KeyboardInterrupt as error:
            caught.append(error)
            raise
    copy = pickle.loads(pickle.dumps(caught[0]))
    assert "client.runs.get" in str(copy)
    assert copy._render_traceback_() == [str(copy)]
