import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import paddle
from ppocr.data import Labelled
from ppocr.log import get_logger
from ppocr.network import Detector
from tools.program import configuration, evaluate, set_device

config, logger = configuration(), get_logger()
set_device(config)
network = Detector(config["Architecture"]["width"])
weights = config["Global"].get("checkpoints") or config["Global"]["pretrained_model"]
network.set_state_dict(paddle.load(f"{weights}.pdparams"))
metric = evaluate(network, Labelled(config["Eval"]["dataset"]))
logger.info("metric eval ***************")
for name, value in metric.items():
    logger.info(f"{name}:{value}")
