"""Classes that real suites print, read as their suite files describe."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from tipcflow.config.formats import PredictionRule
from tipcflow.config.suite import load_suite
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
def test_the_class_of_a_suite_s_line(suite: str) -> None:
    line, image, number, score = LINES[suite]
    rules = load_suite(suite, CONFIGS).predictions
    assert parse_predictions(f"a line\n{line}\n", rules) == {image: (*[0.0] * number, score)}
    assert parse_predictions(line) == {}


@pytest.mark.parametrize("suite", LINES)
def test_the_sample_of_a_suite_file_is_read(suite: str) -> None:
    for rule in load_suite(suite, CONFIGS).predictions:
        assert len(parse_predictions(rule.sample, [rule])) == 1
        assert rule.source


@pytest.mark.parametrize(
    "line",
    [
        "image_name: a.jpg, class_id: 123456789, prob: 0.5",
        "image_name: a.jpg, class_id: -1, prob: 0.5",
        "image_name: a.jpg, class_id: \N{ARABIC-INDIC DIGIT THREE}, prob: 0.5",
    ],
)
def test_what_is_not_a_class_is_skipped(line: str) -> None:
    assert parse_predictions(line, load_suite("models_step6", CONFIGS).predictions) == {}


def test_a_single_class_of_paddleclas_may_come_from_a_threshold() -> None:
    line = "a.JPEG:\tclass id(s): [1], score(s): [0.61], label_name(s): ['someone']"
    assert parse_predictions(line, load_suite("PaddleClas", CONFIGS).predictions) == {}


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (r"class (?P<class>\d+)", "expected image, class and optionally score"),
        (r"(?P<image>\S+) is (?P<class>\d+)", "does not match its sample"),
        (r"(?P<image>\S+): (?P<class>\w+)", "is not an integer"),
        (r"(?P<image>(", "not a valid regular expression"),
    ],
)
def test_a_wrong_rule_is_refused(pattern: str, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        PredictionRule(pattern=pattern, sample="a.jpg: tea")
