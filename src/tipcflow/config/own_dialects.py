"""Dialects and layouts of users: `<config>/dialects/*.yaml` and `<config>/dialects/layouts/*.yaml`."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from tipcflow.config.settings import settings
from tipcflow.config.yaml_text.strict import Lines, read_yaml
from tipcflow.domain.errors import ConfigError, why_unreadable


@dataclass(frozen=True)
class Source:
    """The plain data of one file, with the line of every key; `file` is '' for a shipped file."""

    data: dict[str, Any]
    file: str = ""
    lines: Lines | None = None

    def error(self, message: str, *path: str | int, found: str = "", expected: str = "") -> ConfigError:
        """Return the error at a path of keys, with the line of its deepest known part."""
        lines = self.lines or {}
        line = next((lines[path[:end]] for end in range(len(path), -1, -1) if path[:end] in lines), 0)
        key = ".".join(str(part) for part in path)
        return ConfigError(message, file=self.file, line=line, key=key, found=found, expected=expected)


def file_stem(name: str) -> str:
    """Return the name of the file of a dialect: `PaddleSeg/ptq` is in `PaddleSeg_ptq.yaml`."""
    return name.replace("/", "_")


def own_names() -> tuple[str, ...]:
    """Return the names of files with dialects of users, without suffix."""
    folder = _folder()
    return tuple(sorted(path.stem for path in folder.glob("*.yaml"))) if folder.is_dir() else ()


def own_state() -> tuple[tuple[str, int], ...]:
    """Return path and time of modification of every file with a dialect or layout of users.

    What was made of the files is valid while this is equal. A file that was removed meanwhile has the time 0.
    """
    folder = _folder()
    files = sorted([*folder.glob("*.yaml"), *(folder / "layouts").glob("*.yaml")]) if folder.is_dir() else []
    return tuple((str(path), _changed(path)) for path in files)


def own_dialect(name: str) -> Source | None:
    """Return the file of a dialect of a user; None if there is none.

    Raises:
        ConfigError: the file is not a YAML mapping, or its `name` does not fit the name of the file.
    """
    source = _read(_folder() / f"{file_stem(name)}.yaml")
    if source is not None and file_stem(str(source.data.get("name", ""))) != file_stem(name):
        actual, expected = str(source.data.get("name", "")), f"the name of the file, {file_stem(name)}"
        raise source.error("does not fit the file", "name", found=actual, expected=f"{expected} ('_' may be '/')")
    return source


def own_layout(name: str) -> Source | None:
    """Return the file of a layout of a user; None if there is none.

    Raises:
        ConfigError: the file is not a YAML mapping.
    """
    return _read(_folder() / "layouts" / f"{name}.yaml")


def _folder() -> Path:
    return settings().config_dir / "dialects"


def _read(path: Path) -> Source | None:
    changed = _changed(path)
    return _parsed(path, changed) if changed else None


def _changed(path: Path) -> int:
    """Return the time of modification in nanoseconds, 0 for a missing file."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=256)
def _parsed(path: Path, changed: int) -> Source:
    """Return the content of a file; `changed`, its time of modification, makes an edited file a new one."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"cannot be read: {why_unreadable(error)}", file=str(path), expected="a readable YAML file"
        ) from error
    data, lines = read_yaml(text, file=str(path))
    if not isinstance(data, dict):
        raise ConfigError("is not a mapping", file=str(path), line=1, expected="keys such as name and extends")
    return Source(data, str(path), lines)
