"""The workflow builder, in which a cycle cannot be made; and the objectives of plans and tasks."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, Self, TypeAlias, TypeVar, Unpack, cast

from toolkit.client._function_nodes import NodeRef, make_function_node, warn_of_unseen
from toolkit.client._graph_view import GraphView, make_planned_nodes
from toolkit.client._options import check_options, document_options, join_lists
from toolkit.client._output_model import add_output_schema
from toolkit.client._record_view import Member
from toolkit.client._wire.messages import check_input, check_values, drop_none
from toolkit.contract.choices import Decision
from toolkit.contract.errors import Detail, ErrorCode, RequestError
from toolkit.contract.plans import Missing, Plan
from toolkit.contract.run_options import (
    PLACEMENT_OPTIONS,
    RUN_OPTIONS,
    RunOptionAttributes,
    RunOptions,
)
from toolkit.contract.suggestions import suggest_name
from toolkit.contract.tasks import Task
from toolkit.contract.workflows import FUNCTION_CAPABILITY, Node
from toolkit.functions import RegisteredFunction

if TYPE_CHECKING:
    import pandas as pd
    from pydantic import BaseModel


ANNOTATIONS = ("tags", "note")
P = TypeVar("P", Plan, Task)


class Workflow(GraphView, RunOptionAttributes):
    """A graph of capabilities, and of functions of this process, to submit.

    Args:
        name: name of the workflow.
        max_retries: maximum number of retries of each node, 0 to 3.
        tags: words to find it by in lists.
        note: a remark in your own words.
        **options: those of a run, for every node: `Workflow("card", optimize_for="cost")`; a limit
        of money or time applies to all nodes together.

    >>> wf = Workflow("card")
    >>> facts = wf.add("facts", "research.gather", topic="Tea")
    >>> wf.add("card", "composition.layout", title="Tea", depends_on=[facts])
    NodeRef(id='card')
    >>> wf
    <Workflow card: 2 nodes, 1 dependency>
    """

    planned = True

    @document_options(RunOptions)
    def __init__(
        self,
        name: str,
        *,
        max_retries: int = 0,
        tags: Sequence[str] = (),
        note: str = "",
        **options: Unpack[RunOptions],
    ) -> None:
        self.name = name
        self.max_retries = max_retries
        self.tags = list(tags)
        self.note = note
        check_options(options)
        for option, value in options.items():
            setattr(self, option, value)
        self.nodes: list[dict[str, Any]] = []
        self.functions: dict[str, RegisteredFunction] = {}  # by the id of the node that calls it

    def add(
        self,
        id: str,
        capability: str | Callable[..., object],
        input: Mapping[str, object] | None = None,
        *,
        depends_on: Iterable[NodeRef | str] = (),
        options: RunOptions | None = None,
        optional: bool = False,
        output_model: "type[BaseModel] | None" = None,
        cache: bool | None = None,
        **fields: object,
    ) -> NodeRef:
        """Add a node to the workflow, and return a reference to it for other nodes.

        Args:
            id: the node's id, unique within the workflow.
            capability: a name, or `name@version`; or a function, which only the embedded engine can
                call, in a thread of this process.
            input: the capability's input; or give its fields as keyword arguments. An argument of
                a function may be a node, or a list of nodes: `wf.add("clean", clean, table=raw)`.
            depends_on: nodes added before, whose artifacts this node is given. A function takes the
                result of each as the parameter of its name.
            options: options of the run, such as `{"provider": "openai"}`.
            optional: whether other nodes go on without it, with a warning, if it fails.
            output_model: pydantic model that the node's answer must match; `parse` of its job makes
                an instance.
            cache: use the result of an equal node again. A function's node is equal if code, values
                and arguments are (`docs/guides/functions.md` lists the limits of this check).

        Raises:
            RequestError: `INVALID_WORKFLOW` for an id that is taken or no text, a dependency
                that has not been added, or arguments that do not fit a function;
                `INVALID_REQUEST` for a model that has no JSON schema.
        """
        if not isinstance(id, str):
            raise _make_workflow_error(f"The node id {id} is not a text: put it in quotes.")
        node_ids = dict.fromkeys(node["id"] for node in self.nodes)
        upstream = [node.id if isinstance(node, NodeRef) else node for node in depends_on]
        if id in node_ids:
            raise _make_workflow_error(f"`{id}` is the id of another node; choose a new one.")
        check_input({} if input is None else input)
        arguments: dict[str, object] = {**(input or {}), **fields}
        function: RegisteredFunction | None = None
        if isinstance(capability, str):
            _check_fields(id, arguments)
            arguments = dict(add_output_schema(arguments, output_model))
        else:
            step = make_function_node(id, capability, upstream, arguments)
            function, arguments, upstream = step.registered, step.input, step.depends_on
            capability = FUNCTION_CAPABILITY
        for name in upstream:
            if name not in node_ids:
                fault = f"`{id}` depends on `{name}`, which has not been added; add it first"
                hint = suggest_name(name, node_ids)
                raise _make_workflow_error(f"{fault}: {hint}." if hint else f"{fault}.")
        node: dict[str, Any] = {
            "id": id,
            "capability": capability,
            "input": arguments,
            "depends_on": upstream,
        }
        if options or cache is not None:
            chosen = {} if cache is None else {"cache": cache}
            node["options"] = join_lists({**(options or {}), **chosen})
        if optional:
            node["optional"] = True
        self.nodes.append(node)
        if function is not None:
            self.functions[id] = function
            if node.get("options", {}).get("cache"):
                warn_of_unseen(function)
        return NodeRef(id)

    def to_dict(self) -> dict[str, Any]:
        """Return the body of `POST /v1/workflows`."""
        body: dict[str, Any] = {"name": self.name, "max_retries": self.max_retries}
        options = join_lists(drop_none(**{name: getattr(self, name) for name in RUN_OPTIONS}))
        # In a body, the place is no option but a member of its own.
        body |= {place: options.pop(place) for place in PLACEMENT_OPTIONS if place in options}
        if options:
            body["options"] = options
        body |= {name: value for name in ANNOTATIONS if (value := getattr(self, name))}
        return {**body, "nodes": self.nodes}

    @classmethod
    def from_dict(cls, body: Mapping[str, Any]) -> Self:
        """Build the workflow of a body that `to_dict` made.

        Raises:
            RequestError: `INVALID_WORKFLOW` for a graph that cannot be run in the order given.
        """
        placement = {place: body[place] for place in PLACEMENT_OPTIONS if body.get(place)}
        options = cast("RunOptions", {**(body.get("options") or {}), **placement})
        workflow = cls(
            body["name"],
            max_retries=body.get("max_retries", 0),
            tags=body.get("tags") or (),
            note=body.get("note") or "",
            **options,
        )
        for node in body["nodes"]:
            workflow.add(
                node["id"],
                node["capability"],
                depends_on=node.get("depends_on", ()),
                input=node.get("input"),
                options=node.get("options"),
                optional=node.get("optional", False),
            )
        return workflow

    def _make_title(self) -> str:
        return self.name

    def _list_nodes(self) -> Sequence[Node]:
        return make_planned_nodes(self.nodes)

    def to_frame(self) -> "pd.DataFrame":
        """Return a row for each node."""
        import pandas as pd

        return pd.DataFrame(self.nodes, columns=["id", "capability", "input", "depends_on"])

    def __repr__(self) -> str:
        nodes, edges = len(self.nodes), sum(len(node["depends_on"]) for node in self.nodes)
        return (
            f"<Workflow {self.name}: {nodes} node{'s' * (nodes != 1)}, "
            f"{edges} dependenc{'y' if edges == 1 else 'ies'}>"
        )


def _check_fields(id: str, fields: Mapping[str, object]) -> None:
    """Reject a node as the value of a field, and values that JSON cannot hold.

    Raises:
        RequestError: `INVALID_WORKFLOW` for a node.
        TypeError: for a value of another type.
    """
    for field, value in fields.items():
        nodes = value if isinstance(value, list | tuple) else [value]
        node_ids = [node.id for node in nodes if isinstance(node, NodeRef)]
        if node_ids:
            raise _make_workflow_error(
                f"`{field}` of `{id}` takes a value, not a node: `depends_on={node_ids}` hands the"
                " artifact of a node to this one."
            )
    check_values(fields, id)


def _make_workflow_error(message: str) -> RequestError:
    return RequestError(
        ErrorCode.INVALID_WORKFLOW, message, details=[Detail("nodes", message.rstrip("."))]
    )


class HasObjective(Generic[P]):
    """The attributes that tasks and plans share: an objective, and what it still lacks."""

    record: P

    objective = Member[str]("The objective, as it was given.")
    question = Member[str | None]("The question that a person has to answer, if any.")
    missing = Member[list[Missing]]("The missing capabilities, with possible providers.")
    missing_capabilities = Member[list[str]]("The capabilities that are missing.")
    missing_connections = Member[list[str]]("The providers, any of which it needs a connection to.")
    created_at = Member[datetime]("The time at which it was asked for.")


PlanSource: TypeAlias = Plan | Workflow | Mapping[str, Any]


def make_task_body(
    objective: str | None, constraints: Mapping[str, object], plan: PlanSource | None = None
) -> dict[str, object]:
    """Make the body of `POST /v1/tasks`.

    Args:
        objective: the objective. Default: the objective of the plan, or the workflow's name.
        plan: plan to run unchanged, if given: a record, its JSON, or a workflow.

    Raises:
        RequestError: `INVALID_REQUEST` if neither the caller nor the plan gives an objective.
    """
    extras: dict[str, object] = {}
    if isinstance(plan, Workflow):
        body = _make_plan_of(plan)
        constraints = {**body.pop("constraints"), **constraints}
    else:
        body = plan.model_dump(mode="json") if isinstance(plan, Plan) else dict(plan or {})
    if plan is not None:
        nodes = [drop_none(**node) for node in body.get("nodes", ())]
        extras["plan"] = {"nodes": nodes, "deliverables": body.get("deliverables", [])}
    goal = objective or body.get("objective")
    if goal is None:
        raise RequestError(ErrorCode.INVALID_REQUEST, "Give an objective, or a plan with one.")
    if isinstance(plan, Workflow):
        extras |= {name: body[name] for name in ANNOTATIONS if name in body}
    return {"objective": goal, "constraints": dict(constraints), **extras}


def _make_plan_of(workflow: Workflow) -> dict[str, Any]:
    """Make a plan from a workflow, and constraints from its options."""
    body = workflow.to_dict()
    common = dict(body.get("options", {}))
    limits = {key: common.pop(key) for key in ("max_cost_usd", "optimize_for") if key in common}
    places = {place: body[place] for place in PLACEMENT_OPTIONS if place in body}
    nodes = [{**node, "options": {**common, **node.get("options", {})}} for node in body["nodes"]]
    annotated = {name: body[name] for name in ANNOTATIONS if name in body}
    return {
        "objective": body["name"],
        "nodes": nodes,
        "constraints": {**limits, **places},
        **annotated,
    }


def make_review_body(
    decision: Decision,
    issues: Sequence[str],
    score: float | None,
    criteria: Mapping[str, float] | None,
    node_id: str | None,
    constraints: Mapping[str, object] | None,
    attempt: int | None,
) -> dict[str, object]:
    """Make the body of `POST /v1/tasks/{id}/reviews`."""
    return drop_none(
        decision=decision,
        issues=list(issues),
        score=score,
        criteria=criteria and dict(criteria),
        node_id=node_id,
        constraints=constraints and dict(constraints),
        attempt=attempt,
    )
