"""Dialect detection for params files without a given suite."""

import re
from collections.abc import Sequence

from tipcflow.domain import ConfigError
from tipcflow.params.lines import read_lines
from tipcflow.params.parse import parse_params
from tipcflow.params.registry.names import load_dialect

# Part of a path -> dialect; the first match wins.
_PATHS = (
    (r"contrib/MedicalSeg", "PaddleSeg/contrib/MedicalSeg"),
    (r"contrib/PanopticSeg", "PaddleSeg/contrib/PanopticSeg"),
    (r"mobilenetv3_prod", "models/mobilenetv3_prod"),
    (r"tutorials/tipc|docs/tipc", "models/template"),
    *((rf"\b{suite}\b", suite) for suite in ("PaddleClas", "PaddleDetection", "PaddleSeg", "PaddleVideo")),
    *((rf"\b{suite}\b", suite) for suite in ("PaddleRec", "PaddleGAN", "PaddleOCR")),
    *((rf"\b{suite}\b", suite) for suite in ("PaddleRS", "Paddle3D", "PASSL", "PaddleSpeech", "PaddleNLP")),
)
# Text that only one suite's files contain.
_TEXTS = (
    (r"(?m)^model_name:\w+:\w", "PaddleRS"),
    (r"(?m)^linear:", "PASSL"),
    (r"paddlespeech/", "PaddleSpeech"),
    (r"(?m)^norm_train:.*(\.\./legacy/(model_zoo|examples)|test_tipc/train\.py --)", "PaddleNLP"),
    (r"(?m)^norm_train:.*--config (\./)?(test_tipc/)?configs/.*\b(kitti|nuscenes|modelnet)", "Paddle3D"),
    (r"(?m)^-o Global\.|ppcls/configs", "PaddleClas"),
    (r"(?m)^trained_model_name:|infer_mode:|^TrainReader\.", "PaddleDetection"),
    (r"(?m)^runner\.|^-o runner\.|trainer\.py -m", "PaddleRec"),
    (r"(?m)^--iters:|deploy\.yaml|--save_interval", "PaddleSeg"),
    (r"main\.py.* --validate|tools/predict\.py", "PaddleVideo"),
    (r"(?m)^dataset\.train\.|^total_iters:|^epochs:.*\n.*output_dir", "PaddleGAN"),
    (r"(?m)^Global\.|ppocr|configs/(det|rec|e2e|kie|table)/", "PaddleOCR"),
)
_PLAIN = ("models/mobilenetv3_prod", "models/template")


def guess_dialect(text: str, path: str) -> tuple[str, str]:
    """Return a dialect's name and the reason: path, text or layout."""
    path = path.replace("\\", "/")
    for pattern, name in _PATHS:
        if re.search(pattern, path, re.IGNORECASE):
            return name, "its path names the suite"
    if fits(text, _PLAIN[0]):
        return _PLAIN[0], "its lines have the layout of this dialect"
    for pattern, name in _TEXTS:
        if re.search(pattern, text):
            return name, "its text names the suite"
    return _PLAIN[1], "neither the path nor the text of the file names a suite"


def fits(text: str, dialect: str) -> bool:
    """Whether a file matches a dialect's line map."""
    try:
        parse_params(text, file="", dialect=load_dialect(dialect))
    except ConfigError:
        return False
    return True


def nearest(text: str, dialects: Sequence[str]) -> str:
    """Return the non-matching dialect with the nearest number of lines; the first of equals."""
    count = len(read_lines(text))
    return min(dialects, key=lambda name: load_dialect(name).line_map().distance(count))
