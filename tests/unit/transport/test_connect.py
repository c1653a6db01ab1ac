"""Logging in: host keys are always checked, and every failure has a message of its own."""

import getpass
import re
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tipcflow.domain import InfraError, Node, SshTarget
from tipcflow.transport.connect import connect
from tipcflow.transport.login import connect_client

pytestmark = pytest.mark.process

PIPE = """
import os, select, socket, sys
sock = socket.create_connection((sys.argv[1], int(sys.argv[2])))
while True:
    for source in select.select([0, sock], [], [])[0]:
        data = sock.recv(65536) if source is sock else os.read(0, 65536)
        if not data:
            sys.exit()
        sock.sendall(data) if source == 0 else os.write(1, data)
"""
GOLDEN = Path(__file__).parents[2] / "golden" / "remote"


def refusal(node, **settings):
    """The error of a connection that must fail, its words in one line."""
    with pytest.raises(InfraError) as caught:
        connect_client(node, **settings).close()
    assert caught.value.node == node.name
    assert str(caught.value).startswith(f"node {node.name}: ")
    return str(caught.value)


def test_valid_login_runs_commands(server):
    transport = connect(server.node())
    assert transport.run("echo $((6*7))").stdout == b"42\n"
    transport.close()
    transport.close()


def test_an_unknown_host_key_names_its_file(server):
    file = server.folder / "known_hosts"
    file.write_text("")
    shown = subprocess.run(
        ["ssh-keygen", "-lf", str(server.folder / "host_key.pub")], capture_output=True, text=True, check=True
    ).stdout.split()[1]
    result = refusal(server.node())
    assert f"(ssh-ed25519 {shown}) is not in {file}" in result
    assert f"ssh-keyscan -p {server.port} 127.0.0.1 >> {file}" in result
    file.unlink()
    assert f"is not in {file}" in refusal(server.node())


def test_the_advice_for_an_unknown_key_helps(server):
    file = server.folder / "known_hosts"
    file.write_text("")
    command = refusal(server.node()).split("then: ")[1]
    subprocess.run(command, shell=True, check=True, capture_output=True)
    connect_client(server.node()).close()


def test_a_changed_host_key_is_refused(server):
    server.learn(server.folder / "stranger")
    result = refusal(server.node())
    assert f"the host key of {whoami()}@127.0.0.1:{server.port} has changed: SHA256:" in result
    assert f"ssh-keygen -f {server.folder}/known_hosts -R '[127.0.0.1]:{server.port}'" in result


def test_refused_key_is_an_infra_failure(server):
    result = refusal(server.node(identity_file=str(server.folder / "stranger")))
    assert f"refuses the login with {server.folder}/stranger" in result
    assert "authorized_keys" in result


def test_missing_key_file_is_named(server):
    assert "key file not found: /no/such/key" in refusal(server.node(identity_file="/no/such/key"))


def test_encrypted_key_without_an_agent_is_reported(server, monkeypatch):
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    key = server.folder / "locked"
    shutil.copy(server.folder / "id", key)
    subprocess.run(["ssh-keygen", "-p", "-N", "secret", "-f", str(key)], check=True, capture_output=True)
    assert f"{key} is encrypted" in refusal(server.node(identity_file=str(key)))


def test_closed_port_is_reported(server):
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        assert "refuses connections: no SSH server is running there" in refusal(
            server.node(port=sock.getsockname()[1])
        )


def test_an_unknown_host_name_is_reported(server):
    assert "the host name no-such-host.invalid is unknown" in refusal(server.node(host="no-such-host.invalid"))


def test_a_server_that_never_speaks(server):
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen(8)
        result = refusal(server.node(port=sock.getsockname()[1]), timeout=0.3, patience=1.0)
    assert "accepts connections but sends no banner" in result


def test_a_server_that_always_hangs_up(server):
    with socket.socket() as front:
        front.bind(("127.0.0.1", 0))
        front.listen(64)

        def serve():
            try:
                while True:
                    front.accept()[0].close()
            except OSError:
                pass

        threading.Thread(target=serve, daemon=True).start()
        result = refusal(server.node(port=front.getsockname()[1]), patience=1.0)
        front.shutdown(socket.SHUT_RDWR)
    assert "closes the connection before its banner" in result
    assert "MaxStartups" in result


def test_a_server_that_hangs_up_is_tried_again(server):
    """As sshd does beyond MaxStartups: the third connection gets through."""
    seen = []
    with socket.socket() as front:
        front.bind(("127.0.0.1", 0))
        front.listen(8)
        port = front.getsockname()[1]
        server.learn(port=port)

        def serve():
            for number in range(3):
                near, _ = front.accept()
                seen.append(number)
                if number < 2:
                    near.close()
                    continue
                far = socket.create_connection(("127.0.0.1", server.port))
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=pump, args=(one, other), daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        connect_client(server.node(port=port)).close()
    assert seen == [0, 1, 2]


def test_logins_over_max_startups_are_retried(make_server):
    """Sixteen logins at once through a server that takes three: all get in, some later."""
    server = make_server("MaxStartups 3", "LoginGraceTime 30")
    failures = []

    def login():
        try:
            transport = connect(server.node())
            assert transport.run("true").exit_code == 0
            transport.close()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=login) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert "drop connection" in (server.folder / "log").read_text()


def test_an_alias_can_be_in_the_users_configuration(server, tmp_path):
    config = tmp_path / "config"
    config.write_text(
        f"Host trainer\n  HostName 127.0.0.1\n  Port {server.port}\n  IdentityFile {server.folder}/id\n"
        f"  UserKnownHostsFile {server.folder}/known_hosts\n"
    )
    node = Node(name="a", address="10.0.0.1", ssh=SshTarget(alias="trainer"), python="/p", workspace="/w")
    connect_client(node, config_file=config).close()
    # A value in the cluster file overrides the SSH configuration.
    other = node.model_copy(
        update={"ssh": SshTarget(alias="trainer", identity_file=str(server.folder / "stranger"))}
    )
    assert "refuses the login" in refusal(other, config_file=config)


def test_a_host_key_can_have_an_alias(server, tmp_path):
    kind, key = (server.folder / "host_key.pub").read_text().split()[:2]
    (server.folder / "known_hosts").write_text(f"certified {kind} {key}\n")
    config = tmp_path / "config"
    config.write_text("Host trainer\n  HostKeyAlias certified\n")
    connect_client(server.node(alias="trainer"), config_file=config).close()


def test_login_uses_the_proxy_command(server, tmp_path):
    config = tmp_path / "config"
    pipe = tmp_path / "pipe"
    pipe.write_text(PIPE)
    config.write_text(f"Host trainer\n  ProxyCommand {sys.executable} {pipe} %h %p\n")
    connect_client(server.node(alias="trainer"), config_file=config).close()


def test_connection_messages_equal_the_golden_file(server):
    """What a user reads, whole, with what differs from run to run replaced by names."""
    (server.folder / "empty").write_text("")
    (server.folder / "other").write_text((server.folder / "known_hosts").read_text())
    server.learn(server.folder / "stranger")
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        closed = sock.getsockname()[1]
        good = {"known_hosts": str(server.folder / "other")}
        result = [
            refusal(server.node(known_hosts=str(server.folder / "empty"))),
            refusal(server.node()),
            refusal(server.node(**good, identity_file=str(server.folder / "stranger"))),
            refusal(server.node(**good, identity_file="/no/such/key")),
            refusal(server.node(**good, port=closed)),
            refusal(server.node(**good, host="no-such-host.invalid")),
        ]
    text = "\n\n".join(result) + "\n"
    for found, name in [(str(server.folder), "FOLDER"), (str(server.port), "PORT"), (str(closed), "CLOSED")]:
        text = text.replace(found, name)
    text = re.sub(r"SHA256:[\w+/]{43}", "SHA256:…", text).replace(f"{whoami()}@", "USER@")
    assert text == (GOLDEN / "ssh_errors.txt").read_text()


def test_a_failing_proxy_command_is_reported(server, tmp_path):
    config = tmp_path / "config"
    config.write_text("Host trainer\n  ProxyCommand /bin/false\n")
    result = refusal(server.node(alias="trainer"), config_file=config, timeout=1.0, patience=1.0)
    assert "no SSH server responds through: /bin/false" in result


def test_login_uses_the_jump_host(make_server, tmp_path):
    inner, outer = make_server(), make_server()
    own = tmp_path / "own_config"
    own.write_text(
        f"Host outer\n  HostName 127.0.0.1\n  Port {outer.port}\n  IdentityFile {outer.folder}/id\n"
        f"  UserKnownHostsFile {outer.folder}/known_hosts\n"
    )
    config = tmp_path / "config"
    config.write_text("Host trainer\n  ProxyJump outer\n")
    wrapper = tmp_path / "bin" / "ssh"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {own} "$@"\n')
    wrapper.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{wrapper.parent}:/usr/bin:/bin")
        connect_client(inner.node(alias="trainer"), config_file=config).close()
    assert "Accepted publickey" in (outer.folder / "log").read_text()


def test_invalid_ssh_configuration_is_reported(server, tmp_path):
    config = tmp_path / "config"
    config.write_text("Host\n  Port\n")
    assert f"cannot read {config}" in refusal(server.node(alias="trainer"), config_file=config)


def whoami():
    """The user that an address without one means."""
    return getpass.getuser()


def pump(source, sink):
    """Copy one direction of a connection."""
    try:
        while data := source.recv(65536):
            sink.sendall(data)
    except OSError:
        pass
    finally:
        sink.close()


def test_nothing_is_logged_or_printed(server, capfd, caplog):
    (server.folder / "known_hosts").write_text("")
    refusal(server.node())
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []
    assert not Path("paramiko.log").exists()
