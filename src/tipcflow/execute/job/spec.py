"""A step of the plan -> the job for each node's runner."""

from collections.abc import Sequence

from tipcflow.config.waits import Waits
from tipcflow.domain import Cluster, Command, Compat, JobCommand, JobSpec, Node, Plan, Step, StepKind
from tipcflow.domain.run.names import JobId
from tipcflow.execute.job.hang import WAIT_S, progress_of
from tipcflow.execute.node.containers import container_name
from tipcflow.remote import paths
from tipcflow.remote.host_slots import host_key

# A clean PATH: the run's shims first, so that `python` in a suite's scripts is the node's interpreter.
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Unbuffered output; and without this, every process of Paddle 3 warns about a missing compiler cache.
# Otherwise Paddle's launcher appends to the worker log of another training of the same run.
_ENV = {"PYTHONUNBUFFERED": "1", "PYTHONWARNINGS": "ignore", "PADDLE_LOG_OVERWRITE": "1"}


# Steps with evaluated speeds: the node's own speed is measured with them.
_PROBED = frozenset({StepKind.TRAIN, StepKind.INFER_CPU, StepKind.INFER_GPU})


def job_spec(
    plan: Plan,
    step: Step,
    node: Node,
    *,
    run: str,
    attempt: int,
    fence: int,
    hang_s: float = 0.0,
    lease_s: float = Waits().node_lease_s,
    peers: Sequence[str] = (),
    framework_probe: bool = False,
) -> JobSpec:
    """Return the job of `step` on `node`, without legs that cannot run there.

    Args:
        hang_s: seconds of silence after which a training counts as hung; other steps may be silent until their
            deadline.
        lease_s: seconds without a controller after which the node ends the job.
        peers: addresses of the step's other nodes.
        framework_probe: whether Python processes load the framework probe.
    """
    legs = [(leg.id, leg.command) for leg in step.legs if not leg.not_run]
    commands = legs or [("", step.commands[node.name])]
    first = node.name == step.nodes[0]
    name = container_name(node, JobId(run, step.id, attempt)) if node.container else ""
    return JobSpec(
        run=run,
        step=step.id,
        attempt=attempt,
        node=node.name,
        fence=fence,
        slots=tuple(range(step.slots)),
        workspace=node.workspace,
        host=host_key(node.address),
        root=paths.run_root(node, run),
        commands=tuple(_job_command(leg, command, node, run) for leg, command in commands),
        env={
            **job_env(node, run),
            **_pythonpath(commands[0][1], node, run),
            **({"TIPCFLOW_CONTAINER": name} if name else {}),
        },
        cpus=node.cpus,
        barrier=step.is_gang,
        deadline_s=step.deadline_s,
        lease_s=lease_s,
        keep_going=bool(step.legs) or plan.compat is Compat.BASH,
        expects=step.expects if first else (),
        artefacts=step.artefacts,
        hang_s=hang_s if step.kind is StepKind.TRAIN else 0.0,
        hang_wait_s=WAIT_S if step.is_gang else 0.0,
        progress=progress_of(step),
        probe=step.kind in _PROBED,
        peers=tuple(peers),
        trainers=step.world_size // len(step.nodes) if step.servers else 0,
        framework_probe=framework_probe and step.kind is not StepKind.PREPARE,
        container=name,
        container_engine=node.container.engine if node.container else "docker",
    )


def _job_command(leg: str, command: Command, node: Node, run: str) -> JobCommand:
    env = {name: _filled(value, node, run) for name, value in command.env.items() if name != "PYTHONPATH"}
    return JobCommand(leg=leg, text=command.shell, cwd=command.cwd, env=env, log=command.log)


def _pythonpath(command: Command, node: Node, run: str) -> dict[str, str]:
    """Return the PYTHONPATH of a step whose suite has one; the runner extends that of the job."""
    own = _filled(command.env.get("PYTHONPATH", ""), node, run)
    return {"PYTHONPATH": ":".join(filter(None, (own, node.env.get("PYTHONPATH"))))} if own else {}


def _filled(value: str, node: Node, run: str) -> str:
    """Return the value of a variable with the folders of the run on the node."""
    for name, folder in (
        ("{root}", paths.run_root(node, run)),
        ("{run}", paths.run_dir(node, run)),
        ("{cache}", node.cache_folder),
        ("{agent}", paths.runner_path(node)),
    ):
        value = value.replace(name, folder)
    return value


def job_env(node: Node, run: str) -> dict[str, str]:
    """Return the environment of every command of a run on a node; the plan adds its own variables."""
    path = node.env.get("PATH", _SYSTEM_PATH)
    own = paths.run_bin(node, run)
    folders = {"TIPCFLOW_BIN": own, "TIPCFLOW_ROOT": paths.run_root(node, run)} if node.container else {}
    return {**_ENV, **node.env, **folders, "PATH": f"{own}:{path}"}


def slots_needed(plan: Plan, cluster: Cluster, *, whole_nodes: bool = False) -> list[tuple[str, int]]:
    """Return (node address, slot) of everything that any step of the plan locks; leased together for the whole
    run.

    Args:
        whole_nodes: all slots of each node in use.

    Slots are identified by address, because clusters may name one host twice or two hosts alike.
    """
    most: dict[str, int] = {}
    for step in plan.steps:
        if step.not_run or (step.legs and all(leg.not_run for leg in step.legs)):
            continue
        for node in step.nodes:
            most[node] = max(most.get(node, 0), step.slots)
    counts = {name: cluster.node(name).slots if whole_nodes else count for name, count in sorted(most.items())}
    return [(cluster.node(name).address, slot) for name, count in counts.items() for slot in range(count)]
