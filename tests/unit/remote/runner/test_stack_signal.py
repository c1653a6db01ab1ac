"""The module that lets Python processes show their stacks: in every Python here, and beside others' own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tipcflow.remote.runner.stack_signal import NUMBER, handles_signal, prepare

VERSIONS = sorted(Path("~/.pyenv/versions").expanduser().glob("*/bin/python"))
PYTHONS = {str(path) for path in VERSIONS} | {sys.executable}
WAITS = "def deep():\n    print('up', flush=True)\n    import time\n    time.sleep(300)\ndeep()\n"

pytestmark = pytest.mark.process


@pytest.fixture
def env(tmp_path):
    """An environment whose processes can be probed."""
    made = {"PATH": os.environ["PATH"]}
    prepare(made, str(tmp_path / "the job"))
    return made


def run(python, code, env):
    """The command's output and exit code."""
    done = subprocess.run([python, "-c", code], env=env, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("python", sorted(PYTHONS))
def test_every_python_starts_as_before(env, tmp_path, python):
    report = run(python, "import sys; print([p for p in sys.path if 'the job' in p])", env)
    assert report == (0, "[]\n", ""), "it leaves no trace on sys.path, and says nothing"
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("print('own')\n")
    env["PYTHONPATH"] += f":{own}"
    assert run(python, "import sitecustomize; print(sitecustomize.__file__)", env)[1].startswith(f"own\n{own}")


@pytest.mark.parametrize("text", ["import no_such_module", "raise ImportError('x', name='y')", "1 / 0"])
def test_trouble_of_the_environments_own_module_stays_its_own(env, tmp_path, text):
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text(text)
    without = run(sys.executable, "print(1)", {**env, "PYTHONPATH": str(own)})
    env["PYTHONPATH"] += f":{own}"
    done = run(sys.executable, "print(1)", env)
    last = [text.strip().splitlines()[-1] for text in (without[2], done[2])]
    assert (without[:2], last[0]) == (done[:2], last[1])


def test_stacks_go_to_stderr_and_the_process_continues(env, wait, tmp_path):
    code = "import threading\n" + WAITS.replace("\ndeep()", "\nthreading.Thread(target=deep).start()\ndeep()")
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen([sys.executable, "-c", code], env=env, stdout=log, stderr=log)
    try:
        wait(lambda: (tmp_path / "log").read_text().count("up") == 2, "both threads")
        assert handles_signal(process.pid)
        os.kill(process.pid, NUMBER)
        wait(lambda: (tmp_path / "log").read_text().count("in deep") == 2, "two stacks")
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()


def test_program_keeps_its_handler_of_the_signal(env):
    code = f"import signal; signal.signal({int(NUMBER)}, lambda *_: print('mine', flush=True)); "
    code += f"import os; os.kill(os.getpid(), {int(NUMBER)})"
    assert run(sys.executable, code, env) == (0, "mine\n", "")


@pytest.mark.parametrize("command", [["sleep", "300"], [sys.executable, "-I", "-c", WAITS]])
def test_a_process_without_a_handler_is_not_queried(env, command):
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE) as process:
        assert command[0] == "sleep" or process.stdout.readline() == b"up\n"
        assert not handles_signal(process.pid)
        process.kill()
    assert not handles_signal(process.pid)


def test_a_path_with_a_colon_is_left_alone(tmp_path):
    env = {"PYTHONPATH": "/own"}
    prepare(env, str(tmp_path / "a:b"))
    assert env == {"PYTHONPATH": "/own"}


def test_existing_environment_variables_stay(tmp_path):
    env = {"PYTHONPATH": "/own:/other", "PYTHONFAULTHANDLER": "0"}
    prepare(env, str(tmp_path))
    assert env["PYTHONPATH"] == f"{tmp_path}/python:/own:/other"
    assert env["PYTHONFAULTHANDLER"] == "0"


@pytest.mark.root
def test_a_full_disk_does_not_prevent_the_start(tmp_path):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", str(tmp_path)], check=True)
    try:
        with pytest.raises(OSError, match="No space"):
            (tmp_path / "full").write_bytes(b"x" * 8192)
        env = {"A": "b"}
        prepare(env, str(tmp_path))
        assert env == {"A": "b"}
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)
