"""Names of arguments in usage lines, tables and errors: `PARAMS`, as in the documentation, not `{params}`."""

import re
from typing import Any

# A name that already shows what is optional and repeated: `[PARAMS]...`, `A B [C]`.
_WRITTEN = re.compile(r"[\[\] …]|\.\.\.")


def name_arguments(command: Any) -> None:
    """Print the arguments of a command and of its subcommands in capital letters, optional ones in brackets."""
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            parameter.metavar = parameter.metavar or parameter.name.upper()
            usage = _usage(parameter.metavar, required=parameter.required, repeated=parameter.nargs != 1)
            parameter.get_usage_pieces = lambda ctx, usage=usage: [usage]
    for child in getattr(command, "commands", {}).values():
        name_arguments(child)


def _usage(name: str, *, required: bool, repeated: bool) -> str:
    if _WRITTEN.search(name):
        return name
    return (name if required else f"[{name}]") + ("..." if repeated else "")
