"""Exported model + declared settings -> a Paddle Inference predictor that has those settings, and no others."""

import argparse
import os
from pathlib import Path

import numpy as np
from gpu import convert, enable_gpu, holds_engine
from kernels import layer_kernels
from mobilenet.arguments import refuse
from mobilenet.prototypes import SIZE
from paddle import inference
from precision import check_model


def find_model(folder: Path) -> tuple[Path, Path]:
    """Program and weights of an export; ends the process with 2 when one is missing."""
    names = ["inference.json", "inference.pdmodel"]
    if os.environ.get("FLAGS_enable_pir_api", "1").lower() in ("0", "false"):  # noqa: SIM112 (Paddle's name)
        names.reverse()
    weights = folder / "inference.pdiparams"
    found = [folder / name for name in names if (folder / name).is_file()]
    if not found or not weights.is_file():
        refuse(f"no exported model in {folder}: expected {' or '.join(names)}, and {weights.name}")
    return found[0], weights


def make_config(args: argparse.Namespace) -> inference.Config:
    """The configuration as declared. Nothing is left to a default: oneDNN is on by default in Paddle 3."""
    program, weights = find_model(args.model_dir)
    check_model(args.precision, program)
    if args.use_gpu and args.use_tensorrt and program.suffix == ".json":
        program = convert(program, args.precision, args.batch_size)
        weights = program.with_suffix(".pdiparams")
    config = inference.Config(str(program), str(weights))
    config.disable_glog_info()
    if args.use_gpu:
        enable_gpu(config, args)
    else:
        config.disable_gpu()
        if args.enable_mkldnn:
            config.enable_mkldnn()
        else:
            config.disable_mkldnn()
        if args.precision == "bf16":
            config.enable_mkldnn_bfloat16()
        if args.precision == "int8":
            config.enable_mkldnn_int8()
        config.set_cpu_math_library_num_threads(args.cpu_threads)
    if program.suffix == ".json":
        # Before enable_memory_optim: in another order making the predictor fails.
        config.enable_new_executor()
    config.switch_ir_optim(True)
    config.enable_memory_optim()
    return config


def actual(config: inference.Config, args: argparse.Namespace) -> dict[str, object]:
    """What the configuration really holds. Only the batch size is not part of it."""
    gpu = config.use_gpu()
    return {
        "device": "gpu" if gpu else "cpu",
        "onednn": bool(config.mkldnn_enabled()) and not gpu,
        "tensorrt": bool(config.tensorrt_engine_enabled()) or (gpu and holds_engine(Path(config.prog_file()))),
        "precision": _precision(config, args),
        "threads": config.cpu_math_library_num_threads(),
        "batch_size": args.batch_size,
    }


def _precision(config: inference.Config, args: argparse.Namespace) -> str:
    if config.tensorrt_engine_enabled():
        half = config.tensorrt_precision_mode() == inference.PrecisionType.Half
        return "fp16" if half else "fp32"
    if config.use_gpu():
        # A program that was converted for TensorRT has its precision inside; it was made for this one just now.
        return args.precision if holds_engine(Path(config.prog_file())) else "fp32"
    if config.mkldnn_int8_enabled():
        return "int8"
    # The configuration has no query for bfloat16; its passes show it.
    return "bf16" if any("bfloat16" in name for name in config.pass_builder().all_passes()) else "fp32"


def check(found: dict[str, object], args: argparse.Namespace) -> None:
    """Ends the process with 1 when the predictor is not what was declared."""
    declared: dict[str, object] = {
        "device": "gpu" if args.use_gpu else "cpu",
        "onednn": args.enable_mkldnn and not args.use_gpu,
        "tensorrt": args.use_tensorrt and args.use_gpu,
        "precision": args.precision,
    }
    if not args.use_gpu:
        declared["threads"] = args.cpu_threads
    wrong = [
        f"declared {name}={word}, really {found[name]}" for name, word in declared.items() if found[name] != word
    ]
    if wrong:
        refuse("; ".join(wrong), 1)


class Engine:
    """A predictor. `settings` are what it really runs with."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.config = make_config(args)
        self.predictor = inference.create_predictor(self.config)
        self.input = self.predictor.get_input_handle(self.predictor.get_input_names()[0])
        self.output = self.predictor.get_output_handle(self.predictor.get_output_names()[0])
        self.settings = actual(self.config, args)
        if self.settings["precision"] == "int8" and (kernels := layer_kernels(self._run_blank)):
            # The configuration only shows that int8 is allowed.
            print(f"kernels: {kernels[0]} of {kernels[1]} layers in int8", flush=True)
            self.settings["precision"] = "int8" if 2 * kernels[0] > kernels[1] else "fp32"
        check(self.settings, args)

    def _run_blank(self) -> None:
        self.input.reshape((1, 3, SIZE, SIZE))
        self.input.copy_from_cpu(np.zeros((1, 3, SIZE, SIZE), dtype="float32"))
        self.predictor.run()

    def __call__(self, pictures: np.ndarray) -> np.ndarray:
        """Images float32 [N, 3, H, W] -> class probabilities [N, classes]."""
        self.input.reshape(pictures.shape)
        self.input.copy_from_cpu(np.ascontiguousarray(pictures))
        self.predictor.run()
        return self.output.copy_to_cpu()
