"""`WorkflowEditor`: a workflow built by forms, validated as the service validates it."""

import json
from contextlib import suppress
from html import escape
from typing import TYPE_CHECKING, Any

import ipywidgets
import traitlets

from toolkit.client import Client, Workflow
from toolkit.contract.errors import Detail
from toolkit.contract.workflows import FUNCTION_CAPABILITY
from toolkit.engine import Registry
from toolkit.notebook.code_export import find_faults, render_python, sort_nodes
from toolkit.notebook.function_forms import OfferedFunctions, build_form_schema, read_arguments
from toolkit.notebook.graph_widget import GraphWidget
from toolkit.notebook.live_graph import LiveGraph
from toolkit.notebook.schema_form import SchemaForm, guard_control
from toolkit.notebook.widget_base import Panel, close_all, make_button, make_labelled, make_row
from toolkit.notebook.widget_html import render_pre
from toolkit.settings import Settings

if TYPE_CHECKING:
    import pandas as pd

EXPORT_FORMATS = [("(nothing)", ""), ("Python", "python"), ("JSON", "json")]


class WorkflowEditor(Panel):
    """A workflow to add nodes to, connect, fill in, check, export and submit.

    A node calls a capability, or a function that was registered (`client.functions.register`) or
    submitted before.

    Args:
        client: the client whose capabilities are offered, and that runs the workflow.
        workflow: the initial workflow; an empty workflow by default.

    Attributes:
        name, max_retries: controls for the workflow.
        new_id, capability, add: the form for a new node.
        view, selected: the graph, and the id of the chosen node, whose form is below it.
        depends_on, form, remove: controls for the chosen node; `input_schema` makes its form.
        faults: the faults for which the service would reject the workflow.
        shape, exported: the workflow as Python or JSON.
        submit, graph: the button, and the graph of the submitted workflow.
    """

    selected = traitlets.Unicode("")
    faults: list[Detail]

    def __init__(self, client: Client, workflow: Workflow | None = None) -> None:
        self._client = client
        self._registry, self._settings = Registry.load(), Settings()
        self._schemas = {
            f"{capability.id}@{capability.record.version}": capability.record.input_schema
            for capability in client.capabilities.list()
            if capability.record.status == "available"
        }
        draft = workflow or Workflow("workflow")
        self._draft_functions = list(draft.functions.values())
        self._functions = OfferedFunctions([*client.functions, *self._draft_functions])
        body = draft.to_dict()
        self.nodes: list[dict[str, Any]] = body["nodes"]
        self.faults = []
        self.form: SchemaForm | None = None
        self.graph: LiveGraph | None = None
        self.name = make_labelled(ipywidgets.Text, "name", value=body["name"])
        self.max_retries = make_labelled(
            ipywidgets.BoundedIntText, "retries of a node", value=body.get("max_retries", 0), max=3
        )
        self.new_id = make_labelled(
            ipywidgets.Text, "new node", placeholder="its id, such as facts"
        )
        self.capability = make_labelled(ipywidgets.Dropdown, "does", options=[])
        self.add = make_button("Add", "Add a node after the selected node", self._add, "primary")
        self.view = GraphWidget(label="The workflow in the editor")
        self.depends_on = make_labelled(ipywidgets.SelectMultiple, "depends on", options=[])
        self.remove = make_button("Remove", "Remove the selected node", self._remove, "warning")
        self._node_title = ipywidgets.HTML()
        self._remove_row = make_row(self.remove)
        self._node_form = ipywidgets.VBox()
        self._fault_list = ipywidgets.HTML()
        self.shape = make_labelled(ipywidgets.Dropdown, "export as", options=EXPORT_FORMATS)
        self.exported = ipywidgets.HTML()
        self.submit = make_button("Submit", "Run the workflow", self._start_submit, "success")
        self._run_view = ipywidgets.VBox()
        super().__init__(
            self.name, self.max_retries, self.new_id, self.capability, make_row(self.add),
            self.view, self._node_form, self._fault_list, make_row(self.submit), self.shape,
            self.exported, self._run_view,
        )  # fmt: skip
        for text in (self.name, self.new_id):
            guard_control(text, self.show_message)
        traitlets.link((self.view, "selected"), (self, "selected"))
        self.observe(lambda _: self._choose(), "selected")
        self.depends_on.observe(lambda _: self._connect(), "value")
        for control in (self.name, self.max_retries, self.shape):
            control.observe(lambda _: self._show(), "value")
        self._show()

    def to_dict(self) -> dict[str, Any]:
        """Return the body of `POST /v1/workflows`."""
        return {"name": self.name.value, "max_retries": self.max_retries.value, "nodes": self.nodes}

    def to_json(self) -> str:
        """Return the edited workflow as JSON text, as the service takes it."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    def to_python(self) -> str:
        """Return the Python code that builds and submits the workflow."""
        return render_python(self.to_dict())

    def workflow(self) -> Workflow:
        """Return the workflow, to use in code.

        Raises:
            RequestError: `INVALID_WORKFLOW` while the graph has a cycle.
        """
        workflow = Workflow.from_dict({**self.to_dict(), "nodes": sort_nodes(self.nodes)})
        workflow.functions |= self._functions.list_called(self.nodes)
        return workflow

    def picture(self) -> str:
        """Draw the graph of the edited workflow as SVG."""
        return self.workflow().picture()

    def table(self) -> "pd.DataFrame":
        """Return the nodes as a table, one row each."""
        import pandas as pd

        return pd.DataFrame(self.nodes, columns=["id", "capability", "depends_on", "input"])

    def snapshot(self) -> str:
        """Return the workflow as Python code, for a saved notebook."""
        return render_pre(self.to_python())

    def close(self) -> None:
        """Close the editor and the graph of its submitted workflow; the workflow itself goes on."""
        if self.graph is not None:
            self.graph.close()
        super().close()

    def __repr__(self) -> str:
        wrong = f", {len(self.faults)} faults" if self.faults else ""
        return f"<WorkflowEditor {self.name.value}: {len(self.nodes)} nodes{wrong}>"

    def _find_node(self, node_id: str) -> dict[str, Any] | None:
        return next((node for node in self.nodes if node["id"] == node_id), None)

    def _add(self) -> None:
        """Add a node after the chosen node, and choose the new node."""
        node_id = str(self.new_id.value)  # as typed, because blanks are a part of the id
        if not node_id or self._find_node(node_id) is not None:
            self.show_message("Give the new node an id that no other node has.")
            return
        after = [self.selected] if self.selected else []
        call = self._functions.make_input(self.capability.value)
        name = self.capability.value if call is None else FUNCTION_CAPABILITY
        node = {"id": node_id, "capability": name, "input": call or {}, "depends_on": after}
        self.nodes = [*self.nodes, self._functions.connect(node)]
        self.new_id.value = ""
        self.show_message("")
        self._show()
        self.view.selected = node_id

    def _remove(self) -> None:
        node_id = self.selected
        self.nodes = [
            {**node, "depends_on": [up for up in node["depends_on"] if up != node_id]}
            for node in self.nodes
            if node["id"] != node_id
        ]
        self.view.selected = ""
        self._show()

    def _choose(self) -> None:
        node = self._find_node(self.selected)
        old, self.form = self.form, None
        if node is None:
            self._node_form.children = ()
        else:
            self.depends_on.options = []  # no node is chosen while the choices change
            function = self._functions.find(node)
            schema = self._schemas.get(node["capability"], {})
            form = SchemaForm(
                build_form_schema(function) if function else schema, self.show_message
            )
            form.set_values(read_arguments(node) if function else node["input"])
            upstream = list(node["depends_on"])
            self.depends_on.options = [n["id"] for n in self.nodes if n["id"] != node["id"]]
            self.form = form
            self.depends_on.value = [up for up in upstream if up in self.depends_on.options]
            for field in form.fields.values():
                field.control.observe(lambda _: self._fill(), "value")
            title = f"{escape(node['id'])} ({escape(_name_called(node))})"
            self._node_title.value = f"<h4>{title}</h4>"
            self._node_form.children = (
                self._node_title, self.depends_on, form, self._remove_row,
            )  # fmt: skip
        if old is not None:
            close_all(old)
            old.close()
        self._show()

    def _change(self, **members: object) -> None:
        """Replace members of the chosen node, and show the workflow again."""
        self.nodes = [
            self._functions.connect({**node, **members}) if node["id"] == self.selected else node
            for node in self.nodes
        ]
        self._show()

    def _connect(self) -> None:
        if self.form is not None:
            self._change(depends_on=list(self.depends_on.value))

    def _fill(self) -> None:
        if self.form is None:
            return
        node = self._find_node(self.selected)
        try:
            values = self.form.read_values()
        except ValueError as error:
            self.show_message(str(error))
            return
        if node is not None and self._functions.find(node) is not None:
            values = self._functions.fill(node, values)["input"]
        self._change(input=values)

    def _show(self) -> None:
        """Draw the graph, and show the faults that the service would find in it."""
        self._offer_calls()
        self.faults = find_faults(self.to_dict(), self._registry, self._settings)
        self.faults += self._functions.find_faults(self.nodes)
        ids = {node["id"] for node in self.nodes}
        upstream = {n["id"]: [u for u in n["depends_on"] if u in ids] for n in self.nodes}
        titles = {node["id"]: _name_called(node) for node in self.nodes}
        with suppress(ValueError):  # a cycle has no layout, so it is shown as a fault instead
            self.view.draw(titles, upstream)
        faulty_ids = {
            self.nodes[i]["id"] for i in map(_find_node_index, self.faults) if i is not None
        }
        self.view.states = {
            node_id: {"status": "failed", "line": "✗ faulty"}
            if node_id in faulty_ids
            else {"status": "pending", "line": "· ready"}
            for node_id in titles
        }
        items = "".join(f"<li>{escape(self._format_fault(fault))}</li>" for fault in self.faults)
        self._fault_list.value = (
            f'<div class="tk-alert" role="alert"><ul>{items}</ul></div>' if self.nodes else ""
        )
        self._mark_faults()
        self.submit.disabled = bool(self.faults)
        shapes = {"python": self.to_python, "json": self.to_json}
        export = shapes.get(self.shape.value)
        self.exported.value = render_pre(export()) if export else ""

    def _offer_calls(self) -> None:
        """Offer what a node may call: the capabilities, and the functions that exist now."""
        self._functions = OfferedFunctions([*self._client.functions, *self._draft_functions])
        choices = [(name, name) for name in self._schemas]
        choices += self._functions.list_choices()
        if list(self.capability.options) != choices:
            choice = self.capability.value
            self.capability.options = choices
            if choice is not None:
                self.capability.value = choice

    def _format_fault(self, fault: Detail) -> str:
        place = _find_node_index(fault)
        if place is None:
            return f"{fault.path}: {fault.message}"
        field = ".".join(fault.path.split(".")[2:])
        return f"{self.nodes[place]['id']}: {field} {fault.message}"

    def _mark_faults(self) -> None:
        """Show the faults of the chosen node next to its fields."""
        if self.form is None:
            return
        ids = [node["id"] for node in self.nodes]
        mine = f"nodes.{ids.index(self.selected)}.input." if self.selected in ids else "\0"
        self.form.mark_faults(
            {
                fault.path.removeprefix(mine).split(".")[0]: fault.message
                for fault in self.faults
                if fault.path.startswith(mine)
            }
        )

    def _start_submit(self) -> None:
        workflow = self.workflow()
        self._background.start_action(lambda: self._submit_workflow(workflow))

    def _submit_workflow(self, workflow: Workflow) -> None:
        run = self._client.workflows.submit(workflow)
        self.show_message(f"{run.id} is under way.", fault=False)
        before, self.graph = self.graph, LiveGraph(run)
        self._run_view.children = (self.graph,)
        if before is not None:
            before.close()


def _name_called(node: dict[str, Any]) -> str:
    called = node["input"].get("function")
    return f"{called}()" if node["capability"] == FUNCTION_CAPABILITY else str(node["capability"])


def _find_node_index(fault: Detail) -> int | None:
    """Find the index of the node that a fault is about. Returns None if it is about no node."""
    parts = fault.path.split(".")
    return int(parts[1]) if len(parts) > 1 and parts[1].isdigit() else None
