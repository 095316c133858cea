# Generated from `_async` by scripts/unasync.py: edit that, then run scripts/fix.
"""`client.runs`: one capability, or an agent, at a time."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar, Unpack, overload

from toolkit.client._options import check_options, collect_options, document_options
from toolkit.client._output_model import add_output_schema
from toolkit.client._sync.handle import Annotated
from toolkit.client._sync.resource import AnnotatedResource
from toolkit.client._sync.resources.jobs import Execution
from toolkit.client._tools import describe_tools, map_functions
from toolkit.client._wire.messages import make_annotation, make_run_body
from toolkit.client._work_views import RunView
from toolkit.contract import runs
from toolkit.contract.choices import RunTarget
from toolkit.contract.run_options import RunOptions

if TYPE_CHECKING:
    from pydantic import BaseModel

M = TypeVar("M", bound="BaseModel")


class Run(RunView, Execution[runs.Run], Annotated[runs.Run]):
    """A run: one execution of a capability or of an agent."""

    noun, resource, record_type = "Run", "runs", runs.Run


class TypedRun(Run, Generic[M]):
    """A run whose answer is an instance of a model.

    Attributes:
        output_model: the pydantic model that was asked for.
    """

    def __init__(self, run: Run, output_model: type[M]) -> None:
        super().__init__(run._http, run.record)
        self.output_model = output_model

    @property
    def parsed(self) -> M:
        """The answer, as an instance of `output_model`.

        Raises:
            WorkError: see `parse`.
        """
        return self.parse(self.output_model)


class Runs(AnnotatedResource[Run]):
    """`client.runs`: start, list and read runs."""

    handle = Run

    @overload
    def create(
        self,
        name: str,
        input: Mapping[str, object],
        *,
        version: str | None = None,
        target: RunTarget = "capability",
        stream: bool = False,
        tags: Sequence[str] | None = None,
        note: str | None = None,
        output_model: None = None,
        **options: Unpack[RunOptions],
    ) -> Run: ...

    @overload
    def create(
        self,
        name: str,
        input: Mapping[str, object],
        *,
        version: str | None = None,
        target: RunTarget = "capability",
        stream: bool = False,
        tags: Sequence[str] | None = None,
        note: str | None = None,
        output_model: type[M],
        **options: Unpack[RunOptions],
    ) -> TypedRun[M]: ...

    @document_options(RunOptions)
    def create(
        self,
        name: str,
        input: Mapping[str, object] | None = None,
        *,
        version: str | None = None,
        target: RunTarget = "capability",
        stream: bool = False,
        tags: Sequence[str] | None = None,
        note: str | None = None,
        output_model: type[M] | None = None,
        **options: Unpack[RunOptions],
    ) -> Run | TypedRun[M]:
        """Start a run of a capability, without waiting for its end.

        Args:
            name: name of a capability, or `name@version`.
            input: input of the capability; `client.capabilities.llm_generate(objective=…)` takes
                its fields as arguments. `tools` may contain annotated Python functions.
            version: version of the capability, unless `name` contains it.
            target: `agent` runs the agent of that name.
            output_model: pydantic model that the answer must match; `parsed` is an instance.
            stream: stream the text while it is written, for `stream()` and `wait()`.
            tags: words to find the run by in lists.
            note: a remark in your own words.
            **options: options of a run.

        Raises:
            RequestError: `CREDENTIALS_MISSING`, `INVALID_REQUEST`, `NOT_FOUND` and others.
        """
        if input is None:
            check_options(options, hint="; the input is a mapping, after the name")
        config = collect_options(options, self._http.choose_cache(target))
        fields = add_output_schema(input or {}, output_model)
        tools = fields.get("tools") if isinstance(fields, Mapping) else None
        listed = list(tools) if isinstance(tools, Sequence) else []
        if any(callable(tool) or isinstance(tool, Mapping) for tool in listed):
            fields = {**fields, "tools": describe_tools(listed)}
        body = make_run_body(name, fields, version, config, target) | make_annotation(tags, note)
        run = self._create(body, watches_text=stream)
        handle = run if output_model is None else TypedRun(run, output_model)
        handle.is_streamed = stream
        handle.functions = map_functions(listed)
        return handle
