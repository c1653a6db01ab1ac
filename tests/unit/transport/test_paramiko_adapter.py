"""Commands, streams and files over a real sshd."""

import hashlib
import os
import threading
import time
from pathlib import Path

import pytest

from tipcflow.domain import InfraError
from tipcflow.transport.connect import connect
from tipcflow.transport.login import connect_client
from tipcflow.transport.paramiko_adapter import ParamikoTransport

pytestmark = pytest.mark.process


@pytest.fixture
def transport(server):
    made = connect(server.node())
    yield made
    made.close()


def test_output_errors_and_exit_code_are_separate(transport):
    done = transport.run("printf 'a\\0b'; printf oops >&2; exit 3")
    assert (done.exit_code, done.stdout, done.stderr) == (3, b"a\0b", b"oops")


def test_input_goes_through_unchanged(transport):
    data = bytes(range(256)) * 20_000
    assert transport.run("cat", input=data).stdout == data


def test_a_command_that_ends_without_reading_its_input(transport):
    done = transport.run("echo no >&2; exit 4", input=b"x" * 10_000_000)
    assert (done.exit_code, done.stderr) == (4, b"no\n")


def test_much_on_stderr_does_not_block(transport):
    done = transport.run("head -c 8000000 /dev/zero >&2; head -c 8000000 /dev/zero")
    assert (done.exit_code, len(done.stdout)) == (0, 8_000_000)


def test_killed_command_has_exit_code_minus_1(transport):
    assert transport.run("kill -9 $$").exit_code == -1


def test_command_over_the_time_limit_is_an_infra_failure(transport):
    with pytest.raises(InfraError, match="node a: no response within"):
        transport.run("sleep 60", timeout=0.3)
    assert transport.run("true").exit_code == 0


def test_a_line_without_end_is_not_kept(transport, monkeypatch):
    monkeypatch.setattr("tipcflow.transport.paramiko_adapter.LINE_LIMIT", 1 << 20)
    command = "echo a; head -c 900000 /dev/zero; echo; head -c 50000000 /dev/zero; echo"
    with transport.stream(command) as lines:
        assert next(lines) == b"a"
        assert next(lines) == bytes(900_000)
        with pytest.raises(InfraError, match=r"node a: the remote command printed a line of more than 1.0 MiB"):
            next(lines)


def test_a_response_without_end_is_not_kept(transport, monkeypatch):
    monkeypatch.setattr("tipcflow.transport.paramiko_adapter.OUTPUT_LIMIT", 1 << 20)
    with pytest.raises(InfraError, match=r"node a: the remote command printed more than 1.0 MiB"):
        transport.run("yes", timeout=20)
    assert transport.run("true").exit_code == 0


def test_a_stream_ends_without_a_traceback_after_its_connection(transport, monkeypatch):
    """The transport notices its end only when it sends the message that closes the channel."""
    stream = transport.stream("echo a; sleep 60")
    assert next(stream.__enter__()) == b"a"

    def broken(*_: object) -> None:
        raise EOFError

    monkeypatch.setattr(transport.client.get_transport(), "_send_user_message", broken)
    stream.__exit__(None, None, None)


def test_stream_waits_longer_for_the_first_word(transport):
    with transport.stream("sleep 1.5; echo a; sleep 60", timeout=1.0, first=30.0) as lines:
        assert next(lines) == b"a"
        with pytest.raises(InfraError, match=r"within 1 s"):
            next(lines)


def test_stream_sends_its_input_first(transport):
    with transport.stream("wc -c; echo read", input=b"x" * 300_000) as lines:
        assert [line.strip() for line in lines] == [b"300000", b"read"]
    with transport.stream("echo does not read", input=b"x" * 300_000) as lines:
        assert next(lines) == b"does not read"


def test_stream_returns_whole_lines(transport):
    with transport.stream("echo one; printf 'two\\nth'; sleep 0.2; echo ree; printf rest") as lines:
        assert list(lines) == [b"one", b"two", b"three", b"rest"]


def test_leaving_a_stream_closes_its_pipes(transport):
    """The runner's watch notices by this that its reader is gone."""
    with transport.stream("echo $$; while echo alive; do sleep 0.05; done") as lines:
        pid = int(next(lines))
    end = time.monotonic() + 20
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < end, "the remote command continues"
        time.sleep(0.02)


def test_a_silent_stream_is_closed(transport):
    with transport.stream("sleep 60", timeout=0.5) as lines, pytest.raises(InfraError, match=r"within 0\.5 s"):
        next(lines)


def test_slow_but_not_silent_stream_is_not(transport):
    with transport.stream("for i in 1 2 3 4; do echo $i; sleep 0.4; done", timeout=1.0) as lines:
        assert len(list(lines)) == 4


def test_stream_of_a_command_that_fails(transport):
    with transport.stream("echo a; echo broken >&2; exit 7") as lines:
        assert next(lines) == b"a"
        with pytest.raises(InfraError, match="the remote command ended with 7: broken"):
            next(lines)


def test_errors_of_the_reader_stay_its_own(transport):
    with pytest.raises(FileNotFoundError), transport.stream("echo a"):
        raise FileNotFoundError("mine")


def test_lost_connection_is_an_infra_failure(server):
    transport = connect(server.node())
    with transport.stream("echo a; sleep 60") as lines:
        assert next(lines) == b"a"
        server.close()
        with pytest.raises(InfraError, match="the connection is lost"):
            next(lines)
    with pytest.raises(InfraError, match="the connection is lost"):
        transport.run("true")


def test_put_makes_folders_and_sets_the_mode(transport, tmp_path):
    data = os.urandom(3_000_000)
    remote = tmp_path / "new folder" / "it's $(here)\n"
    transport.put(data, str(remote), mode=0o750)
    assert remote.read_bytes() == data
    assert remote.stat().st_mode & 0o777 == 0o750
    assert [file.name for file in remote.parent.iterdir()] == [remote.name]
    (tmp_path / "local").write_bytes(b"from a file")
    transport.put(tmp_path / "local", str(remote))
    assert remote.read_bytes() == b"from a file"


def test_a_failed_put_reports_the_reason_and_keeps_the_old_file(transport, tmp_path):
    (tmp_path / "file").write_text("old")
    with pytest.raises(InfraError, match=r"node a: cannot write .*/file/x: .*Not a directory|File exists"):
        transport.put(b"new", f"{tmp_path}/file/x")
    assert (tmp_path / "file").read_text() == "old"


def test_files_are_read_whole_or_in_part(transport, tmp_path):
    data = os.urandom(500_000)
    (tmp_path / "file").write_bytes(data)
    remote = str(tmp_path / "file")
    assert transport.get(remote) == data
    assert transport.get(remote, offset=10, limit=5) == data[10:15]
    assert transport.get(remote, offset=499_999) == data[-1:]
    assert transport.get(remote, offset=600_000) == b""
    assert transport.get(remote, tmp_path / "to" / "copy") == b""
    assert (tmp_path / "to" / "copy").read_bytes() == data


def test_a_missing_file_is_reported(transport, tmp_path):
    with pytest.raises(FileNotFoundError, match="a:/no/such"):
        transport.get("/no/such", tmp_path / "copy")
    assert list(tmp_path.glob("copy*")) == []


def test_get_many_fetches_files_with_unusual_names(transport, tmp_path):
    root = tmp_path / "remote root"
    (root / "logs").mkdir(parents=True)
    (root / "log").mkdir()
    for name in ("logs/a b.log", "-x", "log/workerlog.0", "log/envlog.0", "it's"):
        (root / name).write_text(name)
    (root / "large").write_bytes(b"x" * 2_000_000)
    wanted = ["logs/a b.log", "-x", "missing", "log", "log/envlog.0", "it's", "large"]
    found = transport.get_many(str(root), wanted, tmp_path / "here", limit=10**6)
    assert {name: one.size for name, one in found.items()} == {
        "logs/a b.log": 12,
        "-x": 2,
        "it's": 4,
        "large": 2_000_000,
    }
    assert found["large"].sha256 == hashlib.sha256(b"x" * 10**6).hexdigest()
    here = sorted(str(path.relative_to(tmp_path / "here")) for path in (tmp_path / "here").rglob("*"))
    assert here == ["-x", "it's", "logs", "logs/a b.log"]
    assert (tmp_path / "here" / "logs" / "a b.log").read_text() == "logs/a b.log"
    assert transport.get_many(str(root), ["missing"], tmp_path / "none", limit=1) == {}
    assert transport.get_many(str(root), [], tmp_path / "none", limit=1) == {}


def test_get_many_stays_in_its_folder(transport, tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to("/etc/passwd")
    assert transport.get_many(str(root), ["link"], tmp_path / "here", limit=10**6) == {}
    assert not (tmp_path / "here" / "link").exists()


def test_get_more_continues_after_the_local_part(transport, tmp_path):
    data = os.urandom(300_000)
    (tmp_path / "file").write_bytes(data)
    local = tmp_path / "to" / "part"
    transport.get_more(str(tmp_path / "file"), local, limit=1000)
    transport.get_more(str(tmp_path / "file"), local, limit=200_000)
    transport.get_more(str(tmp_path / "file"), local, limit=200_000)
    assert local.read_bytes() == data[:200_000]
    with pytest.raises(FileNotFoundError):
        transport.get_more("/no/such", local, limit=200_001)


def test_stream_and_commands_run_concurrently(transport):
    results = []
    with transport.stream("for i in $(seq 50); do echo $i; sleep 0.02; done") as lines:
        threads = [
            threading.Thread(target=lambda n=n: results.append(transport.run(f"echo {n}").stdout))
            for n in range(6)
        ]
        for thread in threads:
            thread.start()
        assert len(list(lines)) == 50
        for thread in threads:
            thread.join(20)
    assert sorted(results) == [f"{n}\n".encode() for n in range(6)]


def test_a_client_of_another_owner_is_taken_over(server):
    transport = ParamikoTransport(connect_client(server.node()), server.node())
    assert transport.run("echo hi").stdout == b"hi\n"
    transport.close()
