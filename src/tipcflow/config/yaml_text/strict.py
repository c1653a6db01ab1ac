"""YAML as plain data with line numbers, without the surprises of YAML 1.1.

`yes`, `on`, `010` and `1:30` are refused with what to write instead; aliases, depth and size are bounded; merge
keys, tags and keys that are not scalars are refused. Every problem is a ConfigError with file, line and key.
"""

import re
from collections.abc import Callable
from typing import Any

import yaml

from tipcflow.domain.characters import describe, first_invisible
from tipcflow.domain.errors import ConfigError

Path = tuple[str | int, ...]
Lines = dict[Path, int]

# A configuration file of any practical size is far below these bounds.
MAX_CHARACTERS, MAX_DEPTH, MAX_VALUES = 4_000_000, 40, 200_000
_TAG = "tag:yaml.org,2002:"
_INT = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(
    r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
)
_SAFE = yaml.SafeLoader
# Faster than the loader in Python, if PyYAML was built with libyaml. Its errors have other words, and it
# reads some characters, tags, `?`, block scalars, directives and empty documents differently: the loader in Python
# decides about those.
_C_LOADER: Any = getattr(yaml, "CSafeLoader", None)
_PLAIN_TEXT = re.compile(r"(?!.*^(---|%))[\n\x20\x22-\x3d\x40-\x7b\x7d\x7e]*", re.MULTILINE | re.DOTALL)


class _Loader(yaml.SafeLoader):
    """SafeLoader that counts the depth of nodes, because its composer is recursive."""

    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Compose a node; one that is too deep is an error at its line."""
        self.depth += 1
        try:
            if self.depth > MAX_DEPTH:
                mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
                raise yaml.MarkedYAMLError(
                    problem=f"is nested more than {MAX_DEPTH} levels deep", problem_mark=mark
                )
            return super().compose_node(parent, index)
        finally:
            self.depth -= 1


def read_yaml(text: str, *, file: str) -> tuple[Any, Lines]:
    """Return the plain data of a YAML text, and the 1-based line of every key and item by its path.

    Raises:
        ConfigError: the text is empty or no valid YAML, exceeds a bound, repeats a key, or holds a value that YAML
            reads differently than it looks.
    """
    if len(text) > MAX_CHARACTERS:
        raise ConfigError(
            "is too large", file=file, found=f"{len(text)} characters", expected=f"at most {MAX_CHARACTERS}"
        )
    root = _compose(text, file)
    if root is None:
        raise ConfigError("is empty", file=file, expected="a YAML mapping of keys")
    return _Builder(file).build(root)


def _compose(text: str, file: str) -> Any:
    try:
        return _compose_quickly(text) or yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 0
        raise ConfigError(f"is not YAML: {error.problem or error.context}", file=file, line=line) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        character = error.character if isinstance(error.character, str) else chr(error.character)
        raise ConfigError(
            f"is not YAML: {describe(character)} is not allowed", file=file, line=line, expected="visible text"
        ) from error
    except (ValueError, OverflowError, LookupError, RecursionError) as error:  # such as "\UFFFFFFFF"
        raise ConfigError(f"is not YAML: {error}", file=file, expected="visible text") from error


def _compose_quickly(text: str) -> yaml.Node | None:
    """Return the node that the loader in Python would return; None if that one has to read the text."""
    if _C_LOADER is None or not _PLAIN_TEXT.fullmatch(text):
        return None
    try:
        depth = 0
        for event in yaml.parse(text, Loader=_C_LOADER):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth >= MAX_DEPTH:  # The composer is recursive, in C.
                return None
        return yaml.compose(text, Loader=_C_LOADER)
    except yaml.YAMLError:
        return None


class _Builder:
    """Plain data of composed nodes."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.lines: Lines = {}
        self.values = 0
        self.open: set[int] = set()

    def build(self, root: yaml.Node) -> tuple[Any, Lines]:
        return self._node(root, ()), self.lines

    def _node(self, node: yaml.Node, path: Path) -> Any:
        self.lines.setdefault(path, node.start_mark.line + 1)
        self.values += 1
        if self.values > MAX_VALUES:
            expected = f"at most {MAX_VALUES} values, aliases included"
            raise self._error("holds too many values", node, path, found="", expected=expected)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        if id(node) in self.open or len(path) > MAX_DEPTH:
            raise self._error("contains itself", node, path, found="", expected="an alias of another value")
        self.open.add(id(node))
        try:
            return self._mapping(node, path) if isinstance(node, yaml.MappingNode) else self._list(node, path)
        finally:
            self.open.discard(id(node))

    def _list(self, node: yaml.Node, path: Path) -> list[Any]:
        self._tagged(node, path, "seq")
        return [self._node(item, (*path, index)) for index, item in enumerate(node.value)]

    def _mapping(self, node: yaml.Node, path: Path) -> dict[Any, Any]:
        self._tagged(node, path, "map")
        result: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise self._error(
                    "a key is a list or a mapping", key_node, path, found="", expected="a word as key"
                )
            if key_node.tag == f"{_TAG}merge":
                expected = "the keys themselves"
                raise self._error("merge keys are not supported", key_node, path, found="<<", expected=expected)
            key = self._scalar(key_node, path)
            line = key_node.start_mark.line + 1
            if key in result:
                raise ConfigError(
                    "duplicate key", file=self.file, line=line, key=str(key)[:120], expected="each key once"
                )
            self.lines[(*path, key)] = line
            result[key] = self._node(value_node, (*path, key))
        return result

    def _scalar(self, node: yaml.ScalarNode, path: Path) -> Any:
        kind = node.tag.removeprefix(_TAG)
        build = _SCALARS.get(kind) if node.tag.startswith(_TAG) else None
        if build is None:
            raise self._error(f"has the tag {node.tag!r}", node, path, expected="a value without a tag")
        expected = _instead(kind, node.value)
        if expected:
            raise self._error("YAML does not read this value as written", node, path, expected=expected)
        try:
            value = build(node)
        except (ValueError, OverflowError, AttributeError, LookupError) as error:
            raise self._error(
                f"is not a valid {kind}", node, path, expected=f"a {kind}, or text in quotes"
            ) from error
        bad = first_invisible(value, allowed=" \t\n") if isinstance(value, str) else None
        if bad:
            raise self._error(f"holds the invisible character {bad[1]}", node, path, expected="visible text")
        return value

    def _tagged(self, node: yaml.Node, path: Path, kind: str) -> None:
        if node.tag != _TAG + kind:
            raise self._error(f"has the tag {node.tag!r}", node, path, found="", expected="a value without a tag")

    def _error(
        self, message: str, node: yaml.Node, path: Path, *, expected: str, found: str | None = None
    ) -> ConfigError:
        text = str(node.value)[:120] if found is None else found
        key = ".".join(str(part) for part in path)[:300]
        return ConfigError(
            message, file=self.file, line=node.start_mark.line + 1, key=key, found=text, expected=expected
        )


def _instead(kind: str, text: str) -> str:
    """Return what to write instead of a scalar whose value is not the one that it looks like; '' if it is."""
    if kind == "bool" and text.lower() not in ("true", "false"):
        meant = "true" if text.lower() in ("yes", "on", "y") else "false"
        return f"{meant}, or '{text}' in quotes for text"
    if kind == "int" and not _INT.fullmatch(text):
        value = _number(text)
        return (
            f"{value}, or '{text}' in quotes for text"
            if value
            else f"a decimal number, or '{text[:40]}' in quotes"
        )
    if kind == "float" and not _FLOAT.fullmatch(text):
        return f"a decimal number such as 0.5, or '{text[:40]}' in quotes for text"
    return ""


def _number(text: str) -> str:
    """Return the decimal form of a number that YAML 1.1 accepts (octal, sexagesimal, ...); '' if there is none."""
    if len(text) > 40:
        return ""
    try:
        return str(_SAFE.construct_yaml_int(_SAFE(""), yaml.ScalarNode(f"{_TAG}int", text)))
    except (ValueError, LookupError):  # `!!int ""`
        return ""


def _date(node: yaml.ScalarNode) -> Any:
    return _SAFE("").construct_yaml_timestamp(node)


_SCALARS: dict[str, Callable[[yaml.ScalarNode], Any]] = {
    "str": lambda node: node.value,
    "value": lambda node: node.value,
    "null": lambda node: None,
    "bool": lambda node: node.value.lower() == "true",
    "int": lambda node: int(node.value),
    "float": lambda node: float(re.sub(r"\.(?=inf|nan)", "", node.value.lower())),
    "timestamp": _date,
}
