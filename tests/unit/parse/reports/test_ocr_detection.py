"""Boxes of PaddleOCR's predict_det.py, as 2.7.3 from the package index printed them with AutoLog 1.2.0."""

from pathlib import Path

from tipcflow.config.suite import load_suite
from tipcflow.domain.keys import PredictionKey
from tipcflow.parse import engine_from_autolog, lines_of, parse_stored_results, read_inference

ROOT = Path(__file__).parents[4]
RECORDED = ROOT / "tests" / "golden" / "parse" / "ocr_det_recorded.log"
# The file det_results.txt of the same process, in the form of results/python_ppocr_det_mobile_results_fp32.txt.
STORED = RECORDED.with_name("ocr_det_recorded_results_fp32.txt")


def test_boxes_in_the_log_equal_the_stored_results() -> None:
    rules = load_suite("PaddleOCR", ROOT / "configs").predictions
    log = read_inference(lines_of(RECORDED.read_bytes()), rules)
    assert log.predictions == parse_stored_results(STORED.read_text())
    assert {key.source: len(row) // 8 for key, row in log.predictions.items()} == {
        "img_1.jpg": 2,
        "img_2.jpg": 3,
        "img_3.jpg": 1,
        "img_4.jpg": 2,
    }
    assert log.predictions[PredictionKey("img_3.jpg", 1)] == (7.0, 0.0, 76.0, 0.0, 76.0, 25.0, 7.0, 25.0)


def test_the_report_shows_settings_other_than_the_arguments() -> None:
    """The arguments were --enable_mkldnn=False --cpu_threads=6: 2.7.3 sets threads only with oneDNN, and otherwise
    keeps the default of Paddle 3, which is oneDNN."""
    log = read_inference(lines_of(RECORDED.read_bytes()))
    engine = engine_from_autolog(log.autolog)
    assert (engine["device"], engine["onednn"], engine["threads"]) == ("cpu", "True", "1")
    assert len(log.blocks) == 1
