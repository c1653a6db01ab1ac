"""The transport of a login node that is this machine; a fake `srun` runs the commands of steps here."""

import os
import time
from pathlib import Path

import pytest

from tipcflow.domain import FailureClass, InfraError, Node, SlurmStep
from tipcflow.transport.connect import connect
from tipcflow.transport.local_adapter import LocalTransport

pytestmark = pytest.mark.process

SRUN = """#!/bin/sh
while [ "$1" != /bin/sh ]; do shift; done
if [ -e "$(dirname "$0")/down" ]; then
    echo 'srun: error: Unable to create step: Job has expired' >&2
    exit $SLURM_EXIT_ERROR
fi
"$@"
code=$?
[ $code = 0 ] || echo "srun: error: n1: task 0: Exited with exit code $code" >&2
exit $code
"""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of Slurm's programs."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    write(folder / "srun", SRUN)
    write(folder / "squeue", "#!/bin/sh\necho '7|RUNNING|None|2026-11-26T09:46:33|2026-11-26T09:46:34|n1|tipc'\n")
    return folder


def write(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def node(job: str = "7", *, login: bool = False) -> Node:
    place = SlurmStep(local=True, job=job, name="tipc", login=login)
    return Node(name="n1", address="192.0.2.1", python="/usr/bin/python3", workspace="/scratch/n1", slurm=place)


def test_command_has_input_output_and_exit_code(programs: Path) -> None:
    done = connect(node()).run("cat; echo oops >&2; exit 3", input=b"bytes\0\xff", timeout=30)
    assert (done.exit_code, done.stdout, done.stderr) == (3, b"bytes\0\xff", b"oops\n")


def test_files_are_written_and_read(programs: Path, tmp_path: Path) -> None:
    transport, data = connect(node()), os.urandom(300_000)
    transport.put(data, str(tmp_path / "a" / "f"), mode=0o600)
    assert (tmp_path / "a" / "f").stat().st_mode & 0o777 == 0o600
    assert transport.get(str(tmp_path / "a" / "f"), offset=10, limit=20) == data[10:30]
    transport.get(str(tmp_path / "a" / "f"), tmp_path / "here")
    assert (tmp_path / "here").read_bytes() == data
    listed = transport.get_many(str(tmp_path / "a"), ["f", "g"], tmp_path / "many", limit=1 << 20)
    assert {name: entry.size for name, entry in listed.items()} == {"f": 300_000}
    with pytest.raises(FileNotFoundError, match="n1:"):
        transport.get(str(tmp_path / "none"))


def test_stream_yields_the_printed_lines(programs: Path) -> None:
    with connect(node()).stream("read x; echo $x; sleep 0.1; echo two", input=b"one\n", timeout=20) as lines:
        assert list(lines) == [b"one", b"two"]
    with (
        pytest.raises(InfraError, match="ended with 4: why"),
        connect(node()).stream("echo why >&2; exit 4") as lines,
    ):
        list(lines)


def test_silent_command_is_ended(programs: Path) -> None:
    began = time.monotonic()
    with pytest.raises(InfraError, match=r"node n1: no response within 0\.3 s"):
        connect(node()).run("sleep 60", timeout=0.3)
    with pytest.raises(InfraError, match="no response"), connect(node()).stream("sleep 60", timeout=0.3) as lines:
        list(lines)
    assert time.monotonic() - began < 20


def test_step_that_slurm_refuses_is_an_error_of_the_node(programs: Path) -> None:
    transport = connect(node())
    (programs / "down").touch()
    with pytest.raises(InfraError, match="node n1: no step in Slurm job 7: srun: error: Unable to create step"):
        transport.run("true")


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("echo '7|NODE_FAIL|NodeDown|N/A|N/A|n1|tipc'", r"has ended: Slurm job 7 \(NODE_FAIL, NodeDown\)"),
        ("echo '7|COMPLETING|TimeLimit|N/A|N/A|n1|tipc'", r"has ended: Slurm job 7 \(TimeLimit\)"),
        ("echo '7|COMPLETING|None|N/A|N/A|n1|tipc'", r"has ended: Slurm job 7 \(COMPLETING\)"),
        ("echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1", "has ended: Slurm job 7$"),
        ("echo '7|RUNNING|None|N/A|N/A|n1|other'", "has ended: Slurm job 7$"),
    ],
)
def test_ended_allocation_is_a_lost_node(programs: Path, output: str, words: str) -> None:
    write(programs / "squeue", f"#!/bin/sh\n{output}\n")
    with pytest.raises(InfraError, match=words) as caught:
        connect(node())
    assert caught.value.failure_class is FailureClass.NODE_LOST
    assert not caught.value.passing


@pytest.mark.parametrize(
    ("down", "node_of_error", "words"),
    [
        ("echo n2; echo n2", "n2", "allocation has ended because node n2 failed: Slurm job 7"),
        ("echo n3; echo n2", "n2", "allocation has ended because nodes n2, n3 failed: Slurm job 7"),
        ("echo n2; echo n1", "n1", "allocation has ended: Slurm job 7"),
        ("true", "n1", "allocation has ended: Slurm job 7"),
        ("echo n2; exit 1", "n1", "allocation has ended: Slurm job 7"),
    ],
)
def test_allocation_ended_by_another_node_names_its_failure(
    programs: Path, down: str, node_of_error: str, words: str
) -> None:
    write(programs / "squeue", "#!/bin/sh\necho '7|NODE_FAIL|NodeDown|N/A|N/A|n[1-3]|tipc'\n")
    write(programs / "sinfo", f'#!/bin/sh\n[ "$3" = "--nodes=n[1-3]" ] || exit 9\n{down}\n')
    with pytest.raises(InfraError, match=f"{words} \\(NODE_FAIL, NodeDown\\)") as caught:
        connect(node())
    assert caught.value.node == node_of_error


def test_controller_that_does_not_respond_ends_no_allocation(programs: Path) -> None:
    write(
        programs / "squeue",
        "#!/bin/sh\necho 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1\n",
    )
    assert connect(node()).run("echo fine").stdout == b"fine\n"


def test_placeholder_has_no_connection(programs: Path) -> None:
    with pytest.raises(InfraError, match="node n1: is not allocated"):
        connect(node(""))
    with pytest.raises(InfraError, match="node n1 is not allocated"):
        LocalTransport(node("")).run("true")


def test_environment_of_this_process_stays_here(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "99")
    monkeypatch.setenv("SECRET", "x")
    output = connect(node("", login=True)).run("env").stdout.decode()
    assert "SECRET" not in output
    assert "SLURM_JOB_ID" not in output
