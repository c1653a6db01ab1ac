"""Formats of training logs that a user adds: configs/formats/<name>.yaml."""

from pathlib import Path


def definition(name: str, config_dir: Path) -> str:
    """The definition of the format of that name, as JSON; '' when there is no such file."""
    return ""


def own_formats(config_dir: Path) -> list[str]:
    """The names of all formats that a user added."""
    return sorted(path.stem for path in (config_dir / "formats").glob("*.yaml"))
