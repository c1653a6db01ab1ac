"""Classes and results that real suites print, read as their suite files describe."""

import math
from pathlib import Path

import pytest
from pydantic import ValidationError

from tipcflow.config.formats import PredictionRule, compiled
from tipcflow.config.suite import load_suite
from tipcflow.domain.keys import PredictionKey
from tipcflow.parse import parse_predictions

CONFIGS = Path(__file__).parents[4] / "configs"
LINES = {
    "models_step6": ("image_name: ./images/demo.jpg, class_id: 8, prob: 0.909", "./images/demo.jpg", 8, 0.909),
    # Two digits of a score are too few to compare it.
    "PaddleClas": (
        "a.JPEG:\tclass id(s): [3, 1, 0, 2, 9], score(s): [0.41, 0.39, 0.05, 0.04, 0.04], label_name(s): []",
        "a.JPEG",
        3,
        1.0,
    ),
}


@pytest.mark.parametrize("suite", LINES)
def test_the_class_in_a_line_of_a_suite_is_read(suite: str) -> None:
    line, image, number, score = LINES[suite]
    rules = load_suite(suite, CONFIGS).predictions
    assert parse_predictions(f"a line\n{line}\n", rules) == {PredictionKey(image): (*[0.0] * number, score)}
    assert parse_predictions(line) == {}


RESULTS: dict[str, tuple[str, dict[str, tuple[float, ...]]]] = {
    "PaddleDetection": (
        "class_id:2, confidence:0.5012, left_top:[-1.50,0.00],right_bottom:[20.25,30.00]\n"
        "save result to: output/a.jpg\nTest iter 0\n"
        "class_id:0, confidence:0.9000, left_top:[1.00,2.00],right_bottom:[3.00,4.00]",
        {
            "output: result 1": (2.0, 0.5012, -1.5, 0.0, 20.25, 30.0),
            "output: result 2": (0.0, 0.9, 1.0, 2.0, 3.0, 4.0),
        },
    ),
    "PaddleVideo": (
        "Current video file: a.avi\n\ttop-2 class: [3 1]\n\ttop-2 score: [0.9 0.05]\n"
        "Current video file: b.avi\n\ttop-1 class: 4\n\ttop-1 score: 0.25",
        {
            "a.avi: result 1": (3.0, 1.0),
            "a.avi: result 2": (0.9, 0.05),
            "b.avi: result 1": (4.0,),
            "b.avi: result 2": (0.25,),
        },
    ),
    "PaddleRec": (
        "[array([0.255, 1e-3], dtype=float32)]\n[np.float32(0.5), nan]\n[2022-05-01 10:00:00] [0.1] x\n[Info]",
        {"output: result 1": (0.255, 0.001), "output: result 2": (0.5, math.nan)},
    ),
    "PaddleOCR": (
        "[2022/05/01 10:00:00] ppocr INFO: Predicts of a/word_1.png:('JOINT', 0.998)\n"
        "Predicts of a/word_2.png:['180', 0.75]\n"
        "[2022/05/01 10:00:01] ppocr INFO: b.jpg\t[[[39.0, 88.0], [258.0, 79.0]], [[1.0, 2.0], [3.0, 4.0]]]",
        {
            "a/word_1.png:('JOINT': result 1": (0.998,),
            "a/word_2.png:['180': result 1": (0.75,),
            "b.jpg: result 1": (39.0, 88.0, 258.0, 79.0, 1.0, 2.0, 3.0, 4.0),
        },
    ),
}


@pytest.mark.parametrize("suite", RESULTS)
def test_results_in_lines_of_a_suite_are_read(suite: str) -> None:
    text, results = RESULTS[suite]
    predictions = parse_predictions(text, load_suite(suite, CONFIGS).predictions)
    assert str({str(key): values for key, values in predictions.items()}) == str(results)
    assert all(key.is_result for key in predictions)
    assert parse_predictions(text) == {}


@pytest.mark.parametrize("suite", {**LINES, **RESULTS})
def test_the_sample_of_a_suite_file_is_read(suite: str) -> None:
    for rule in load_suite(suite, CONFIGS).predictions:
        names_input = set(compiled(rule.pattern).groupindex) == {"image"}
        assert len(parse_predictions(rule.sample, [rule])) == (0 if names_input else 1)
        assert rule.source


def test_the_number_of_results_is_bounded() -> None:
    rules = load_suite("PaddleRec", CONFIGS).predictions
    assert len(parse_predictions("[0.5]\n" * 3000, rules)) == 2000


@pytest.mark.parametrize(
    "line",
    [
        "image_name: a.jpg, class_id: 123456789, prob: 0.5",
        "image_name: a.jpg, class_id: -1, prob: 0.5",
        "image_name: a.jpg, class_id: \N{ARABIC-INDIC DIGIT THREE}, prob: 0.5",
    ],
)
def test_invalid_classes_are_skipped(line: str) -> None:
    assert parse_predictions(line, load_suite("models_step6", CONFIGS).predictions) == {}


def test_a_single_class_of_paddleclas_may_come_from_a_threshold() -> None:
    line = "a.JPEG:\tclass id(s): [1], score(s): [0.61], label_name(s): ['someone']"
    assert parse_predictions(line, load_suite("PaddleClas", CONFIGS).predictions) == {}


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (
            r"class (?P<class>\d+)",
            "expected image, class and optionally score; or value",
        ),
        (r"(?P<score>tea)", "the named groups .'score'.; expected"),
        (r": (?P<value>\w+)", "which has no number"),
        (r"(?P<image>\S+) is (?P<class>\d+)", "does not match its sample"),
        (r"(?P<image>\S+): (?P<class>\w+)", "is not an integer"),
        (r"(?P<image>(", "not a valid regular expression"),
    ],
)
def test_a_wrong_rule_is_refused(pattern: str, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        PredictionRule(pattern=pattern, sample="a.jpg: tea")
