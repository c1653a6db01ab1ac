"""A group of commands whose modules are imported when a command runs, not when the commands are listed."""

from collections import UserDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption
from typer.main import get_group
from typer.models import ArgumentInfo, OptionInfo

from tipcflow.cli.commands.complete import COMPLETERS
from tipcflow.cli.commands.paragraphs import join_lines
from tipcflow.cli.commands.usage import name_arguments
from tipcflow.cli.commands.values import explain_values
from tipcflow.entry import exit_on_interrupt


@dataclass(frozen=True)
class LazyCommand:
    """A command that is listed without its module.

    Attributes:
        name: as typed.
        source: `module:name` of the function, or of the `typer.Typer` of a group.
        panel: heading in the help.
        summary: one line of the help, at most 62 characters, so that it fits into 80 columns.
        example: a complete command line, without a prompt.
        examples: of a group: name of a subcommand -> its example.
        extra: the extras of the installation that the command requires, separated by commas; '' for none.
    """

    name: str
    source: str
    panel: str
    summary: str
    example: str
    examples: Mapping[str, str] = field(default_factory=dict)
    extra: str = "run"

    def load(self) -> Any:
        """Import the command."""
        module, _, name = self.source.partition(":")
        with exit_on_interrupt():
            target = getattr(import_module(module), name)
        app = typer.Typer(rich_markup_mode="rich", add_completion=False)
        epilog = _epilog(self.example)
        for function in _functions(target):
            add_completion(function)
        if isinstance(target, typer.Typer):
            app.add_typer(target, name=self.name, epilog=epilog, rich_help_panel=self.panel)
        else:
            # With a callback, a single command remains a command of a group.
            app.callback()(lambda: None)
            app.command(self.name, epilog=epilog, rich_help_panel=self.panel)(target)
        command = get_group(app).commands[self.name]
        for name, example in self.examples.items():
            command.commands[name].epilog = _epilog(example)  # type: ignore[attr-defined]
        hide_flag_types(command)
        explain_values(command)
        name_arguments(command)
        join_lines(command)
        return command


class LazyGroup(TyperGroup):
    """Lists commands from a table, and imports the one that is called. Commands of `app.command()` are added."""

    table: tuple[LazyCommand, ...] = ()

    def __init__(self, *, commands: Any = None, **attributes: Any) -> None:
        super().__init__(**attributes)
        self._listed: dict[str, Any] = {
            entry.name: TyperCommand(
                entry.name, help=entry.summary, short_help=entry.summary, rich_help_panel=entry.panel
            )
            for entry in self.table
        } | dict(commands or {})
        self.commands = _Commands({entry.name: entry for entry in self.table}, dict(commands or {}))

    def get_params(self, ctx: Any) -> Any:
        """Return the options; those of completion are added after the group was made."""
        return [_without_type(parameter) for parameter in super().get_params(ctx)]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands as plain text, because importing Rich would take most of the time."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        records = (parameter.get_help_record(ctx) for parameter in self.get_params(ctx))
        with formatter.section(typer.style("Options", bold=True)):
            formatter.write_dl([record for record in records if record is not None])
        names = self.list_commands(ctx)
        width = max(map(len, names), default=0)
        panels: dict[str, list[tuple[str, str]]] = {}
        for name in names:
            command = self.get_command(ctx, name)
            row = (name.ljust(width), command.get_short_help_str(formatter.width))
            panels.setdefault(command.rich_help_panel or "Commands", []).append(row)
        for heading, rows in panels.items():
            with formatter.section(typer.style(heading, bold=True)):
                formatter.write_dl(rows)
        self.format_epilog(ctx, formatter)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names, without importing the commands."""
        return list(self.commands)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command for a list of commands; it has a name and a summary only."""
        return self._listed.get(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command to call, imported."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if name is None else self.commands[name], rest


class _Commands(UserDict[str, Any]):
    """Name -> command; reading a command imports it."""

    def __init__(self, table: Mapping[str, LazyCommand], ready: Mapping[str, Any]) -> None:
        super().__init__({**table, **ready})

    def __getitem__(self, name: str) -> Any:
        command = super().__getitem__(name)
        if isinstance(command, LazyCommand):
            self.data[name] = command = command.load()
        return command


def add_completion(function: Callable[..., Any]) -> None:
    """Complete the parameters of a command that the table names (`complete`), unless it completes them itself."""
    for parameter, hint in get_type_hints(function, include_extras=True).items():
        for declared in getattr(hint, "__metadata__", ()):
            if isinstance(declared, OptionInfo | ArgumentInfo) and declared.autocompletion is None:
                name = f"{function.__name__}.{parameter}"
                declared.autocompletion = COMPLETERS.get(name) or COMPLETERS.get(parameter)


def _functions(target: Any) -> Iterator[Callable[..., Any]]:
    if not isinstance(target, typer.Typer):
        yield target
        return
    for entry in (target.registered_callback, *target.registered_commands):
        if entry is not None and entry.callback is not None:
            yield entry.callback


def hide_flag_types(command: Any) -> None:
    """Print no `<bool>` behind the flags of a command and of its subcommands."""
    for parameter in command.params:
        _without_type(parameter)
    help_option = command.get_help_option
    command.get_help_option = lambda ctx: _without_type(help_option(ctx))
    if not isinstance(command, LazyGroup) and isinstance(command, TyperGroup):
        for child in command.commands.values():
            hide_flag_types(child)


def _without_type(parameter: Any) -> Any:
    if isinstance(parameter, TyperOption) and parameter.is_flag:
        parameter.display_type_rich = lambda ctx: None  # type: ignore[method-assign]
    return parameter


def _epilog(example: str) -> str:
    escaped = example.replace("[", r"\[")
    return f"Example: [bold]{escaped}[/bold]"
