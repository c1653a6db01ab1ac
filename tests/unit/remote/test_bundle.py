"""The shipped file: one, the same for the same sources, standard library only, Python 3.7."""

import ast
import io
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tipcflow.remote import bundle

SOURCES = sorted((Path(bundle.__file__).parent / "runner").glob("*.py"))
# In the standard library since 3.7 or before; a newer module would not be there.
STDLIB_37 = set(sys.stdlib_module_names) - {"zoneinfo", "graphlib", "tomllib"}


def test_name_follows_content():
    bundle.runner_bytes.cache_clear()
    first = bundle.runner_bytes()
    bundle.runner_bytes.cache_clear()
    assert bundle.runner_bytes() == first
    assert bundle.runner_name().startswith("runner-")
    assert len(bundle.runner_name()) == len("runner-.pyz") + 12


def test_it_holds_every_source():
    names = zipfile.ZipFile(io.BytesIO(bundle.runner_bytes())).namelist()
    assert names == ["__main__.py", *(f"runner/{source.name}" for source in SOURCES)]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_sources_are_plain_python_37(source):
    tree = ast.parse(source.read_text(), feature_version=(3, 7))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            assert {name.name.split(".")[0] for name in node.names} <= STDLIB_37
        if isinstance(node, ast.ImportFrom):
            assert node.level == 1 or (node.module or "").split(".")[0] in STDLIB_37
        assert not isinstance(node, ast.NamedExpr)


def test_importing_a_subcommand_needs_nothing_of_the_environment(tmp_path):
    file = tmp_path / bundle.runner_name()
    file.write_bytes(bundle.runner_bytes())
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(file), "list", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, '{"processes": [], "jobs": []}\n')
