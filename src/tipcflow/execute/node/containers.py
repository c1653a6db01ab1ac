"""Nodes whose steps run in a container: checks of engine and image, and the names of containers."""

import hashlib
import re

from tipcflow.domain import Container, FailureClass, InfraError, Node
from tipcflow.domain.run.names import JobId
from tipcflow.remote import containers
from tipcflow.transport import Transport

CHECK_S, PULL_S = 60.0, 1800.0
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")


def container_name(node: Node, job: JobId) -> str:
    """Return the container name of a job: stable, and unique per job and node.

    The node is part of the name because nodes may share an engine; the hash separates names that would be equal.
    """
    digest = hashlib.sha256(f"{node.address} {node.workspace} {node.name} {job}".encode()).hexdigest()[:12]
    return f"tipcflow-{_UNSAFE.sub('_', str(job))[:80]}-{digest}"


def usable_image(transport: Transport, node: Node) -> str:
    """Return the image of a node's container with its id; '' if the node has none. Pulls it if that is allowed.

    Raises:
        InfraError: engine or image are not usable; the hint names the fix on the node.
    """
    container = node.container
    if container is None:
        return ""
    command = containers.check_container(node, container)
    done = transport.run(command, timeout=PULL_S if container.pull else CHECK_S)
    if done.exit_code == 0:
        output = done.stdout.decode(errors="replace").split()
        return f"{container.image} ({output[-1][:19]})" if output else container.image
    lines = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
    raise InfraError(
        f"node {node.name} cannot run its container: {lines[-1] if lines else f'exit code {done.exit_code}'}",
        node=node.name,
        hint=_hint(container, done.exit_code),
        failure_class=FailureClass.ENVIRONMENT if done.exit_code == containers.NO_INTERPRETER else None,
        output=lines[-1] if lines else "",
    )


def _hint(container: Container, code: int) -> str:
    engine, image = container.engine, container.image
    return {
        containers.NO_ENGINE: f"install {engine} on the node, or fix `container.engine` in the cluster file",
        containers.ENGINE_SILENT: f"start {engine}'s daemon on the node; the login must be allowed to use it",
        containers.NO_IMAGE: f"on the node: `{engine} pull {image}`, or `{engine} import FILE.tar {image}`; "
        "or `pull: true` of the container in the cluster file",
        containers.NO_PULL: f"try `{engine} pull {image}` on the node",
        containers.REFUSED: "see `container.args` in the cluster file",
        containers.NO_INTERPRETER: "set `container.python` in the cluster file to the image's interpreter; "
        "steps need bash, too",
    }.get(code, "")
