"""Nodes that are running containers or pods, reached by the `exec` command of their engine."""

from typing import Annotated, Literal

from pydantic import Field

from tipcflow.domain.base import Frozen

# A name that no program takes for an option.
_NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"
_PROGRAM = r"^[A-Za-z0-9_./][A-Za-z0-9_./-]*$"


class DockerExec(Frozen):
    """A running container of this machine's engine, or of the engine that `DOCKER_HOST` names.

    Attributes:
        container: its name or ID.
        program: `docker`, or a program with the same `exec` (`podman`, `nerdctl`).
    """

    kind: Literal["docker"]
    container: str = Field(pattern=_NAME)
    program: str = Field(default="docker", pattern=_PROGRAM)


class KubernetesExec(Frozen):
    """A running pod.

    Attributes:
        pod: its name, or TYPE/NAME for the first pod of an object, as in `job/tipcflow-0`.
        namespace, container, context: those of kubectl; '' for its defaults.
        program: `kubectl`, or a program with the same `exec` (`oc`).
    """

    kind: Literal["kubernetes"]
    pod: str = Field(pattern=r"^[a-z0-9]([a-z0-9./-]*[a-z0-9])?$", max_length=253)
    namespace: str = Field(default="", pattern=r"^([a-z0-9][a-z0-9-]*)?$", max_length=63)
    container: str = Field(default="", pattern=r"^([a-z0-9][a-z0-9-]*)?$", max_length=63)
    context: str = Field(default="", pattern=r"^([A-Za-z0-9][^\s\x00-\x1f]*)?$")
    program: str = Field(default="kubectl", pattern=_PROGRAM)


ExecTarget = Annotated[DockerExec | KubernetesExec, Field(discriminator="kind")]
