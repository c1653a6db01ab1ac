"""Resolution of `--format`."""

from tipcflow.domain import ConfigError
from tipcflow.parse import FORMATS
from tipcflow.parse.training.kinds import readers_of
from tipcflow.parse.training.side import AUXILIARY_KINDS


def named_format(name: str) -> str:
    """The name of a built-in format, or the definition of a format in configs/formats.

    Raises:
        ConfigError: no such format; lists the known ones.
    """
    if name in ("auto", *FORMATS, *AUXILIARY_KINDS):
        return name
    from tipcflow.config.formats import definition, own_formats
    from tipcflow.config.settings import settings

    folder = settings().config_dir
    own_format = definition(name, folder)
    if not own_format:
        names = ", ".join(("auto", *FORMATS, *AUXILIARY_KINDS, *own_formats(folder)))
        raise ConfigError("is not a log format", key="--format", found=name, expected=f"one of {names}")
    readers_of(own_format)
    return own_format
