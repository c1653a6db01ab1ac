"""Runs the exported model on images with Paddle Inference.

    python deploy/inference_python/infer.py --model-dir=./output --enable-mkldnn=True --benchmark=True

Prints what the engine really is, one line per image (`name<TAB>{"class_id": ..., "scores": [...]}`), and with
`--benchmark=True` a report in AutoLog's form. Ends with 2 for wrong arguments or a missing model, with 3 when this
machine does not support the requested options, with 1 when the engine turns out other than declared.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
from mobilenet.answers import print_answers
from mobilenet.arguments import parse, positive, switch
from mobilenet.data import find_pictures, read_picture
from precision import PRECISIONS, check_cpu, check_gpu, cpu_flags


def arguments() -> argparse.Namespace:
    """The command line; ends the process with 2 when it is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--use-gpu", type=switch, default=False)
    parser.add_argument("--enable-mkldnn", type=switch, default=False, help="oneDNN; counts on a CPU")
    parser.add_argument("--cpu-threads", type=positive, default=1)
    parser.add_argument("--batch-size", type=positive, default=1)
    parser.add_argument("--use-tensorrt", type=switch, default=False, help="counts on a GPU")
    parser.add_argument("--precision", choices=PRECISIONS, default="fp32")
    parser.add_argument("--model-dir", type=Path, required=True)
    parser.add_argument("--img-path", type=Path, default=Path("./images"), help="an image, or a folder of images")
    parser.add_argument("--benchmark", type=switch, default=False)
    parser.add_argument("--passes", type=positive, default=3, help="how often --benchmark runs over all images")
    args = parse(parser)
    if args.use_gpu:
        check_gpu(args.precision, args.use_tensorrt)
    else:
        check_cpu(args.precision, args.enable_mkldnn, cpu_flags())
    return args


def measure(engine, reporter, batches: list[list[Path]]) -> None:
    """Runs all batches, each stage timed."""
    for batch in batches:
        reporter.start()
        pictures = np.stack([read_picture(path) for path in batch])
        reporter.stamp()
        scores = engine(pictures)
        reporter.stamp()
        scores.argmax(axis=1)
        reporter.stamp()


def predict(engine, batches: list[list[Path]]) -> None:
    """Prints the prediction for every image."""
    for batch in batches:
        print_answers(engine, batch)
    sys.stdout.flush()


def main() -> None:
    """Infers, and reports."""
    args = arguments()
    from engine import Engine
    from gpu import check_gpu_here
    from reporter import WARM_UP, make_reporter

    if args.use_gpu:
        check_gpu_here(args.use_tensorrt)
    paths = find_pictures(args.img_path)
    batches = [paths[start : start + args.batch_size] for start in range(0, len(paths), args.batch_size)]
    engine = Engine(args)
    print("engine: " + " ".join(f"{name}={word}" for name, word in engine.settings.items()), flush=True)
    predict(engine, batches)
    if args.benchmark:
        reporter = make_reporter(engine, args)
        measure(engine, reporter, [batches[0]] * WARM_UP + batches * args.passes)
        print(f"reporter: {reporter.name}", flush=True)
        reporter.report()


if __name__ == "__main__":
    main()
