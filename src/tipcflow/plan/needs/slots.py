"""Values of the suite file that replace those of the params file."""

from collections.abc import Mapping

from tipcflow.domain import ConfigError, Substitution
from tipcflow.domain.errors import did_you_mean
from tipcflow.params import ParamsFile


def replaced(text: str, params: ParamsFile, slots: Mapping[str, str]) -> str:
    """Return the params file's text with the values of `slots`.

    Raises:
        ConfigError: the layout or the file does not have a slot; the error is about the suite file, which the
            planner does not know.
    """
    lines = text.split("\n")
    for name, value in slots.items():
        slot = params.slots.get(name)
        if slot is None or not slot.present:
            names = sorted(key for key, candidate in params.slots.items() if candidate.present)
            raise ConfigError(
                f"{params.file} has no such slot",
                key=f"slots.{name}",
                found=name,
                expected=f"one of {', '.join(names)} (layout {params.layout} of {params.dialect})",
                hint=did_you_mean(name, names),
            )
        lines[slot.line - 1] = f"{slot.key}:{value}"
    return "\n".join(lines)


def notes(params: ParamsFile, slots: Mapping[str, str]) -> tuple[Substitution, ...]:
    """Return the replaced values, as the plan shows them.

    Args:
        params: the params file as it is in the suite.
    """
    return tuple(
        Substitution(what=name, found=params[name].full, used=value, because="`slots` of the suite file")
        for name, value in slots.items()
        if params[name].full != value
    )
