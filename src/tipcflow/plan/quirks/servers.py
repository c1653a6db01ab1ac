"""Training with parameter servers: launcher words of one node, and clusters that Paddle's launcher misreads."""

from tipcflow.domain import ConfigError, Launch
from tipcflow.plan.source.groups import Group
from tipcflow.plan.source.hosts import Host
from tipcflow.plan.source.options import PlanOptions


def server_count(group: Group, options: PlanOptions) -> int:
    """Return the number of parameter servers of a training over all nodes: one per node; 0 for other launchers."""
    return group.nodes if options.launch is Launch.PS else 0


def server_words(group: Group, host: Host, hosts: tuple[Host, ...], folder: str, options: PlanOptions) -> str:
    """Return the words between interpreter and script of a training with parameter servers.

    On several nodes each process has a port of the run: first the servers, then each node's trainers, then the
    rendezvous of the trainers. On one node the launcher chooses free ports.
    """
    words = ["-m paddle.distributed.launch"]
    trainers = max(1, len(group.ids))
    if group.form == "nodes":
        first = options.start_port
        places = [f"{peer.address}:{first + 1 + number}" for peer in hosts for number in range(trainers)]
        words += [
            "--servers=" + ",".join(f"{peer.address}:{first}" for peer in hosts),
            "--trainers=" + ",".join(places),
            f"--gloo_port={first + 1 + trainers}",
            f"--host={host.address}",
        ]
    else:
        words += ["--server_num=1", f"--trainer_num={trainers}"]
    words.append(f"--log_dir={folder}/launch")
    return " ".join(words)


def check_servers(hosts: tuple[Host, ...], *, file: str, line: int) -> None:
    """Refuse addresses that Paddle's launcher misreads in `--servers` and `--trainers`.

    Source: the launcher of Paddle 2.6.2 splits `IP:port` at the colon, and starts on a node every process whose
    place starts with the node's address.

    Raises:
        ConfigError: an address is IPv6, or starts with the whole address of another node.
    """
    for host in hosts:
        if ":" in host.address:
            raise ConfigError(
                "launch: ps needs IPv4 addresses or names, because Paddle's launcher reads IP:port",
                file=file,
                line=line,
                key="address",
                found=f"{host.address} of node {host.name}",
                expected="an IPv4 address",
            )
        for other in hosts:
            if other is not host and other.address.startswith(host.address):
                raise ConfigError(
                    f"launch: ps: Paddle's launcher on node {host.name} would also start the processes of node "
                    f"{other.name}, because the address of {other.name} starts with that of {host.name}",
                    file=file,
                    line=line,
                    key="address",
                    found=f"{host.address} and {other.address}",
                    expected="nodes without such addresses",
                )
