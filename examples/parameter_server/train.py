"""Trains a click model with parameter servers.

Every process starts this script; the launcher sets its role:

python -m paddle.distributed.launch --server_num=1 --trainer_num=2 train.py --output-dir=./output
"""

import argparse
import os
import sys
import time
from pathlib import Path

# The processes of a node share its cores. It counts only before Paddle is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")


def arguments() -> argparse.Namespace:
    """Return the command line; wrong arguments end the process with 2."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=_positive, default=3)
    parser.add_argument("--batch-size", type=_positive, default=64, help="per trainer")
    parser.add_argument("--steps", type=_positive, default=40, help="per epoch and trainer")
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=0, help="of the samples and the dense layers")
    parser.add_argument("--output-dir", type=Path, default=Path("./output"))
    parser.add_argument("--print-freq", type=_positive, default=1, help="steps per printed line")
    return parser.parse_args()


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a positive integer, found {text!r}")
    return int(text)


def main() -> None:
    """Run a server, or a trainer."""
    args = arguments()
    import paddle

    if not hasattr(paddle.base.core, "DistFleetWrapper"):
        sys.exit(f"error: Paddle {paddle.__version__} was built without parameter servers; 2.6.2 has them")
    from clicks.network import network
    from clicks.training import train
    from paddle.distributed import fleet

    paddle.enable_static()
    paddle.seed(args.seed)
    fleet.init(fleet.PaddleCloudRoleMaker())
    net = network()
    strategy = fleet.DistributedStrategy()
    strategy.a_sync = True
    fleet.distributed_optimizer(paddle.optimizer.Adam(args.lr), strategy).minimize(net.loss)
    if fleet.is_server():
        print(f"server {fleet.server_index()} of {fleet.server_num()}", flush=True)
        fleet.init_server()
        fleet.run_server()
        return
    began = time.monotonic()
    rank = fleet.worker_index()
    print(f"rank {rank} of {fleet.worker_num()}, backend ps, device cpu, seed {args.seed}", flush=True)
    train(net, args)
    print(f"trainer {rank} is done after {time.monotonic() - began:.1f} s", flush=True)


if __name__ == "__main__":
    main()
