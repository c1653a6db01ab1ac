"""`tipcflow nodes reap --gone`: removes expired leases of a node that does not return and cannot be listed."""

from collections import defaultdict
from typing import TYPE_CHECKING

from tipcflow.domain import ConfigError

if TYPE_CHECKING:
    from tipcflow.store import Lease, Store


def refuse_configured(address: str) -> None:
    """Refuse a node that a cluster file lists: its leases end after it was listed.

    Raises:
        ConfigError: a cluster file lists the address, or is invalid.
    """
    from tipcflow.config.cluster import load_cluster
    from tipcflow.config.settings import settings

    folder = settings().config_dir
    for path in sorted((folder / "clusters").glob("*.yaml")):
        for node in load_cluster(path.stem, folder).nodes:
            if address in (node.address, node.name):
                raise ConfigError(
                    f"node {node.name} ({node.address}) is in this cluster file",
                    file=str(path),
                    key="--gone",
                    found=address,
                    expected="the address of a node that was removed from all cluster files",
                    hint="remove the node from the file if it does not return",
                )


def drop_gone(store: "Store", address: str, *, run: str, now: float) -> list[str]:
    """Delete the expired leases of a node that is in no cluster file; return a line for each run.

    Leases that have not expired stay: their runs may still use the node.

    Args:
        address: the node's address, as in its leases.
        run: only this run; '' for all.
        now: seconds since the epoch.

    Raises:
        ConfigError: the node has no lease; the message lists the nodes that have one.
    """
    from tipcflow.execute.leases.messages import clock, format_slots

    leases = store.leases.all()
    by_run: dict[str, list[Lease]] = defaultdict(list)
    for lease in leases:
        if lease.node == address and run in ("", lease.run):
            by_run[lease.run].append(lease)
    if not by_run:
        known = sorted({lease.node for lease in leases})
        raise ConfigError(
            f"no lease of {'run ' + run if run else 'any run'} on this node",
            key="--gone",
            found=address,
            expected=f"an address with leases: {', '.join(known) or 'none has any'}",
        )
    lines = []
    for name, own in sorted(by_run.items()):
        slots = format_slots([(lease.node, lease.slot) for lease in own], {address: ""}).strip()
        expires = max(lease.expires_at for lease in own)
        if expires > now:
            lines.append(f"run {name}: its lease on {slots} stays: it expires at {clock(expires)}")
        elif store.leases.drop_expired(own, now):
            lines.append(f"run {name}: its expired lease on {slots} was removed; the node was not listed")
        else:
            lines.append(f"run {name}: its lease on {slots} stays: it has changed meanwhile")
    return lines
