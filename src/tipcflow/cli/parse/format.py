"""Resolution of `--format`."""

from tipcflow.domain import ConfigError
from tipcflow.parse import FORMATS
from tipcflow.parse.training.kinds import readers_of
from tipcflow.parse.training.side import SIDES


def named_format(name: str) -> str:
    """The name of a built-in format, or the definition of a format in configs/formats.

    Raises:
        ConfigError: no such format; lists the known ones.
    """
    if name in ("auto", *FORMATS, *SIDES):
        return name
    from tipcflow.config.formats import definition, own_formats
    from tipcflow.config.settings import settings

    folder = settings().config_dir
    found = definition(name, folder)
    if not found:
        known = ", ".join(("auto", *FORMATS, *SIDES, *own_formats(folder)))
        raise ConfigError("is not a log format", key="--format", found=name, expected=f"one of {known}")
    readers_of(found)
    return found
