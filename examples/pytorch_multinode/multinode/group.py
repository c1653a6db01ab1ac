"""Joins the processes of a training into one group, and names the ranks that do not come.

PyTorch's own rendezvous reports only how many ranks came. Here each rank registers at the store of rank 0, so that
an error names the ranks that are missing, after --timeout seconds and on every rank that waits.
"""

import argparse
import os
import random
import sys
import time
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import urlsplit

import torch
import torch.distributed as dist

from multinode.arguments import BAD_INPUT, MACHINE_CANNOT, RANK_MISSING, refuse

_LOOK_EVERY_S = 0.05


@dataclass(frozen=True)
class Place:
    """This process: its rank among `world` processes, and its device."""

    rank: int
    world: int
    backend: str
    device: torch.device

    @property
    def leads(self) -> bool:
        """Whether this process evaluates and writes files."""
        return self.rank == 0

    def say(self, text: str) -> None:
        """Prints a line that names its rank: the processes of a node may share one log."""
        say(f"[rank {self.rank}] {text}")


def start(args: argparse.Namespace) -> Place:
    """Chooses the device, joins the group and seeds PyTorch. Prints who this process is.

    Ends the process: 2 for wrong options, 3 without the requested GPU, 4 if a rank does not come.
    """
    rank, world = _identity(args)
    device = _device(args, rank)
    backend = args.backend or ("nccl" if device.type == "cuda" else "gloo")
    if backend == "nccl" and device.type != "cuda":
        refuse("--backend nccl needs a GPU, and this PyTorch finds none (or --no-cuda is set)", MACHINE_CANNOT)
    if world > 1 or args.rank is not None:
        wait = timedelta(seconds=args.timeout)
        store = dist.PrefixStore("group", _signed_in(args, rank, world))
        dist.init_process_group(backend, store=store, rank=rank, world_size=world, timeout=wait)
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    torch.use_deterministic_algorithms(True)
    name = "gpu" if device.type == "cuda" else "cpu"
    say(f"rank {rank} of {world}, backend {backend}, device {name}, seed {args.seed}")
    return Place(rank, world, backend, device)


def say(line: str) -> None:
    """Writes a line at once, and in one piece: other processes may write into the same log."""
    sys.stdout.flush()
    os.write(sys.stdout.fileno(), f"{line}\n".encode())


def stop(place: Place) -> None:
    """Leaves the group when every rank has arrived: rank 0 holds the store of all."""
    if dist.is_initialized():
        dist.barrier(device_ids=[place.device.index] if place.backend == "nccl" else None)
        dist.destroy_process_group()


def _identity(args: argparse.Namespace) -> tuple[int, int]:
    """Rank and world size: of the options, otherwise of torchrun, otherwise one process alone."""
    if (args.rank is None) != (args.world_size is None):
        given, missing = ("--rank", "--world-size") if args.world_size is None else ("--world-size", "--rank")
        refuse(f"{given} without {missing}: give both, or start this script with torchrun", BAD_INPUT)
    rank = int(os.environ.get("RANK", "0")) if args.rank is None else args.rank
    world = int(os.environ.get("WORLD_SIZE", "1")) if args.world_size is None else args.world_size
    if not 0 <= rank < world:
        refuse(f"--rank {rank} with --world-size {world}: expected a rank from 0 to {world - 1}", BAD_INPUT)
    return rank, world


def _device(args: argparse.Namespace, rank: int) -> torch.device:
    if args.no_cuda or not torch.cuda.is_available():
        return torch.device("cpu")
    # torchrun numbers the processes of a node; without it, they take the GPUs in turn.
    index = int(os.environ.get("LOCAL_RANK", rank)) % torch.cuda.device_count()
    torch.cuda.set_device(index)
    return torch.device("cuda", index)


def _address(args: argparse.Namespace) -> tuple[str, int]:
    """Address and port where rank 0 waits."""
    if args.rank is None or args.init_method == "env://":
        if not os.environ.get("MASTER_ADDR") or not os.environ.get("MASTER_PORT", "").isdecimal():
            refuse("--init-method env:// needs MASTER_ADDR and MASTER_PORT in the environment")
        return os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    try:
        parts = urlsplit(args.init_method)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or not port or parts.scheme != "tcp":
        refuse(f"--init-method {args.init_method}: expected tcp://address:port, or env://")
    return host, port


def _signed_in(args: argparse.Namespace, rank: int, world: int) -> dist.Store:
    """The store of all ranks, after each of them has signed in."""
    host, port = _address(args)
    place = f"{host}:{port}"
    until = time.monotonic() + args.timeout
    # torchrun itself holds the store.
    leads = rank == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
    wait = timedelta(seconds=args.timeout)
    try:
        store = dist.TCPStore(host, port, world, is_master=leads, timeout=wait, wait_for_workers=False)
    except dist.DistError as problem:
        if leads:
            refuse(f"rank 0 cannot listen at {place}: {str(problem).splitlines()[0]}", 1)
        refuse(_late(args, [0], world, place), RANK_MISSING)
    # torchrun keeps its store over restarts, and each restart registers again.
    books = dist.PrefixStore(f"join/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
    if books.add(str(rank), 1) > 1:
        refuse(f"rank {rank} was started twice at {place}: each process needs its own --rank")
    try:
        missing = list(range(world))
        while missing := [peer for peer in missing if not books.check([str(peer)])]:
            if time.monotonic() > until:
                refuse(_late(args, missing, world, place), RANK_MISSING)
            time.sleep(_LOOK_EVERY_S)
    except dist.DistError:
        refuse(f"rank 0 at {place} ended before all ranks joined: see its log", RANK_MISSING)
    return dist.PrefixStore(f"run/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)


def _late(args: argparse.Namespace, missing: list[int], world: int, place: str) -> str:
    ranks = f"rank{'s' if len(missing) > 1 else ''} {', '.join(map(str, missing))}"
    return f"rendezvous timed out after {args.timeout:g} s: {ranks} of {world} did not join at {place}"
