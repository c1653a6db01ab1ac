"""Container commands of nodes whose steps run in a container."""

import shlex
from collections.abc import Sequence
from pathlib import PurePosixPath

from tipcflow.domain import Cluster, Command, Node, Step

# Environment variables of every job (tipcflow.execute.job.spec): the marks that identify its processes, also
# inside a container, the folder of the run's interpreters, log buffering, and the runner's variables for stack
# dumps of hanging or crashing processes (tipcflow.remote.runner.stack_signal).
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
    """Return the steps with every command in its node's container; unchanged for nodes without one."""
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
    """Return the words that start the container of one command; '' if the node has none.

    Variables are passed by name: the engine takes the value from the job's environment and, if it is unset
    there, removes the variable of the image. Values that differ between runs are also passed as variables.
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
    """Return the container engine and its options for a node, without the options of a single command.

    Host network, because ranks connect by the nodes' addresses; `--init` forwards signals and reaps orphans;
    the workspace and the cache are mounted at the same path inside and outside.
    """
    container = node.container
    if container is None:
        return []
    words = [container.engine, "run", "--rm", "--init", "--net=host", "-v", f"{node.workspace}:{node.workspace}"]
    if not PurePosixPath(node.cache_folder).is_relative_to(node.workspace):
        words += ["-v", f"{node.cache_folder}:{node.cache_folder}"]
    # The job's own CPU list applies to the engine's client only.
    return [*words, f"--cpuset-cpus={node.cpus}"] if node.cpus else words
