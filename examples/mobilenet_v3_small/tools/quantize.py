"""Trained weights -> an 8-bit model for Paddle Inference, without a training: its scales come from some images.

    python tools/quantize.py --pretrained=./output/latest.pdparams --save-inference-dir=./output/int8

Writes `inference.pdmodel` and `inference.pdiparams`, with weights of one byte and operators that quantize the
inputs of convolutions and matrix products. Prints the predictions of the network before its quantization, in the
format of inference: each leg is compared with them.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
# It counts only before Paddle is imported.
os.environ["FLAGS_enable_pir_api"] = "0"  # noqa: SIM112 (Paddle's name)

import numpy as np
from mobilenet.arguments import parse, positive, refuse
from mobilenet.data import find_pictures, in_order, read_list


class Calibration:
    """Batches of images in the form that Paddle's quantization takes."""

    def __init__(self, folder: Path, batches: int, batch_size: int) -> None:
        self.items = read_list(folder, "train")[: batches * batch_size]
        self.batch_size = batch_size

    def __len__(self) -> int:
        return (len(self.items) + self.batch_size - 1) // self.batch_size

    def __call__(self) -> Iterator[dict[str, np.ndarray]]:
        """Yields the values of the model's input."""
        for pictures, _ in in_order(self.items, self.batch_size):
            yield {"image": pictures}


def arguments() -> argparse.Namespace:
    """The command line; ends the process with 2 when it is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pretrained", required=True, help="weights, with or without .pdparams")
    parser.add_argument("--save-inference-dir", type=Path, required=True)
    parser.add_argument("--data-path", type=Path, default=Path("./lite_data"), help="images for the scales")
    parser.add_argument("--batch-num", type=positive, default=8)
    parser.add_argument("--batch-size", type=positive, default=8)
    parser.add_argument("--algo", choices=("abs_max", "avg", "hist", "mse", "KL"), default="hist")
    parser.add_argument("--img-path", type=Path, default=Path("./images"), help="none is fine: nothing is printed")
    return parse(parser)


def main() -> None:
    """Quantizes, and checks that the files are there."""
    args = arguments()
    calibration = Calibration(args.data_path, args.batch_num, args.batch_size)
    import paddle
    from mobilenet.answers import print_answers
    from mobilenet.prototypes import SIZE
    from mobilenet.quantizing import is_quantized, quantize_exported
    from mobilenet.weights import load_model

    paddle.set_device("cpu")
    model = load_model(args.pretrained)
    if is_quantized(model.state_dict()):
        refuse(f"--pretrained={args.pretrained}: these weights are already quantized")
    network = paddle.nn.Sequential(model, paddle.nn.Softmax(axis=-1))
    network.eval()
    folder = args.save_inference_dir
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("inference.*"):
        old.unlink()
    if args.img_path.exists():
        with paddle.no_grad():
            print_answers(
                lambda pictures: network(paddle.to_tensor(pictures)).numpy(), find_pictures(args.img_path)
            )
    spec = paddle.static.InputSpec([None, 3, SIZE, SIZE], "float32", name="image")
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fp32.") as work:
        quantize_exported(network, Path(work), folder, spec, calibration, args.algo)
    written = sorted(file.name for file in folder.glob("inference.*"))
    if written[:2] != ["inference.pdiparams", "inference.pdmodel"]:
        refuse(f"the quantization wrote only {written} into {folder}", 1)
    print(f"quantized with {len(calibration.items)} images: {', '.join(written)} in {folder}", flush=True)


if __name__ == "__main__":
    main()
