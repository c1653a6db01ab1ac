"""The runner's sources use nothing that came after Python 3.7, by the rules of vermin."""

import ast
from collections import defaultdict
from pathlib import Path

import pytest
import vermin
from vermin import rules

from tipcflow.remote import bundle

SOURCES = sorted((Path(bundle.__file__).parent / "runner").glob("*.py"))
OLDEST = (3, 7)
# vermin does not know the types of variables. A name that its rules only have for newer versions is thus refused
# on any value; these names also belong to older functions, or to classes of the runner.
ALSO_OLDER = {
    "HTTPException",
    "__name__",
    "call",
    "chdir",
    "cwd",
    "file",
    "files",
    "flush",
    "group",
    "join",
    "mkdir",
    "readlink",
    "status",
}
BUILTIN_TYPES = {"dict", "list", "set", "tuple", "frozenset", "type"}


def newer_names(known):
    """Names that no version up to the oldest has, out of pairs of a name and the versions that have it."""
    versions = defaultdict(list)
    for name, (_, version) in known:
        versions[name].append(version)
    return {name for name, every in versions.items() if all(v is None or v > OLDEST for v in every)} - ALSO_OLDER


CONFIG = vermin.Config()
NEWER = newer_names((name.rpartition(".")[2], found) for name, found in rules.MOD_MEM_REQS(CONFIG).items())
NEWER_PARAMETERS = newer_names((name, found) for (_, name), found in rules.KWARGS_REQS(CONFIG).items())


def problems(text):
    """What a file uses that Python 3.7 lacks."""
    try:
        tree = ast.parse(text, feature_version=OLDEST)
    except SyntaxError as error:
        return [f"line {error.lineno}: {error.msg}"]
    found = []
    visitor = vermin.visit(text, config=CONFIG, path="runner.py")
    version = visitor.minimum_versions()[1]
    if version is not None and version > OLDEST:
        found.append(f"needs Python {version[0]}.{version[1]}")
    hints = {id(part) for node in ast.walk(tree) for hint in annotations(node) for part in ast.walk(hint)}
    postponed = any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body)
    for node in ast.walk(tree):
        where = f"line {getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Attribute) and node.attr in NEWER:
            found.append(f"{where}: {node.attr}")
        elif isinstance(node, ast.keyword) and node.arg in NEWER_PARAMETERS:
            found.append(f"line {node.value.lineno}: {node.arg}=")
        elif id(node) in hints and postponed:
            continue
        elif (
            isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in BUILTIN_TYPES
        ):
            found.append(f"{where}: {node.value.id}[]")
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr) and is_dict_or_hint(node, hints):
            found.append(f"{where}: |")
    return found


def is_dict_or_hint(node, hints):
    return id(node) in hints or any(isinstance(side, ast.Dict) for side in (node.left, node.right))


def annotations(node):
    """The type hints of a node."""
    found = [getattr(node, "annotation", None), getattr(node, "returns", None)]
    return [hint for hint in found if isinstance(hint, ast.AST)]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_sources_use_nothing_newer(source):
    """Code that Python 3.7 can parse may still fail when it runs."""
    assert problems(source.read_text()) == []


@pytest.mark.parametrize(
    "text",
    [
        "x.removeprefix('a')",
        "from typing import Protocol",
        "import tomllib",
        "p.unlink(missing_ok=True)",
        "import subprocess\nsubprocess.run(['a'], umask=1)",
        "import shlex\nshlex.join([])",
        "import os\nos.pidfd_open(1)",
        "zip(a, b, strict=True)",
        "A = dict[str, int]",
        "def f(x: list[int]): pass",
        "def f(x: int | None): pass",
        "{} | other",
        "def f(a, /): pass",
        "print(f'{a=}')",
        "if (n := 3): pass",
    ],
)
def test_the_check_can_fail(text):
    assert problems(text)
    assert problems("import os\n\n\ndef f(x: 'list[int]') -> 'int | None':\n    return os.path.join(*x)\n") == []
