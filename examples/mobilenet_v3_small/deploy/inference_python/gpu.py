"""The GPU part of the configuration, with or without TensorRT.

Paddle 3's program format (`inference.json`) is converted for TensorRT before it is loaded; the older one
(`inference.pdmodel`) is handed to TensorRT by the predictor's configuration.
"""

import argparse
import shutil
import tempfile
from pathlib import Path

from mobilenet.arguments import MACHINE_CANNOT, refuse
from mobilenet.prototypes import SIZE
from paddle import device, inference

_POOL_MB = 256
_WORKSPACE = 1 << 28
# The operator that a converted program holds where TensorRT took over.
_ENGINE_OPERATOR = "tensorrt_engine"


def check_gpu_here(use_tensorrt: bool) -> None:
    """Ends the process with 3 when this machine, or this Paddle, has no GPU or no TensorRT."""
    if not device.is_compiled_with_cuda() or device.cuda.device_count() == 0:
        refuse("--use-gpu=True, but this Paddle finds no GPU on this machine", MACHINE_CANNOT)
    if use_tensorrt and tuple(inference.get_trt_compile_version()) == (0, 0, 0):
        refuse("--use-tensorrt=True, but this Paddle was built without TensorRT", MACHINE_CANNOT)
    if use_tensorrt and tuple(inference.get_trt_runtime_version()) == (0, 0, 0):
        refuse("--use-tensorrt=True, but the TensorRT library is not found on this machine", MACHINE_CANNOT)


def convert(program: Path, precision: str, batch: int) -> Path:
    """Converts a program of Paddle 3 for TensorRT, for batches of one to `batch`; returns the new program.

    It is kept next to the exported model, for this precision and batch size, and replaced by each call: an engine
    fits the GPU and the weights that it was built with, and no others.
    """
    from paddle.tensorrt.export import Input, PrecisionMode, TensorRTConfig
    from paddle.tensorrt.export import convert as to_tensorrt

    target = program.parent / f"tensorrt_{precision}_batch_{batch}"
    work = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=program.parent))
    try:
        smallest, largest = (1, 3, SIZE, SIZE), (batch, 3, SIZE, SIZE)
        shapes = Input(min_input_shape=smallest, optim_input_shape=largest, max_input_shape=largest)
        config = TensorRTConfig(inputs=[shapes])
        config.precision_mode = PrecisionMode.FP16 if precision == "fp16" else PrecisionMode.FP32
        config.save_model_dir = str(work / program.stem)
        to_tensorrt(str(program.with_suffix("")), config)
        shutil.rmtree(target, ignore_errors=True)
        work.rename(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return target / program.name


def holds_engine(program: Path) -> bool:
    """Whether TensorRT runs any part of a converted program."""
    return program.suffix == ".json" and _ENGINE_OPERATOR in program.read_text(encoding="utf-8", errors="replace")


def enable_gpu(config: inference.Config, args: argparse.Namespace) -> None:
    """The first visible GPU; for the older program format also TensorRT, if requested."""
    config.enable_use_gpu(_POOL_MB, 0)
    if not args.use_tensorrt or config.prog_file().endswith(".json"):
        return
    half = args.precision == "fp16"
    config.enable_tensorrt_engine(
        workspace_size=_WORKSPACE,
        max_batch_size=args.batch_size,
        min_subgraph_size=3,
        precision_mode=inference.PrecisionType.Half if half else inference.PrecisionType.Float32,
        use_static=False,
        use_calib_mode=False,
    )
    smallest, largest = [1, 3, SIZE, SIZE], [args.batch_size, 3, SIZE, SIZE]
    config.set_trt_dynamic_shape_info({"image": smallest}, {"image": largest}, {"image": largest})
