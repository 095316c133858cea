"""A group whose commands are loaded on use: a call loads only the command that it names."""

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

import toolkit

if TYPE_CHECKING:
    from collections.abc import MutableMapping


@dataclass(frozen=True, slots=True)
class CommandLocation:
    """Where a command is defined, so that its module is imported only when it is needed.

    Attributes:
        module: the name of the module below `toolkit`.
        member: the function, or the `typer.Typer` of a group, in it.
        panel: its heading in the help.
    """

    module: str
    member: str
    panel: str
    hidden: bool = False

    def load_command(self, name: str) -> "TyperCommand | TyperGroup":
        """Import the module, and make the command, or the group, of its member."""
        member = self._import_member()
        root = typer.Typer(add_completion=False)
        root.callback()(_do_nothing)  # without one, a single command would be the root itself
        if isinstance(member, typer.Typer):
            root.add_typer(member, name=name, rich_help_panel=self.panel, hidden=self.hidden)
        else:
            root.command(name, rich_help_panel=self.panel, hidden=self.hidden)(member)
        command = cast("TyperGroup", get_command(root)).commands[name]
        return cast("TyperCommand | TyperGroup", command)

    def make_summary(self, name: str) -> TyperCommand:
        """Make only the listed part of the command, because its parameters take far longer."""
        member = self._import_member()
        summary = member.info.help if isinstance(member, typer.Typer) else inspect.getdoc(member)
        return TyperCommand(name, help=summary, rich_help_panel=self.panel, hidden=self.hidden)

    def _import_member(self) -> Any:
        return getattr(import_module(f"{toolkit.__name__}.{self.module}"), self.member)


def _do_nothing() -> None:
    pass


class _LazyCommands(Mapping[str, Any]):
    """Commands by name, each made on first access."""

    def __init__(self, homes: Mapping[str, CommandLocation]) -> None:
        self._locations = homes
        self._loaded: dict[str, TyperCommand | TyperGroup] = {}

    def __getitem__(self, name: str) -> "TyperCommand | TyperGroup":
        if name not in self._loaded:
            self._loaded[name] = self._locations[name].load_command(name)
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._locations)

    def __len__(self) -> int:
        return len(self._locations)


class LazyGroup(TyperGroup):
    """A group of the commands whose locations a subclass gives."""

    locations: ClassVar[Mapping[str, CommandLocation]]

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = cast("MutableMapping[str, Any]", _LazyCommands(self.locations))
        self._is_listing = False

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - typer's signature
        """Return the names of the commands, without loading any command."""
        return list(self.commands)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help from summaries of the commands."""
        self._is_listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._is_listing = False

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, or only its summary while commands are listed."""
        if self._is_listing:
            return self.locations[cmd_name].make_summary(cmd_name)
        return super().get_command(ctx, cmd_name)
