"""Measures the layout of the code; fails when a bound is exceeded (part of `make lint`).

Counts files per folder, lines per file and function, circles between packages, imports of names with a leading
underscore, and words that the style guide rules out (CONTRIBUTING.md).
"""

import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import median

FILES, LINES, FUNCTION = 15, 400, 60
# Folders that may hold more files, each with its reason in docs/adr/0014-packages.md.
CROWDED = {
    "benchmarks": 20,
    "src/tipcflow/remote/runner": 40,
    "tests/cluster": 30,
    "tests/support": 20,
    "tests/support/faults": 20,
    "tests/unit/remote/runner": 30,
    "tests/unit/store": 20,
}
PRODUCT = ("src/", "operators/", "plugins/", "dags/")
# Words of the glossary that are ruled out in code, comments and docs.
WORDS = re.compile(
    r"\b(desks?|mend(s|ed|ing)?|a person|somebody|nobody|whoever|go(es)? on|once more|anew|so many|so long"
    r"|is to be had|cannot be had|gave up|give back|gives? way|wish(es)?|sick node|odd run|besides)\b",
    re.IGNORECASE,
)
# Files whose words are not ours: logs of other programs, recorded runs, the glossary itself.
QUOTED = (
    "tests/golden/",
    "tests/support/toy_suite/",
    "tools/house.py",
    "CONTRIBUTING.md",
    "src/tipcflow/parse/suites/",
)
# Lowered with every rewrite; new ones are not accepted.
BOUND = 270


def main() -> int:
    """Print the table; 1 when a bound is exceeded."""
    files = [Path(name) for name in _tracked("*.py")]
    trees = {file: ast.parse(file.read_text(encoding="utf-8")) for file in files}
    per_folder = _per_folder(files)
    problems = [*_crowded(per_folder), *_long(trees), *_circles(trees), *_private(trees)]
    words = list(_words())
    counts = sorted(per_folder.values())
    product = [n for folder, n in per_folder.items() if f"{folder}/".startswith(PRODUCT)]
    print(f"folders with Python files   {len(counts):>5}   median {median(counts):g}, most {counts[-1]}")
    print(f"  of the product            {len(product):>5}   median {median(product):g}, most {max(product)}")
    print(f"files                       {len(files):>5}   longest {max(map(_lines, files))} lines")
    print(f"words of the glossary       {len(words):>5}   at most {BOUND}")
    if len(words) > BOUND:
        problems += words[:40]
    for problem in problems:
        print(problem)
    print(f"{len(problems)} problems")
    return 1 if problems else 0


def _tracked(*patterns: str) -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z", *patterns], check=True, capture_output=True, text=True)
    return [name for name in listed.stdout.split("\0") if name and Path(name).is_file()]


def _lines(file: Path) -> int:
    return len(file.read_text(encoding="utf-8").splitlines())


def _per_folder(files: list[Path]) -> dict[str, int]:
    counts: dict[str, int] = defaultdict(int)
    for file in files:
        counts[file.parent.as_posix()] += file.name != "__init__.py"
    return {folder: count for folder, count in counts.items() if count}


def _crowded(per_folder: dict[str, int]) -> Iterator[str]:
    for folder, count in per_folder.items():
        if count > CROWDED.get(folder, FILES):
            yield f"{folder}: {count} files, at most {CROWDED.get(folder, FILES)}"


def _long(trees: dict[Path, ast.Module]) -> Iterator[str]:
    for file, tree in trees.items():
        if (lines := _lines(file)) > LINES:
            yield f"{file}: {lines} lines, at most {LINES}"
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > FUNCTION:
                    yield f"{file}:{node.lineno}: {node.name} has {length} lines, at most {FUNCTION}"


def _module(file: Path) -> str:
    parts = [part for part in file.with_suffix("").parts if part not in ("src", "plugins")]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(tree: ast.Module, modules: set[str]) -> Iterator[tuple[str, str, int]]:
    """(module, name, line) of every `from … import`; the name is '' where it is a module itself."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                if inner in modules:
                    yield inner, "", node.lineno
                elif node.module in modules:
                    yield node.module, alias.name, node.lineno


def _circles(trees: dict[Path, ast.Module]) -> Iterator[str]:
    """Packages of the product that import each other, directly or around a corner."""
    mine = {file: tree for file, tree in trees.items() if file.as_posix().startswith(PRODUCT)}
    modules = {_module(file): file for file in mine}
    package = {
        name: name if file.name == "__init__.py" else name.rpartition(".")[0] for name, file in modules.items()
    }
    arrows: dict[str, set[str]] = defaultdict(set)
    for file, tree in mine.items():
        here = package[_module(file)]
        for module, _, _ in _imports(tree, set(modules)):
            there = package[module]
            # A package's own parts may use its root, and the root its parts.
            if there != here and not f"{there}.".startswith(f"{here}.") and not f"{here}.".startswith(f"{there}."):
                arrows[here].add(there)
    for start in sorted(arrows):
        path = _way_back(start, arrows)
        if path and start == min(path):
            yield f"circle: {' -> '.join(path)}"


def _way_back(start: str, arrows: dict[str, set[str]]) -> list[str]:
    """The shortest path from a package to itself; empty when there is none."""
    paths, seen = [[start]], {start}
    while paths:
        path = paths.pop(0)
        for there in sorted(arrows.get(path[-1], ())):
            if there == start:
                return [*path, start]
            if there not in seen:
                seen.add(there)
                paths.append([*path, there])
    return []


def _private(trees: dict[Path, ast.Module]) -> Iterator[str]:
    modules = {_module(file) for file in trees}
    for file, tree in trees.items():
        if not file.as_posix().startswith(PRODUCT):
            continue
        for module, name, line in _imports(tree, modules):
            if name.startswith("_"):
                yield f"{file}:{line}: imports {name}, which is private to {module}"


def _words() -> Iterator[str]:
    for name in _tracked("*.py", "*.md", "*.yaml", "*.toml", "*.sh", "*.html", "Makefile"):
        if name.startswith(QUOTED):
            continue
        for number, line in enumerate(Path(name).read_text(encoding="utf-8").splitlines(), 1):
            for match in WORDS.finditer(line):
                yield f"{name}:{number}: {match[0]!r} (glossary in CONTRIBUTING.md)"


if __name__ == "__main__":
    sys.exit(main())
