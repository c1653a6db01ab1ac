"""With CI=true a test is skipped only for a reason in `tests/support/skips.py`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.skips import ALLOWED, Allowed, find_allowed

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
SKIPS = """
import pytest

@pytest.mark.skip(reason="a mark")
def test_mark():
    pass

def test_call():
    pytest.skip("a call")

@pytest.fixture
def absent():
    pytest.skip("a fixture")

def test_fixture(absent):
    pass

@pytest.mark.xfail(reason="known")
def test_known():
    assert False
"""


def run_pytest(folder: Path, **env: str) -> tuple[int, str]:
    """Status and output of the tests of a folder under the hooks of this repository."""
    (folder / "conftest.py").write_text("from tests.conftest import *\n")
    argv = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "--rootdir", str(folder), "."]
    others = {name: value for name, value in os.environ.items() if name != "CI"}
    environ = others | {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} | env
    done = subprocess.run(argv, cwd=folder, env=environ, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout + done.stderr


def test_ci_fails_on_unlisted_skips(tmp_path: Path) -> None:
    (tmp_path / "test_all.py").write_text(SKIPS)
    status, output = run_pytest(tmp_path)
    assert status == 0, output
    assert "3 skipped, 1 xfailed" in output
    status, output = run_pytest(tmp_path, CI="true")
    assert status == 1, output
    for test, reason in (("mark", "a mark"), ("call", "a call"), ("fixture", "a fixture")):
        assert f"test_all.py::test_{test}: skipped with CI=true: {reason} (allowed: " in output
    assert "1 xfailed" in output
    assert " skipped" not in output.splitlines()[-1]


def test_ci_fails_on_a_skipped_file(tmp_path: Path) -> None:
    (tmp_path / "test_all.py").write_text("import pytest\n\npytest.importorskip('no_such_module')\n")
    status, output = run_pytest(tmp_path, CI="true")
    assert status == 2, output
    assert "test_all.py: skipped with CI=true: could not import 'no_such_module'" in output


def test_ci_accepts_a_listed_skip(tmp_path: Path) -> None:
    allowed = ALLOWED[0]
    file = tmp_path / allowed.where
    file.parent.mkdir(parents=True)
    file.write_text(f"import pytest\n\ndef test_a():\n    pytest.skip({allowed.message + ' (a detail)'!r})\n")
    status, output = run_pytest(tmp_path, CI="true")
    assert status == 0, output
    assert "1 skipped" in output


def test_another_reason_of_a_listed_file_is_not_accepted() -> None:
    allowed = ALLOWED[0]
    assert find_allowed(f"{allowed.where}::test_a", f"{allowed.message}: no such file") is allowed
    assert find_allowed(f"{allowed.where}::test_a", "another reason") is None
    assert find_allowed("tests/unit/test_a.py::test_a", allowed.message) is None


@pytest.mark.parametrize("allowed", ALLOWED, ids=lambda allowed: f"{allowed.where}: {allowed.message}")
def test_listed_skips_exist_in_the_tests(allowed: Allowed) -> None:
    path = ROOT / allowed.where
    files = [path] if path.is_file() else sorted(path.rglob("*.py"))
    # Messages of the modules that start the engine and the proxy for tests.
    files += [ROOT / "tests/support/containers/engine.py", ROOT / "tests/support/compose/tls.py"]
    texts = [file.read_text() for file in files]
    assert any(allowed.message in text for text in texts)
    assert allowed.because
