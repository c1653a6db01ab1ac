"""Transport by the `exec` command of an engine, for nodes that are running containers or pods."""

import io

from tipcflow.domain import DockerExec, InfraError, KubernetesExec, Node
from tipcflow.remote.exec_command import exec_command, skips_tls, split_end
from tipcflow.transport.command_transport import last_line
from tipcflow.transport.local_adapter import LocalTransport

# What the programs need from this process: where the engine is, and the credentials of a pod's service account.
ENGINE_VARIABLES = (
    "DOCKER_CERT_PATH",
    "DOCKER_CONFIG",
    "DOCKER_CONTEXT",
    "DOCKER_HOST",
    "DOCKER_TLS_VERIFY",
    "KUBECONFIG",
    "KUBERNETES_SERVICE_HOST",
    "KUBERNETES_SERVICE_PORT",
    "XDG_RUNTIME_DIR",
)


def connect(node: Node, *, timeout: float = 10.0) -> "ExecTransport":
    """Return the transport of a node that is a container or pod, after one command in it.

    Args:
        timeout: limit of the command, seconds.

    Raises:
        InfraError: the container or pod does not run, or the engine fails, or kubectl is configured not to verify
            the API server's certificate.
    """
    transport = ExecTransport(node)
    transport.check(timeout)
    return transport


class ExecTransport(LocalTransport):
    """See `tipcflow.transport.base.Transport`."""

    environment = (*LocalTransport.environment, *ENGINE_VARIABLES)

    def check(self, timeout: float) -> None:
        """Run one command in the container or pod; see `connect`."""
        target = self.node.exec
        if isinstance(target, KubernetesExec):
            done = self._run_here(skips_tls(target), io.BytesIO(), timeout)
            if done.stdout.strip() == b"true":
                raise InfraError.of_node(
                    self.node.name,
                    f"{target.program} does not verify the certificate of the API server",
                    hint="set certificate-authority-data instead of insecure-skip-tls-verify in the kubeconfig",
                )
        self.run("true", timeout=timeout)

    def on_node(self, command: str) -> str:
        """Return the command of the engine that runs `command` in the container or pod."""
        assert self.node.exec is not None
        return exec_command(self.node.exec, command)

    def own_stderr(self, code: int, stderr: bytes) -> bytes:
        """Return what a command printed to stderr, without the messages of the engine about its end.

        Raises:
            InfraError: the engine could not run it to its end.
        """
        own, has_ended = split_end(stderr)
        if not has_ended:
            raise self._lost(stderr, code)
        return own

    def _lost(self, stderr: bytes, code: int) -> InfraError:
        target = self.node.exec
        assert target is not None
        what, hint = (
            (f"container {target.container}", f"{target.program} ps --all")
            if isinstance(target, DockerExec)
            else (f"pod {target.pod}", f"{target.program} describe pod")
        )
        reason = last_line(stderr) if stderr.strip() else f"exit code {code}"
        message = f"{target.program} exec cannot run a command in {what}: {reason}"
        return InfraError.of_node(self.node.name, message, hint=f"see `{hint}`", passing=True)
