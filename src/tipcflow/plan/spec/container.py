"""Commands of nodes whose steps run in a container."""

import shlex
from collections.abc import Sequence

from tipcflow.domain import Cluster, Command, Node, Step

# What every job has in its environment (tipcflow.execute.job.spec): the marks that identify its processes, also
# inside a container, the folder of the run's interpreters, how logs are written, and what the runner adds so
# that a process that hangs or crashes shows where (tipcflow.remote.runner.stack_signal).
JOB_VARIABLES = (
    "PADDLE_LOG_OVERWRITE",
    "PYTHONFAULTHANDLER",
    "PYTHONUNBUFFERED",
    "PYTHONWARNINGS",
    "TIPCFLOW_BIN",
    "TIPCFLOW_JOB",
    "TIPCFLOW_NODE",
    "TIPCFLOW_PYTHON",
    "TIPCFLOW_WORKSPACE",
)


def contained(steps: Sequence[Step], cluster: Cluster | None) -> list[Step]:
    """The steps with every command in its node's container; as they are where no node has one."""
    if cluster is None or not any(node.container for node in cluster.nodes):
        return list(steps)
    nodes = {node.name: node for node in cluster.nodes}

    def inside(command: Command, node: str) -> Command:
        return command.model_copy(update={"container": container_words(nodes[node], command)})

    return [
        step.model_copy(
            update={
                "commands": {name: inside(command, name) for name, command in step.commands.items()},
                "legs": tuple(
                    leg.model_copy(update={"command": inside(leg.command, step.nodes[0])}) for leg in step.legs
                ),
            }
        )
        for step in steps
    ]


def container_words(node: Node, command: Command) -> str:
    """The words that start the container of one command; '' when the node has none.

    Variables are passed by name alone: the engine takes the value from the job's environment and, where it is
    unset there, takes the variable out of the image's. What differs from run to run stands in variables, too.
    """
    container = node.container
    if container is None:
        return ""
    folder = "" if command.cwd in ("", ".") else "/" + shlex.quote(command.cwd)
    names = sorted({*JOB_VARIABLES, *node.env, *command.env} - {"PATH"})
    words = [
        *(shlex.quote(word) for word in engine_words(node)),
        '--name "$TIPCFLOW_CONTAINER"',
        f'-w "$TIPCFLOW_ROOT"{folder}',
        *(f"-e {shlex.quote(name)}" for name in names),
        *(shlex.quote(word) for word in (*container.args, container.image)),
    ]
    return " ".join(words)


def engine_words(node: Node) -> list[str]:
    """How anything is run in the node's container: the engine and its options, without those of one command.

    The host's network, because ranks find each other by the nodes' addresses; `--init`, so that signals arrive and
    orphans are reaped; the workspace under its own path, so that a path means the same inside and outside.
    """
    container = node.container
    if container is None:
        return []
    words = [container.engine, "run", "--rm", "--init", "--net=host", "-v", f"{node.workspace}:{node.workspace}"]
    # The job's own CPU list holds for the engine's client alone.
    return [*words, f"--cpuset-cpus={node.cpus}"] if node.cpus else words
