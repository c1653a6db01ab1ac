"""Feasibility of legs: whether a node supports a leg's device and precision."""

from tipcflow.domain import ConfigError, Leg
from tipcflow.plan.source.hosts import Host
from tipcflow.plan.source.options import PlanOptions

NO_GPU = "node {node} has no GPU"
# CPU flags required by a precision; without them the framework silently runs fp32.
_NEEDS = {"int8": ("avx512_vnni", "amx_int8"), "bf16": ("avx512_bf16", "amx_bf16")}


def unsupported_reason(device: str, precision: str, host: Host, options: PlanOptions) -> str:
    """Return why a leg cannot run on a host; '' if it can."""
    if device == "gpu":
        return NO_GPU.format(node=host.name) if host.device == "cpu" else ""
    needed = next((flags for word, flags in _NEEDS.items() if word in precision.lower()), ())
    available = (options.cpu_flags or {}).get(host.name)
    if not needed or available is None or available.intersection(needed):
        return ""
    return f"the CPU of node {host.name} has neither {' nor '.join(needed)}, which {precision} needs"


def check_any_device(legs: list[Leg], *, cluster: str, file: str) -> None:
    """Raise ConfigError if there are legs and all of them need a device that the cluster lacks."""
    if legs and all(leg.not_run for leg in legs):
        raise ConfigError(
            f"every leg needs a device that cluster '{cluster}' lacks",
            file=file,
            key="inference",
            found=f"{len(legs)} legs; {legs[0].not_run}",
            expected="a leg that a node of the cluster can run",
        )
