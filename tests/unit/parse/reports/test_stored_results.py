"""Results that suites store for their compare_results.py."""

import pytest

from tipcflow.domain.keys import PredictionKey
from tipcflow.parse import parse_stored_results, precision_of_results


def test_boxes_integers_and_scores_are_read_by_image() -> None:
    text = (
        "./doc/img_10.jpg\t[[[39.0, 88], [258, 79.5]], [[1, 2], [3, 4]]]\n\n"
        "img_11.jpg\t39 88 258 79\nimg_12.jpg\t[]\nimg_13.jpg\t\n"
        '0001.png\t{"class_id": 1, "scores": [0.1, 0.9]}\n'
    )
    assert parse_stored_results(text) == {
        PredictionKey("img_10.jpg", 1): (39.0, 88.0, 258.0, 79.5, 1.0, 2.0, 3.0, 4.0),
        PredictionKey("img_11.jpg", 1): (39.0, 88.0, 258.0, 79.0),
        PredictionKey("img_12.jpg", 1): (),
        PredictionKey("img_13.jpg", 1): (),
        PredictionKey("0001.png"): (0.1, 0.9),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("img.jpg [[1, 2]]", "line 1: expected an image, a tab and a result"),
        ("\t[[1, 2]]", "line 1: expected an image, a tab and a result"),
        ("a.jpg\t[]\nb.jpg\t[[1, 2", "line 2: the result of b.jpg is neither JSON lists of numbers nor integers"),
        ('a.jpg\t[{"points": [1]}]', "line 1: the result of a.jpg is neither"),
        ("a.jpg\t[true]", "line 1: the result of a.jpg is neither"),
        ("a.jpg\t1\nb/a.jpg\t2", "line 2: image a.jpg occurs twice"),
    ],
)
def test_a_wrong_line_is_named(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_stored_results(text)


@pytest.mark.parametrize(
    ("name", "precision"),
    [
        ("python_ppocr_det_mobile_results_fp32.txt", "fp32"),
        ("cpp_ppocr_det_mobile_results_int8.txt", "int8"),
        ("results.txt", ""),
        ("results_fp32_fp16.txt", ""),
    ],
)
def test_the_file_name_has_the_precision(name: str, precision: str) -> None:
    assert precision_of_results(name) == precision
