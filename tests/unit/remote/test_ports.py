"""Which ports a node uses, according to the kernel."""

import socket
import subprocess

import pytest

from tipcflow.remote.ports import list_ports, ports_in

FAMILIES = [(socket.AF_INET, "127.0.0.1"), pytest.param((socket.AF_INET6, "::1"), id="ipv6")]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_port_in_use_is_reported(family: tuple[socket.AddressFamily, str]) -> None:
    try:
        listener = socket.create_server((family[1], 0), family=family[0])
    except OSError:
        pytest.skip("this machine has no such addresses")
    with listener:
        done = subprocess.run(["sh", "-c", list_ports()], capture_output=True, text=True, check=True)
        assert listener.getsockname()[1] in ports_in(done.stdout)


def test_only_local_ports_count() -> None:
    table = (
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
        "   0: 0100007F:4E40 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0  0 1\n"
        "   1: 00000000000000000000000001000000:4E41 00000000000000000000000001000000:0050 01 00000000:00000000\n"
    )
    assert ports_in(table) == {20032, 20033}
    assert ports_in("") == set()
