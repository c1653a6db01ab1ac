"""An export that copies the weights; `--inject nothing` writes nothing and exits with 0."""

import argparse
import os
import sys

parser = argparse.ArgumentParser()
parser.add_argument("--pretrained", required=True)
parser.add_argument("--save-inference-dir", required=True)
parser.add_argument("--inject", default="")
args = parser.parse_args()
if not os.path.exists(args.pretrained):
    sys.exit(f"no weights at {args.pretrained}")
if args.inject != "nothing":
    with (
        open(args.pretrained) as weights,
        open(os.path.join(args.save_inference_dir, "inference.pdiparams"), "w") as out,
    ):
        out.write(weights.read())
