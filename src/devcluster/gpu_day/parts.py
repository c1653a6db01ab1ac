"""Parts of the checks: each is a list of commands, with what it needs."""

import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from devcluster.gpu_day.options import TORCH, Options, require_wheels, version_of
from tipcflow.domain import ConfigError
from tipcflow.install.uv import base_python, requirements_dir

# What is read from the output of a command: nothing, the end of its text, or a JSON or CSV document.
Reads = Literal["", "text", "run", "legs", "versions", "scaling", "nodes"]
MINUTE_S = 60.0
_CONFIGS = "test_tipc/configs/mobilenet_v3_small"
_AMP = "train_linux_gpu_normal_amp_infer_python_linux_gpu_cpu.txt"
_O2 = "train_linux_gpu_normal_amp_o2_infer_python_linux_gpu_cpu.txt"
_TWO = "train_linux_gpu_two_normal_infer_python_linux_gpu_cpu.txt"
_BENCHMARK = "test_tipc/benchmark/mobilenet_v3_small/train_benchmark.txt"
_BATCH = 32
# Double quotes, so that a shell shows the program in single ones.
_PADDLE_VERSIONS = (
    'import json, paddle; v = paddle.version; print(json.dumps({"paddle": paddle.__version__, '
    '"paddle: CUDA": v.cuda(), "paddle: cuDNN": v.cudnn(), "paddle: NCCL": str(v.nccl()), '
    '"paddle: TensorRT": str(paddle.inference.get_trt_runtime_version())}))'
)
_TORCH_VERSIONS = (
    'import json, torch; n = ".".join(map(str, torch.cuda.nccl.version())); print(json.dumps({"torch": '
    'torch.__version__, "torch: CUDA": torch.version.cuda, "torch: cuDNN": torch.backends.cudnn.version(), '
    '"torch: NCCL": n}))'
)
_PADDLE_GPUS, _TORCH_GPUS = "paddle.device.cuda", "torch.cuda"


@dataclass(frozen=True)
class Command:
    """A command.

    Attributes:
        argv: its words; `{run}` becomes the ID of the run of an earlier command of the part.
        env: variables in addition to those of this process.
        cwd: working directory; '' for the clone.
        reads: what is read from its standard output.
        limit_s: deadline, s.
        optional: whether its part continues when it fails.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = ""
    reads: Reads = ""
    limit_s: float = 10 * MINUTE_S
    optional: bool = False


@dataclass(frozen=True)
class Part:
    """A part of the checks.

    Attributes:
        needs: IDs of parts that must have passed.
        gpus: GPUs that it needs.
        missing: why it cannot run here; '' if it can.
        cleans: whether it runs after all others, whatever happened, if its needs were started.
    """

    id: str
    title: str
    commands: tuple[Command, ...]
    needs: tuple[str, ...] = ()
    gpus: int = 0
    missing: str = ""
    cleans: bool = False


def make_parts(options: Options, gpus: int) -> list[Part]:
    """Return all parts in their order.

    Args:
        gpus: GPUs of this machine.
    """
    machine = (Command(("nvidia-smi",)), Command(("nvidia-smi", "topo", "-m")))
    return [
        Part("machine", "GPUs and their connections", machine, gpus=1),
        *_paddle_parts(options, gpus),
        *_torch_parts(options, gpus),
    ]


def _paddle_parts(options: Options, gpus: int) -> list[Part]:
    python = str(options.output / "envs" / "node-gpu" / "bin" / "python")
    missing = ""
    if not options.wheels:
        missing = f"the package index has no paddlepaddle-gpu {version_of('paddlepaddle-gpu')}: use --wheels"
    reviewed = requirements_dir() / "node-gpu.txt"
    locked = str(reviewed if reviewed.is_file() else options.output / "node-gpu.txt")
    lock = {**_index(options), "TIPCFLOW_WHEEL_URL": options.wheels}
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    environment = (
        *_offline(options),
        *([] if reviewed.is_file() else [Command(("tools/lock_gpu.sh", locked, version), env=lock)]),
        *_environment(options, "node-gpu", locked),
        Command((python, "-c", _PADDLE_VERSIONS), reads="versions"),
        _count_gpus(python, _PADDLE_GPUS, gpus),
        Command((python, "-c", "import paddle; paddle.utils.run_check()"), reads="text"),
    )
    nodes = ("paddle", "nodes")
    return [
        Part("paddle", "environment of requirements/node-gpu.in", environment, missing=missing),
        Part("nodes", "node with all GPUs, and its facts", _nodes(options, python, gpus), ("paddle",), 1),
        _chain(options, "chain", "chain on one GPU: legs with and without TensorRT", "train_infer_python.txt", 1),
        _chain(options, "fleet", "chain with 2 processes over NCCL", _TWO, 2),
        _chain(options, "amp_o1", "chain with fp32 and AMP O1; legs in fp32 and fp16", _AMP, 1),
        _chain(options, "amp_o2", "chain with AMP O2", _O2, 1),
        *(
            Part(f"scaling_{word}", f"scaling in {word}, 1n1g to 1n8g", _scaling(options, word), nodes, 1)
            for word in ("fp32", "amp")
        ),
        Part(
            "clean",
            "end of the node",
            (_tipcflow(options, "local", "down", "--force"),),
            ("nodes",),
            cleans=True,
        ),
    ]


def _torch_parts(options: Options, gpus: int) -> list[Part]:
    python = options.torch_python or str(options.output / "envs" / "node-torch-gpu" / "bin" / "python")
    missing = ""
    if options.offline and not options.torch_python:
        try:
            require_wheels(options.wheels, TORCH)
        except ConfigError as error:
            missing = error.what
    locked = str(requirements_dir() / "node-torch-gpu.txt")
    made_here = (*_offline(options), *_environment(options, "node-torch-gpu", locked))
    environment = (
        *(() if options.torch_python else made_here),
        Command((python, "-c", _TORCH_VERSIONS), reads="versions"),
        _count_gpus(python, _TORCH_GPUS, gpus),
    )
    data = str(options.output / "data")
    made = Command((python, "tools/make_data.py", "--root", data), cwd=_PYTORCH)
    # As a module: an environment may lack the script.
    torchrun = (python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    source = "--torch-python" if options.torch_python else "requirements/node-torch-gpu.txt"
    port = "tcp://127.0.0.1:23456"
    return [
        Part("torch", f"environment of {source}", environment, missing=missing),
        *_torch_chain(options, python, gpus),
        _torch("torch_toy", "exchange of tensors", (_two_ranks(python, "mmmg_toy.py"),)),
        _torch("torch_mnist", "convolution network", (_two_ranks(python, f"mmmg_mnist.py --init-method {port}"),)),
        _torch(
            "torch_data",
            "shares of the data",
            (made, _two_ranks(python, f"mmmg_data.py --init-method {port} --root {data} --backend nccl")),
        ),
        _torch(
            "torch_torchrun",
            "convolution network with torchrun",
            (Command((*torchrun, "mmmg_mnist.py", "--backend", "nccl"), cwd=_PYTORCH, reads="text"),),
        ),
    ]


_PYTORCH = "examples/pytorch_multinode"
_ONE_GPU = "test_tipc/one_gpu/mnist.txt"


def _torch_chain(options: Options, python: str, gpus: int) -> list[Part]:
    """Return a chain of PyTorch on a local node of its own: a machine has one cluster of local nodes."""
    run = ("run", _ONE_GPU, "--suite", "pytorch_multinode", "--mode", "lite_train_lite_infer")
    up = (replace(_tipcflow(options, "local", "down", "--force"), optional=True), *_nodes(options, python, gpus))
    down = (_tipcflow(options, "local", "down", "--force"),)
    return [
        Part("torch_nodes", "node with all GPUs and PyTorch, and its facts", up, ("torch",), 1),
        Part(
            "torch_chain",
            "PyTorch, one process over NCCL, as a chain",
            (
                _tipcflow(options, *run, "--cluster", "local", "--json", reads="run", limit_s=60 * MINUTE_S),
                _tipcflow(options, "show", "{run}"),
            ),
            ("torch", "torch_nodes"),
            1,
        ),
        Part("torch_clean", "end of the node with PyTorch", down, ("torch_nodes",), cleans=True),
    ]


def _torch(name: str, title: str, commands: tuple[Command, ...]) -> Part:
    return Part(name, f"PyTorch, 2 processes over NCCL: {title}", commands, ("torch",), 2)


def _two_ranks(python: str, script: str) -> Command:
    """Return two processes as two terminals start them; the exit code is that of a failed one."""
    start = f"{shlex.quote(python)} {script} --world-size 2 --rank"
    return Command(
        ("bash", "-c", f"{start} 0 & {start} 1; code=$?; wait $! && exit $code"), cwd=_PYTORCH, reads="text"
    )


def _count_gpus(python: str, module: str, gpus: int) -> Command:
    """Return the check that a framework finds all GPUs: a build for CPUs finds none and trains anyway."""
    package = module.split(".")[0]
    program = (
        f"import {package}; found = {module}.device_count(); "
        f'assert found == {gpus}, f"{package} finds {{found}} GPUs, this machine has {gpus}"'
    )
    return Command((python, "-c", program))


def _offline(options: Options) -> tuple[Command, ...]:
    """Return the command that switches the package index off: uv has no variable for it."""
    if not options.offline:
        return ()
    file = shlex.quote(str(options.output / "uv.toml"))
    return (Command(("bash", "-c", f'echo "no-index = true" > {file}')),)


def _index(options: Options) -> dict[str, str]:
    """Return the variables with which uv finds the wheels."""
    env = {"UV_FIND_LINKS": options.wheels} if options.wheels else {}
    return {**env, "UV_CONFIG_FILE": str(options.output / "uv.toml")} if options.offline else env


def _environment(options: Options, name: str, locked: str) -> tuple[Command, ...]:
    folder = str(options.output / "envs" / name)
    venv = ("uv", "venv", "--quiet", "--clear", "--no-python-downloads", "--python", base_python(), folder)
    sync = ("uv", "pip", "sync", "--quiet", "--require-hashes", "--python", f"{folder}/bin/python", locked)
    return (Command(venv, env=_index(options)), Command(sync, env=_index(options), limit_s=60 * MINUTE_S))


def _tipcflow(options: Options, *words: str, reads: Reads = "", limit_s: float = 5 * MINUTE_S) -> Command:
    env = {"TIPCFLOW_HOME": "home", "TIPCFLOW_CONFIG_DIR": "configs"}
    paths = {name: str(options.output / folder) for name, folder in env.items()}
    return Command(("tipcflow", *words), {**paths, "TIPCFLOW_DATABASE_URL": ""}, "", reads, limit_s)


def _nodes(options: Options, python: str, gpus: int) -> tuple[Command, ...]:
    """Return the commands that start a node in the report's folder, next to a copy of the configuration."""
    node = ("--nodes", "1", "--kind", "loopback", "--device", "gpu", "--slots", str(gpus), "--python", python)
    return (
        # Both may exist: Paddle and PyTorch have a node each.
        Command(("cp", "-r", "configs/.", str(options.output / "configs"))),
        Command(("ln", "-sfn", str(requirements_dir().parent / "examples"), str(options.output / "examples"))),
        _tipcflow(options, "local", "up", *node),
        # A finding, such as a missing optional program, does not prevent the chains.
        replace(_tipcflow(options, "doctor", "--cluster", "local", "--json", reads="nodes"), optional=True),
    )


def _chain(options: Options, name: str, title: str, file: str, gpus: int) -> Part:
    run = ("run", f"{_CONFIGS}/{file}", "--suite", "mobilenet_v3_small", "--mode", "lite_train_lite_infer")
    commands = (
        _tipcflow(options, *run, "--cluster", "local", "--json", reads="run", limit_s=60 * MINUTE_S),
        _tipcflow(options, "show", "{run}"),
        _tipcflow(options, "export", "{run}", "legs", reads="legs"),
    )
    return Part(name, title, commands, ("paddle", "nodes"), gpus)


def _scaling(options: Options, precision: str) -> tuple[Command, ...]:
    words = ("scaling", "run", _BENCHMARK, "--suite", "mobilenet_v3_small_benchmark", "--cluster", "local")
    series = ("--batch-size-per-device", str(_BATCH), "--precision", precision, "--repeats", str(options.repeats))
    plot = ("--plot", str(options.output / f"scaling_{precision}.png"), "--json")
    return (_tipcflow(options, *words, *series, *plot, reads="scaling", limit_s=240 * MINUTE_S),)


def shown(command: Command, output: Path) -> str:
    """Return a command as a line of a shell in the clone, with `$OUT` for the report's folder."""
    variables = [f"{name}={shlex.quote(value)}" for name, value in command.env.items()]
    line = " ".join([*variables, shlex.join(command.argv)])
    if command.cwd:
        line = f"(cd {command.cwd} && {line})"
    return line.replace(str(output), "$OUT").replace(f"{requirements_dir().parent}/", "$PWD/")
