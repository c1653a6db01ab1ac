import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import paddle
from ppocr.log import get_logger
from ppocr.network import Detector
from tools.program import configuration

config, logger = configuration(), get_logger()
network = Detector(config["Architecture"]["width"])
weights = config["Global"].get("checkpoints") or config["Global"]["pretrained_model"]
network.set_state_dict(paddle.load(f"{weights}.pdparams"))
network.eval()
spec = paddle.static.InputSpec(shape=[None, 3, -1, -1], dtype="float32")
path = os.path.join(config["Global"]["save_inference_dir"], "inference")
paddle.jit.save(paddle.jit.to_static(network, input_spec=[spec]), path)
logger.info(f"inference model is saved to {path}")
