"""Which process of which group this is, and on which device it computes."""

import os
import random
from dataclasses import dataclass

import numpy as np
import paddle
import paddle.distributed as dist

from mobilenet.arguments import MACHINE_CANNOT, refuse


@dataclass(frozen=True)
class Place:
    """This process: its rank among `world` processes; `backend` is `none` for a single process."""

    rank: int
    world: int
    backend: str
    device: str

    @property
    def leads(self) -> bool:
        """Whether this process writes the files."""
        return self.rank == 0


def has_gpu() -> bool:
    """Whether this Paddle can use a GPU here."""
    return bool(paddle.device.is_compiled_with_cuda()) and paddle.device.cuda.device_count() > 0


def start(use_gpu: bool | None) -> Place:
    """Chooses the device and joins the group that `paddle.distributed.launch` made, if any.

    Args:
        use_gpu: None takes a GPU where there is one; True insists on it.
    """
    if use_gpu and not has_gpu():
        refuse("--use-gpu=True, but this Paddle finds no GPU on this machine", MACHINE_CANNOT)
    gpu = has_gpu() if use_gpu is None else use_gpu
    world = int(os.environ.get("PADDLE_TRAINERS_NUM", "1"))
    if not gpu:
        # Without it, Paddle requires NCCL whenever the launcher got GPU ids.
        os.environ["PADDLE_DISTRI_BACKEND"] = "gloo"
        paddle.set_device("cpu")
    elif world == 1:
        paddle.set_device("gpu:0")
    if world > 1:
        dist.init_parallel_env()
    backend = dist.get_backend().lower() if world > 1 else "none"
    return Place(dist.get_rank(), dist.get_world_size(), backend, str(paddle.device.get_device()))


def fix_seed(seed: int) -> None:
    """Seeds every source of random numbers; all ranks alike, so that they start from equal weights."""
    random.seed(seed)
    np.random.seed(seed)
    paddle.seed(seed)
    if has_gpu():
        paddle.set_flags({"FLAGS_cudnn_deterministic": True})
