"""What a suite's script does in the sandbox: commands are recorded, nothing else happens."""

import time
from pathlib import Path

import pytest

import tipcflow.cli.dialect.sandbox as module
from tipcflow.cli.dialect.sandbox import Recorded, Sandbox
from tipcflow.domain import ConfigError

pytestmark = pytest.mark.process
SCRIPT = "test_tipc/run.sh"


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    root = tmp_path / "suite"
    (root / "test_tipc").mkdir(parents=True)
    (root / "deploy").mkdir()
    (root / "a.txt").write_text("python:python3.7\n")
    return root


def recorded(
    suite: Path, tmp_path: Path, script: str, *, params: str = "a.txt", mode: str = "m"
) -> list[Recorded]:
    (suite / SCRIPT).write_text(script)
    work = tmp_path / "work"
    work.mkdir()
    return Sandbox(suite, work).run(SCRIPT, params, mode)


def test_recorded_command_is_the_argument_of_eval(suite: Path, tmp_path: Path) -> None:
    script = """
IFS="|"
words="a|b"
cmd="python3.7 train.py -o x=${words} $1 $2"
eval $cmd
export CUDA_VISIBLE_DEVICES=0,1
cd deploy
eval "python infer.py --out=$(dirname "$PWD")/out > log 2>&1"
cd ..
unset CUDA_VISIBLE_DEVICES
eval "cd deploy && python3 second.py; python3 third.py"
"""
    assert recorded(suite, tmp_path, script) == [
        Recorded("python3.7 train.py -o x=a b a.txt m", ".", None),
        Recorded("python infer.py --out=$ROOT/out > log 2>&1", "deploy", "0,1"),
        Recorded("cd deploy && python3 second.py; python3 third.py", "deploy", None),
    ]


def test_programs_other_than_interpreters_are_not_recorded_and_succeed(suite: Path, tmp_path: Path) -> None:
    script = """
eval "wget http://127.0.0.1:9/x.tar && tar xf x.tar && rm -rf test_tipc && pip install x"
eval "timeout 5m python train.py" && python direct.py --fast
eval "python export.py | tee log"
"""
    texts = [one.text for one in recorded(suite, tmp_path, script)]
    assert texts == ["timeout 5m python train.py", "python direct.py --fast", "python export.py | tee log"]
    assert (suite / "test_tipc").is_dir()


def test_the_exit_code_of_a_command_reaches_the_script(suite: Path, tmp_path: Path) -> None:
    script = """
eval "false"
last=$?
eval "python report.py --code=$last"
"""
    assert [one.text for one in recorded(suite, tmp_path, script)] == ["python report.py --code=1"]


def test_script_finds_the_files_of_a_recorded_training(suite: Path, tmp_path: Path) -> None:
    script = """
[ -f early.pdparams ] && eval "python never.py"
eval "python train.py"
if [ ! -f out/best.pdparams ]; then exit 1; fi
eval "python eval.py"
[ -d out ] && eval "python export.py"
"""
    assert [one.text for one in recorded(suite, tmp_path, script)] == [
        "python train.py",
        "python eval.py",
        "python export.py",
    ]


def test_the_interpreter_of_the_params_file_is_recorded(suite: Path, tmp_path: Path) -> None:
    (suite / "a.txt").write_text("python:my-python\n")
    assert [one.text for one in recorded(suite, tmp_path, 'eval "my-python train.py"')] == ["my-python train.py"]


def test_every_script_reads_an_unchanged_suite(suite: Path, tmp_path: Path) -> None:
    (suite / "large.bin").write_bytes(b"x" * (module._LARGEST + 1))
    (suite / "outside").symlink_to("/etc")
    (suite / "inside").symlink_to("a.txt")
    (suite / SCRIPT).write_text(
        'eval "python one.py --text=$(cat a.txt) --size=$(wc -c <large.bin) --left=$(ls left 2>/dev/null)"\n'
        "echo changed >a.txt; echo y >large.bin; mkdir left; touch left/x\n"
        "mv test_tipc/run.sh test_tipc/moved.sh\n"
        '[ -e outside ] || [ ! -e inside ] || eval "python links.py"\n'
    )
    work = tmp_path / "work"
    work.mkdir()
    sandbox = Sandbox(suite, work)
    first = sandbox.run(SCRIPT, "a.txt", "m")
    assert [one.text for one in first] == ["python one.py --text=python:python3.7 --size=0 --left="]
    assert sandbox.run(SCRIPT, "a.txt", "m") == first
    assert (suite / "a.txt").read_text() == "python:python3.7\n"


def test_a_script_that_does_not_end(suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_DEADLINE_S", 0.5)
    with pytest.raises(ConfigError, match=r"a\.txt: m: test_tipc/run\.sh did not end within 0\.5 s"):
        recorded(suite, tmp_path, "while true; do :; done")


def test_a_folder_that_became_a_link_is_not_written_through(suite: Path, tmp_path: Path) -> None:
    outside, work = tmp_path / "outside", tmp_path / "work"
    outside.mkdir()
    work.mkdir()
    (outside / "f").write_text("precious")
    (suite / "data").mkdir()
    (suite / "data" / "f").write_text("of the suite")
    (suite / SCRIPT).write_text(f'eval "python one.py $(cat data/f)"; mv data old; ln -s {outside} data')
    sandbox = Sandbox(suite, work)
    first = sandbox.run(SCRIPT, "a.txt", "m")
    assert [one.text for one in first] == ["python one.py of the suite"]
    assert sandbox.run(SCRIPT, "a.txt", "m") == first
    assert (outside / "f").read_text() == "precious"


def test_an_interpreter_by_its_path_is_refused(suite: Path, tmp_path: Path) -> None:
    (suite / "a.txt").write_text("python:/usr/bin/python3\n")
    with pytest.raises(ConfigError, match=r"a\.txt: python: .*found '/usr/bin/python3'"):
        recorded(suite, tmp_path, 'eval "/usr/bin/python3 train.py"')


def test_nothing_outlives_a_script_that_is_ended(
    suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_DEADLINE_S", 0.7)
    follow = "tail -f test_tipc/run.sh"
    with pytest.raises(ConfigError, match="did not end"):
        recorded(suite, tmp_path, f"timeout -k 5 60 {follow} & setsid {follow} & nohup {follow}")
    until = time.monotonic() + 10  # SIGKILL was sent; a loaded machine takes a moment to end them
    while left := [path for path in Path("/proc").glob("[0-9]*/cwd") if _leads_to(path, tmp_path)]:
        assert time.monotonic() < until, left
        time.sleep(0.05)


def _leads_to(link: Path, folder: Path) -> bool:
    try:
        return link.readlink().is_relative_to(folder)
    except OSError:
        return False
