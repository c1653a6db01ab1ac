"""The files that a file needs, according to its text: includes of YAML configs, imports of Python, named paths.

Modules that are imported by a computed name are not seen here; recorded opened files are.
"""

import ast
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator

import yaml

# The keys by which the suites' config loaders include other files.
_BASES = frozenset({"_BASE_", "_base_", "BASE", "base_config"})
_YAML = (".yaml", ".yml")
_NAMING = (".txt", ".sh")
# Longer files are data.
_LONGEST = 1_000_000
_WORD = re.compile(r"[^\s:|=;,'\"\[\](){}<>$`]+")


class Tree:
    """The files of a suite at one ref.

    Args:
        paths: relative to the suite's root, with `/`.
        read: path -> text; raises OSError or UnicodeDecodeError if it cannot be read.
        removed: paths that the ref no longer has; other files may still name them.
        tops: folders from which packages are imported, '' for the root.
    """

    def __init__(
        self,
        paths: Iterable[str],
        read: Callable[[str], str],
        *,
        removed: Iterable[str] = (),
        tops: tuple[str, ...] = ("",),
    ) -> None:
        self.paths = frozenset(paths)
        self._tops = tops
        self._known = self.paths.union(removed)
        self._read = read
        self._needs: dict[str, frozenset[str]] = {}

    def with_changed(self, changed: Iterable[str]) -> "Tree":
        """This tree with the paths of a change: a file that needs a removed one is affected by its removal."""
        return Tree(self.paths, self._read, removed=changed, tops=self._tops)

    def text(self, path: str) -> str:
        """The text of a file, '' if it cannot be read."""
        try:
            return self._read(path) if path in self.paths else ""
        except (OSError, UnicodeDecodeError):
            return ""

    def needs(self, path: str) -> frozenset[str]:
        """The files that this file includes, imports or names; empty if it cannot be read or parsed."""
        if path not in self._needs:
            self._needs[path] = (
                frozenset(self._find_references(path)) - {path} if path in self.paths else frozenset()
            )
        return self._needs[path]

    def _find_references(self, path: str) -> Iterator[str]:
        if not path.endswith((".py", *_YAML, *_NAMING)):
            return
        try:
            text = self._read(path)
        except (OSError, UnicodeDecodeError):
            return
        if len(text) > _LONGEST:
            return
        if path.endswith(".py"):
            yield from self._imports(path, text)
        elif path.endswith(_YAML):
            yield from self._includes(path, text)
        else:
            yield from self._named(_WORD.findall(text), path)

    def _includes(self, path: str, text: str) -> Iterator[str]:
        try:
            root = yaml.compose(text, Loader=yaml.SafeLoader)
        except (yaml.YAMLError, ValueError, RecursionError):
            return
        folder = posixpath.dirname(path)
        pairs = root.value if isinstance(root, yaml.MappingNode) else ()
        for key, value in pairs:
            if isinstance(key, yaml.ScalarNode) and key.value in _BASES:
                bases = value.value if isinstance(value, yaml.SequenceNode) else [value]
                yield from self._there(
                    posixpath.join(folder, base.value) for base in bases if isinstance(base, yaml.ScalarNode)
                )
        yield from self._named(_scalars(root), path)

    def _named(self, words: Iterable[str], path: str) -> Iterator[str]:
        """Words that are the path of a file, from the root or from the file's folder."""
        folder = posixpath.dirname(path)
        for word in words:
            if "." in word:
                yield from self._there((word, posixpath.join(folder, word)))

    def _there(self, paths: Iterable[str]) -> Iterator[str]:
        for path in paths:
            if (target := posixpath.normpath(path)) in self._known:
                yield target

    def _imports(self, path: str, text: str) -> Iterator[str]:
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return
        folder = posixpath.dirname(path)
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield from self._module(alias.name, (), (*self._tops, folder))
            elif isinstance(node, ast.ImportFrom):
                names = tuple(alias.name for alias in node.names)
                above = folder
                for _ in range(max(0, node.level - 1)):
                    above = posixpath.dirname(above)
                roots = (above,) if node.level else (*self._tops, folder)
                yield from self._module(node.module or "", names, roots)

    def _module(self, module: str, names: tuple[str, ...], roots: tuple[str, ...]) -> Iterator[str]:
        """The files of a module, of the packages around it, and of its submodules `names`."""
        parts = module.split(".") if module else []
        for root in dict.fromkeys(roots):
            inside = [posixpath.join(root, *parts[:end]) for end in range(1, len(parts) + 1)] or [root]
            own = inside[-1]
            for place in (*inside, *(posixpath.join(own, name) for name in names)):
                yield from self._there((f"{place}.py", f"{place}/__init__.py"))


def _scalars(node: yaml.Node | None) -> Iterator[str]:
    """All strings of a YAML document; aliases are followed once."""
    waiting, seen = [node], set()
    while waiting:
        current = waiting.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        if isinstance(current, yaml.ScalarNode):
            yield current.value
        elif isinstance(current, yaml.MappingNode):
            waiting += [value for _, value in current.value]
        elif isinstance(current, yaml.SequenceNode):
            waiting += current.value


def reachable(roots: Iterable[str], tree: Tree, *, imports: bool = True) -> dict[str, str]:
    """Every file that the roots need -> the file that needs it ('' for a root).

    Args:
        imports: follow Python files, too; False for configs and params files only.
    """
    needed_by = {posixpath.normpath(root): "" for root in roots}
    waiting = list(needed_by)
    while waiting:
        path = waiting.pop(0)
        if path.endswith(".py") and not imports:
            continue
        for needed in sorted(tree.needs(path)):
            if needed not in needed_by:
                needed_by[needed] = path
                waiting.append(needed)
    return needed_by
