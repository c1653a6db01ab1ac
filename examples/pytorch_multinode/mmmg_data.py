"""Test 3: trains on files below --root, and proves that the sampler gives each rank its own share of them.

python mmmg_data.py --init-method tcp://192.168.31.150:23456 --rank 0 --world-size 2
python mmmg_data.py --init-method tcp://192.168.31.150:23456 --rank 1 --world-size 2

After each epoch all ranks compare the indices that they trained on: every image occurs, and only as many occur
twice as equal shares need. Anything else ends the training with exit code 1.
"""

import argparse
import os
from pathlib import Path

# The processes of a group share the node's cores. It only counts before PyTorch is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# With it, cuBLAS gives equal results in each run.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

from multinode.arguments import common_options, init_method_option, positive, refuse

WRONG = 1


def arguments() -> argparse.Namespace:
    """The command line; ends the process with 2 if it is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common_options(parser, seed=1, backend="gloo", short=True)
    init_method_option(parser, "tcp://127.0.0.1:23456")
    parser.add_argument("--epochs", type=positive, default=20)
    parser.add_argument("--learning-rate", "-lr", type=float, default=1e-3)
    parser.add_argument(
        "--root", type=Path, default=Path("../data"), help="folder with files in the format of MNIST"
    )
    parser.add_argument("--batch-size", type=positive, default=128, help="per process")
    parser.add_argument("--log-interval", type=positive, default=1, help="steps per printed line")
    return parser.parse_args()


def main() -> None:
    """Trains, and checks the sampler."""
    args = arguments()
    import torch
    from multinode.group import start, stop
    from multinode.images import TEST, TRAIN, ImageSet, read
    from multinode.network import ConvNet
    from multinode.training import Course, save, train

    train_set, test_set = ImageSet(read(args.root, TRAIN)), ImageSet(read(args.root, TEST))
    place = start(args)
    model = ConvNet().to(place.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.learning_rate)

    def after_epoch(epoch: int, indices: list[int]) -> None:
        check_shares(epoch, indices, len(train_set), place)

    course = Course(args.epochs, args.batch_size, 1000, args.log_interval, args.seed, after_epoch)
    train(model, optimizer, train_set, test_set, course, place)
    save(model.state_dict(), args.output_dir, place)
    stop(place)


def check_shares(epoch: int, indices: list[int], total: int, place) -> None:
    """Compares the indices of all ranks; ends the process with 1 if they are not fair shares of all images."""
    import torch
    import torch.distributed as dist

    share = -(-total // place.world)
    if len(indices) != share:
        refuse(f"epoch {epoch}: rank {place.rank} trained on {len(indices)} images, expected {share}", WRONG)
    shares = [torch.tensor(indices, device=place.device)]
    if dist.is_initialized():
        own = shares[0]
        shares = [torch.empty_like(own) for _ in range(place.world)]
        dist.all_gather(shares, own)
    counts = torch.bincount(torch.cat(shares).cpu(), minlength=total)
    absent, twice = int((counts == 0).sum()), int((counts - 1).clamp(min=0).sum())
    if len(counts) != total or absent or twice != share * place.world - total:
        refuse(f"epoch {epoch}: {absent} of {total} images are in no rank's share, {twice} are in several", WRONG)
    if place.leads:
        place.say(f"sampler of epoch {epoch}: {total} images, {share} per rank, {twice} in several shares")


if __name__ == "__main__":
    main()
