"""Which precisions this machine can really compute in. Paddle silently runs fp32 instead of the others."""

from pathlib import Path

from mobilenet.arguments import MACHINE_CANNOT, refuse

PRECISIONS = ("fp32", "fp16", "bf16", "int8")
_BF16_FLAGS = frozenset({"avx512_bf16", "amx_bf16"})
_INT8_FLAGS = frozenset({"avx512_vnni", "amx_int8"})


def cpu_flags() -> frozenset[str]:
    """The instruction sets of this machine's CPU, as Linux names them; empty where that cannot be known."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return frozenset()
    line = next((line for line in text.splitlines() if line.startswith("flags")), "")
    return frozenset(line.partition(":")[2].split())


def check_cpu(precision: str, onednn: bool, flags: frozenset[str]) -> None:
    """Ends the process with 3 when a CPU leg of this precision would be another precision in truth."""
    if precision == "fp32":
        return
    if precision == "fp16":
        refuse(
            "precision=fp16 is not possible on a CPU: Paddle has nothing to switch on and would run fp32",
            MACHINE_CANNOT,
        )
    if not onednn:
        refuse(f"precision={precision} on a CPU needs oneDNN: add --enable-mkldnn=True", MACHINE_CANNOT)
    needed = _BF16_FLAGS if precision == "bf16" else _INT8_FLAGS
    if not needed & flags:
        refuse(
            f"precision={precision}: this CPU has none of {', '.join(sorted(needed))}, it would run fp32",
            MACHINE_CANNOT,
        )


def check_model(precision: str, program: Path) -> None:
    """Ends the process with 3 if an int8 leg has a model that is not quantized."""
    if precision == "int8" and not is_quantized(program):
        refuse(f"precision=int8: {program} is not quantized, Paddle would run fp32", MACHINE_CANNOT)


def is_quantized(program: Path) -> bool:
    """Whether a program has operators that quantize values."""
    return b"quantize_linear" in program.read_bytes()


def check_gpu(precision: str, tensorrt: bool) -> None:
    """Ends the process with 3 when a GPU leg of this precision is not possible."""
    if precision == "int8":
        refuse("precision=int8 on a GPU is not offered by this script", MACHINE_CANNOT)
    if precision == "bf16":
        refuse("precision=bf16 on a GPU is not offered by this script", MACHINE_CANNOT)
    if precision != "fp32" and not tensorrt:
        refuse(f"precision={precision} on a GPU needs TensorRT: add --use-tensorrt=True", MACHINE_CANNOT)
