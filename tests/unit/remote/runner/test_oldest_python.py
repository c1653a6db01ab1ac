"""The runner's sources, as a Python 3.7 would see them."""

import ast
from pathlib import Path

import pytest

from tipcflow.remote import bundle

SOURCES = sorted((Path(bundle.__file__).parent / "runner").glob("*.py"))
# Names and parameters that came after 3.7; a real 3.7 runs the runner where there is one, but not everywhere.
NEWER = {
    *("removeprefix", "removesuffix", "bit_count", "add_note", "prod", "dist", "isqrt", "perm", "comb", "lcm"),
    *("cache", "cached_property", "singledispatchmethod", "pairwise", "batched", "fmean", "randbytes", "unparse"),
    *("pidfd_open", "pidfd_send_signal", "memfd_create", "waitstatus_to_exitcode", "get_native_id", "to_thread"),
    *("Protocol", "Final", "Literal", "TypedDict", "Annotated", "ParamSpec", "TypeAlias", "StrEnum", "UTC"),
    *("is_relative_to", "with_stem", "hardlink_to"),
}
NEWER_PARAMETERS = {
    *("missing_ok", "dirs_exist_ok", "strict", "root_dir", "process_group", "pipesize", "umask", "extra_groups"),
    *("usedforsecurity", "cancel_futures", "kw_only", "slots"),
}
BUILTIN_TYPES = {"dict", "list", "set", "tuple", "frozenset", "type"}


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_sources_use_nothing_newer(source):
    """What a parser of 3.7 accepts may still fail when it runs."""
    tree = ast.parse(source.read_text(), feature_version=(3, 7))
    hints = {id(part) for node in ast.walk(tree) for hint in annotations(node) for part in ast.walk(hint)}
    assert not hints or any(
        isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body
    ), "annotations are not looked at when they are text"
    for node in ast.walk(tree):
        where = f"{source.name}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Attribute):
            assert node.attr not in NEWER, where
            plain = isinstance(node.value, ast.Name) and (node.value.id, node.attr) == ("shlex", "join")
            assert not plain, where
        elif isinstance(node, ast.ImportFrom):
            assert not {name.name for name in node.names} & NEWER, where
        elif isinstance(node, ast.keyword):
            assert node.arg not in NEWER_PARAMETERS, where
        elif isinstance(node, ast.Subscript) and id(node) not in hints:
            assert not (isinstance(node.value, ast.Name) and node.value.id in BUILTIN_TYPES), where
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr) and id(node) not in hints:
            assert not any(isinstance(side, ast.Dict) for side in (node.left, node.right)), where


def annotations(node):
    """The type hints that stand at a node."""
    found = [getattr(node, "annotation", None), getattr(node, "returns", None)]
    return [hint for hint in found if isinstance(hint, ast.AST)]


def test_the_static_check_can_fail():
    bad = ["x.removeprefix('a')", "from typing import Protocol", "p.unlink(missing_ok=True)", "A = dict[str, int]"]
    for text in [*bad, "{} | other"]:
        with pytest.raises(AssertionError, match=r"bad\.py:1"):
            test_sources_use_nothing_newer(Source(text))
    with pytest.raises(SyntaxError):
        test_sources_use_nothing_newer(Source("def f(a, /): pass"))


class Source:
    """A file that is none."""

    name = "bad.py"

    def __init__(self, text):
        self.text = text

    def read_text(self):
        return self.text
