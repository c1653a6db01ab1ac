"""Test 2: trains a convolution network on images of digits with data parallelism.

python mmmg_mnist.py --init-method tcp://192.168.31.150:22225 --rank 0 --world-size 2
python mmmg_mnist.py --init-method tcp://192.168.31.150:22225 --rank 1 --world-size 2
torchrun --nnodes 2 --node-rank 0 --master-addr 192.168.31.150 mmmg_mnist.py
"""

import argparse
import os
from pathlib import Path

# The processes of a group share the node's cores. It only counts before PyTorch is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# With it, cuBLAS gives equal results in each run.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

from multinode.arguments import common_options, init_method_option, positive

# Without --root the images are generated in memory.
TRAIN_IMAGES, TEST_IMAGES = 2048, 200


def arguments() -> argparse.Namespace:
    """The command line; ends the process with 2 if it is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    common_options(parser, seed=1)
    init_method_option(parser, "tcp://127.0.0.1:23456")
    parser.add_argument("--batch-size", type=positive, default=1024, metavar="N", help="per process")
    parser.add_argument("--test-batch-size", type=positive, default=1000, metavar="N")
    parser.add_argument("--epochs", type=positive, default=20, metavar="N")
    parser.add_argument("--lr", type=float, default=0.01, metavar="LR")
    parser.add_argument("--momentum", type=float, default=0.5, metavar="M")
    parser.add_argument("--log-interval", type=positive, default=10, metavar="N", help="steps per printed line")
    parser.add_argument("--root", type=Path, help="folder with files in the format of MNIST; default: generated")
    return parser.parse_args()


def main() -> None:
    """Trains; rank 0 evaluates after each epoch."""
    args = arguments()
    import torch
    from multinode.group import start, stop
    from multinode.images import TEST, TRAIN, ImageSet, generate, read
    from multinode.network import ConvNet
    from multinode.training import Course, save, train

    if args.root is None:
        train_set, test_set = ImageSet(generate(TRAIN_IMAGES, TRAIN)), ImageSet(generate(TEST_IMAGES, TEST))
    else:
        train_set, test_set = ImageSet(read(args.root, TRAIN)), ImageSet(read(args.root, TEST))
    place = start(args)
    model = ConvNet().to(place.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=args.momentum)
    course = Course(args.epochs, args.batch_size, args.test_batch_size, args.log_interval, args.seed)
    train(model, optimizer, train_set, test_set, course, place)
    save(model.state_dict(), args.output_dir, place)
    stop(place)


if __name__ == "__main__":
    main()
