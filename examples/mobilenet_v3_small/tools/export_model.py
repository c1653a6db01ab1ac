"""Trained weights -> a model for Paddle Inference.

    python tools/export_model.py --pretrained=./output/latest.pdparams --save-inference-dir=./output/inference

Writes `inference.json` and `inference.pdiparams`; with FLAGS_enable_pir_api=0 in the environment, as inference
code of before Paddle 3 needs it, and for quantized weights, `inference.pdmodel` in place of the first. The model
gives class probabilities.
Prints the network's own predictions in the format of inference: each engine is compared with them.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mobilenet.arguments import MODELS, parse, refuse


def arguments() -> argparse.Namespace:
    """The command line; ends the process with 2 when it is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=MODELS, default=MODELS[0])
    parser.add_argument("--pretrained", required=True, help="weights, with or without .pdparams")
    parser.add_argument("--save-inference-dir", type=Path, required=True)
    parser.add_argument("--img-path", type=Path, default=Path("./images"), help="none is fine: nothing is printed")
    args = parse(parser)
    weights = args.pretrained if args.pretrained.endswith(".pdparams") else args.pretrained + ".pdparams"
    if not Path(weights).is_file():
        refuse(f"weights {weights} are missing: train first, or correct --pretrained")
    return args


def main() -> None:
    """Exports, and checks that the files are there."""
    args = arguments()
    import paddle
    from mobilenet.answers import print_answers
    from mobilenet.data import find_pictures
    from mobilenet.prototypes import SIZE
    from mobilenet.quantizing import is_quantized, save_quantized
    from mobilenet.weights import load_model

    paddle.set_device("cpu")
    model = load_model(args.pretrained)
    network = paddle.nn.Sequential(model, paddle.nn.Softmax(axis=-1))
    network.eval()
    if args.img_path.exists():
        with paddle.no_grad():
            print_answers(
                lambda pictures: network(paddle.to_tensor(pictures)).numpy(), find_pictures(args.img_path)
            )
    spec = paddle.static.InputSpec([None, 3, SIZE, SIZE], "float32", name="image")
    folder = args.save_inference_dir
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("inference.*"):
        # A program of an earlier export in the other format must not remain next to new weights.
        old.unlink()
    if is_quantized(model.state_dict()):
        save_quantized(network, folder / "inference", spec)
    else:
        # The whole graph: Paddle 3 compiles parts of it only for the new format.
        static = paddle.jit.to_static(network, input_spec=[spec], full_graph=True)
        paddle.jit.save(static, str(folder / "inference"))
    written = sorted(file.name for file in folder.glob("inference.*"))
    if "inference.pdiparams" not in written or not {"inference.json", "inference.pdmodel"} & set(written):
        refuse(f"the export wrote only {written} into {folder}", 1)
    print(f"exported {', '.join(written)} into {folder}", flush=True)


if __name__ == "__main__":
    main()
