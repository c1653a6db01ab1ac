import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

import numpy as np
from ppocr.boxes import corners, find_boxes
from ppocr.data import read_image
from ppocr.log import get_logger
from tools.infer.autolog import Report
from tools.infer.utility import create_predictor, parse_args

args, logger = parse_args(), get_logger()
if args.use_gpu:
    raise SystemExit("this repository has no code for GPUs")
config, predictor = create_predictor(args)
source = predictor.get_input_handle(predictor.get_input_names()[0])
target = predictor.get_output_handle(predictor.get_output_names()[0])
report = Report(model="det", precision=args.precision, batch_size=1, config=config, warm_up=1)
results = []
for number, name in enumerate(sorted(os.listdir(args.image_dir))):
    started = time.time()
    report.start()
    image = np.ascontiguousarray(read_image(os.path.join(args.image_dir, name))[None])
    report.stamp()
    source.reshape(image.shape)
    source.copy_from_cpu(image)
    predictor.run()
    probability = target.copy_to_cpu()
    report.stamp()
    boxes = [corners(box) for box in find_boxes(probability[0, 0])]
    report.stamp()
    results.append(f"{name}\t{json.dumps(boxes)}\n")
    logger.info(results[-1])
    logger.info(f"{number} The predict time of {os.path.join(args.image_dir, name)}: {time.time() - started}")
os.makedirs("./inference_results", exist_ok=True)
with open("./inference_results/det_results.txt", "w", encoding="utf-8") as file:
    file.writelines(results)
if args.benchmark:
    report.print()
