"""This machine: GPUs, driver and host, and the programs that the checks need."""

import shutil
from typing import Any

from devcluster.install import packages
from devcluster.shell import call
from tipcflow.domain import InfraError
from tipcflow.domain.numbers.units import size
from tipcflow.remote.runner import facts

# Commands that the checks start by name.
_PROGRAMS = ("bash", "git", "tipcflow")
# Fields of the host in the report.
_HOST = ("hostname", "os", "kernel", "architecture", "cpu_model", "cpu_count", "memory_bytes", "disk_free_bytes")


def read_machine(folder: str, *, uv: bool = True) -> dict[str, Any]:
    """Return the facts of this machine: those of the host, `gpus`, `driver` and `cuda_of_driver`.

    Args:
        folder: where the checks write; its disk is reported.
        uv: whether an environment is created, with uv.

    Raises:
        InfraError: no GPU, no working driver, or a program is missing.
    """
    read = _gpus()
    _require_programs(uv)
    host = facts.machine(folder)
    return {**{name: host[name] for name in _HOST}, **read}


def _gpus() -> dict[str, Any]:
    hint = "run this on a machine with GPUs and NVIDIA's driver; --dry-run prints all commands anywhere"
    if not shutil.which("nvidia-smi"):
        raise InfraError("this machine has no GPU: nvidia-smi is not installed", hint=hint)
    try:
        call(["nvidia-smi"])
    except InfraError as error:
        raise InfraError(f"the GPUs of this machine cannot be used: {error.message}", hint=hint) from error
    read = facts.gpus()
    if not read["gpus"]:
        raise InfraError("this machine has no GPU: nvidia-smi lists none", hint=hint)
    return read


def _require_programs(uv: bool) -> None:
    programs = (*_PROGRAMS, "uv") if uv else _PROGRAMS
    missing = [name for name in programs if not shutil.which(name)]
    missing += [
        need.program for need in packages.FOR_NODES if not packages.find_program(need) and not need.optional
    ]
    if missing:
        raise InfraError(
            f"missing on this machine: {', '.join(missing)}",
            hint="`make install` provides tipcflow and uv; Debian's packages are bash, git, openssh-server and "
            "openssh-client",
        )


def describe_gpus(machine: dict[str, Any]) -> str:
    """Return the GPUs as text: `8 x NVIDIA H100 80GB HBM3 (79.6 GiB)`."""
    counts: dict[str, int] = {}
    for gpu in machine["gpus"]:
        name = f"{gpu['name']} ({size(gpu['memory_bytes'])})"
        counts[name] = counts.get(name, 0) + 1
    return ", ".join(f"{count} x {name}" for name, count in counts.items())
