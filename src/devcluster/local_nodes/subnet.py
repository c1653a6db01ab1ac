"""Choice of a private network that is unused on this machine."""

import ipaddress
import json
import secrets

from devcluster.shell import call
from tipcflow.domain import InfraError

# The second pool is for machines whose VPN routes all of 10/8, the third (benchmarks, RFC 2544) for the rest.
_POOLS = [ipaddress.IPv4Network(pool) for pool in ("10.77.0.0/16", "172.29.0.0/16", "198.18.0.0/16")]


def free_subnet() -> ipaddress.IPv4Network:
    """Return a /24 that overlaps no address or route of this machine. Call it under the registry's lock.

    Raises:
        InfraError: all networks are in use.
    """
    used = _used()
    for pool in _POOLS:
        candidates = list(pool.subnets(new_prefix=24))
        start = secrets.randbelow(len(candidates))
        for candidate in candidates[start:] + candidates[:start]:
            if not any(candidate.overlaps(network) for network in used):
                return candidate
    pools = ", ".join(str(pool) for pool in _POOLS)
    raise InfraError(f"no free network in {pools} for the local nodes", hint="see `ip addr` and `ip route`")


def _used() -> list[ipaddress.IPv4Network]:
    networks = []
    for link in json.loads(call(["ip", "-j", "-4", "addr"]).stdout or "[]"):
        for address in link.get("addr_info", []):
            if "local" in address:
                network = f"{address['local']}/{address['prefixlen']}"
                networks.append(ipaddress.IPv4Network(network, strict=False))
    for route in json.loads(call(["ip", "-j", "-4", "route", "show", "table", "all"]).stdout or "[]"):
        target = route.get("dst", "default")
        if target != "default":
            networks.append(ipaddress.IPv4Network(target, strict=False))
    return networks
