"""The loop of a trainer."""

import argparse
import time

import paddle
from paddle.distributed import fleet

from clicks.data import batches
from clicks.meter import Meter, auc
from clicks.network import Network

# Trainers wait for each other after this many steps, so that none computes gradients for much older rows.
TOGETHER = 10
# Part of an epoch's steps, at its end, over which its AUC and loss are means.
LAST = 0.25


def train(net: Network, args: argparse.Namespace) -> None:
    """Train on the trainer's own samples, then save the model.

    Each sample is used once and scored before its gradient is computed, so the scores at the end of an epoch are
    an evaluation.
    """
    program = paddle.static.default_main_program()
    executor = paddle.static.Executor(paddle.CPUPlace())
    executor.run(paddle.static.default_startup_program())
    fleet.init_worker()
    rank = fleet.worker_index()
    for epoch in range(args.epochs):
        began, meter = time.monotonic(), Meter()
        last: list[tuple[float, float]] = []
        for step, batch in enumerate(batches(args.steps, args.batch_size, seed=args.seed, epoch=epoch, rank=rank)):
            meter.read()
            feed = dict(zip(("users", "items", "clicks"), batch, strict=True))
            loss, click = executor.run(program, feed=feed, fetch_list=[net.loss, net.click])
            meter.step(len(batch.clicks))
            value, area = float(loss), auc(click, batch.clicks)
            if step >= (1 - LAST) * args.steps:
                last.append((value, area))
            if step % args.print_freq == 0 or step + 1 == args.steps:
                print(meter.line(epoch, step, value, area), flush=True)
                meter = Meter()
            if (step + 1) % TOGETHER == 0:
                fleet.barrier_worker()
                meter.mark = time.perf_counter()
        losses, areas = zip(*last, strict=True)
        print(
            f"epoch: {epoch} done, auc: {sum(areas) / len(areas):.6f},loss:{sum(losses) / len(losses):.6f}, "
            f"epoch time: {time.monotonic() - began:.2f} s",
            flush=True,
        )
    # Every trainer calls this: they wait for each other, and rank 0 and the servers save.
    fleet.save_persistables(executor, str(args.output_dir / "model"))
    if rank == 0:
        print(f"saved {args.output_dir / 'model'}", flush=True)
    fleet.stop_worker()
