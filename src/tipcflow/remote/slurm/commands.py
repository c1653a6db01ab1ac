"""Commands for Slurm's login node, as text; `on_node` makes a step of a command for a node.

They run without a shell's start-up files changing them: every option is explicit, variables that stand for options
are unset, and times are in UTC.
"""

import shlex
from collections.abc import Sequence
from importlib import resources

from tipcflow.domain import Cluster, Node, SlurmSource
from tipcflow.remote.slurm.output import NEXT

# Exit code of `srun` if Slurm failed, not the command.
SLURM_FAILED = 251
# Deadlines of commands on the login node, seconds: clients of a slurmctld that does not respond retry for minutes.
SUBMIT_S, QUERY_S, CONTACT_S = 60.0, 20.0, 45.0
# An allocation that no controller has used for this long after its start ends, seconds.
UNUSED_S = 900
# How long a batch script without a starter stays, so that the controller reports why.
_STAYS_S = 300
_KILL_AFTER_S = 5
_FORMAT = "%i|%T|%r|%V|%S|%N|%j"
# Variables of the login that stand for options: SQUEUE_PARTITION hides jobs, SCANCEL_STATE leaves them,
# SBATCH_ARRAY_INX multiplies them. By prefix, because newer versions of Slurm have more of them.
_UNSET = r"""
unset SLURM_CLUSTERS $(env | sed -nE 's/^((SQUEUE|SINFO|SCONTROL|SCANCEL|SBATCH)_[A-Z0-9_]*)=.*/\1/p')
exec "$@"
"""
_WITHOUT_OPTIONS = ("/bin/sh", "-c", _UNSET.strip(), "tipcflow")
# Of queries: their output must not depend on the user's settings. Steps inherit the environment of their command.
_CLEAN = ("env", "TZ=UTC0", "LC_ALL=C", "SLURM_TIME_FORMAT=standard", *_WITHOUT_OPTIONS)


def _timed(seconds: float, words: Sequence[str]) -> str:
    return shlex.join(["timeout", "-k", str(_KILL_AFTER_S), f"{seconds:g}", *words])


def _query(*words: str) -> str:
    return _timed(QUERY_S, [*_CLEAN, *words])


def on_node(node: Node, command: str) -> str:
    """Return the command that runs `command` on the node: a step of its allocation, unless it is reached directly.

    Raises:
        ValueError: the node is a placeholder without an allocation.
    """
    place = node.slurm
    if place is None or place.login:
        return command
    if not place.job:
        raise ValueError(f"node {node.name} is not allocated")
    words = [f"SLURM_EXIT_ERROR={SLURM_FAILED}", f"SLURM_EXIT_IMMEDIATE={SLURM_FAILED}"]
    return shlex.join([*_HERE, *words, *_srun(place.job, [node.name], place.gres), "/bin/sh", "-c", command])


def _srun(job: str, nodes: Sequence[str], gres: str) -> list[str]:
    words = [f"--jobid={job}", "--overlap", f"--nodes={len(nodes)}", f"--ntasks={len(nodes)}"]
    words += [f"--nodelist={','.join(nodes)}", *_STEP, *([f"--gres={gres}"] if gres else [])]
    return ["srun", *words]


# The allocation is one of the login node's own cluster.
_HERE = ("env", "-u", "SLURM_CLUSTERS")
# Whole nodes without binding: tipcflow itself assigns CPUs and slots. No message but errors.
_STEP = ("--ntasks-per-node=1", "--mem=0", "--cpu-bind=none", "--mpi=none", "--quiet", "--job-name=tipcflow")


def starter_name(node: Node) -> str:
    """Return the name by which the runner of a step finds the starter of its node; '' without an allocation."""
    return f"{node.slurm.job}/{node.name}" if node.slurm and node.slurm.job else ""


def submit(cluster: Cluster, *, name: str, nodes: int, nodelist: Sequence[str] = ()) -> str:
    """Submit the request for an allocation, whose batch script is stdin; prints its ID.

    Args:
        name: the job's name, by which it is found again.
        nodelist: names of the nodes that the allocation must have; any nodes if empty.
    """
    source = _source(cluster)
    options = {
        "partition": source.partition,
        "constraint": source.constraint,
        "account": source.account,
        "qos": source.qos,
        "gres": source.gres,
        "nodelist": ",".join(nodelist),
    }
    words = ["sbatch", "--parsable", f"--job-name={name}", f"--nodes={nodes}", "--ntasks-per-node=1"]
    words += ["--exclusive", "--mem=0", f"--time={source.time_limit_minutes}", "--no-requeue", "--chdir=/"]
    words += ["--input=/dev/null", "--output=/dev/null", "--export=ALL"]
    words += [f"--{option}={value}" for option, value in options.items() if value]
    return _timed(SUBMIT_S, [*_WITHOUT_OPTIONS, *words])


def batch_script(cluster: Cluster) -> str:
    """Return the batch script: a step with one starter on every node, for as long as the allocation."""
    words = ["srun", "--overlap", *_STEP, "--kill-on-bad-exit=0", "--wait=0", "--input=none", "--output=none"]
    gres = _source(cluster).gres
    words += [*([f"--gres={gres}"] if gres else []), *_python(cluster, f"sys.exit(serve({UNUSED_S}))")]
    return f"#!/bin/sh\n{shlex.join(words)} || sleep {_STAYS_S}\n"


def contact(nodes: Sequence[Node]) -> str:
    """Contact the starters of all nodes: an allocation whose starters are not contacted ends."""
    place = nodes[0].slurm
    assert place is not None
    words = _srun(place.job, [node.name for node in nodes], place.gres)
    python = [nodes[0].python, "-I", "-S", "-c", f"{_starter()}\nsys.exit(greet())"]
    return _timed(CONTACT_S, [*_HERE, *words, *python])


def _python(cluster: Cluster, call: str) -> list[str]:
    return [cluster.nodes[0].python, "-I", "-S", "-c", f"{_starter()}\n{call}"]


def _starter() -> str:
    return (resources.files("tipcflow.remote.slurm") / "starter.py").read_text("utf-8").strip()


def version() -> str:
    """Print the version of Slurm's programs on the login node: see `output.version_in`."""
    return _query("scancel", "--version")


def find(name: str) -> str:
    """Print the user's jobs of that name, also ended ones that slurmctld still knows: see `output.jobs_in`."""
    return _query("squeue", "--me", "--noheader", "--states=all", f"--name={name}", f"--format={_FORMAT}")


def own() -> str:
    """Print the user's jobs, also ended ones that slurmctld still knows: see `output.active_jobs_in`."""
    return _query("squeue", "--me", "--noheader", "--states=all", f"--format={_FORMAT}")


def pending(cluster: Cluster) -> str:
    """Print the IDs of all pending jobs of the partition, those with the highest priority first."""
    partition = _source(cluster).partition
    words = ["squeue", "--noheader", "--states=PENDING", "--sort=-p,i", "--format=%i"]
    return _query(*words, *([f"--partition={partition}"] if partition else []))


# A Reason or Comment may contain another ` NodeAddr=`: the first one of a line counts.
# One command of Slurm and one of the resolver, also for an allocation of a thousand nodes. getent does not repeat
# the names that it resolves: before each, it prints the address NEXT. ahostsv4 would resolve nothing on a host
# whose only address is 127.0.0.1 (AI_ADDRCONFIG); `output.nodes_in` ignores the IPv6 addresses of ahosts.
_NODES = f"""
nodes=$(scontrol -o show node "$1") || exit 1
printf '%s\\n' "$nodes"
names=$(printf '%s\\n' "$nodes" | sed -n 's/ NodeAddr=\\([^ ]*\\).*/ NodeAddr=\\1/
s/.* NodeAddr=\\([^ ]*[^ 0-9.][^ ]*\\).*/{NEXT} \\1/p')
[ -z "$names" ] || getent ahosts $names || :
"""


def nodes(nodelist: str) -> str:
    """Print the nodes of a list as `n[1-4]`, with what slurmctld knows of them: see `output.nodes_in`."""
    return _query("/bin/sh", "-c", _NODES.strip(), "tipcflow", nodelist)


def state(node: Node) -> str:
    """Print state, reason and nodes of a node's allocation: see `output.jobs_in`."""
    job = node.slurm.job if node.slurm else ""
    return _query("squeue", "--noheader", "--states=all", f"--jobs={job}", f"--format={_FORMAT}")


def down(nodelist: str) -> str:
    """Print those nodes of a list as `n[1-4]` that are down, one a line, once for each of their partitions."""
    return _query("sinfo", "--noheader", "--Node", f"--nodes={nodelist}", "--states=down,fail", "--format=%N")


def cancel(name: str) -> str:
    """End the user's jobs of that name, whether they are pending or running."""
    return _query("scancel", "--me", f"--name={name}")


def cancel_job(job: str) -> str:
    """End one job."""
    return _query("scancel", job)


def _source(cluster: Cluster) -> SlurmSource:
    assert cluster.slurm is not None
    return cluster.slurm
