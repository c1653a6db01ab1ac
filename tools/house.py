"""Measures the layout of the code; fails when a bound is exceeded (part of `make lint`).

Prints and bounds: files per folder, lines per file and function, circles between packages, imports of private
modules and names, packages without a mirrored test package, vague names, and words that the style guide rules out
(CONTRIBUTING.md).
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import wording
from public import declared_modules

FILES, LINES, FUNCTION = 15, 400, 60
# Folders that may hold more files, each with its reason in docs/adr/0014-packages.md.
CROWDED = {
    "benchmarks": 21,
    "src/tipcflow/remote/runner": 43,
    "src/tipcflow/store/migrations/versions": 30,
    "tests/cluster": 30,
    "tests/support": 20,
    "tests/support/faults": 20,
    "tests/unit/remote/runner": 31,
}
# Source folders -> folders whose tests mirror their packages. Tests of DAGs need Airflow's own database.
MIRRORS = {
    "src/tipcflow": ("tests/unit",),
    "src/devcluster": ("tests/unit/devcluster",),
    "operators/tipcflow_operators": ("tests/unit/operators", "tests/dag"),
    "plugins/tipcflow_pages": ("tests/unit/plugins",),
}
# Packages without a mirrored test package, each with the reason.
UNMIRRORED = {
    "src/tipcflow": "its only module starts the command line: tests/unit/cli/test_entry.py",
}
# Folders in which every test mirrors a package. Files at their top mirror modules of the root package.
MIRRORED_IN = ("tests/unit/", "tests/dag/")
# Folders of tests/unit that test something other than a package.
OTHER_TESTS = ("docker", "faults", "liars", "tools", "wheel")
# Packages at the top; the packages directly below them are the areas within which modules are private (ADR 19).
ROOTS = ("tipcflow", "devcluster", "tipcflow_operators", "tipcflow_pages")
# Words of the glossary and vague names (tools/wording.py). Lowered with every rewrite; new ones are not accepted.
BOUND = 0
# `said` of a trigger: Airflow stores the names of arguments.
VAGUE_BOUND = 1


def main() -> int:
    """Print the table; 1 when a bound is exceeded."""
    files = [Path(name) for name in wording.tracked("*.py")]
    trees = {file: ast.parse(file.read_text(encoding="utf-8")) for file in files}
    per_folder = _per_folder(files)
    circles, private = list(_circles(trees)), [*_private(trees), *_surface(trees)]
    unmirrored, words = list(_unmirrored(files)), list(wording.words(wording.WORDS))
    product = {folder: count for folder, count in per_folder.items() if f"{folder}/".startswith(wording.PRODUCT)}
    print(f"folders with Python files {len(per_folder):>5}   {_most_files(per_folder)}")
    print(f"  of the product          {len(product):>5}   {_most_files(product)}")
    print(f"files                     {len(files):>5}   longest {_longest_file(files)}, at most {LINES}")
    functions = [one for file, tree in trees.items() for one in _functions(file, tree)]
    longest = _longest_function(functions)
    print(f"functions                 {len(functions):>5}   longest {longest}, at most {FUNCTION}")
    print(f"circles between packages  {len(circles):>5}   at most 0")
    print(f"private imports           {len(private):>5}   at most 0")
    print(f"packages without tests    {len(unmirrored):>5}   at most 0, and {len(UNMIRRORED)} with a reason")
    print(f"words of the glossary     {len(words):>5}   at most {BOUND}")
    vague = [place for file, tree in trees.items() for place in wording.vague(file, tree)]
    print(f"vague names               {len(vague):>5}   at most {VAGUE_BOUND}")
    problems = [*_crowded(per_folder), *_long(files, functions), *circles, *private, *unmirrored]
    if len(words) > BOUND:
        problems += words[:40]
    problems += vague if len(vague) > VAGUE_BOUND else []
    problems += wording.words(wording.NEVER, wording.NEVER_IN)
    for file in filter(wording.has_prose, files):
        problems += [*wording.prose(file), *wording.test_names(file, trees[file])]
    for problem in problems:
        print(problem)
    print(f"{len(problems)} problems")
    return 1 if problems else 0


def _most_files(per_folder: dict[str, int]) -> str:
    folder = max(per_folder, key=lambda one: per_folder[one])
    crowded = max((folder for folder in per_folder if folder not in CROWDED), key=lambda one: per_folder[one])
    middle = f"median {median(per_folder.values()):g}"
    most = f"most {per_folder[crowded]} in {crowded}, at most {FILES}"
    exception = f"; exceptions (ADR 14) up to {per_folder[folder]} in {folder}" if folder in CROWDED else ""
    return f"{middle}, {most}{exception}"


def _longest_file(files: list[Path]) -> str:
    longest = max(files, key=_lines)
    return f"{_lines(longest)} lines {longest}"


def _longest_function(functions: list[tuple[int, str]]) -> str:
    lines, where = max(functions)
    return f"{lines} lines {where}"


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


def _functions(file: Path, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """(Lines, place and name) of every function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield (node.end_lineno or node.lineno) - node.lineno + 1, f"{file}:{node.lineno} {node.name}"


def _long(files: list[Path], functions: list[tuple[int, str]]) -> Iterator[str]:
    for file in files:
        if (lines := _lines(file)) > LINES:
            yield f"{file}: {lines} lines, at most {LINES}"
    for lines, where in functions:
        if lines > FUNCTION:
            yield f"{where} has {lines} lines, at most {FUNCTION}"


def _unmirrored(files: list[Path]) -> Iterator[str]:
    """Packages with modules but without tests in the mirrored folder, and test folders that mirror no package."""
    modules = {file.parent.as_posix() for file in files if file.name != "__init__.py"}
    tested = {file.parent.as_posix() for file in files if file.name.startswith("test_")}
    known: set[str] = set()
    for source, mirrors in MIRRORS.items():
        packages = {
            file.parent.as_posix() for file in files if f"{file.parent.as_posix()}/".startswith(f"{source}/")
        }
        for package in sorted(packages):
            folders = [f"{mirror}{package.removeprefix(source)}" for mirror in mirrors]
            known.update(folders)
            missing = package in modules and not tested.intersection(folders)
            if missing and package not in UNMIRRORED:
                yield f"{package}: no tests in {' or '.join(folders)}"
            elif not missing and package in UNMIRRORED:
                yield f"{package}: has tests now; remove it from UNMIRRORED"
    for folder in sorted(tested - known):
        if folder.startswith(MIRRORED_IN) and folder.split("/")[2] not in OTHER_TESTS:
            yield f"{folder}: mirrors no package"
    yield from _flat_tests(files)


def _flat_tests(files: list[Path]) -> Iterator[str]:
    """Test files at the top of a mirrored tree that bear the name of no module: they belong in a folder."""
    modules = {file.with_suffix("").as_posix() for file in files}
    for file in files:
        for source, mirrors in MIRRORS.items():
            if file.parent.as_posix() not in mirrors or not file.name.startswith("test_"):
                continue
            module = f"{source}/{file.stem.removeprefix('test_')}"
            if source not in UNMIRRORED and not modules & {module, f"{module}/__init__"}:
                yield f"{file}: there is no module {module}.py; move the test into the folder of its package"


def _module(file: Path) -> str:
    parts = [part for part in file.with_suffix("").parts if part not in ("src", "operators", "plugins")]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(tree: ast.Module, modules: set[str]) -> Iterator[tuple[str, str, int]]:
    """(module, name, line) of every import; the name is '' where it is a module itself."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                if inner in modules:
                    yield inner, "", node.lineno
                elif node.module in modules:
                    yield node.module, alias.name, node.lineno
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name in modules:
                    yield alias.name, "", node.lineno


def _circles(trees: dict[Path, ast.Module]) -> Iterator[str]:
    """Packages of the product that import each other, directly or around a corner."""
    mine = {file: tree for file, tree in trees.items() if file.as_posix().startswith(wording.PRODUCT)}
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
        if not file.as_posix().startswith(wording.PRODUCT):
            yield from _private_names(file, tree, modules)
            continue
        here = _module(file)
        for module, name, line in _imports(tree, modules):
            owner = module.partition("._")[0]
            if owner != module and not f"{here}.".startswith(f"{owner}."):
                yield f"{file}:{line}: imports {module}, a private module of {owner}"
            if name.startswith("_"):
                yield f"{file}:{line}: imports {name}, which is private to {module}"


def _private_names(file: Path, tree: ast.Module, modules: set[str]) -> Iterator[str]:
    """Private names that tests and benchmarks import; a unit test may use those of the module that it tests."""
    for module, name, line in _imports(tree, modules):
        tested = f"test_{module.rpartition('.')[2]}" == file.stem
        if name.startswith("_") and module.split(".")[0] in ROOTS and not tested:
            yield f"{file}:{line}: imports {name}, which is private to {module}"


def _area(module: str, packages: set[str]) -> str:
    """The package within which a module is importable without being public: the child of a root package."""
    top = ".".join(module.split(".")[:2])
    return top if top in packages else module.split(".")[0]


def _declared(package: str, tree: ast.Module) -> set[str] | None:
    """The modules that a package's docstring declares public, itself for `__all__`; None without a declaration."""
    names = declared_modules(tree)
    if names is None:
        return None
    return {package if name == "__all__" else f"{package}.{name}" for name in names}


def _surface(trees: dict[Path, ast.Module]) -> Iterator[str]:
    """Imports of modules that their package does not declare public, and declarations that are wrong."""
    mine = {file: tree for file, tree in trees.items() if file.as_posix().startswith(wording.PRODUCT)}
    modules = {_module(file): file for file in mine}
    ours = {name for name in modules if name.split(".")[0] in ROOTS}
    packages = {name for name in ours if modules[name].name == "__init__.py"}
    public: set[str] = set()
    for package in sorted(packages):
        declared = _declared(package, mine[modules[package]])
        if declared is None:
            yield f"{modules[package]}: the docstring has no paragraph `Public: …` (ADR 19)"
        for name in sorted((declared or set()) - ours):
            yield f"{modules[package]}: declares {name} public, which does not exist"
        public |= declared or set()
    used = set()
    for file, tree in mine.items():
        for module, name, line in _imports(tree, set(modules)):
            if module in packages - public and not name:
                continue  # loads a package that exports nothing
            area = _area(module, packages)
            if module in ours and not f"{_module(file)}.".startswith(f"{area}."):
                used.add(module)
                if module not in public:
                    yield f"{file}:{line}: imports {module}, which is private to {area} (ADR 19)"
    for name in sorted(public & ours - used):
        yield f"{modules[name]}: declared public, but used only in {_area(name, packages)}"


if __name__ == "__main__":
    sys.exit(main())
