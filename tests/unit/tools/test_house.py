"""What `tools/house.py` prints and what it refuses."""

import ast
import importlib
from pathlib import Path
from types import ModuleType

import pytest

TOOLS = Path(__file__).parents[3] / "tools"


@pytest.fixture
def house(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(TOOLS)
    return importlib.import_module("house")


def test_private_modules_and_names_are_not_imported_from_outside(house: ModuleType) -> None:
    private = {Path("src/a/_inner.py"): ast.parse("x = 1")}
    outside = {Path("src/b/user.py"): ast.parse("from a._inner import x")}
    inside = {Path("src/a/user.py"): ast.parse("from a._inner import x")}
    assert list(house._private({**private, **outside})) == [
        "src/b/user.py:1: imports a._inner, a private module of a"
    ]
    assert list(house._private({**private, **inside})) == []
    name = {Path("src/a/m.py"): ast.parse("_x = 1"), Path("src/b/user.py"): ast.parse("from a.m import _x")}
    assert list(house._private(name)) == ["src/b/user.py:1: imports _x, which is private to a.m"]


def test_tests_import_private_names_only_of_the_tested_module(house: ModuleType) -> None:
    module = {Path("src/tipcflow/m.py"): ast.parse("_x = 1")}
    text = "from tipcflow.m import _x"
    assert list(house._private({**module, Path("tests/unit/test_m.py"): ast.parse(text)})) == []
    for file in ("tests/unit/test_n.py", "benchmarks/m.py"):
        problems = list(house._private({**module, Path(file): ast.parse(text)}))
        assert problems == [f"{file}:1: imports _x, which is private to tipcflow.m"]


def test_package_without_mirrored_tests_is_a_problem(house: ModuleType) -> None:
    package = [
        Path("src/tipcflow/a/__init__.py"),
        Path("src/tipcflow/a/b/__init__.py"),
        Path("src/tipcflow/a/b/m.py"),
    ]
    entry = Path("src/tipcflow/entry.py")
    assert list(house._unmirrored([entry, *package])) == ["src/tipcflow/a/b: no tests in tests/unit/a/b"]
    assert list(house._unmirrored([entry, *package, Path("tests/unit/a/b/test_m.py")])) == []
    assert list(house._unmirrored([entry, *package, Path("tests/unit/a/b/conftest.py")])) != []


def test_operators_are_mirrored_by_unit_tests_or_by_tests_of_dags(house: ModuleType) -> None:
    files = [Path("src/tipcflow/entry.py"), Path("operators/tipcflow_operators/weekly/dag.py")]
    (problem,) = house._unmirrored(files)
    assert problem.endswith("no tests in tests/unit/operators/weekly or tests/dag/weekly")
    assert list(house._unmirrored([*files, Path("tests/dag/weekly/test_dag.py")])) == []


def test_flat_tests_of_dags_bear_the_names_of_modules(house: ModuleType) -> None:
    files = [
        Path("src/tipcflow/entry.py"),
        Path("operators/tipcflow_operators/limits.py"),
        Path("tests/dag/test_limits.py"),
    ]
    assert list(house._unmirrored(files)) == []
    (problem,) = house._unmirrored([*files, Path("tests/dag/test_weekly.py")])
    assert problem.startswith("tests/dag/test_weekly.py: there is no module operators/tipcflow_operators/weekly.")


def test_folder_of_tests_without_a_package_is_a_problem(house: ModuleType) -> None:
    gone = [Path("tests/dag/gone/test_m.py"), Path("tests/unit/gone/test_m.py")]
    files = [Path("src/tipcflow/entry.py"), *gone, Path("tests/unit/tools/test_m.py")]
    assert list(house._unmirrored(files)) == [
        "tests/dag/gone: mirrors no package",
        "tests/unit/gone: mirrors no package",
    ]


def test_unneeded_exception_is_a_problem(house: ModuleType) -> None:
    files = [Path("src/tipcflow/entry.py"), Path("tests/unit/test_entry.py")]
    assert list(house._unmirrored(files)) == ["src/tipcflow: has tests now; remove it from UNMIRRORED"]


def test_longest_function_and_too_long_ones_are_named(house: ModuleType, tmp_path: Path) -> None:
    text = "def short():\n    pass\n\n\nasync def long():\n" + "    pass\n" * house.FUNCTION
    file = tmp_path / "m.py"
    file.write_text(text + "x = 1\n" * house.LINES)
    functions = list(house._functions(file, ast.parse(text)))
    assert house._longest_function(functions) == f"{house.FUNCTION + 1} lines {file}:5 long"
    assert list(house._long([file], functions)) == [
        f"{file}: {len(file.read_text().splitlines())} lines, at most {house.LINES}",
        f"{file}:5 long has {house.FUNCTION + 1} lines, at most {house.FUNCTION}",
    ]


def test_circle_between_packages_is_a_problem(house: ModuleType) -> None:
    trees = {
        Path("src/a/x/m.py"): ast.parse("from a.y.m import f"),
        Path("src/a/y/m.py"): ast.parse("def g():\n    from a.z.m import f"),
        Path("src/a/z/m.py"): ast.parse("from a.x.m import f"),
    }
    assert list(house._circles(trees)) == ["circle: a.x -> a.y -> a.z -> a.x"]
    del trees[Path("src/a/z/m.py")]
    assert list(house._circles(trees)) == []


def test_folders_with_the_most_files_are_named(house: ModuleType) -> None:
    text = house._most_files({"src/a": 3, "src/b": 9, "tests/cluster": 28})
    assert text == "median 9, most 9 in src/b, at most 15; exceptions (ADR 14) up to 28 in tests/cluster"
    assert "exceptions" not in house._most_files({"src/a": 3, "tests/cluster": 1})


def package(text: str, *modules: str) -> dict[Path, ast.Module]:
    """The package `tipcflow.a` with this docstring and these empty modules."""
    folder = Path("src/tipcflow/a")
    init = {folder / "__init__.py": ast.parse(f'"""{text}"""\n__all__ = ["f"]\n')}
    return init | {folder / f"{name}.py": ast.parse("") for name in modules}


def importing(text: str, file: str = "src/devcluster/user.py") -> dict[Path, ast.Module]:
    return {Path(file): ast.parse(text)}


@pytest.mark.parametrize(
    ("text", "module"),
    [
        ("from tipcflow.a.m import f", "tipcflow.a.m"),
        ("from tipcflow.a import m", "tipcflow.a.m"),
        ("import tipcflow.a.m", "tipcflow.a.m"),
        ("def g():\n    from tipcflow.a.m import f", "tipcflow.a.m"),
        ("from tipcflow.a import f", "tipcflow.a"),
    ],
)
def test_private_module_is_importable_only_in_its_area(house: ModuleType, text: str, module: str) -> None:
    line = text.count("\n") + 1
    made = package("A.\n\nPublic: nothing.\n", "m")
    assert list(house._surface(made | importing(text))) == [
        f"src/devcluster/user.py:{line}: imports {module}, which is private to tipcflow.a (ADR 19)"
    ]
    assert list(house._surface(made | importing(text, "src/tipcflow/a/b/user.py"))) == []
    public = package("A.\n\nPublic: `__all__`, `m`.\n", "m")
    assert not any("imports" in problem for problem in house._surface(public | importing(text)))


def test_package_may_be_loaded_without_a_name(house: ModuleType) -> None:
    made = package("A.\n\nPublic: nothing.\n", "m") | {
        Path("src/tipcflow/__init__.py"): ast.parse('"""T.\n\nPublic: x."""')
    }
    assert list(house._surface(made | importing("from tipcflow import a"))) == []


def test_declaration_is_required_exact_and_needed(house: ModuleType) -> None:
    init = "src/tipcflow/a/__init__.py"
    use = importing("from tipcflow.a.m import f\nfrom tipcflow.a import f")
    (missing,) = house._surface(package("A. Public: `m`.", "m"))
    assert missing == f"{init}: the docstring has no paragraph `Public: …` (ADR 19)"
    assert list(house._surface(package("A.\n\nPublic: `m`, `__all__`,\n`gone`.", "m") | use)) == [
        f"{init}: declares tipcflow.a.gone public, which does not exist"
    ]
    assert list(house._surface(package("A.\n\nPublic: `__all__`, `m`, `n`.\n", "m", "n") | use)) == [
        "src/tipcflow/a/n.py: declared public, but used only in tipcflow.a"
    ]
