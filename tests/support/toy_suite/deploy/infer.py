"""An inference that prints fixed scores; `--inject exit@mkldnn` fails on legs with oneDNN, `drift` moves their scores,
`silent` ends them well without a word."""

import argparse
import json
import os
import sys

parser = argparse.ArgumentParser()
parser.add_argument("--use-gpu", default="False")
parser.add_argument("--enable-mkldnn", default="False")
parser.add_argument("--cpu-threads", default="1")
parser.add_argument("--batch-size", default="1")
parser.add_argument("--use-tensorrt", default="False")
parser.add_argument("--precision", default="fp32")
parser.add_argument("--model-dir", required=True)
parser.add_argument("--img-path", default="images")
parser.add_argument("--benchmark", default="False")
parser.add_argument("--inject", default="")
args = parser.parse_args()
onednn = args.enable_mkldnn == "True"
if not os.path.exists(os.path.join(args.model_dir, "inference.pdiparams")):
    sys.exit(f"no model in {args.model_dir}")
if args.inject == "exit@mkldnn" and onednn:
    sys.exit("oneDNN cannot do this")
if args.inject == "silent@mkldnn" and onednn:
    sys.exit(0)
actual = onednn and args.inject != "pretend@mkldnn"
print(
    f"engine: device=cpu onednn={actual} tensorrt=False precision={args.precision} "
    f"threads={args.cpu_threads} batch_size={args.batch_size}"
)
for index in range(3):
    scores = [0.1] * 10
    scores[index] = 0.55 + (0.01 if onednn and args.inject == "drift@mkldnn" else 0.0)
    print(f"{index}.png\t" + json.dumps({"class_id": index, "scores": scores}))
