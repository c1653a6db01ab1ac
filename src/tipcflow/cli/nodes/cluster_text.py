"""A node added to a cluster file, whose comments and order are kept."""

import secrets
from pathlib import Path

import yaml

from tipcflow.config.cluster import load_cluster
from tipcflow.config.loader import parse_yaml
from tipcflow.domain import Cluster, ConfigError, Node


def known_cluster(path: Path) -> Cluster | None:
    """The cluster of a file, None if it does not exist.

    Raises:
        ConfigError: the file is invalid.
    """
    return load_cluster(str(path), path.parent) if path.exists() else None


def check_new(cluster: Cluster | None, node: Node, file: Path) -> None:
    """Check that no node of the cluster has the same name or address.

    Raises:
        ConfigError: one has.
    """
    for other in cluster.nodes if cluster else ():
        for what in ("name", "address"):
            if getattr(other, what) == getattr(node, what):
                raise ConfigError(
                    f"a node with this {what} is already in the cluster",
                    file=str(file),
                    key=f"nodes.{what}",
                    found=getattr(node, what),
                    expected="another one" if what == "address" else "another one; set it with --name",
                )


def with_node(text: str, name: str, node: Node, *, file: str) -> str:
    """The text of a cluster file with one more node at its end.

    Args:
        text: the present text, '' for a new file.
        name: the cluster's name.

    Raises:
        ConfigError: the text cannot be extended; the message has the entry to add by hand.
    """
    entry = _entry(node)
    if not text.strip():
        return (
            f"# Written by `tipcflow nodes add`. Keys: docs/reference/configuration.md.\nname: {name}\nnodes:\n"
            + (_indented(entry, "  "))
        )
    before = parse_yaml(text, Cluster, file=file)
    wanted = before.model_copy(update={"nodes": (*before.nodes, node)})
    lines = text.splitlines()
    for place, indent in _places(lines):
        draft = "\n".join([*lines[:place], _indented(entry, indent).rstrip("\n"), *lines[place:]]) + "\n"
        try:
            if parse_yaml(draft, Cluster, file=file) == wanted:
                return draft
        except ConfigError:
            continue
    raise ConfigError("a node cannot be added to this file; add it by hand", file=file, expected=f"\n{entry}")


def write(path: Path, text: str) -> None:
    """Write a file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


def _entry(node: Node) -> str:
    data = node.model_dump(mode="json", exclude_defaults=True)
    return yaml.safe_dump([data], sort_keys=False)


def _indented(text: str, indent: str) -> str:
    return "".join(f"{indent}{line}\n" for line in text.splitlines())


def _places(lines: list[str]) -> list[tuple[int, str]]:
    """Line numbers after which the list of nodes may continue, with the indentation of its items."""
    starts = [number for number, line in enumerate(lines) if line.startswith("nodes:")]
    if not starts:
        return []
    after = starts[0] + 1
    items = [line for line in lines[after:] if line.lstrip().startswith("- ")]
    indent = items[0][: len(items[0]) - len(items[0].lstrip())] if items else "  "
    ends = [
        number
        for number in range(after, len(lines))
        if lines[number] and not lines[number].startswith((" ", "-", "#"))
    ]
    return [(ends[0] if ends else len(lines), indent)]
