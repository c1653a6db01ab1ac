"""Errors about values of a command line: option or argument as typed, the value, and what is valid."""

from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from tipcflow.domain import ConfigError


def explain_values(command: Any) -> None:
    """Turn a command's refusals of values into our one-line errors; also those of its subcommands."""
    for child in getattr(command, "commands", {}).values():
        explain_values(child)
    parse_args, invoke = command.parse_args, command.invoke

    def parse(ctx: Any, args: list[str]) -> Any:
        """Read the arguments; explain a refused value."""
        try:
            return parse_args(ctx, args)
        except typer.BadParameter as error:
            explained = _explained(error)
            if explained is None:
                raise
            raise explained from error

    def call(ctx: Any) -> Any:
        """Run the command; name the option or argument in its error."""
        try:
            return invoke(ctx)
        except Exception as error:
            renamed = _with_typed_key(error, ctx.command)
            if renamed is None:
                raise
            raise renamed from error

    command.parse_args, command.invoke = parse, call


def _explained(error: typer.BadParameter) -> "ConfigError | None":
    """The error in our words, if the text is that of pydantic."""
    # Typer imports pydantic for these errors only.
    from pydantic import ValidationError

    if not isinstance(error.__cause__, ValidationError):
        return None
    from tipcflow.config.loader import invalid_value

    return invalid_value(error.__cause__.errors()[0], key=_name(error.param) if error.param else "")


def _with_typed_key(error: Exception, command: Any) -> "ConfigError | None":
    """The error with the option or argument as its key; None if the command has none of that name."""
    from tipcflow.domain import ConfigError

    if not isinstance(error, ConfigError) or error.file:
        return None
    wanted = error.key.replace("-", "_")
    name = next((_name(param) for param in command.params if param.name in (wanted, f"{wanted}s")), "")
    if not name:
        return None
    return ConfigError(error.what, key=name, found=error.found, expected=error.expected, hint=error.hint)


def _name(param: Any) -> str:
    if param.param_type_name == "argument":
        return str(param.metavar or param.name.upper())
    return str(max(param.opts, key=len))
