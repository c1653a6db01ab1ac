"""A new host: its facts, and the nodes' environment on it."""

import hashlib
import platform
import posixpath
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tipcflow.domain import ConfigError, InfraError, Node
from tipcflow.remote import onboarding
from tipcflow.transport import Transport

# uv prints nothing while it downloads 200 MB into a pipe.
_SILENCE_S = 900.0
_PUT_S = 600.0
_LAST_LINES = 5


@dataclass(frozen=True)
class Host:
    """Facts of a host before it is a node.

    Attributes:
        hostname: its own short name.
        home: home folder of the login.
        root: whether the login is root.
        arch: machine type of `uname -m`.
        gpus: number of NVIDIA GPUs.
        python: an interpreter from which the nodes' environment can be made, '' for none.
    """

    hostname: str
    home: str
    root: bool
    system: str
    arch: str
    cpus: int
    gpus: int
    python: str

    @property
    def workspace(self) -> str:
        """The default workspace."""
        return "/var/lib/tipcflow" if self.root else posixpath.join(self.home, "tipcflow")


def survey(transport: Transport, host: str) -> Host:
    """The facts of a host.

    Raises:
        InfraError: the host cannot be reached, or its login shell does not run `/bin/sh`.
    """
    done = transport.run(onboarding.survey(), timeout=30.0)
    lines = [line.partition("=") for line in done.stdout.decode(errors="replace").splitlines()]
    facts = {key: value.strip() for key, _, value in lines}
    if done.exit_code or not facts.get("home", "").startswith("/"):
        error_lines = done.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {done.exit_code}"]
        raise InfraError(f"{host} cannot execute /bin/sh for this login: {error_lines[-1]}", node=host)
    return Host(
        hostname=facts.get("hostname", ""),
        home=facts["home"],
        root=facts.get("root") == "1",
        system=facts.get("system", ""),
        arch=facts.get("arch", ""),
        cpus=_number(facts.get("cpus"), 1),
        gpus=_number(facts.get("gpus"), 0),
        python=facts.get("python", ""),
    )


def _number(text: str | None, default: int) -> int:
    return int(text) if text and text.isdigit() else default


def check_installable(host: Host, name: str, device: str) -> None:
    """Check that the CPU environment can be made on the host.

    Raises:
        ConfigError: it cannot; the hint names the option for an environment made by hand.
    """
    hint = "make the environment by hand (requirements/README.md) and pass its interpreter with --python"
    if device == "gpu":
        raise ConfigError(
            "tipcflow has no pinned packages for GPU nodes", key=name, found=f"{host.gpus} GPUs", hint=hint
        )
    here = (platform.system(), platform.machine())
    if (host.system, host.arch) != here:
        raise ConfigError(
            "the nodes' environment cannot be installed from this machine",
            key=name,
            found=f"{host.system} {host.arch}",
            expected=" ".join(here),
            hint=hint,
        )
    if not host.python:
        raise ConfigError(
            "no suitable Python on the host",
            key=name,
            expected=f"python3 {onboarding.PYTHONS}",
            hint=f"install one there; or {hint}",
        )


def install_environment(
    transport: Transport,
    node: Node,
    host: Host,
    *,
    uv: Path,
    requirements: Path,
    report: Callable[[str], None],
) -> None:
    """Create the node's environment, so that `node.python` is its interpreter; reuse a complete one.

    Raises:
        InfraError: the installation failed; with the last lines of its output.
    """
    folder = posixpath.dirname(posixpath.dirname(node.python))
    stamp = hashlib.sha256(requirements.read_bytes()).hexdigest()
    if transport.run(onboarding.environment_stamp(folder)).stdout.decode().strip() == stamp:
        report(f"the environment {folder} is complete")
        return
    report(f"installing the environment {folder} on {node.name} (about 900 MB, once)")
    tools = posixpath.join(node.workspace, "install")
    remote_uv, remote_requirements = f"{tools}/uv", f"{tools}/{requirements.name}"
    transport.put(uv, remote_uv, mode=0o755, timeout=_PUT_S)
    transport.put(requirements, remote_requirements)
    command = onboarding.make_environment(remote_uv, remote_requirements, folder, host.python, stamp)
    output: list[str] = []
    code = ""
    with transport.stream(command, timeout=_SILENCE_S, first=_SILENCE_S) as lines:
        for raw in lines:
            line = raw.decode(errors="replace").rstrip()
            if line.startswith(onboarding.EXIT):
                code = line.removeprefix(onboarding.EXIT)
            elif line and not line.startswith((" + ", " - ")):
                output.append(line)
                report(f"{node.name}: {line}")
    if code != "0":
        end = "\n".join(f"  {line}" for line in output[-_LAST_LINES:]) or "  (no output)"
        raise InfraError(
            f"the environment of {node.name} cannot be installed (exit code {code or 'unknown'})\n{end}",
            node=node.name,
            hint="the host needs a package index (uv.toml, or UV_DEFAULT_INDEX for logins); or pass --python",
        )
