"""A training that only prints: losses that fall, the same for the same seed."""

import argparse
import os
import random
import signal
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("--output-dir", default="output")
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--batch-size", type=int, default=4)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--use-gpu", default="False")
parser.add_argument("--inject", default="")
parser.add_argument("--step-time", type=float, default=0.01)
parser.add_argument(
    "--slow-while", default="", help="a file: while it is there, each step takes ten times as long"
)
parser.add_argument("--test-only", action="store_true")
parser.add_argument("--pretrained", default="")
args = parser.parse_args()

if args.slow_while and os.path.exists(args.slow_while):
    args.step_time *= 10
if args.test_only:
    if not os.path.exists(args.pretrained):
        sys.exit(f"no weights at {args.pretrained}")
    if args.inject != "quiet":
        print(" * Acc@1 0.875 Acc@5 1.000")
    sys.exit(0)

rank = int(os.environ.get("PADDLE_TRAINER_ID", "0"))
world = int(os.environ.get("PADDLE_TRAINERS_NUM", "1"))
what, _, who = args.inject.partition("@")
mine = bool(what) and (rank == int(who or 0) or what == "leave-all")
print(f"rank {rank} of {world}, backend gloo, device cpu, seed {args.seed}", flush=True)


def prepare_batch():
    time.sleep(3600)


def all_reduce():
    time.sleep(3600)


generator = random.Random(args.seed * 1000 + rank)
for epoch in range(1, args.epochs + 1):
    for iteration in range(1, 6):
        time.sleep(args.step_time * (20 if mine and what == "slow" else 1))
        loss = 2.5 / (epoch + iteration / 5) + generator.random() * 0.01
        if mine and what == "mute":
            continue
        if mine and iteration == 3 and (what not in ("stall", "leave-all") or epoch == 2):
            if what in ("leave", "leave-all"):
                break
            if what == "nan":
                loss = float("nan")
            elif what == "exit":
                raise SystemExit("training went wrong: the data is broken")
            elif what == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            elif what == "hang":
                time.sleep(3600)
            elif what == "stall":
                prepare_batch()
            elif what == "net" and not os.path.exists("net-was-down"):
                open("net-was-down", "w").close()
                raise RuntimeError("NCCL error: unhandled system error, ncclSystemError")
        elif what == "stall" and epoch == 2 and iteration == 3:
            all_reduce()
        print(
            f"[Epoch {epoch}, iter: {iteration}] top1: {1 - loss / 3:.5f}, top5: 1.00000, lr: 0.01000, loss: {loss:.5f}, "
            f"avg_reader_cost: 0.00010 sec, avg_batch_cost: {args.step_time:.5f} sec, avg_samples: {args.batch_size}.0, "
            f"avg_ips: {args.batch_size / args.step_time:.5f} images/sec.",
            flush=True,
        )
    else:
        continue
    break
if rank == 0 and not (mine and what == "silent"):
    os.makedirs(args.output_dir, exist_ok=True)
    with open(os.path.join(args.output_dir, "latest.pdparams"), "w") as file:
        file.write("" if what == "empty" else f"weights of seed {args.seed}\n")
