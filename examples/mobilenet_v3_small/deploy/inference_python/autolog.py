"""The inference report in AutoLog's form, for machines without the `auto_log` package.

Same lines, same order, same meaning: times are means per call after the warm-up, `data_num` counts the warm-up
too. What this one does otherwise: memory is sampled after each call, where AutoLog starts a second process for it.
"""

import os
import platform
import resource
import subprocess
import sys
import time
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import paddle
from paddle.inference import Config

# The dashes are AutoLog's, lopsided where its are.
_TITLES = {
    "Env": (22, 22),
    "Paddle": (22, 22),
    "Conf": (23, 23),
    "Model": (23, 22),
    "Data": (23, 23),
    "Perf": (23, 23),
}
_STAGES = ("preprocess_time(ms)", "inference_time(ms)", "postprocess_time(ms)")


class Report:
    """Takes the times of each call, then prints the report."""

    def __init__(self, *, model: str, precision: str, batch_size: int, config: Config, warm_up: int) -> None:
        self.model = model
        self.precision = precision
        self.batch_size = batch_size
        self.config = config
        self.warm_up = warm_up
        self.calls: list[list[float]] = []
        self.rss: list[float] = []

    def start(self) -> None:
        """A call begins."""
        self.calls.append([time.perf_counter()])

    def stamp(self) -> None:
        """A stage of the call ends: reading, inference, the rest."""
        self.calls[-1].append(time.perf_counter())
        if len(self.calls[-1]) == len(_STAGES) + 1:
            self.rss.append(rss_mb())

    def print(self) -> None:
        """Prints the report on standard output."""
        print(_line("\n"), flush=True)
        for title, fields in self._sections():
            before, after = _TITLES[title]
            print(_line(f"{'-' * before} {title} info {'-' * after}"))
            for text in fields:
                print(_line(f" {text}"))
        sys.stdout.flush()

    def _sections(self) -> list[tuple[str, list[str]]]:
        config = self.config
        gpu = _gpu() if config.use_gpu() else None
        conf = {
            "runtime_device": "gpu" if config.use_gpu() else "cpu",
            "ir_optim": config.ir_optim(),
            "enable_memory_optim": True,
            "enable_tensorrt": config.tensorrt_engine_enabled(),
            "enable_mkldnn": config.mkldnn_enabled(),
            "cpu_math_library_num_threads": config.cpu_math_library_num_threads(),
        }
        return [
            ("Env", _fields(_environment(gpu))),
            ("Paddle", _fields(_paddle())),
            ("Conf", _fields(conf)),
            ("Model", _fields({"model_name": self.model, "precision": self.precision})),
            (
                "Data",
                _fields({"batch_size": self.batch_size, "input_shape": "dynamic", "data_num": len(self.calls)}),
            ),
            ("Perf", self._performance(gpu)),
        ]

    def _performance(self, gpu: dict[str, str] | None) -> list[str]:
        calls = self.calls[self.warm_up :]
        stages = [[after - before for before, after in pairwise(call)] for call in calls]
        means = [1000 * sum(stage) / len(calls) for stage in zip(*stages, strict=True)]
        memory = {
            "cpu_rss(MB)": round(sum(self.rss) / len(self.rss), 4),
            "gpu_rss(MB)": gpu["memory"] if gpu else None,
            "gpu_util": f"{gpu['utilization'] if gpu else None}%",
        }
        times = {name: round(mean, 4) for name, mean in zip(_STAGES, means, strict=True)}
        return [
            ", ".join(_fields(memory)),
            f"total time spent(s): {sum(map(sum, stages)):.4f}",
            ", ".join(_fields(times)),
        ]


def _line(text: str) -> str:
    return f"[{datetime.now():%Y/%m/%d %H:%M:%S}] root INFO: {text}"


def _fields(values: dict[str, object]) -> list[str]:
    return [f"{name}: {value}" for name, value in values.items()]


def rss_mb() -> float:
    """This process's resident memory in MiB."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _environment(gpu: dict[str, str] | None) -> dict[str, object]:
    try:
        system = platform.freedesktop_os_release()
        name = f"{system.get('ID', 'linux').capitalize()} {system.get('VERSION_ID', '')}".strip()
    except OSError:
        name = platform.system()
    cuda, cudnn = (
        None if word in ("False", "") else word for word in (paddle.version.cuda(), paddle.version.cudnn())
    )
    driver = gpu["driver"] if gpu else None
    return {"OS_version": name, "CUDA_version": cuda, "CUDNN_version": cudnn, "drivier_version": driver}


def _paddle() -> dict[str, object]:
    return {
        "paddle_version": paddle.__version__,
        "paddle_commit": paddle.__git_commit__,
        "log_api_version": "1.0",
    }


def _gpu() -> dict[str, str] | None:
    """Driver, used memory (MB) and utilisation (%) of the first visible GPU by all processes, if known."""
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0] or "0"
    query = "--query-gpu=driver_version,memory.used,utilization.gpu"
    command = ["nvidia-smi", "-i", first, query, "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    words = [word.strip() for word in answer.splitlines()[0].split(",")] if answer.strip() else []
    return dict(zip(("driver", "memory", "utilization"), words, strict=True)) if len(words) == 3 else None
