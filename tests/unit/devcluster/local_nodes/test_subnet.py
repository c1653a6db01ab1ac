"""The network of local nodes never overlaps one that is in use."""

import ipaddress

import pytest

from devcluster.local_nodes import subnet
from tipcflow.domain import InfraError


def networks(monkeypatch: pytest.MonkeyPatch, *used: str) -> None:
    monkeypatch.setattr(subnet, "_used", lambda: [ipaddress.IPv4Network(text) for text in used])


def test_the_last_free_one_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    free = ipaddress.IPv4Network("10.77.200.0/24")
    pool = ipaddress.IPv4Network("10.77.0.0/16").subnets(new_prefix=24)
    networks(monkeypatch, *(str(network) for network in pool if network != free))
    assert subnet.free_subnet() == free


def test_a_vpn_that_routes_all_of_ten_is_avoided(monkeypatch: pytest.MonkeyPatch) -> None:
    networks(monkeypatch, "10.0.0.0/8")
    assert subnet.free_subnet().subnet_of(ipaddress.IPv4Network("172.29.0.0/16"))


def test_exhausted_subnets_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    networks(monkeypatch, "0.0.0.0/0")
    with pytest.raises(InfraError, match="no free network in 10"):
        subnet.free_subnet()
