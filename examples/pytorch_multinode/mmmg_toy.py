"""Test 1: the ranks exchange tensors in a ring until all hold the mean of what each drew.

python mmmg_toy.py --rank 0 --world-size 2 --ip 192.168.31.150 --port 22000
python mmmg_toy.py --rank 1 --world-size 2 --ip 192.168.31.150 --port 22000

Every rank knows from --seed what the others drew, so it can detect a wrong exchange. The loss is
the mean squared distance from the mean; `batch_cost` is the time of one exchange.
"""

import argparse
import os
import time

# The processes of a group share the node's cores. It only counts before PyTorch is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# With it, cuBLAS gives equal results in each run.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

from multinode.arguments import common_options, init_method_option, positive, refuse

SHARE = 0.25  # of a step's new value that comes from the neighbor
WRONG = 1
TOLERANCE = 1e-5


def arguments() -> argparse.Namespace:
    """The command line; ends the process with 2 if it is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common_options(parser, seed=1)
    parser.add_argument("--ip", default="127.0.0.1", help="address of rank 0")
    parser.add_argument("--port", type=positive, default=22000, help="port of rank 0")
    init_method_option(parser, "")
    parser.add_argument("--iterations", type=positive, default=20, help="exchanges")
    parser.add_argument("--elements", type=positive, default=65536, help="float32 numbers per tensor")
    args = parser.parse_args()
    args.init_method = args.init_method or f"tcp://{args.ip}:{args.port}"
    return args


def main() -> None:
    """Exchanges, and checks what arrived."""
    args = arguments()
    import torch
    import torch.distributed as dist
    from multinode.group import start, stop
    from multinode.training import save

    place = start(args)
    if place.world < 2:
        refuse("an exchange needs --rank and --world-size of at least 2, or torchrun")
    drawn = [
        torch.randn(args.elements, generator=torch.Generator().manual_seed(1000 * args.seed + rank))
        for rank in range(place.world)
    ]
    wanted = torch.stack(drawn).mean(dim=0).to(place.device)
    mine = drawn[place.rank].to(place.device)
    for step in range(1, args.iterations + 1):
        begin = time.perf_counter()
        mine = exchanged(mine, step, place)
        loss = float((mine - wanted).square().mean())
        cost = time.perf_counter() - begin
        place.say(
            f"Epoch: 1/1, Step: {step}/{args.iterations}, loss: {loss:.9g}, batch_cost: {cost:.6f} s, "
            f"ips: {1 / cost:.2f} tensors/sec"
        )
    check_collectives(place, wanted)
    save({"tensor": mine.cpu()}, args.output_dir, place)
    dist.barrier(device_ids=[place.device.index] if place.backend == "nccl" else None)
    place.say(f"exchanged {args.iterations} tensors of {4 * args.elements} bytes with each neighbor: correct")
    stop(place)


def exchanged(mine, step: int, place):
    """Sends the own tensor to the next rank and returns its mixture with that of the rank before."""
    import torch
    import torch.distributed as dist

    after, before = (place.rank + 1) % place.world, (place.rank - 1) % place.world
    # The first two numbers identify the tensor.
    head = torch.tensor([place.rank, step], dtype=mine.dtype, device=mine.device)
    sent = torch.cat([head, mine])
    if place.backend == "gloo":
        sent = sent.cpu()  # gloo sends single tensors from host memory only
    received = torch.empty_like(sent)
    works = dist.batch_isend_irecv([dist.P2POp(dist.isend, sent, after), dist.P2POp(dist.irecv, received, before)])
    for work in works:
        work.wait()
    sender, its_step = (int(number) for number in received[:2].tolist())
    if (sender, its_step) != (before, step):
        refuse(
            f"rank {place.rank} expected the tensor of rank {before} in step {step}, and received that of rank "
            f"{sender} in step {its_step}",
            WRONG,
        )
    return (1 - SHARE) * mine + SHARE * received[2:].to(mine.device)


def check_collectives(place, wanted) -> None:
    """Checks a sum over all ranks and a broadcast from the last one; ends the process with 1 if one is wrong."""
    import torch
    import torch.distributed as dist

    total = torch.tensor([float(place.rank + 1)], device=place.device)
    dist.all_reduce(total)
    expected = place.world * (place.world + 1) / 2
    if total.item() != expected:
        refuse(f"rank {place.rank}: the sum of all ranks is {total.item():g}, expected {expected:g}", WRONG)
    last = place.world - 1
    value = wanted.clone() if place.rank == last else torch.zeros_like(wanted)
    dist.broadcast(value, src=last)
    if not torch.allclose(value, wanted, atol=TOLERANCE):
        refuse(f"rank {place.rank}: the tensor that rank {last} sent to all arrived changed", WRONG)


if __name__ == "__main__":
    main()
