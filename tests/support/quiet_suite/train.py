"""A training with the real Paddle that prints losses of rank 0 and nothing about ranks, devices or weights."""

import argparse
import os
import sys
import time

import paddle
import paddle.distributed as dist

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from network import Network, batch

parser = argparse.ArgumentParser()
parser.add_argument("--output-dir", default="output")
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--batch-size", type=int, default=4)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--use-gpu", default="False")
parser.add_argument("--test-only", action="store_true")
parser.add_argument("--pretrained", default="")
args = parser.parse_args()


def evaluate(model):
    model.eval()
    images, labels = batch(7)
    right = (model(images).argmax(axis=1) == labels.flatten()).astype("float32").mean()
    model.train()
    return float(right)


model = Network()
if args.test_only:
    model.set_state_dict(paddle.load(args.pretrained))
    print(f" * Acc@1 {evaluate(model):.5f}", flush=True)
    sys.exit(0)
paddle.seed(args.seed)
dist.init_parallel_env()
rank = int(os.environ.get("PADDLE_TRAINER_ID", "0"))
parallel = paddle.DataParallel(model) if dist.is_initialized() else model
optimizer = paddle.optimizer.Momentum(0.05, parameters=model.parameters())
for epoch in range(1, args.epochs + 1):
    for iteration in range(1, 11):
        begin = time.time()
        images, labels = batch(100 * iteration + rank)
        loss = paddle.nn.functional.cross_entropy(parallel(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        if rank == 0:
            seconds = time.time() - begin
            print(
                f"[Epoch {epoch}, iter: {iteration}] loss: {float(loss):.5f}, avg_batch_cost: {seconds:.5f} sec",
                flush=True,
            )
    if rank == 0:
        print(f" * Acc@1 {evaluate(model):.5f}", flush=True)
if rank == 0:
    os.makedirs(args.output_dir, exist_ok=True)
    paddle.save(model.state_dict(), os.path.join(args.output_dir, "latest.pdparams"))
