"""The magics of `%load_ext toolkit`: thin sugar over the client; each returns its result.

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
from toolkit.contract.run_options import RUN_OPTIONS, RunOptions
from toolkit.contract.suggestions import ask_meant, suggest_name
from toolkit.contract.usage import DEFAULT_GROUPS, USAGE_GROUPS
from toolkit.input_parsing import check_workflow_ids, parse_document, parse_fields
from toolkit.notebook.cell_lines import point_at_cell
from toolkit.notebook.completion.matcher import attach_matcher
from toolkit.notebook.templating import fill_text, fill_values
from toolkit.profiles.resolution import choose_profile, names_server

if TYPE_CHECKING:
    from argparse import Namespace

    from IPython.core.interactiveshell import InteractiveShell

CLIENT_VARIABLE = "toolkit_client"
KEY_VARIABLE = "TOOLKIT_API_KEY"


def _make_argument(name: str) -> Callable[[Any], Any]:
    """Make the argument for an option of a run."""
    kinds = get_args(get_type_hints(RunOptions)[name])
    choices = [word for kind in kinds for word in get_args(kind)]
    flag = f"--{name.replace('_', '-')}"
    words = RUN_OPTIONS[name]
    if bool in kinds:
        return argument(flag, action="store_true", default=None, help=words)
    return argument(
        flag, type=float if float in kinds else str, choices=choices or None, help=words
    )


def _take_options(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Add several options to a magic, in their order."""

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
    argument("--tag", action="append", help="a word to find it by in lists; repeatable"),
    argument("--note", help="a remark on it"),
)
_waiting = _take_options(
    argument("--no-wait", action="store_true", help="only start it"),
    argument("-q", "--quiet", action="store_true", help="show no progress"),
    argument("--to", metavar="NAME", help="also put the result into this variable"),
)


@magics_class
class ToolkitMagics(Magics):
    """Magics for capabilities, runs, tasks and workflows in cells."""

    shell: "InteractiveShell"
    _told: "weakref.ref[AnyClient] | None" = None  # the client last reported to a person

    @no_var_expand
    @magic_arguments()
    @argument("name", nargs="?", help="one capability, such as llm.generate@1; all by default")
    @line_magic
    def capabilities(self, line: str) -> Any:
        """List the capabilities and their providers."""
        name = _parse_line(self.capabilities, line).name
        area = self._get_client().capabilities
        return area.get(name) if name else area.list()

    @no_var_expand
    @magic_arguments()
    @argument("vendors", nargs="*", help="register the conventional variables of these")
    @argument("--client", metavar="NAME", help="have the magics use the client in this variable")
    @argument("--sandbox", action="store_true", help="open an engine here: no keys, no bills")
    @argument("--data-dir", help="open an engine here, with its data in this folder")
    @argument("--base-url", help="use this server")
    @argument("--profile", metavar="NAME", help="use this profile of `toolkit login`")
    @argument(
        "--api-key-env", metavar="VARIABLE", default=KEY_VARIABLE, help="the server's key is there"
    )
    @line_magic
    def connect(self, line: str) -> Any:
        """Choose the client that all magics use, and connect vendors to it.

        Without vendors and options, show which vendors' variables are set here. Pass only the
        name of the variable that holds a key, never the key.
        """
        given = _parse_line(self.connect, line)
        chosen = self._choose_client(given)
        if chosen is not None:
            self.shell.push({CLIENT_VARIABLE: chosen})
            if not given.vendors:
                return chosen
        area = self._get_client().connections
        return area.connect(*given.vendors) if given.vendors else area.discover()

    @no_var_expand
    @magic_arguments()
    @argument("capability", help="such as llm.generate or llm.generate@1")
    @argument("fields", nargs="*", help="more of its input: name=text, or name:=JSON")
    @_run_options
    @_labels
    @_waiting
    @cell_magic
    def run(self, line: str, cell: str) -> Any:
        """Run one capability; the cell is its main text, with {variables} filled in.

        The main text is the first field that the input requires: the objective of a text, the
        prompt of an image. The result is the run.
        """
        given = _parse_line(self.run, line)
        with point_at_cell("run", line, cell):
            made = self._start_run(given, cell)
        return self._wait_for(made, given)

    def _start_run(self, given: "Namespace", cell: str) -> Any:
        client = self._get_client()
        values = fill_values(parse_fields(given.fields), self.shell.user_ns)
        text = fill_text(cell, self.shell.user_ns).strip()
        if text:
            main = find_main_field(client.capabilities.get(given.capability).record.input_schema)
            if main in values:
                raise UsageError(f"{main} is given twice: on the line, and as the cell.")
            values[main] = text
        options = cast("RunOptions", {name: getattr(given, name) for name in RUN_OPTIONS})
        watched = not given.no_wait and not given.quiet
        return client.runs.create(
            given.capability,
            values,
            stream=watched,
            tags=given.tag,
            note=given.note,
            **options,
        )

    @no_var_expand
    @magic_arguments()
    @argument("--plan-only", action="store_true", help="only plan it: the result is the plan")
    @_task_limits
    @argument("--planner", choices=get_args(PlannerChoice), help="rules, a language model, or auto")
    @argument("--review", choices=get_args(ReviewMode), help="checks, or a language model as well")
    @_labels
    @_waiting
    @cell_magic
    def task(self, line: str, cell: str) -> Any:
        """Plan, run and review the objective in the cell, with {variables} filled in."""
        given = _parse_line(self.task, line)
        with point_at_cell("task", line, cell):
            made = self._start_task(given, cell)
        if given.plan_only:
            return self._store_result(made, given)
        return self._wait_for(made, given)

    def _start_task(self, given: "Namespace", cell: str) -> Any:
        """Start a task, or only make its plan."""
        objective = fill_text(cell, self.shell.user_ns).strip()
        limits = {
            "max_cost_usd": given.max_cost_usd,
            "optimize_for": given.optimize_for,
            "planner": given.planner,
        }
        if given.plan_only:
            return self._get_client().plans.create(objective, **limits)
        return self._get_client().tasks.create(
            objective,
            **limits,
            review=given.review,
            endpoint_id=given.endpoint_id,
            compute_id=given.compute_id,
            tags=given.tag,
            note=given.note,
        )

    @no_var_expand
    @magic_arguments()
    @argument("--draw", action="store_true", help="only draw it: the result is the Workflow")
    @_waiting
    @cell_magic
    def workflow(self, line: str, cell: str) -> Any:
        """Run a workflow; the cell is its body as YAML or JSON, {variables} filled into texts."""
        given = _parse_line(self.workflow, line)
        with point_at_cell("workflow", line, cell, is_document=True):
            found = check_workflow_ids(parse_document(cell, "The cell", 2), "The cell")
            body = fill_values(found, self.shell.user_ns)
            drawn = _parse_workflow(body) if given.draw else None
            made = None if given.draw else self._get_client().workflows.create(body)
        return self._wait_for(made, given) if drawn is None else self._store_result(drawn, given)

    @no_var_expand
    @magic_arguments()
    @argument("group_by", nargs="*", help=f"some of {', '.join(USAGE_GROUPS)}")
    @line_magic
    def usage(self, line: str) -> Any:
        """Show the usage and its cost."""
        groups = _parse_line(self.usage, line).group_by or DEFAULT_GROUPS
        client = self._get_client()
        lines = client.usage.list(groups)
        print(f"{client.info()}")
        return lines

    def _get_client(self) -> AnyClient:
        """Return the chosen client, the notebook's own client, or a new client."""
        name, found = find_notebook_client(self.shell.user_ns)
        if found is None:
            name = CLIENT_VARIABLE
            found = _open_server_client() if names_server() else AnyClient.local()
            self.shell.push({CLIENT_VARIABLE: found})
        if self._told is None or self._told() is not found:
            self._told = weakref.ref(found)
            print(f"The magics use `{name}`: {repr(found).strip('<>')}.")
        return found

    def _choose_client(self, given: "Namespace") -> AnyClient | None:
        """Return the client that the options of `%connect` choose, or None without options."""
        here = given.sandbox or given.data_dir is not None
        if here + bool(given.base_url or given.profile) + bool(given.client) > 1:
            raise UsageError("name one: --client, --base-url, --profile, or an engine here")
        if given.client:
            if given.client not in self.shell.user_ns:
                names = self.shell.user_ns
                clients = [name for name, one in names.items() if isinstance(one, AnyClient)]
                hint = suggest_name(given.client, clients)
                raise UsageError(f"there is no variable {given.client}; {hint}".removesuffix("; "))
            return _check_client(self.shell.user_ns[given.client], given.client)
        if given.base_url or given.profile:
            return _open_server_client(given.base_url, given.api_key_env, given.profile)
        return AnyClient.local(given.data_dir, sandbox=given.sandbox) if here else None

    def _wait_for(self, made: Any, given: "Namespace") -> Any:
        """Wait for work; set the result variable even if the work fails."""
        self._store_result(made, given)
        return made if given.no_wait else made.wait(progress=not given.quiet)

    def _store_result(self, made: Any, given: "Namespace") -> Any:
        if given.to:
            if not given.to.isidentifier():
                raise UsageError(f"{given.to} is no name of a variable")
            self.shell.push({given.to: made})
        return made


def find_notebook_client(names: Mapping[str, Any]) -> tuple[str, AnyClient | None]:
    """Find the client that the magics use, and its variable.

    It is the client that `%connect` chose, otherwise the notebook's own: `client`, or the newest.

    Raises:
        UsageError: if the chosen variable holds something else.
    """
    if names.get(CLIENT_VARIABLE) is not None:
        return CLIENT_VARIABLE, _check_client(names[CLIENT_VARIABLE], CLIENT_VARIABLE)
    if isinstance(names.get("client"), AnyClient):
        return "client", names["client"]
    own = [(name, one) for name, one in names.items() if isinstance(one, AnyClient)]
    own = [(name, one) for name, one in own if not name.startswith("_")]
    return own[-1] if own else ("", None)


def find_main_field(schema: dict[str, Any]) -> str:
    """Return the field that a cell fills: the first required field, otherwise the first field."""
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
        raise UsageError(f"{error}: put text with spaces between a pair of quotes") from None
    # Paths and URLs are long, so their parts are checked.
    if any(looks_like_key(part) for word in words for part in re.split("[=/]", word)):
        raise UsageError("that looks like a key itself: give the name of its variable instead")
    try:
        given: Namespace = magic.parser.parse_args(words)
    except UsageError as error:
        raise UsageError(_explain_usage(str(error), words, magic)) from None
    return given


def _explain_usage(told: str, words: list[str], magic: Any) -> str:
    """Suggest the meant name in a message about an unknown option or an invalid choice."""
    options = re.findall(r"--[a-z][\w-]*", magic.parser.format_usage())
    for word in words:
        name = word.partition("=")[0]
        if name.startswith("--") and name not in options:
            return f"unrecognized arguments: {name}; {suggest_name(name, options)}"
    for value in re.findall(r"invalid choice: '([^']*)'", told):
        choices = re.findall(r"'([^']*)'", told.partition("choose from")[2]) or [
            word.strip(" )") for word in told.partition("choose from")[2].split(",")
        ]
        meant = ask_meant(value, choices)
        return f"{told}. {meant}".removesuffix(". ")
    return told


def _parse_workflow(body: dict[str, Any]) -> Workflow:
    try:
        return Workflow.from_dict(body)
    except (KeyError, TypeError, AttributeError):
        raise RequestError(
            ErrorCode.INVALID_WORKFLOW,
            "Give a name, and nodes that each have an id and a capability.",
        ) from None


def _check_client(found: object, name: str) -> AnyClient:
    if not isinstance(found, AnyClient):
        raise UsageError(f"{name} is no Client of the toolkit")
    return found


def _open_server_client(
    base_url: str | None = None, key_variable: str = KEY_VARIABLE, profile: str | None = None
) -> AnyClient:
    key = os.environ.get(key_variable)
    has_profile = choose_profile(base_url, profile) is not None
    if not key and (key_variable != KEY_VARIABLE or not has_profile):
        raise UsageError(f"{key_variable} is not set: put the server's key there")
    # The client reads the usual variable itself, because a profile's address has another key.
    return AnyClient(base_url, None if key_variable == KEY_VARIABLE else key, profile=profile)


def load_ipython_extension(shell: "InteractiveShell") -> None:
    """Register the magics, as `%load_ext toolkit` does, and complete toolkit calls."""
    shell.register_magics(ToolkitMagics)
    attach_matcher(shell)
