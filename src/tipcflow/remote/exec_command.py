"""Commands that run in a container or pod through the `exec` command of its engine, as text."""

import shlex

from tipcflow.domain import DockerExec, ExecTarget, KubernetesExec

ENDED = b"tipcflow: the command ended with "
"""Beginning of the last line on stderr of a command that ended; without it, the engine or the connection failed.
The exit codes of `docker exec` and `kubectl exec` for their own failures are also those of commands."""

_SCRIPT = f"""/bin/sh -c "$1"
code=$?
printf '\\n{ENDED.decode()}%s\\n' "$code" >&2
exit "$code"
"""


def exec_command(target: ExecTarget, command: str) -> str:
    """Return the command that runs `command` in a container or pod, with its stdin, stdout and exit code."""
    return shlex.join([*_words(target), "/bin/sh", "-c", _SCRIPT, "tipcflow", command])


def _words(target: ExecTarget) -> list[str]:
    if isinstance(target, DockerExec):
        return [target.program, "exec", "-i", target.container]
    container = [f"--container={target.container}"] if target.container else []
    return [*_kubectl(target), "exec", "-i", target.pod, *container, "--"]


def _kubectl(target: KubernetesExec) -> list[str]:
    options = {"context": target.context, "namespace": target.namespace}
    return [target.program, *(f"--{name}={value}" for name, value in options.items() if value)]


def skips_tls(target: KubernetesExec) -> str:
    """Print `true` if the context's connection to the API server does not verify its certificate."""
    path = "jsonpath={.clusters[0].cluster.insecure-skip-tls-verify}"
    return shlex.join([*_kubectl(target), "config", "view", "--minify", "-o", path])


def split_end(stderr: bytes) -> tuple[bytes, bool]:
    """Return what the command itself printed to stderr, and whether it ended."""
    own, mark, _ = stderr.rpartition(b"\n" + ENDED)
    return (own, True) if mark else (stderr, False)
