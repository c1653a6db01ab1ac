"""Suite files that already describe a repository: their values go before guesses."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tipcflow.cli.init.inspect import Value
from tipcflow.config.settings import shipped_configs

# Keys of a place or of a verification, which a proposal does not take over.
_OWN = frozenset({"name", "git", "folder", "subfolder", "ref", "verified"})
_GIT_S = 10


def known_values(source: str, root: Path, below: str, config_dir: Path) -> list[Value]:
    """Return the values of a suite file for the same repository and folder; none without such a file.

    Args:
        source: git URL or folder, as given.
        root: the suite's root; `below`: its folder in the repository.
        config_dir: its suite files come before the shipped ones.
    """
    names = {name for name in (_repository(source), _repository(_origin(root))) if name}
    for path, content in _files(config_dir):
        same_folder = (content.get("subfolder") or ".").strip("/") == below.strip("/")
        if _repository(str(content.get("git") or "")) in names and same_folder:
            why = f"suites/{path.name} describes this repository"
            return [Value(key, value, why) for key, value in content.items() if key not in _OWN]
    return []


def merged(guessed: list[Value], known: list[Value]) -> list[Value]:
    """Return the known values, then the guesses about other keys."""
    keys = {value.key for value in known}
    if "prints" in keys:
        keys.add("predictions")  # `prints` states whether legs print anything
    return [*known, *(value for value in guessed if value.key not in keys)]


def _files(config_dir: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    import yaml

    folders = dict.fromkeys([config_dir, *([shipped] if (shipped := shipped_configs()) else [])])
    for folder in folders:
        for path in sorted((folder / "suites").glob("*.yaml")):
            try:
                content = yaml.safe_load(path.read_text(encoding="utf-8"))
            except (OSError, ValueError, yaml.YAMLError):
                continue  # an invalid file of another suite is reported where that suite is used
            if isinstance(content, dict):
                yield path, content


def _repository(url: str) -> str:
    """Return the repository's name in lower case: `paddleclas` of https://host/owner/PaddleClas.git."""
    return re.split(r"[/:]", url.rstrip("/"))[-1].removesuffix(".git").lower()


def _origin(root: Path) -> str:
    """Return the address that a checkout was cloned from; '' if unknown."""
    command = ["git", "-C", str(root), "remote", "get-url", "origin"]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=_GIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return result.stdout.strip()
