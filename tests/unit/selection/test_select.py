"""Which chains a change affects, on a small suite with includes, imports, records, globs and labels."""

from typing import Any

import pytest

from tipcflow.config.repository import Labels, Selection
from tipcflow.selection import Because, Change, TracedChain, Tree, reachable, select
from tipcflow.selection.globs import matches

FILES = {
    "tipc/a/train.txt": "===train===\nmodel_name:A\nnorm_train:tools/train.py -c configs/a.yaml -o x=1\n",
    "tipc/b/train.txt": "norm_train:tools/train.py -c ./configs/b.yaml\n",
    "tipc/c/train.txt": "norm_train:tools/serve.py\n",
    "configs/a.yaml": "_BASE_: [base/data.yaml, ./base/optim.yaml]\nlist: data/list.txt\n",
    "configs/b.yaml": "_BASE_: base/optim.yaml\nlr: !!python/float 1\n",
    "configs/base/data.yaml": "x: 1\n",
    "configs/base/optim.yaml": "_BASE_: deep.yaml\n",
    "configs/base/deep.yaml": "y: &y [1]\nz: *y\n",
    "data/list.txt": "a.jpg 1\n",
    "tools/train.py": "import os\nfrom net.arch import resnet\nfrom net.data import *\n",
    "tools/serve.py": "import helper\nfrom net import version\n",
    "tools/helper.py": "import net.version\n",
    "net/__init__.py": "",
    "net/version.py": "v = 1\n",
    "net/arch/__init__.py": "",
    "net/arch/resnet.py": "from ..data import loader\nfrom . import blocks\n",
    "net/arch/blocks.py": "def broken(:\n",
    "net/arch/vgg.py": "",
    "net/data/__init__.py": "from .loader import load\n",
    "net/data/loader.py": "",
    "setup.py": "",
    "README.md": "",
}
A, B, C = "suite/a/train", "suite/b/train", "suite/c/train"
CHAINS = [TracedChain(f"suite/{one}/train", (f"tipc/{one}/train.txt",)) for one in "abc"]
RULES = Selection(sentinels=(B,), shared=("setup.py",), globs={"ops/**": ("suite/c/*",)})


def tree() -> Tree:
    return Tree(FILES, FILES.__getitem__)


def chosen(*paths: str, rules: Selection = RULES, chains: Any = CHAINS, **change: Any) -> dict[str, Because]:
    choice = select(Change(paths, **change), chains, tree(), rules, Labels(chains={"more": (C,)}))
    assert set(choice.chains) | set(choice.others) == {A, B, C}
    assert all(one.reason for one in choice.chosen)
    assert all(choice.others.values())
    return {one.chain: one.because for one in choice.chosen}


def test_includes_of_configs_select_chains() -> None:
    assert chosen("configs/base/data.yaml") == {A: Because.NEEDED}
    assert chosen("configs/base/deep.yaml") == {A: Because.NEEDED, B: Because.NEEDED}
    assert chosen("data/list.txt") == {A: Because.NEEDED}
    assert chosen("tipc/c/train.txt") == {C: Because.NEEDED}


def test_removed_files_select_the_chains_that_need_the_files() -> None:
    kept = {path: text for path, text in FILES.items() if path not in ("net/arch/resnet.py", "data/list.txt")}
    tree_at_head = Tree(kept, kept.__getitem__)
    for path, needing in (("net/arch/resnet.py", {A, B}), ("data/list.txt", {A})):
        choice = select(Change((path,)), CHAINS, tree_at_head, RULES, Labels())
        assert set(choice.chains) == needing, path


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("configs/a.yaml", "{{ name }}: 1\n"),
        ("configs/a.yaml", "_BASE_: {{ name }}\n? [a, b]\n: 1\n"),
        ("configs/a.yaml", "_BASE_: {a: 1}\n"),
        ("tools/train.py", "-" * 200_000 + "1"),
    ],
)
def test_unreadable_files_stop_nothing(path: str, text: str) -> None:
    files = FILES | {path: text}
    choice = select(Change(("setup.py",)), CHAINS, Tree(files, files.__getitem__), RULES, Labels())
    assert B in choice.chains


def test_imported_files_select_chains() -> None:
    assert chosen("net/arch/blocks.py") == {A: Because.NEEDED, B: Because.NEEDED}
    assert chosen("net/data/loader.py") == {A: Because.NEEDED, B: Because.NEEDED}
    assert chosen("tools/helper.py") == {C: Because.NEEDED}
    assert set(chosen("net/__init__.py")) == {A, B, C}


def test_the_reason_names_the_way() -> None:
    (one,) = select(Change(("configs/base/data.yaml",)), CHAINS, tree(), RULES, Labels()).chosen
    assert one.reason == "configs/a.yaml uses configs/base/data.yaml"
    others = select(Change(("configs/base/data.yaml",)), CHAINS, tree(), RULES, Labels()).others
    assert others[B] == "uses none of 1 changed file"


def test_recorded_files_replace_imports_but_not_configs() -> None:
    """A computed import is seen only by the record; a file that no run opened does not concern the chain."""
    traced = [TracedChain(A, ("tipc/a/train.txt",), frozenset({"net/arch/vgg.py", "tools/train.py"})), *CHAINS[1:]]
    assert chosen("net/arch/vgg.py", chains=traced) == {A: Because.OPENED}
    assert chosen("net/arch/blocks.py", chains=traced) == {B: Because.NEEDED}
    assert chosen("configs/base/data.yaml", chains=traced) == {A: Because.NEEDED}


def test_globs_and_labels_add_chains() -> None:
    assert chosen("ops/x/y.cu") == {C: Because.GLOB}
    assert chosen("configs/base/data.yaml", labels=("more", "bug")) == {C: Because.LABEL, A: Because.NEEDED}
    assert set(chosen("README.md", labels=("tipc:all",))) == {A, B, C}
    assert chosen("README.md", labels=("bug",)) == {}


def test_shared_and_unknown_files_run_the_sentinels() -> None:
    assert chosen("setup.py") == {B: Because.SENTINEL}
    assert chosen("net/arch/vgg.py") == {B: Because.SENTINEL}, "nothing is known to use it"
    assert chosen("new/file.cc", "configs/base/data.yaml") == {A: Because.NEEDED, B: Because.SENTINEL}
    choice = select(Change(("new/file.cc",)), CHAINS, tree(), RULES, Labels())
    assert choice.unknown == ("new/file.cc",)


def test_without_sentinels_an_unknown_change_runs_all() -> None:
    assert set(chosen("new/file.cc", rules=Selection())) == {A, B, C}
    gone = Selection(sentinels=("suite/gone/*",))
    assert set(chosen("new/file.cc", rules=gone)) == {A, B, C}
    choice = select(Change(("new/file.cc",)), CHAINS, tree(), gone, Labels())
    assert choice.problems == ("sentinels: no chain matches suite/gone/*",)


def test_documentation_concerns_no_chain() -> None:
    assert chosen("README.md", "docs/a/b.png") == {}
    assert chosen() == {}


def test_an_incomplete_list_runs_all() -> None:
    assert set(chosen("README.md", complete=False)) == {A, B, C}


def test_a_command_replaces_the_selection() -> None:
    assert chosen("setup.py", chains=CHAINS) == {B: Because.SENTINEL}
    choice = select(Change(("setup.py",), chains=("suite/[a]/x", C)), CHAINS, tree(), RULES, Labels())
    assert choice.chains == (C,)
    assert choice.problems == ("command: no chain matches suite/[a]/x",)


def test_a_removed_file_that_was_opened_concerns_the_chain() -> None:
    traced = [TracedChain(A, ("tipc/a/train.txt",), frozenset({"net/removed.py"})), *CHAINS[1:]]
    assert chosen("net/removed.py", chains=traced) == {A: Because.OPENED}


def test_unreadable_files_and_circles_end() -> None:
    files = {
        "a.yaml": "_BASE_: b.yaml",
        "b.yaml": "_BASE_: [a.yaml, ../../../etc/passwd.yaml]\nx: [",
        "c.py": "\0",
    }

    def read(path: str) -> str:
        if path == "c.py":
            raise OSError(path)
        return files[path]

    assert set(reachable(["a.yaml", "c.py"], Tree(files, read))) == {"a.yaml", "b.yaml", "c.py"}


@pytest.mark.parametrize(
    ("path", "glob", "same"),
    [
        ("a/b/c.py", "a/**", True),
        ("a/b/c.py", "**/c.py", True),
        ("c.py", "**/c.py", True),
        ("a/b/c.py", "a/*", False),
        ("a/c.py", "a/?.py", True),
        ("ab/c.py", "a/**", False),
        ("a/b/c.py", "**", True),
        ("a+b.py", "a+b.py", True),
        ("aab.py", "a+b.py", False),
    ],
)
def test_globs_match_paths(path: str, glob: str, same: bool) -> None:
    assert bool(matches(path, (glob,))) == same


def test_stale_record_is_completed_by_the_imports() -> None:
    recorded = TracedChain("s/r/train", ("tipc/a/train.txt",), frozenset({"tools/train.py"}))
    tree = Tree(
        {**FILES, "tools/train.py": "import late\n", "tools/late.py": ""},
        lambda path: {**FILES, "tools/train.py": "import late\n", "tools/late.py": ""}[path],
    )
    change = Change(("tools/late.py",))
    rules = Selection(ignored=("**/late.py",))
    assert select(change, [recorded], tree, rules, Labels()).chains == ()
    stale = TracedChain(recorded.chain, recorded.roots, recorded.opened, is_stale=True)
    (chosen,) = select(change, [stale], tree, rules, Labels()).chosen
    assert (chosen.because, chosen.detail) == (Because.NEEDED, "tools/train.py uses tools/late.py")
