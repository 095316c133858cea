"""The magics of `%load_ext toolkit`: each calls the client and returns the result.

All magics use one client and print its name: the variable `toolkit_client` that `%connect` sets,
otherwise the notebook's own client. If there is no client, the first magic that needs a client
opens one. It uses the server that the environment or a profile names (see the table in
`toolkit.profiles.resolution`), otherwise `Client.local()`.
"""

import os
import re
import shlex
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast, get_args, get_type_hints

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class, no_var_expand
from IPython.core.magic_arguments import argument, magic_arguments

from toolkit.client import Client as AnyClient
from toolkit.client import Workflow
from toolkit.contract.choices import PlannerChoice, ReviewMode
from toolkit.contract.errors import ErrorCode, RequestError
from toolkit.contract.key_shapes import looks_like_key
from toolkit.contract.run_options import PROVIDER_LISTS, RUN_OPTIONS, RunOptions
from toolkit.contract.suggestions import ask_meant, suggest_name
from toolkit.contract.usage import DEFAULT_GROUPS, USAGE_GROUPS
from toolkit.input_parsing import check_workflow_ids, parse_document, parse_fields
from toolkit.notebook.cell_lines import fill_text, fill_values, point_at_cell
from toolkit.notebook.completion.matcher import attach_matcher
from toolkit.profiles.resolution import choose_profile, names_server

if TYPE_CHECKING:
    from argparse import Namespace

    from IPython.core.interactiveshell import InteractiveShell

CLIENT_VARIABLE = "toolkit_client"
KEY_VARIABLE = "TOOLKIT_API_KEY"


def _make_argument(name: str) -> Callable[[Any], Any]:
    kinds = get_args(get_type_hints(RunOptions)[name])
    choices = [word for kind in kinds for word in get_args(kind)]
    flag = f"--{name.replace('_', '-')}"
    words = RUN_OPTIONS[name]
    if bool in kinds and str not in kinds:
        return argument(flag, action="store_true", default=None, help=words)
    if name in PROVIDER_LISTS:
        return argument(flag, action="append", help=f"{words}; repeatable")
    return argument(
        flag, type=float if float in kinds else str, choices=choices or None, help=words
    )


def _take_options(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Make a decorator that adds several options to a magic, in their order."""

    def take(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
        return function

    return take


_run_options = _take_options(*map(_make_argument, RUN_OPTIONS))
_task_limits = _take_options(
    *map(_make_argument, ("optimize_for", "max_cost_usd", "endpoint_id", "compute_id"))
)
_labels = _take_options(
    argument("--tag", action="append", help="label to find the work by in lists; repeatable"),
    argument("--note", help="note about the work"),
)
_waiting = _take_options(
    argument("--no-wait", action="store_true", help="start the work and do not wait for it"),
    argument("-q", "--quiet", action="store_true", help="show no progress"),
    argument("--to", metavar="NAME", help="also store the result in this variable"),
)


@magics_class
class ToolkitMagics(Magics):
    """Magics for capabilities, runs, tasks and workflows in cells."""

    shell: "InteractiveShell"
    _reported_client: "weakref.ref[AnyClient] | None" = None  # the client last reported to a person

    @no_var_expand
    @magic_arguments()
    @argument("name", nargs="?", help="capability to show, such as llm.generate@1; default: all")
    @line_magic
    def capabilities(self, line: str) -> Any:
        """List the capabilities and their providers, or show the capability of a name."""
        name = _parse_line(self.capabilities, line).name
        area = self._get_client().capabilities
        return area.get(name) if name else area.list()

    @no_var_expand
    @magic_arguments()
    @argument("vendors", nargs="*", help="providers to connect by their usual variables")
    @argument("--client", metavar="NAME", help="use the client in this variable")
    @argument(
        "--sandbox", action="store_true", help="use a local sandbox engine: no keys, no costs"
    )
    @argument("--data-dir", help="use a local engine with its data in this directory")
    @argument("--base-url", help="use the server at this address")
    @argument("--profile", metavar="NAME", help="use this profile of `toolkit login`")
    @argument(
        "--api-key-env",
        metavar="VARIABLE",
        default=KEY_VARIABLE,
        help="variable of the server's key",
    )
    @line_magic
    def connect(self, line: str) -> Any:
        """Choose the client that all magics use, and connect vendors to it.

        Without vendors and options, show which vendors' variables are set here. Pass only the
        name of the variable that holds a key, never the key.
        """
        arguments = _parse_line(self.connect, line)
        client = self._choose_client(arguments)
        if client is not None:
            self.shell.push({CLIENT_VARIABLE: client})
            if not arguments.vendors:
                return client
        area = self._get_client().connections
        return area.connect(*arguments.vendors) if arguments.vendors else area.discover()

    @no_var_expand
    @magic_arguments()
    @argument("capability", help="name, such as llm.generate or llm.generate@1")
    @argument("fields", nargs="*", help="other input fields: name=text or name:=JSON")
    @_run_options
    @_labels
    @_waiting
    @cell_magic
    def run(self, line: str, cell: str) -> Any:
        """Run one capability; the cell is its main text, with {variables} filled in.

        The main text is the first field that the input requires: the objective of a text, the
        prompt of an image. The result is the run.
        """
        arguments = _parse_line(self.run, line)
        with point_at_cell("run", line, cell):
            work = self._start_run(arguments, cell)
        return self._wait_for(work, arguments)

    def _start_run(self, arguments: "Namespace", cell: str) -> Any:
        client = self._get_client()
        values = fill_values(parse_fields(arguments.fields), self.shell.user_ns)
        text = fill_text(cell, self.shell.user_ns).strip()
        if text:
            main = find_main_field(
                client.capabilities.get(arguments.capability).record.input_schema
            )
            if main in values:
                raise UsageError(f"{main} is given twice: on the line and in the cell.")
            values[main] = text
        options = cast("RunOptions", {name: getattr(arguments, name) for name in RUN_OPTIONS})
        is_watched = not arguments.no_wait and not arguments.quiet
        return client.runs.create(
            arguments.capability,
            values,
            stream=is_watched,
            tags=arguments.tag,
            note=arguments.note,
            **options,
        )

    @no_var_expand
    @magic_arguments()
    @argument("--plan-only", action="store_true", help="only make the plan and return it")
    @_task_limits
    @argument("--planner", choices=get_args(PlannerChoice), help="rules, a language model, or auto")
    @argument(
        "--review", choices=get_args(ReviewMode), help="checks only, or a language model as well"
    )
    @_labels
    @_waiting
    @cell_magic
    def task(self, line: str, cell: str) -> Any:
        """Plan, run and review the objective in the cell, with {variables} filled in."""
        arguments = _parse_line(self.task, line)
        with point_at_cell("task", line, cell):
            work = self._start_task(arguments, cell)
        if arguments.plan_only:
            return self._store_result(work, arguments)
        return self._wait_for(work, arguments)

    def _start_task(self, arguments: "Namespace", cell: str) -> Any:
        objective = fill_text(cell, self.shell.user_ns).strip()
        limits = {
            "max_cost_usd": arguments.max_cost_usd,
            "optimize_for": arguments.optimize_for,
            "planner": arguments.planner,
        }
        if arguments.plan_only:
            return self._get_client().plans.create(objective, **limits)
        return self._get_client().tasks.create(
            objective,
            **limits,
            review=arguments.review,
            endpoint_id=arguments.endpoint_id,
            compute_id=arguments.compute_id,
            tags=arguments.tag,
            note=arguments.note,
        )

    @no_var_expand
    @magic_arguments()
    @argument("--draw", action="store_true", help="only draw the workflow and return it")
    @_waiting
    @cell_magic
    def workflow(self, line: str, cell: str) -> Any:
        """Run a workflow; the cell is its body as YAML or JSON, {variables} filled into texts."""
        arguments = _parse_line(self.workflow, line)
        with point_at_cell("workflow", line, cell, is_document=True):
            document = check_workflow_ids(parse_document(cell, "The cell", 2), "The cell")
            body = fill_values(document, self.shell.user_ns)
            draft = _parse_workflow(body) if arguments.draw else None
            work = None if arguments.draw else self._get_client().workflows.create(body)
        return (
            self._wait_for(work, arguments)
            if draft is None
            else self._store_result(draft, arguments)
        )

    @no_var_expand
    @magic_arguments()
    @argument("group_by", nargs="*", help=f"columns to group by: {', '.join(USAGE_GROUPS)}")
    @line_magic
    def usage(self, line: str) -> Any:
        """Print the facts of the client, and return the usage and its cost."""
        groups = _parse_line(self.usage, line).group_by or DEFAULT_GROUPS
        client = self._get_client()
        lines = client.usage.list(groups)
        print(f"{client.info()}")
        return lines

    def _get_client(self) -> AnyClient:
        """Return the chosen client, the notebook's own client, or a new client.

        Its variable is printed if the magics used another client before.
        """
        name, client = find_notebook_client(self.shell.user_ns)
        if client is None:
            name = CLIENT_VARIABLE
            client = _open_server_client() if names_server() else AnyClient.local()
            self.shell.push({CLIENT_VARIABLE: client})
        if self._reported_client is None or self._reported_client() is not client:
            self._reported_client = weakref.ref(client)
            print(f"The magics use `{name}`: {repr(client).strip('<>')}.")
        return client

    def _choose_client(self, arguments: "Namespace") -> AnyClient | None:
        is_local = arguments.sandbox or arguments.data_dir is not None
        if is_local + bool(arguments.base_url or arguments.profile) + bool(arguments.client) > 1:
            raise UsageError(
                "choose one of: --client; --base-url or --profile; --sandbox or --data-dir"
            )
        if arguments.client:
            if arguments.client not in self.shell.user_ns:
                names = self.shell.user_ns
                clients = [name for name, value in names.items() if isinstance(value, AnyClient)]
                hint = suggest_name(arguments.client, clients)
                raise UsageError(
                    f"there is no variable {arguments.client}; {hint}".removesuffix("; ")
                )
            return _check_client(self.shell.user_ns[arguments.client], arguments.client)
        if arguments.base_url or arguments.profile:
            return _open_server_client(arguments.base_url, arguments.api_key_env, arguments.profile)
        return AnyClient.local(arguments.data_dir, sandbox=arguments.sandbox) if is_local else None

    def _wait_for(self, work: Any, arguments: "Namespace") -> Any:
        """Store work in the result variable; then wait for it, unless `--no-wait` is given."""
        self._store_result(work, arguments)
        return work if arguments.no_wait else work.wait(progress=not arguments.quiet)

    def _store_result(self, work: Any, arguments: "Namespace") -> Any:
        if arguments.to:
            if not arguments.to.isidentifier():
                raise UsageError(f"{arguments.to} is not a valid name of a variable")
            self.shell.push({arguments.to: work})
        return work


def find_notebook_client(names: Mapping[str, Any]) -> tuple[str, AnyClient | None]:
    """Find the client that the magics use, and its variable; ("", None) without a client.

    It is the client that `%connect` chose, otherwise the notebook's own: `client`, or the newest.

    Raises:
        UsageError: if the chosen variable holds something else.
    """
    if names.get(CLIENT_VARIABLE) is not None:
        return CLIENT_VARIABLE, _check_client(names[CLIENT_VARIABLE], CLIENT_VARIABLE)
    if isinstance(names.get("client"), AnyClient):
        return "client", names["client"]
    clients = [(name, value) for name, value in names.items() if isinstance(value, AnyClient)]
    clients = [(name, client) for name, client in clients if not name.startswith("_")]
    return clients[-1] if clients else ("", None)


def find_main_field(schema: dict[str, Any]) -> str:
    """Return the field that a cell fills, the first required or the first; reject no fields."""
    names = [*schema.get("required", ()), *schema.get("properties", ())]
    if not names:
        raise UsageError("this capability takes no input; leave the cell empty")
    return str(names[0])


def _parse_line(magic: Any, line: str) -> "Namespace":
    """Parse the arguments of a magic.

    Raises:
        UsageError: if an argument is invalid or looks like a key; the message repeats no key.
    """
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise UsageError(f"{error}: put a pair of quotes around text with spaces") from None
    # Paths and URLs are long, so their parts are checked.
    if any(looks_like_key(part) for word in words for part in re.split("[=/]", word)):
        raise UsageError("an argument looks like a key: pass the name of its variable instead")
    try:
        arguments: Namespace = magic.parser.parse_args(words)
    except UsageError as error:
        raise UsageError(_explain_usage(str(error), words, magic)) from None
    return arguments


def _explain_usage(message: str, words: list[str], magic: Any) -> str:
    """Suggest the meant name in a message about an unknown option or an invalid choice."""
    options = re.findall(r"--[a-z][\w-]*", magic.parser.format_usage())
    for word in words:
        name = word.partition("=")[0]
        if name.startswith("--") and name not in options:
            return f"unrecognized arguments: {name}; {suggest_name(name, options)}"
    for value in re.findall(r"invalid choice: '([^']*)'", message):
        choices = re.findall(r"'([^']*)'", message.partition("choose from")[2]) or [
            word.strip(" )") for word in message.partition("choose from")[2].split(",")
        ]
        suggestion = ask_meant(value, choices)
        return f"{message}. {suggestion}".removesuffix(". ")
    return message


def _parse_workflow(body: dict[str, Any]) -> Workflow:
    try:
        return Workflow.from_dict(body)
    except (KeyError, TypeError, AttributeError):
        raise RequestError(
            ErrorCode.INVALID_WORKFLOW,
            "The workflow is incomplete: it needs a name, and each node an id and a capability.",
        ) from None


def _check_client(value: object, name: str) -> AnyClient:
    if not isinstance(value, AnyClient):
        raise UsageError(f"{name} is not a Client of the toolkit")
    return value


def _open_server_client(
    base_url: str | None = None, key_variable: str = KEY_VARIABLE, profile: str | None = None
) -> AnyClient:
    key = os.environ.get(key_variable)
    has_profile = choose_profile(base_url, profile) is not None
    if not key and (key_variable != KEY_VARIABLE or not has_profile):
        raise UsageError(f"{key_variable} is not set: set it to the server's key")
    # The client reads the usual variable itself, because a profile's address has another key.
    return AnyClient(base_url, None if key_variable == KEY_VARIABLE else key, profile=profile)


def load_ipython_extension(shell: "InteractiveShell") -> None:
    """Register the magics, as `%load_ext toolkit` does, and complete toolkit calls."""
    shell.register_magics(ToolkitMagics)
    attach_matcher(shell)
