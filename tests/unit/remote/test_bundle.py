"""The shipped file: one, the same for the same sources, standard library only, Python 3.7."""

import ast
import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tipcflow.remote import bundle
from tipcflow.remote.runner.unmet import DISK, EXIT_CODES

SOURCES = sorted((Path(bundle.__file__).parent / "runner").glob("*.py"))
# In the standard library since 3.7 or before; a newer module would not be there.
STDLIB_37 = set(sys.stdlib_module_names) - {"zoneinfo", "graphlib", "tomllib"}


def test_name_follows_content():
    bundle.runner_bytes.cache_clear()
    first = bundle.runner_bytes()
    bundle.runner_bytes.cache_clear()
    assert bundle.runner_bytes() == first
    assert bundle.runner_name().startswith("runner-")
    assert len(bundle.runner_name()) == len("runner-.py") + 12


def test_bundle_is_valid_python_37():
    ast.parse(bundle.runner_bytes().decode(), feature_version=(3, 7))


def test_bundle_unpacks_every_source_once(tmp_path):
    file = tmp_path / bundle.runner_name()
    file.write_bytes(bundle.runner_bytes())
    argv = [sys.executable, "-I", "-S", str(file), "list", str(tmp_path)]
    codes = []
    threads = [threading.Thread(target=lambda: codes.append(subprocess.run(argv).returncode)) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert codes == [0] * 5
    folder = tmp_path / bundle.runner_name()[:-3]
    unpacked = {path.name: path.read_text() for path in (folder / "runner").glob("*.py")}
    assert unpacked == {source.name: source.read_text() for source in SOURCES}
    assert {path.name for path in tmp_path.iterdir()} == {file.name, folder.name}


@pytest.mark.root
def test_a_full_disk_is_reported(tmp_path):
    room = len(bundle.runner_bytes()) // 1024 + 20  # KiB: for the file, and not for its modules
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={room}k", "tmpfs", str(tmp_path)], check=True)
    try:
        file = tmp_path / bundle.runner_name()
        file.write_bytes(bundle.runner_bytes())
        done = subprocess.run([sys.executable, "-I", "-S", str(file), "list", "/"], capture_output=True, text=True)
        assert done.returncode == EXIT_CODES[DISK]
        assert done.stderr == f"cannot unpack the runner into {str(file)[:-3]}: No space left on device\n"
        assert [path.name for path in tmp_path.iterdir()] == [file.name]
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


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
    assert done.returncode == 0
    listed = json.loads(done.stdout)
    assert (listed["processes"], listed["jobs"], listed["helpers"]) == ([], [], [])


def test_modules_emptied_by_a_power_loss_are_rewritten(tmp_path):
    file = tmp_path / bundle.runner_name()
    file.write_bytes(bundle.runner_bytes())
    argv = [sys.executable, "-I", "-S", str(file), "list", str(tmp_path)]
    assert subprocess.run(argv, capture_output=True).returncode == 0
    folder = tmp_path / bundle.runner_name()[:-3]
    (folder / "runner" / "sweep.py").write_text("")
    (folder / "runner" / "main.py").unlink()
    done = subprocess.run(argv, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    unpacked = {path.name: path.read_text() for path in (folder / "runner").glob("*.py")}
    assert unpacked == {source.name: source.read_text() for source in SOURCES}
    assert {path.name for path in tmp_path.iterdir()} == {file.name, folder.name}
