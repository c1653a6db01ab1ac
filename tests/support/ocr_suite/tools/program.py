"""What the tools share: arguments, the configuration with overrides, the device, an evaluation."""

import argparse
import sys
import time

import paddle
from ppocr.boxes import find_boxes, quality

USE_GPU = "Config use_gpu cannot be set as true while you are using paddlepaddle cpu version!"


def configuration():
    """The file of `-c` with the values of `-o Global.epoch_num=1 …`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("-c", "--config", required=True)
    parser.add_argument("-o", "--opt", nargs="*", default=[])
    args = parser.parse_args()
    with open(args.config, encoding="utf-8") as file:
        config = _parse(file.read())
    for option in args.opt:
        key, _, text = option.partition("=")
        *sections, name = key.split(".")
        target = config
        for section in sections:
            target = target[section]
        target[name] = _value(text)
    return config


def _parse(text):
    """Sections of `key: value` lines, indented by two blanks each: the part of YAML that the files here use."""
    root = {}
    stack = [root]
    for line in filter(str.strip, (raw.partition(" #")[0] for raw in text.splitlines())):
        depth = (len(line) - len(line.lstrip())) // 2
        key, _, value = line.strip().partition(":")
        del stack[depth + 1 :]
        if value.strip():
            stack[-1][key] = _value(value.strip())
        else:
            stack.append(stack[-1].setdefault(key, {}))
    return root


def _value(text):
    if text.startswith("["):
        return [_value(part.strip()) for part in text.strip("[]").split(",")]
    words = {"true": True, "false": False, "null": None, "": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def set_device(config):
    """The device of the configuration; without CUDA, use_gpu ends the process."""
    if config["Global"]["use_gpu"] and not paddle.is_compiled_with_cuda():
        print(USE_GPU)
        sys.exit(1)
    paddle.set_device("gpu" if config["Global"]["use_gpu"] else "cpu")


def evaluate(network, data):
    """The quality of the boxes on all images, and images per second."""
    network.eval()
    found, started = [], time.time()
    with paddle.no_grad():
        for image, _ in data.samples:
            found.append(find_boxes(network(paddle.to_tensor(image[None])).numpy()[0, 0]))
    seconds = time.time() - started
    network.train()
    return {**quality(found, [boxes.tolist() for _, boxes in data.samples]), "fps": len(found) / seconds}
