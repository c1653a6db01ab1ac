"""An export with the real Paddle."""

import argparse
import os
import sys

import paddle

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from network import Network

parser = argparse.ArgumentParser()
parser.add_argument("--pretrained", required=True)
parser.add_argument("--save-inference-dir", required=True)
args = parser.parse_args()
model = Network()
model.set_state_dict(paddle.load(args.pretrained))
model.eval()
static = paddle.jit.to_static(model, input_spec=[paddle.static.InputSpec([None, 16], "float32")])
paddle.jit.save(static, os.path.join(args.save_inference_dir, "inference"))
