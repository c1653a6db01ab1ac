"""Feasibility of legs and trainings: whether a node supports their device and precision."""

from collections.abc import Collection

from tipcflow.domain import ConfigError, Leg, Step, StepKind
from tipcflow.domain.numbers.units import counted
from tipcflow.params.values import FORMATS, is_unknown_format
from tipcflow.plan.source.hosts import Host
from tipcflow.plan.source.options import PlanOptions
from tipcflow.plan.source.reader import Reader

NO_GPU = "node {node} has no GPU"
# Paddle can be set to fp32, bf16 and, for quantized models, int8 on CPUs (docs/adr/0036-precisions-on-cpus.md).
NOT_QUANTIZED = "the model is not quantized: Paddle would run {precision} in fp32 (node {node})"
NO_HALF = "Paddle has no {precision} inference on CPUs (node {node}): it would run fp32 or bf16"
# CPU flags required by a precision; without them the framework silently runs fp32.
_NEEDS = {"int8": ("avx512_vnni", "amx_int8"), "bf16": ("avx512_bf16", "amx_bf16")}
# Precision words of trainings with mixed precision, in params files and benchmark sections.
_MIXED = frozenset({"amp", "fp16", "bf16", "true"})


def check_precision(word: str, slot: str, reader: Reader) -> None:
    """Check a precision word: with an unknown number format, the suite would fail or compute in fp32.

    Args:
        slot: of the params file, `autocast` or `precision`.

    Raises:
        ConfigError: an unknown number format, such as fp61.
    """
    if is_unknown_format(word):
        raise ConfigError(
            "unknown precision",
            file=reader.params.file,
            line=reader.line(slot),
            key=reader.key(slot),
            found=word,
            expected=f"one of {', '.join(FORMATS)}, amp, or a word of the suite",
        )


def unsupported_reason(device: str, precision: str, host: Host, options: PlanOptions) -> str:
    """Return why a leg cannot run on a host; '' if it can."""
    if device == "gpu":
        return NO_GPU.format(node=host.name) if host.device == "cpu" else ""
    if "fp16" in precision.lower():
        return NO_HALF.format(precision=precision, node=host.name)
    return unsupported_by_cpu(precision, (options.cpu_flags or {}).get(host.name), f"node {host.name}")


def unsupported_by_cpu(precision: str, flags: Collection[str] | None, machine: str) -> str:
    """Return why a leg in a precision cannot run on a CPU; '' if it can, or if the CPU's flags are unknown (None).

    Args:
        machine: whose CPU, for the sentence.
    """
    needed = next((wanted for word, wanted in _NEEDS.items() if word in precision.lower()), ())
    if not needed or flags is None or set(needed).intersection(flags):
        return ""
    return f"the CPU of {machine} has neither {' nor '.join(needed)}, which {precision} needs"


def unquantized_reason(device: str, precision: str, *, quant: str, host: Host, options: PlanOptions) -> str:
    """Return why an int8 leg of a model that is not quantized cannot run on a CPU; '' if it can, or if the CPU's
    flags are unknown. Paddle accepts the setting, and computes the same numbers as in fp32."""
    if (
        device != "cpu"
        or "int8" not in precision.lower()
        or quant != "False"
        or host.name not in (options.cpu_flags or {})
    ):
        return ""
    return NOT_QUANTIZED.format(precision=precision, node=host.name)


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


def untrainable_reason(precision: str, host: Host, options: PlanOptions) -> str:
    """Return why a training in a precision cannot run on a host; '' if it can."""
    if options.mixed_on_cpu or host.device != "cpu" or precision.lower() not in _MIXED:
        return ""
    ignored = f"on CPUs, Paddle ignores mixed precision ({precision}) and trains in fp32"
    return f"{NO_GPU.format(node=host.name)}: {ignored}"


def without_running(step: Step, reason: str) -> Step:
    """Return a step that is `not_run` with all of its legs; each leg keeps a reason of its own."""
    legs = tuple(leg.model_copy(update={"not_run": leg.not_run or reason}) for leg in step.legs)
    return step.model_copy(update={"not_run": reason, "legs": legs})


def check_any_training(steps: list[Step], *, cluster: str, file: str) -> None:
    """Raise ConfigError if there are trainings and the cluster supports none of them."""
    trainings = [step for step in steps if step.kind is StepKind.TRAIN]
    if trainings and all(step.not_run for step in trainings):
        raise ConfigError(
            f"cluster '{cluster}' supports none of the trainings",
            file=file,
            key="trainer",
            found=f"{counted(len(trainings), 'training')}; {trainings[0].not_run}",
            expected="a variant that the nodes of the cluster can train",
        )
