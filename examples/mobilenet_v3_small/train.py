"""Trains the model, alone or in a group that `paddle.distributed.launch` made; or evaluates it (`--test-only`).

python train.py --output-dir=./output --epochs=5 --batch-size=4
python -m paddle.distributed.launch --ips=a,b --gpus=0,1 train.py --output-dir=./output
python train.py --test-only --pretrained=./output/latest.pdparams
"""

import argparse
import os
from pathlib import Path

# The processes of a group share the node's cores. It counts only before Paddle is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from mobilenet.arguments import DEFAULT_SEED, MODELS, mixing, parse, positive, refuse, share, switch
from mobilenet.inject import parse_fault


def arguments() -> argparse.Namespace:
    """The command line; ends the process with 2 when it is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=MODELS, default=MODELS[0])
    parser.add_argument("--use-gpu", type=switch, default=None, help="default: a GPU where there is one")
    parser.add_argument("--data-path", type=Path, default=Path("./lite_data"))
    parser.add_argument("--output-dir", type=Path, default=Path("./output"))
    parser.add_argument("--epochs", type=positive, default=5)
    parser.add_argument("--max-iters", type=positive, default=0, help="iterations in total, instead of --epochs")
    parser.add_argument("--batch-size", type=positive, default=4, help="per process")
    parser.add_argument("--auto-cast", choices=("fp32", "amp"), default="fp32", help="amp needs a GPU")
    parser.add_argument("--amp-level", choices=("O1", "O2"), default="O1", help="O2: weights in float16, too")
    parser.add_argument("settings", nargs="*", metavar="Global.KEY=VALUE", help="settings of mixed precision")
    parser.add_argument(
        "--compress", choices=("none", "prune", "quantize"), default="none", help="after half of the training"
    )
    parser.add_argument("--prune-share", type=share, default=0.3, help="of the channels, for --compress=prune")
    parser.add_argument("--lr", type=float, default=0.006)
    parser.add_argument("--seed", type=int, default=DEFAULT_SEED, help="equal seeds give equal losses")
    parser.add_argument("--print-freq", type=positive, default=1, help="iterations per printed line")
    parser.add_argument("--pretrained", default="", help="weights to start from, or to evaluate")
    parser.add_argument("--test-only", action="store_true", help="evaluate --pretrained and end")
    parser.add_argument(
        "--inject", default="", help="a fault on demand: nan@STEP, exit@STEP, hang@STEP, each [@RANK]"
    )
    args = parse(parser)
    if args.test_only and args.pretrained in ("", "null"):
        refuse("--test-only needs weights: --pretrained=...")
    if args.seed < 0:
        refuse(f"--seed={args.seed}: expected 0 or more")
    args.inject = parse_fault(args.inject)
    args.mixing = mixing(args.auto_cast, args.settings, args.amp_level)
    return args


def main() -> None:
    """Trains or evaluates."""
    args = arguments()
    # After the arguments: a wrong argument is reported at once, not after Paddle's start.
    from mobilenet.data import read_list
    from mobilenet.distributed import fix_seed, start
    from mobilenet.meter import Log
    from mobilenet.mixed import Precision
    from mobilenet.model import MobileNetV3Small
    from mobilenet.prototypes import CLASSES
    from mobilenet.training import evaluate, train
    from mobilenet.weights import load_model, save_weights

    held_out = read_list(args.data_path, "val")
    place = start(args.use_gpu)
    fix_seed(args.seed)
    log = Log(args.output_dir / "train.log" if place.leads and not args.test_only else None)
    precision = Precision(args.mixing)
    used = f", precision {precision.word}" if not args.test_only else ""
    group = f"rank {place.rank} of {place.world}, backend {place.backend}"
    log(f"{group}, device {place.device}{used}, seed {args.seed}")
    given = args.pretrained not in ("", "null")
    model = load_model(args.pretrained) if given else MobileNetV3Small(CLASSES)
    if not args.test_only:
        model = train(model, read_list(args.data_path, "train"), args, place, precision, log)
    if place.leads:
        if not args.test_only:
            save_weights(model, args.output_dir / "latest.pdparams")
            log(f"saved {args.output_dir / 'latest.pdparams'}")
        evaluate(model, held_out, log)


if __name__ == "__main__":
    main()
