"""Arguments and predictor of the inference tools."""

import argparse
import os

from paddle import inference


def _switch(text):
    return text.lower() in ("true", "t", "1")


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--use_gpu", type=_switch, default=True)
    parser.add_argument("--enable_mkldnn", type=_switch, default=False)
    parser.add_argument("--cpu_threads", type=int, default=10)
    parser.add_argument("--use_tensorrt", type=_switch, default=False)
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--det_model_dir", required=True)
    parser.add_argument("--image_dir", required=True)
    parser.add_argument("--rec_batch_num", type=int, default=6)
    parser.add_argument("--benchmark", type=_switch, default=False)
    parser.add_argument("--save_log_path", default="./log_output/")
    return parser.parse_args()


def create_predictor(args):
    """Configuration and predictor of an exported model."""
    files = [os.path.join(args.det_model_dir, f"inference.{end}") for end in ("json", "pdmodel")]
    program = next(file for file in files if os.path.exists(file))
    config = inference.Config(program, os.path.join(args.det_model_dir, "inference.pdiparams"))
    config.disable_glog_info()
    config.disable_gpu()
    if args.enable_mkldnn:
        config.enable_mkldnn()
        if args.precision == "fp16":
            config.enable_mkldnn_bfloat16()
    else:
        config.disable_mkldnn()
    config.set_cpu_math_library_num_threads(args.cpu_threads)
    if program.endswith(".json"):
        config.enable_new_executor()
    config.enable_memory_optim()
    return config, inference.create_predictor(config)
